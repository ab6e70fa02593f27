/* pipeline.c - one connection shared as a pipeline, driven by those who ask.
 *
 * Owns the connection, the requests under way (each lives on the stack of the
 * thread that waits for it) and the moment of the next attempt to connect.
 *
 *      call            send              reply
 *   ---------> queue --------> flight ---------> done
 *                ^               |  connection lost before any byte of it was
 *                +---------------+  given away (later: it is done, DIBS_UNKNOWN),
 *                                   or its group could not answer for it
 *
 *  1. While a request is queued or in flight, there is one leader: a thread in
 *     lead_until_done(), or one that was posted LEAD and is about to be there.
 *  2. Only the leader receives, connects, closes and ends requests of others.
 *  3. Requests in flight are in the order of their bytes, and so of replies.
 *  4. `writing`: one thread is giving `out` to the kernel, outside the mutex. The
 *     connection is not closed meanwhile.
 *  5. `broken`: nothing more is sent or taken; the leader closes it.
 *  6. A request in flight has `start`, the place of its first byte in the stream.
 *     It counts as given when that is below `given`, and while its batch is being
 *     written.
 *  7. The members of a group are next to each other in flight, have one `start`
 *     and one reply; the first has their number. None leaves before the others
 *     unless the connection is broken.
 *  8. A request is answered for by one group at most: for whom a group could not
 *     answer goes alone, and is DIBS_UNKNOWN if it cannot and the group failed.
 *  9. A request of several commands is one piece: it is sent, fails and is done as
 *     a whole, and stays in flight until its last reply.
 * 10. What a replica refused is queued again and the connection ends; replies that
 *     came with the refusal are handed out all the same.
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
    BATCH_BYTES = 64 << 10, /* given to the kernel at once, or one command */
    OUT_KEPT = 256 << 10,   /* a larger buffer is given back after use */
    TAKEN_MAX = 64,         /* replies handed out at once */
    ROOM_MS = 20, /* a follower waits for room, and looks whether it leads */
    FEW_IN_FLIGHT = 4,
    MANY_QUEUED = 16
};

/* An idle connection is looked at after this long, before it is used again:
 * servers and middle boxes close them. */
#define IDLE_LOOK (100 * DIBSX_MS)

enum { DONE = 1, LEAD = 2 }; /* posts */

struct dibs__pipeline {
    dibs__connect way; /* the leader's */

    pthread_mutex_t mutex;
    pthread_cond_t written; /* `writing` has ended on a broken connection */
    bool led;
    bool writing;
    bool broken;
    bool demoted; /* the server has shown that it is a replica */
    dibs__conn *cn;
    dibsx_fifo queue;
    dibsx_fifo flight;
    bool text_due;    /* the server lacks the script of the group */
    uint64_t batched; /* bytes that were put into `out` on this connection */
    uint64_t given;
    dibsx_nsec used_at;
    dibs_error why;     /* it broke, or could not be made */
    dibs_status away;   /* what to answer until the next attempt is due */
    dibsx_nsec lost_at; /* when there began to be no connection; 0: there is */
    dibs__backoff backoff;

    /* Who is `writing` has these, or who holds the mutex when nobody is. */
    dibsx_buf out;
    size_t out_at; /* what comes before it is given */

    /* The leader's. */
    dibsx_park *asleep[TAKEN_MAX * DIBS__BATCH_MAX];
    size_t asleep_count;
};

dibs_status dibs__pipeline_new(const dibs__redis_conf *conf,
                               dibs__pipeline **out, dibs_error *err)
{
    dibs__pipeline *ln = dibsx_zalloc(sizeof(*ln));
    uint64_t seed = 0;

    *out = NULL;
    if (!ln)
        return dibsx_nomem(err, "a link");
    ln->way.conf = conf;
    pthread_mutex_init(&ln->mutex, NULL);
    pthread_cond_init(&ln->written, NULL);
    dibsx_buf_init(&ln->out, COMMAND_MAX + BATCH_BYTES);
    if (!dibsx_random(&seed, sizeof(seed)))
        seed = (uint64_t)dibsx_now() ^ (uint64_t)(uintptr_t)ln;
    dibs__backoff_init(&ln->backoff, seed);
    *out = ln;
    return DIBS_OK;
}

void dibs__pipeline_follow(dibs__pipeline *ln, dibs__sentinel *sentinel)
{
    ln->way.sentinel = sentinel;
    ln->backoff.cap = DIBS__SENTINEL_PAUSE;
}

