/* session_table.c - the table of sessions: making, finding, counting and ending them,
 * and the tender's thread.
 *
 * Owns sessions and leases. A session stays until its leases have no handles. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/rand.h"
#include "base/thread.h"
#include "serve/bulk.h"
#include "serve/session_lease.h"
#include <stdio.h>
#include <string.h>

/* Requests of one session: so many at once, and so many a second. */
enum { BURST = 100, RATE = 20, SPARE_MS = 10000 };

/* The tender looks at all sessions this often, at least; the shortest lives longer. */
#define LOOK (1000 * DIBSX_MS)

static dibs__serve_session **
bucket_of(dibs__serve_sessions *table, const char *id)
{
    return &table->buckets[dibsx_hash_text(id) % DIBS__SESSION_BUCKETS];
}

dibs__serve_session *dibs__session_get(dibs__serve_sessions *table,
                                       const char *id, const char *caller)
{
    dibs__serve_session *se = *bucket_of(table, id);

    while (se && strcmp(se->id, id) != 0)
        se = se->next;
    if (!se || se->opening || strcmp(se->caller, caller) != 0 ||
        se->machine.end != DIBS__SESSION_OPEN)
        return NULL;
    return se;
}

/* Calls `each` for every session until it answers true, and returns that one. */
typedef bool visit_fn(dibs__serve_session *se, void *arg);

static dibs__serve_session *
visit_all(dibs__serve_sessions *table, visit_fn *each, void *arg)
{
    for (size_t i = 0; i < DIBS__SESSION_BUCKETS; i++)
        for (dibs__serve_session *se = table->buckets[i]; se; se = se->next)
            if (each(se, arg))
                return se;
    return NULL;
}

typedef struct search {
    const char *caller, *key;
    const unsigned char *hash; /* of the body */
    size_t count;              /* of the caller's that are open */
    dibs__serve_session *found;
} search;

static bool look_at_one(dibs__serve_session *se, void *arg)
{
    search *sr = arg;

    if (se->machine.end != DIBS__SESSION_OPEN ||
        strcmp(se->caller, sr->caller) != 0)
        return false;
    sr->count++;
    if (sr->key[0] && strcmp(se->key, sr->key) == 0)
        sr->found = se;
    return false;
}

static dibs_status check_limits(const dibs__serve_sessions *table,
                                const search *sr, dibs_error *err)
{
    if (table->draining || table->stopping)
        return dibsx_fail(err, DIBS_CANCELLED,
                          "the daemon is shutting down; use another one, or "
                          "try again later");
    if (sr->found && memcmp(sr->found->hash, sr->hash, DIBSX_SHA256_SIZE) != 0)
        return dibsx_fail(err, DIBS_STALE,
                          "a session with this Idempotency-Key was asked for "
                          "otherwise; use another key");
    if (sr->found)
        return sr->found->opening
                   ? dibsx_fail(err, DIBS_UNAVAIL,
                                "a session with this Idempotency-Key is being "
                                "made; send the request again")
                   : DIBS_OK;
    if (table->count >= table->count_max)
        return dibsx_fail(err, DIBS_FULL,
                          "%u sessions are open, and no more are allowed; "
                          "end some",
                          table->count_max);
    if (sr->count >= DIBS__SESSIONS_PER_CALLER)
        return dibsx_fail(err, DIBS_FULL,
                          "this token has %d sessions, and no more are "
                          "allowed; end some",
                          DIBS__SESSIONS_PER_CALLER);
    return DIBS_OK;
}

static dibs__serve_session *
new_session(dibs__serve_sessions *table, const char *caller,
            const dibs__session_request *req, const char *key, dibsx_nsec now)
{
    dibs__serve_session *se = dibsx_zalloc(sizeof(*se)), **bucket;
    char drawn[9];

    if (!se || !dibsx_random_hex(se->id, sizeof(se->id)) ||
        !dibsx_random_hex(drawn, sizeof(drawn))) {
        dibsx_free(se);
        return NULL;
    }
    dibs__session_init(&se->machine, req->ttl_ms, table->leases_max, now);
    se->table = table;
    /* Listings show it, so it does not tell the id. */
    snprintf(se->identity, sizeof(se->identity), "serve-%s", drawn);
    snprintf(se->caller, sizeof(se->caller), "%s", caller);
    snprintf(se->name, sizeof(se->name), "%s", req->name);
    snprintf(se->key, sizeof(se->key), "%s", key);
    memcpy(se->hash, req->hash, sizeof(se->hash));
    se->stream = req->stream;
    /* Leases that are taken over have clients, however long that takes. */
    se->opening = true;
    se->machine.valid_until = DIBSX_NEVER;
    se->credit = BURST * 1000;
    se->credit_at = now;
    bucket = bucket_of(table, se->id);
    se->next = *bucket;
    *bucket = se;
    table->count++;
    return se;
}

