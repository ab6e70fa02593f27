/* member.c - members of groups: join, look, leave.
 *
 * The session of the client takes the seat and keeps it; its answers are noted here,
 * on a worker. Looks lock nothing. Locks: cl->mutex guards what says so. */
/* SPDX-License-Identifier: MIT */
#include <dibs/members.h>

#include "base/alloc.h"
#include "base/cond.h"
#include "base/opts.h"
#include "base/uncancel.h"
#include "coord/group_seat.h"
#include "coord/handle.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TTL_MIN_MS = 100, TTL_MAX_MS = 24 * 3600 * 1000 };

struct dibs_member {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    dibs__group_seat group;
    _Atomic(dibsx_nsec) seated_until;
    _Atomic(dibsx_nsec) enough_until;
    _Atomic(uint64_t) fence;
    pthread_cond_t cond;   /* an answer has come */
    dibs_status refusal;   /* of the store; DIBS_OK: none. cl->mutex */
    dibsx_nsec count_from; /* later heartbeats count. cl->mutex */
    bool counted;          /* one of them was answered. cl->mutex */
    bool doubt;            /* the store may have a seat of it. cl->mutex */
};

static void wake_member(dibs__handle *handle)
{
    pthread_cond_broadcast(&((dibs_member *)(void *)handle)->cond);
}

static const dibs__handle_kind kind = {.noun = "a member", .wake = wake_member};

static void forget_seat(dibs_member *member)
{
    atomic_store(&member->seated_until, 0);
    atomic_store(&member->enough_until, 0);
    atomic_store(&member->fence, 0);
}

/* A seat that was kept lives for its ttl from the send, less the drift of clocks. The
 * store said for how long enough seats live, so that only the answer "too few" shortens
 * that. */
static void
note_kept(dibs_member *member, const dibs__meet *answer, dibsx_nsec sent_at)
{
    int64_t left_ms = dibs__group_left_ms(answer);
    dibsx_nsec enough = left_ms > 0 ? dibsx_after_ms(sent_at, left_ms) : 0;

    atomic_store(&member->seated_until,
                 dibsx_after_ms(sent_at, dibs__group_kept_ms(answer)));
    atomic_store(&member->fence, answer->fence);
    if (sent_at <= member->count_from)
        return;
    member->counted = true;
    if (enough == 0 || enough > atomic_load(&member->enough_until))
        atomic_store(&member->enough_until, enough);
}

/* Thread: a worker. Locks: cl->mutex. */
static void note_answer(dibs_client *cl, dibs__session_seat *seat,
                        const dibs__meet *answer, dibsx_nsec sent_at)
{
    dibs_member *member = seat->arg;

    (void)cl;
    member->refusal = DIBS_OK;
    switch (answer->rc) {
    case DIBS_OK:
        member->doubt = true;
        if (answer->verb == DIBS__KEEP)
            note_kept(member, answer, sent_at);
        break;
    case DIBS_LOST:
        forget_seat(member);
        break;
    case DIBS_TIMEOUT: /* The session has given the seat up. */
        if (answer->verb == DIBS__KEEP)
            forget_seat(member);
        break;
    case DIBS_UNKNOWN:
        member->doubt = true;
        break;
    case DIBS_UNAVAIL:
        break;
    default:
        member->refusal = answer->rc;
    }
    pthread_cond_broadcast(&member->cond);
}

static dibs_status
read_opts(const dibs_client *cl, const dibs_member_opts *given,
          dibs_member_opts *opts, dibs_error *err)
{
    dibs_status rc =
        dibsx_opts_copy(opts, sizeof(*opts), given, "DIBS_MEMBER_OPTS()", err);

    if (rc != DIBS_OK)
        return rc;
    if (opts->ttl_ms == 0)
        opts->ttl_ms = cl->ttl_ms;
    if (opts->minimum == 0)
        opts->minimum = 1;
    if (opts->flags & ~(uint32_t)DIBS_MEMBER_QUICK)
        return dibsx_fail(err, DIBS_INVALID,
                          "dibs_member_opts.flags has unknown bits");
    if (opts->ttl_ms < TTL_MIN_MS || opts->ttl_ms > TTL_MAX_MS)
        return dibsx_fail(err, DIBS_INVALID,
                          "ttl_ms of a member is %d to %d, and not %" PRId64,
                          (int)TTL_MIN_MS, (int)TTL_MAX_MS, opts->ttl_ms);
    return DIBS_OK;
}

static dibs_status fail_refused(const dibs_member *member, dibs_error *err)
{
    const char *name = dibs__name_short(member->cl, member->group.name);

    if (member->refusal == DIBS_MISMATCH)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a barrier or a latch now, not a group; use "
                          "another name",
                          name);
    return dibsx_fail(err, member->refusal,
                      "the store refuses a seat in the group `%s`", name);
}

/* A request without an answer may give the seat, until its ttl is over. Locks:
 * cl->mutex. */
static dibs_status fail_late(const dibs_member *member, dibs_error *err)
{
    bool sent = member->group.seat.due_at == DIBSX_NEVER;

    return dibsx_fail(err, member->doubt || sent ? DIBS_UNKNOWN : DIBS_UNAVAIL,
                      "the store gave no seat in the group `%s` in time",
                      dibs__name_short(member->cl, member->group.name));
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_seat(dibs_member *member, dibs_error *err)
{
    dibs_client *cl = member->cl;
    /* Two steps: one takes the seat, one uses it. */
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), 2 * cl->timeout_ms);

    while (atomic_load(&member->seated_until) == 0) {
        if (member->refusal != DIBS_OK)
            return fail_refused(member, err);
        if (cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the client is closed");
        if (dibsx_now() >= deadline)
            return fail_late(member, err);
        dibsx_cond_wait(&member->cond, &cl->mutex, deadline);
    }
    return DIBS_OK;
}

