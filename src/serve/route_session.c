/* route_session.c - the routes of the sidecar: sessions, their beats and leases.
 *
 * All but those that make a session or convert a lease run on the loop and never block. An answer
 * that waits keeps texts, not pointers: the session may be gone when it is asked. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "http/lasting.h"
#include "serve/ask.h"
#include "serve/bulk.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/session_lease.h"
#include "serve/session_stream.h"
#include <stdio.h>
#include <string.h>

enum { PUT_WAIT_MAX_MS = 25000, GET_WAIT_MAX_MS = 55000 };

static dibs__serve_sessions *table_of(const dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);

    return &sv->sessions;
}

static void refuse_unknown(dibs__http_exchange *ex)
{
    if (table_of(ex)->draining) {
        dibs__http_set(ex, "Retry-After", "1");
        (void)dibs__serve_refuse(
            ex, 503, "draining",
            "the daemon is shutting down; make a session at another one, or "
            "here later, and adopt the leases");
        return;
    }
    (void)dibs__serve_refuse(
        ex, 404, "session-unknown",
        "there is no such session of this token here: it has ended, or the "
        "daemon was started anew; make a session, and adopt the leases");
}

static void refuse_error(dibs__http_exchange *ex, const dibs_error *err)
{
    switch (err->status) {
    case DIBS_FULL:
        (void)dibs__serve_refuse(ex, 429, "limit", "%s", err->message);
        break;
    case DIBS_STALE:
        (void)dibs__serve_refuse(ex, 409, "differs", "%s", err->message);
        break;
    case DIBS_CANCELLED:
        refuse_unknown(ex);
        break;
    default:
        (void)dibs__serve_fail(ex, err);
    }
}

/* The session of the path, with the mutex; NULL: it was refused, without. */
static dibs__serve_session *take_session(dibs__http_exchange *ex)
{
    dibs__serve_sessions *table = table_of(ex);
    dibs__serve_session *se;
    bool admitted;

    pthread_mutex_lock(&table->mutex);
    se = dibs__session_get(table, dibs__http_param(ex, "session"),
                           dibs__serve_caller_of(ex)->name);
    admitted = se && dibs__session_admit(se, dibsx_now());
    if (admitted)
        return se;
    pthread_mutex_unlock(&table->mutex);
    if (!se) {
        refuse_unknown(ex);
    } else {
        dibs__http_set(ex, "Retry-After", "1");
        (void)dibs__serve_refuse(
            ex, 429, "limit",
            "a session may make 20 requests a second, and 100 at once");
    }
    return NULL;
}

static void let_go(dibs__http_exchange *ex)
{
    pthread_mutex_unlock(&table_of(ex)->mutex);
}

static void write_clock(dibs__http_exchange *ex, dibsx_json *js, dibsx_nsec now)
{
    dibsx_json_pair_text(js, "epoch", table_of(ex)->epoch);
    dibsx_json_pair_int(js, "clock_ms", now / DIBSX_MS);
}

/* Locks: mutex. */
static void answer_session(dibs__http_exchange *ex, dibs__serve_session *se,
                           int status, bool whole)
{
    const dibs__session_leases *leases = &se->machine.leases;
    /* A lease whose time is over goes behind this one when it is written. */
    const dibs__session_lease *last = leases->last;
    dibsx_nsec now = dibsx_now();
    dibsx_json *js = dibs__http_answer(ex, status);

    if (whole) {
        dibsx_json_pair_text(js, "session", se->id);
        dibsx_json_pair_text(js, "keep", se->stream ? "stream" : "heartbeat");
        dibsx_json_pair_int(js, "ttl_ms", se->machine.ttl_ms);
        dibsx_json_pair_int(js, "beat_ms",
                            se->machine.ttl_ms / DIBS__SESSION_BEATS_PER_TTL);
    }
    write_clock(ex, js, now);
    dibsx_json_pair_int(js, "valid_ms",
                        dibs__session_told_ms(&se->machine, now, INT64_MAX));
    dibsx_json_key(js, "leases");
    dibsx_json_open(js, '{');
    for (dibs__session_lease *at = leases->first, *next; at; at = next) {
        next = at == last ? NULL : at->next;
        if (!whole && at->over && at->removed)
            continue; /* its client has done that */
        dibsx_json_key(js, at->id);
        dibsx_json_open(js, '{');
        dibs__session_write_lease(js, (dibs__serve_lease *)at, now, whole);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, '}');
}

