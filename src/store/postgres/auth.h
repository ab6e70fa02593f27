/* auth.h - reads what a server asks a client for before it lets it in. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_AUTH_H
#define DIBS_STORE_POSTGRES_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As libpq has it: a longer request is none. */
enum { DIBS__PG_AUTH_MAX = 2000 };

typedef enum dibs__pg_auth_verdict {
    DIBS__PG_AUTH_FINE,
    DIBS__PG_AUTH_CLEAR, /* it asks for the password in clear text */
    DIBS__PG_AUTH_ODD    /* a request that no PostgreSQL makes */
} dibs__pg_auth_verdict;

/* Zeroed storage is the beginning of a connection. */
typedef struct dibs__pg_auth {
    bool open;     /* no request comes any more */
    uint32_t skip; /* bytes of a message that is no request */
    size_t len;
    uint8_t message[1 + DIBS__PG_AUTH_MAX]; /* as far as it has come */
} dibs__pg_auth;

/* Reads the next bytes of the server, cut anywhere. libpq answers a request when
 * all of it is there: the bytes that complete it are judged before libpq has them. */
dibs__pg_auth_verdict
dibs__pg_auth_read(dibs__pg_auth *auth, const void *bytes, size_t len);

#endif
