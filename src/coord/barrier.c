/* barrier.c - barrier handles: new, wait, cancel, free; and looks at a barrier.
 *
 * A wait is barrier_call.c's. The keeper passes the tells of the store on, and the session
 * of the client keeps the seat, between two waits too. Locks: cl->mutex guards all of
 * it. */
/* SPDX-License-Identifier: MIT */
#include "coord/barrier.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <inttypes.h>
#include <string.h>

enum { TTL_MIN_MS = 100, TTL_MAX_MS = 24 * 3600 * 1000 };

/* A barrier never has more than 500 polls a second. */
enum { POLL_MIN_MS = 1000, POLL_PARTY_MS = 2, POLLS_PER_TTL = 3 };

/* Parties that ask because a seat may have ended do so within this span. */
enum { SPREAD_MAX_MS = 250 };

static dibs_barrier *barrier_of(dibs__handle *handle)
{
    return (dibs_barrier *)(void *)handle;
}

static void wake_barrier(dibs__handle *handle)
{
    pthread_cond_signal(&barrier_of(handle)->cond);
}

/* Thread: the keeper. */
static void hear_outcome(dibs__handle *handle, const dibs__notice *notice)
{
    bool opened = notice->kind == DIBS__NOTICE_OPENED;

    if (!opened && notice->kind != DIBS__NOTICE_BROKEN)
        return;
    dibs__party_rung(&barrier_of(handle)->machine, notice->fence, opened);
    wake_barrier(handle);
}

/* Thread: the keeper. */
static void hear_missed(dibs__handle *handle)
{
    dibs_barrier *b = barrier_of(handle);
    uint64_t spread_ms = b->machine.need / 2 + 1;

    b->listens = false;
    b->ear_at = 0;
    dibs__party_missed(&b->machine,
                       dibsx_after_ms(dibsx_now(),
                                      (int64_t)dibsx_prng_below(&b->cl->jitter,
                                                                spread_ms)));
    wake_barrier(handle);
}

static const dibs__handle_kind kind = {.noun = "a barrier",
                                       .wake = wake_barrier,
                                       .hear = hear_outcome,
                                       .hear_missed = hear_missed};

/* Begins every call: the client can be used, and its store has barriers. */
static dibs_status begin_call(dibs_client *cl, dibs_error *err)
{
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;

    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_MEET);
    return why ? dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why) : DIBS_OK;
}

static dibs_status
read_opts(const dibs_client *cl, const dibs_barrier_opts *given,
          dibs_barrier_opts *opts, dibs_error *err)
{
    dibs_status rc =
        dibsx_opts_copy(opts, sizeof(*opts), given, "DIBS_BARRIER_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (!given)
        return dibsx_fail(err, DIBS_INVALID,
                          "a barrier needs its number of parties: give "
                          "options");
    if (opts->ttl_ms == 0)
        opts->ttl_ms = cl->ttl_ms;
    if (opts->flags & ~(uint32_t)DIBS_BARRIER_WITHDRAW)
        return dibsx_fail(err, DIBS_INVALID,
                          "dibs_barrier_opts.flags has unknown bits");
    if (opts->parties < 1 || opts->parties > DIBS_BARRIER_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a barrier has 1 to %d parties, and not %u",
                          DIBS_BARRIER_MAX, (unsigned)opts->parties);
    if (opts->ttl_ms < TTL_MIN_MS || opts->ttl_ms > TTL_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "ttl_ms of a barrier is %d to %d, and not %" PRId64,
                          (int)TTL_MIN_MS, (int)TTL_MAX_MS, opts->ttl_ms);
    return opts->label ? dibs__text_check("the label", opts->label, err)
                       : DIBS_OK;
}

/* Thread: a worker. Locks: cl->mutex. */
static void hear_session(dibs_client *cl, dibs__session_seat *seat,
                         const dibs__meet *answer, dibsx_nsec sent_at)
{
    dibs_barrier *b = seat->arg;

    (void)cl;
    (void)sent_at;
    if (answer->rc != DIBS_LOST)
        return;
    dibs__party_unseated(&b->machine, answer->fence, dibsx_now());
    pthread_cond_signal(&b->cond);
}

/* Polls are spread, as parties may begin to wait at the same moment. Locks:
 * cl->mutex. */
static void start_machine(dibs_barrier *b, const dibs_barrier_opts *opts)
{
    dibsx_prng *prng = &b->cl->jitter;
    int64_t most_ms = opts->ttl_ms / POLLS_PER_TTL;
    int64_t poll_ms = (int64_t)opts->parties * POLL_PARTY_MS;
    int64_t spread_ms =
        opts->parties < SPREAD_MAX_MS ? opts->parties : SPREAD_MAX_MS;

    if (poll_ms < POLL_MIN_MS)
        poll_ms = POLL_MIN_MS;
    if (poll_ms > most_ms)
        poll_ms = most_ms;
    poll_ms -= (int64_t)dibsx_prng_below(prng, (uint64_t)poll_ms / 10 + 1);
    dibs__party_init(&b->machine, opts->parties, opts->ttl_ms, poll_ms,
                     (int64_t)dibsx_prng_below(prng, (uint64_t)spread_ms),
                     !(opts->flags & DIBS_BARRIER_WITHDRAW));
}

static void fill_barrier(dibs_barrier *b, const dibs_barrier_opts *opts)
{
    dibs__who_plain(b->cl, opts->label, b->who, sizeof(b->who));
    b->handle.kind = &kind;
    dibs__topic_of_roster(b->name, b->handle.topic);
    b->wait_ms = opts->wait_ms > 0 ? opts->wait_ms : 0;
    b->seat.name = b->name;
    b->seat.who = b->who;
    b->seat.need = opts->parties;
    if (opts->flags & DIBS_BARRIER_WITHDRAW)
        b->seat.flags = DIBS__MEET_QUIET;
    b->seat.ttl_ms = opts->ttl_ms;
    b->seat.told = hear_session;
    b->seat.arg = b;
}

/* Adds the barrier to its client. */
static dibs_status
join_client(dibs_barrier *b, const dibs_barrier_opts *opts, dibs_error *err)
{
    dibs_status rc;

    pthread_mutex_lock(&b->cl->mutex);
    start_machine(b, opts);
    rc = dibs__handle_join(b->cl, &b->handle, err);
    pthread_mutex_unlock(&b->cl->mutex);
    return rc;
}

static void free_parts(dibs_barrier *b)
{
    pthread_cond_destroy(&b->cond);
    dibsx_free(b->before);
    dibsx_free(b);
}

dibs_status dibs_barrier_new(dibs_client *cl, const char *name,
                             const dibs_barrier_opts *opts, dibs_barrier **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = begin_call(cl, err);
    dibs_barrier_opts want;
    dibs_barrier *b;

    *out = NULL;
    if (rc == DIBS_OK)
        rc = read_opts(cl, opts, &want, err);
    if (rc != DIBS_OK)
        return rc;
    b = dibsx_zalloc(sizeof(*b));
    if (!b)
        return dibsx_nomem(err, "a barrier");
    b->cl = cl;
    if (!dibsx_cond_init(&b->cond)) {
        dibsx_free(b);
        return dibsx_nomem(err, "a barrier");
    }
    rc = dibs__name_full(cl, name, b->name, err);
    if (rc == DIBS_OK && want.parties <= DIBS__ROLL_MAX) {
        b->before = dibsx_zalloc(sizeof(*b->before));
        if (!b->before)
            rc = dibsx_nomem(err, "a barrier");
    }
    if (rc == DIBS_OK) {
        fill_barrier(b, &want);
        rc = join_client(b, &want, err);
    }
    if (rc == DIBS_OK)
        *out = b;
    else
        free_parts(b);
    return rc;
}

dibs_status
dibs_barrier_wait(dibs_barrier *b, uint64_t *generation, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc;

    if (generation)
        *generation = 0;
    if (!b)
        return dibsx_fail(err, DIBS_INVALID, "the barrier is NULL");
    rc = dibs__client_usable(b->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&b->cl->mutex);
    if (b->cl->closing)
        rc = dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
    if (rc == DIBS_OK && b->waiting)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another thread waits with this handle; give each "
                        "party its own");
    if (rc == DIBS_OK) {
        b->waiting = true;
        b->cancelled = false;
        dibs__handle_begin(&b->handle);
        rc = dibs__barrier_call(b, err);
        dibs__handle_end(&b->handle);
        b->waiting = false;
        if (generation && rc == DIBS_OK)
            *generation = b->machine.passed;
    }
    pthread_mutex_unlock(&b->cl->mutex);
    return rc;
}

