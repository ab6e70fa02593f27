/* bound.c - what a session has besides leases. See bound.h.
 *
 * Owns the bounds, and the thread that ends them. */
/* SPDX-License-Identifier: MIT */
#include "serve/bound.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"
#include <stdio.h>
#include <string.h>

/* How often to look whether sessions have ended. */
enum { LOOK_MS = 100 };

/* Locks: none of the sessions. */
static bool
has_session(dibs__serve_bounds *table, const char *session, const char *caller)
{
    dibs__serve_sessions *sessions = table->sessions;
    bool there;

    pthread_mutex_lock(&sessions->mutex);
    there = dibs__session_get(sessions, session, caller) != NULL;
    pthread_mutex_unlock(&sessions->mutex);
    return there;
}

/* A call may not have begun to wait yet, so it is cancelled again and again. Locks:
 * mutex. */
static void end_bound(dibs__bound *bound)
{
    if (bound->users > 0)
        bound->kind->cancel(bound);
    bound->over = true;
}

/* Takes out one that is over and unused; NULL: there is none. Locks: mutex. */
static dibs__bound *take_out(dibs__serve_bounds *table)
{
    for (dibs__bound **at = &table->first; *at; at = &(*at)->next) {
        dibs__bound *bound = *at;

        if (!bound->over || bound->users > 0)
            continue;
        *at = bound->next;
        return bound;
    }
    return NULL;
}

/* Locks: mutex, let go meanwhile. */
static void free_all(dibs__serve_bounds *table)
{
    dibs__bound *bound;

    while ((bound = take_out(table)) != NULL) {
        pthread_mutex_unlock(&table->mutex);
        bound->kind->free(bound);
        pthread_mutex_lock(&table->mutex);
    }
}

static void *bounds_main(void *arg)
{
    dibs__serve_bounds *table = arg;

    pthread_mutex_lock(&table->mutex);
    while (!table->stop || table->first) {
        for (dibs__bound *at = table->first; at; at = at->next)
            if (table->stop || !has_session(table, at->session, at->caller))
                end_bound(at);
        free_all(table);
        if (!table->stop || table->first)
            dibsx_cond_wait(&table->cond, &table->mutex,
                            table->first ? dibsx_after_ms(dibsx_now(), LOOK_MS)
                                         : DIBSX_NEVER);
    }
    pthread_mutex_unlock(&table->mutex);
    return NULL;
}

dibs_status
dibs__bounds_init(dibs__serve_bounds *table, dibs__serve_sessions *sessions,
                  dibs_client *client, dibs__sessions_wake_fn *wake,
                  void *wake_arg, dibs_error *err)
{
    *table = (dibs__serve_bounds){.sessions = sessions,
                                  .client = client,
                                  .wake = wake,
                                  .wake_arg = wake_arg};
    if (!dibsx_cond_init(&table->cond))
        return dibsx_nomem(err, "a condition variable");
    pthread_mutex_init(&table->mutex, NULL);
    table->made = true;
    if (dibsx_thread_start(&table->thread, bounds_main, table) != 0)
        return dibsx_nomem(err, "the thread of the sessions' handles");
    table->runs = true;
    return DIBS_OK;
}

void dibs__bounds_fini(dibs__serve_bounds *table)
{
    if (!table->made)
        return;
    pthread_mutex_lock(&table->mutex);
    table->stop = true;
    pthread_cond_broadcast(&table->cond);
    pthread_mutex_unlock(&table->mutex);
    if (table->runs)
        pthread_join(table->thread, NULL);
    pthread_cond_destroy(&table->cond);
    pthread_mutex_destroy(&table->mutex);
    table->made = table->runs = false;
}

/* Locks: mutex. */
static dibs__bound *
find_bound(dibs__serve_bounds *table, const char *session,
           const dibs__bound_kind *kind, const char *name, size_t *count)
{
    dibs__bound *found = NULL;

    *count = 0;
    for (dibs__bound *at = table->first; at; at = at->next) {
        if (at->over || strcmp(at->session, session) != 0)
            continue;
        ++*count;
        if (at->kind == kind && strcmp(at->name, name) == 0)
            found = at;
    }
    return found;
}

static void add_bound(dibs__serve_bounds *table, dibs__bound *bound,
                      const char *session, const char *caller, const char *name)
{
    bound->table = table;
    snprintf(bound->session, sizeof(bound->session), "%s", session);
    snprintf(bound->caller, sizeof(bound->caller), "%s", caller);
    snprintf(bound->name, sizeof(bound->name), "%s", name);
    bound->next = table->first;
    table->first = bound;
    pthread_cond_broadcast(&table->cond);
}

