/* pipeline.c - one connection shared as a pipeline, driven by its callers.
 *
 * Owns the connection, the pending commands (each lives on the stack of the
 * thread that waits for it) and the moment of the next attempt to connect.
 *
 *      call            send              reply
 *   ---------> queue --------> flight ---------> done
 *                ^               |  connection lost before the kernel got a byte
 *                +---------------+  of it (later: it is done, DIBS_UNKNOWN), or
 *                                   its batch had no answer for it
 *
 *  1. While a command is queued or in flight, there is one leader: a thread in
 *     lead_until_done(), or one that was posted LEAD and is about to enter it.
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
 * 10. A command that a replica refused is queued again and the connection ends;
 *     replies that came with the refusal are handed out all the same.
 */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pipeline.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include "base/park.h"
#include "store/redis/pipe/connect.h"
#include "store/redis/pipe/pending.h"
#include "store/redis/wire/backoff.h"
#include "store/redis/wire/conn.h"
#include "store/redis/wire/error.h"
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

enum {
    COMMAND_ON_STACK = 1024,
    COMMAND_MAX = 64 << 20, /* bytes */
    CHUNK_BYTES =
        64 << 10, /* bytes given to the kernel at once, or one command */
    OUT_KEPT = 256 << 10, /* a larger buffer is freed after use */
    REPLIES_MAX = 64,     /* replies handed out at once */
    ROOM_MS = 20, /* a follower waits for room, and looks whether it leads */
    FEW_IN_FLIGHT = 4,
    MANY_QUEUED = 16
};

/* An idle connection is checked after this long, before it is used again:
 * servers and middle boxes close them. */
#define IDLE_LOOK (100 * DIBSX_MS)

enum { DONE = 1, LEAD = 2 }; /* posts */

struct dibs__pipeline {
    dibs__connect connect; /* the leader's */

    pthread_mutex_t mutex;
    pthread_cond_t written; /* `writing` has ended on a broken connection */
    bool led;
    bool writing;
    bool broken;
    bool demoted; /* the server has shown that it is a replica */
    dibs__conn *cn;
    dibsx_fifo queue;
    dibsx_fifo flight;
    bool text_due;      /* the server lacks the script of the batch */
    uint64_t out_total; /* bytes that were put into `out` on this connection */
    uint64_t given;
    dibsx_nsec used_at;
    dibs_error why;     /* the reason why it broke, or could not be made */
    dibs_status away;   /* the status until the next attempt is due */
    dibsx_nsec lost_at; /* since when there is no connection; 0: there is one */
    dibs__backoff backoff;

    /* For the thread that is `writing`; when none is, for the holder of the
     * mutex. */
    dibsx_buf out;
    size_t out_at; /* bytes before it are given */

    /* The leader's. */
    dibsx_park *asleep[REPLIES_MAX * DIBS__BATCH_MAX];
    size_t asleep_count;
};

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
    dibsx_buf_init(&pl->out, COMMAND_MAX + CHUNK_BYTES);
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
    assert(!pl->led);
    dibs__conn_close(pl->cn);
    dibsx_buf_fini(&pl->out);
    dibs__connect_fini(&pl->connect);
    pthread_cond_destroy(&pl->written);
    pthread_mutex_destroy(&pl->mutex);
    dibsx_free(pl);
}

static bool is_done(dibs__pending *pd)
{
    return dibsx_park_look(&pd->park) == DONE;
}

/* Ends a command with a status and the reason in `why`. Its memory may be gone
 * as soon as it was posted to. Locks: pl->mutex. */
static void
fail_pending(dibs__pending *pd, dibs_status rc, const dibs_error *why)
{
    pd->rc = dibsx_fail_at(pd->err, pd->unsure ? DIBS_UNKNOWN : rc, why->origin,
                           "%s", why->message);
    if (dibsx_park_post(&pd->park, DONE))
        dibsx_park_wake(&pd->park);
}

/* Locks: pl->mutex. */
static void break_off(dibs__pipeline *pl, const dibs_error *why)
{
    if (pl->broken || !pl->cn)
        return;
    pl->broken = true;
    pl->why = *why;
    dibs__conn_sever(pl->cn);
}

