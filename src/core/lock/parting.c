/* parting.c - partings: releases for which nobody waits; see parting.h.
 *
 * Runs on the thread that releases, on one that asks for the name, or on a runner. */
/* SPDX-License-Identifier: MIT */
#include "core/lock/parting.h"

#include "base/alloc.h"
#include "base/cond.h"
#include "base/hash.h"
#include "core/log.h"
#include <string.h>

/* The answer to a posted release is looked for after this long. */
enum { LOOK_MS = 10 };

static dibs__parting *parting_of(dibsx_table_node *node)
{
    return (dibs__parting *)(void *)((char *)node -
                                     offsetof(dibs__parting, by_name));
}

static void free_parting(dibs_client *cl, dibs__parting *pt)
{
    dibs__timer_unreserve(cl, 1);
    dibsx_free(pt);
    dibs__runner_leave(cl);
}

/* It is over. Its error has nowhere to go but to the log. Locks: cl->mutex, let go for
 * the log. */
static void end_parting(dibs__parting *pt, dibs_status rc)
{
    dibs_client *cl = pt->release.holder->cl;

    if (rc != DIBS_OK && rc != DIBS_LOST) {
        pthread_mutex_unlock(&cl->mutex);
        dibs__log(cl, DIBS_LOG_WARN, "release", "%s: %s",
                  pt->release.holder->name, pt->why.message);
        pthread_mutex_lock(&cl->mutex);
    }
    dibsx_table_remove(&cl->partings, &pt->by_name);
    dibs__release_end(&pt->release);
    free_parting(cl, pt);
}

static void make_ready(dibs__parting *pt)
{
    pt->state = DIBS__PARTING_READY;
    dibs__runner_add(pt->runner, &pt->node, true);
    pthread_cond_broadcast(&pt->release.holder->cl->over);
}

static void look_for_answer(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    (void)cl;
    (void)now;
    make_ready((dibs__parting *)(void *)((char *)timer -
                                         offsetof(dibs__parting, alarm)));
}

/* Posts the release, if the store can. Where the runner has work, it makes groups, which
 * cost less than a request for each. Locks: cl->mutex, let go meanwhile. */
static bool post_release(dibs__parting *pt)
{
    const dibs_lock *holder = pt->release.holder;
    dibs_client *cl = holder->cl;
    dibs__store *st = pt->release.st;
    dibsx_nsec now = dibsx_now();

    /* Asks that wait for replicas have connections of their own. */
    if (!st->ops->leave || st != cl->st || holder->traits->replicas > 0 ||
        !dibs__runner_is_idle(pt->runner))
        return false;
    pthread_mutex_unlock(&cl->mutex);
    pt->sent = st->ops->leave->post(st, &pt->release.leave,
                                    dibs__client_deadline(cl, now));
    pthread_mutex_lock(&cl->mutex);
    if (!pt->sent)
        return false;
    pt->state = DIBS__PARTING_POSTED;
    pt->alarm.fire = look_for_answer;
    dibs__timer_set(cl, &pt->alarm, dibsx_after_ms(now, LOOK_MS));
    return true;
}

dibs_status
dibs__parting_begin(dibs_lock *lock, dibs__runner *rn,
                    bool (*run)(dibs__call_node *node), dibs_error *err)
{
    dibs_client *cl = lock->cl;
    dibs__parting *pt;
    dibs_status rc = dibs__timer_ready(cl, err);

    if (rc != DIBS_OK)
        return rc;
    pt = dibsx_zalloc(sizeof(*pt));
    if (!pt || !dibs__timer_reserve(cl, 1)) {
        dibsx_free(pt);
        return dibsx_nomem(err, "an asynchronous call");
    }
    pt->runner = rn;
    pt->node.run = run;
    (void)dibs__release_begin(lock, &pt->release, &pt->why);
    if (!pt->release.holder) {
        free_parting(cl, pt);
        return DIBS_OK;
    }
    if (!post_release(pt))
        make_ready(pt);
    dibsx_table_add(&cl->partings, &pt->by_name,
                    dibsx_hash_text(pt->release.holder->name));
    return DIBS_OK;
}

/* Whether this answer means that the release is to be sent again. */
static bool must_repeat(dibs__parting *pt, dibs_status rc)
{
    if (rc != DIBS_UNKNOWN && rc != DIBS_STALE)
        return false;
    if (rc == DIBS_UNKNOWN)
        pt->release.sent_before = true;
    /* The server may lack the script that was posted: it is the one to load. */
    pt->release.leave.alone = false;
    pt->alone = true;
    pt->release.holder->cl->parted_late++;
    return true;
}

void dibs__parting_answered(dibs__parting *pt, dibs_status rc)
{
    if (must_repeat(pt, rc))
        make_ready(pt);
    else
        end_parting(pt, rc);
}

