/* value_json.c - shared values as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#include "cli/value_json.h"
#include "base/json_data.h"

void dibs__json_value(dibsx_json *js, const dibs_value *value)
{
    dibsx_json_data(js, "value", value->data, value->len);
}

void dibs__json_expiry(dibsx_json *js, int64_t expires_ms)
{
    dibsx_json_key(js, "expires_ms");
    if (expires_ms < 0)
        dibsx_json_null(js);
    else
        dibsx_json_int(js, expires_ms);
}
