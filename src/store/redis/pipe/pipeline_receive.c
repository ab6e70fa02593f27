/* pipeline_receive.c - the receiving half of a pipeline: from the server to the
 * callers.
 *
 * Owns nothing. Runs on the leader. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pipeline_parts.h"
#include "store/redis/wire/error.h"

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
    dibsx_park *park;

    pd->replies[pd->got++] = reply;
    pd->rc = DIBS_OK;
    park = dibs__pending_end(pd);
    if (park && pl->asleep_count == DIBS__PIPELINE_ASLEEP_MAX)
        dibsx_park_wake(park);
    else if (park)
        pl->asleep[pl->asleep_count++] = park;
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
    dibs__pipeline_break_off(pl, &why);
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

            dibs__pipeline_break_off(pl, &why);
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
    while (ok && *count < DIBS__PIPELINE_REPLIES_MAX) {
        ok = dibs__conn_next(cn, &replies[*count], why);
        if (!ok || !replies[*count])
            break;
        ++*count;
    }
    return ok;
}

/* With many commands in flight spinning for an answer wastes the processor. One that
 * was posted before does not count. Locks: pl->mutex. */
static dibs__expect choose_expect(const dibs__pipeline *pl)
{
    bool single =
        pl->flight.count == 1 ||
        (pl->flight.count == 2 && !dibs__pending_first(&pl->flight)->waiter);

    if (!pl->writing && dibs__pipeline_has_unsent(pl))
        return DIBS__EXPECT_ROOM;
    return single ? DIBS__EXPECT_SOON : DIBS__EXPECT_INPUT;
}

void dibs__pipeline_receive(dibs__pipeline *pl, dibsx_nsec deadline)
{
    redisReply *replies[DIBS__PIPELINE_REPLIES_MAX];
    dibs__expect expect = deadline > 0 ? choose_expect(pl) : DIBS__EXPECT_NONE;
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
            dibs__pipeline_break_off(pl, &why);
        dibs__pipeline_flush(pl, NULL);
        if (pl->asleep_count > 0) {
            pthread_mutex_unlock(&pl->mutex);
            wake_all(pl);
            pthread_mutex_lock(&pl->mutex);
        }
        if (count == DIBS__PIPELINE_REPLIES_MAX)
            pthread_mutex_unlock(&pl->mutex);
    } while (count == DIBS__PIPELINE_REPLIES_MAX);
}