void dibs__pipeline_free(dibs__pipeline *ln)
{
    if (!ln)
        return;
    assert(!ln->led);
    dibs__conn_close(ln->cn);
    dibsx_buf_fini(&ln->out);
    dibs__connect_fini(&ln->way);
    pthread_cond_destroy(&ln->written);
    pthread_mutex_destroy(&ln->mutex);
    dibsx_free(ln);
}

static bool is_done(dibs__pending *rq)
{
    return dibsx_park_look(&rq->park) == DONE;
}

/* Ends a request with a status and the reason in `why`. It may be gone as soon
 * as it was posted to. Locks: ln->mutex. */
static void
fail_pending(dibs__pending *rq, dibs_status rc, const dibs_error *why)
{
    rq->rc = dibsx_fail_at(rq->err, rq->unsure ? DIBS_UNKNOWN : rc, why->origin,
                           "%s", why->message);
    if (dibsx_park_post(&rq->park, DONE))
        dibsx_park_wake(&rq->park);
}

/* Locks: ln->mutex. */
static void break_off(dibs__pipeline *ln, const dibs_error *why)
{
    if (ln->broken || !ln->cn)
        return;
    ln->broken = true;
    ln->why = *why;
    dibs__conn_sever(ln->cn);
}

static void leave_primary(dibs__pipeline *ln)
{
    const dibs_error why = {
        .message = "the connection was given up, as another server has become "
                   "the primary"};

    break_off(ln, &why);
}

void dibs__pipeline_drop(dibs__pipeline *ln)
{
    pthread_mutex_lock(&ln->mutex);
    leave_primary(ln);
    pthread_mutex_unlock(&ln->mutex);
}

void dibs__pipeline_distrust(dibs__pipeline *ln)
{
    const dibs_error why = {.origin = "ODD",
                            .message = "the connection was given up, as the "
                                       "server answered what it cannot"};

    pthread_mutex_lock(&ln->mutex);
    break_off(ln, &why);
    pthread_mutex_unlock(&ln->mutex);
}

/* Locks: ln->mutex. */
static bool was_given(const dibs__pipeline *ln, const dibs__pending *rq)
{
    return ln->writing || rq->start < ln->given;
}

/* A request's time is up. Runs on its own thread. Replies that come later would
 * be taken for those of others, so if it was sent the connection ends with it.
 * Locks: ln->mutex. */
static void expire_pending(dibs__pipeline *ln, dibs__pending *rq)
{
    dibs_status rc = DIBS_UNAVAIL;
    dibs_error why = {0};

    if (dibsx_fifo_remove(&ln->queue, &rq->queued)) {
        (void)dibsx_fail(&why, rc, "the deadline passed before it was sent");
    } else {
        if (was_given(ln, rq))
            rc = DIBS_UNKNOWN;
        (void)dibsx_fifo_remove(&ln->flight, &rq->queued);
        (void)dibsx_fail(&why, rc,
                         "the connection was given up, as another command on "
                         "it was not answered in time");
        break_off(ln, &why);
        (void)dibsx_fail(&why, rc, "the server did not answer in time");
    }
    fail_pending(rq, rc, &why);
}

/* Appends the command of one, or of a group, to `out`; false when there was no
 * memory for it. Locks: ln->mutex. */
static bool append_command(dibs__pipeline *ln, const dibsx_fifo *members)
{
    const dibs__pending *first = dibs__pending_first(members);
    size_t before = ln->out.len;

    if (members->count == 1) {
        dibsx_buf_add(&ln->out, first->bytes, first->len);
    } else {
        const dibs__member *all[DIBS__BATCH_MAX];
        int count = 0;

        for (const dibs__pending *rq = first; rq; rq = dibs__pending_next(rq))
            all[count++] = &rq->member;
        dibs__batch_put(all, count, ln->text_due, &ln->out);
        ln->text_due = false;
    }
    if (dibsx_buf_ok(&ln->out))
        return true;
    ln->out.failed = false;
    ln->out.len = before;
    return false;
}

/* Moves those whose command was put into `out` to flight. Locks: ln->mutex. */
static void move_to_flight(dibs__pipeline *ln, dibsx_fifo *members)
{
    dibs__pending_first(members)->grouped = (int)members->count;
    while (members->first) {
        dibs__pending *rq = dibs__pending_pop(members);

        rq->start = ln->batched;
        dibsx_fifo_push(&ln->flight, &rq->queued);
    }
}

