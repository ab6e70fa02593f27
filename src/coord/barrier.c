/* barrier.c - barriers: drives the machine of each party in real time.
 *
 * A wait lives on the thread of the caller: that thread sits, arrives, withdraws and
 * listens. The keeper passes the tells of the store on, and the session
 * of the client keeps the seat, between two waits too. Locks: cl->mutex guards all of
 * it. */
/* SPDX-License-Identifier: MIT */
#include <dibs/barrier.h>

#include "base/alloc.h"
#include "base/cond.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "coord/barrier_machine.h"
#include "coord/barrier_roll.h"
#include "coord/handle.h"
#include "coord/session.h"
#include "core/names.h"
#include "core/reach.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TTL_MIN_MS = 100, TTL_MAX_MS = 24 * 3600 * 1000 };

/* A barrier never has more than 500 polls a second. */
enum { POLL_MIN_MS = 1000, POLL_PARTY_MS = 2, POLLS_PER_TTL = 3 };

/* Parties that ask because a seat may have ended do so within this span. */
enum { SPREAD_MAX_MS = 250 };

/* The last steps of a call may take so long after its time. */
enum { GRACE_MS = 1000 };

enum { EAR_RETRY_MS = 1000, ROLL_EVERY_MS = 5000, REASON_MAX = 160 };

struct dibs_barrier {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    char who[DIBS__WHO_MAX];
    int64_t wait_ms; /* 0: without limit */
    dibs__barrier_party machine;
    dibs__session_seat seat; /* its id is that of the machine's number: */
    uint64_t id_number;
    uint64_t kept_fence; /* of the seat that the session was given last */
    pthread_cond_t cond;
    bool waiting;      /* a call is under way, */
    bool cancelled;    /* and is to end */
    bool listens;      /* an ear was answered, and no MISSED came since */
    dibsx_nsec ear_at; /* when to ask for the next one */
    dibsx_nsec roll_at;
    bool late_roll;             /* the last roll was taken when time was up */
    dibs__barrier_roll *before; /* the last; NULL: the barrier is too large */
    dibs__meet answer;          /* the last; its texts are not kept */
    dibs_error failure;         /* of the last request; DIBS_OK: answered */
};

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
    *opts = (dibs_barrier_opts){0};
    if (!given)
        return dibsx_fail(err, DIBS_INVALID,
                          "a barrier needs its number of parties: give "
                          "options");
    if (given->size < sizeof(given->size) || given->size > 4096)
        return dibsx_fail(err, DIBS_INVALID,
                          "the size of the options is not set; use "
                          "DIBS_BARRIER_OPTS()");
    memcpy(opts, given,
           given->size < sizeof(*opts) ? given->size : sizeof(*opts));
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
    const char *label = opts->label ? opts->label : b->cl->label;

    snprintf(b->who, sizeof(b->who), "%s:%ld%s%s", b->cl->host, (long)getpid(),
             *label ? " " : "", label);
    dibs__text_clean(b->who);
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

/* A store that hangs does not hold a call up for long after its time. */
static dibsx_nsec step_deadline(const dibs_client *cl, dibsx_nsec until)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, now);
    dibsx_nsec end = dibsx_after_ms(now > until ? now : until, GRACE_MS);

    return end < deadline ? end : deadline;
}

/* Another party of the client that listens to the topic; NULL: none. Locks:
 * cl->mutex. */
static dibs_barrier *find_ear(const dibs_barrier *b)
{
    dibs__handle *at = NULL;

    while ((at = dibs__handle_next(b->handle.kind, b->cl, at)) != NULL) {
        dibs_barrier *other = (dibs_barrier *)(void *)at;

        if (other != b && other->listens &&
            strcmp(at->address, b->handle.address) == 0)
            return other;
    }
    return NULL;
}

/* Ears are not counted: parties of one client share theirs. A call that did not listen
 * before asks again once it does. Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs_barrier *b)
{
    dibs_client *cl = b->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = step_deadline(cl, b->machine.until);
    const dibs_barrier *other = find_ear(b);
    dibs_status rc = DIBS_OK;
    bool before = b->listens;

    if (other && other->ear_at > sent_at) {
        b->ear_at = other->ear_at;
    } else {
        b->ear_at = DIBSX_NEVER;
        rc = dibs__handle_listen(&b->handle, deadline, NULL);
        if (b->ear_at != DIBSX_NEVER) /* MISSED came meanwhile */
            return;
        b->ear_at = rc == DIBS_OK ? dibsx_after_ms(sent_at, DIBS__EAR_MS / 2)
                                  : dibsx_after_ms(dibsx_now(), EAR_RETRY_MS);
    }
    b->listens = rc == DIBS_OK;
    if (b->listens && !before)
        dibs__party_missed(&b->machine, dibsx_now());
}

