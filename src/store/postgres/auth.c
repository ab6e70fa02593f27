/* auth.c - reads what a server asks a client for before it lets it in. Pure.
 *
 * libpq 15 and earlier take no notice of the length that a request says it has: they
 * go on where the request proved to end. A request whose length is another would
 * hide a second one in itself, so it is refused. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/auth.h"
#include <string.h>

/* A message is a letter, its length with these four bytes, and its body; that of a
 * request begins with its kind. */
enum { HEAD = 5, REQUEST_HEAD = 9 };

enum {
    KIND_OK = 0,
    KIND_CLEAR = 3,
    KIND_MD5 = 5,
    KIND_GSS_MORE = 8,
    KIND_SASL = 10,
    MD5_SALT = 4
};

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

/* Texts closed by NUL, and an empty one at the very end. */
static bool is_list(const uint8_t *at, size_t len)
{
    while (len > 0 && *at) {
        size_t size = strnlen((const char *)at, len);

        if (size == len)
            return false;
        at += size + 1;
        len -= size + 1;
    }
    return len == 1;
}

/* Whether the body has what its kind has, and no more. A kind that is not known is
 * refused by libpq. */
static bool is_whole(uint32_t kind, const uint8_t *body, size_t len)
{
    if (kind == KIND_MD5)
        return len == MD5_SALT;
    if (kind == KIND_SASL)
        return is_list(body, len);
    if (kind == KIND_GSS_MORE || kind > KIND_SASL)
        return true;
    return len == 0;
}

static dibs__pg_auth_verdict judge_request(dibs__pg_auth *auth)
{
    uint32_t kind = number_at(auth->message + HEAD);

    if (kind == KIND_CLEAR)
        return DIBS__PG_AUTH_CLEAR;
    if (!is_whole(kind, auth->message + REQUEST_HEAD, auth->len - REQUEST_HEAD))
        return DIBS__PG_AUTH_ODD;
    auth->open = kind == KIND_OK;
    auth->len = 0;
    return DIBS__PG_AUTH_FINE;
}

/* One more byte of the message is there. */
static dibs__pg_auth_verdict judge_message(dibs__pg_auth *auth)
{
    uint32_t size;

    if (auth->len < HEAD)
        return DIBS__PG_AUTH_FINE;
    size = number_at(auth->message + 1);
    if (auth->message[0] == 'R') {
        if (size < REQUEST_HEAD - 1 || size > DIBS__PG_AUTH_MAX)
            return DIBS__PG_AUTH_ODD;
        return auth->len == size + 1 ? judge_request(auth) : DIBS__PG_AUTH_FINE;
    }
    /* An error, which ends the connection, may be of a server that knows no
     * lengths. */
    auth->skip = size < HEAD - 1 ? 0 : size - (HEAD - 1);
    auth->open = auth->message[0] == 'E';
    auth->len = 0;
    return DIBS__PG_AUTH_FINE;
}

dibs__pg_auth_verdict
dibs__pg_auth_read(dibs__pg_auth *auth, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;
    dibs__pg_auth_verdict verdict = DIBS__PG_AUTH_FINE;

    for (; len > 0 && !auth->open && verdict == DIBS__PG_AUTH_FINE; len--) {
        if (auth->skip > 0) {
            auth->skip--;
            at++;
            continue;
        }
        auth->message[auth->len++] = *at++;
        verdict = judge_message(auth);
    }
    return verdict;
}
