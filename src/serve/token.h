/* token.h - access tokens: who may use the daemon, and for what.
 *
 * A token is "dibs_" and 43 characters of base64url, 256 random bits. The file has
 * its SHA-256 only, one line each:
 *
 *     NAME ROLE sha256:HEX [expires=2027-01-31T00:00:00Z]
 *
 * Two lines of one name are a rotation: both count. The file belongs to its user
 * alone (mode 0600), or is refused. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_TOKEN_H
#define DIBS_SERVE_TOKEN_H

#include "base/sha256.h"
#include <dibs/types.h>

enum {
    DIBS__SERVE_TOKENS_MAX = 256,
    DIBS__SERVE_WHO_MAX = 65,   /* a name of 64 bytes and a NUL */
    DIBS__SERVE_TOKEN_SIZE = 49 /* a token and a NUL */
};

/* Each may do what those before it may. */
typedef enum dibs__serve_role {
    DIBS__SERVE_NOBODY,
    DIBS__SERVE_READ,
    DIBS__SERVE_OPERATE,
    DIBS__SERVE_ADMIN
} dibs__serve_role;

typedef struct dibs__serve_token {
    char name[DIBS__SERVE_WHO_MAX];
    dibs__serve_role role;
    unsigned char hash[DIBSX_SHA256_SIZE];
    int64_t expires_wall_us; /* 0: never */
} dibs__serve_token;

typedef struct dibs__serve_tokens {
    dibs__serve_token items[DIBS__SERVE_TOKENS_MAX];
    size_t count;
} dibs__serve_tokens;

/* "read", "operate", "admin"; "none". */
const char *dibs__serve_role_text(dibs__serve_role role);

/* False when it is none of the first three. */
bool dibs__serve_role_parse(const char *text, dibs__serve_role *out);

/* Reads the text of a file; `file` is for messages, which name the line. Pure. */
DIBS_MUST_CHECK dibs_status dibs__serve_tokens_parse(dibs__serve_tokens *tokens,
                                                     char *text,
                                                     const char *file,
                                                     dibs_error *err);

/* The entry that a token belongs to, or NULL. Compares with every entry, whichever
 * one fits, so that the time tells nothing. */
const dibs__serve_token *
dibs__serve_tokens_find(const dibs__serve_tokens *tokens, const char *token,
                        int64_t now_wall_us);

/* The first entry of a name that has not expired, or NULL. */
const dibs__serve_token *
dibs__serve_tokens_named(const dibs__serve_tokens *tokens, const char *name,
                         int64_t now_wall_us);

/* Reads the file. DIBS_NOTFOUND: there is none. DIBS_REFUSED: others may read it. */
DIBS_MUST_CHECK dibs_status dibs__serve_tokens_load(dibs__serve_tokens *tokens,
                                                    const char *path,
                                                    dibs_error *err);

/* DIBS_INVALID: no token can have this name, or end at that moment; NULL: it does not
 * end. Pure. */
DIBS_MUST_CHECK dibs_status dibs__serve_token_check(const char *name,
                                                    const char *expires,
                                                    int64_t now_wall_us,
                                                    dibs_error *err);

/* Adds an entry to the file, which is made if it is missing, and writes the new
 * token into `token`. It is shown nowhere else. `expires` NULL: never. */
DIBS_MUST_CHECK dibs_status dibs__serve_token_add(
    const char *path, const char *name, dibs__serve_role role,
    const char *expires, char token[DIBS__SERVE_TOKEN_SIZE], dibs_error *err);

/* Removes the entries of a name. DIBS_NOTFOUND: it has none. */
DIBS_MUST_CHECK dibs_status dibs__serve_token_remove(const char *path,
                                                     const char *name,
                                                     dibs_error *err);

/* The file of this user, "serve.tokens" in the folder of the default store. It does not
 * depend on the URL, so that `dibs access` and the daemon agree without it. */
DIBS_MUST_CHECK dibs_status dibs__serve_tokens_path(char *out, size_t size,
                                                    dibs_error *err);

#endif
