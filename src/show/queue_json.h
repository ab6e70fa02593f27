/* queue_json.h - items of queues as JSON, and the names of their places. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SHOW_QUEUE_JSON_H
#define DIBS_SHOW_QUEUE_JSON_H

#include "base/json.h"
#include <dibs/queue_admin.h>

/* "ready" and so on; NULL when it is no place. And the other way round; 0: none. */
const char *dibs__place_name(dibs_item_place place);
uint32_t dibs__place_find(const char *name);

/* The pairs of an item, with the beginning of its data or, when it is done, of its
 * result. Programs differ in two keys: of its place, and of the moment of its end. */
void dibs__json_item(dibsx_json *js, const dibs_item_info *item,
                     const char *place_key, const char *end_key,
                     size_t data_max);

#endif
