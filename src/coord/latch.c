/* latch.c - latches: counting down, looking, and waits, whose machine is driven in
 * real time.
 *
 * A wait lives on the thread of the caller: that thread looks and listens. The keeper
 * passes the tells of the store on. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include <dibs/latch.h>

#include "base/alloc.h"
#include "base/cond.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "coord/handle.h"
#include "coord/latch_machine.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <inttypes.h>
#include <string.h>

enum { KEEP_MS = 24 * 3600 * 1000 };

typedef struct latch_wait {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    uint32_t count;
    dibs__latch machine;
    pthread_cond_t cond;
    bool away;          /* the last look failed */
    dibs_error failure; /* of that */
} latch_wait;

static latch_wait *wait_of(dibs__handle *handle)
{
    return (latch_wait *)(void *)handle;
}

static void wake_wait(dibs__handle *handle)
{
    pthread_cond_signal(&wait_of(handle)->cond);
}

/* Thread: the keeper. */
static void hear_opening(dibs__handle *handle, const dibs__notice *notice)
{
    if (notice->kind != DIBS__NOTICE_OPENED)
        return;
    dibs__latch_told(&wait_of(handle)->machine, notice->fence);
    wake_wait(handle);
}

/* Thread: the keeper. */
static void hear_missed(dibs__handle *handle)
{
    dibs__latch_missed(&wait_of(handle)->machine);
    wake_wait(handle);
}

static const dibs__handle_kind kind = {.noun = "a wait",
                                       .wake = wake_wait,
                                       .hear = hear_opening,
                                       .hear_missed = hear_missed};

/* Begins every call: the client can be used, its store has latches, and the name is
 * good. */
static dibs_status begin_call(dibs_client *cl, const char *name,
                              char full[DIBS_NAME_MAX + 1], dibs_error *err)
{
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;

    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_MEET);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    return dibs__name_full(cl, name, full, err);
}

static dibs_status check_count(uint32_t count, dibs_error *err)
{
    if (count > 0 && count <= DIBS_LATCH_MAX)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID,
                      "a latch waits for 1 to %d counts, not %u",
                      DIBS_LATCH_MAX, (unsigned)count);
}

static dibs_status check_id(const char *id, dibs_error *err)
{
    size_t len = strlen(id);

    if (len == 0 || len > DIBS_NAME_MAX)
        return dibsx_fail(err, DIBS_INVALID, "an id has 1 to %d bytes, not %zu",
                          DIBS_NAME_MAX, len);
    return dibs__text_check("an id", id, err);
}

static dibs_status
fail_kind(const dibs_client *cl, const dibs__meet *item, dibs_error *err)
{
    const char *name = dibs__name_short(cl, item->name);

    if (item->live > 0)
        return dibsx_fail(err, DIBS_MISMATCH,
                          "`%s` is a barrier or a group now, not a latch; use "
                          "another name",
                          name);
    return dibsx_fail(
        err, DIBS_MISMATCH,
        "the latch `%s` waits for %u counts, not %u; reset it, or "
        "use another name",
        name, (unsigned)item->parties, (unsigned)item->need);
}

/* The seats of a group or barrier have ended, which is none then. Its store keeps the head
 * until a step like this one. */
static bool is_deserted(const dibs__meet *item)
{
    if (item->live > 0)
        return false;
    if (item->verb == DIBS__RESET)
        return item->rc == DIBS_MISMATCH;
    return item->rc == DIBS_OK &&
           (item->parties == 0 || item->here < item->parties);
}