dibs_status
dibs__session_make(dibs__serve_sessions *table, const char *caller,
                   const dibs__session_request *req, const char *key,
                   dibsx_nsec now, dibs__serve_session **out, bool *known,
                   dibs_error *err)
{
    search sr = {.caller = caller, .key = key, .hash = req->hash};
    dibs_status rc;

    (void)visit_all(table, look_at_one, &sr);
    rc = check_limits(table, &sr, err);
    if (rc != DIBS_OK)
        return rc;
    *known = sr.found != NULL;
    *out = sr.found ? sr.found : new_session(table, caller, req, key, now);
    return *out ? DIBS_OK : dibsx_nomem(err, "a session");
}

bool dibs__session_admit(dibs__serve_session *se, dibsx_nsec now)
{
    int64_t more = (now - se->credit_at) / DIBSX_MS * RATE;

    if (more > 0) {
        se->credit += more;
        se->credit_at = now;
    }
    if (se->credit > BURST * 1000)
        se->credit = BURST * 1000;
    if (se->credit < 1000)
        return false;
    se->credit -= 1000;
    return true;
}

bool dibs__session_beaten(dibs__serve_session *se, dibsx_nsec now)
{
    bool open = dibs__session_beat(&se->machine, now);

    for (dibs__session_lease *at = se->machine.leases.first;
         open && at && !at->over; at = at->next) {
        dibs__serve_lease *le = (dibs__serve_lease *)at;

        if (at->stage == DIBS__STAGE_HELD)
            dibs_lock_tick(le->lock);
    }
    dibs__session_act(se);
    return open;
}

void dibs__session_close(dibs__serve_session *se)
{
    dibs__session_finish(&se->machine, DIBS__SESSION_CLOSED);
    dibs__session_act(se);
}

/* -- The tender. */

static void count_end(dibs__serve_session *se)
{
    dibs__sessions_count *ended = &se->table->ended;

    if (se->counted || se->machine.end == DIBS__SESSION_OPEN)
        return;
    se->counted = true;
    ended->closed += se->machine.end == DIBS__SESSION_CLOSED;
    ended->expired += se->machine.end == DIBS__SESSION_EXPIRED;
    ended->drained += se->machine.end == DIBS__SESSION_DRAINED;
}

static bool has_handles(const dibs__serve_session *se)
{
    for (const dibs__session_lease *at = se->machine.leases.first; at;
         at = at->next)
        if (((const dibs__serve_lease *)at)->lock)
            return true;
    return false;
}

static void free_session(dibs__serve_session *se)
{
    dibs__session_lease *at, *next;

    for (at = se->machine.leases.first; at; at = next) {
        next = at->next;
        dibs__session_lease_free((dibs__serve_lease *)at);
    }
    se->table->count--;
    dibsx_free(se);
}

/* Ends what is due and frees what is over; returns when to look again. Locks:
 * mutex. */
static dibsx_nsec tend_sessions(dibs__serve_sessions *table, dibsx_nsec now)
{
    dibsx_nsec until = DIBSX_NEVER;

    for (size_t i = 0; i < DIBS__SESSION_BUCKETS; i++) {
        dibs__serve_session **at = &table->buckets[i];

        while (*at) {
            dibs__serve_session *se = *at;

            if (!se->opening)
                dibs__session_tick(&se->machine, now);
            dibs__session_act(se);
            count_end(se);
            if (se->machine.end == DIBS__SESSION_OPEN &&
                se->machine.valid_until < until)
                until = se->machine.valid_until;
            if (!se->opening && se->machine.end != DIBS__SESSION_OPEN &&
                !has_handles(se)) {
                *at = se->next;
                free_session(se);
            } else {
                at = &se->next;
            }
        }
    }
    return until;
}

static void free_old(dibs__serve_sessions *table)
{
    dibs__serve_lease **at = &table->old;

    while (*at) {
        dibs__serve_lease *le = *at;

        if (le->lock) {
            at = &le->next_old;
        } else {
            *at = le->next_old;
            dibs__session_lease_free(le);
        }
    }
}

/* Frees one handle that is to be; false: there is none. Locks: mutex, let go
 * meanwhile. */
static bool discard_one(dibs__serve_sessions *table)
{
    dibs__serve_lease *le;

    while ((le = table->discards) != NULL) {
        table->discards = le->next_due;
        le->discard = false;
        if (!le->lock || le->freeing)
            continue;
        dibs__session_handle_free(le);
        return true;
    }
    return false;
}

/* Looks at all sessions when the time of one may be over, or one was closed; else only
 * at the handles that it is to free. A lease comes and goes without a look at the
 * others. */
static void *tend(void *arg)
{
    dibs__serve_sessions *table = arg;

    dibsx_nsec look_at = 0;

    pthread_mutex_lock(&table->mutex);
    while (!table->stopping) {
        dibsx_nsec now = dibsx_now();

        if (table->look_all || now >= look_at) {
            table->look_all = false;
            look_at = tend_sessions(table, now);
            if (look_at > now + LOOK)
                look_at = now + LOOK;
        }
        free_old(table);
        if (!discard_one(table))
            dibsx_cond_wait(&table->cond, &table->mutex, look_at);
    }
    pthread_mutex_unlock(&table->mutex);
    return NULL;
}

