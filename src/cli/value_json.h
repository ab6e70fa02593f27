/* value_json.h - shared values and other bytes as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_VALUE_JSON_H
#define DIBS_CLI_VALUE_JSON_H

#include "base/json.h"
#include <dibs/state.h>

/* The pair "KEY", or "KEY_base64" where the bytes are not text, so that nothing is
 * lost. */
void dibs__json_data(dibsx_json *js, const char *key, const void *data,
                     size_t len);

/* The pair of a header, "key=value". */
void dibs__json_header(dibsx_json *js, const char *header);

/* dibs__json_data() with the key "value". */
void dibs__json_value(dibsx_json *js, const dibs_value *value);

/* The pair "expires_ms": null for never. */
void dibs__json_expiry(dibsx_json *js, int64_t expires_ms);

#endif
