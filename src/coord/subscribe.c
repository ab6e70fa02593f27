/* subscribe.c - subscriptions: a reader on a thread of its own, and a callback.
 *
 * Owns the thread and the reader. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/events.h>

#include "base/alloc.h"
#include "base/thread.h"
#include "base/uncancel.h"
#include "coord/reader_group.h"
#include "core/client.h"
#include "core/log.h"
#include <stdatomic.h>
#include <string.h>
#include <time.h>

struct dibs_subscription {
    dibs_client *cl;
    dibs_reader *reader;
    dibs_event_fn *fn;
    void *arg;
    pthread_t thread;
    atomic_bool ended;
    bool grouped;
};

/* A reader says at once what does not pass, such as a missing privilege. */
static void rest_second(void)
{
    struct timespec span = {.tv_sec = 1};

    (void)nanosleep(&span, NULL);
}

static void *serve_events(void *arg)
{
    dibs_subscription *sub = arg;

    while (!atomic_load(&sub->ended)) {
        dibs_error err = {0};
        dibs_event event;
        dibs_status rc = dibs_reader_next(sub->reader, -1, &event, &err);

        if (rc == DIBS_OK)
            sub->fn(&event, sub->arg);
        else if (rc == DIBS_CANCELLED || rc == DIBS_INVALID)
            break;
        else
            rest_second();
    }
    return NULL;
}

/* A start at the end is a position from here on: the thread reads later. A group that
 * has a position goes on there. */
static dibs_status fix_start(dibs_client *cl, const char *topic,
                             dibs_reader_opts *opts, dibs_error *err)
{
    dibs_topic_state at;
    dibs_status rc;

    /* The reader refuses a topic that is missing. */
    if (opts->start != DIBS_FROM_END || !topic)
        return DIBS_OK;
    if (opts->group)
        return dibs__reader_group_found(cl, topic, opts->group, err);
    rc = dibs_events_show(cl, topic, &at, err);
    opts->start = DIBS_FROM_POSITION;
    opts->position = at.last;
    return rc;
}

dibs_status dibs_subscribe(dibs_client *cl, const char *topic,
                           const dibs_reader_opts *opts, dibs_event_fn *fn,
                           void *arg, dibs_subscription **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_reader_opts want = {.size = sizeof(want)};
    dibs_subscription *sub;
    dibs_status rc;
    int failed;

    *out = NULL;
    if (!fn)
        return dibsx_fail(err, DIBS_INVALID, "the function is NULL");
    if (opts && opts->size >= sizeof(opts->size) && opts->size <= 4096)
        memcpy(&want, opts,
               opts->size < sizeof(want) ? opts->size : sizeof(want));
    else if (opts)
        want.size = 0; /* The reader refuses it. */
    rc = want.size ? fix_start(cl, topic, &want, err) : DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    sub = dibsx_zalloc(sizeof(*sub));
    if (!sub)
        return dibsx_nomem(err, "a subscription");
    *sub = (dibs_subscription){.cl = cl,
                               .fn = fn,
                               .arg = arg,
                               .grouped = want.group != NULL};
    rc = dibs_reader_new(cl, topic, &want, &sub->reader, err);
    failed =
        rc == DIBS_OK ? dibsx_thread_start(&sub->thread, serve_events, sub) : 0;
    if (rc == DIBS_OK && failed == 0) {
        *out = sub;
        return DIBS_OK;
    }
    dibs_reader_free(sub->reader);
    dibsx_free(sub);
    return rc != DIBS_OK
               ? rc
               : dibsx_fail(err, DIBS_NOMEM, "cannot start a thread: %s",
                            strerror(failed));
}

void dibs_unsubscribe(dibs_subscription *sub)
{
    DIBSX_UNCANCEL;
    dibs_error err = {0};

    /* A child of fork() has no such thread. */
    if (!sub || dibs__forked(sub->cl->fork_number))
        return;
    atomic_store(&sub->ended, true);
    dibs_reader_cancel(sub->reader);
    pthread_join(sub->thread, NULL);
    if (sub->grouped && dibs_reader_commit(sub->reader, &err) != DIBS_OK)
        dibs__log(sub->cl, DIBS_LOG_WARN, "events",
                  "the position of a group was not kept, so its last events "
                  "come again: %s",
                  err.message);
    dibs_reader_free(sub->reader);
    dibsx_free(sub);
}