/* Puts queued commands into `out`, which is empty. For whose command there is no
 * memory is ended by the leader, as it may have been made the next one.
 * Locks: ln->mutex. */
static void fill_out(dibs__pipeline *ln, bool leads)
{
    dibsx_buf_reset(&ln->out);
    ln->out_at = 0;
    while (ln->queue.first && ln->out.len < BATCH_BYTES) {
        size_t before = ln->out.len;
        dibsx_fifo members = {0};

        dibs__pending_gather(&ln->queue, ln->way.conf->ungrouped, &members);
        if (!append_command(ln, &members)) {
            dibsx_fifo_prepend(&ln->queue, &members);
            if (before == 0 && leads) {
                const dibs_error why = {.message = "a command"};

                fail_pending(dibs__pending_pop(&ln->queue), DIBS_NOMEM, &why);
            }
            break;
        }
        move_to_flight(ln, &members);
        ln->batched += ln->out.len - before;
    }
}

/* All of `out` is given. */
static void release_out(dibs__pipeline *ln)
{
    size_t max = ln->out.max;

    if (ln->out.room <= OUT_KEPT)
        return;
    dibsx_buf_fini(&ln->out);
    dibsx_buf_init(&ln->out, max);
    ln->out_at = 0;
}

/* Gives a part of `out` to the kernel: the number of bytes, 0 when there was no
 * room, -1. Waits for room for wait_ms. Locks: ln->mutex, which it drops. */
static ssize_t write_some(dibs__pipeline *ln, int64_t wait_ms)
{
    dibs__conn *cn = ln->cn;
    dibs_error why = {0};
    ssize_t sent;

    ln->writing = true;
    pthread_mutex_unlock(&ln->mutex);
    sent = dibs__conn_send(cn, ln->out.data + ln->out_at,
                           ln->out.len - ln->out_at, &why);
    if (sent == 0 && wait_ms > 0)
        dibs__conn_await_room(cn, dibsx_after_ms(dibsx_now(), wait_ms));
    pthread_mutex_lock(&ln->mutex);
    ln->writing = false;
    ln->given = dibs__conn_given(cn);
    if (sent < 0)
        break_off(ln, &why);
    if (ln->broken)
        pthread_cond_signal(&ln->written);
    return sent;
}

static bool has_unsent(const dibs__pipeline *ln)
{
    return ln->out_at < ln->out.len;
}

/* Whether a follower sends. If not, the leader does after its next receive, for
 * which enough is under way. Locks: ln->mutex. */
static bool is_worth_sending(const dibs__pipeline *ln)
{
    return ln->flight.count < FEW_IN_FLIGHT || ln->queue.count >= MANY_QUEUED;
}

/* Whether a follower goes on waiting for room: until its deadline, or until it is
 * to lead, and so to receive. */
static bool is_patient(dibs__pending *rq)
{
    return dibsx_park_look(&rq->park) != LEAD && dibsx_now() < rq->deadline;
}

/* Sends what is queued, unless somebody is at it. A follower, whose request is
 * `rq`, waits for room; the leader (NULL) must not, as it has to receive.
 * Locks: ln->mutex. */
static void flush_out(dibs__pipeline *ln, dibs__pending *rq)
{
    while (ln->cn && !ln->broken && !ln->writing) {
        ssize_t sent;

        if (!has_unsent(ln) && (!rq || is_worth_sending(ln)))
            fill_out(ln, !rq);
        if (!has_unsent(ln))
            break;
        sent = write_some(ln, rq ? ROOM_MS : 0);
        if (sent < 0)
            break;
        ln->out_at += (size_t)sent;
        if (!has_unsent(ln))
            release_out(ln);
        else if (sent == 0 && !(rq && is_patient(rq)))
            break;
    }
}

/* Closes the connection. Who had nothing sent is queued again, to be sent on the
 * next one; the others do not know. Runs on the leader. Locks: ln->mutex. */
static void drop_connection(dibs__pipeline *ln)
{
    dibsx_fifo unsent = {0};

    while (ln->writing)
        pthread_cond_wait(&ln->written, &ln->mutex);
    dibs__conn_close(ln->cn);
    ln->cn = NULL;
    ln->broken = false;
    while (ln->flight.first) {
        dibs__pending *rq = dibs__pending_pop(&ln->flight);

        if (was_given(ln, rq))
            fail_pending(rq, DIBS_UNKNOWN, &ln->why);
        else
            dibsx_fifo_push(&unsent, &rq->queued);
    }
    dibsx_fifo_prepend(&ln->queue, &unsent);
    dibsx_buf_reset(&ln->out);
    ln->out_at = 0;
    ln->batched = ln->given = 0;
    ln->away = DIBS_UNAVAIL;
    dibs__backoff_failed(&ln->backoff, dibsx_now());
}

