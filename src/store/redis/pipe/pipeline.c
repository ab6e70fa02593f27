/* pipeline.c - one connection shared as a pipeline, driven by its callers.
 *
 * pipeline_send.c and pipeline_receive.c have the two directions, pipeline_post.c the
 * commands that no thread waits for.
 *
 * Owns the connection, the pending commands (each lives with the thread that
 * waits for it, which may wait for several) and the moment of the next attempt to connect.
 *
 *      call            send              reply
 *   ---------> queue --------> flight ---------> done
 *                ^               |  connection lost before the kernel got a byte
 *                +---------------+  of it (later: it is done, DIBS_UNKNOWN), or
 *                                   its batch had no answer for it
 *
 *  1. While a command that a thread waits for is queued or in flight, there is one
 *     leader: a thread in lead_until_done(), one that was posted the role and is about
 *     to enter, one that is posting a command, or one that has seized the role.
 *  2. Only the leader receives, connects, closes and ends commands of others.
 *  3. Commands in flight are in the order of their bytes, and so of replies.
 *  4. `writing`: one thread is giving `out` to the kernel, outside the mutex. The
 *     connection is not closed meanwhile.
 *  5. `broken`: nothing more is sent or received; the leader closes it.
 *  6. A command in flight has `start`, the offset of its first byte in the stream.
 *     It counts as given when that is below `given`, and while `out` is being
 *     written.
 *  7. The members of a batch are next to each other in flight, have one `start`
 *     and one reply; the first has their number. While the connection works,
 *     none leaves before the others.
 *  8. A command is in one batch at most. Without an answer from it the command is
 *     sent alone; if that fails and the batch failed, it is DIBS_UNKNOWN.
 *  9. A unit of several commands is one piece: it is sent, fails and is done as a
 *     whole, and stays in flight until its last reply.
 * 10. A command that is bound to a connection (`only_on`) is queued while that one
 *     works, and ends with it: the leader fails it before it connects again.
 * 11. A command that was posted is bound, and no thread need wait for it: the next
 *     leader takes its reply. No command that was queued later is sent before it.
 * 12. A command that a replica refused is queued again and the connection ends;
 *     replies that came with the refusal are handed out all the same.
 */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pipeline.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "store/redis/pipe/pipeline_parts.h"
#include <assert.h>
#include <poll.h>

/* The origin of a failure that only took too long: the system's own word. */
#define LATE "ETIMEDOUT"

enum {
    COMMAND_ON_STACK = 1024,
    COMMAND_MAX = 64 << 20 /* bytes */
};

/* An idle connection is checked after this long, before it is used again:
 * servers and middle boxes close them. */
#define IDLE_LOOK (100 * DIBSX_MS)

dibs_status dibs__pipeline_new(const dibs__redis_conf *conf,
                               dibs__pipeline **out, dibs_error *err)
{
    dibs__pipeline *pl = dibsx_zalloc(sizeof(*pl));
    uint64_t seed = 0;

    *out = NULL;
    if (!pl)
        return dibsx_nomem(err, "a connection");
    pl->connect.conf = conf;
    pthread_mutex_init(&pl->mutex, NULL);
    pthread_cond_init(&pl->written, NULL);
    dibsx_buf_init(&pl->out, COMMAND_MAX + DIBS__PIPELINE_CHUNK);
    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now() ^ (uint64_t)(uintptr_t)pl;
    dibs__backoff_init(&pl->backoff, seed);
    *out = pl;
    return DIBS_OK;
}

void dibs__pipeline_follow(dibs__pipeline *pl, dibs__sentinel *sentinel)
{
    pl->connect.sentinel = sentinel;
    pl->backoff.cap = DIBS__SENTINEL_PAUSE;
}

void dibs__pipeline_free(dibs__pipeline *pl)
{
    if (!pl)
        return;
    assert(!pl->led && !pl->flight.first && !pl->queue.first);
    dibs__conn_close(pl->cn);
    dibsx_buf_fini(&pl->out);
    dibs__connect_fini(&pl->connect);
    pthread_cond_destroy(&pl->written);
    pthread_mutex_destroy(&pl->mutex);
    dibsx_free(pl);
}

static void leave_primary(dibs__pipeline *pl)
{
    const dibs_error why = {
        .message = "the connection was given up, as another server has become "
                   "the primary"};

    dibs__pipeline_break_off(pl, &why);
}

void dibs__pipeline_drop(dibs__pipeline *pl)
{
    pthread_mutex_lock(&pl->mutex);
    leave_primary(pl);
    pthread_mutex_unlock(&pl->mutex);
}

void dibs__pipeline_distrust(dibs__pipeline *pl)
{
    const dibs_error why = {.origin = "ODD",
                            .message = "the connection was given up, as the "
                                       "server answered what it cannot"};

    pthread_mutex_lock(&pl->mutex);
    dibs__pipeline_break_off(pl, &why);
    pthread_mutex_unlock(&pl->mutex);
}

