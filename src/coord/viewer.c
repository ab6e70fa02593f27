/* viewer.c - leases as they come and go, told by the clients that have them.
 *
 * A viewer is a listener of the messages, and a value in the store that says that there
 * are viewers. All viewers write the same value, which lasts DIBS__VIEWERS_TTL_MS. A thread
 * of the caller writes it anew in time, and takes the messages apart.
 *
 * Any thread, but one at a time for each viewer. */
/* SPDX-License-Identifier: MIT */
#include <dibs/viewer.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "coord/listener.h"
#include "core/client.h"
#include "core/lease_event.h"
#include "core/names.h"
#include "core/who.h"
#include <dibs/state.h>
#include <string.h>

enum { MARK_MS = 3000, RETRY_MS = 1000 }; /* to the next mark */
enum { AGE_MAX_MS = 60000 };

_Static_assert(2 * (int)MARK_MS < (int)DIBS__VIEWERS_TTL_MS,
               "a mark lasts until the next but one");

struct dibs_viewer {
    dibs_client *cl;
    dibs_listener *listener;
    dibsx_nsec mark_at;      /* when the value is to be written again, */
    dibsx_nsec marked_until; /* ... and how long it lasts */
    bool lapsed;             /* it was gone for a while; not reported yet */

    char text[DIBS_MESSAGE_MAX + 1]; /* the message that is shown */
    char *at;                        /* what is left of it */
    int64_t sent_ms;
    uint64_t dropped; /* not reported yet */
    dibs__who who;    /* of the event that is shown */
};

/* While the value is gone, clients tell nothing. */
static dibs_status mark(dibs_viewer *vw, dibs_error *err)
{
    dibsx_nsec sent_at = dibsx_now();
    dibs_status rc = dibs_state_set(vw->cl, DIBS__VIEWERS_KEY, "1", 1,
                                    DIBS__VIEWERS_TTL_MS, NULL, err);

    vw->mark_at =
        dibsx_after_ms(dibsx_now(), rc == DIBS_OK ? MARK_MS : RETRY_MS);
    if (rc == DIBS_OK) {
        vw->lapsed |= vw->marked_until > 0 && sent_at >= vw->marked_until;
        vw->marked_until = dibsx_after_ms(sent_at, DIBS__VIEWERS_TTL_MS);
    }
    return rc;
}

dibs_status dibs_viewer_new(dibs_client *cl, dibs_viewer **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_viewer *vw = dibsx_zalloc(sizeof(*vw));
    dibs_status rc;

    *out = NULL;
    if (!vw)
        return dibsx_nomem(err, "a viewer");
    vw->cl = cl;
    vw->at = vw->text;
    /* It listens before it says so. */
    rc = dibs_listener_new(cl, DIBS__VIEW_TOPIC, &vw->listener, err);
    if (rc == DIBS_OK)
        rc = mark(vw, err);
    if (rc == DIBS_UNKNOWN)
        rc = dibsx_fail(err, DIBS_UNAVAIL, "the store did not answer");
    if (rc == DIBS_OK)
        *out = vw;
    else
        dibs_viewer_free(vw);
    return rc;
}

/* A message of other software has no head, and is passed over. */
static void take_message(dibs_viewer *vw, const dibs_message *message)
{
    size_t len = message->len < DIBS_MESSAGE_MAX ? message->len
                                                 : (size_t)DIBS_MESSAGE_MAX;

    memcpy(vw->text, message->data, len);
    vw->text[len] = '\0';
    vw->at = vw->text;
    if (!dibs__view_read_head(&vw->at, &vw->sent_ms, &vw->dropped)) {
        *(vw->at = vw->text) = '\0';
        vw->dropped = 0;
    }
}

static void show_missed(uint64_t missed, dibs_lease_event *out)
{
    *out = (dibs_lease_event){.kind = DIBS_LEASE_MISSED,
                              .name = "",
                              .host = "",
                              .identity = "",
                              .label = "",
                              .mode = "",
                              .missed = missed};
}

