/* session.c - the leases of a session: their handles, and what happens to them.
 *
 * Routes put and remove on the loop's thread; acquires and releases are answered on
 * threads of the client, losses on its keeper. A handle is freed by one of them:
 * the one that has set `freeing`. */
/* SPDX-License-Identifier: MIT */
#include "serve/session.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "serve/problem.h"
#include "serve/session_lease.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 16 * 1024 };

void dibs__session_lease_free(dibs__serve_lease *le)
{
    if (!le)
        return;
    dibsx_free(le->text);
    dibsx_free(le);
}

void dibs__session_discard(dibs__serve_lease *le)
{
    if (le->converting) {
        le->due = true;
        return;
    }
    if (!le->discard) {
        le->discard = true;
        le->next_due = le->table->discards;
        le->table->discards = le;
    }
    pthread_cond_broadcast(&le->table->cond);
}

/* The handle is gone. Locks: mutex. */
static void drop_handle(dibs__serve_lease *le)
{
    dibs__serve_lease **at = &le->table->discards;

    while (le->discard && *at != le)
        at = &(*at)->next_due;
    if (le->discard)
        *at = le->next_due;
    le->discard = false;
    le->lock = NULL;
    le->table->lease_count--;
    pthread_cond_broadcast(&le->table->cond);
}

void dibs__session_handle_free(dibs__serve_lease *le)
{
    dibs__serve_sessions *table = le->table;

    le->freeing = true;
    pthread_mutex_unlock(&table->mutex);
    dibs_lock_free(le->lock);
    pthread_mutex_lock(&table->mutex);
    drop_handle(le);
}

bool dibs__session_handle_leave(dibs__serve_lease *le, dibsx_nsec until)
{
    dibs__serve_sessions *table = le->table;
    dibs_status rc = DIBS_OK;

    le->freeing = true;
    pthread_mutex_unlock(&table->mutex);
    if (dibsx_now() < until)
        rc = dibs_lock_renew(le->lock, NULL);
    dibs_lock_leave(le->lock);
    dibs_lock_free(le->lock);
    pthread_mutex_lock(&table->mutex);
    drop_handle(le);
    return rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN;
}

/* -- Calls of the client. */

/* On a thread of the client. */
static void
on_released(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    dibs__serve_lease *le = arg;
    dibs__serve_sessions *table = le->table;

    (void)rc;
    (void)err;
    dibs_lock_free(lock);
    pthread_mutex_lock(&table->mutex);
    drop_handle(le);
    pthread_mutex_unlock(&table->mutex);
}

/* Locks: mutex. */
static void release(dibs__serve_lease *le)
{
    if (le->converting) {
        dibs__session_discard(le);
        return;
    }
    le->freeing = true;
    if (dibs_lock_release_async(le->lock, on_released, le, NULL) == DIBS_OK)
        return;
    le->freeing = false;
    dibs__session_discard(le);
}

/* On a thread of the client. */
static void
on_acquired(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    dibs__serve_lease *le = arg;
    dibs__serve_sessions *table = le->table;

    pthread_mutex_lock(&table->mutex);
    if (rc != DIBS_OK) {
        le->err = *err;
        dibs__session_discard(le);
    }
    dibs__session_answered(&le->session->machine, &le->machine, rc,
                           rc == DIBS_OK ? dibs_lock_fence(lock) : 0);
    dibs__session_act(le->session);
    pthread_mutex_unlock(&table->mutex);
    table->wake(table->wake_arg);
}

/* On the keeper's thread. The tender frees the handle: not even a release is to be
 * waited for here. */
static void on_lost(dibs_lock *lock, void *arg)
{
    dibs__serve_lease *le = arg;
    dibs__serve_sessions *table = le->table;

    (void)lock;
    pthread_mutex_lock(&table->mutex);
    if (le->session && le->machine.stage == DIBS__STAGE_HELD) {
        dibs__session_lost(&le->session->machine, &le->machine);
        dibs__session_discard(le);
    }
    pthread_mutex_unlock(&table->mutex);
    table->wake(table->wake_arg);
}

