/* item_data.c - the headers of an item in front of its data; see item_data.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "coord/item_data.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "core/names.h"
#include <string.h>

enum { BITS = 7, MORE = 1 << BITS, LENGTH_MAX = 3 };

static dibs_status check_header(const char *header, dibs_error *err)
{
    const char *sign = strchr(header, '=');

    if (!sign || sign == header)
        return dibsx_fail(err, DIBS_INVALID,
                          "a header is `key=value`, and not `%.40s`", header);
    return dibs__text_check("a header", header, err);
}

static dibs_status
measure_headers(const char *const *headers, size_t *len, dibs_error *err)
{
    *len = 0;
    for (size_t i = 0; headers && headers[i]; i++) {
        dibs_status rc = check_header(headers[i], err);

        if (rc != DIBS_OK)
            return rc;
        *len += strlen(headers[i]) + 1;
        if (*len > DIBS_ITEM_HEADERS_MAX)
            return dibsx_fail(err, DIBS_INVALID,
                              "the headers of an item have more than %d bytes",
                              DIBS_ITEM_HEADERS_MAX);
    }
    return DIBS_OK;
}

static char *write_length(char *at, size_t len)
{
    while (len >= MORE) {
        *at++ = (char)(MORE | (len & (MORE - 1)));
        len >>= BITS;
    }
    *at++ = (char)len;
    return at;
}

dibs_status
dibs__item_join(const void *data, size_t len, const char *const *headers,
                char **out, size_t *out_len, dibs_error *err)
{
    size_t headers_len;
    dibs_status rc = measure_headers(headers, &headers_len, err);
    char *at;

    *out = NULL;
    *out_len = 0;
    if (rc != DIBS_OK)
        return rc;
    if (len > DIBS_ITEM_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "an item has at most %d bytes, and not %zu; push a "
                          "key or a path",
                          DIBS_ITEM_MAX, len);
    if (len > 0 && !data)
        return dibsx_fail(err, DIBS_INVALID, "the data of the item is NULL");
    *out = dibsx_zalloc(LENGTH_MAX + headers_len + len + 1);
    if (!*out)
        return dibsx_nomem(err, "an item");
    at = write_length(*out, headers_len);
    for (size_t i = 0; headers && headers[i]; i++) {
        size_t size = strlen(headers[i]) + 1;

        memcpy(at, headers[i], size);
        at += size;
    }
    if (len > 0)
        memcpy(at, data, len);
    *out_len = (size_t)(at - *out) + len;
    return DIBS_OK;
}

void dibs__item_split(const void *bytes, size_t len, dibs__item_parts *out)
{
    const unsigned char *from = bytes;
    size_t headers_len = 0, used = 0;
    bool more = true;

    *out = (dibs__item_parts){.data = bytes, .len = len};
    while (more && used < len && used < LENGTH_MAX) {
        headers_len |= (size_t)(from[used] & (MORE - 1)) << (BITS * used);
        more = (from[used++] & MORE) != 0;
    }
    if (more || headers_len > len - used ||
        (headers_len > 0 && from[used + headers_len - 1] != '\0'))
        return;
    out->headers = (const char *)bytes + used;
    out->headers_len = headers_len;
    out->data = out->headers + headers_len;
    out->len = len - used - headers_len;
}

const char *dibs__item_header_at(const dibs__item_parts *parts, size_t index)
{
    for (size_t at = 0; at < parts->headers_len;
         at += strlen(parts->headers + at) + 1)
        if (index-- == 0)
            return parts->headers + at;
    return NULL;
}

const char *dibs__item_header_of(const dibs__item_parts *parts, const char *key)
{
    size_t len = strlen(key);
    const char *header;

    for (size_t i = 0; (header = dibs__item_header_at(parts, i)) != NULL; i++)
        if (strncmp(header, key, len) == 0 && header[len] == '=')
            return header + len + 1;
    return NULL;
}