static void leave_primary(dibs__pipeline *pl)
{
    const dibs_error why = {
        .message = "the connection was given up, as another server has become "
                   "the primary"};

    break_off(pl, &why);
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
    break_off(pl, &why);
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
        (void)dibsx_fail(&why, rc, "the deadline passed before it was sent");
    } else {
        if (was_given(pl, pd))
            rc = DIBS_UNKNOWN;
        (void)dibsx_fifo_remove(&pl->flight, &pd->queued);
        (void)dibsx_fail(&why, rc,
                         "the connection was given up, as another command on "
                         "it was not answered in time");
        break_off(pl, &why);
        (void)dibsx_fail(&why, rc, "the server did not answer in time");
    }
    fail_pending(pd, rc, &why);
}

/* Appends one command, or that of a batch, to `out`; false when memory was
 * short. Locks: pl->mutex. */
static bool append_command(dibs__pipeline *pl, const dibsx_fifo *members)
{
    const dibs__pending *first = dibs__pending_first(members);
    size_t before = pl->out.len;

    if (members->count == 1) {
        dibsx_buf_add(&pl->out, first->bytes, first->len);
    } else {
        const dibs__member *all[DIBS__BATCH_MAX];
        int count = 0;

        for (const dibs__pending *pd = first; pd; pd = dibs__pending_next(pd))
            all[count++] = &pd->member;
        dibs__batch_put(all, count, pl->text_due, &pl->out);
        pl->text_due = false;
    }
    if (dibsx_buf_ok(&pl->out))
        return true;
    pl->out.failed = false;
    pl->out.len = before;
    return false;
}

/* Moves commands that are in `out` to flight. Locks: pl->mutex. */
static void move_to_flight(dibs__pipeline *pl, dibsx_fifo *members)
{
    dibs__pending_first(members)->batch_count = (int)members->count;
    while (members->first) {
        dibs__pending *pd = dibs__pending_pop(members);

        pd->start = pl->out_total;
        dibsx_fifo_push(&pl->flight, &pd->queued);
    }
}

/* Puts queued commands into `out`, which is empty. If memory is too short for a
 * command, only the leader ends it, as its thread may have become the next
 * leader. Locks: pl->mutex. */
static void fill_out(dibs__pipeline *pl, bool leads)
{
    dibsx_buf_reset(&pl->out);
    pl->out_at = 0;
    while (pl->queue.first && pl->out.len < CHUNK_BYTES) {
        size_t before = pl->out.len;
        dibsx_fifo members = {0};

        dibs__pending_gather(&pl->queue, pl->connect.conf->unbatched, &members);
        if (!append_command(pl, &members)) {
            dibsx_fifo_prepend(&pl->queue, &members);
            if (before == 0 && leads) {
                const dibs_error why = {.message = "a command"};

                fail_pending(dibs__pending_pop(&pl->queue), DIBS_NOMEM, &why);
            }
            break;
        }
        move_to_flight(pl, &members);
        pl->out_total += pl->out.len - before;
    }
}

/* All of `out` is given: frees a large buffer. */
static void release_out(dibs__pipeline *pl)
{
    size_t max = pl->out.max;

    if (pl->out.room <= OUT_KEPT)
        return;
    dibsx_buf_fini(&pl->out);
    dibsx_buf_init(&pl->out, max);
    pl->out_at = 0;
}

/* Gives a part of `out` to the kernel: the number of bytes, 0 when there was no
 * room, or -1. Waits for room for wait_ms. Locks: pl->mutex, which it drops. */
static ssize_t write_some(dibs__pipeline *pl, int64_t wait_ms)
{
    dibs__conn *cn = pl->cn;
    dibs_error why = {0};
    ssize_t sent;

    pl->writing = true;
    pthread_mutex_unlock(&pl->mutex);
    sent = dibs__conn_send(cn, pl->out.data + pl->out_at,
                           pl->out.len - pl->out_at, &why);
    if (sent == 0 && wait_ms > 0)
        dibs__conn_await_room(cn, dibsx_after_ms(dibsx_now(), wait_ms));
    pthread_mutex_lock(&pl->mutex);
    pl->writing = false;
    pl->given = dibs__conn_given(cn);
    if (sent < 0)
        break_off(pl, &why);
    if (pl->broken)
        pthread_cond_signal(&pl->written);
    return sent;
}

static bool has_unsent(const dibs__pipeline *pl)
{
    return pl->out_at < pl->out.len;
}

/* Whether a follower sends. If not, the leader does after its next receive:
 * enough is in flight. Locks: pl->mutex. */
