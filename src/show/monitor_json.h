/* monitor_json.h - circles of waiters and statistics as JSON, for every program that
 * shows them. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_MONITOR_JSON_H
#define DIBS_SHOW_MONITOR_JSON_H

#include "base/json.h"
#include <dibs/monitor.h>

/* The links of one circle, as a list. */
void dibs__json_links(dibsx_json *js, const dibs_wait_link *links,
                      size_t count);

/* The statistics of one name, as an object. */
void dibs__json_stats(dibsx_json *js, const dibs_name_stats *stats);

#endif
