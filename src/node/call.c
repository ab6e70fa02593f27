/* call.c - see call.h. Owns the pool: its threads, and calls until they are taken in. */
/* SPDX-License-Identifier: MIT */
#include "node/call.h"

#include "base/alloc.h"
#include "base/cond.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/thread.h"
#include "node/call_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t work;    /* a call waits, or the pool closes */
    pthread_cond_t sooner;  /* the clock is to be looked at sooner */
    dibs_run *first, *last; /* calls that wait for a thread */
    size_t waiting;         /* how many these are */
    dibs_run *running, *done;
    size_t idle, thread_count;
    pthread_t *threads; /* as many as slots */
    pthread_t clock;
    bool closes;
    bool abort_stuck;
    dibs__call_belief belief;
    int done_fd;
} pool;

/* ---- threads that call */

static void remove_call(dibs_run **list, const dibs_run *call)
{
    while (*list && *list != call)
        list = &(*list)->next;
    if (*list)
        *list = (*list)->next;
}

/* Locks: pl->mutex. NULL: the pool closes. */
static dibs_run *take_call(pool *pl)
{
    dibs_run *call;

    pl->idle++;
    while (!pl->first && !pl->closes)
        pthread_cond_wait(&pl->work, &pl->mutex);
    pl->idle--;
    call = pl->first;
    if (call) {
        pl->first = call->next;
        pl->waiting--;
        call->next = pl->running;
        pl->running = call;
        pthread_cond_signal(&pl->sooner);
    }
    return call;
}

static void *make_calls(void *arg)
{
    pool *pl = arg;
    dibs_run *call;

    pthread_mutex_lock(&pl->mutex);
    while ((call = take_call(pl)) != NULL) {
        dibs_status rc;

        pthread_mutex_unlock(&pl->mutex);
        rc = call->fn(call, call->arg, &call->err);
        pthread_mutex_lock(&pl->mutex);
        call->rc = rc;
        remove_call(&pl->running, call);
        call->next = pl->done;
        pl->done = call;
        dibsx_event_set(pl->done_fd);
    }
    pthread_mutex_unlock(&pl->mutex);
    return NULL;
}

/* ---- the clock */

/* Locks: pl->mutex. The first reason stays. */
static void tell_call(dibs_run *call, dibs__reason why)
{
    if (atomic_load(&call->why))
        return;
    call->told_at = dibsx_now();
    atomic_store(&call->why, (int)why);
    dibsx_event_set(call->stop_fd);
}

/* A call that should stop may run no longer than this. Locks: pl->mutex. */
static dibsx_nsec stuck_at(const pool *pl, const dibs_run *call)
{
    dibsx_nsec at = dibsx_after_ms(call->told_at, call->kill_after_ms);
    dibsx_nsec valid_until = atomic_load(&pl->belief.valid_until);

    return !call->outlives && valid_until < at ? valid_until : at;
}

/* Tells what is over, and returns when to look again. Locks: pl->mutex. */
static dibsx_nsec look_at_clock(pool *pl)
{
    dibsx_nsec now = dibsx_now(), next = DIBSX_NEVER;
    dibsx_nsec go_until = atomic_load(&pl->belief.go_until);

    for (dibs_run *call = pl->running; call; call = call->next) {
        dibsx_nsec at = call->timeout_at;

        if (!call->outlives && go_until < at)
            at = go_until;
        if (!atomic_load(&call->why) && now >= at)
            tell_call(call, now >= call->timeout_at ? DIBS__REASON_TIMEOUT
                                                    : DIBS__REASON_LOST);
        if (atomic_load(&call->why)) {
            at = pl->abort_stuck ? stuck_at(pl, call) : DIBSX_NEVER;
            if (now >= at) {
                (void)fprintf(stderr,
                              "dibs: the function of %s/%s does not stop; the "
                              "process ends\n",
                              call->id, call->step);
                abort();
            }
        }
        if (at < next)
            next = at;
    }
    return next;
}

static void *watch_clock(void *arg)
{
    pool *pl = arg;

    pthread_mutex_lock(&pl->mutex);
    while (!pl->closes) {
        dibsx_nsec next = look_at_clock(pl);

        if (next == DIBSX_NEVER)
            pthread_cond_wait(&pl->sooner, &pl->mutex);
        else
            dibsx_cond_wait(&pl->sooner, &pl->mutex, next);
    }
    pthread_mutex_unlock(&pl->mutex);
    return NULL;
}

/* ---- the pool */

