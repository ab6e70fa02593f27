/* topic_tail.c - frames of a topic that wait until the client of a stream reads them. Loop
 * thread, threads of the server, and those of sources. */
/* SPDX-License-Identifier: MIT */
#include "serve/topic_tail.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"
#include "http/lasting.h"
#include "http/sse.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <string.h>

enum { BEAT_MS = 10000, LIFE_MS = 12 * 3600 * 1000 };

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

struct dibs__topic_tail {
    dibs__serve *sv;
    dibs__http_exchange *ex; /* lives as long as the stream */
    dibs__topic_end_fn *end;
    void *source;
    dibsx_nsec until;

    pthread_mutex_t mutex; /* for all below */
    pthread_cond_t cond;
    dibsx_buf frames; /* that wait to be pulled */
    bool closed;      /* by the source */
    bool cut;         /* a part of a frame may be out */
    bool broken;      /* a frame found no memory */
    bool over;        /* the stream has ended */
};

bool dibs__topic_tail_put(dibs__topic_tail *tl, const char *id,
                          const char *name, dibsx_buf *text)
{
    bool more;

    pthread_mutex_lock(&tl->mutex);
    while (!tl->over && tl->frames.len > DIBS__HTTP_PULL_MAX)
        dibsx_cond_wait(&tl->cond, &tl->mutex, DIBSX_NEVER);
    if (!tl->over && dibsx_buf_ok(text))
        dibs__http_sse_put(&tl->frames, id, name, dibsx_buf_text(text),
                           text->len);
    if (!dibsx_buf_ok(text) || !dibsx_buf_ok(&tl->frames))
        tl->broken = true;
    more = !tl->over && !tl->broken;
    pthread_mutex_unlock(&tl->mutex);
    tl->sv->hub.wake(tl->sv->hub.wake_arg);
    return more;
}

void dibs__topic_tail_close(dibs__topic_tail *tl)
{
    pthread_mutex_lock(&tl->mutex);
    tl->closed = true;
    pthread_mutex_unlock(&tl->mutex);
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

/* As dibs__http_pull_fn. The last word comes between two frames, or not at all. */
static bool pull_frames(void *arg, dibsx_buf *out)
{
    static const char goaway[] = "{\"retry_ms\":1000}";
    dibs__topic_tail *tl = arg;
    bool on = dibs__serve_gate_still(tl->ex) && dibsx_now() < tl->until &&
              !is_draining(&tl->sv->hub);
    bool cut;

    pthread_mutex_lock(&tl->mutex);
    cut = tl->cut;
    on = on && !tl->broken && (tl->frames.len > 0 || !tl->closed);
    if (on) {
        tl->cut = dibs__http_pull_part(&tl->frames, out);
        pthread_cond_broadcast(&tl->cond);
    }
    pthread_mutex_unlock(&tl->mutex);
    if (!on && !cut)
        dibs__http_sse_put(out, NULL, "goaway", goaway, sizeof(goaway) - 1);
    return on;
}

void dibs__topic_tail_drop(dibs__topic_tail *tl)
{
    dibs__serve_topics *topics = &tl->sv->topics;

    dibsx_buf_fini(&tl->frames);
    pthread_cond_destroy(&tl->cond);
    pthread_mutex_destroy(&tl->mutex);
    dibsx_free(tl);
    pthread_mutex_lock(&topics->mutex);
    topics->streams--;
    pthread_cond_broadcast(&topics->cond);
    pthread_mutex_unlock(&topics->mutex);
}

static void *end_source(void *arg)
{
    dibs__topic_tail *tl = arg;

    tl->end(tl->source);
    dibs__topic_tail_drop(tl);
    return NULL;
}

/* As dibs__http_gone_fn: the end of a source may wait for the store, and the loop must
 * not. */
static void end_stream(void *arg)
{
    dibs__topic_tail *tl = arg;
    pthread_t thread;

    pthread_mutex_lock(&tl->mutex);
    tl->over = true;
    pthread_cond_broadcast(&tl->cond);
    pthread_mutex_unlock(&tl->mutex);
    if (dibsx_thread_start(&thread, end_source, tl) == 0)
        pthread_detach(thread);
    else
        (void)end_source(tl);
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
static dibs__topic_tail *make_tail(dibs__http_exchange *ex)
{
    dibs__topic_tail *tl = dibsx_zalloc(sizeof(*tl));

    if (!tl || !dibsx_cond_init(&tl->cond)) {
        dibsx_free(tl);
        return NULL;
    }
    pthread_mutex_init(&tl->mutex, NULL);
    dibsx_buf_init(&tl->frames, DIBS__HTTP_PULL_MAX + 2 * DIBS__TOPIC_TEXT_MAX);
    tl->sv = dibs__http_arg(ex);
    tl->ex = ex;
    tl->until = dibsx_after_ms(dibsx_now(), LIFE_MS);
    return tl;
}

dibs__topic_tail *dibs__topic_tail_new(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__topic_tail *tl;

    if (!admit_stream(&sv->topics)) {
        (void)dibs__serve_refuse(ex, 429, "limit",
                                 "%d streams of topics are open, and no more "
                                 "are allowed; close one, or ask for lists of "
                                 "events with ?since=",
                                 DIBS__TOPIC_STREAMS_MAX);
        return NULL;
    }
    tl = make_tail(ex);
    if (!tl) {
        pthread_mutex_lock(&sv->topics.mutex);
        sv->topics.streams--;
        pthread_mutex_unlock(&sv->topics.mutex);
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
    }
    return tl;
}

void dibs__topic_tail_answer(dibs__topic_tail *tl, dibs__topic_end_fn *end,
                             void *source)
{
    dibs__http_exchange *ex = tl->ex;

    tl->end = end;
    tl->source = source;
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_frames,
                                                  .gone = end_stream,
                                                  .arg = tl,
                                                  .idle_ms = BEAT_MS,
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}
