/* async.c - asynchronous calls of locks; see async.h.
 *
 * Steps and callbacks run on a runner, callbacks also on the program's thread, without the
 * mutex. */
/* SPDX-License-Identifier: MIT */
#include "core/async.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/uncancel.h"
#include "core/call_group.h"
#include "core/lock/acquire.h"
#include "core/lock/handle.h"
#include "core/lock/parting.h"
#include "core/lock/publish.h"
#include "core/lock/release.h"
#include <assert.h>

static dibs__call *call_of(dibs__call_node *node)
{
    return (dibs__call *)(void *)node;
}

/* The call is over and the handle free for another. `why` (may be NULL) gets the detail of
 * an error. */
static dibs_status finish_call(dibs__call *call, dibs_error *why)
{
    dibs_lock *lock = call->lock;
    dibs_status rc = call->kind == DIBS__CALL_ACQUIRE
                         ? dibs__lock_acquire_end(lock)
                         : call->rc;

    assert(!call->node.at && !dibs__timer_is_set(&call->alarm));
    if (why && rc != DIBS_OK)
        *why = call->why;
    dibs__timer_unreserve(lock->cl, 1);
    lock->call = NULL;
    dibsx_free(call);
    lock->busy = false;
    dibs__client_leave(lock->cl);
    dibs__runner_leave(lock->cl);
    dibs__lock_unref(lock);
    return rc;
}

static bool deliver_call(dibs__call_node *node);

static void post_call(dibs__call *call)
{
    call->node.run = deliver_call;
    dibs__runner_post(call->runner, &call->node);
}

/* Queues the callback of a call whose status is known. While a callback of the
 * same lock runs, the call waits for the end of that one. */
static void end_call(dibs__call *call)
{
    if (call->lock->muted) {
        (void)finish_call(call, NULL);
        return;
    }
    call->state = DIBS__CALL_ENDED;
    if (call->lock->calling)
        return;
    post_call(call);
}

static bool run_step(dibs__call_node *node);

static void make_ready(dibs__call *call)
{
    call->state = DIBS__CALL_READY;
    call->node.run = run_step;
    /* Releases go first: another client may wait for the lease. */
    dibs__runner_add(call->runner, &call->node,
                     call->kind == DIBS__CALL_RELEASE);
    if (call->lock->muted)
        pthread_cond_broadcast(&call->lock->cl->over);
}

static void wake_sleeper(dibs_client *cl, dibs__timer *timer, dibsx_nsec now);

/* Sorts an acquire by its next step: sleep until the alarm, end, or run. */
static void place_call(dibs__call *call, dibs__acquire_step step)
{
    if (step == DIBS__ACQUIRE_SLEEP) {
        call->state = DIBS__CALL_SLEEPING;
        call->alarm.fire = wake_sleeper;
        dibs__timer_set(call->lock->cl, &call->alarm,
                        call->acquire.machine.wake_at);
    } else if (step == DIBS__ACQUIRE_DONE) {
        end_call(call);
    } else {
        make_ready(call);
    }
}

/* Ends the sleep of an acquire before its alarm. */
static void wake_call(dibs_lock *lock)
{
    dibs__call *call = lock->call;

    if (call->state != DIBS__CALL_SLEEPING)
        return;
    dibs__timer_set(lock->cl, &call->alarm, DIBSX_NEVER);
    call->state = DIBS__CALL_RUNNING;
    place_call(call, dibs__lock_acquire_next(lock));
}

static void wake_sleeper(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    const dibs__call *call =
        (dibs__call *)(void *)((char *)timer - offsetof(dibs__call, alarm));

    (void)cl;
    (void)now;
    wake_call(call->lock);
}

/* Locks: cl->mutex, let go for the step. */
static void send_release(dibs__call *call)
{
    call->rc = dibs__release_send(&call->release, 0, &call->why);
    call->kind = DIBS__CALL_ANSWERED;
}

/* Whether the steps of a lock may be done together with those of others. */
static bool joins_groups(const dibs_lock *lock)
{
    return lock->cl->st->ops->lease_group && lock->traits->replicas == 0;
}

/* Whether a group has a place for a step of this lock. */
static bool has_place(const dibs__call_group *gr, const dibs_lock *lock)
{
    return joins_groups(lock) &&
           atomic_load_explicit(&lock->cl->reached, memory_order_acquire) &&
           !dibs__call_group_is_full(gr, lock);
}

