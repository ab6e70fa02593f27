/* events.c - what a client does with a topic without a reader: append, show, trim.
 *
 * Owns the lanes on which a client appends, attached to the client with the first one. A
 * lane has one append under way; the others wait in a list for the next caller.
 * Locks: cl->mutex guards the list. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/events.h>

#include "base/alloc.h"
#include "base/opts.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "core/attach.h"
#include "core/client.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>
#include <time.h>

enum { KEEP = 100000, AGAIN_MS = 50 };
#define KEEP_BYTES (INT64_C(256) << 20)
#define KEEP_MS    (INT64_C(7) * 24 * 3600 * 1000)

typedef struct lane {
    struct lane *next;
    uint64_t id;
    uint64_t number; /* of the last append */
} lane;

typedef struct lanes {
    dibs__attached attached; /* first, so that one is the other */
    lane *idle;
} lanes;

static void free_lanes(dibs_client *cl, dibs__attached *at)
{
    lanes *all = (lanes *)(void *)at;

    (void)cl;
    for (lane *ln = all->idle, *next; ln; ln = next) {
        next = ln->next;
        dibsx_free(ln);
    }
    dibsx_free(all);
}

/* Made when first needed; NULL: no memory. Locks: cl->mutex. */
static lanes *lanes_of(dibs_client *cl)
{
    dibs__attached *at = cl->attached;
    lanes *all;

    while (at && at->free != free_lanes)
        at = at->next;
    if (at)
        return (lanes *)(void *)at;
    all = dibsx_zalloc(sizeof(*all));
    if (!all)
        return NULL;
    all->attached.free = free_lanes;
    dibs__attach(cl, &all->attached);
    return all;
}

static lane *new_lane(void)
{
    lane *ln = dibsx_zalloc(sizeof(*ln));

    while (ln && ln->id == 0) {
        if (!dibsx_random(&ln->id, sizeof(ln->id))) {
            dibsx_free(ln);
            return NULL;
        }
        ln->id &= DIBS__LANE_MAX;
    }
    return ln;
}

static dibs_status take_lane(dibs_client *cl, lane **out, dibs_error *err)
{
    lanes *all;

    pthread_mutex_lock(&cl->mutex);
    all = lanes_of(cl);
    *out = all ? all->idle : NULL;
    if (*out)
        all->idle = (*out)->next;
    pthread_mutex_unlock(&cl->mutex);
    if (all && !*out)
        *out = new_lane();
    return *out ? DIBS_OK : dibsx_nomem(err, "a lane to append on");
}

/* A lane whose last append may be done later is not used again. */
static void give_lane(dibs_client *cl, lane *ln, dibs_status rc)
{
    if (rc == DIBS_UNKNOWN) {
        dibsx_free(ln);
        return;
    }
    pthread_mutex_lock(&cl->mutex);
    ln->next = lanes_of(cl)->idle;
    lanes_of(cl)->idle = ln;
    pthread_mutex_unlock(&cl->mutex);
}

static void pause_ms(int ms)
{
    struct timespec span = {.tv_nsec = (long)ms * 1000000};

    (void)nanosleep(&span, NULL);
}

/* Sends an append until the store has answered. After an answer that was lost, a refusal
 * of any kind does not say that the first one was not done. */
static dibs_status append_until(dibs_client *cl, const dibs__append *what,
                                uint64_t *position, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec until = dibsx_after_ms(now, 2 * cl->timeout_ms);
    dibs_error first = {0};
    dibs_status rc =
        cl->st->ops->log->append(cl->st, what, dibs__client_deadline(cl, now),
                                 position, err);

    if (rc != DIBS_UNKNOWN)
        return rc;
    if (err)
        first = *err;
    while ((now = dibsx_now()) < until) {
        rc = cl->st->ops->log->append(cl->st, what,
                                      dibs__client_deadline(cl, now), position,
                                      err);
        if (rc == DIBS_OK)
            return rc;
        if (rc != DIBS_UNKNOWN && rc != DIBS_UNAVAIL)
            break;
        pause_ms(AGAIN_MS);
    }
    return dibsx_fail_at(err, DIBS_UNKNOWN, first.origin, "%s", first.message);
}

