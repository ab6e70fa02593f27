/* array.h - an array as an argument of a function of the schema: text[], bigint[] or
 * bytea[], in binary. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_ARRAY_H
#define DIBS_STORE_POSTGRES_ARRAY_H

#include "base/buf.h"
#include "store/postgres/query.h"

/* Items, all of one type, are added between begin and end. Storage is the
 * caller's. */
typedef struct dibs__pg_array {
    dibsx_buf bytes;
    uint32_t type;
    uint32_t count;
} dibs__pg_array;

void dibs__pg_array_init(dibs__pg_array *list); /* and begins */
void dibs__pg_array_fini(dibs__pg_array *list);

void dibs__pg_array_begin(dibs__pg_array *list);
void dibs__pg_array_text(dibs__pg_array *list, const char *item);
void dibs__pg_array_int(dibs__pg_array *list, int64_t item);
void dibs__pg_array_bytes(dibs__pg_array *list, const void *item, size_t len);

/* Adds them as arguments, which borrow them; each has at least one item. False when
 * memory was short. */
bool dibs__pg_array_end(dibs__pg_array *lists, size_t count,
                        dibs__pg_args *args);

#endif
