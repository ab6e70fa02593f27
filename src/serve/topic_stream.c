/* topic_stream.c - streams of the events of durable topics. Threads of the server, and
 * those of subscriptions. */
/* SPDX-License-Identifier: MIT */
#include "serve/topic_stream.h"
#include "base/alloc.h"
#include "base/json_data.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <inttypes.h>
#include <stdio.h>

/* The pairs of an event, a gap or a fork. */
void dibs__topic_event_json(dibsx_json *js, const dibs_event *event)
{
    char at[40];

    if (event->kind != DIBS_EVENT) {
        dibsx_json_pair_uint(js, "from", event->from);
        dibsx_json_pair_uint(js, "to", event->to);
        return;
    }
    dibsx_wall_text(event->wall_us, at, sizeof(at));
    dibsx_json_pair_uint(js, "position", event->position);
    dibsx_json_pair_text(js, "at", at);
    dibsx_json_data(js, "data", event->data, event->len);
}

const char *dibs__topic_event_name(dibs_event_kind kind)
{
    return kind == DIBS_EVENT_GAP    ? "gap"
           : kind == DIBS_EVENT_FORK ? "fork"
                                     : "event";
}

/* As dibs_event_fn. */
static void add_event(const dibs_event *event, void *arg)
{
    char id[24];
    dibsx_buf text;
    dibsx_json js;

    dibsx_buf_init(&text, DIBS__TOPIC_TEXT_MAX);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    dibs__topic_event_json(&js, event);
    dibsx_json_close(&js, '}');
    /* After a fork positions are given again, from the last that the store has. */
    snprintf(id, sizeof(id), "%" PRIu64,
             event->kind == DIBS_EVENT        ? event->position
             : event->kind == DIBS_EVENT_FORK ? event->from
                                              : event->to);
    (void)dibs__topic_tail_put(arg, id, dibs__topic_event_name(event->kind),
                               &text);
    dibsx_buf_fini(&text);
}

/* As dibs__topic_end_fn. */
static void end_subscription(void *source)
{
    dibs_unsubscribe(source);
}

void dibs__topic_stream_answer(dibs__http_exchange *ex, const char *topic,
                               const dibs_reader_opts *opts)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__topic_tail *tl = dibs__topic_tail_new(ex);
    dibs_subscription *subscription = NULL;
    dibs_error err = {0};

    if (!tl)
        return;
    if (dibs_subscribe(sv->data, topic, opts, add_event, tl, &subscription,
                       &err) == DIBS_OK) {
        dibs__topic_tail_answer(tl, end_subscription, subscription);
        return;
    }
    (void)dibs__serve_fail(ex, &err);
    dibs__topic_tail_drop(tl);
}