/* Wakes those whose replies were handed out. Locks: none. */
static void wake_all(dibs__pipeline *ln)
{
    for (size_t i = 0; i < ln->asleep_count; i++)
        dibsx_park_wake(ln->asleep[i]);
    ln->asleep_count = 0;
}

/* Ends a request with its last reply; who sleeps is woken later.
 * Locks: ln->mutex. */
static void
answer_pending(dibs__pipeline *ln, dibs__pending *rq, redisReply *reply)
{
    rq->replies[rq->got++] = reply;
    rq->rc = DIBS_OK;
    if (dibsx_park_post(&rq->park, DONE))
        ln->asleep[ln->asleep_count++] = &rq->park;
}

/* Hands the reply of a group to its members. For whom it has no answer is queued
 * again. Locks: ln->mutex. */
static void
answer_batch(dibs__pipeline *ln, dibs__pending *first, redisReply *reply)
{
    int count = first->grouped;
    bool answered = dibs__batch_is_answer(reply, count);
    dibsx_fifo again = {0};

    if (reply->type == REDIS_REPLY_ERROR && dibs__redis_no_script(reply->str))
        ln->text_due = true;
    for (int i = 0; i < count; i++) {
        dibs__pending *rq = i == 0 ? first : dibs__pending_pop(&ln->flight);
        redisReply *own = answered ? dibs__batch_take(reply, i) : NULL;

        if (own) {
            answer_pending(ln, rq, own);
        } else {
            rq->member.part = NULL;
            rq->unsure = !answered;
            dibsx_fifo_push(&again, &rq->queued);
        }
    }
    dibsx_fifo_prepend(&ln->queue, &again);
    dibs__reply_free(reply);
}

/* A server that was the primary says that it is a replica now, and has done
 * nothing. Locks: ln->mutex. */
static bool is_demotion(const dibs__pipeline *ln, const redisReply *reply)
{
    return ln->way.sentinel && reply->type == REDIS_REPLY_ERROR &&
           dibs__redis_is_readonly(reply->str);
}

/* Locks: ln->mutex. */
static void break_demoted(dibs__pipeline *ln)
{
    const dibs_error why = {.origin = "READONLY",
                            .message =
                                "the server has become a read-only replica"};

    ln->demoted = true;
    break_off(ln, &why);
}

/* All who were refused are queued again, for the primary. Locks: ln->mutex. */
static void
send_again(dibs__pipeline *ln, dibs__pending *first, redisReply *reply)
{
    dibsx_fifo again = {0};

    for (int i = 0; i < first->grouped; i++) {
        dibs__pending *rq = i == 0 ? first : dibs__pending_pop(&ln->flight);

        dibsx_fifo_push(&again, &rq->queued);
    }
    dibsx_fifo_prepend(&ln->queue, &again);
    dibs__reply_free(reply);
}

/* Hands replies to those who wait longest. Locks: ln->mutex. */
static void hand_out(dibs__pipeline *ln, redisReply **replies, size_t count)
{
    bool usable = !ln->broken; /* and stays so when one of them ends it */

    for (size_t i = 0; i < count; i++) {
        dibs__pending *rq = usable ? dibs__pending_first(&ln->flight) : NULL;
        bool demoted = rq && is_demotion(ln, replies[i]);

        if (!rq) {
            const dibs_error why = {
                .message = "the server sent a reply to no command"};

            break_off(ln, &why);
            dibs__reply_free(replies[i]);
            continue;
        }
        if (demoted)
            break_demoted(ln);
        if (rq->got + 1 < rq->due) {
            rq->replies[rq->got++] = replies[i];
            continue;
        }
        (void)dibs__pending_pop(&ln->flight);
        /* Of several commands, the one before may have been done. */
        if (demoted && rq->due == 1)
            send_again(ln, rq, replies[i]);
        else if (rq->grouped > 1)
            answer_batch(ln, rq, replies[i]);
        else
            answer_pending(ln, rq, replies[i]);
    }
    if (count > 0 && ln->backoff.failures > 0)
        dibs__backoff_worked(&ln->backoff);
}

