/* token.c - access tokens: reading the lines of the file, and recognising a token.
 * Pure; any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/token.h"
#include "base/fail.h"
#include "base/text.h"
#include <string.h>
#include <time.h>

static const char *const roles[] = {"none", "read", "operate", "admin"};

const char *dibs__serve_role_text(dibs__serve_role role)
{
    return roles[role];
}

bool dibs__serve_role_parse(const char *text, dibs__serve_role *out)
{
    for (int i = DIBS__SERVE_READ; i <= DIBS__SERVE_ADMIN; i++) {
        if (strcmp(text, roles[i]) != 0)
            continue;
        *out = (dibs__serve_role)i;
        return true;
    }
    return false;
}

/* The line that is being read. */
typedef struct line {
    const char *file;
    size_t number;
    dibs_error *err;
} line;

static dibs_status refuse_line(const line *ln, const char *why)
{
    return dibsx_fail(ln->err, DIBS_REFUSED,
                      "%s:%zu: the line is not valid: %s; write: NAME ROLE "
                      "sha256:HEX, or run dibs "
                      "access add",
                      ln->file, ln->number, why);
}

static bool read_hash(const char *text, unsigned char out[DIBSX_SHA256_SIZE])
{
    static const char scheme[] = "sha256:";
    const size_t skip = sizeof(scheme) - 1;

    if (strncmp(text, scheme, skip) != 0 ||
        strlen(text + skip) != 2 * (size_t)DIBSX_SHA256_SIZE)
        return false;
    text += skip;
    for (size_t i = 0; i < DIBSX_SHA256_SIZE; i++) {
        int high = dibsx_hex_value(text[2 * i]);
        int low = dibsx_hex_value(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* "2027-01-31T00:00:00Z", and no other form. */
static bool read_moment(const char *text, int64_t *wall_us)
{
    struct tm at = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &at);
    time_t moment = end && !*end ? timegm(&at) : -1;

    *wall_us = (int64_t)moment * 1000000;
    return moment > 0;
}

static bool name_fits(const char *name)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                               "UVWXYZ0123456789._@-";
    size_t len = strlen(name);

    return len > 0 && len < DIBS__SERVE_WHO_MAX && strspn(name, safe) == len;
}

dibs_status dibs__serve_token_check(const char *name, const char *expires,
                                    int64_t now_wall_us, dibs_error *err)
{
    int64_t wall_us;

    if (!name_fits(name))
        return dibsx_fail(err, DIBS_INVALID,
                          "the name '%.80s' is not valid; give up to %d "
                          "letters, digits and ._@-",
                          name, DIBS__SERVE_WHO_MAX - 1);
    if (!expires)
        return DIBS_OK;
    if (!read_moment(expires, &wall_us))
        return dibsx_fail(err, DIBS_INVALID,
                          "--expires '%.80s' is not a moment; write it as "
                          "2027-01-31T00:00:00Z",
                          expires);
    if (wall_us <= now_wall_us)
        return dibsx_fail(err, DIBS_INVALID,
                          "--expires %s has passed; give a moment to come",
                          expires);
    return DIBS_OK;
}

/* A word that restricts a token and is not understood must not be passed over. */
static dibs_status
read_rest(const line *ln, dibs__serve_token *item, char **rest)
{
    static const char expires[] = "expires=";
    const size_t skip = sizeof(expires) - 1;

    for (char *word = strtok_r(NULL, " \t\r", rest); word;
         word = strtok_r(NULL, " \t\r", rest)) {
        if (strncmp(word, expires, skip) != 0)
            return refuse_line(ln, "a word after the hash is not known");
        if (!read_moment(word + skip, &item->expires_wall_us))
            return refuse_line(ln, "expires= is not a moment such as "
                                   "2027-01-31T00:00:00Z");
    }
    return DIBS_OK;
}

static dibs_status
read_line(const line *ln, dibs__serve_tokens *tokens, char *text)
{
    dibs__serve_token item = {.role = DIBS__SERVE_NOBODY};
    char *rest = NULL;
    const char *name = strtok_r(text, " \t\r", &rest);
    const char *role, *hash;
    dibs_status rc;

    if (!name || *name == '#')
        return DIBS_OK;
    role = strtok_r(NULL, " \t\r", &rest);
    hash = strtok_r(NULL, " \t\r", &rest);
    if (!name_fits(name))
        return refuse_line(ln,
                           "the name has other characters than letters, digits "
                           "and ._@-, or is longer than 64");
    if (!role || !dibs__serve_role_parse(role, &item.role))
        return refuse_line(ln, "the role is not read, operate or admin");
    if (!hash || !read_hash(hash, item.hash))
        return refuse_line(ln, "the hash is not sha256: and 64 digits");
    rc = read_rest(ln, &item, &rest);
    if (rc != DIBS_OK)
        return rc;
    if (tokens->count == DIBS__SERVE_TOKENS_MAX)
        return refuse_line(ln, "there are more than 256 tokens");
    memcpy(item.name, name, strlen(name) + 1);
    tokens->items[tokens->count++] = item;
    return DIBS_OK;
}

dibs_status dibs__serve_tokens_parse(dibs__serve_tokens *tokens, char *text,
                                     const char *file, dibs_error *err)
{
    line ln = {.file = file, .number = 1, .err = err};
    dibs_status rc = DIBS_OK;

    *tokens = (dibs__serve_tokens){.count = 0};
    for (char *at = text, *next; at && rc == DIBS_OK; at = next) {
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        rc = read_line(&ln, tokens, at);
        ln.number++;
    }
    return rc;
}

static bool is_same(const unsigned char *a, const unsigned char *b)
{
    volatile unsigned char differs = 0;

    for (size_t i = 0; i < DIBSX_SHA256_SIZE; i++)
        differs = (unsigned char)(differs | (a[i] ^ b[i]));
    return !differs;
}

const dibs__serve_token *
dibs__serve_tokens_find(const dibs__serve_tokens *tokens, const char *token,
                        int64_t now_wall_us)
{
    unsigned char hash[DIBSX_SHA256_SIZE];
    const dibs__serve_token *found = NULL;

    dibsx_sha256_bytes(token, strlen(token), hash);
    for (size_t i = 0; i < tokens->count; i++) {
        const dibs__serve_token *item = &tokens->items[i];
        bool over =
            item->expires_wall_us && item->expires_wall_us <= now_wall_us;

        if (is_same(item->hash, hash) && !over)
            found = item;
    }
    return found;
}

const dibs__serve_token *
dibs__serve_tokens_named(const dibs__serve_tokens *tokens, const char *name,
                         int64_t now_wall_us)
{
    for (size_t i = 0; i < tokens->count; i++) {
        const dibs__serve_token *item = &tokens->items[i];

        if (strcmp(item->name, name) == 0 &&
            (!item->expires_wall_us || item->expires_wall_us > now_wall_us))
            return item;
    }
    return NULL;
}