static dibs_status take_seat(dibs_member *member, dibs_error *err)
{
    dibs_client *cl = member->cl;
    dibs_status rc;

    member->handle.kind = &kind;
    pthread_mutex_lock(&cl->mutex);
    rc = dibs__handle_join(cl, &member->handle, err);
    if (rc == DIBS_OK) {
        dibs__handle_begin(&member->handle);
        rc = dibs__session_add(cl, &member->group.seat, err);
        if (rc == DIBS_OK)
            rc = await_seat(member, err);
        if (rc != DIBS_OK)
            dibs__session_leave(cl, &member->group.seat);
        dibs__handle_end(&member->handle);
        /* dibs_close() waits for the call, so that this is not the last one. */
        if (rc != DIBS_OK)
            (void)!dibs__handle_leave(&member->handle);
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

static dibs_status fill_member(dibs_member *member, const char *group,
                               const dibs_member_opts *given, dibs_error *err)
{
    dibs_member_opts opts;
    dibs_status rc = read_opts(member->cl, given, &opts, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__group_seat_init(
        member->cl, &member->group,
        &(dibs__group_opts){.group = group,
                            .member = opts.member,
                            .label = opts.label,
                            .meta = opts.meta,
                            .ttl_ms = opts.ttl_ms,
                            .need = opts.minimum,
                            .quick = (opts.flags & DIBS_MEMBER_QUICK) != 0},
        err);
    member->group.seat.told = note_answer;
    member->group.seat.arg = member;
    return rc;
}

dibs_status dibs_member_join(dibs_client *cl, const char *group,
                             const dibs_member_opts *opts, dibs_member **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__reach_usable(cl, err);
    dibs_member *member;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    member = dibsx_zalloc(sizeof(*member));
    if (!member || !dibsx_cond_init(&member->cond)) {
        dibsx_free(member);
        return dibsx_nomem(err, "a member");
    }
    member->cl = cl;
    rc = fill_member(member, group, opts, err);
    if (rc == DIBS_OK)
        rc = take_seat(member, err);
    if (rc == DIBS_OK) {
        *out = member;
        return DIBS_OK;
    }
    pthread_cond_destroy(&member->cond);
    dibsx_free(member);
    return rc;
}

void dibs_member_leave(dibs_member *member)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!member || dibs__forked(member->cl->fork_number))
        return;
    cl = member->cl;
    pthread_mutex_lock(&cl->mutex);
    dibs__session_leave(cl, &member->group.seat);
    last = dibs__handle_leave(&member->handle);
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&member->cond);
    dibsx_free(member);
    if (last)
        dibs__client_free(cl);
}

dibs_status dibs_member_check(const dibs_member *member)
{
    if (dibs__forked(member->cl->fork_number) ||
        dibsx_now() >= atomic_load(&member->seated_until))
        return DIBS_LOST;
    return DIBS_OK;
}

int64_t dibs_member_enough_ms(const dibs_member *member)
{
    dibsx_nsec left = atomic_load(&member->enough_until) - dibsx_now();

    return left > 0 && !dibs__forked(member->cl->fork_number) ? left / DIBSX_MS
                                                              : 0;
}

uint64_t dibs_member_fence(const dibs_member *member)
{
    return dibs_member_check(member) == DIBS_OK ? atomic_load(&member->fence)
                                                : 0;
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_count(dibs_member *member, dibs_error *err)
{
    dibs_client *cl = member->cl;
    const char *name = dibs__name_short(cl, member->group.name);
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    uint64_t fence = atomic_load(&member->fence);

    while (!member->counted && fence != 0 &&
           atomic_load(&member->fence) == fence) {
        if (cl->closing || dibsx_now() >= deadline)
            return dibsx_fail(err, DIBS_UNAVAIL,
                              "the store did not count the members of the "
                              "group `%s` in time",
                              name);
        dibsx_cond_wait(&member->cond, &cl->mutex, deadline);
    }
    if (fence == 0 && member->refusal != DIBS_OK)
        return fail_refused(member, err);
    if (!member->counted || fence == 0)
        return dibsx_fail(err, DIBS_LOST, "the seat in the group `%s` was lost",
                          name);
    if (dibs_member_enough_ms(member) == 0)
        return dibsx_fail(err, DIBS_BUSY,
                          "fewer than %u members of the group `%s` are counted",
                          (unsigned)member->group.seat.need, name);
    return DIBS_OK;
}

dibs_status dibs_member_recount(dibs_member *member, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc;

    if (!member)
        return dibsx_fail(err, DIBS_INVALID, "the member is NULL");
    rc = dibs__client_usable(member->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&member->cl->mutex);
    member->count_from = dibsx_now();
    member->counted = false;
    atomic_store(&member->enough_until, 0);
    dibs__session_hurry(member->cl, &member->group.seat);
    dibs__handle_begin(&member->handle);
    rc = await_count(member, err);
    dibs__handle_end(&member->handle);
    pthread_mutex_unlock(&member->cl->mutex);
    return rc;
}
