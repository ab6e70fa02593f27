/* check_lease.c - what holders of leases relied on.
 *
 *   exclusion  a writer's span touches no other; permits in use never add up to
 *              more than the capacity
 *   fence      no two owners have one fence, and a lease that was granted before
 *              another was asked for has the smaller one
 *   order      who had a place before another asked for the name was served
 *              first, unless a fault was on it or on the store meanwhile
 *   told       who lost a lease was told so, in time; who slept for longer than its
 *              lease lasted saw so at once
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A busy machine wakes a thread late; a hang is longer. */
#define LATE_NS INT64_C(2000000000)

typedef struct edge {
    int64_t at_ns;
    int32_t step; /* +1 begins, -1 ends */
    uint32_t deed;
} edge;

/* What goes on at one moment of the sweep. */
typedef struct crowd {
    int writers;
    int readers;
    int permits;
    uint32_t inside[WORKERS_MAX * 2]; /* deeds */
    size_t count;
} crowd;

static int by_time(const void *a, const void *b)
{
    const edge *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->step - y->step; /* What ends goes before what begins. */
}

static void enter(crowd *cr, const record *rec, const edge *ed)
{
    cr->writers += rec->exclusive ? ed->step : 0;
    cr->readers += !rec->exclusive && !rec->permits ? ed->step : 0;
    cr->permits += ed->step * (int)rec->permits;
    if (ed->step > 0 && cr->count < WORKERS_MAX * 2)
        cr->inside[cr->count++] = ed->deed;
    for (size_t i = 0; ed->step < 0 && i < cr->count; i++)
        if (cr->inside[i] == ed->deed)
            cr->inside[i] = cr->inside[--cr->count];
}

/* Who is inside beside the last that entered; one that excludes it, if there is
 * one. */
static const deed *other_of(const crowd *cr, const deed *deeds)
{
    const deed *other = &deeds[cr->inside[0]];
    bool alone = deeds[cr->inside[cr->count - 1]].rec->exclusive;

    for (size_t i = 0; i + 1 < cr->count; i++)
        if (alone || deeds[cr->inside[i]].rec->exclusive)
            other = &deeds[cr->inside[i]];
    return other;
}

static void
tell_crowd(history *hs, uint32_t key, const crowd *cr, const deed *last)
{
    const deed *other = other_of(cr, hs->holds[key]);
    int64_t end = hold_end(last->rec), other_end = hold_end(other->rec);

    fprintf(hs->out, "key %u (%s): ", key, kind_name(kind_of(key)));
    if (last->rec->permits)
        fprintf(hs->out, "%d permits of %d in use: ", cr->permits, CAPACITY);
    tell_hold(hs, other);
    fprintf(hs->out, "; ");
    tell_hold(hs, last);
    fprintf(hs->out, ": %.3f ms at once\n",
            (double)((end < other_end ? end : other_end) - last->rec->from_ns) /
                1e6);
}

/* Sweeps over the spans that were relied on. */
void check_exclusion(history *hs, uint32_t key)
{
    const deed *deeds = hs->holds[key];
    size_t count = hs->hold_counts[key], edges_count = 0;
    edge *edges = must_have(2 * count, sizeof(*edges));
    crowd cr = {0};

    for (size_t i = 0; i < count; i++) {
        int64_t from = deeds[i].rec->from_ns, to = hold_end(deeds[i].rec);

        /* A lease that was looked at once may have a span of no length. */
        if (to <= from)
            continue;
        edges[edges_count++] = (edge){from, 1, (uint32_t)i};
        edges[edges_count++] = (edge){to, -1, (uint32_t)i};
    }
    qsort(edges, edges_count, sizeof(*edges), by_time);
    for (size_t i = 0; i < edges_count; i++) {
        const deed *dd = &deeds[edges[i].deed];

        enter(&cr, dd->rec, &edges[i]);
        if (edges[i].step > 0 &&
            (cr.writers > 1 || (cr.writers && cr.readers) ||
             cr.permits > CAPACITY) &&
            breach(hs, EXCLUSION))
            tell_crowd(hs, key, &cr, dd);
    }
    free(edges);
}

static int by_fence(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    if (x->fence != y->fence)
        return x->fence < y->fence ? -1 : 1;
    return x->invoked_ns < y->invoked_ns ? -1 : x->invoked_ns > y->invoked_ns;
}

static int by_from(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int by_invoked(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->invoked_ns < y->invoked_ns ? -1 : x->invoked_ns > y->invoked_ns;
}

/* A sticky lease that is taken up again goes on under its fence. */
static bool is_same_lease(const deed *a, const deed *b)
{
    return a->rec->fence == b->rec->fence &&
           strcmp(a->rec->owner, b->rec->owner) == 0;
}

static void tell_two(history *hs, uint32_t key, const char *what, const deed *a,
                     const deed *b)
{
    fprintf(hs->out, "key %u (%s): %s: ", key, kind_name(kind_of(key)), what);
    tell_hold(hs, a);
    fprintf(hs->out, "; ");
    tell_hold(hs, b);
    fprintf(hs->out, "\n");
}

static void check_distinct(history *hs, uint32_t key, deed *deeds, size_t count)
{
    qsort(deeds, count, sizeof(*deeds), by_fence);
    for (size_t i = 1; i < count; i++)
        if (deeds[i].rec->fence == deeds[i - 1].rec->fence &&
            !is_same_lease(&deeds[i], &deeds[i - 1]) && breach(hs, FENCE))
            tell_two(hs, key, "a fence was given twice", &deeds[i - 1],
                     &deeds[i]);
}

/* Those that were asked of the store, out of all in the order of fences: a sticky
 * lease that is taken up again was granted when it was taken first. */
static size_t collect_asked(const deed *held, size_t count, deed *asked)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        if (i == 0 || !is_same_lease(&held[i - 1], &held[i]))
            asked[found++] = held[i];
    qsort(asked, found, sizeof(*asked), by_invoked);
    return found;
}