/* Takes the complete replies out of what was received. False when it failed. */
static bool parse_replies(dibs__conn *cn, redisReply **replies, size_t *count,
                          dibs_error *why)
{
    bool ok = true;

    *count = 0;
    while (ok && *count < TAKEN_MAX) {
        ok = dibs__conn_next(cn, &replies[*count], why);
        if (!ok || !replies[*count])
            break;
        ++*count;
    }
    return ok;
}

/* With many under way the processors have better things to do than to look for an
 * answer. Locks: ln->mutex. */
static dibs__expect choose_expect(const dibs__pipeline *ln)
{
    if (!ln->writing && has_unsent(ln))
        return DIBS__EXPECT_ROOM;
    return ln->flight.count == 1 ? DIBS__EXPECT_SOON : DIBS__EXPECT_INPUT;
}

/* Receives once and hands out what came. Sends what was queued meanwhile before
 * it wakes anybody, so that the server has work while the threads start. Runs on
 * the leader. Locks: ln->mutex, which it drops. */
static void receive_replies(dibs__pipeline *ln, dibsx_nsec deadline)
{
    redisReply *replies[TAKEN_MAX];
    dibs__expect expect = choose_expect(ln);
    dibs_error why = {0};
    size_t count;
    int got;

    pthread_mutex_unlock(&ln->mutex);
    got = dibs__conn_receive(ln->cn, expect, deadline, &why);
    do {
        bool ok = parse_replies(ln->cn, replies, &count, &why);

        pthread_mutex_lock(&ln->mutex);
        hand_out(ln, replies, count);
        if (got < 0 || !ok)
            break_off(ln, &why);
        flush_out(ln, NULL);
        if (ln->asleep_count > 0) {
            pthread_mutex_unlock(&ln->mutex);
            wake_all(ln);
            pthread_mutex_lock(&ln->mutex);
        }
        if (count == TAKEN_MAX)
            pthread_mutex_unlock(&ln->mutex);
    } while (count == TAKEN_MAX);
}

/* A request that cannot be connected for in time. Locks: ln->mutex. */
static void fail_until_due(dibs__pipeline *ln, dibs__pending *rq)
{
    (void)dibsx_fifo_remove(&ln->queue, &rq->queued);
    fail_pending(rq, ln->away, &ln->why);
}

/* The attempt failed: all who waited for it learn why. When it was only the
 * leader's own time that was up, the others may yet have more luck.
 * Locks: ln->mutex. */
static void
connect_failed(dibs__pipeline *ln, dibs__pending *rq, dibs_status rc)
{
    dibsx_nsec now = dibsx_now();

    ln->away = rc;
    dibs__backoff_failed(&ln->backoff, now);
    if (now < rq->deadline &&
        dibs__connect_is_worth_a_wait(&ln->way, rc, ln->lost_at, now))
        return;
    if (rc == DIBS_UNAVAIL && now >= rq->deadline) {
        (void)dibsx_fifo_remove(&ln->queue, &rq->queued);
        fail_pending(rq, rc, &ln->why);
        return;
    }
    while (ln->queue.first)
        fail_pending(dibs__pending_pop(&ln->queue), rc, &ln->why);
}

/* Connects, when the next attempt is due. Runs on the leader.
 * Locks: ln->mutex, which it drops. */
static void connect_for(dibs__pipeline *ln, dibs__pending *rq)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec due_at = ln->backoff.due_at;
    bool demoted = ln->demoted;
    dibs__conn *cn = NULL;
    dibs_error why = {0};
    dibs_status rc;

    if (due_at > now && due_at >= rq->deadline) {
        fail_until_due(ln, rq);
        return;
    }
    ln->demoted = false;
    if (ln->lost_at == 0)
        ln->lost_at = now;
    pthread_mutex_unlock(&ln->mutex);
    if (due_at > now)
        (void)poll(NULL, 0, (int)dibsx_wait_ms(due_at, now));
    rc = dibs__connect_open(&ln->way, demoted, rq->deadline, &cn, &why);
    pthread_mutex_lock(&ln->mutex);
    ln->cn = cn;
    if (rc == DIBS_OK) {
        ln->lost_at = 0;
        if (dibs__connect_has_moved(&ln->way))
            leave_primary(ln);
        return;
    }
    ln->why = why;
    connect_failed(ln, rq, rc);
}

/* A connection that nobody used for a while may have been closed by the other
 * side; better to see that now than after a command was sent on it.
 * Locks: ln->mutex. */
