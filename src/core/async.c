/* async.c - asynchronous calls; see async.h.
 *
 * Owns the runners and the lists of calls. Callbacks run on a runner or on the
 * program's thread, without the mutex. */
/* SPDX-License-Identifier: MIT */
#include "core/async.h"

#include "base/alloc.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/thread.h"
#include "base/uncancel.h"
#include "core/lock/acquire.h"
#include "core/lock/handle.h"
#include "core/lock/publish.h"
#include "core/lock/release.h"
#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void init_list(dibs__call_list *list)
{
    list->first = NULL;
    list->end = &list->first;
    list->count = 0;
}

static void append_call(dibs__call_list *list, dibs_lock *lock)
{
    lock->call.next = NULL;
    lock->call.at = list->end;
    *list->end = lock;
    list->end = &lock->call.next;
    list->count++;
}

static void prepend_call(dibs__call_list *list, dibs_lock *lock)
{
    lock->call.next = list->first;
    lock->call.at = &list->first;
    if (list->first)
        list->first->call.at = &lock->call.next;
    else
        list->end = &lock->call.next;
    list->first = lock;
    list->count++;
}

static void unlink_from(dibs__call_list *list, dibs_lock *lock)
{
    dibs__call *call = &lock->call;

    *call->at = call->next;
    if (call->next)
        call->next->call.at = call->at;
    else
        list->end = call->at;
    call->at = NULL;
    list->count--;
}

static dibs_lock *pop_call(dibs__call_list *list)
{
    dibs_lock *lock = list->first;

    if (lock)
        unlink_from(list, lock);
    return lock;
}

/* A call has ended: wakes the thread that runs its callback. */
static void announce_ended(dibs__async *as, dibs__runner *rn)
{
    if (as->fd >= 0) {
        dibsx_event_set(as->fd);
        pthread_cond_broadcast(&rn->cl->over);
        return;
    }
    for (size_t i = 0; !rn->idle && i < DIBS__RUNNERS; i++)
        if (as->runners[i].idle)
            rn = &as->runners[i];
    pthread_cond_signal(&rn->cond);
}

/* The call is over and the handle free for another. */
static dibs_status finish_call(dibs_lock *lock)
{
    dibs__call *call = &lock->call;
    dibs__async *as = lock->cl->async;
    dibs_status rc = call->kind == DIBS__CALL_ACQUIRE
                         ? dibs__lock_acquire_end(lock)
                         : call->rc;

    assert(!call->at && !dibs__timer_is_set(&call->alarm));
    call->state = DIBS__CALL_NONE;
    lock->busy = false;
    as->calls--;
    pthread_cond_broadcast(&lock->cond);
    pthread_cond_broadcast(&lock->cl->over);
    dibs__lock_unref(lock);
    return rc;
}

/* Queues the callback of a call whose status is known. While a callback of the
 * same lock runs, the call waits for the end of that one. */
static void end_call(dibs_lock *lock)
{
    dibs__call *call = &lock->call;
    dibs__async *as = lock->cl->async;

    if (call->muted) {
        (void)finish_call(lock);
        return;
    }
    call->state = DIBS__CALL_ENDED;
    if (call->calling)
        return;
    append_call(&as->ended, lock);
    announce_ended(as, call->runner);
}

static void make_ready(dibs_lock *lock)
{
    dibs__call *call = &lock->call;

    call->state = DIBS__CALL_READY;
    /* Releases go first: another client may wait for the lease. */
    if (call->kind == DIBS__CALL_RELEASE)
        prepend_call(&call->runner->ready, lock);
    else
        append_call(&call->runner->ready, lock);
    pthread_cond_signal(&call->runner->cond);
    if (call->muted)
        pthread_cond_broadcast(&lock->cond);
}

static void wake_sleeper(dibs_client *cl, dibs__timer *timer, dibsx_nsec now);

/* Sorts an acquire by its next step: sleep until the alarm, end, or run. */
static void place_call(dibs_lock *lock, dibs__acquire_step step)
{
    if (step == DIBS__ACQUIRE_SLEEP) {
        lock->call.state = DIBS__CALL_SLEEPING;
        lock->call.alarm.fire = wake_sleeper;
        dibs__timer_set(lock->cl, &lock->call.alarm,
                        lock->acquire.machine.wake_at);
    } else if (step == DIBS__ACQUIRE_DONE) {
        end_call(lock);
    } else {
        make_ready(lock);
    }
}

