/* quorum_lane.c - what a client asks of a node while it looks for a slot: one thing
 * after the other, as on the threads of src/store/quorum. What had no answer in its
 * time may arrive later all the same, and out of turn. */
/* SPDX-License-Identifier: MIT */
#include "quorum.h"

#include <stdlib.h>

static void pop(lane *ln)
{
    ln->count--;
    for (size_t i = 0; i < ln->count; i++)
        ln->jobs[i] = ln->jobs[i + 1];
}

/* One that had no answer may have been to give an earlier slot back, and would end
 * what the owner has next. */
static bool
is_silent(const world *w, const peer *pr, const lane *ln, word_kind kind)
{
    if (w->mutant == MUTANT_UNDER_WAY)
        return false;
    if (kind == FILL)
        return peer_clock(w, pr) < ln->doubt_until;
    return pr->slots.barred != 0 &&
           ln->doubt_until >= pr->from_at + DIBS__TOMB_MS * DIBSX_MS;
}

/* What came too late to be begun is dropped. So is the giving back of a slot that
 * nobody waits for, where it could come after what is asked for next; and what is
 * asked for next, where that may have happened. */
static bool
is_idle(const world *w, const peer *pr, const job *jb, const lane *ln)
{
    dibsx_nsec now = peer_clock(w, pr);

    if (now >= jb->limit_at)
        return true;
    if (jb->ml.kind == RELEASE)
        return !jb->needed && now < ln->doubt_until;
    return is_silent(w, pr, ln, jb->ml.kind);
}

static void begin(world *w, peer *pr, lane *ln)
{
    while (ln->count > 0 && is_idle(w, pr, &ln->jobs[0], ln))
        pop(ln);
    if (ln->count == 0)
        return;
    peer_send(w, pr, ln->jobs[0].ml);
    peer_wake_at(w, pr, ln->jobs[0].limit_at);
}

void lane_add(world *w, peer *pr, const mail *ml, dibsx_nsec limit_at,
              bool needed)
{
    lane *ln = &pr->lanes[ml->node];

    if (ln->count == JOBS_MAX)
        abort();
    ln->jobs[ln->count] =
        (job){.ml = *ml, .limit_at = limit_at, .needed = needed};
    ln->jobs[ln->count].ml.job = ++w->last_job;
    if (ln->count++ == 0)
        begin(w, pr, ln);
}

void lane_heard(world *w, peer *pr, const mail *ml)
{
    lane *ln = &pr->lanes[ml->node];

    if (ml->job == 0 || ln->count == 0 || ln->jobs[0].ml.job != ml->job)
        return;
    pop(ln);
    begin(w, pr, ln);
}

void lane_look(world *w, peer *pr)
{
    dibsx_nsec now = peer_clock(w, pr);

    for (size_t i = 0; i < w->count; i++) {
        lane *ln = &pr->lanes[i];

        if (ln->count == 0 || now < ln->jobs[0].limit_at)
            continue;
        ln->doubt_until = now + DIBS__TOMB_MS * DIBSX_MS;
        pop(ln);
        begin(w, pr, ln);
    }
}

void lane_clear(peer *pr)
{
    for (size_t i = 0; i < DIBS__NODES_MAX; i++)
        pr->lanes[i].count = 0;
}
