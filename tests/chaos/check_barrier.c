/* check_barrier.c - who passed the barrier with whom, and who was told that it broke.
 *
 *   barrier  A generation was passed by no more than all parties, each once; none of
 *            them passed before all had come; those that did not pass may have arrived
 *            and never heard of it. Generations rise. A call is told that its generation
 *            broke only if something can have broken it meanwhile, and to nobody that
 *            it opened.
 *   alive    One was passed after the last fault. check_barrier_time.c has the rest.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <inttypes.h>
#include <stdlib.h>

/* A party that ended is replaced within this span. */
#define REPLACED_NS INT64_C(10000000000)

/* In which a seat that is not kept has ended. */
static int64_t seat_ns(const history *hs)
{
    return (hs->run->ttl_ms + hs->run->timeout_ms) * 1000000;
}

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
        return rec->returned_ns + seat_ns(hs);
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

static int by_number(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->fence < y->fence ? -1 : x->fence > y->fence;
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
    check_heard(hs, mt->list, mt->count);
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

/* When something may have broken what gathered. */
typedef struct cause {
    int64_t from_ns, to_ns; /* to_ns is 0: never */
} cause;

/* A call that broke it with its time-out, or whose seat was lost or given up. */
static cause cause_of_call(const history *hs, const deed *dd)
{
    const record *rec = dd->rec;

    if (!rec->returned_ns)
        return (cause){rec->invoked_ns, INT64_MAX};
    switch (rec->status) {
    case DIBS_OK:
    case DIBS_BROKEN:
    case DIBS_BUSY: /* has no seat */
        return (cause){0, 0};
    case DIBS_TIMEOUT:
        return breaks_barrier(dd->worker)
                   ? (cause){rec->invoked_ns + MEET_MS * INT64_C(1000000),
                             rec->returned_ns}
                   : (cause){0, 0};
    default:
        return (cause){rec->invoked_ns - seat_ns(hs),
                       rec->returned_ns + seat_ns(hs)};
    }
}

/* A party that ended, and that another life of its worker follows. */
static cause cause_of_life(const history *hs, const record_log *log)
{
    if (log->life < 2 || log->worker >= MEETERS)
        return (cause){0, 0};
    return (cause){log->began_ns - REPLACED_NS, log->began_ns + seat_ns(hs)};
}

/* A later cause, if it was while the call was under way. */
static int64_t later(cause why, const record *rec, int64_t latest)
{
    return why.to_ns > rec->invoked_ns && why.from_ns < rec->returned_ns &&
                   why.to_ns > latest
               ? why.to_ns
               : latest;
}

/* By when the generation of a call had broken, if it did; 0: nothing broke it. With a
 * fault on the store or on a party, or when all leave, seats end unseen. */
static int64_t broken_by(const history *hs, const record *rec)
{
    int64_t ended_ns = atomic_load(&hs->run->ended_ns), latest = 0;

    if (ended_ns && rec->returned_ns > ended_ns)
        return INT64_MAX;
    for (uint32_t i = 0; i < MEETERS; i++)
        if (was_disturbed(hs, i, rec->invoked_ns - seat_ns(hs),
                          rec->returned_ns))
            return INT64_MAX;
    for (size_t i = 0; i < hs->meets.count; i++)
        if (hs->meets.list[i].rec != rec)
            latest = later(cause_of_call(hs, &hs->meets.list[i]), rec, latest);
    for (size_t i = 0; i < hs->log_count; i++)
        latest = later(cause_of_life(hs, hs->logs[i]), rec, latest);
    return latest;
}

/* A machine that is too slow to keep a seat explains both. */
static void check_break(history *hs, const deed *dd)
{
    const record *rec = dd->rec;
    int64_t by_ns = broken_by(hs, rec);
    char at[MOMENT_ROOM], to[MOMENT_ROOM];

    if (by_ns == 0) {
        hs->late +=
            promised(hs->run->topology, history_loss(hs), BARRIER) == KEPT;
        if (breach(hs, BARRIER))
            fprintf(hs->out,
                    "worker %u.%u, from %s to %s, was told that its generation "
                    "broke, and nothing had broken it\n",
                    dd->worker, dd->life, moment(hs, rec->invoked_ns, at),
                    moment(hs, rec->returned_ns, to));
    } else if (calm_in(hs, dd->worker, by_ns, rec->returned_ns) >
               barrier_hear_ns(hs)) {
        hs->late++;
        if (breach(hs, ALIVE))
            fprintf(hs->out,
                    "barrier: worker %u.%u was told at %s of a break before "
                    "%s\n",
                    dd->worker, dd->life, moment(hs, rec->returned_ns, at),
                    moment(hs, by_ns, to));
    }
}

/* Those who were told of a break with the number of what broke; it opened to nobody. */
static void check_broken(history *hs, const deed *broken, size_t count,
                         const deed *passed, size_t passed_count)
{
    const deed *other =
        bsearch(broken, passed, passed_count, sizeof(*passed), by_number);
    char at[MOMENT_ROOM];

    if (other && breach(hs, BARRIER))
        fprintf(hs->out,
                "generation %" PRIu64 " opened for worker %u.%u and broke for "
                "worker %u.%u, at %s\n",
                other->rec->fence, other->worker, other->life, broken->worker,
                broken->life, moment(hs, broken->rec->returned_ns, at));
    check_heard(hs, broken, count);
}

static void check_breaks(history *hs, const deed *passed, size_t passed_count)
{
    deed *broken = must_have(hs->meets.count, sizeof(*broken));
    size_t count = 0, from = 0;

    for (size_t i = 0; i < hs->meets.count; i++) {
        const record *rec = hs->meets.list[i].rec;

        if (!rec->returned_ns || rec->status != DIBS_BROKEN)
            continue;
        check_break(hs, &hs->meets.list[i]);
        if (rec->fence)
            broken[count++] = hs->meets.list[i];
    }
    qsort(broken, count, sizeof(*broken), by_generation);
    for (size_t i = 1; i <= count; i++)
        if (i == count || broken[i].rec->fence != broken[from].rec->fence) {
            check_broken(hs, broken + from, i - from, passed, passed_count);
            from = i;
        }
    free(broken);
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
    check_breaks(hs, passed, count);
    check_seats_end(hs);
    check_goes_on(hs, passed, count);
    free(passed);
}