static dibs_status
copy_opts(const dibs_append_opts *opts, dibs__append *out, dibs_error *err)
{
    dibs_append_opts want;
    dibs_status rc =
        dibsx_opts_copy(&want, sizeof(want), opts, "DIBS_APPEND_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (want.keep > DIBS_EVENT_KEEP_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a topic keeps at most %d events",
                          DIBS_EVENT_KEEP_MAX);
    out->keep = want.keep ? want.keep : KEEP;
    out->keep_bytes = want.keep_bytes ? want.keep_bytes : KEEP_BYTES;
    out->keep_ms = want.keep_ms ? want.keep_ms : KEEP_MS;
    if (out->keep_bytes < 0)
        out->keep_bytes = 0;
    if (out->keep_ms < 0)
        out->keep_ms = 0;
    return DIBS_OK;
}

/* The full name of a topic that a program may write to. */
static dibs_status own_topic(dibs_client *cl, const char *topic,
                             char out[DIBS_NAME_MAX + 1], dibs_error *err)
{
    if (topic && strncmp(topic, "dibs.", 5) == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "topics that begin with \"dibs.\" are of the "
                          "library; use another name");
    return dibs__name_full(cl, topic, out, err);
}

dibs_status
dibs_events_append(dibs_client *cl, const char *topic, const void *data,
                   size_t len, const dibs_append_opts *opts, uint64_t *position,
                   dibs_error *err)
{
    DIBSX_UNCANCEL;
    char name[DIBS_NAME_MAX + 1];
    dibs__append what = {.topic = name, .data = data, .len = len};
    uint64_t got = 0;
    lane *ln = NULL;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (position)
        *position = 0;
    if (rc == DIBS_OK)
        rc = own_topic(cl, topic, name, err);
    if (rc == DIBS_OK)
        rc = copy_opts(opts, &what, err);
    if (rc == DIBS_OK && len > DIBS_EVENT_MAX)
        rc = dibsx_fail(err, DIBS_INVALID, "an event has at most %d bytes",
                        DIBS_EVENT_MAX);
    if (rc == DIBS_OK)
        rc = take_lane(cl, &ln, err);
    if (rc != DIBS_OK)
        return rc;
    what.lane = ln->id;
    what.number = ++ln->number;
    rc = append_until(cl, &what, &got, err);
    give_lane(cl, ln, rc);
    if (rc == DIBS_OK && position)
        *position = got;
    return rc;
}

dibs_status dibs_events_show(dibs_client *cl, const char *topic,
                             dibs_topic_state *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char name[DIBS_NAME_MAX + 1];
    dibs__log_span span = {0};
    dibs_status rc = dibs__reach_usable(cl, err);

    *out = (dibs_topic_state){0};
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, topic, name, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->log->bounds(cl->st, name,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      &span, err);
    if (rc == DIBS_OK)
        *out = (dibs_topic_state){.first = span.first,
                                  .last = span.last,
                                  .count = span.count,
                                  .bytes = span.bytes};
    return rc;
}

dibs_status dibs_events_trim(dibs_client *cl, const char *topic,
                             uint64_t through, uint64_t *gone, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char name[DIBS_NAME_MAX + 1];
    uint64_t some = 0, sum = 0;
    dibs__log_span span;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = own_topic(cl, topic, name, err);
    /* Events that come meanwhile stay. */
    if (rc == DIBS_OK)
        rc = cl->st->ops->log->bounds(cl->st, name,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      &span, err);
    if (rc == DIBS_OK && through > span.last)
        through = span.last;
    while (rc == DIBS_OK) {
        some = 0;
        rc = cl->st->ops->log->trim(cl->st, name, through,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    &some, err);
        sum += some;
        if (some == 0)
            break;
    }
    if (gone)
        *gone = sum;
    return rc == DIBS_UNAVAIL && sum > 0 ? dibsx_unanswered(err) : rc;
}
