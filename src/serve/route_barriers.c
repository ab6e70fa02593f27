/* route_barriers.c - barriers: a list, one, and arriving. A session has one seat at a
 * barrier, from its first arrival to its end. Threads of the server, and one for each
 * arrival that waits. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "http/lasting.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>

enum { ANSWER_WAIT_MAX_MS = 25000, WAIT_MAX_MS = 24 * 3600 * 1000 };

void dibs__serve_get_barriers(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_BARRIERS, "gathering");
}

static bool put_party(const dibs_barrier_party *party, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "who", party->who);
    dibsx_json_pair_bool(js, "arrived", party->arrived);
    dibsx_json_pair_int(js, "left_ms", party->left_ms);
    dibsx_json_close(js, '}');
    return true;
}

void dibs__serve_get_barrier(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_barrier_state state;
    dibs_error err = {0};
    dibs_status rc;
    dibsx_json *js;

    if (!name)
        return;
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_key(js, "seats");
    dibsx_json_open(js, '[');
    rc = dibs_barrier_show(sv->data, name, &state, put_party, js, &err);
    dibsx_json_close(js, ']');
    if (rc != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    dibs__noun_barrier(js, &state);
    (void)!dibs__serve_known_etag(ex, "%llu-%u-%u",
                                  (unsigned long long)state.generation,
                                  state.arrived, state.seated);
}

/* A session's seat. All but the handle is under the table's mutex. */
typedef struct seat {
    dibs__bound bound; /* first */
    dibs_barrier *barrier;
    uint32_t parties;
    int64_t ttl_ms, wait_ms; /* as the first arrival has them */
    bool withdraw;
    char id[DIBS__SESSION_ID_MAX + 1]; /* of the latest arrival; "": none yet */
    bool waits;                        /* that one does, on its thread */
    uint64_t generation;               /* that it passed */
    dibs_error err; /* of its end; DIBS_OK: all parties have come */
} seat;

static void cancel_seat(dibs__bound *bound)
{
    dibs_barrier_cancel(((seat *)bound)->barrier);
}

static void free_seat(dibs__bound *bound)
{
    dibs_barrier_free(((seat *)bound)->barrier);
    dibsx_free(bound);
}

static const dibs__bound_kind seat_kind = {cancel_seat, free_seat};

/* An arrival, as its request has it. */
typedef struct arrival {
    const char *session, *id, *name;
    int64_t parties;
    int64_t ttl_ms, wait_ms; /* 0: it does not say */
    bool withdraw;
} arrival;

/* As dibs__bound_make_fn. */
static dibs__bound *make_seat(dibs__serve_bounds *table, const char *name,
                              const void *arg, dibs_error *err)
{
    const arrival *ar = arg;
    seat *st = dibsx_zalloc(sizeof(*st));

    if (!st) {
        (void)dibsx_nomem(err, "a seat");
        return NULL;
    }
    st->bound.kind = &seat_kind;
    st->parties = (uint32_t)ar->parties;
    st->ttl_ms = ar->ttl_ms;
    st->wait_ms = ar->wait_ms ? ar->wait_ms : WAIT_MAX_MS;
    st->withdraw = ar->withdraw;
    if (dibs_barrier_new(
            table->client, name,
            DIBS_BARRIER_OPTS(.flags = ar->withdraw ? DIBS_BARRIER_WITHDRAW : 0,
                              .parties = (uint32_t)ar->parties,
                              .ttl_ms = st->ttl_ms, .wait_ms = st->wait_ms),
            &st->barrier, err) == DIBS_OK)
        return &st->bound;
    dibsx_free(st);
    return NULL;
}

/* As dibs__bound_call_fn. */
static void wait_at(dibs__bound *bound, void *arg)
{
    seat *st = (seat *)bound;
    dibs_error err = {0};
    uint64_t generation = 0;

    (void)arg;
    if (dibs_barrier_wait(st->barrier, &generation, &err) == DIBS_OK)
        err.status = DIBS_OK;
    pthread_mutex_lock(&bound->table->mutex);
    st->err = err;
    st->generation = generation;
    st->waits = false;
    /* A barrier of another size has given no seat: the next arrival asks anew. */
    if (err.status == DIBS_MISMATCH)
        bound->over = true;
    pthread_mutex_unlock(&bound->table->mutex);
    dibs__bound_wake(bound);
}

/* The seat is that of the first arrival. */
static bool fits_seat(const seat *st, const arrival *ar)
{
    return st->parties == ar->parties && st->withdraw == ar->withdraw &&
           (!ar->ttl_ms || ar->ttl_ms == st->ttl_ms) &&
           (!ar->wait_ms || ar->wait_ms == st->wait_ms);
}

