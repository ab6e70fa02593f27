/* topic_stream.c - streams of the events of durable topics. Loop thread, threads of the
 * server, and those of subscriptions. */
/* SPDX-License-Identifier: MIT */
#include "serve/topic_stream.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"
#include "http/sse.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "show/data_json.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    EVENT_TEXT_MAX = 512 * 1024, /* of one event as JSON */
    BEAT_MS = 10000,
    LIFE_MS = 12 * 3600 * 1000
};

dibs_status dibs__topics_init(dibs__serve_topics *topics, dibs_error *err)
{
    if (!dibsx_cond_init(&topics->cond))
        return dibsx_nomem(err, "a condition variable");
    pthread_mutex_init(&topics->mutex, NULL);
    topics->made = true;
    return DIBS_OK;
}

void dibs__topics_fini(dibs__serve_topics *topics)
{
    if (!topics->made)
        return;
    pthread_mutex_lock(&topics->mutex);
    while (topics->streams > 0)
        dibsx_cond_wait(&topics->cond, &topics->mutex, DIBSX_NEVER);
    pthread_mutex_unlock(&topics->mutex);
    pthread_cond_destroy(&topics->cond);
    pthread_mutex_destroy(&topics->mutex);
    topics->made = false;
}

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
    dibs__json_data(js, "data", event->data, event->len);
}

const char *dibs__topic_event_name(dibs_event_kind kind)
{
    return kind == DIBS_EVENT_GAP    ? "gap"
           : kind == DIBS_EVENT_FORK ? "fork"
                                     : "event";
}

typedef struct tail {
    dibs__serve *sv;
    dibs__http_exchange *ex; /* lives as long as the stream */
    dibs_subscription *subscription;
    dibsx_nsec until;

    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond;
    dibsx_buf frames; /* that wait to be pulled */
    bool over;        /* the stream has ended */
} tail;

/* As dibs_event_fn. Waits while the client does not read. */
static void add_event(const dibs_event *event, void *arg)
{
    tail *tl = arg;
    char id[24];
    dibsx_buf text;
    dibsx_json js;

    dibsx_buf_init(&text, EVENT_TEXT_MAX);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    dibs__topic_event_json(&js, event);
    dibsx_json_close(&js, '}');
    snprintf(id, sizeof(id), "%" PRIu64,
             event->kind == DIBS_EVENT ? event->position : event->to);
    pthread_mutex_lock(&tl->mutex);
    while (!tl->over && tl->frames.len > DIBS__HTTP_PULL_MAX)
        dibsx_cond_wait(&tl->cond, &tl->mutex, DIBSX_NEVER);
    if (!tl->over && dibsx_buf_ok(&text))
        dibs__http_sse_put(&tl->frames, id, dibs__topic_event_name(event->kind),
                           dibsx_buf_text(&text), text.len);
    pthread_mutex_unlock(&tl->mutex);
    dibsx_buf_fini(&text);
    tl->sv->hub.wake(tl->sv->hub.wake_arg);
}

static bool is_draining(dibs__serve_hub *hub)
{
    bool draining;

    pthread_mutex_lock(&hub->mutex);
    draining = hub->draining;
    pthread_mutex_unlock(&hub->mutex);
    return draining;
}

/* As dibs__http_pull_fn. A frame may be longer than a pull. */
static bool pull_tail(void *arg, dibsx_buf *out)
{
    tail *tl = arg;
    const bool on = dibs__serve_gate_still(tl->ex) && dibsx_now() < tl->until &&
                    !is_draining(&tl->sv->hub);
    static const char goaway[] = "{\"retry_ms\":1000}";
    size_t len;

    if (!on) {
        dibs__http_sse_put(out, NULL, "goaway", goaway, sizeof(goaway) - 1);
        return false;
    }
    pthread_mutex_lock(&tl->mutex);
    len = tl->frames.len < DIBS__HTTP_PULL_MAX ? tl->frames.len
                                               : DIBS__HTTP_PULL_MAX;
    dibsx_buf_add(out, dibsx_buf_text(&tl->frames), len);
    if (len == tl->frames.len) {
        dibsx_buf_reset(&tl->frames);
    } else {
        memmove(tl->frames.data, tl->frames.data + len, tl->frames.len - len);
        tl->frames.len -= len;
        tl->frames.data[tl->frames.len] = '\0';
    }
    pthread_cond_broadcast(&tl->cond);
    pthread_mutex_unlock(&tl->mutex);
    return true;
}