/* Adds the next step of a call to a group, or places a call that has none to do. False
 * when it must be done by itself, or after the group. */
static bool join_call(dibs__call_group *gr, dibs__call *call)
{
    dibs_lock *lock = call->lock;
    dibs_client *cl = lock->cl;
    dibs__acquire_step step;

    if (call->alone || !has_place(gr, lock))
        return false;
    if (call->kind == DIBS__CALL_ACQUIRE && dibs__parting_exists(lock))
        return false;
    if (call->kind == DIBS__CALL_RELEASE) {
        if (call->release.st != cl->st)
            return false;
        call->state = DIBS__CALL_RUNNING;
        dibs__call_group_leave(gr, lock, &call->release, &call->why);
        return true;
    }
    step = dibs__lock_acquire_next(lock);
    if (call->acquire.machine.on_fallback ||
        (step != DIBS__ACQUIRE_ASK && step != DIBS__ACQUIRE_SLEEP &&
         step != DIBS__ACQUIRE_DONE))
        return false;
    call->state = DIBS__CALL_RUNNING;
    if (step != DIBS__ACQUIRE_ASK || !dibs__call_group_ask(gr, lock))
        place_call(call, dibs__lock_acquire_next(lock));
    return true;
}

static bool run_parting(dibs__call_node *node);

static dibs__parting *parting_of(dibs__call_node *node)
{
    return (dibs__parting *)(void *)node;
}

/* The same for a parting. */
static bool join_parting(dibs__call_group *gr, dibs__parting *pt)
{
    const dibs_lock *lock = pt->release.holder;

    if (pt->alone || pt->sent || pt->release.st != lock->cl->st ||
        !has_place(gr, lock))
        return false;
    pt->state = DIBS__PARTING_RUNNING;
    dibs__call_group_part(gr, pt);
    return true;
}

static bool join_group(dibs__call_group *gr, dibs__call_node *node)
{
    return node->run == run_parting ? join_parting(gr, parting_of(node))
                                    : join_call(gr, call_of(node));
}

/* A release was sent with a group. If its answer was lost, it is sent again. */
static void end_release(dibs__call *call, dibs_status rc)
{
    if (rc == DIBS_UNKNOWN) {
        call->release.sent_before = call->alone = true;
        make_ready(call);
        return;
    }
    dibs__release_end(&call->release);
    call->rc = rc;
    call->kind = DIBS__CALL_ANSWERED;
    end_call(call);
}

/* Sends the group and takes its answers. Locks: cl->mutex, let go for the steps. */
static void run_group(dibs_client *cl, dibs__call_group *gr)
{
    if (gr->count == 0)
        return;
    dibs__call_group_send(gr, cl);
    for (size_t i = 0; i < gr->count; i++) {
        dibs_lock *lock = gr->locks[i];

        if (gr->partings[i]) {
            dibs__parting_answered(gr->partings[i], gr->steps[i].rc);
        } else if (gr->steps[i].leaves) {
            end_release(lock->call, gr->steps[i].rc);
        } else {
            dibs__lock_ask_answered(lock, &gr->steps[i]);
            place_call(lock->call, dibs__lock_acquire_next(lock));
        }
    }
}

static dibs__call_node *take_next(dibs__runner *rn)
{
    dibs__call_node *next = dibs__runner_take(rn, run_step);

    return next ? next : dibs__runner_take(rn, run_parting);
}

/* Does the step of a call or a parting with those that are ready behind it. False when
 * it must be done by itself. Locks: cl->mutex, let go for the steps. */
static bool
run_together(dibs__runner *rn, dibs__call_node *node, const dibs_lock *lock)
{
    dibs_client *cl = lock->cl;
    dibs__call_group *gr = rn->room;
    dibs__call_node *next;

    if (!gr && joins_groups(lock))
        gr = rn->room = dibsx_zalloc(sizeof(*gr));
    if (!gr)
        return false;
    gr->count = 0;
    if (!join_group(gr, node))
        return false;
    while ((next = take_next(rn)) != NULL)
        if (!join_group(gr, next)) {
            dibs__runner_add(rn, next, true);
            break;
        }
    run_group(cl, gr);
    return true;
}

/* Runs one step of a call that was removed from its list. Locks: cl->mutex, let
 * go for the step. */
