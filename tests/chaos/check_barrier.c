/* check_barrier.c - who passed the barrier with whom.
 *
 *   barrier  A generation was passed by no more than all parties, each once; none of
 *            them passed before all had come; those that did not pass may have arrived
 *            and never heard of it. Generations rise.
 *   alive    One was passed after the last fault.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <inttypes.h>
#include <stdlib.h>

static bool has_passed(const record *rec)
{
    return rec->returned_ns && rec->status == DIBS_OK;
}

/* Until when a call that did not hear of it may have counted; 0: it did not. One whose
 * answer is not known may count until its seat has ended. */
static int64_t open_until(const history *hs, const record *rec)
{
    if (rec->returned_ns == 0)
        return INT64_MAX;
    if (rec->status == DIBS_UNKNOWN)
        return rec->returned_ns +
               (hs->run->ttl_ms + hs->run->timeout_ms) * 1000000;
    return rec->status == DIBS_LOST ? rec->returned_ns : 0;
}

static int by_generation(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    if (x->fence != y->fence)
        return x->fence < y->fence ? -1 : 1;
    return x->returned_ns < y->returned_ns ? -1
                                           : x->returned_ns > y->returned_ns;
}

/* Those who passed one generation, the first to leave first. */
typedef struct meeting {
    const deed *list;
    size_t count;
    int64_t complete_ns; /* the last of them had come */
} meeting;

static void tell_meeting(history *hs, const meeting *mt, const char *what)
{
    fprintf(hs->out,
            "generation %" PRIu64 " of %u parties: %s:", mt->list[0].rec->fence,
            PARTIES, what);
    for (size_t i = 0; i < mt->count; i++) {
        const deed *dd = &mt->list[i];
        char at[MOMENT_ROOM], to[MOMENT_ROOM];

        fprintf(hs->out, "%s worker %u.%u, from %s to %s", i > 0 ? ";" : "",
                dd->worker, dd->life, moment(hs, dd->rec->invoked_ns, at),
                moment(hs, dd->rec->returned_ns, to));
    }
    fprintf(hs->out, "\n");
}

/* Calls that were under way when the generation opened and may be of it. */
static size_t count_open(const history *hs, const meeting *mt)
{
    size_t count = 0;

    for (size_t i = 0; i < hs->meets.count; i++) {
        const record *rec = hs->meets.list[i].rec;

        count += rec->invoked_ns < mt->list[0].rec->returned_ns &&
                 open_until(hs, rec) > mt->complete_ns;
    }
    return count;
}

static bool has_twice(const meeting *mt)
{
    for (size_t i = 0; i < mt->count; i++)
        for (size_t k = 0; k < i; k++)
            if (mt->list[i].worker == mt->list[k].worker &&
                mt->list[i].life == mt->list[k].life)
                return true;
    return false;
}

static void check_meeting(history *hs, meeting *mt)
{
    const char *what = NULL;

    for (size_t i = 0; i < mt->count; i++)
        if (mt->list[i].rec->invoked_ns > mt->complete_ns)
            mt->complete_ns = mt->list[i].rec->invoked_ns;
    if (mt->count > PARTIES)
        what = "more passed than it has";
    else if (has_twice(mt))
        what = "one passed twice";
    else if (mt->list[0].rec->returned_ns < mt->complete_ns)
        what = "the first left before the last had come";
    else if (mt->count < PARTIES && mt->count + count_open(hs, mt) < PARTIES)
        what = "fewer had come";
    if (what && breach(hs, BARRIER))
        tell_meeting(hs, mt, what);
}

/* In the order of generations: nobody came before one that left earlier. */
static void check_rise(history *hs, const deed *passed, size_t count)
{
    const deed *latest = NULL; /* of those before, the one that came last */

    for (size_t i = 0; i < count; i++) {
        const record *rec = passed[i].rec;

        if (latest && latest->rec->fence < rec->fence &&
            rec->returned_ns < latest->rec->invoked_ns && breach(hs, BARRIER))
            fprintf(hs->out,
                    "generation %" PRIu64 " was passed by worker %u.%u after "
                    "generation %" PRIu64 " by worker %u.%u\n",
                    latest->rec->fence, latest->worker, latest->life,
                    rec->fence, passed[i].worker, passed[i].life);
        if (!latest || rec->invoked_ns > latest->rec->invoked_ns)
            latest = &passed[i];
    }
}

static void check_goes_on(history *hs, const deed *passed, size_t count)
{
    int64_t calm_ns = atomic_load(&hs->run->calm_ns);

    for (size_t i = 0; i < count; i++)
        if (passed[i].rec->returned_ns > calm_ns)
            return;
    if (calm_ns == 0 || hs->meets.count == 0)
        return;
    hs->late++;
    if (breach(hs, ALIVE))
        fprintf(hs->out, "barrier: nobody passed after the last fault\n");
}

void check_barrier(history *hs)
{
    deed *passed = must_have(hs->meets.count, sizeof(*passed));
    size_t count = 0, from = 0;

    for (size_t i = 0; i < hs->meets.count; i++)
        if (has_passed(hs->meets.list[i].rec))
            passed[count++] = hs->meets.list[i];
    qsort(passed, count, sizeof(*passed), by_generation);
    for (size_t i = 1; i <= count; i++)
        if (i == count || passed[i].rec->fence != passed[from].rec->fence) {
            check_meeting(hs, &(meeting){passed + from, i - from, 0});
            from = i;
        }
    check_rise(hs, passed, count);
    check_goes_on(hs, passed, count);
    free(passed);
}