static bool is_worth_sending(const dibs__pipeline *pl)
{
    return pl->flight.count < FEW_IN_FLIGHT || pl->queue.count >= MANY_QUEUED;
}

/* Whether a follower still waits for room: until its deadline, or until it must
 * lead, and so receive. */
static bool is_patient(dibs__pending *pd)
{
    return dibsx_park_look(&pd->park) != LEAD && dibsx_now() < pd->deadline;
}

/* Sends queued commands, if no other thread does. A follower, whose command is
 * `pd`, waits for room; the leader (NULL) must not, as it has to receive.
 * Locks: pl->mutex. */
static void flush_out(dibs__pipeline *pl, dibs__pending *pd)
{
    while (pl->cn && !pl->broken && !pl->writing) {
        ssize_t sent;

        if (!has_unsent(pl) && (!pd || is_worth_sending(pl)))
            fill_out(pl, !pd);
        if (!has_unsent(pl))
            break;
        sent = write_some(pl, pd ? ROOM_MS : 0);
        if (sent < 0)
            break;
        pl->out_at += (size_t)sent;
        if (!has_unsent(pl))
            release_out(pl);
        else if (sent == 0 && !(pd && is_patient(pd)))
            break;
    }
}

/* Closes the connection. Commands of which nothing was sent are queued again
 * for the next one; the others are DIBS_UNKNOWN. Runs on the leader. Locks:
 * pl->mutex. */
static void drop_connection(dibs__pipeline *pl)
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
            fail_pending(pd, DIBS_UNKNOWN, &pl->why);
        else
            dibsx_fifo_push(&unsent, &pd->queued);
    }
    dibsx_fifo_prepend(&pl->queue, &unsent);
    dibsx_buf_reset(&pl->out);
    pl->out_at = 0;
    pl->out_total = pl->given = 0;
    pl->away = DIBS_UNAVAIL;
    dibs__backoff_failed(&pl->backoff, dibsx_now());
}

/* Wakes the threads whose replies were handed out. Locks: none. */
static void wake_all(dibs__pipeline *pl)
{
    for (size_t i = 0; i < pl->asleep_count; i++)
        dibsx_park_wake(pl->asleep[i]);
    pl->asleep_count = 0;
}

/* Ends a command with its last reply; a sleeping thread is woken later. Locks:
 * pl->mutex. */
static void
answer_pending(dibs__pipeline *pl, dibs__pending *pd, redisReply *reply)
{
    pd->replies[pd->got++] = reply;
    pd->rc = DIBS_OK;
    if (dibsx_park_post(&pd->park, DONE))
        pl->asleep[pl->asleep_count++] = &pd->park;
}

/* Hands the reply of a batch to its members. A member without an answer is
 * queued again. Locks: pl->mutex. */
static void
answer_batch(dibs__pipeline *pl, dibs__pending *first, redisReply *reply)
{
    int count = first->batch_count;
    bool answered = dibs__batch_is_answer(reply, count);
    dibsx_fifo again = {0};

    if (reply->type == REDIS_REPLY_ERROR && dibs__redis_no_script(reply->str))
        pl->text_due = true;
    for (int i = 0; i < count; i++) {
        dibs__pending *pd = i == 0 ? first : dibs__pending_pop(&pl->flight);
        redisReply *own = answered ? dibs__batch_take(reply, i) : NULL;

        if (own) {
            answer_pending(pl, pd, own);
        } else {
            pd->member.part = NULL;
            pd->unsure = !answered;
            dibsx_fifo_push(&again, &pd->queued);
        }
    }
    dibsx_fifo_prepend(&pl->queue, &again);
    dibs__reply_free(reply);
}

/* Whether a server that was the primary says that it is a replica now; it has
 * done nothing. Locks: pl->mutex. */
static bool is_demotion(const dibs__pipeline *pl, const redisReply *reply)
{
    return pl->connect.sentinel && reply->type == REDIS_REPLY_ERROR &&
           dibs__redis_is_readonly(reply->str);
}

/* Locks: pl->mutex. */
static void break_demoted(dibs__pipeline *pl)
{
    const dibs_error why = {.origin = "READONLY",
                            .message =
                                "the server has become a read-only replica"};

    pl->demoted = true;
    break_off(pl, &why);
}

