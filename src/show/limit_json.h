/* limit_json.h - a rate limit in JSON, as the command and the daemon write it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_LIMIT_JSON_H
#define DIBS_SHOW_LIMIT_JSON_H

#include "base/json.h"
#include <dibs/limit.h>

/* Its pairs, but for the name. */
void dibs__show_limit(dibsx_json *js, const dibs_limit_info *info);

#endif
