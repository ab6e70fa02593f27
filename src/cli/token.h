/* token.h - the token by which a script knows the lease it took: OWNER:FENCE.
 *
 * With several names each has its own token; its line in the output of acquire and
 * in a token file goes on with a space and the name.
 *
 * Two other texts name a lease as well. A fence alone is no secret: it is enough to
 * look, and to break. The token of dibs_lock_transfer(), OWNER.FENCE.MODE, names the
 * lease of a process that has not accepted it yet. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_TOKEN_H
#define DIBS_CLI_TOKEN_H

#include "base/json.h"
#include "cli/command.h"
#include <limits.h>

/* 32 hexadecimal digits, a colon, at most 20 digits, a NUL. */
enum { DIBS__TOKEN_SIZE = DIBS_OWNER_SIZE + 21 };

typedef struct dibs__token {
    char owner[DIBS_OWNER_SIZE]; /* "": a fence was given alone */
    uint64_t fence;
} dibs__token;

void dibs__token_of(const dibs_lock *lock, dibs__token *token);
void dibs__token_text(const dibs__token *token, char out[DIBS__TOKEN_SIZE]);

/* The pairs of a lease for --json, in an object that is open. */
void dibs__token_json(dibsx_json *js, const char *name, const dibs_lock *lock);

/* Reads any of the three texts. */
DIBS_MUST_CHECK dibs_status dibs__token_parse(const char *text,
                                              dibs__token *token,
                                              dibs_error *err);

/* From --token or --token-file, for the name that the operand says. *given is
 * false, and all is well, when neither is there. */
DIBS_MUST_CHECK dibs_status dibs__token_read(const dibs__command *cmd,
                                             dibs__token *token, bool *given,
                                             dibs_error *err);

/* A file that appears whole or not at all: made beside its place before the
 * lease is taken, so that a folder that cannot be written is found in time. Takes the
 * place of a file only, never of a device or a pipe. */
typedef struct dibs__token_file {
    const char *path;      /* as it was given */
    char target[PATH_MAX]; /* what that is, behind links */
    char draft[PATH_MAX];
    int fd;
} dibs__token_file;

DIBS_MUST_CHECK dibs_status dibs__token_file_open(dibs__token_file *file,
                                                  const char *path,
                                                  dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__token_file_put(dibs__token_file *file,
                                                 const char *lines,
                                                 dibs_error *err);

/* Removes the draft unless it was put in place. */
void dibs__token_file_close(dibs__token_file *file);

#endif
