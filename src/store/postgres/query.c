/* query.c - the statements of this store, and their arguments. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/query.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_MAX = 4096 };

#define TEXT(name, text) text,

static const char *const queries[] = {DIBS__PG_QUERY_LIST(TEXT)};

static const char few_pooled[] =
    "SELECT @schema@.few_pooled($1,$2,$3,$4,$5,$6)";

/* The parameters that a query has. */
static int params_of(const char *query)
{
    int most = 0;

    for (const char *at = query; (at = strchr(at, '$')) != NULL; at++) {
        int number = (int)strtol(at + 1, NULL, 10);

        most = number > most ? number : most;
    }
    return most;
}

/* A function of the schema changes something; all else only looks. */
static bool is_function(const char *query)
{
    static const char function[] = "SELECT @schema@.";
    static const char rows[] = "SELECT unnest(@schema@.";

    return strncmp(query, function, strlen(function)) == 0 ||
           strncmp(query, rows, strlen(rows)) == 0;
}

/* A function gives up the wait for a lock when its caller does, who says in one
 * more parameter when that is. The server runs the call in FROM before the function. */
static char *write_text(const dibs__pg_conf *conf, const char *query)
{
    dibsx_buf buf;
    char *text;

    dibsx_buf_init(&buf, QUERY_MAX);
    dibsx_buf_puts(&buf, query);
    if (is_function(query))
        dibsx_buf_printf(&buf, " FROM set_config('lock_timeout', $%d, true)",
                         params_of(query) + 1);
    text = dibsx_buf_ok(&buf) ? dibs__pg_with_schema(conf, dibsx_buf_text(&buf))
                              : NULL;
    dibsx_buf_fini(&buf);
    return text;
}

bool dibs__pg_waits(dibs__pg_query query)
{
    return is_function(queries[query]);
}

dibs_status dibs__pg_texts_init(dibs__pg_texts *texts,
                                const dibs__pg_conf *conf, dibs_error *err)
{
    for (size_t i = 0; i < DIBS__PG_QUERIES; i++) {
        bool few = i == DIBS__PG_FEW;

        texts->of[i] = write_text(conf, queries[i]);
        texts->pooled[i] = write_text(conf, few ? few_pooled : queries[i]);
        if (!texts->of[i] || !texts->pooled[i])
            return dibsx_nomem(err, "the statements");
    }
    return DIBS_OK;
}

void dibs__pg_texts_fini(dibs__pg_texts *texts)
{
    for (size_t i = 0; i < DIBS__PG_QUERIES; i++) {
        dibsx_free(texts->of[i]);
        dibsx_free(texts->pooled[i]);
    }
    memset(texts, 0, sizeof(*texts));
}

void dibs__pg_arg_text(dibs__pg_args *args, const char *text)
{
    args->values[args->count++] = text;
}

void dibs__pg_arg_int(dibs__pg_args *args, int64_t number)
{
    char *text = args->numbers[args->count];

    snprintf(text, DIBS__PG_NUMBER, "%" PRId64, number);
    dibs__pg_arg_text(args, text);
}

void dibs__pg_arg_flag(dibs__pg_args *args, bool flag)
{
    dibs__pg_arg_text(args, flag ? "t" : "f");
}

void dibs__pg_arg_bytes(dibs__pg_args *args, const void *data, size_t len)
{
    args->lengths[args->count] = (int)len;
    args->formats[args->count] = 1;
    /* NULL would be SQL's; nothing is an empty string. */
    dibs__pg_arg_text(args, len ? data : "");
}

const char *dibs__pg_text(const PGresult *rows, int row, int column)
{
    const char *text = dibs__pq.PQgetvalue(rows, row, column);

    return text ? text
                : ""; /* A server may send fewer columns than asked for. */
}

int64_t dibs__pg_int(const PGresult *rows, int row, int column)
{
    const unsigned char *at =
        (const unsigned char *)dibs__pq.PQgetvalue(rows, row, column);
    uint64_t number = 0;

    if (dibs__pq.PQgetlength(rows, row, column) != 8)
        return 0;
    for (size_t i = 0; i < 8; i++)
        number = number << 8 | at[i];
    return (int64_t)number;
}