/* Queues all refused commands again, for the primary. Locks: pl->mutex. */
static void
send_again(dibs__pipeline *pl, dibs__pending *first, redisReply *reply)
{
    dibsx_fifo again = {0};

    for (int i = 0; i < first->batch_count; i++) {
        dibs__pending *pd = i == 0 ? first : dibs__pending_pop(&pl->flight);

        dibsx_fifo_push(&again, &pd->queued);
    }
    dibsx_fifo_prepend(&pl->queue, &again);
    dibs__reply_free(reply);
}

/* Hands replies to the commands that wait longest. Locks: pl->mutex. */
static void hand_out(dibs__pipeline *pl, redisReply **replies, size_t count)
{
    bool usable =
        !pl->broken; /* and stays so if one of the replies breaks it */

    for (size_t i = 0; i < count; i++) {
        dibs__pending *pd = usable ? dibs__pending_first(&pl->flight) : NULL;
        bool demoted = pd && is_demotion(pl, replies[i]);

        if (!pd) {
            const dibs_error why = {
                .message = "the server sent a reply to no command"};

            break_off(pl, &why);
            dibs__reply_free(replies[i]);
            continue;
        }
        if (demoted)
            break_demoted(pl);
        if (pd->got + 1 < pd->due) {
            pd->replies[pd->got++] = replies[i];
            continue;
        }
        (void)dibs__pending_pop(&pl->flight);
        /* The server may have run an earlier command of a unit. */
        if (demoted && pd->due == 1)
            send_again(pl, pd, replies[i]);
        else if (pd->batch_count > 1)
            answer_batch(pl, pd, replies[i]);
        else
            answer_pending(pl, pd, replies[i]);
    }
    if (count > 0 && pl->backoff.failures > 0)
        dibs__backoff_worked(&pl->backoff);
}

/* Parses the complete replies of the received bytes. False when it failed. */
static bool parse_replies(dibs__conn *cn, redisReply **replies, size_t *count,
                          dibs_error *why)
{
    bool ok = true;

    *count = 0;
    while (ok && *count < REPLIES_MAX) {
        ok = dibs__conn_next(cn, &replies[*count], why);
        if (!ok || !replies[*count])
            break;
        ++*count;
    }
    return ok;
}

/* With many commands in flight spinning for an answer wastes the processor.
 * Locks: pl->mutex. */
static dibs__expect choose_expect(const dibs__pipeline *pl)
{
    if (!pl->writing && has_unsent(pl))
        return DIBS__EXPECT_ROOM;
    return pl->flight.count == 1 ? DIBS__EXPECT_SOON : DIBS__EXPECT_INPUT;
}

/* Receives once and hands out the replies. Sends newly queued commands before
 * it wakes a thread, so that the server has work while the threads start. Runs
 * on the leader. Locks: pl->mutex, which it drops. */
static void receive_replies(dibs__pipeline *pl, dibsx_nsec deadline)
{
    redisReply *replies[REPLIES_MAX];
    dibs__expect expect = choose_expect(pl);
    dibs_error why = {0};
    size_t count;
    int got;

    pthread_mutex_unlock(&pl->mutex);
    got = dibs__conn_receive(pl->cn, expect, deadline, &why);
    do {
        bool ok = parse_replies(pl->cn, replies, &count, &why);

        pthread_mutex_lock(&pl->mutex);
        hand_out(pl, replies, count);
        if (got < 0 || !ok)
            break_off(pl, &why);
        flush_out(pl, NULL);
        if (pl->asleep_count > 0) {
            pthread_mutex_unlock(&pl->mutex);
            wake_all(pl);
            pthread_mutex_lock(&pl->mutex);
        }
        if (count == REPLIES_MAX)
            pthread_mutex_unlock(&pl->mutex);
    } while (count == REPLIES_MAX);
}

/* Fails a command whose deadline is before the next attempt to connect. Locks:
 * pl->mutex. */
static void fail_until_due(dibs__pipeline *pl, dibs__pending *pd)
{
    (void)dibsx_fifo_remove(&pl->queue, &pd->queued);
    fail_pending(pd, pl->away, &pl->why);
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
        fail_pending(pd, rc, &pl->why);
        return;
    }
    while (pl->queue.first)
        fail_pending(dibs__pending_pop(&pl->queue), rc, &pl->why);
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
        if (dibs__connect_has_moved(&pl->connect))
            leave_primary(pl);
        return;
    }
    pl->why = why;
    connect_failed(pl, pd, rc);
}

