/* tails.c - see tails.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/tails.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"
#include "http/lasting.h"
#include "http/sse.h"
#include "serve/gate.h"
#include "serve/problem.h"

enum { LOOK_MS = 300, BEAT_MS = 10000, BUFFER_MAX = 256 * 1024 };

typedef struct dibs__serve_tail {
    struct dibs__serve_tail *next;
    dibs__serve_tails *tails;
    dibs__http_exchange *ex; /* until it is gone */
    dibs__run_output *ro;    /* reader only */
    dibsx_buf frames;
    bool over;   /* there will be no more */
    bool cut;    /* a part of a frame may be out */
    bool broken; /* a frame found no memory */
    bool gone;   /* the stream has ended: the reader frees it */
} dibs__serve_tail;

dibs_status dibs__tails_init(dibs__serve_tails *tails, dibs__hub_wake_fn *wake,
                             void *wake_arg, dibs_error *err)
{
    tails->wake = wake;
    tails->wake_arg = wake_arg;
    if (!dibsx_cond_init(&tails->cond))
        return dibsx_nomem(err, "streams of output");
    pthread_mutex_init(&tails->mutex, NULL);
    tails->made = true;
    return DIBS_OK;
}

static void free_tail(dibs__serve_tail *tail)
{
    dibsx_buf_fini(&tail->frames);
    dibsx_free(tail->ro);
    dibsx_free(tail);
}

void dibs__tails_fini(dibs__serve_tails *tails)
{
    if (!tails->made)
        return;
    pthread_mutex_lock(&tails->mutex);
    tails->stop = true;
    pthread_cond_broadcast(&tails->cond);
    pthread_mutex_unlock(&tails->mutex);
    if (tails->runs)
        pthread_join(tails->thread, NULL);
    while (tails->first) {
        dibs__serve_tail *tail = tails->first;

        tails->first = tail->next;
        free_tail(tail);
    }
    pthread_cond_destroy(&tails->cond);
    pthread_mutex_destroy(&tails->mutex);
}

void dibs__tails_drain(dibs__serve_tails *tails)
{
    pthread_mutex_lock(&tails->mutex);
    tails->draining = true;
    pthread_mutex_unlock(&tails->mutex);
    tails->wake(tails->wake_arg);
}

/* ---- the reader */

/* A store that is away for a while ends no stream. */
static bool is_passing(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN || rc == DIBS_BUSY;
}

/* Locks: tails->mutex, which it lets go of for the store. */
static void fill_tail(dibs__serve_tails *tails, dibs__serve_tail *tail)
{
    dibs_error err = {0};
    bool over = false;
    dibsx_buf frames;
    dibs_status rc;

    dibsx_buf_init(&frames, BUFFER_MAX);
    pthread_mutex_unlock(&tails->mutex);
    rc = dibs__output_frames(tail->ro, &frames, &over, &err);
    if (rc != DIBS_OK && !is_passing(rc)) {
        static const char text[] = "{\"state\":null}";

        dibs__http_sse_put(&frames, NULL, "end", text, sizeof(text) - 1);
        over = true;
    }
    pthread_mutex_lock(&tails->mutex);
    tail->over = over;
    dibsx_buf_add(&tail->frames, frames.data, frames.len);
    tail->broken = !dibsx_buf_ok(&frames) || !dibsx_buf_ok(&tail->frames);
    dibsx_buf_fini(&frames);
}

/* Locks: tails->mutex. */
static void drop_gone(dibs__serve_tails *tails)
{
    dibs__serve_tail **at = &tails->first;

    while (*at) {
        dibs__serve_tail *tail = *at;

        if (!tail->gone) {
            at = &tail->next;
            continue;
        }
        *at = tail->next;
        free_tail(tail);
    }
}

static void *read_outputs(void *arg)
{
    dibs__serve_tails *tails = arg;

    pthread_mutex_lock(&tails->mutex);
    while (!tails->stop) {
        bool news = false;

        /* New streams come at the front, and only this thread frees any. */
        for (dibs__serve_tail *tail = tails->first; tail && !tails->stop;
             tail = tail->next) {
            if (tail->gone || tail->over || tail->broken ||
                tail->frames.len > 0)
                continue;
            fill_tail(tails, tail);
            news = news || tail->frames.len > 0 || tail->over || tail->broken;
        }
        drop_gone(tails);
        if (news) {
            pthread_mutex_unlock(&tails->mutex);
            tails->wake(tails->wake_arg);
            pthread_mutex_lock(&tails->mutex);
        }
        if (!tails->stop)
            dibsx_cond_wait(&tails->cond, &tails->mutex,
                            tails->first ? dibsx_after_ms(dibsx_now(), LOOK_MS)
                                         : DIBSX_NEVER);
    }
    pthread_mutex_unlock(&tails->mutex);
    return NULL;
}

/* ---- streams */

/* As dibs__http_pull_fn. The last word comes between two frames, or not at all. */
static bool pull_frames(void *arg, dibsx_buf *out)
{
    static const char goaway[] = "{\"retry_ms\":1000}";
    dibs__serve_tail *tail = arg;
    dibs__serve_tails *tails = tail->tails;
    bool more;

    pthread_mutex_lock(&tails->mutex);
    more =
        dibs__serve_gate_still(tail->ex) && !tails->draining && !tail->broken;
    if (!more && !tail->cut)
        dibs__http_sse_put(out, NULL, "goaway", goaway, sizeof(goaway) - 1);
    if (more && tail->frames.len > 0) {
        tail->cut = dibs__http_pull_part(&tail->frames, out);
        pthread_cond_broadcast(&tails->cond);
    }
    more = more && (tail->cut || !tail->over);
    pthread_mutex_unlock(&tails->mutex);
    return more;
}

static void end_tail(void *arg)
{
    dibs__serve_tail *tail = arg;
    dibs__serve_tails *tails = tail->tails;

    pthread_mutex_lock(&tails->mutex);
    tail->gone = true;
    pthread_cond_broadcast(&tails->cond);
    pthread_mutex_unlock(&tails->mutex);
}

/* Locks: tails->mutex. */
static bool start_reader(dibs__serve_tails *tails)
{
    if (!tails->runs)
        tails->runs =
            dibsx_thread_start(&tails->thread, read_outputs, tails) == 0;
    return tails->runs;
}

void dibs__tails_answer(dibs__serve_tails *tails, dibs__http_exchange *ex,
                        dibs__run_output *ro)
{
    dibs__serve_tail *tail = dibsx_zalloc(sizeof(*tail));
    bool good = tail != NULL;

    if (good) {
        tail->tails = tails;
        tail->ex = ex;
        tail->ro = ro;
        dibsx_buf_init(&tail->frames, BUFFER_MAX);
        pthread_mutex_lock(&tails->mutex);
        good = start_reader(tails);
        if (good) {
            tail->next = tails->first;
            tails->first = tail;
            pthread_cond_broadcast(&tails->cond);
        }
        pthread_mutex_unlock(&tails->mutex);
    }
    if (!good) {
        dibsx_free(tail);
        dibsx_free(ro);
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_frames,
                                                  .gone = end_tail,
                                                  .arg = tail,
                                                  .idle_ms = BEAT_MS,
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}