/* Locks: cl->mutex, let go meanwhile. */
static void take_roll(dibs_barrier *b, dibs__barrier_roll *roll)
{
    pthread_mutex_unlock(&b->cl->mutex);
    dibs__barrier_roll_take(b->cl, b->name, roll);
    pthread_mutex_lock(&b->cl->mutex);
}

static bool draw_id(dibs_barrier *b)
{
    unsigned char bits[(DIBS_OWNER_SIZE - 1) / 2];

    if (b->id_number == b->machine.id_number)
        return true;
    if (!dibsx_random(bits, sizeof(bits)))
        return false;
    dibsx_hex(bits, sizeof(bits), b->seat.id);
    b->id_number = b->machine.id_number;
    return true;
}

/* Locks: none held. */
static dibs_status
ask_store(dibs_client *cl, dibs__meet *item, dibsx_nsec until, dibs_error *err)
{
    dibsx_nsec deadline = step_deadline(cl, until);
    dibs_status rc = dibs__reach_store(cl, deadline, err);

    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->meet(cl->st, item, 1, deadline, err);
    return rc;
}

/* Gives the session the seat that the machine has; takes another one back. Locks:
 * cl->mutex, let go meanwhile. */
static dibs_status keep_seat(dibs_barrier *b, dibs_error *err)
{
    dibs_status rc;

    if (b->kept_fence == b->machine.fence)
        return DIBS_OK;
    dibs__session_leave(b->cl, &b->seat);
    b->kept_fence = b->machine.fence;
    if (b->machine.fence == 0)
        return DIBS_OK;
    b->seat.fence = b->machine.fence;
    rc = dibs__session_add(b->cl, &b->seat, err);
    if (rc != DIBS_OK)
        dibs__party_cancel(&b->machine, dibsx_now());
    return rc;
}