/* -- Sessions. */

/* Once the store has failed, and the time is over, it is not asked any more: each of many
 * leases could wait out its timeout. */
static void adopt_all(dibs__serve_session *se, const dibs__session_request *req)
{
    const dibsx_nsec end = dibs__bulk_end();
    dibs__lease_request lease;
    bool away = false;

    for (const dibsx_json_node *at = req->adopt; at; at = at->next)
        if (dibs__lease_request_read(at, true, &lease, NULL) == DIBS_OK)
            away |= !dibs__session_adopt(se, &lease,
                                         !away || !dibs__bulk_over(end));
}

/* Makes the session, and takes the leases over with the mutex let go. */
static void make_session(dibs__http_exchange *ex,
                         const dibs__session_request *req, const char *key)
{
    dibs__serve_sessions *table = table_of(ex);
    dibs__serve_session *se = NULL;
    dibs_error err = {0};
    bool known = false;
    dibs_status rc;

    pthread_mutex_lock(&table->mutex);
    rc = dibs__session_make(table, dibs__serve_caller_of(ex)->name, req, key,
                            dibsx_now(), &se, &known, &err);
    if (rc == DIBS_OK && !known) {
        /* Until it is open, nobody ends or frees it. */
        pthread_mutex_unlock(&table->mutex);
        adopt_all(se, req);
        pthread_mutex_lock(&table->mutex);
        se->opening = false;
    }
    if (rc != DIBS_OK)
        refuse_error(ex, &err);
    else if (dibs__session_beaten(se, dibsx_now()))
        answer_session(ex, se, known ? 200 : 201, true);
    else
        refuse_unknown(ex);
    pthread_mutex_unlock(&table->mutex);
}

void dibs__serve_post_sessions(dibs__http_exchange *ex)
{
    const dibs__serve *sv = dibs__http_arg(ex);
    const char *key = dibs__http_header(ex, "Idempotency-Key");
    const dibsx_json_node *root;
    dibs__session_request req;
    dibs_error err = {0};
    unsigned char hash[DIBSX_SHA256_SIZE];
    const char *body;
    size_t len;

    body = dibs__http_body(ex, &len);
    dibsx_sha256_bytes(body ? body : "", len, hash);
    if (!dibs__http_body_json(ex, &root))
        return;
    if (dibs__session_request_read(root, &req, &err) != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    else if (key && strlen(key) > DIBS__SESSION_KEY_MAX)
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "an Idempotency-Key has at most %d bytes",
                                 DIBS__SESSION_KEY_MAX);
    else if (req.adopt_count > sv->sessions.leases_max)
        (void)dibs__serve_refuse(ex, 429, "limit",
                                 "a session has at most %u leases",
                                 sv->sessions.leases_max);
    else {
        memcpy(req.hash, hash, sizeof(req.hash));
        make_session(ex, &req, key ? key : "");
    }
}

void dibs__serve_get_session(dibs__http_exchange *ex)
{
    dibs__serve_session *se = take_session(ex);

    if (!se)
        return;
    answer_session(ex, se, 200, true);
    let_go(ex);
}

void dibs__serve_post_beat(dibs__http_exchange *ex)
{
    const dibsx_json_node *root;
    dibs__serve_session *se;

    if (!dibs__serve_ask_body(ex, "", &root))
        return;
    se = take_session(ex);
    if (!se)
        return;
    if (dibs__session_beaten(se, dibsx_now()))
        answer_session(ex, se, 200, false);
    else
        refuse_unknown(ex);
    let_go(ex);
}

void dibs__serve_delete_session(dibs__http_exchange *ex)
{
    dibs__serve_sessions *table = table_of(ex);
    dibs__serve_session *se;

    pthread_mutex_lock(&table->mutex);
    se = dibs__session_get(table, dibs__http_param(ex, "session"),
                           dibs__serve_caller_of(ex)->name);
    if (se)
        dibs__session_close(se);
    table->look_all = true;
    pthread_cond_broadcast(&table->cond);
    pthread_mutex_unlock(&table->mutex);
    /* One that is not there has ended too. */
    dibs__http_answer_none(ex, 204);
    table->wake(table->wake_arg);
}

/* -- Leases. */

typedef struct wait {
    char session[DIBS__SESSION_ID_SIZE];
    char caller[DIBS__SERVE_WHO_MAX];
    char id[DIBS__SESSION_ID_MAX + 1];
    dibs__lease_stage stage; /* it waits for another one */
    bool put;
} wait;