void dibs_barrier_cancel(dibs_barrier *b)
{
    DIBSX_UNCANCEL;

    if (!b || dibs__client_usable(b->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&b->cl->mutex);
    if (b->waiting) {
        b->cancelled = true;
        pthread_cond_signal(&b->cond);
    }
    pthread_mutex_unlock(&b->cl->mutex);
}

void dibs_barrier_free(dibs_barrier *b)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!b || dibs__forked(b->cl->fork_number))
        return;
    cl = b->cl;
    pthread_mutex_lock(&cl->mutex);
    dibs__session_leave(cl, &b->seat);
    last = dibs__handle_leave(&b->handle);
    pthread_mutex_unlock(&cl->mutex);
    free_parts(b);
    if (last)
        dibs__client_free(cl);
}

typedef struct show_state {
    dibs_barrier_state *out;
    dibs_barrier_party_fn *each;
    void *arg;
    bool more;
} show_state;

static bool show_party(const dibs__seat_entry *seat, void *arg)
{
    show_state *show = arg;
    dibs_barrier_party party = {.who = seat->who,
                                .arrived = seat->arrived,
                                .left_ms = seat->left_ms};

    if (seat->fence == 0)
        return false; /* an id that a latch counted */
    show->out->seated++;
    if (show->each && show->more)
        show->more = show->each(&party, show->arg);
    return true;
}

dibs_status
dibs_barrier_show(dibs_client *cl, const char *name, dibs_barrier_state *out,
                  dibs_barrier_party_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline;
    char full[DIBS_NAME_MAX + 1];
    show_state show = {.out = out, .each = each, .arg = arg, .more = true};
    dibs_status rc = begin_call(cl, err);
    dibs__roster_head head;

    memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    deadline = dibs__client_deadline(cl, dibsx_now());
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->roll_call(cl->st, full, deadline, &head,
                                            show_party, &show, err);
    if (rc == DIBS_OK && head.kind != DIBS__ROSTER_BARRIER)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a latch or a group, not a barrier", name);
    if (rc == DIBS_NOTFOUND || (rc == DIBS_OK && out->seated == 0))
        return dibsx_fail(err, DIBS_NOTFOUND,
                          "no party has a seat at the barrier `%s`", name);
    if (rc != DIBS_OK)
        return rc;
    out->generation = head.gen;
    out->parties = head.need;
    out->arrived = head.here;
    return DIBS_OK;
}