static bool run_step(dibs__call_node *node)
{
    dibs__call *call = call_of(node);
    dibs__acquire_step step;

    if (run_together(call->runner, node, call->lock))
        return true;

    call->state = DIBS__CALL_RUNNING;
    if (call->kind == DIBS__CALL_RELEASE) {
        send_release(call);
        end_call(call);
        return true;
    }
    step = dibs__lock_acquire_next(call->lock);
    if (step != DIBS__ACQUIRE_SLEEP && step != DIBS__ACQUIRE_DONE) {
        dibs__lock_acquire_do(call->lock, step);
        step = dibs__lock_acquire_next(call->lock);
    }
    place_call(call, step);
    return true;
}

/* The same for a parting. */
static bool run_parting(dibs__call_node *node)
{
    dibs__parting *pt = parting_of(node);

    if (!run_together(pt->runner, node, pt->release.holder))
        dibs__parting_run(pt);
    return true;
}

/* How a call ended, for its callback. */
typedef struct outcome {
    dibs_async_fn *done;
    void *arg;
    dibs_status rc;
    dibs_error why;
    bool is_acquire;
    dibsx_nsec started_at;
    uint32_t tries;
} outcome;

/* Locks: cl->mutex, let go meanwhile. */
static void call_back(dibs_lock *lock, const outcome *out)
{
    dibs_client *cl = lock->cl;

    lock->calling = true;
    lock->caller = pthread_self();
    pthread_mutex_unlock(&cl->mutex);
    if (out->is_acquire)
        dibs__lock_acquire_trace(lock, out->rc, out->started_at, out->tries);
    out->done(lock, out->rc, &out->why, out->arg);
    pthread_mutex_lock(&cl->mutex);
    lock->calling = false;
    if (lock->call && lock->call->state == DIBS__CALL_ENDED)
        post_call(lock->call);
    pthread_cond_broadcast(&cl->over);
}

/* Ends a call that was removed from the list of ended calls. False when no
 * callback ran: the lease that was granted ran out in that list and the acquire goes
 * on. Locks: cl->mutex, let go for the callback. */
static bool deliver_call(dibs__call_node *node)
{
    dibs__call *call = call_of(node);
    dibs_lock *lock = call->lock;
    outcome out = {.done = call->done,
                   .arg = call->arg,
                   .is_acquire = call->kind == DIBS__CALL_ACQUIRE,
                   .started_at = call->acquire.machine.started_at,
                   .tries = call->acquire.machine.tries};
    dibs__acquire_step step =
        out.is_acquire ? dibs__lock_acquire_next(lock) : DIBS__ACQUIRE_DONE;

    call->state = DIBS__CALL_RUNNING;
    if (step != DIBS__ACQUIRE_DONE) {
        place_call(call, step);
        return false;
    }
    lock->refs++;
    out.rc = finish_call(call, &out.why);
    call_back(lock, &out);
    dibs__lock_unref(lock);
    return true;
}

/* Makes a call, with room for its alarm. Locks: cl->mutex. */
static dibs_status make_call(dibs_lock *lock, dibs__runner *rn, dibs_error *err)
{
    dibs__call *call;
    dibs_status rc = dibs__timer_ready(lock->cl, err);

    if (rc != DIBS_OK)
        return rc;
    call = dibsx_zalloc(sizeof(*call));
    if (!call || !dibs__timer_reserve(lock->cl, 1)) {
        dibsx_free(call);
        return dibsx_nomem(err, "an asynchronous call");
    }
    call->lock = lock;
    call->runner = rn;
    lock->call = call;
    return DIBS_OK;
}

/* Enters the handle and a runner. On DIBS_OK the client's mutex is held. */
static dibs_status
enter_runner(dibs_lock *lock, dibs__runner **rn, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    rc =
        dibs__runner_enter(lock->cl,
                           joins_groups(lock) ? 0 : dibsx_hash_text(lock->name),
                           rn, err);
    if (rc != DIBS_OK)
        dibs__lock_exit(lock);
    return rc;
}

static void exit_runner(dibs_lock *lock)
{
    dibs__runner_leave(lock->cl);
    dibs__lock_exit(lock);
}

/* Enters the handle for a call that goes on after it has returned. On DIBS_OK the
 * client's mutex is held. */