/* Locks: mutex. */
static dibs_status
make_bound(dibs__serve_bounds *table, const char *session, const char *caller,
           const char *name, size_t count, dibs__bound_make_fn *make,
           const void *arg, dibs__bound **out, dibs_error *err)
{
    if (!make)
        return dibsx_fail(err, DIBS_NOTFOUND,
                          "the session has nothing of %s in hand", name);
    if (count >= DIBS__BOUND_PER_SESSION)
        return dibsx_fail(err, DIBS_FULL,
                          "the session uses %d barriers and queues, and no "
                          "more are allowed",
                          DIBS__BOUND_PER_SESSION);
    *out = make(table, name, arg, err);
    if (!*out)
        return err->status;
    add_bound(table, *out, session, caller, name);
    return DIBS_OK;
}

dibs_status
dibs__bound_take(dibs__serve_bounds *table, const char *session,
                 const char *caller, const dibs__bound_kind *kind,
                 const char *name, dibs__bound_make_fn *make, const void *arg,
                 dibs__bound **out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t count;

    *out = NULL;
    if (strlen(name) > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INVALID, "the name is longer than %d bytes",
                          DIBS_NAME_MAX);
    pthread_mutex_lock(&table->mutex);
    if (table->stop || !has_session(table, session, caller))
        rc = dibsx_fail(err, DIBS_LOST,
                        "there is no such session of this token here");
    if (rc == DIBS_OK) {
        *out = find_bound(table, session, kind, name, &count);
        if (!*out)
            rc = make_bound(table, session, caller, name, count, make, arg, out,
                            err);
    }
    if (rc == DIBS_OK)
        (*out)->users++;
    pthread_mutex_unlock(&table->mutex);
    return rc;
}

/* Locks: mutex. */
static void drop_use(dibs__bound *bound)
{
    dibs__serve_bounds *table = bound->table;

    bound->users--;
    if (bound->over && bound->users == 0)
        pthread_cond_broadcast(&table->cond);
}

void dibs__bound_let_go(dibs__bound *bound)
{
    dibs__serve_bounds *table;

    if (!bound)
        return;
    table = bound->table;
    pthread_mutex_lock(&table->mutex);
    drop_use(bound);
    pthread_mutex_unlock(&table->mutex);
}

/* A call with what it is given. */
typedef struct call_job {
    dibs__bound *bound;
    dibs__bound_call_fn *call;
    void *arg;
} call_job;

static void *call_main(void *arg)
{
    call_job job = *(call_job *)arg;
    dibs__serve_bounds *table = job.bound->table;

    dibsx_free(arg);
    job.call(job.bound, job.arg);
    pthread_mutex_lock(&table->mutex);
    table->calls--;
    drop_use(job.bound);
    pthread_mutex_unlock(&table->mutex);
    return NULL;
}

dibs_status dibs__bound_call(dibs__bound *bound, dibs__bound_call_fn *call,
                             void *arg, dibs_error *err)
{
    dibs__serve_bounds *table = bound->table;
    call_job *job = NULL;
    pthread_t thread;

    if (bound->over)
        return dibsx_fail(err, DIBS_LOST, "the session has ended");
    if (table->calls >= DIBS__BOUND_CALLS_MAX)
        return dibsx_fail(err, DIBS_FULL,
                          "%d clients wait at barriers and queues, and no more "
                          "are allowed; try again later",
                          DIBS__BOUND_CALLS_MAX);
    job = dibsx_zalloc(sizeof(*job));
    if (job)
        *job = (call_job){.bound = bound, .call = call, .arg = arg};
    if (!job || dibsx_thread_start(&thread, call_main, job) != 0) {
        dibsx_free(job);
        return dibsx_nomem(err, "a call");
    }
    pthread_detach(thread);
    table->calls++;
    bound->users++;
    return DIBS_OK;
}

int64_t dibs__bound_told_ms(dibs__bound *bound, int64_t valid_ms)
{
    dibs__serve_sessions *sessions = bound->table->sessions;
    dibs__serve_session *se;
    int64_t told_ms = 0;

    pthread_mutex_lock(&sessions->mutex);
    se = dibs__session_get(sessions, bound->session, bound->caller);
    if (se)
        told_ms = dibs__session_told_ms(&se->machine, dibsx_now(), valid_ms);
    pthread_mutex_unlock(&sessions->mutex);
    return told_ms;
}

void dibs__bound_wake(const dibs__bound *bound)
{
    bound->table->wake(bound->table->wake_arg);
}