static void on_yield(dibs_lock *lock, void *arg)
{
    dibs__serve_lease *le = arg;
    dibs__serve_sessions *table = le->table;

    (void)lock;
    pthread_mutex_lock(&table->mutex);
    le->yield = true;
    pthread_mutex_unlock(&table->mutex);
    table->wake(table->wake_arg);
}

/* Locks: mutex. */
static void start_acquire(dibs__serve_lease *le)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire_async(le->lock, on_acquired, le, &err);

    if (rc == DIBS_OK)
        return;
    le->err = err;
    dibs__session_answered(&le->session->machine, &le->machine, rc, 0);
    dibs__session_discard(le);
}

static void act_on(dibs__serve_lease *le, dibs__session_todo todo)
{
    switch (todo) {
    case DIBS__SESSION_START:
        start_acquire(le);
        break;
    case DIBS__SESSION_CANCEL:
        dibs_lock_cancel(le->lock);
        break;
    case DIBS__SESSION_RELEASE:
        release(le);
        break;
    case DIBS__SESSION_LEAVE:
        le->next_due = le->table->leaving;
        le->table->leaving = le;
        break;
    case DIBS__SESSION_NOTHING:
        break;
    }
}

void dibs__session_act(dibs__serve_session *se)
{
    dibs__session_todo todo;
    dibs__session_lease *at;

    while ((at = dibs__session_next(&se->machine, &todo)))
        act_on((dibs__serve_lease *)at, todo);
    while ((at = dibs__session_forgotten(&se->machine))) {
        dibs__serve_lease *le = (dibs__serve_lease *)at;

        le->session = NULL;
        le->next_old = se->table->old;
        se->table->old = le;
        pthread_cond_broadcast(&se->table->cond);
    }
}

/* -- Leases. */

static dibs__serve_lease *new_lease(dibs__serve_session *se)
{
    dibs__serve_lease *le = dibsx_zalloc(sizeof(*le));

    if (!le)
        return NULL;
    le->table = se->table;
    le->session = se;
    le->told = -1;
    return le;
}

/* Makes the handle. Locks: mutex or none. */
static dibs_status fill_lease(dibs__serve_lease *le,
                              const dibs__lease_request *req, dibs_error *err)
{
    dibs__serve_session *se = le->session;
    dibs_lock_opts opts = req->opts;
    dibsx_buf text;
    dibs_status rc;

    opts.label = se->name;
    opts.identity = se->identity;
    opts.progress_ms = se->machine.ttl_ms;
    opts.on_lost = on_lost;
    opts.on_lost_arg = le;
    opts.on_yield = se->table->yields ? on_yield : NULL;
    opts.on_yield_arg = le;
    rc = dibs_lock_new(se->table->client, req->name, &opts, &le->lock, err);
    if (rc != DIBS_OK)
        return rc;
    dibsx_buf_init(&text, TEXT_MAX);
    dibs__lease_request_text(req, &text);
    le->text = dibsx_buf_take(&text);
    dibsx_buf_fini(&text);
    snprintf(le->name, sizeof(le->name), "%s", req->name);
    le->mode = "xsp"[opts.mode];
    le->election = req->election;
    return le->text ? DIBS_OK : dibsx_nomem(err, "a lease");
}

static bool
same_request(const dibs__serve_lease *le, const dibs__lease_request *req)
{
    dibsx_buf text;
    bool same;

    dibsx_buf_init(&text, TEXT_MAX);
    dibs__lease_request_text(req, &text);
    /* One that was removed before it was put has no request. */
    same = !le->text || strcmp(le->text, dibsx_buf_text(&text)) == 0;
    dibsx_buf_fini(&text);
    return same;
}

