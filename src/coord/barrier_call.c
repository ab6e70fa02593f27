/* barrier_call.c - one wait at a barrier: drives the machine of its party in real time.
 *
 * It lives on the thread of the caller: that thread sits, arrives, withdraws and
 * listens. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/rand.h"
#include "coord/barrier.h"
#include "core/names.h"
#include "core/reach.h"
#include <stdio.h>
#include <string.h>

/* The last steps of a call may take so long after its time. */
enum { GRACE_MS = 1000 };

enum { EAR_RETRY_MS = 1000, ROLL_EVERY_MS = 5000, REASON_MAX = 160 };

/* A store that hangs does not hold a call up for long after its time. */
static dibsx_nsec step_deadline(const dibs_client *cl, dibsx_nsec until)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibsx_nsec end = dibsx_after_ms(now > until ? now : until, GRACE_MS);

    return end < deadline ? end : deadline;
}

/* Another party of the client that listens to the topic, and does not ask for an ear just
 * now: that one may fail. NULL: none. Locks: cl->mutex. */
static dibs_barrier *find_ear(const dibs_barrier *b)
{
    dibs__handle *at = NULL;

    while ((at = dibs__handle_next(b->handle.kind, b->cl, at)) != NULL) {
        dibs_barrier *other = (dibs_barrier *)(void *)at;

        if (other != b && other->listens && other->ear_at != DIBSX_NEVER &&
            strcmp(at->address, b->handle.address) == 0)
            return other;
    }
    return NULL;
}

/* Ears are not counted: parties of one client share theirs. A call that did not listen
 * before asks again once it does. Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs_barrier *b)
{
    dibs_client *cl = b->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = step_deadline(cl, b->machine.until);
    const dibs_barrier *other = find_ear(b);
    dibs_status rc = DIBS_OK;
    bool before = b->listens;

    if (other && other->ear_at > sent_at) {
        b->ear_at = other->ear_at;
    } else {
        b->ear_at = DIBSX_NEVER;
        rc = dibs__handle_listen(&b->handle, deadline, NULL);
        if (b->ear_at != DIBSX_NEVER) /* MISSED came meanwhile */
            return;
        b->ear_at = rc == DIBS_OK ? dibsx_after_ms(sent_at, DIBS__EAR_MS / 2)
                                  : dibsx_after_ms(dibsx_now(), EAR_RETRY_MS);
    }
    b->listens = rc == DIBS_OK;
    if (b->listens && !before)
        dibs__party_missed(&b->machine, dibsx_now());
}

/* Locks: cl->mutex, let go meanwhile. */
static void take_roll(dibs_barrier *b, dibs__barrier_roll *roll)
{
    pthread_mutex_unlock(&b->cl->mutex);
    dibs__barrier_roll_take(b->cl, b->name, roll);
    pthread_mutex_lock(&b->cl->mutex);
}

static bool draw_id(dibs_barrier *b)
{
    if (b->id_number == b->machine.id_number)
        return true;
    if (!dibsx_random_hex(b->seat.id, sizeof(b->seat.id)))
        return false;
    b->id_number = b->machine.id_number;
    return true;
}

/* Locks: none held. */
static dibs_status
ask_store(dibs_client *cl, dibs__meet *item, dibsx_nsec until, dibs_error *err)
{
    dibsx_nsec deadline = step_deadline(cl, until);
    dibs_status rc = dibs__reach_store(cl, deadline, err);

    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->meet(cl->st, item, 1, deadline, err);
    return rc;
}

/* Gives the session the seat that the machine has; takes another one back. Locks:
 * cl->mutex, let go meanwhile. */
static dibs_status keep_seat(dibs_barrier *b, dibs_error *err)
{
    dibs_status rc;

    if (b->kept_fence == b->machine.fence)
        return DIBS_OK;
    dibs__session_leave(b->cl, &b->seat);
    b->kept_fence = b->machine.fence;
    if (b->machine.fence == 0)
        return DIBS_OK;
    b->seat.fence = b->machine.fence;
    rc = dibs__session_add(b->cl, &b->seat, err);
    if (rc != DIBS_OK) {
        b->kept_fence = 0; /* tried again: only the session gives it up */
        dibs__party_cancel(&b->machine, dibsx_now());
    }
    return rc;
}

/* Sends what the machine wants. A refusal to give a seat ends the call; later ones
 * are met as silence. Locks: cl->mutex, let go meanwhile. */
static void send_request(dibs_barrier *b, dibs__meet *item)
{
    dibs_client *cl = b->cl;
    char id[DIBS_OWNER_SIZE];
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    if (!draw_id(b))
        rc = dibsx_fail(&err, DIBS_UNAVAIL,
                        "the system has no random numbers now");
    snprintf(id, sizeof(id), "%s", b->seat.id);
    item->name = b->name;
    item->who = b->who;
    item->id = id;
    if (rc == DIBS_OK) {
        dibsx_nsec until = b->machine.until;

        pthread_mutex_unlock(&cl->mutex);
        rc = ask_store(cl, item, until, &err);
        pthread_mutex_lock(&cl->mutex);
    }
    b->failure = err;
    b->failure.status = rc;
    if (rc == DIBS_OK)
        b->answer = *item;
    else
        item->rc = rc;
    dibs__party_answered(&b->machine,
                         rc == DIBS_OK ||
                                 (item->verb == DIBS__SIT && !dibsx_is_away(rc))
                             ? item
                             : NULL,
                         dibsx_now());
}

/* A party that waits remembers who is there, to name later who was not. Locks:
 * cl->mutex, let go meanwhile. */
