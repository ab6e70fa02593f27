/* item_data.h - what a store keeps of an item: its headers, in front of its data. Pure.
 *
 *     LENGTH of the headers (7 bits a byte, the low ones first, the last byte below 128),
 *     "key=value" NUL ..., data
 *
 * So an item without headers begins with a NUL byte. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_ITEM_DATA_H
#define DIBS_COORD_ITEM_DATA_H

#include <dibs/queue.h>

typedef struct dibs__item_parts {
    const char *headers; /* each with its NUL */
    size_t headers_len;
    const char *data;
    size_t len;
} dibs__item_parts;

/* Free *out with dibsx_free(). DIBS_INVALID: too long, or a header is malformed. */
dibs_status
dibs__item_join(const void *data, size_t len, const char *const *headers,
                char **out, size_t *out_len, dibs_error *err);

/* Finds the parts. Bytes that no dibs__item_join() made are data. */
void dibs__item_split(const void *bytes, size_t len, dibs__item_parts *out);

/* The header at an index; NULL beyond the last. And the value of a key. */
const char *dibs__item_header_at(const dibs__item_parts *parts, size_t index);
const char *
dibs__item_header_of(const dibs__item_parts *parts, const char *key);

#endif
