/* monitor_json.c - circles of waiters and statistics as JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#include "show/monitor_json.h"

void dibs__json_links(dibsx_json *js, const dibs_wait_link *links, size_t count)
{
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++) {
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "who", links[i].who);
        dibsx_json_pair_text(js, "label", links[i].label);
        dibsx_json_pair_text(js, "holds", links[i].holds);
        dibsx_json_pair_uint(js, "fence", links[i].fence);
        dibsx_json_pair_text(js, "wants", links[i].wants);
        dibsx_json_pair_int(js, "waited_ms", links[i].waited_ms);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static void json_spans(dibsx_json *js, const char *key, const dibs_spans *spans)
{
    dibsx_json_key(js, key);
    dibsx_json_open(js, '{');
    dibsx_json_pair_uint(js, "count", spans->count);
    dibsx_json_pair_uint(js, "mean_us", spans->mean_us);
    dibsx_json_pair_uint(js, "p50_us", spans->p50_us);
    dibsx_json_pair_uint(js, "p95_us", spans->p95_us);
    dibsx_json_pair_uint(js, "p99_us", spans->p99_us);
    dibsx_json_pair_uint(js, "max_us", spans->max_us);
    dibsx_json_close(js, '}');
}

void dibs__json_stats(dibsx_json *js, const dibs_name_stats *stats)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", stats->name);
    dibsx_json_pair_uint(js, "attempts", stats->attempts);
    dibsx_json_pair_uint(js, "acquired", stats->acquired);
    dibsx_json_pair_uint(js, "busy", stats->busy);
    dibsx_json_pair_uint(js, "failed", stats->failed);
    dibsx_json_pair_uint(js, "released", stats->released);
    dibsx_json_pair_uint(js, "lost", stats->lost);
    dibsx_json_pair_uint(js, "contended", stats->contended);
    json_spans(js, "wait", &stats->wait);
    json_spans(js, "hold", &stats->hold);
    dibsx_json_close(js, '}');
}