static void remember_parties(dibs_barrier *b)
{
    dibsx_nsec now = dibsx_now();

    if (!b->before || b->failure.status != DIBS_OK || !b->machine.calling ||
        b->machine.state != DIBS__PARTY_WAITING || now < b->roll_at)
        return;
    b->roll_at = dibsx_after_ms(now, ROLL_EVERY_MS);
    take_roll(b, b->before);
}

/* The same when time is up, before the withdrawal changes it. Locks: cl->mutex, let go
 * meanwhile. */
static bool remember_late(dibs_barrier *b, dibsx_nsec now)
{
    if (!b->before || b->late_roll || now < b->machine.until ||
        b->machine.fence == 0 || !b->machine.asked ||
        b->failure.status != DIBS_OK || b->cl->closing)
        return false;
    b->late_roll = true;
    take_roll(b, b->before);
    return true;
}

/* One thing that the machine wants, or a sleep. Locks: cl->mutex, let go meanwhile. */
static dibs_status proceed(dibs_barrier *b, dibs_error *err)
{
    dibsx_nsec until, now = dibsx_now();
    dibs__meet item = {0};

    if (b->cl->closing || b->cancelled)
        dibs__party_cancel(&b->machine, now);
    if (remember_late(b, now))
        return DIBS_OK;
    if (now >= b->ear_at && now < b->machine.until) {
        listen_topic(b);
        return DIBS_OK;
    }
    switch (dibs__party_next(&b->machine, now, &item, &until)) {
    case DIBS__PARTY_SEND: {
        bool polls = b->machine.gen != 0;

        send_request(b, &item);
        if (polls)
            remember_parties(b);
        return keep_seat(b, err);
    }
    case DIBS__PARTY_SLEEP:
        dibsx_cond_wait(&b->cond, &b->cl->mutex, until);
        break;
    case DIBS__PARTY_DONE:
        break;
    }
    return DIBS_OK;
}

static dibs_status fail_kind(const dibs_barrier *b, dibs_error *err)
{
    const char *name = dibs__name_short(b->cl, b->name);

    if (b->answer.parties == 0 || b->answer.live == 0)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a latch or a group now, not a barrier; use "
                          "another name",
                          name);
    return dibsx_fail(err, DIBS_MISMATCH,
                      "the barrier `%s` has %u parties, not %u; give all "
                      "parties the same number, or use another name",
                      name, (unsigned)b->answer.parties,
                      (unsigned)b->machine.need);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status fail_broken(dibs_barrier *b, dibs_error *err)
{
    dibs__barrier_roll *after =
        b->before && !b->cl->closing ? dibsx_zalloc(sizeof(*after)) : NULL;
    char reason[REASON_MAX];

    if (after)
        take_roll(b, after);
    dibs__barrier_roll_broken(b->before, after, b->machine.need, reason,
                              sizeof(reason));
    dibsx_free(after);
    return dibsx_fail(err, DIBS_BROKEN, "the barrier `%s` broke%s",
                      dibs__name_short(b->cl, b->name), reason);
}

static dibs_status fail_late(const dibs_barrier *b, dibs_error *err)
{
    char reason[REASON_MAX];

    if (b->cl->closing || b->cancelled)
        return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
    if (b->failure.status != DIBS_OK)
        return dibsx_fail_at(err, DIBS_UNAVAIL, b->failure.origin, "%s",
                             b->failure.message);
    dibs__barrier_roll_late(b->before, b->machine.need, reason, sizeof(reason));
    return dibsx_fail(err, DIBS_TIMEOUT,
                      "the barrier `%s` did not open in time%s",
                      dibs__name_short(b->cl, b->name), reason);
}

/* The outcome of a call that has ended. Locks: cl->mutex, let go meanwhile. */
static dibs_status tell_outcome(dibs_barrier *b, dibs_error *err)
{
    const char *name = dibs__name_short(b->cl, b->name);

    switch (b->machine.rc) {
    case DIBS_OK:
        return DIBS_OK;
    case DIBS_STALE:
        return fail_broken(b, err);
    case DIBS_TIMEOUT:
        return fail_late(b, err);
    case DIBS_MISMATCH:
        return fail_kind(b, err);
    case DIBS_BUSY:
        return dibsx_fail(err, DIBS_BUSY,
                          "the barrier `%s` has all its %u parties; end one, "
                          "or give all a larger number",
                          name, (unsigned)b->machine.need);
    case DIBS_LOST:
        return dibsx_fail(err, DIBS_LOST,
                          "the seat at the barrier `%s` has ended: it was not "
                          "kept in time, or the store lost it",
                          name);
    case DIBS_UNKNOWN:
        return dibsx_fail_at(err, DIBS_UNKNOWN, b->failure.origin,
                             "the arrival at the barrier `%s` may count until "
                             "its seat ends: %s",
                             name, b->failure.message);
    default:
        return dibsx_fail_at(err, b->machine.rc, b->failure.origin, "%s",
                             b->failure.message);
    }
}

dibs_status dibs__barrier_call(dibs_barrier *b, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibs_error unkept;
    dibs_status rc = DIBS_OK;

    b->late_roll = false;
    b->failure.status = DIBS_OK;
    b->roll_at = 0;
    if (b->before)
        b->before->seen = false;
    dibs__party_call(&b->machine,
                     b->wait_ms > 0 ? dibsx_after_ms(now, b->wait_ms)
                                    : DIBSX_NEVER,
                     now);
    while (b->machine.calling) {
        dibs_status failed = proceed(b, &unkept);

        if (failed != DIBS_OK)
            rc = failed;
    }
    (void)keep_seat(b, NULL);
    if (rc == DIBS_OK || b->machine.rc == DIBS_OK)
        return tell_outcome(b, err);
    return dibsx_fail_at(err, rc, unkept.origin, "%s", unkept.message);
}