/* Locks: pl->mutex. */
static bool was_given(const dibs__pipeline *pl, const dibs__pending *pd)
{
    return pl->writing || pd->start < pl->given;
}

/* A command's time is up. Runs on its own thread. Another command would get its
 * late reply, so if it was sent the connection ends with it. Locks:
 * pl->mutex. */
static void expire_pending(dibs__pipeline *pl, dibs__pending *pd)
{
    dibs_status rc = DIBS_UNAVAIL;
    dibs_error why = {0};

    if (dibsx_fifo_remove(&pl->queue, &pd->queued)) {
        (void)dibsx_fail_at(&why, rc, LATE,
                            "the deadline passed before it was sent");
    } else {
        if (was_given(pl, pd))
            rc = DIBS_UNKNOWN;
        (void)dibsx_fifo_remove(&pl->flight, &pd->queued);
        (void)dibsx_fail_at(&why, rc, LATE,
                            "the connection was given up, as another command "
                            "on it was not answered in time");
        dibs__pipeline_break_off(pl, &why);
        (void)dibsx_fail_at(&why, rc, LATE,
                            "the server did not answer in time");
    }
    dibs__pipeline_fail_pending(pd, rc, &why);
}

/* Queues the commands again of which nothing was sent, and ends those that are
 * bound to the connection, which is gone. Runs on the leader. Locks: pl->mutex. */
static void queue_unsent(dibs__pipeline *pl, dibsx_fifo *unsent)
{
    dibsx_fifo free = {0};

    dibsx_fifo_prepend(&pl->queue, unsent);
    while (pl->queue.first) {
        dibs__pending *pd = dibs__pending_pop(&pl->queue);

        if (pd->only_on)
            dibs__pipeline_fail_pending(pd, DIBS_STALE, &pl->why);
        else
            dibsx_fifo_push(&free, &pd->queued);
    }
    pl->queue = free;
}

void dibs__pipeline_hang_up(dibs__pipeline *pl)
{
    dibsx_fifo unsent = {0};

    while (pl->writing)
        pthread_cond_wait(&pl->written, &pl->mutex);
    dibs__conn_close(pl->cn);
    pl->cn = NULL;
    pl->broken = false;
    while (pl->flight.first) {
        dibs__pending *pd = dibs__pending_pop(&pl->flight);

        if (was_given(pl, pd))
            dibs__pipeline_fail_pending(pd, DIBS_UNKNOWN, &pl->why);
        else
            dibsx_fifo_push(&unsent, &pd->queued);
    }
    queue_unsent(pl, &unsent);
    dibsx_buf_reset(&pl->out);
    pl->out_at = 0;
    pl->out_total = pl->given = 0;
    pl->away = DIBS_UNAVAIL;
    dibs__backoff_failed(&pl->backoff, dibsx_now());
}

/* Fails a command whose deadline is before the next attempt to connect. Locks:
 * pl->mutex. */
static void fail_until_due(dibs__pipeline *pl, dibs__pending *pd)
{
    (void)dibsx_fifo_remove(&pl->queue, &pd->queued);
    dibs__pipeline_fail_pending(pd, pl->away, &pl->why);
}

/* The attempt failed: all waiting commands fail with the reason. If only the
 * leader's own time was up, the others may still succeed. Locks: pl->mutex. */
static void
connect_failed(dibs__pipeline *pl, dibs__pending *pd, dibs_status rc)
{
    dibsx_nsec now = dibsx_now();

    pl->away = rc;
    dibs__backoff_failed(&pl->backoff, now);
    if (now < pd->deadline &&
        dibs__connect_is_worth_a_wait(&pl->connect, rc, pl->lost_at, now))
        return;
    if (rc == DIBS_UNAVAIL && now >= pd->deadline) {
        (void)dibsx_fifo_remove(&pl->queue, &pd->queued);
        dibs__pipeline_fail_pending(pd, rc, &pl->why);
        return;
    }
    while (pl->queue.first)
        dibs__pipeline_fail_pending(dibs__pending_pop(&pl->queue), rc,
                                    &pl->why);
}

/* Connects, when the next attempt is due. Runs on the leader.
 * Locks: pl->mutex, which it drops. */