static void free_pool(pool *pl)
{
    if (pl->done_fd >= 0)
        close(pl->done_fd);
    pthread_cond_destroy(&pl->sooner);
    pthread_cond_destroy(&pl->work);
    pthread_mutex_destroy(&pl->mutex);
    dibsx_free(pl->threads);
    dibsx_free(pl);
}

static pool *make_pool(size_t slots)
{
    pool *pl = dibsx_zalloc(sizeof(*pl));

    if (!pl)
        return NULL;
    pl->threads = dibsx_zalloc_n(slots, sizeof(*pl->threads));
    if (!pl->threads || !dibsx_cond_init(&pl->work)) {
        dibsx_free(pl->threads);
        dibsx_free(pl);
        return NULL;
    }
    if (!dibsx_cond_init(&pl->sooner)) {
        pthread_cond_destroy(&pl->work);
        dibsx_free(pl->threads);
        dibsx_free(pl);
        return NULL;
    }
    pthread_mutex_init(&pl->mutex, NULL);
    pl->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return pl;
}

static dibs_status open_pool(dibs__node *node, dibs_error *err)
{
    pool *pl = make_pool(node->opts->slots);

    if (!pl)
        return dibsx_nomem(err, "the threads of a node");
    pl->abort_stuck = node->opts->calls->abort_stuck;
    if (pl->done_fd < 0 ||
        dibsx_thread_start(&pl->clock, watch_clock, pl) != 0) {
        free_pool(pl);
        return dibsx_nomem(err, "the threads of a node");
    }
    node->executor = pl;
    return DIBS_OK;
}

/* All calls have ended. */
static void close_pool(dibs__node *node)
{
    pool *pl = node->executor;

    pthread_mutex_lock(&pl->mutex);
    pl->closes = true;
    pthread_cond_broadcast(&pl->work);
    pthread_cond_broadcast(&pl->sooner);
    pthread_mutex_unlock(&pl->mutex);
    for (size_t i = 0; i < pl->thread_count; i++)
        pthread_join(pl->threads[i], NULL);
    pthread_join(pl->clock, NULL);
    free_pool(pl);
    node->executor = NULL;
}

static int pool_fd(const dibs__node *node)
{
    const pool *pl = node->executor;

    return pl->done_fd;
}

static int64_t return_margin_ms(const dibs__node *node)
{
    return node->opts->calls->return_ms;
}

static void believe_lease(dibs__node *node, dibsx_nsec valid_until)
{
    pool *pl = node->executor;

    atomic_store(&pl->belief.valid_until, valid_until);
    atomic_store(&pl->belief.go_until,
                 valid_until - node->opts->calls->return_ms * DIBSX_MS);
}

/* A call that should stop does not believe in the next lease. */
static bool ends_with_lease(const dibs__node_task *task)
{
    (void)task;
    return false;
}

/* ---- a call */

static const dibs__function *
find_function(const dibs__node *node, const char *name)
{
    for (size_t i = 0; i < node->opts->calls->count; i++)
        if (strcmp(node->opts->calls->functions[i].name, name) == 0)
            return &node->opts->calls->functions[i];
    return NULL;
}

static dibs_status
prepare_call(dibs__node *node, dibs__node_task *task, const dibs__run *run,
             dibs_run *call, dibs_error *err)
{
    const dibs__work *work = &task->step->work;
    const dibs__function *fn = find_function(node, work->call);
    const char *board = node->board->name;
    const pool *pl = node->executor;

    call->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!fn)
        return dibsx_fail(err, DIBS_NOTFOUND, "there is no function %s",
                          work->call);
    if (call->stop_fd < 0)
        return dibsx_fail(err, DIBS_NOMEM, "cannot open an eventfd: %s",
                          strerror(errno));
    call->task = task;
    call->fn = fn->fn;
    call->arg = fn->arg;
    call->attempt = task->attempt;
    call->belief = &pl->belief;
    call->outlives = task->job->on_lost == DIBS__LOST_FINISH;
    call->timeout_at = work->timeout_ms == DIBS__JOB_NONE
                           ? DIBSX_NEVER
                           : dibsx_after_ms(dibsx_now(), work->timeout_ms);
    call->kill_after_ms = work->kill_after_ms;
    call->fence = task->lock ? dibs_lock_fence(task->lock) : 0;
    (void)snprintf(call->id, sizeof(call->id), "%s%s%s",
                   strcmp(board, "main") == 0 ? "" : board,
                   strcmp(board, "main") == 0 ? "" : "/", run->id);
    return dibs__call_fill(call, task->job, task->step, run, err);
}

/* An idle thread that is yet to wake up has one of the calls that wait already. Locks:
 * pl->mutex. False: there is no thread for it. */
