/* conf.h - the options in a postgres:// URL: how libpq reaches the server, and our own
 * parameters. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_CONF_H
#define DIBS_STORE_POSTGRES_CONF_H

#include "base/url.h"

enum { DIBS__PG_WORDS = DIBSX_URL_PARAMS + 24, DIBS__PG_SCHEMA_MAX = 63 };

/* Whether a pooler that changes servers between transactions is in between. */
typedef enum dibs__pg_pooler {
    DIBS__PG_POOLER_AUTO, /* looked for */
    DIBS__PG_POOLER_NONE,
    DIBS__PG_POOLER_TRANSACTION
} dibs__pg_pooler;

/* Connection options by name and value, closed by a NULL name. */
typedef struct dibs__pg_words {
    char *names[DIBS__PG_WORDS + 1];
    char *values[DIBS__PG_WORDS + 1];
    size_t count;
} dibs__pg_words;

typedef struct dibs__pg_conf {
    dibs__pg_words steps;
    dibs__pg_words listen; /* for the doorbell: listen_host and listen_port */
    bool listens_apart;    /* they were given */
    char *schema;          /* its name in double quotes */
    dibs__pg_pooler pooler;
    int pool; /* connections for steps, at most */
    bool strict;
    bool lazy;      /* see dibs__store */
    bool advisory;  /* take advisory locks beside the leases */
    bool cleartext; /* the password may be sent as it is, without TLS */
} dibs__pg_conf;

/* Reads the URL, which is borrowed. DIBS_INVALID says what is wrong with it. On
 * failure too end with dibs__pg_conf_fini(). */
DIBS_MUST_CHECK dibs_status dibs__pg_conf_read(const dibsx_url *url,
                                               dibs__pg_conf *conf,
                                               dibs_error *err);
void dibs__pg_conf_fini(dibs__pg_conf *conf);

/* The text with every "@schema@" replaced. NULL when memory is short; freed with
 * dibsx_free(). */
char *dibs__pg_with_schema(const dibs__pg_conf *conf, const char *sql);

#endif