/* The other side may have closed a connection that was idle for a while. It is
 * better to see that now than after a command was sent. Locks: pl->mutex. */
static void look_at_idle(dibs__pipeline *pl, dibsx_nsec now)
{
    const dibs_error why = {
        .origin = "EOF",
        .message = "the server closed the connection while it was idle"};

    if (pl->cn && now - pl->used_at > IDLE_LOOK && pl->flight.count == 0 &&
        dibs__conn_gone(pl->cn))
        break_off(pl, &why);
}

/* Passes the role on. The last in flight keeps it longest. Returns the park to
 * wake once the mutex is free. Locks: pl->mutex. */
static dibsx_park *pass_lead(dibs__pipeline *pl)
{
    dibs__pending *next = pl->flight.last ? dibs__pending_last(&pl->flight)
                                          : dibs__pending_first(&pl->queue);

    pl->led = next != NULL;
    return next && dibsx_park_post(&next->park, LEAD) ? &next->park : NULL;
}

/* Drives the connection until the command is done. Locks: pl->mutex, which it
 * drops and does not take again. */
static void lead_until_done(dibs__pipeline *pl, dibs__pending *pd)
{
    dibsx_park *next;

    while (!is_done(pd)) {
        if (pl->broken) {
            drop_connection(pl);
        } else if (!pl->cn) {
            connect_for(pl, pd);
        } else {
            flush_out(pl, NULL);
            if (!pl->broken)
                receive_replies(pl, pd->deadline);
            if (!is_done(pd) && dibsx_now() >= pd->deadline)
                expire_pending(pl, pd);
        }
    }
    if (pl->broken)
        drop_connection(pl);
    next = pass_lead(pl);
    pthread_mutex_unlock(&pl->mutex);
    if (next)
        dibsx_park_wake(next);
}

/* Waits for another thread to end the command, or to pass on its role. Locks:
 * none. */
static void follow_leader(dibs__pipeline *pl, dibs__pending *pd)
{
    int post = dibsx_park_wait(&pd->park, pd->deadline);

    if (post == DONE)
        return;
    pthread_mutex_lock(&pl->mutex);
    post = dibsx_park_look(&pd->park);
    if (post == LEAD) {
        lead_until_done(pl, pd);
        return;
    }
    if (post != DONE)
        expire_pending(pl, pd);
    pthread_mutex_unlock(&pl->mutex);
}

static void run_pending(dibs__pipeline *pl, dibs__pending *pd, dibsx_nsec now)
{
    pthread_mutex_lock(&pl->mutex);
    dibsx_fifo_push(&pl->queue, &pd->queued);
    if (!pl->led) {
        pl->led = true;
        look_at_idle(pl, now);
        pl->used_at = now;
        lead_until_done(pl, pd);
        return;
    }
    pl->used_at = now;
    if (is_worth_sending(pl))
        flush_out(pl, pd);
    pthread_mutex_unlock(&pl->mutex);
    follow_leader(pl, pd);
}

dibs_status
dibs__pipeline_call(dibs__pipeline *pl, const dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return dibs__pipeline_join(pl, NULL, words, deadline, out, err);
}

dibs_status dibs__pipeline_join(dibs__pipeline *pl, const dibs__part *part,
                                const dibs__words *words, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    char small[COMMAND_ON_STACK];
    size_t room = dibs__words_room(words);
    char *bytes = small;
    dibsx_nsec now = dibsx_now();
    dibs__pending pd = {.due = 1,
                        .replies = out,
                        .deadline = deadline,
                        .err = err};

    *out = NULL;
    if (now >= deadline)
        return dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");
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
    run_pending(pl, &pd, now);
    if (bytes != small)
        dibsx_free(bytes);
    return pd.rc;
}

dibs_status dibs__pipeline_unit(dibs__pipeline *pl, const char *bytes,
                                size_t len, int count, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibs__pending pd = {.bytes = bytes,
                        .len = len,
                        .due = count,
                        .replies = out,
                        .deadline = deadline,
                        .err = err};

    for (int i = 0; i < count; i++)
        out[i] = NULL;
    if (now >= deadline)
        return dibsx_fail(err, DIBS_UNAVAIL, "the deadline has passed");
    if (len > COMMAND_MAX)
        return dibsx_fail(err, DIBS_INVALID, "a command is too large");
    run_pending(pl, &pd, now);
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