dibs_status
dibs__sessions_init(dibs__serve_sessions *table, dibs_client *client,
                    const char *epoch, dibs__sessions_wake_fn *wake,
                    void *wake_arg, dibs_error *err)
{
    int failed;

    *table = (dibs__serve_sessions){.client = client,
                                    .wake = wake,
                                    .wake_arg = wake_arg};
    snprintf(table->epoch, sizeof(table->epoch), "%s", epoch);
    /* A quorum cannot ask a holder for its lease. */
    table->yields = strncmp(dibs_url(client), "redlock", 7) != 0;
    if (!dibsx_cond_init(&table->cond))
        return dibsx_nomem(err, "sessions");
    pthread_mutex_init(&table->mutex, NULL);
    failed = dibsx_thread_start(&table->thread, tend, table);
    if (failed) {
        pthread_cond_destroy(&table->cond);
        pthread_mutex_destroy(&table->mutex);
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(failed),
                             "cannot start the thread that tends sessions: %s",
                             strerror(failed));
    }
    table->started = true;
    return DIBS_OK;
}

/* -- The end. */

static bool drain_one(dibs__serve_session *se, void *arg)
{
    (void)arg;
    dibs__session_finish(&se->machine, DIBS__SESSION_DRAINED);
    dibs__session_act(se);
    count_end(se);
    return false;
}

/* Once the store has failed, and the time of a bulk is over, leases are left as they are:
 * each of many renewals could wait out its timeout. Locks: mutex, let go meanwhile. */
static void leave_all(dibs__serve_sessions *table, dibsx_nsec until)
{
    dibs__serve_lease *le;
    bool failed = false;

    while ((le = table->leaving) != NULL) {
        table->leaving = le->next_due;
        while (le->converting)
            pthread_cond_wait(&table->cond, &table->mutex);
        if (le->lock && !le->freeing &&
            !dibs__session_handle_leave(le, until) && !failed) {
            const dibsx_nsec soon = dibs__bulk_end();

            failed = true;
            until = soon < until ? soon : until;
        }
    }
}

void dibs__sessions_drain(dibs__serve_sessions *table, dibsx_nsec until)
{
    if (!table->started)
        return;
    pthread_mutex_lock(&table->mutex);
    table->draining = true;
    (void)visit_all(table, drain_one, NULL);
    leave_all(table, until);
    pthread_mutex_unlock(&table->mutex);
    table->wake(table->wake_arg);
}

static bool any_handle(dibs__serve_session *se, void *arg)
{
    (void)arg;
    for (dibs__session_lease *at = se->machine.leases.first; at;
         at = at->next) {
        dibs__serve_lease *le = (dibs__serve_lease *)at;

        if (le->lock && !le->freeing)
            dibs__session_discard(le);
    }
    return has_handles(se);
}

/* Waits until the handles are freed; releases under way have their time. */
static void end_handles(dibs__serve_sessions *table)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), SPARE_MS);

    while (dibsx_now() < until && visit_all(table, any_handle, NULL)) {
        pthread_cond_broadcast(&table->cond);
        dibsx_cond_wait(&table->cond, &table->mutex,
                        dibsx_after_ms(dibsx_now(), 20));
    }
}

void dibs__sessions_fini(dibs__serve_sessions *table)
{
    if (!table->started)
        return;
    dibs__sessions_drain(table, 0);
    pthread_mutex_lock(&table->mutex);
    end_handles(table);
    table->stopping = true;
    pthread_cond_broadcast(&table->cond);
    pthread_mutex_unlock(&table->mutex);
    pthread_join(table->thread, NULL);
    pthread_mutex_lock(&table->mutex);
    (void)tend_sessions(table, dibsx_now());
    free_old(table);
    pthread_mutex_unlock(&table->mutex);
    pthread_cond_destroy(&table->cond);
    pthread_mutex_destroy(&table->mutex);
    table->started = false;
}

static bool count_one(dibs__serve_session *se, void *arg)
{
    dibs__sessions_count *out = arg;

    if (se->machine.end != DIBS__SESSION_OPEN)
        return false;
    out->stream += se->stream;
    out->heartbeat += !se->stream;
    for (dibs__session_lease *at = se->machine.leases.first; at && !at->over;
         at = at->next)
        out->leases += at->stage == DIBS__STAGE_HELD;
    return false;
}

void dibs__sessions_count_get(dibs__serve_sessions *table,
                              dibs__sessions_count *out)
{
    pthread_mutex_lock(&table->mutex);
    *out = table->ended;
    (void)visit_all(table, count_one, out);
    pthread_mutex_unlock(&table->mutex);
}