/* Ends the sleep of an acquire before its alarm. */
static void wake_call(dibs_lock *lock)
{
    if (lock->call.state != DIBS__CALL_SLEEPING)
        return;
    dibs__timer_set(lock->cl, &lock->call.alarm, DIBSX_NEVER);
    lock->call.state = DIBS__CALL_RUNNING;
    place_call(lock, dibs__lock_acquire_next(lock));
}

static void wake_sleeper(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    (void)cl;
    (void)now;
    wake_call(
        (dibs_lock *)(void *)((char *)timer - offsetof(dibs_lock, call.alarm)));
}

/* Locks: cl->mutex, let go for the step. */
static void send_release(dibs_lock *lock)
{
    dibs__call *call = &lock->call;

    call->rc = dibs__release_send(&call->release, 0, &lock->why);
    call->kind = DIBS__CALL_ANSWERED;
}

/* Runs one step of a call that was removed from its list. Locks: cl->mutex, let
 * go for the step. */
static void run_step(dibs_lock *lock)
{
    dibs__acquire_step step;

    lock->call.state = DIBS__CALL_RUNNING;
    if (lock->call.kind == DIBS__CALL_RELEASE) {
        send_release(lock);
        end_call(lock);
        return;
    }
    step = dibs__lock_acquire_next(lock);
    if (step != DIBS__ACQUIRE_SLEEP && step != DIBS__ACQUIRE_DONE) {
        dibs__lock_acquire_do(lock, step);
        step = dibs__lock_acquire_next(lock);
    }
    place_call(lock, step);
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
    dibs__async *as = cl->async;
    dibs__call *call = &lock->call;

    call->calling = true;
    call->caller = pthread_self();
    as->calling++;
    pthread_mutex_unlock(&cl->mutex);
    if (out->is_acquire)
        dibs__lock_acquire_trace(lock, out->rc, out->started_at, out->tries);
    out->done(lock, out->rc, &out->why, out->arg);
    pthread_mutex_lock(&cl->mutex);
    as->calling--;
    call->calling = false;
    if (call->state == DIBS__CALL_ENDED) {
        append_call(&as->ended, lock);
        announce_ended(as, call->runner);
    }
    pthread_cond_broadcast(&lock->cond);
    pthread_cond_broadcast(&cl->over);
}

/* Ends a call that was removed from the list of ended calls. False when no
 * callback ran: there is none, or the lease that was granted ran out in that
 * list and the acquire goes on. Locks: cl->mutex, let go for the callback. */
static bool deliver_call(dibs_lock *lock)
{
    dibs__call *call = &lock->call;
    outcome out = {.done = call->done,
                   .arg = call->arg,
                   .is_acquire = call->kind == DIBS__CALL_ACQUIRE,
                   .started_at = lock->acquire.machine.started_at,
                   .tries = lock->acquire.machine.tries};
    dibs__acquire_step step =
        out.is_acquire ? dibs__lock_acquire_next(lock) : DIBS__ACQUIRE_DONE;

    call->state = DIBS__CALL_RUNNING;
    if (step != DIBS__ACQUIRE_DONE) {
        place_call(lock, step);
        return false;
    }
    lock->refs++;
    out.rc = finish_call(lock);
    if (out.rc != DIBS_OK)
        out.why = lock->why;
    if (out.done)
        call_back(lock, &out);
    dibs__lock_unref(lock);
    return out.done != NULL;
}

/* Thread: a runner. */
static void *runner_main(void *arg)
{
    dibs__runner *rn = arg;
    dibs_client *cl = rn->cl;
    dibs__async *as = cl->async;
    dibs_lock *lock;

    pthread_mutex_lock(&cl->mutex);
    while (!as->stopping) {
        if (as->fd < 0 && (lock = pop_call(&as->ended)) != NULL) {
            (void)deliver_call(lock);
        } else if ((lock = pop_call(&rn->ready)) != NULL) {
            run_step(lock);
        } else {
            rn->idle = true;
            pthread_cond_wait(&rn->cond, &cl->mutex);
            rn->idle = false;
        }
    }
    pthread_mutex_unlock(&cl->mutex);
    return NULL;
}