/* Waits for the answer to a posted release. Locks: cl->mutex, let go meanwhile. */
static dibs_status await_answer(dibs__parting *pt)
{
    dibs__store *st = pt->release.st;
    pthread_mutex_t *mutex = &pt->release.holder->cl->mutex;
    dibs_status rc;

    pthread_mutex_unlock(mutex);
    (void)st->ops->leave->end(st, pt->sent, true, &rc, &pt->why);
    dibs__release_trace(&pt->release, rc);
    pthread_mutex_lock(mutex);
    pt->sent = NULL;
    return rc;
}

void dibs__parting_run(dibs__parting *pt)
{
    dibs_status rc;

    pt->state = DIBS__PARTING_RUNNING;
    if (pt->sent) {
        rc = await_answer(pt);
        if (!must_repeat(pt, rc)) {
            end_parting(pt, rc);
            return;
        }
    }
    end_parting(pt, dibs__release_try(&pt->release, 0, &pt->why));
}

/* The first with the name of the lock from this node on that is to be sent yet. If an ask
 * was refused, one whose answer another thread takes may be as well. */
static dibs__parting *find_unsent(dibsx_table_node *node, const dibs_lock *lock,
                                  const dibs__store *st, bool refused)
{
    for (; node; node = node->next) {
        dibs__parting *pt = parting_of(node);
        bool due = !pt->sent || (refused && pt->state == DIBS__PARTING_RUNNING);

        if (due && (!st || pt->release.st == st) &&
            strcmp(pt->release.holder->name, lock->name) == 0)
            return pt;
    }
    return NULL;
}

static dibsx_table_node *find_chain(const dibs_lock *lock)
{
    const dibsx_table *table = &lock->cl->partings;

    return table->count > 0
               ? dibsx_table_find(table, dibsx_hash_text(lock->name))
               : NULL;
}

bool dibs__parting_exists(const dibs_lock *lock)
{
    dibsx_table_node *node = find_chain(lock);

    while (node &&
           strcmp(parting_of(node)->release.holder->name, lock->name) != 0)
        node = node->next;
    return node != NULL;
}

/* Removes it from the list or timer that it waits in. */
static void detach_parting(dibs__parting *pt)
{
    if (pt->state == DIBS__PARTING_READY)
        (void)dibs__runner_remove(pt->runner, &pt->node);
    else
        dibs__timer_set(pt->release.holder->cl, &pt->alarm, DIBSX_NEVER);
    pt->state = DIBS__PARTING_RUNNING;
}

/* Sends it from the thread of an ask, which has until a moment. False: the time was too
 * short, and its runner goes on. Locks: cl->mutex, let go meanwhile. */
static bool send_here(dibs__parting *pt, dibsx_nsec until)
{
    int64_t left_ms = dibsx_wait_ms(until, dibsx_now());
    bool hurried = left_ms < pt->release.holder->cl->timeout_ms;
    dibs_status rc;

    if (left_ms == 0)
        return false;
    detach_parting(pt);
    rc = dibs__release_try(&pt->release, hurried ? left_ms : 0, &pt->why);
    if (!hurried || (rc != DIBS_UNKNOWN && rc != DIBS_UNAVAIL)) {
        end_parting(pt, rc);
        return true;
    }
    if (rc == DIBS_UNKNOWN)
        pt->release.sent_before = true;
    pt->alone = true;
    make_ready(pt);
    return false;
}

static void settle_partings(dibs_lock *lock, const dibs__store *st,
                            bool refused, dibsx_nsec until)
{
    dibs_client *cl = lock->cl;
    dibs__parting *pt;

    while ((pt = find_unsent(find_chain(lock), lock, st, refused)) != NULL &&
           dibsx_now() < until) {
        if (pt->state == DIBS__PARTING_RUNNING)
            dibsx_cond_wait(&cl->over, &cl->mutex, until);
        else if (!send_here(pt, until))
            return;
    }
}

void dibs__parting_settle(dibs_lock *lock, const dibs__store *st,
                          dibsx_nsec until)
{
    settle_partings(lock, st, false, until);
}

/* Takes the answer of one with the name of the lock, if one is in. Locks: cl->mutex, let
 * go for the log. */
static bool take_answer(const dibs_lock *lock)
{
    dibsx_table_node *node = find_chain(lock);

    for (; node; node = node->next) {
        dibs__parting *pt = parting_of(node);
        dibs__store *st = pt->release.st;
        dibs_status rc;

        if (!pt->sent || pt->state == DIBS__PARTING_RUNNING ||
            strcmp(pt->release.holder->name, lock->name) != 0 ||
            !st->ops->leave->end(st, pt->sent, false, &rc, &pt->why))
            continue;
        pt->sent = NULL;
        detach_parting(pt);
        pthread_mutex_unlock(&lock->cl->mutex);
        dibs__release_trace(&pt->release, rc);
        pthread_mutex_lock(&lock->cl->mutex);
        dibs__parting_answered(pt, rc);
        return true;
    }
    return false;
}

void dibs__parting_after_ask(dibs_lock *lock, const dibs__store *st,
                             bool refused, dibsx_nsec until)
{
    while (take_answer(lock))
        continue;
    if (refused)
        settle_partings(lock, st, true, until);
}