/* Locks: mutex. */
static void
answer_state(dibs__http_exchange *ex, dibs__serve_lease *le, int status)
{
    dibsx_nsec now = dibsx_now();
    dibsx_json *js = dibs__http_answer(ex, status);

    dibsx_json_pair_text(js, "id", le->machine.id);
    if (le->name[0])
        dibsx_json_pair_text(js, "name", le->name);
    write_clock(ex, js, now);
    dibs__session_write_lease(js, le, now, true);
}

/* Locks: mutex. */
static void
answer_lease(dibs__http_exchange *ex, dibs__serve_lease *le, bool put)
{
    (void)dibs__session_refresh(le);
    if (!put) {
        answer_state(ex, le, 200);
        return;
    }
    switch (le->machine.stage) {
    case DIBS__STAGE_WAITING:
        answer_state(ex, le, 202);
        break;
    case DIBS__STAGE_HELD:
        answer_state(ex, le, 201);
        break;
    case DIBS__STAGE_LOST:
        (void)dibs__serve_refuse(ex, 410, "lost",
                                 "the lease was lost; take a new id to "
                                 "acquire the lock anew");
        break;
    case DIBS__STAGE_FREED:
        if (le->machine.why != DIBS_OK && !le->machine.removed)
            refuse_error(ex, &le->err);
        else
            (void)dibs__serve_refuse(ex, 410, "freed",
                                     "the lease was removed; take a new id to "
                                     "acquire the lock anew");
        break;
    }
}

/* As dibs__http_later: on the loop. */
static bool ask_lease(dibs__http_exchange *ex, void *arg, bool over)
{
    const wait *wt = arg;
    dibs__serve_sessions *table = table_of(ex);
    dibs__serve_session *se;
    dibs__serve_lease *le = NULL;
    bool answered = true;

    pthread_mutex_lock(&table->mutex);
    se = dibs__session_get(table, wt->session, wt->caller);
    if (se)
        le = (dibs__serve_lease *)dibs__session_find(&se->machine, wt->id);
    if (le)
        (void)dibs__session_refresh(le);
    if (!se)
        refuse_unknown(ex);
    else if (!le)
        (void)dibs__serve_refuse(ex, 404, "notfound",
                                 "the session has no lease %s", wt->id);
    else if (le->machine.stage != wt->stage || over)
        answer_lease(ex, le, wt->put);
    else
        answered = false;
    pthread_mutex_unlock(&table->mutex);
    return answered;
}

/* Answers when the lease is not any more what it is, or after `wait_ms`. Locks:
 * mutex. */
static void answer_changed(dibs__http_exchange *ex, dibs__serve_session *se,
                           dibs__serve_lease *le, bool put, int64_t wait_ms)
{
    wait *wt = wait_ms > 0 ? dibsx_zalloc(sizeof(*wt)) : NULL;

    if (!wt) {
        answer_lease(ex, le, put);
        return;
    }
    memcpy(wt->session, se->id, sizeof(wt->session));
    snprintf(wt->caller, sizeof(wt->caller), "%s",
             dibs__serve_caller_of(ex)->name);
    memcpy(wt->id, le->machine.id, sizeof(wt->id));
    wt->stage = le->machine.stage;
    wt->put = put;
    dibs__http_answer_later(ex, &(dibs__http_later){.ask = ask_lease,
                                                    .gone = dibsx_free,
                                                    .arg = wt,
                                                    .wait_ms = wait_ms});
}

/* NULL: it was refused. */
static const char *lease_id(dibs__http_exchange *ex)
{
    const char *id = dibs__http_param(ex, "id");

    if (dibs__session_id_ok(id))
        return id;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "the id of a lease is 1 to 64 of A-Z a-z 0-9 . _ "
                             "-");
    return NULL;
}

