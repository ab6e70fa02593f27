/* data_json.c - headers and metadata as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#include "show/data_json.h"
#include <dibs/queue.h>
#include <string.h>

void dibs__json_header(dibsx_json *js, const char *header)
{
    size_t len = strcspn(header, "=");
    dibsx_buf key;

    dibsx_buf_init(&key, DIBS_ITEM_HEADERS_MAX);
    dibsx_buf_add(&key, header, len);
    dibsx_json_pair_text(js, dibsx_buf_text(&key),
                         header + len + (header[len] == '='));
    dibsx_buf_fini(&key);
}

void dibs__json_meta(dibsx_json *js, const char *meta)
{
    dibsx_json_key(js, "meta");
    dibsx_json_open(js, '{');
    while (*meta) {
        const size_t len = strcspn(meta, "\t"), key_len = strcspn(meta, "=\t");
        const size_t skip = key_len + (key_len < len);

        dibsx_json_key_bytes(js, meta, key_len);
        dibsx_json_bytes(js, meta + skip, len - skip);
        meta += len + (meta[len] != '\0');
    }
    dibsx_json_close(js, '}');
}