static void *free_tail(void *arg)
{
    tail *tl = arg;
    dibs__serve_topics *topics = &tl->sv->topics;

    dibs_unsubscribe(tl->subscription);
    dibsx_buf_fini(&tl->frames);
    pthread_cond_destroy(&tl->cond);
    pthread_mutex_destroy(&tl->mutex);
    dibsx_free(tl);
    pthread_mutex_lock(&topics->mutex);
    topics->streams--;
    pthread_cond_broadcast(&topics->cond);
    pthread_mutex_unlock(&topics->mutex);
    return NULL;
}

/* As dibs__http_gone_fn: the end of a subscription may wait for the store, and the loop
 * must not. */
static void end_tail(void *arg)
{
    tail *tl = arg;
    pthread_t thread;

    pthread_mutex_lock(&tl->mutex);
    tl->over = true;
    pthread_cond_broadcast(&tl->cond);
    pthread_mutex_unlock(&tl->mutex);
    if (dibsx_thread_start(&thread, free_tail, tl) == 0)
        pthread_detach(thread);
    else
        (void)free_tail(tl);
}

/* Counts one more stream; false: there are too many. */
static bool admit_stream(dibs__serve_topics *topics)
{
    bool admitted;

    pthread_mutex_lock(&topics->mutex);
    admitted = topics->streams < DIBS__TOPIC_STREAMS_MAX;
    topics->streams += admitted;
    pthread_mutex_unlock(&topics->mutex);
    return admitted;
}

/* NULL when memory is short. */
static tail *make_tail(dibs__http_exchange *ex)
{
    tail *tl = dibsx_zalloc(sizeof(*tl));

    if (!tl || !dibsx_cond_init(&tl->cond)) {
        dibsx_free(tl);
        return NULL;
    }
    pthread_mutex_init(&tl->mutex, NULL);
    dibsx_buf_init(&tl->frames, DIBS__HTTP_PULL_MAX + 2 * EVENT_TEXT_MAX);
    tl->sv = dibs__http_arg(ex);
    tl->ex = ex;
    tl->until = dibsx_after_ms(dibsx_now(), LIFE_MS);
    return tl;
}

void dibs__topic_stream_answer(dibs__http_exchange *ex, const char *topic,
                               const dibs_reader_opts *opts)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs_error err = {0};
    tail *tl;

    if (!admit_stream(&sv->topics)) {
        (void)dibs__serve_refuse(ex, 429, "limit",
                                 "%d streams of topics are open, and no more "
                                 "are allowed; ask for lists with ?since=",
                                 DIBS__TOPIC_STREAMS_MAX);
        return;
    }
    tl = make_tail(ex);
    if (!tl) {
        pthread_mutex_lock(&sv->topics.mutex);
        sv->topics.streams--;
        pthread_mutex_unlock(&sv->topics.mutex);
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    if (dibs_subscribe(sv->cl, topic, opts, add_event, tl, &tl->subscription,
                       &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        (void)free_tail(tl);
        return;
    }
    dibs__http_set(ex, "X-Accel-Buffering", "no");
    dibs__http_set(ex, "Cache-Control", "no-store, no-transform");
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_tail,
                                                  .gone = end_tail,
                                                  .arg = tl,
                                                  .idle_ms = BEAT_MS,
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}