static bool queue_call(pool *pl, dibs_run *call, size_t slots)
{
    if (pl->waiting >= pl->idle && pl->thread_count < slots &&
        dibsx_thread_start(&pl->threads[pl->thread_count], make_calls, pl) == 0)
        pl->thread_count++;
    if (pl->thread_count == 0)
        return false;
    call->next = NULL;
    if (pl->first)
        pl->last->next = call;
    else
        pl->first = call;
    pl->last = call;
    pl->waiting++;
    pthread_cond_signal(&pl->work);
    return true;
}

static dibs_status start_call(dibs__node *node, dibs__node_task *task,
                              const dibs__run *run, dibs_error *err)
{
    pool *pl = node->executor;
    dibs_run *call = dibsx_zalloc(sizeof(*call));
    dibs_status rc;
    bool queued;

    if (!call)
        return dibsx_nomem(err, "a call");
    rc = prepare_call(node, task, run, call, err);
    if (rc == DIBS_OK) {
        pthread_mutex_lock(&pl->mutex);
        queued = queue_call(pl, call, node->opts->slots);
        pthread_mutex_unlock(&pl->mutex);
        if (!queued)
            rc = dibsx_nomem(err, "a thread for a call");
    }
    if (rc != DIBS_OK) {
        dibs__call_free(call);
        return rc;
    }
    task->at = call;
    task->flush_at = DIBSX_NEVER;
    return DIBS_OK;
}

static void stop_call(dibs__node *node, dibs__node_task *task, dibs__reason why,
                      bool at_once)
{
    pool *pl = node->executor;

    (void)at_once;
    pthread_mutex_lock(&pl->mutex);
    tell_call(task->at, why);
    pthread_cond_signal(&pl->sooner);
    pthread_mutex_unlock(&pl->mutex);
}

static dibs__node_task *next_ended(dibs__node *node)
{
    pool *pl = node->executor;
    dibs_run *call;

    dibsx_event_clear(pl->done_fd);
    pthread_mutex_lock(&pl->mutex);
    call = pl->done;
    if (call)
        pl->done = call->next;
    pthread_mutex_unlock(&pl->mutex);
    return call ? call->task : NULL;
}

/* Work that is done counts as done, whenever the function should have stopped. */
static dibs__reason find_reason(const dibs_run *call)
{
    dibs__reason why = (dibs__reason)atomic_load(&call->why);

    if (call->rc == DIBS_OK)
        return DIBS__REASON_NONE;
    if (why)
        return why;
    if (call->rc == DIBS_LOST)
        return DIBS__REASON_LOST;
    return call->rc == DIBS_CANCELLED ? DIBS__REASON_CANCELLED
                                      : DIBS__REASON_FAILED;
}

static void take_outcome(dibs__node *node, dibs__node_task *task)
{
    dibs_run *call = task->at;
    dibs__reason why = find_reason(call);
    const char *said = call->rc == DIBS_OK    ? ""
                       : call->err.message[0] ? call->err.message
                                              : "it said no more";

    task->outcome =
        (dibs__outcome){.reason = why, .exit_code = (int32_t)call->rc};
    if (why == DIBS__REASON_NONE && call->result_len > 0) {
        memcpy(task->result, call->result, call->result_len);
        task->outcome.result = task->result;
        task->outcome.result_len = call->result_len;
    }
    dibs__node_say(node, "%s/%s attempt %" PRIu32 ": %s%s%s", task->task.run,
                   task->task.step, task->attempt,
                   why ? dibs__reason_name(why) : "ok", said[0] ? ": " : "",
                   said);
}

/* The message of a failure is all the output that a function has. */
static void flush_message(dibs__node *node, dibs__node_task *task)
{
    const dibs_run *call = task->at;
    char text[sizeof(call->err.message) + 32];
    int len;

    if (call->rc == DIBS_OK)
        return;
    len = snprintf(text, sizeof(text), "%s: %s\n", dibs_status_name(call->rc),
                   call->err.message);
    dibs__node_keep_output(node, task, text, (size_t)len, NULL, 0, 0);
}

static void end_call(dibs__node_task *task)
{
    dibs__call_free(task->at);
}

const dibs__attempt_ops dibs__call_ops = {
    .open = open_pool,
    .close = close_pool,
    .event_fd = pool_fd,
    .believe = believe_lease,
    .margin_ms = return_margin_ms,
    .ends_with_lease = ends_with_lease,
    .start = start_call,
    .stop = stop_call,
    .next_ended = next_ended,
    .take_outcome = take_outcome,
    .flush = flush_message,
    .end = end_call,
};