static bool is_away(dibs_status rc)
{
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Sends what the machine wants. A refusal to give a seat ends the call; later ones
 * are met as silence. Locks: cl->mutex, let go meanwhile. */
static void send_request(dibs_barrier *b, dibs__meet *item)
{
    dibs_client *cl = b->cl;
    char id[DIBS_OWNER_SIZE];
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    if (!draw_id(b))
        rc = dibsx_fail(&err, DIBS_UNAVAIL,
                        "the system has no random numbers now");
    snprintf(id, sizeof(id), "%s", b->seat.id);
    item->name = b->name;
    item->who = b->who;
    item->id = id;
    if (rc == DIBS_OK) {
        dibsx_nsec until = b->machine.until;

        pthread_mutex_unlock(&cl->mutex);
        rc = ask_store(cl, item, until, &err);
        pthread_mutex_lock(&cl->mutex);
    }
    b->failure = err;
    b->failure.status = rc;
    if (rc == DIBS_OK)
        b->answer = *item;
    else
        item->rc = rc;
    dibs__party_answered(&b->machine,
                         rc == DIBS_OK ||
                                 (item->verb == DIBS__SIT && !is_away(rc))
                             ? item
                             : NULL,
                         dibsx_now());
}

/* A party that waits remembers who is there, to name later who was not. Locks:
 * cl->mutex, let go meanwhile. */
static void remember_parties(dibs_barrier *b)
{
    dibsx_nsec now = dibsx_now();

    if (!b->before || b->failure.status != DIBS_OK || !b->machine.calling ||
        b->machine.state != DIBS__PARTY_WAITING || now < b->roll_at)
        return;
    b->roll_at = dibsx_after_ms(now, ROLL_EVERY_MS);
    take_roll(b, b->before);
}

/* The same when time is up, before the withdrawal changes it. Locks: cl->mutex, let go
 * meanwhile. */
static bool remember_late(dibs_barrier *b, dibsx_nsec now)
{
    if (!b->before || b->late_roll || now < b->machine.until ||
        b->machine.fence == 0 || !b->machine.asked ||
        b->failure.status != DIBS_OK || b->cl->closing)
        return false;
    b->late_roll = true;
    take_roll(b, b->before);
    return true;
}

/* One thing that the machine wants, or a sleep. Locks: cl->mutex, let go meanwhile. */
static dibs_status proceed(dibs_barrier *b, dibs_error *err)
{
    dibsx_nsec until, now = dibsx_now();
    dibs__meet item = {0};

    if (b->cl->closing || b->cancelled)
        dibs__party_cancel(&b->machine, now);
    if (remember_late(b, now))
        return DIBS_OK;
    if (now >= b->ear_at && now < b->machine.until) {
        listen_topic(b);
        return DIBS_OK;
    }
    switch (dibs__party_next(&b->machine, now, &item, &until)) {
    case DIBS__PARTY_SEND: {
        bool polls = b->machine.gen != 0;

        send_request(b, &item);
        if (polls)
            remember_parties(b);
        return keep_seat(b, err);
    }
    case DIBS__PARTY_SLEEP:
        dibsx_cond_wait(&b->cond, &b->cl->mutex, until);
        break;
    case DIBS__PARTY_DONE:
        break;
    }
    return DIBS_OK;
}

static dibs_status fail_kind(const dibs_barrier *b, dibs_error *err)
{
    const char *name = dibs__name_short(b->cl, b->name);

    if (b->answer.parties == 0 || b->answer.live == 0)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a latch or a group now, not a barrier; use "
                          "another name",
                          name);
    return dibsx_fail(err, DIBS_MISMATCH,
                      "the barrier `%s` has %u parties, not %u; give all "
                      "parties the same number, or use another name",
                      name, (unsigned)b->answer.parties,
                      (unsigned)b->machine.need);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status fail_broken(dibs_barrier *b, dibs_error *err)
{
    dibs__barrier_roll *after =
        b->before && !b->cl->closing ? dibsx_zalloc(sizeof(*after)) : NULL;
    char reason[REASON_MAX];

    if (after)
        take_roll(b, after);
    dibs__barrier_roll_broken(b->before, after, b->machine.need, reason,
                              sizeof(reason));
    dibsx_free(after);
    return dibsx_fail(err, DIBS_BROKEN, "the barrier `%s` broke%s",
                      dibs__name_short(b->cl, b->name), reason);
}

static dibs_status fail_late(const dibs_barrier *b, dibs_error *err)
{
    char reason[REASON_MAX];

    if (b->cl->closing || b->cancelled)
        return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
    if (b->failure.status != DIBS_OK)
        return dibsx_fail_at(err, DIBS_UNAVAIL, b->failure.origin, "%s",
                             b->failure.message);
    dibs__barrier_roll_late(b->before, b->machine.need, reason, sizeof(reason));
    return dibsx_fail(err, DIBS_TIMEOUT,
                      "the barrier `%s` did not open in time%s",
                      dibs__name_short(b->cl, b->name), reason);
}

/* The outcome of a call that has ended. Locks: cl->mutex, let go meanwhile. */
static dibs_status tell_outcome(dibs_barrier *b, dibs_error *err)
{
    const char *name = dibs__name_short(b->cl, b->name);

    switch (b->machine.rc) {
    case DIBS_OK:
        return DIBS_OK;
    case DIBS_STALE:
        return fail_broken(b, err);
    case DIBS_TIMEOUT:
        return fail_late(b, err);
    case DIBS_MISMATCH:
        return fail_kind(b, err);
    case DIBS_BUSY:
        return dibsx_fail(err, DIBS_BUSY,
                          "the barrier `%s` has all its %u parties; end one, "
                          "or give all a larger number",
                          name, (unsigned)b->machine.need);
    case DIBS_LOST:
        return dibsx_fail(err, DIBS_LOST,
                          "the seat at the barrier `%s` has ended: it was not "
                          "kept in time, or the store lost it",
                          name);
    case DIBS_UNKNOWN:
        return dibsx_fail_at(err, DIBS_UNKNOWN, b->failure.origin,
                             "the arrival at the barrier `%s` may count until "
                             "its seat ends: %s",
                             name, b->failure.message);
    default:
        return dibsx_fail_at(err, b->machine.rc, b->failure.origin, "%s",
                             b->failure.message);
    }
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status run_call(dibs_barrier *b, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibs_error unkept;
    dibs_status rc = DIBS_OK;

    b->late_roll = false;
    b->failure.status = DIBS_OK;
    b->roll_at = 0;
    if (b->before)
        b->before->seen = false;
    dibs__party_call(&b->machine,
                     b->wait_ms > 0 ? dibsx_after_ms(now, b->wait_ms)
                                    : DIBSX_NEVER,
                     now);
    while (b->machine.calling) {
        dibs_status failed = proceed(b, &unkept);

        if (failed != DIBS_OK)
            rc = failed;
    }
    (void)keep_seat(b, NULL);
    if (rc == DIBS_OK || b->machine.rc == DIBS_OK)
        return tell_outcome(b, err);
    return dibsx_fail_at(err, rc, unkept.origin, "%s", unkept.message);
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
        rc = run_call(b, err);
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