static void connect_for(dibs__pipeline *pl, dibs__pending *pd)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec due_at = pl->backoff.due_at;
    bool demoted = pl->demoted;
    dibs__conn *cn = NULL;
    dibs_error why = {0};
    dibs_status rc;

    if (due_at > now && due_at >= pd->deadline) {
        fail_until_due(pl, pd);
        return;
    }
    pl->demoted = false;
    if (pl->lost_at == 0)
        pl->lost_at = now;
    pthread_mutex_unlock(&pl->mutex);
    if (due_at > now)
        (void)poll(NULL, 0, (int)dibsx_wait_ms(due_at, now));
    rc = dibs__connect_open(&pl->connect, demoted, pd->deadline, &cn, &why);
    pthread_mutex_lock(&pl->mutex);
    pl->cn = cn;
    if (rc == DIBS_OK) {
        pl->lost_at = 0;
        pl->cn_number++;
        if (dibs__connect_has_moved(&pl->connect))
            leave_primary(pl);
        return;
    }
    pl->why = why;
    connect_failed(pl, pd, rc);
}

void dibs__pipeline_look_at_idle(dibs__pipeline *pl, dibsx_nsec now)
{
    const dibs_error why = {
        .origin = "EOF",
        .message = "the server closed the connection while it was idle"};

    if (pl->cn && now - pl->used_at > IDLE_LOOK && pl->flight.count == 0 &&
        dibs__conn_gone(pl->cn))
        dibs__pipeline_break_off(pl, &why);
}

/* The last in flight that a thread waits for, which keeps the role longest, or the
 * first in the queue; NULL: none. */
static const dibs__pending *find_next(const dibs__pipeline *pl)
{
    const dibs__pending *next = dibs__pending_last(&pl->flight);
    const dibs__pending *at = dibs__pending_first(&pl->flight);

    if (next && next->waiter)
        return next;
    for (next = NULL; at; at = dibs__pending_next(at))
        if (at->waiter)
            next = at;
    at = dibs__pending_first(&pl->queue);
    for (; at && !next; at = dibs__pending_next(at))
        if (at->waiter)
            next = at;
    return next;
}

dibsx_park *dibs__pipeline_pass_lead(dibs__pipeline *pl)
{
    const dibs__pending *next = find_next(pl);
    dibsx_park *park;

    if (!next && pl->queue.first) {
        dibs__pipeline_flush(pl, NULL);
        next = find_next(pl);
    }
    park = next ? &next->waiter->park : NULL;
    pl->led = next != NULL;
    return park && dibsx_park_post(park, DIBS__PIPELINE_LEAD) ? park : NULL;
}

void dibs__pipeline_step_down(dibs__pipeline *pl)
{
    dibsx_park *next;

    if (pl->broken)
        dibs__pipeline_hang_up(pl);
    next = dibs__pipeline_pass_lead(pl);
    pthread_mutex_unlock(&pl->mutex);
    if (next)
        dibsx_park_wake(next);
}

/* Ends the commands of a thread whose time is up. Runs on that thread. Locks:
 * pl->mutex. */
static void expire_overdue(dibs__pipeline *pl, const dibs__waiter *wt)
{
    while (wt->left > 0) {
        dibs__pending *pd = dibs__waiter_next(wt);

        if (dibsx_now() < pd->deadline)
            break;
        expire_pending(pl, pd);
    }
}

/* Drives the connection until the commands of the leader are done. Locks: pl->mutex,
 * which it drops and does not take again. */
static void lead_until_done(dibs__pipeline *pl, dibs__waiter *wt)
{
    while (wt->left > 0) {
        if (pl->broken) {
            dibs__pipeline_hang_up(pl);
        } else if (!pl->cn) {
            connect_for(pl, dibs__waiter_next(wt));
        } else {
            dibs__pipeline_flush(pl, NULL);
            if (!pl->broken && wt->left > 0)
                dibs__pipeline_receive(pl, dibs__waiter_next(wt)->deadline);
            expire_overdue(pl, wt);
        }
    }
    dibs__pipeline_step_down(pl);
}

/* Waits for another thread to end the commands, or to pass on its role. Locks:
 * pl->mutex, which it drops and does not take again. */
static void follow_leader(dibs__pipeline *pl, dibs__waiter *wt)
{
    while (wt->left > 0) {
        dibsx_nsec deadline = dibs__waiter_next(wt)->deadline;
        int post;

        pthread_mutex_unlock(&pl->mutex);
        post = dibsx_park_wait(&wt->park, deadline);
        if (post == DIBS__PIPELINE_DONE)
            return;
        pthread_mutex_lock(&pl->mutex);
        if (dibsx_park_look(&wt->park) == DIBS__PIPELINE_LEAD) {
            lead_until_done(pl, wt);
            return;
        }
        expire_overdue(pl, wt);
    }
    pthread_mutex_unlock(&pl->mutex);
}

void dibs__pipeline_drive(dibs__pipeline *pl, dibs__waiter *wt)
{
    if (pl->led || wt->left == 0) {
        follow_leader(pl, wt);
        return;
    }
    pl->led = true;
    lead_until_done(pl, wt);
}