static dibs_status enter_call(dibs_lock *lock, dibs_error *err)
{
    dibs__runner *rn;
    dibs_status rc = enter_runner(lock, &rn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = make_call(lock, rn, err);
    if (rc != DIBS_OK)
        exit_runner(lock);
    return rc;
}

static void begin_call(dibs__call *call, dibs__call_kind kind,
                       dibs_async_fn *done, void *arg)
{
    call->state = DIBS__CALL_RUNNING;
    call->kind = kind;
    call->done = done;
    call->arg = arg;
    call->lock->refs++;
}

dibs_status dibs_lock_acquire_async(dibs_lock *lock, dibs_async_fn *done,
                                    void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__acquire_caller way = {.wake = wake_call};
    dibs__call *call;
    pthread_mutex_t *mutex;
    dibs_status rc;
    bool over;

    if (!done)
        return dibsx_fail(err, DIBS_INVALID, "there is no callback");
    rc = enter_call(lock, err);
    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    mutex = &lock->cl->mutex;
    call = lock->call;
    way.wait_ms = lock->traits->opts.wait_ms;
    way.retries = lock->traits->opts.retries;
    way.room = &call->acquire;
    way.why = &call->why;
    rc = dibs__lock_acquire_start(lock, &way, &over);
    begin_call(call, over ? DIBS__CALL_ANSWERED : DIBS__CALL_ACQUIRE, done,
               arg);
    call->rc = rc;
    if (over)
        end_call(call);
    else
        place_call(call, dibs__lock_acquire_next(lock));
    pthread_mutex_unlock(mutex);
    return DIBS_OK;
}

/* The handle is free at once. */
static dibs_status release_unawaited(dibs_lock *lock, dibs_error *err)
{
    dibs__runner *rn;
    dibs_status rc = enter_runner(lock, &rn, err);

    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    rc = dibs__parting_begin(lock, rn, run_parting, err);
    if (rc != DIBS_OK)
        exit_runner(lock);
    else
        dibs__lock_exit(lock);
    return rc;
}

dibs_status dibs_lock_release_async(dibs_lock *lock, dibs_async_fn *done,
                                    void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__call *call;
    pthread_mutex_t *mutex;
    dibs_status rc;

    if (!done)
        return release_unawaited(lock, err);
    rc = enter_call(lock, err);
    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    mutex = &lock->cl->mutex;
    call = lock->call;
    rc = dibs__release_begin(lock, &call->release, &call->why);
    begin_call(call,
               call->release.holder ? DIBS__CALL_RELEASE : DIBS__CALL_ANSWERED,
               done, arg);
    call->rc = rc;
    if (call->release.holder)
        make_ready(call);
    else
        end_call(call);
    pthread_mutex_unlock(mutex);
    return DIBS_OK;
}

/* Removes a call from the list or timer that it waits in. */
static void detach_call(dibs__call *call)
{
    if (call->state == DIBS__CALL_READY)
        (void)dibs__runner_remove(call->runner, &call->node);
    else if (call->state == DIBS__CALL_SLEEPING)
        dibs__timer_set(call->lock->cl, &call->alarm, DIBSX_NEVER);
    else
        (void)dibs__runner_unpost(call->runner, &call->node);
    call->state = DIBS__CALL_RUNNING;
}

/* Completes a call whose lock is being freed. Locks: cl->mutex, let go
 * meanwhile. */
static void finish_here(dibs__call *call)
{
    dibs_lock *lock = call->lock;
    dibs__acquire_step step;

    detach_call(call);
    if (call->kind == DIBS__CALL_RELEASE)
        send_release(call);
    if (call->kind == DIBS__CALL_ACQUIRE)
        while ((step = dibs__lock_acquire_next(lock)) != DIBS__ACQUIRE_DONE)
            dibs__lock_acquire_do(lock, step);
    (void)finish_call(call, NULL);
}

void dibs__async_drop(dibs_lock *lock)
{
    dibs_client *cl = lock->cl;

    lock->muted = true;
    if (lock->acquire)
        lock->acquire->machine.cancelled = true;
    while (lock->call)
        if (lock->call->state == DIBS__CALL_RUNNING)
            pthread_cond_wait(&cl->over, &cl->mutex);
        else
            finish_here(lock->call);
    while (lock->calling && !pthread_equal(lock->caller, pthread_self()))
        pthread_cond_wait(&cl->over, &cl->mutex);
}
