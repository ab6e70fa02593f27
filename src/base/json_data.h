/* json_data.h - bytes in JSON: as text, or as base64 where they are none. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_JSON_DATA_H
#define DIBS_BASE_JSON_DATA_H

#include "base/json.h"
#include <dibs/types.h>

/* The pair "KEY", or "KEY_base64" where the bytes are not text, so that nothing is
 * lost. */
void dibsx_json_data(dibsx_json *js, const char *key, const void *data,
                     size_t len);

/* Reads what dibsx_json_data() wrote as base64: appends the bytes. False: it is none. */
DIBS_MUST_CHECK bool
dibsx_base64_read(const char *text, size_t len, dibsx_buf *out);

#endif