/* Whether its connection has ended already. Locks: pl->mutex. */
static bool is_late(const dibs__pipeline *pl, const dibs__pending *pd)
{
    return pd->only_on &&
           (!pl->cn || pl->broken || pd->only_on != pl->cn_number);
}

/* Queues a command, or ends it at once. Locks: pl->mutex. */
static void queue_pending(dibs__pipeline *pl, dibs__pending *pd)
{
    const dibs_error gone = {.message = "the connection has ended"};

    if (is_late(pl, pd))
        dibs__pipeline_fail_pending(pd, DIBS_STALE, &gone);
    else
        dibsx_fifo_push(&pl->queue, &pd->queued);
}

void dibs__pipeline_calls(dibs__pipeline *pl, dibs__pending *commands,
                          size_t count)
{
    dibs__waiter wt = {.commands = commands, .count = count, .left = count};
    dibsx_nsec now = dibsx_now();

    pthread_mutex_lock(&pl->mutex);
    for (size_t i = 0; i < count; i++) {
        commands[i].waiter = &wt;
        queue_pending(pl, &commands[i]);
    }
    if (!pl->led)
        dibs__pipeline_look_at_idle(pl, now);
    pl->used_at = now;
    if (pl->led && wt.left > 0 && dibs__pipeline_is_worth_sending(pl))
        dibs__pipeline_flush(pl, &wt);
    dibs__pipeline_drive(pl, &wt);
}

dibs_status
dibs__pipeline_call(dibs__pipeline *pl, const dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return dibs__pipeline_join(pl, NULL, words, deadline, out, err);
}

void dibs__pipeline_link(dibs__pipeline *pl, dibs__link *out)
{
    *out = (dibs__link){.number = 0};
    pthread_mutex_lock(&pl->mutex);
    if (pl->cn && !pl->broken) {
        out->number = pl->cn_number;
        if (!dibs__conn_ends(pl->cn, out->own, out->other))
            out->own[0] = out->other[0] = '\0';
    }
    pthread_mutex_unlock(&pl->mutex);
}

static dibs_status
call_bound(dibs__pipeline *pl, const dibs__part *part, uint64_t number,
           const dibs__words *words, dibsx_nsec deadline, redisReply **out,
           dibs_error *err)
{
    char small[COMMAND_ON_STACK];
    size_t room = dibs__words_room(words);
    char *bytes = small;
    dibs__pending pd = {.due = 1,
                        .replies = out,
                        .only_on = number,
                        .deadline = deadline,
                        .err = err};

    *out = NULL;
    if (dibsx_now() >= deadline)
        return dibsx_fail_at(err, DIBS_UNAVAIL, LATE,
                             "the deadline has passed");
    if (room > COMMAND_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a command is too large");
    if (room > sizeof(small))
        bytes = dibsx_zalloc(room);
    if (!bytes)
        return dibsx_nomem(err, "a command");
    pd.bytes = bytes;
    pd.len = dibs__words_encode(words, bytes);
    if (part)
        dibs__member_init(&pd.member, part, words, bytes, pd.len);
    dibs__pipeline_calls(pl, &pd, 1);
    if (bytes != small)
        dibsx_free(bytes);
    return pd.rc;
}

dibs_status dibs__pipeline_join(dibs__pipeline *pl, const dibs__part *part,
                                const dibs__words *words, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    return call_bound(pl, part, 0, words, deadline, out, err);
}

dibs_status
dibs__pipeline_call_on(dibs__pipeline *pl, uint64_t number,
                       const dibs__words *words, dibsx_nsec deadline,
                       redisReply **out, dibs_error *err)
{
    return call_bound(pl, NULL, number, words, deadline, out, err);
}

dibs_status dibs__pipeline_unit(dibs__pipeline *pl, const char *bytes,
                                size_t len, int count, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    dibs__pending pd = {.bytes = bytes,
                        .len = len,
                        .due = count,
                        .replies = out,
                        .deadline = deadline,
                        .err = err};

    for (int i = 0; i < count; i++)
        out[i] = NULL;
    if (dibsx_now() >= deadline)
        return dibsx_fail_at(err, DIBS_UNAVAIL, LATE,
                             "the deadline has passed");
    if (len > COMMAND_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a command is too large");
    dibs__pipeline_calls(pl, &pd, 1);
    for (int i = 0; i < count && pd.rc != DIBS_OK; i++) {
        dibs__reply_free(out[i]);
        out[i] = NULL;
    }
    return pd.rc;
}

dibs_status
dibs__pipeline_ready(dibs__pipeline *pl, dibsx_nsec now, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&pl->mutex);
    if (!pl->cn && pl->backoff.due_at > now)
        rc =
            dibsx_fail_at(err, pl->away, pl->why.origin, "%s", pl->why.message);
    pthread_mutex_unlock(&pl->mutex);
    return rc;
}