/* Every lease that was there before this one was asked for has a smaller fence. */
void check_fences(history *hs, uint32_t key)
{
    size_t count = hs->hold_counts[key], at = 0, found;
    deed *held = hs->holds[key];
    deed *asked = must_have(count, sizeof(*asked));
    const deed *highest = NULL;

    check_distinct(hs, key, held, count);
    found = collect_asked(held, count, asked);
    qsort(held, count, sizeof(*held), by_from);
    for (size_t i = 0; i < found; i++) {
        for (; at < count && held[at].rec->from_ns < asked[i].rec->invoked_ns;
             at++)
            if (!highest || held[at].rec->fence > highest->rec->fence)
                highest = &held[at];
        if (highest && highest->rec->fence >= asked[i].rec->fence &&
            breach(hs, FENCE))
            tell_two(hs, key, "a later fence is not higher", highest,
                     &asked[i]);
    }
    free(asked);
}

/* A waiter renews its place each second, for three: if it waited longer than this, the
 * machine may have kept it from running for so long that it lost its place. */
#define PLACE_SLACK_NS INT64_C(2000000000)

/* The machine may have made this holder lose its place: by a long wait, or because its
 * process was not run for so long that a lease was over before it heard of it, and it
 * joined again at the tail. */
static bool may_have_lapsed(const history *hs, const deed *dd)
{
    const record *rec = dd->rec;
    int64_t waited_ns = rec->from_ns - rec->queued_ns;
    int64_t calm_ns = calm_in(hs, dd->worker, rec->queued_ns, rec->from_ns);

    return waited_ns > PLACE_SLACK_NS ||
           waited_ns - calm_ns >= hs->run->ttl_ms * 1000000;
}

/* A breach that a slow machine may explain, if `late`. */
static bool breach_by(history *hs, invariant what, bool late)
{
    if (late && promised(hs->run->topology, history_loss(hs), what) == KEPT)
        hs->late++;
    return breach(hs, what);
}

/* In the order of fences nobody asked after another had its place. */
void check_order(history *hs, uint32_t key)
{
    size_t count = hs->hold_counts[key];
    deed *held = hs->holds[key];
    const deed *latest = NULL;

    qsort(held, count, sizeof(*held), by_fence);
    for (size_t i = 0; i < count; i++) {
        const record *rec = held[i].rec;

        if (latest && rec->queued_ns &&
            latest->rec->invoked_ns > rec->queued_ns &&
            !was_disturbed(hs, held[i].worker, rec->invoked_ns, rec->from_ns) &&
            breach_by(hs, ORDER, may_have_lapsed(hs, &held[i])))
            tell_two(hs, key, "the first asked later and was served before",
                     latest, &held[i]);
        if (!latest || rec->invoked_ns > latest->rec->invoked_ns)
            latest = &held[i];
    }
}

/* The process may have been kept from running when it was to be told. */
void check_told(history *hs, uint32_t key)
{
    for (size_t i = 0; i < hs->hold_counts[key]; i++) {
        const deed *dd = &hs->holds[key][i];
        const record *rec = dd->rec;
        int64_t due = rec->missed_ns, last;

        if (!rec->missed_ns || !rec->released_ns)
            continue;
        if (rec->told_ns && rec->told_ns <= due + LATE_NS)
            continue;
        last = last_on_worker(hs, dd->worker, rec->from_ns, rec->released_ns);
        if (last > due)
            due = last;
        last = slept_at(hs, dd->worker, due, rec->released_ns);
        if (last > due)
            due = last;
        if ((rec->told_ns ? rec->told_ns : rec->released_ns) <= due + LATE_NS)
            continue;
        if (breach_by(hs, TOLD, rec->told_ns != 0)) {
            fprintf(hs->out, "key %u (%s): ", key, kind_name(kind_of(key)));
            tell_hold(hs, dd);
            if (rec->told_ns)
                fprintf(hs->out, ", and was told of its loss %.3f ms late\n",
                        (double)(rec->told_ns - due) / 1e6);
            else
                fprintf(hs->out, ", and was never told of its loss\n");
        }
    }
}

/* A lease that ran out while its holder slept is lost at the first look. */
void check_slept(history *hs, uint32_t key)
{
    for (size_t i = 0; i < hs->hold_counts[key]; i++) {
        const deed *dd = &hs->holds[key][i];
        const record *rec = dd->rec;
        int64_t at = slept_at(hs, dd->worker, rec->from_ns, rec->looked_ns);

        if (at != 0 && breach(hs, TOLD)) {
            fprintf(hs->out, "key %u (%s): ", key, kind_name(kind_of(key)));
            tell_hold(hs, dd);
            fprintf(hs->out, ", and found it valid %.3f ms after its sleep\n",
                    (double)(rec->looked_ns - at) / 1e6);
        }
    }
}
