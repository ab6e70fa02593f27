/* data_json.h - bytes, headers and metadata as JSON, for every program that shows them. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_DATA_JSON_H
#define DIBS_SHOW_DATA_JSON_H

#include "base/json.h"
#include <dibs/types.h>

/* The pair "KEY", or "KEY_base64" where the bytes are not text, so that nothing is
 * lost. */
void dibs__json_data(dibsx_json *js, const char *key, const void *data,
                     size_t len);

/* Reads what dibs__json_data() wrote as base64: appends the bytes. False: it is none. */
DIBS_MUST_CHECK bool
dibs__base64_read(const char *text, size_t len, dibsx_buf *out);

/* The pair of a header, "key=value". */
void dibs__json_header(dibsx_json *js, const char *header);

/* The pair "meta" of "key=value" texts with a tab between them. */
void dibs__json_meta(dibsx_json *js, const char *meta);

#endif
