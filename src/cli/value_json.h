/* value_json.h - shared values as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_VALUE_JSON_H
#define DIBS_CLI_VALUE_JSON_H

#include "show/data_json.h"
#include <dibs/state.h>

/* dibsx_json_data() with the key "value". */
void dibs__json_value(dibsx_json *js, const dibs_value *value);

/* The pair "expires_ms": null for never. */
void dibs__json_expiry(dibsx_json *js, int64_t expires_ms);

#endif
