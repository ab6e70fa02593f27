/* clear.h - whether a server asks for the password in clear text where others could
 * read it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_CLEAR_H
#define DIBS_STORE_POSTGRES_CLEAR_H

#include "store/postgres/conf.h"
#include "store/postgres/driver.h"

enum { DIBS__PG_CLEAR_HEAD = 9 };

/* Zeroed storage, but for `allowed`, is the beginning of an attempt to connect. */
typedef struct dibs__pg_clear {
    bool allowed;    /* nothing is looked for */
    bool open;       /* on this socket no question for proof comes any more */
    uint64_t socket; /* which one; libpq may try several */
    uint64_t seen;   /* bytes of it that were looked at */
    uint64_t skip;   /* bytes of the message that do not matter */
    unsigned char head[DIBS__PG_CLEAR_HEAD];
    size_t head_len;
} dibs__pg_clear;

/* To be called when something has come, before libpq reads it. DIBS_DENIED: it
 * must not, and the connection is to be closed. */
DIBS_MUST_CHECK dibs_status dibs__pg_clear_look(dibs__pg_clear *clear,
                                                const PGconn *pq,
                                                dibs_error *err);

/* DIBS_DENIED, with what can be done about it. */
dibs_status dibs__pg_clear_fail(dibs_error *err);

/* What libpq 16 and later are told under "require_auth", which does the same
 * within; NULL: nothing. */
const char *
dibs__pg_clear_rule(const dibs__pg_conf *conf, const dibs__pg_words *words);

#endif
