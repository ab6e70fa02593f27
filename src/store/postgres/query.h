/* query.h - the statements of this store, and their arguments.
 *
 * Every one is a transaction of its own: one function of the schema, or one look.
 * Rows come back in binary: text as it is, numbers as eight bytes. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_QUERY_H
#define DIBS_STORE_POSTGRES_QUERY_H

#include "store/postgres/conf.h"
#include "store/postgres/driver.h"
#include "store/postgres/queries.h"

#define DIBS__PG_QUERY_ID(name, text) DIBS__PG_##name,

typedef enum dibs__pg_query {
    DIBS__PG_QUERY_LIST(DIBS__PG_QUERY_ID) DIBS__PG_QUERIES
} dibs__pg_query;

/* The text of each, with the schema in it; and for connections that go through a
 * pooler, where a session has no settings, with those that matter. */
typedef struct dibs__pg_texts {
    char *of[DIBS__PG_QUERIES];
    char *pooled[DIBS__PG_QUERIES];
} dibs__pg_texts;

DIBS_MUST_CHECK dibs_status dibs__pg_texts_init(dibs__pg_texts *texts,
                                                const dibs__pg_conf *conf,
                                                dibs_error *err);
void dibs__pg_texts_fini(dibs__pg_texts *texts);

/* Whether it may have to wait for a lock. Then its last parameter, beyond those of
 * the caller, is for how many ms. */
bool dibs__pg_waits(dibs__pg_query query);

enum { DIBS__PG_ARGS = 16, DIBS__PG_NUMBER = 24 };

/* Arguments in order. Text and bytes are borrowed until the call is over. */
typedef struct dibs__pg_args {
    const char *values[DIBS__PG_ARGS];
    int lengths[DIBS__PG_ARGS];
    int formats[DIBS__PG_ARGS]; /* 1: bytes */
    char numbers[DIBS__PG_ARGS][DIBS__PG_NUMBER];
    int count;
} dibs__pg_args;

/* Zeroed storage has no arguments. */
void dibs__pg_arg_text(dibs__pg_args *args, const char *text);
void dibs__pg_arg_int(dibs__pg_args *args, int64_t number);
void dibs__pg_arg_flag(dibs__pg_args *args, bool flag);
void dibs__pg_arg_bytes(dibs__pg_args *args, const void *data, size_t len);

/* A cell of a row. Text is closed by a NUL. */
const char *dibs__pg_text(const PGresult *rows, int row, int column);
int64_t dibs__pg_int(const PGresult *rows, int row, int column);

#endif
