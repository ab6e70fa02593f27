/* limit_json.c - see limit_json.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "show/limit_json.h"

void dibs__show_limit(dibsx_json *js, const dibs_limit_info *info)
{
    dibsx_json_pair_int(js, "count", info->count);
    dibsx_json_pair_int(js, "period_us", info->period_us);
    dibsx_json_pair_int(js, "out", info->out);
    dibsx_json_pair_int(js, "full_ms", info->full_ms);
}