static dibs_status say_differs(const char *id, dibs_error *err)
{
    return dibsx_fail(err, DIBS_STALE,
                      "the lease %.64s was put with another body; take a new "
                      "id for another lease",
                      id);
}

/* Puts a lease that is not known. */
static dibs_status
put_new(dibs__serve_session *se, const dibs__lease_request *req, dibsx_nsec now,
        dibs__serve_lease **out, dibs_error *err)
{
    dibs__serve_lease *le = new_lease(se);
    dibs__session_lease *found;
    dibs_status rc;

    if (!le)
        return dibsx_nomem(err, "a lease");
    if (se->table->lease_count >= DIBS__SESSION_LEASES_ALL)
        rc = dibsx_fail(err, DIBS_FULL,
                        "the daemon keeps %d leases, and no more are allowed",
                        DIBS__SESSION_LEASES_ALL);
    else
        rc = fill_lease(le, req, err);
    if (rc != DIBS_OK)
        goto out;
    switch (dibs__session_put_lease(&se->machine, &le->machine, req->id, now,
                                    &found)) {
    case DIBS__PUT_NEW:
        se->table->lease_count++;
        *out = le;
        return DIBS_OK;
    case DIBS__PUT_FULL:
        rc = dibsx_fail(err, DIBS_FULL,
                        "the session has %u leases and waits, and no more are "
                        "allowed; remove some",
                        se->table->leases_max);
        break;
    case DIBS__PUT_KNOWN:
    case DIBS__PUT_ENDED:
        rc = dibsx_fail(err, DIBS_LOST, "the session has ended");
        break;
    }
out:
    dibs_lock_free(le->lock);
    dibs__session_lease_free(le);
    return rc;
}

dibs_status
dibs__session_lease_put(dibs__serve_session *se, const dibs__lease_request *req,
                        dibsx_nsec now, dibs__serve_lease **out,
                        dibs_error *err)
{
    dibs__session_lease *found = dibs__session_find(&se->machine, req->id);
    dibs_status rc;

    if (found) {
        *out = (dibs__serve_lease *)found;
        return same_request(*out, req) ? DIBS_OK : say_differs(req->id, err);
    }
    rc = put_new(se, req, now, out, err);
    dibs__session_act(se);
    return rc;
}

bool dibs__session_lease_remove(dibs__serve_session *se, const char *id,
                                bool *was_lost)
{
    dibs__serve_lease *fresh = new_lease(se);
    const dibs__session_lease *found = dibs__session_find(&se->machine, id);

    if (!fresh)
        return false;
    *was_lost = found && found->stage == DIBS__STAGE_LOST;
    if (!dibs__session_remove(&se->machine, &fresh->machine, id))
        dibs__session_lease_free(fresh);
    dibs__session_act(se);
    return true;
}

/* An adoption that cannot begin uses its id all the same, so that the answer has it: a
 * client that misses it there knows nothing of its lease. Locks: mutex. */
static void enter_refused(dibs__serve_session *se,
                          const dibs__lease_request *req, const dibs_error *why)
{
    dibs__serve_lease *le = new_lease(se);
    dibs__session_lease *found;

    if (!le || dibs__session_put_lease(&se->machine, &le->machine, req->id,
                                       dibsx_now(), &found) != DIBS__PUT_NEW) {
        dibs__session_lease_free(le);
        return;
    }
    snprintf(le->name, sizeof(le->name), "%s", req->name);
    le->err = *why;
    dibs__session_adopting(&le->machine);
    dibs__session_answered(&se->machine, &le->machine, why->status, 0);
}

/* A token that a session gave out names the owner, so that accepting it gives the
 * lease a new owner and a new fence in one step. The daemon that had it before finds
 * that it has lost the lease, and its release ends nothing. */