static void stop_runners(dibs_client *cl)
{
    dibs__async *as = cl->async;

    as->stopping = true;
    for (size_t i = 0; i < DIBS__RUNNERS; i++)
        pthread_cond_signal(&as->runners[i].cond);
    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < DIBS__RUNNERS; i++)
        if (as->runners[i].running)
            pthread_join(as->runners[i].thread, NULL);
    pthread_mutex_lock(&cl->mutex);
}

/* Waits for the calls, which are cancelled, and for their callbacks, then ends
 * the runners. Where the program would run the callbacks, this thread does.
 * Locks: cl->mutex, let go meanwhile. */
static void close_calls(dibs_client *cl, dibs__attached *at)
{
    dibs__async *as = (dibs__async *)(void *)at;
    dibs_lock *lock;

    while (as->calls > 0 || as->calling > 0) {
        lock = as->fd >= 0 ? pop_call(&as->ended) : NULL;
        if (lock)
            (void)deliver_call(lock);
        else
            pthread_cond_wait(&cl->over, &cl->mutex);
    }
    stop_runners(cl);
}

static void free_async(dibs_client *cl, dibs__attached *at)
{
    dibs__async *as = (dibs__async *)(void *)at;

    cl->async = NULL;
    if (as->fd >= 0)
        close(as->fd);
    for (size_t i = 0; i < DIBS__RUNNERS; i++)
        pthread_cond_destroy(&as->runners[i].cond);
    dibsx_free(as);
}

/* Made when it is first needed; NULL: no memory. Locks: cl->mutex. */
static dibs__async *async_of(dibs_client *cl)
{
    dibs__async *as = cl->async;

    if (as || (as = dibsx_zalloc(sizeof(*as))) == NULL)
        return as;
    as->fd = -1;
    init_list(&as->ended);
    for (size_t i = 0; i < DIBS__RUNNERS; i++) {
        as->runners[i].cl = cl;
        init_list(&as->runners[i].ready);
        pthread_cond_init(&as->runners[i].cond, NULL);
    }
    as->attached.close = close_calls;
    as->attached.free = free_async;
    dibs__attach(cl, &as->attached);
    cl->async = as;
    return as;
}

/* The runner of the lock's name, running. Locks: cl->mutex. */
static dibs_status have_runner(dibs_lock *lock, dibs_error *err)
{
    dibs__async *as = async_of(lock->cl);
    dibs__runner *rn;
    int failed;

    if (lock->cl->closing)
        return dibsx_fail(err, DIBS_INVALID, "the client is being closed");
    if (!as)
        return dibsx_nomem(err, "an asynchronous call");
    rn = &as->runners[dibsx_hash_text(lock->name) % DIBS__RUNNERS];
    if (!rn->running) {
        failed = dibsx_thread_start(&rn->thread, runner_main, rn);
        if (failed)
            return dibsx_fail_at(
                err, DIBS_NOMEM, dibsx_errno_name(failed),
                "cannot start a thread for asynchronous calls");
        rn->running = true;
    }
    lock->call.runner = rn;
    return DIBS_OK;
}

/* Enters the handle for a call that goes on after it has returned. On DIBS_OK the
 * client's mutex is held. */
static dibs_status enter_call(dibs_lock *lock, dibs_error *err)
{
    dibs_status rc = dibs__lock_enter(lock, err);

    if (rc != DIBS_OK)
        return rc;
    rc = have_runner(lock, err);
    if (rc == DIBS_OK)
        rc = dibs__timer_ready(lock->cl, err);
    if (rc != DIBS_OK)
        dibs__lock_exit(lock);
    return rc;
}

static void begin_call(dibs_lock *lock, dibs__call_kind kind,
                       dibs_async_fn *done, void *arg)
{
    dibs__call *call = &lock->call;

    call->state = DIBS__CALL_RUNNING;
    call->kind = kind;
    call->done = done;
    call->arg = arg;
    lock->refs++;
    lock->cl->async->calls++;
}

dibs_status dibs_lock_acquire_async(dibs_lock *lock, dibs_async_fn *done,
                                    void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__acquire_caller way = {.wake = wake_call};
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
    way.wait_ms = lock->opts.wait_ms;
    way.retries = lock->opts.retries;
    rc = dibs__lock_acquire_start(lock, &way, &over);
    begin_call(lock, over ? DIBS__CALL_ANSWERED : DIBS__CALL_ACQUIRE, done,
               arg);
    lock->call.rc = rc;
    if (over)
        end_call(lock);
    else
        place_call(lock, dibs__lock_acquire_next(lock));
    pthread_mutex_unlock(mutex);
    return DIBS_OK;
}