/* The arrival again, or a new one. Locks: the table's mutex. */
static dibs_status arrive(seat *st, const arrival *ar, dibs_error *err)
{
    dibs_status rc;

    if (strcmp(st->id, ar->id) == 0)
        return DIBS_OK;
    if (st->waits)
        return dibsx_fail(err, DIBS_STALE,
                          "the session waits at %s with another id: a session "
                          "is one party of a barrier",
                          ar->name);
    if (!fits_seat(st, ar))
        return dibsx_fail(err, DIBS_STALE,
                          "the session has a seat at %s with other options; "
                          "parties, withdraw, ttl_ms and wait_ms stay as they "
                          "were at its first arrival",
                          ar->name);
    st->waits = true;
    snprintf(st->id, sizeof(st->id), "%s", ar->id);
    rc = dibs__bound_call(&st->bound, wait_at, NULL, err);
    if (rc != DIBS_OK) {
        st->waits = false;
        st->id[0] = '\0';
    }
    return rc;
}

static void answer_outcome(dibs__http_exchange *ex, const char *name,
                           uint64_t generation, const dibs_error *err)
{
    dibsx_json *js;

    if (err->status != DIBS_OK) {
        dibs__serve_fail_wait(ex, err);
        return;
    }
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_text(js, "state", "passed");
    dibsx_json_pair_uint(js, "generation", generation);
}

/* A request that waits for the end of its arrival. */
typedef struct later {
    seat *st;
    char id[DIBS__SESSION_ID_MAX + 1];
} later;

/* As dibs__http_later.ask. */
static bool ask_seat(dibs__http_exchange *ex, void *arg, bool over)
{
    later *lt = arg;
    seat *st = lt->st;
    pthread_mutex_t *mutex = &st->bound.table->mutex;
    uint64_t generation;
    bool waits, same;
    dibs_error err;

    pthread_mutex_lock(mutex);
    waits = st->waits;
    same = strcmp(st->id, lt->id) == 0;
    generation = st->generation;
    err = st->err;
    pthread_mutex_unlock(mutex);
    if (same && waits && !over)
        return false;
    if (!same) {
        (void)dibs__serve_refuse(ex, 409, "differs",
                                 "the session has arrived again meanwhile");
    } else if (waits) {
        dibsx_json *js = dibs__http_answer(ex, 202);

        dibsx_json_pair_text(js, "name", st->bound.name);
        dibsx_json_pair_text(js, "state", "waiting");
    } else {
        answer_outcome(ex, st->bound.name, generation, &err);
    }
    return true;
}

static void end_later(void *arg)
{
    later *lt = arg;

    dibs__bound_let_go(&lt->st->bound);
    dibsx_free(lt);
}

/* False: it was refused. */
static bool read_arrival(dibs__http_exchange *ex, arrival *ar)
{
    const dibsx_json_node *body;

    ar->name = dibs__serve_ask_name(ex);
    if (!ar->name ||
        !dibs__serve_ask_body(ex, "session id parties ttl_ms wait_ms withdraw",
                              &body) ||
        !dibs__serve_ask_text(ex, body, "session", DIBS__SESSION_ID_SIZE,
                              &ar->session) ||
        !dibs__serve_ask_text(ex, body, "id", DIBS__SESSION_ID_MAX, &ar->id) ||
        !dibs__serve_ask_int(ex, body, "parties", 1, DIBS_BARRIER_MAX,
                             &ar->parties) ||
        !dibs__serve_ask_int(ex, body, "ttl_ms", 1000, WAIT_MAX_MS,
                             &ar->ttl_ms) ||
        !dibs__serve_ask_int(ex, body, "wait_ms", 1, WAIT_MAX_MS,
                             &ar->wait_ms) ||
        !dibs__serve_ask_bool(ex, body, "withdraw", &ar->withdraw))
        return false;
    if (ar->session && ar->id && ar->parties > 0)
        return true;
    (void)dibs__serve_refuse(ex, 400, "invalid",
                             "the body must have \"session\", \"parties\" and "
                             "\"id\", another one for each arrival");
    return false;
}

/* Sent again with the same id, it is the same arrival. */
void dibs__serve_post_arrive(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    arrival ar = {.ttl_ms = 0};
    int64_t answer_ms = ANSWER_WAIT_MAX_MS;
    dibs__bound *bound = NULL;
    dibs_error err = {0};
    dibs_status rc;
    later *lt;

    if (!read_arrival(ex, &ar) ||
        !dibs__serve_ask_query(ex, "wait_ms", 1, ANSWER_WAIT_MAX_MS,
                               &answer_ms))
        return;
    lt = dibsx_zalloc(sizeof(*lt));
    rc = lt ? dibs__bound_take(&sv->bounds, ar.session,
                               dibs__serve_caller_of(ex)->name, &seat_kind,
                               ar.name, make_seat, &ar, &bound, &err)
            : dibsx_nomem(&err, "a wait");
    if (rc == DIBS_OK) {
        pthread_mutex_lock(&sv->bounds.mutex);
        rc = arrive((seat *)bound, &ar, &err);
        pthread_mutex_unlock(&sv->bounds.mutex);
    }
    if (rc != DIBS_OK) {
        dibs__serve_refuse_bound(ex, &err);
        dibs__bound_let_go(bound);
        dibsx_free(lt);
        return;
    }
    lt->st = (seat *)bound;
    snprintf(lt->id, sizeof(lt->id), "%s", ar.id);
    dibs__http_answer_later(ex, &(dibs__http_later){.ask = ask_seat,
                                                    .gone = end_later,
                                                    .arg = lt,
                                                    .wait_ms = answer_ms});
}