static void look_at_idle(dibs__pipeline *ln, dibsx_nsec now)
{
    const dibs_error why = {
        .origin = "EOF",
        .message = "the server closed the connection while it was idle"};

    if (ln->cn && now - ln->used_at > IDLE_LOOK && ln->flight.count == 0 &&
        dibs__conn_gone(ln->cn))
        break_off(ln, &why);
}

/* Passes the role on. The last in flight keeps it longest. Returns whom to wake
 * when the mutex is free. Locks: ln->mutex. */
static dibsx_park *pass_lead(dibs__pipeline *ln)
{
    dibs__pending *next = ln->flight.last ? dibs__pending_last(&ln->flight)
                                          : dibs__pending_first(&ln->queue);

    ln->led = next != NULL;
    return next && dibsx_park_post(&next->park, LEAD) ? &next->park : NULL;
}

/* Drives the connection until the request is done. Locks: ln->mutex, which it
 * drops and does not take again. */
static void lead_until_done(dibs__pipeline *ln, dibs__pending *rq)
{
    dibsx_park *next;

    while (!is_done(rq)) {
        if (ln->broken) {
            drop_connection(ln);
        } else if (!ln->cn) {
            connect_for(ln, rq);
        } else {
            flush_out(ln, NULL);
            if (!ln->broken)
                receive_replies(ln, rq->deadline);
            if (!is_done(rq) && dibsx_now() >= rq->deadline)
                expire_pending(ln, rq);
        }
    }
    if (ln->broken)
        drop_connection(ln);
    next = pass_lead(ln);
    pthread_mutex_unlock(&ln->mutex);
    if (next)
        dibsx_park_wake(next);
}

/* Waits for another thread to end the request, or to pass on its role.
 * Locks: none. */
static void follow_leader(dibs__pipeline *ln, dibs__pending *rq)
{
    int post = dibsx_park_wait(&rq->park, rq->deadline);

    if (post == DONE)
        return;
    pthread_mutex_lock(&ln->mutex);
    post = dibsx_park_look(&rq->park);
    if (post == LEAD) {
        lead_until_done(ln, rq);
        return;
    }
    if (post != DONE)
        expire_pending(ln, rq);
    pthread_mutex_unlock(&ln->mutex);
}

static void run_pending(dibs__pipeline *ln, dibs__pending *rq, dibsx_nsec now)
{
    pthread_mutex_lock(&ln->mutex);
    dibsx_fifo_push(&ln->queue, &rq->queued);
    if (!ln->led) {
        ln->led = true;
        look_at_idle(ln, now);
        ln->used_at = now;
        lead_until_done(ln, rq);
        return;
    }
    ln->used_at = now;
    if (is_worth_sending(ln))
        flush_out(ln, rq);
    pthread_mutex_unlock(&ln->mutex);
    follow_leader(ln, rq);
}

dibs_status
dibs__pipeline_call(dibs__pipeline *ln, const dibs__words *words,
                    dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    return dibs__pipeline_join(ln, NULL, words, deadline, out, err);
}

dibs_status dibs__pipeline_join(dibs__pipeline *ln, const dibs__part *part,
                                const dibs__words *words, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    char small[COMMAND_ON_STACK];
    size_t room = dibs__words_room(words);
    char *bytes = small;
    dibsx_nsec now = dibsx_now();
    dibs__pending rq = {.due = 1,
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
    rq.bytes = bytes;
    rq.len = dibs__words_encode(words, bytes);
    if (part)
        dibs__member_init(&rq.member, part, words, bytes, rq.len);
    run_pending(ln, &rq, now);
    if (bytes != small)
        dibsx_free(bytes);
    return rq.rc;
}

dibs_status dibs__pipeline_unit(dibs__pipeline *ln, const char *bytes,
                                size_t len, int count, dibsx_nsec deadline,
                                redisReply **out, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibs__pending rq = {.bytes = bytes,
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
    run_pending(ln, &rq, now);
    for (int i = 0; i < count && rq.rc != DIBS_OK; i++) {
        dibs__reply_free(out[i]);
        out[i] = NULL;
    }
    return rq.rc;
}

dibs_status
dibs__pipeline_ready(dibs__pipeline *ln, dibsx_nsec now, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&ln->mutex);
    if (!ln->cn && ln->backoff.due_at > now)
        rc =
            dibsx_fail_at(err, ln->away, ln->why.origin, "%s", ln->why.message);
    pthread_mutex_unlock(&ln->mutex);
    return rc;
}