bool dibs__session_adopt(dibs__serve_session *se,
                         const dibs__lease_request *req, bool ask)
{
    dibs__serve_sessions *table = se->table;
    dibs__serve_lease *le = NULL;
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_lock(&table->mutex);
    rc = ask ? put_new(se, req, dibsx_now(), &le, &err)
             : dibsx_fail(&err, DIBS_UNAVAIL,
                          "the store failed at another lease, and was not "
                          "asked about %s",
                          req->name);
    if (rc == DIBS_OK)
        dibs__session_adopting(&le->machine); /* this is its start */
    else
        enter_refused(se, req, &err);
    pthread_mutex_unlock(&table->mutex);
    if (rc != DIBS_OK)
        return true;
    rc = dibs_lock_accept(le->lock, req->token, &err);
    pthread_mutex_lock(&table->mutex);
    le->err = err;
    dibs__session_answered(&se->machine, &le->machine, rc,
                           rc == DIBS_OK ? dibs_lock_fence(le->lock) : 0);
    if (rc != DIBS_OK)
        dibs__session_discard(le);
    pthread_mutex_unlock(&table->mutex);
    return rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN;
}

int64_t dibs__session_refresh(dibs__serve_lease *le)
{
    int64_t left_ms = le->machine.stage == DIBS__STAGE_HELD
                          ? dibs_lock_valid_ms(le->lock)
                          : 0;

    if (le->machine.stage == DIBS__STAGE_HELD && left_ms <= 0) {
        dibs__session_lost(&le->session->machine, &le->machine);
        dibs__session_discard(le);
    }
    return left_ms;
}

static const char *state_of(const dibs__serve_lease *le)
{
    switch (le->machine.stage) {
    case DIBS__STAGE_WAITING:
        return "waiting";
    case DIBS__STAGE_HELD:
        return dibs_lock_state_get(le->lock) == DIBS_LOCK_SUSPECT ? "suspect"
                                                                  : "held";
    case DIBS__STAGE_LOST:
        return "lost";
    case DIBS__STAGE_FREED:
        break;
    }
    return le->machine.why == DIBS_LOST ? "lost" : "freed";
}

/* null: the store has not said one, or has no queue. */
static void write_place(dibsx_json *js, const dibs__serve_lease *le)
{
    uint32_t place = dibs_lock_place(le->lock);

    dibsx_json_key(js, "place");
    if (place > 0)
        dibsx_json_uint(js, place);
    else
        dibsx_json_null(js);
}

static const char *mode_name(const dibs__serve_lease *le)
{
    if (le->mode == 'p')
        return "permits";
    return le->mode == 's' ? "shared" : "exclusive";
}

void dibs__session_write_lease(dibsx_json *js, dibs__serve_lease *le,
                               dibsx_nsec now, bool whole)
{
    const dibs__session *machine = &le->session->machine;
    char owner[DIBS_OWNER_SIZE], token[DIBS_TOKEN_SIZE + 16];
    int64_t lease_ms = dibs__session_refresh(le);

    dibsx_json_pair_text(js, "state", state_of(le));
    if (le->machine.stage == DIBS__STAGE_FREED && le->machine.why != DIBS_OK)
        dibsx_json_pair_text(js, "why",
                             dibs__serve_problem_code(le->machine.why));
    if (le->machine.stage == DIBS__STAGE_WAITING)
        write_place(js, le);
    if (le->machine.stage != DIBS__STAGE_HELD)
        return;
    dibsx_json_pair_uint(js, "fence", le->machine.fence);
    dibsx_json_pair_int(js, "valid_ms",
                        dibs__session_told_ms(machine, now, lease_ms));
    dibsx_json_pair_int(js, "until_clock_ms",
                        dibs__session_told_until(machine, now, lease_ms) /
                            DIBSX_MS);
    if (!whole)
        return;
    dibsx_json_pair_text(js, "mode", mode_name(le));
    dibs_lock_owner(le->lock, owner);
    snprintf(token, sizeof(token), "%s.%" PRIu64 ".%c", owner,
             le->machine.fence, le->mode);
    dibsx_json_pair_text(js, "token", token);
}