/* One step on a latch. DIBS_OK and DIBS_BUSY: it exists. Locks: none held. */
static dibs_status do_item(dibs_client *cl, dibs__meet *item, dibs_error *err)
{
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs_status rc = dibs__reach_store(cl, deadline, err);

    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->meet(cl->st, item, 1, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    if (item->rc == DIBS_NOTFOUND || is_deserted(item))
        return dibsx_fail(err, DIBS_NOTFOUND, "there is no latch `%s`",
                          dibs__name_short(cl, item->name));
    if (item->rc == DIBS_MISMATCH || (item->rc <= DIBS_BUSY && item->live > 0))
        return fail_kind(cl, item, err);
    return item->rc;
}

static void read_state(const dibs__meet *item, dibs_latch_state *out)
{
    out->generation = item->number;
    out->count = item->parties;
    out->left = item->here < item->parties ? item->parties - item->here : 0;
}

static dibs_status
fail_stale(const dibs_client *cl, const dibs__meet *item, dibs_error *err)
{
    const char *name = dibs__name_short(cl, item->name);

    if (item->number == 0)
        return dibsx_fail(err, DIBS_STALE,
                          "generation %" PRIu64 " of the latch `%s` is over; "
                          "there is no such latch now",
                          item->after, name);
    return dibsx_fail(err, DIBS_STALE,
                      "generation %" PRIu64 " of the latch `%s` is over; it "
                      "has generation %" PRIu64 " now",
                      item->after, name, item->number);
}

dibs_status
dibs_latch_count_down_in(dibs_client *cl, const char *name, uint32_t count,
                         uint64_t generation, const char *id,
                         dibs_latch_state *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1], own[DIBS_OWNER_SIZE];
    dibs__meet item = {.name = full,
                       .id = id ? id : own,
                       .verb = DIBS__COUNT,
                       .after = generation,
                       .need = count,
                       .ttl_ms = KEEP_MS};
    dibs_status rc = begin_call(cl, name, full, err);

    if (out)
        memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = check_count(count, err);
    if (rc == DIBS_OK && id)
        rc = check_id(id, err);
    if (rc != DIBS_OK)
        return rc;
    if (!id && !dibsx_random_hex(own, sizeof(own)))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the system has no random numbers now");
    rc = do_item(cl, &item, err);
    if (rc == DIBS_STALE)
        return fail_stale(cl, &item, err);
    if (out && rc <= DIBS_BUSY)
        read_state(&item, out);
    return rc == DIBS_BUSY ? DIBS_OK : rc;
}

dibs_status
dibs_latch_count_down(dibs_client *cl, const char *name, uint32_t count,
                      const char *id, uint32_t *left, dibs_error *err)
{
    dibs_latch_state at;
    dibs_status rc = dibs_latch_count_down_in(cl, name, count, 0, id, &at, err);

    if (left)
        *left = at.left;
    return rc;
}

dibs_status dibs_latch_show(dibs_client *cl, const char *name,
                            dibs_latch_state *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    dibs__meet item = {.name = full, .id = "", .verb = DIBS__LOOK};
    dibs_status rc = begin_call(cl, name, full, err);

    memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = do_item(cl, &item, err);
    if (rc > DIBS_BUSY)
        return rc;
    read_state(&item, out);
    return DIBS_OK;
}

dibs_status dibs_latch_reset(dibs_client *cl, const char *name, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    dibs__meet item = {.name = full,
                       .id = "",
                       .verb = DIBS__RESET,
                       .ttl_ms = KEEP_MS};
    dibs_status rc = begin_call(cl, name, full, err);

    return rc == DIBS_OK ? do_item(cl, &item, err) : rc;
}