dibs_status dibs_lock_release_async(dibs_lock *lock, dibs_async_fn *done,
                                    void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__call *call;
    pthread_mutex_t *mutex;
    dibs_status rc = enter_call(lock, err);

    if (rc != DIBS_OK)
        return rc;
    assert(lock);
    mutex = &lock->cl->mutex;
    call = &lock->call;
    lock->why = (dibs_error){0};
    rc = dibs__release_begin(lock, &call->release, &lock->why);
    begin_call(lock,
               call->release.holder ? DIBS__CALL_RELEASE : DIBS__CALL_ANSWERED,
               done, arg);
    call->rc = rc;
    if (call->release.holder)
        make_ready(lock);
    else
        end_call(lock);
    pthread_mutex_unlock(mutex);
    return DIBS_OK;
}

/* Removes a call from the list or timer that it waits in. */
static void detach_call(dibs_lock *lock)
{
    dibs__call *call = &lock->call;

    if (call->state == DIBS__CALL_READY)
        unlink_from(&call->runner->ready, lock);
    else if (call->state == DIBS__CALL_SLEEPING)
        dibs__timer_set(lock->cl, &lock->call.alarm, DIBSX_NEVER);
    else if (call->at)
        unlink_from(&lock->cl->async->ended, lock);
    call->state = DIBS__CALL_RUNNING;
}

/* Completes a call whose lock is being freed. Locks: cl->mutex, let go
 * meanwhile. */
static void finish_here(dibs_lock *lock)
{
    dibs__acquire_step step;

    detach_call(lock);
    if (lock->call.kind == DIBS__CALL_RELEASE)
        send_release(lock);
    if (lock->call.kind == DIBS__CALL_ACQUIRE)
        while ((step = dibs__lock_acquire_next(lock)) != DIBS__ACQUIRE_DONE)
            dibs__lock_acquire_do(lock, step);
    (void)finish_call(lock);
}

void dibs__async_drop(dibs_lock *lock)
{
    dibs__call *call = &lock->call;
    pthread_mutex_t *mutex = &lock->cl->mutex;

    call->muted = true;
    lock->acquire.machine.cancelled = true;
    while (call->state != DIBS__CALL_NONE)
        if (call->state == DIBS__CALL_RUNNING)
            pthread_cond_wait(&lock->cond, mutex);
        else
            finish_here(lock);
    while (call->calling && !pthread_equal(call->caller, pthread_self()))
        pthread_cond_wait(&lock->cond, mutex);
}

int dibs_async_fd(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    dibs__async *as;
    int fd;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return -1;
    pthread_mutex_lock(&cl->mutex);
    as = async_of(cl);
    if (as && as->fd < 0) {
        as->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (as->fd >= 0 && as->ended.count > 0)
            dibsx_event_set(as->fd);
    }
    fd = as ? as->fd : -1;
    pthread_mutex_unlock(&cl->mutex);
    return fd;
}

int dibs_async_timeout_ms(dibs_client *cl)
{
    bool waiting;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return -1;
    pthread_mutex_lock(&cl->mutex);
    waiting = cl->async && cl->async->fd >= 0 && cl->async->ended.count > 0;
    pthread_mutex_unlock(&cl->mutex);
    return waiting ? 0 : -1;
}

size_t dibs_async_process(dibs_client *cl)
{
    DIBSX_UNCANCEL;
    dibs__async *as;
    dibs_lock *lock;
    size_t count, ran = 0;
    uint64_t events;

    if (dibs__client_usable(cl, NULL) != DIBS_OK)
        return 0;
    pthread_mutex_lock(&cl->mutex);
    as = cl->async;
    if (as && as->fd >= 0) {
        while (read(as->fd, &events, sizeof(events)) < 0 && errno == EINTR)
            continue;
        /* Calls that end meanwhile are left for the next time. */
        for (count = as->ended.count; count > 0; count--)
            if ((lock = pop_call(&as->ended)) != NULL && deliver_call(lock))
                ran++;
        if (as->ended.count > 0)
            dibsx_event_set(as->fd);
    }
    pthread_mutex_unlock(&cl->mutex);
    return ran;
}
