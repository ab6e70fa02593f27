/* pipeline_send.c - the sending half of a pipeline: from the queue to the kernel.
 *
 * Owns nothing. Runs on the leader, or on a follower. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/redis/pipe/pipeline_parts.h"

enum {
    OUT_KEPT = 256 << 10, /* a larger buffer is freed after use */
    ROOM_MS = 20 /* a follower waits for room, and looks whether it leads */
};

void dibs__pipeline_fail_pending(dibs__pending *pd, dibs_status rc,
                                 const dibs_error *why)
{
    dibsx_park *park;

    pd->rc = dibsx_fail_at(pd->err, pd->unsure ? DIBS_UNKNOWN : rc, why->origin,
                           "%s", why->message);
    park = dibs__pending_end(pd);
    if (park)
        dibsx_park_wake(park);
}

void dibs__pipeline_break_off(dibs__pipeline *pl, const dibs_error *why)
{
    if (pl->broken || !pl->cn)
        return;
    pl->broken = true;
    pl->why = *why;
    dibs__conn_sever(pl->cn);
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
    while (pl->queue.first && pl->out.len < DIBS__PIPELINE_CHUNK) {
        size_t before = pl->out.len;
        dibsx_fifo members = {0};

        dibs__pending_gather(&pl->queue, pl->connect.conf->unbatched, &members);
        if (!append_command(pl, &members)) {
            dibsx_fifo_prepend(&pl->queue, &members);
            if (before == 0 && leads) {
                dibs_error why = {0};

                (void)dibsx_nomem(&why, "a command");
                dibs__pipeline_fail_pending(dibs__pending_pop(&pl->queue),
                                            DIBS_NOMEM, &why);
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
        dibs__pipeline_break_off(pl, &why);
    if (pl->broken)
        pthread_cond_signal(&pl->written);
    return sent;
}

/* Whether a follower still waits for room: until its deadline, or until it must
 * lead, and so receive. */
static bool is_patient(dibs__waiter *wt)
{
    return wt->left > 0 && dibsx_park_look(&wt->park) != DIBS__PIPELINE_LEAD &&
           dibsx_now() < dibs__waiter_next(wt)->deadline;
}

void dibs__pipeline_flush(dibs__pipeline *pl, dibs__waiter *wt)
{
    while (pl->cn && !pl->broken && !pl->writing) {
        ssize_t sent;

        if (!dibs__pipeline_has_unsent(pl) &&
            (!wt || dibs__pipeline_is_worth_sending(pl)))
            fill_out(pl, !wt);
        if (!dibs__pipeline_has_unsent(pl))
            break;
        sent = write_some(pl, wt && wt->left > 0 ? ROOM_MS : 0);
        if (sent < 0)
            break;
        pl->out_at += (size_t)sent;
        if (!dibs__pipeline_has_unsent(pl))
            release_out(pl);
        else if (sent == 0 && !(wt && is_patient(wt)))
            break;
    }
}