/* Says once that the store is out of reach. Locks: cl->mutex, let go for the log. */
static void note_outcome(latch_wait *w, dibs_status rc, const dibs_error *err)
{
    bool was_away = w->away;

    w->away = dibsx_is_away(rc);
    w->failure = *err;
    if (!w->away || was_away)
        return;
    pthread_mutex_unlock(&w->cl->mutex);
    dibs__log(w->cl, DIBS_LOG_WARN, "latch",
              "cannot look at %s, and will try again: %s",
              dibs__name_short(w->cl, w->name), err->message);
    pthread_mutex_lock(&w->cl->mutex);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status look_once(latch_wait *w, dibs_error *err)
{
    dibs__meet item = {.name = w->name, .id = "", .verb = DIBS__LOOK};
    dibs_error failure = {0};
    dibs_status rc;

    dibs__latch_looks(&w->machine);
    pthread_mutex_unlock(&w->cl->mutex);
    rc = do_item(w->cl, &item, &failure);
    item.need = w->count;
    if (rc <= DIBS_BUSY && item.parties != item.need)
        rc = fail_kind(w->cl, &item, &failure);
    pthread_mutex_lock(&w->cl->mutex);
    dibs__latch_looked(&w->machine, dibsx_now(), rc, item.number);
    note_outcome(w, rc, &failure);
    if (rc <= DIBS_BUSY || rc == DIBS_NOTFOUND || w->away)
        return DIBS_OK;
    if (err)
        *err = failure;
    return rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static void listen_topic(latch_wait *w)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibs_status rc;

    dibs__latch_ears(&w->machine);
    rc = dibs__handle_listen(&w->handle, dibs__client_deadline(cl, sent_at),
                             NULL);
    dibs__latch_eared(&w->machine, sent_at, dibsx_now(), rc);
}

static dibs_status fail_late(const latch_wait *w, dibs_error *err)
{
    if (w->away) /* A look that had no answer has changed nothing either. */
        return dibsx_fail_at(err, DIBS_UNAVAIL, w->failure.origin, "%s",
                             w->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "the latch `%s` did not open in time",
                      dibs__name_short(w->cl, w->name));
}

/* A wait that is over by then has looked once. Locks: cl->mutex, let go
 * meanwhile. */
static dibs_status
await_opening(latch_wait *w, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = look_once(w, err);

    while (rc == DIBS_OK) {
        dibsx_nsec until, now = dibsx_now();
        dibs__latch_todo todo = dibs__latch_next(&w->machine, now, &until);

        if (todo == DIBS__LATCH_OPEN)
            return DIBS_OK;
        if (w->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        if (now >= deadline)
            return fail_late(w, err);
        if (todo == DIBS__LATCH_LOOK)
            rc = look_once(w, err);
        else if (todo == DIBS__LATCH_EAR)
            listen_topic(w);
        else
            dibsx_cond_wait(&w->cond, &w->cl->mutex,
                            until < deadline ? until : deadline);
    }
    return rc;
}

/* Runs a wait that is ready. */
static dibs_status run_wait(latch_wait *w, dibsx_nsec deadline, dibs_error *err)
{
    dibs_client *cl = w->cl;
    bool last = false;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    if (cl->closing)
        rc = dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
    if (rc == DIBS_OK)
        rc = dibs__handle_join(cl, &w->handle, err);
    if (rc == DIBS_OK) {
        dibs__handle_begin(&w->handle);
        rc = await_opening(w, deadline, err);
        dibs__handle_end(&w->handle);
        last = dibs__handle_leave(&w->handle);
    }
    pthread_mutex_unlock(&cl->mutex);
    if (last)
        dibs__client_free(cl);
    return rc;
}

dibs_status dibs_latch_wait(dibs_client *cl, const char *name, uint32_t count,
                            int64_t wait_ms, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    latch_wait w = {.handle = {.kind = &kind}, .cl = cl, .count = count};
    dibs_status rc = begin_call(cl, name, w.name, err);

    if (rc == DIBS_OK)
        rc = check_count(count, err);
    if (rc != DIBS_OK)
        return rc;
    if (!dibsx_cond_init(&w.cond))
        return dibsx_nomem(err, "a wait");
    dibs__topic_of_roster(w.name, w.handle.topic);
    dibs__latch_init(&w.machine,
                     (uint64_t)dibsx_now() ^ (uint64_t)(uintptr_t)&w);
    rc = run_wait(&w, deadline, err);
    pthread_cond_destroy(&w.cond);
    return rc;
}
