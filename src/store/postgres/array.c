/* array.c - an array as an argument of a function of the schema. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/array.h"
#include <arpa/inet.h>
#include <string.h>

/* The data of commits is the longest. */
enum { ARRAY_MAX = 17 << 20 };

/* Numbers of types that are the same in every database. */
enum { BYTEA_OID = 17, INT8_OID = 20, TEXT_OID = 25 };

/* The head of an array, in network order. */
typedef struct head {
    uint32_t dimensions;
    uint32_t has_nulls;
    uint32_t type;
    uint32_t count;
    uint32_t first; /* index */
} head;

void dibs__pg_array_init(dibs__pg_array *list)
{
    dibsx_buf_init(&list->bytes, ARRAY_MAX);
    dibs__pg_array_begin(list);
}

void dibs__pg_array_fini(dibs__pg_array *list)
{
    dibsx_buf_fini(&list->bytes);
}

void dibs__pg_array_begin(dibs__pg_array *list)
{
    const head none = {0};

    list->count = 0;
    dibsx_buf_reset(&list->bytes);
    dibsx_buf_add(&list->bytes, (const char *)&none, sizeof(none));
}

static void
add_item(dibs__pg_array *list, uint32_t type, const void *item, size_t len)
{
    uint32_t prefix = htonl((uint32_t)len);

    list->type = type;
    list->count++;
    dibsx_buf_add(&list->bytes, (const char *)&prefix, sizeof(prefix));
    dibsx_buf_add(&list->bytes, item, len);
}

void dibs__pg_array_text(dibs__pg_array *list, const char *item)
{
    add_item(list, TEXT_OID, item, strlen(item));
}

void dibs__pg_array_int(dibs__pg_array *list, int64_t item)
{
    uint32_t halves[2] = {htonl((uint32_t)((uint64_t)item >> 32)),
                          htonl((uint32_t)item)};

    add_item(list, INT8_OID, halves, sizeof(halves));
}

void dibs__pg_array_bytes(dibs__pg_array *list, const void *item, size_t len)
{
    add_item(list, BYTEA_OID, item, len);
}

bool dibs__pg_array_end(dibs__pg_array *lists, size_t count,
                        dibs__pg_args *args)
{
    for (size_t i = 0; i < count; i++) {
        dibs__pg_array *list = &lists[i];
        const head begin = {.dimensions = htonl(1),
                            .type = htonl(list->type),
                            .count = htonl(list->count),
                            .first = htonl(1)};

        if (!dibsx_buf_ok(&list->bytes))
            return false;
        memcpy(list->bytes.data, &begin, sizeof(begin));
        dibs__pg_arg_bytes(args, list->bytes.data, list->bytes.len);
    }
    return true;
}
