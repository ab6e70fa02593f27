/* check_barrier_time.c - whether parties of the barrier hear of the outcome in time.
 *
 *   alive   A call ends within a poll and HEAR_NS of the outcome of its generation: by the
 *           notice at once, else by the poll. A party that dies breaks what gathers: its
 *           seat ends within the ttl, others ask within SPREAD_NS of that, and HEAR_NS is
 *           for the answer. Time with a fault on the store or on the call's own process,
 *           or in which that was not run, does not count.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <inttypes.h>
#include <string.h>

/* How often a call asks when it hears nothing. */
enum { POLL_MS = 1000, POLLS_PER_TTL = 3 };

/* For steps that are under way, on a machine with others to run. */
#define HEAR_NS INT64_C(1000000000)

/* Parties that ask because a seat may have ended do so within this span. */
#define SPREAD_NS INT64_C(250000000)

int64_t barrier_hear_ns(const history *hs)
{
    int64_t most_ms = hs->run->ttl_ms / POLLS_PER_TTL;

    return (most_ms < POLL_MS ? most_ms : POLL_MS) * 1000000 + HEAR_NS;
}

void check_heard(history *hs, const deed *list, size_t count)
{
    int64_t first_ns = list[0].rec->returned_ns;

    for (size_t i = 1; i < count; i++) {
        const deed *dd = &list[i];
        int64_t late_ns =
            calm_in(hs, dd->worker, first_ns, dd->rec->returned_ns);

        if (late_ns <= barrier_hear_ns(hs))
            continue;
        hs->late++;
        if (breach(hs, ALIVE))
            fprintf(hs->out,
                    "barrier: worker %u.%u left generation %" PRIu64
                    " %.3f s after the first\n",
                    dd->worker, dd->life, dd->rec->fence,
                    (double)late_ns / 1e9);
    }
}

/* Whether the call before, in the same process, ended with a seat. */
static bool has_seat(const deed *first, const deed *dd)
{
    const deed *before = dd - 1;

    return dd > first && before->worker == dd->worker &&
           before->life == dd->life && before->rec->returned_ns &&
           (before->rec->status == DIBS_OK ||
            before->rec->status == DIBS_BROKEN);
}

/* Whether a party was in a call at that moment, and surely had a seat: it has kept that
 * if nothing was on it for a ttl. */
static bool is_seated(const history *hs, uint32_t worker, int64_t at_ns)
{
    int64_t ttl_ns = hs->run->ttl_ms * 1000000;
    const deed *last = NULL; /* that began before */

    for (size_t i = 0; i < hs->meets.count; i++)
        if (hs->meets.list[i].worker == worker &&
            hs->meets.list[i].rec->invoked_ns < at_ns)
            last = &hs->meets.list[i];
    return last && has_seat(hs->meets.list, last) &&
           (!last->rec->returned_ns || last->rec->returned_ns > at_ns) &&
           life_end(hs, last) > at_ns &&
           calm_in(hs, worker, at_ns - ttl_ns, at_ns) == ttl_ns;
}

/* A fault after which the seat of a party ends. */
static bool ends_seat(const history *hs, const fault_entry *fe)
{
    int64_t ttl_ns = hs->run->ttl_ms * 1000000;

    if (fe->worker >= MEETERS)
        return false;
    return strcmp(fe->name, "kill") == 0 ||
           (strcmp(fe->name, "stop") == 0 &&
            (fe->to_ns == 0 || fe->to_ns - fe->from_ns > ttl_ns));
}

/* One that waited with a seat when the party died, and goes on to wait. */
static void check_waiter(history *hs, const deed *dd, const fault_entry *fe)
{
    int64_t due_ns = fe->from_ns + hs->run->ttl_ms * 1000000;
    const record *rec = dd->rec;
    char at[MOMENT_ROOM], to[MOMENT_ROOM];

    if (dd->worker == fe->worker || rec->invoked_ns >= fe->from_ns ||
        rec->returned_ns <= due_ns ||
        (rec->status != DIBS_OK && rec->status != DIBS_BROKEN &&
         rec->status != DIBS_TIMEOUT) ||
        !has_seat(hs->meets.list, dd) ||
        calm_in(hs, dd->worker, due_ns, rec->returned_ns) <=
            SPREAD_NS + HEAR_NS ||
        calm_in(hs, dd->worker, rec->invoked_ns, due_ns) <
            due_ns - rec->invoked_ns)
        return;
    hs->late++;
    if (breach(hs, ALIVE))
        fprintf(hs->out,
                "barrier: worker %u died at %s, and worker %u.%u waited until "
                "%s\n",
                fe->worker, moment(hs, fe->from_ns, at), dd->worker, dd->life,
                moment(hs, rec->returned_ns, to));
}

void check_seats_end(history *hs)
{
    unsigned count = hs->faults ? atomic_load(&hs->faults->count) : 0;

    for (unsigned i = 0; i < count; i++) {
        const fault_entry *fe = &hs->faults->entries[i];

        if (!ends_seat(hs, fe) || !is_seated(hs, fe->worker, fe->from_ns))
            continue;
        for (size_t k = 0; k < hs->meets.count; k++)
            check_waiter(hs, &hs->meets.list[k], fe);
    }
}