/* An event is no older than this, whatever its message says. */
static int64_t age_of(const dibs__view_line *line, int64_t sent_ms)
{
    int64_t age_ms = line->at_ms < sent_ms ? sent_ms - line->at_ms : 0;

    return age_ms < AGE_MAX_MS ? age_ms : AGE_MAX_MS;
}

/* The next event of the message; false: there is none left. */
static bool show_event(dibs_viewer *vw, dibs_lease_event *out)
{
    dibs__view_line line;

    if (vw->dropped > 0 || vw->lapsed) {
        show_missed(vw->dropped, out);
        vw->dropped = 0;
        vw->lapsed = false;
        return true;
    }
    if (!dibs__view_read_line(&vw->at, &line))
        return false;
    dibs__text_clean(line.mode);
    dibs__text_clean(line.who);
    dibs__text_clean(line.name);
    dibs__who_read(line.who, &vw->who);
    *out = (dibs_lease_event){.kind = line.kind,
                              .name = line.name,
                              .host = vw->who.host,
                              .pid = vw->who.pid,
                              .identity = vw->who.identity,
                              .label = vw->who.label,
                              .mode = line.mode,
                              .fence = line.fence,
                              .span_ms = line.span_ms,
                              .age_ms = age_of(&line, vw->sent_ms)};
    return true;
}

/* A store that is away has no clients that could tell anything: a mark that failed is
 * tried again. */
static dibs_status keep_mark(dibs_viewer *vw, dibs_error *err)
{
    dibs_error failure = {0};
    dibs_status rc = dibsx_now() < vw->mark_at ? DIBS_OK : mark(vw, &failure);

    if (rc == DIBS_OK || rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN)
        return DIBS_OK;
    return dibsx_fail_at(err, rc, failure.origin, "%s", failure.message);
}

static int64_t wait_for(const dibs_viewer *vw, dibsx_nsec deadline)
{
    dibsx_nsec until = vw->mark_at < deadline ? vw->mark_at : deadline;

    return dibsx_wait_ms(until, dibsx_now());
}

static dibs_status await_event(dibs_viewer *vw, dibsx_nsec deadline,
                               dibs_lease_event *out, dibs_error *err)
{
    while (!show_event(vw, out)) {
        dibs_message message;
        dibs_status rc = keep_mark(vw, err);

        if (rc == DIBS_OK)
            rc = dibs_listener_next(vw->listener, wait_for(vw, deadline),
                                    &message, err);
        if (dibs__client_usable(vw->cl, NULL) != DIBS_OK)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        if (rc == DIBS_OK && message.missed)
            return DIBS_OK;
        if (rc == DIBS_OK)
            take_message(vw, &message);
        else if ((rc != DIBS_TIMEOUT && rc != DIBS_UNAVAIL) ||
                 dibsx_now() >= deadline)
            return rc;
    }
    return DIBS_OK;
}

dibs_status dibs_viewer_next(dibs_viewer *vw, int64_t wait_ms,
                             dibs_lease_event *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc;

    show_missed(0, out);
    if (!vw)
        return dibsx_fail(err, DIBS_INVALID, "the viewer is NULL");
    rc = dibs__client_usable(vw->cl, err);
    if (rc != DIBS_OK)
        return rc;
    dibs__listener_begin(vw->listener);
    rc = await_event(vw, deadline, out, err);
    dibs__listener_end(vw->listener);
    return rc;
}

void dibs_viewer_cancel(dibs_viewer *vw)
{
    if (vw)
        dibs_listener_cancel(vw->listener);
}

void dibs_viewer_free(dibs_viewer *vw)
{
    DIBSX_UNCANCEL;

    if (!vw)
        return;
    dibs_listener_free(vw->listener);
    dibsx_free(vw);
}
