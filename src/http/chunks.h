/* chunks.h - a body that comes in chunks, taken apart as it comes. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_CHUNKS_H
#define DIBS_HTTP_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dibs__http_chunks_found {
    DIBS__HTTP_CHUNKS_MORE, /* all was taken; more is to come */
    DIBS__HTTP_CHUNKS_DATA,
    DIBS__HTTP_CHUNKS_END, /* what is left belongs to the next request */
    DIBS__HTTP_CHUNKS_BAD
} dibs__http_chunks_found;

/* Zeroed storage is the beginning. */
typedef struct dibs__http_chunks {
    enum { CHUNKS_LINE, CHUNKS_DATA, CHUNKS_AFTER, CHUNKS_TRAILER } state;
    uint64_t left;   /* bytes of this chunk that have not come */
    size_t line_len; /* bytes of the line that have */
    size_t digits;
    bool last;     /* the chunk of length 0 has come */
    bool after_cr; /* the byte before was one */
    bool extended; /* the line is past its number */
    size_t spent;  /* bytes of trailers */
} dibs__http_chunks;

/* Takes from the front of *bytes. DATA: *data and *data_len are in there. */
dibs__http_chunks_found
dibs__http_chunks_take(dibs__http_chunks *ck, const char **bytes, size_t *len,
                       const char **data, size_t *data_len);

#endif