void dibs__serve_put_lease(dibs__http_exchange *ex)
{
    const char *id = lease_id(ex);
    const dibsx_json_node *root;
    dibs__lease_request req;
    dibs__serve_session *se;
    dibs__serve_lease *le = NULL;
    int64_t wait_ms = PUT_WAIT_MAX_MS;
    dibs_error err = {0};

    if (!id || !dibs__http_body_json(ex, &root) ||
        !dibs__serve_ask_query(ex, "wait_ms", 0, PUT_WAIT_MAX_MS, &wait_ms))
        return;
    if (dibs__lease_request_read(root, false, &req, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    req.id = id;
    se = take_session(ex);
    if (!se)
        return;
    /* A lease that is refused at once has an answer before anybody waits. */
    if (dibs__session_lease_put(se, &req, dibsx_now(), &le, &err) != DIBS_OK)
        refuse_error(ex, &err);
    else if (le->machine.stage == DIBS__STAGE_WAITING)
        answer_changed(ex, se, le, true, wait_ms);
    else
        answer_lease(ex, le, true);
    let_go(ex);
}

void dibs__serve_get_lease(dibs__http_exchange *ex)
{
    const char *id = lease_id(ex);
    dibs__serve_session *se;
    dibs__serve_lease *le;
    int64_t wait_ms = 0;

    if (!id ||
        !dibs__serve_ask_query(ex, "wait_ms", 0, GET_WAIT_MAX_MS, &wait_ms))
        return;
    se = take_session(ex);
    if (!se)
        return;
    le = (dibs__serve_lease *)dibs__session_find(&se->machine, id);
    if (le)
        answer_changed(ex, se, le, false, wait_ms);
    else
        (void)dibs__serve_refuse(ex, 404, "notfound",
                                 "the session has no lease %s", id);
    let_go(ex);
}

void dibs__serve_delete_lease(dibs__http_exchange *ex)
{
    const char *id = lease_id(ex);
    dibs__serve_session *se;
    bool was_lost = false;

    if (!id)
        return;
    se = take_session(ex);
    if (!se)
        return;
    if (!dibs__session_lease_remove(se, id, &was_lost))
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
    else if (was_lost)
        (void)dibs__serve_refuse(ex, 410, "lost",
                                 "the lease had been lost before");
    else
        dibs__http_answer_none(ex, 204);
    let_go(ex);
    table_of(ex)->wake(table_of(ex)->wake_arg);
}

/* False: it was refused. */
static bool ask_mode(dibs__http_exchange *ex, dibs_lock_mode *mode)
{
    const dibsx_json_node *root;
    const char *word = "";

    if (!dibs__serve_ask_body(ex, "mode", &root) ||
        !dibs__serve_ask_text(ex, root, "mode", 16, &word))
        return false;
    *mode = strcmp(word, "shared") == 0 ? DIBS_SHARED : DIBS_EXCLUSIVE;
    if (*mode == DIBS_SHARED || strcmp(word, "exclusive") == 0)
        return true;
    dibsx_json_pair_text(
        dibs__serve_refuse(ex, 400, "invalid",
                           "the body must have \"mode\", \"exclusive\" or "
                           "\"shared\""),
        "pointer", "/mode");
    return false;
}

/* Locks: mutex, let go meanwhile. */
static void convert_lease(dibs__http_exchange *ex, dibs__serve_lease *le,
                          dibs_lock_mode mode)
{
    dibs_error err = {0};
    dibs_status rc = dibs__session_convert(le, mode, &err);

    if (le->machine.stage == DIBS__STAGE_HELD)
        (void)dibs__session_refresh(le);
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    else
        answer_lease(ex, le, le->machine.stage != DIBS__STAGE_HELD);
}

/* On a thread of the server. */
void dibs__serve_post_convert(dibs__http_exchange *ex)
{
    const char *id = lease_id(ex);
    dibs_lock_mode mode = DIBS_SHARED;
    dibs__serve_session *se;
    dibs__serve_lease *le;

    if (!id || !ask_mode(ex, &mode))
        return;
    se = take_session(ex);
    if (!se)
        return;
    le = (dibs__serve_lease *)dibs__session_find(&se->machine, id);
    if (le)
        (void)dibs__session_refresh(le);
    if (!le)
        (void)dibs__serve_refuse(ex, 404, "notfound",
                                 "the session has no lease %s", id);
    else if (le->machine.stage == DIBS__STAGE_WAITING)
        (void)dibs__serve_refuse(ex, 409, "busy",
                                 "the lease %s is not held yet", id);
    else if (le->machine.stage != DIBS__STAGE_HELD)
        answer_lease(ex, le, true);
    else
        convert_lease(ex, le, mode);
    let_go(ex);
    table_of(ex)->wake(table_of(ex)->wake_arg);
}

void dibs__serve_get_stream(dibs__http_exchange *ex)
{
    dibs__serve_session *se = take_session(ex);

    if (!se)
        return;
    dibs__session_stream_answer(se, ex);
    let_go(ex);
    table_of(ex)->wake(table_of(ex)->wake_arg);
}
