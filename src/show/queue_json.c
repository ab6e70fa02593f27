/* queue_json.c - items of queues as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#include "show/queue_json.h"
#include "base/clock.h"
#include "base/json_data.h"
#include "show/data_json.h"
#include <string.h>

static const struct {
    const char *name;
    dibs_item_place place;
} places[] = {{"ready", DIBS_ITEM_READY},
              {"later", DIBS_ITEM_LATER},
              {"out", DIBS_ITEM_OUT},
              {"dead", DIBS_ITEM_DEAD},
              {"done", DIBS_ITEM_DONE}};

const char *dibs__place_name(dibs_item_place place)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (places[i].place == place)
            return places[i].name;
    return NULL;
}

uint32_t dibs__place_find(const char *name)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strcmp(places[i].name, name) == 0)
            return places[i].place;
    return 0;
}

static void pair_or_null(dibsx_json *js, const char *key, const char *text)
{
    dibsx_json_pair_text(js, key, text && *text ? text : NULL);
}

static void add_since(dibsx_json *js, const char *key, int64_t wall_us)
{
    char since[40];

    dibsx_wall_text(wall_us, since, sizeof(since));
    dibsx_json_pair_text(js, key, since);
}

static void add_headers(dibsx_json *js, const dibs_item_info *item)
{
    dibsx_json_key(js, "headers");
    dibsx_json_open(js, '{');
    for (size_t i = 0; item->headers && item->headers[i]; i++)
        dibs__json_header(js, item->headers[i]);
    dibsx_json_close(js, '}');
}

void dibs__json_item(dibsx_json *js, const dibs_item_info *item,
                     const char *place_key, const char *end_key,
                     size_t data_max)
{
    const bool done = item->place == DIBS_ITEM_DONE;

    dibsx_json_pair_uint(js, "id", item->id);
    dibsx_json_pair_text(js, place_key, dibs__place_name(item->place));
    dibsx_json_pair_int(js, "priority", item->priority);
    dibsx_json_pair_uint(js, "attempts", item->attempts);
    dibsx_json_pair_uint(js, "lost", item->lost);
    if (item->place == DIBS_ITEM_LATER)
        dibsx_json_pair_int(js, "due_ms", item->due_ms);
    if (item->place == DIBS_ITEM_OUT)
        dibsx_json_pair_uint(js, "fence", item->fence);
    if (item->place == DIBS_ITEM_DEAD)
        add_since(js, end_key, item->dead_wall_us);
    if (done)
        add_since(js, end_key, item->done_wall_us);
    pair_or_null(js, "to", item->to);
    pair_or_null(js, "dedup_id", item->dedup_id);
    pair_or_null(js, "reason", item->reason);
    if (!done)
        add_headers(js, item);
    dibsx_json_pair_uint(js, "bytes", item->len);
    dibsx_json_data(js, done ? "result" : "data", item->data,
                    item->len < data_max ? item->len : data_max);
}
