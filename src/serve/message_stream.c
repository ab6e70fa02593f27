/* message_stream.c - streams of the messages of topics: for all that listen now.
 *
 * A stream owns a listener and a thread that waits for it. Threads of the server, and
 * those of listeners. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/json_data.h"
#include "base/thread.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/topic_stream.h"

typedef struct hearing {
    dibs__topic_tail *tl;
    dibs_listener *listener;
    pthread_t thread;
} hearing;

/* False: the stream is over. */
static bool put_message(hearing *hg, const dibs_message *message)
{
    dibsx_buf text;
    dibsx_json js;
    bool more;

    dibsx_buf_init(&text, DIBS__TOPIC_TEXT_MAX);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    if (!message->missed)
        dibsx_json_data(&js, "data", message->data, message->len);
    dibsx_json_close(&js, '}');
    more = dibs__topic_tail_put(hg->tl, NULL,
                                message->missed ? "missed" : "message", &text);
    dibsx_buf_fini(&text);
    return more;
}

/* Until the listener is cancelled, or the store forbids it. */
static void *hear_messages(void *arg)
{
    hearing *hg = arg;
    dibs_message message;

    while (dibs_listener_next(hg->listener, -1, &message, NULL) == DIBS_OK &&
           put_message(hg, &message))
        continue;
    dibs__topic_tail_close(hg->tl);
    return NULL;
}

/* As dibs__topic_end_fn. */
static void end_hearing(void *source)
{
    hearing *hg = source;

    dibs_listener_cancel(hg->listener);
    pthread_join(hg->thread, NULL);
    dibs_listener_free(hg->listener);
    dibsx_free(hg);
}

/* NULL: *err says why. */
static hearing *begin_hearing(dibs_client *cl, const char *topic,
                              dibs__topic_tail *tl, dibs_error *err)
{
    hearing *hg = dibsx_zalloc(sizeof(*hg));

    if (!hg) {
        (void)dibsx_nomem(err, "a stream");
        return NULL;
    }
    hg->tl = tl;
    if (dibs_listener_new(cl, topic, &hg->listener, err) != DIBS_OK) {
        dibsx_free(hg);
        return NULL;
    }
    if (dibsx_thread_start(&hg->thread, hear_messages, hg) == 0)
        return hg;
    (void)dibsx_nomem(err, "a thread");
    dibs_listener_free(hg->listener);
    dibsx_free(hg);
    return NULL;
}

void dibs__message_stream_answer(dibs__http_exchange *ex, const char *topic)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__topic_tail *tl = dibs__topic_tail_new(ex);
    dibs_error err = {0};
    hearing *hg;

    if (!tl)
        return;
    hg = begin_hearing(sv->data, topic, tl, &err);
    if (hg) {
        dibs__topic_tail_answer(tl, end_hearing, hg);
        return;
    }
    (void)dibs__serve_fail(ex, &err);
    dibs__topic_tail_drop(tl);
}
