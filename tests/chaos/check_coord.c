/* check_coord.c - what latches and the limit answered.
 *
 *   latch   A latch misses no fewer ids than it waits for less those that had begun to
 *           count: it never opens early, and an id counts once.
 *   values  ... and no more than it waits for less those that had counted: what was
 *           answered is kept, so that a latch that was seen open stays so.
 *   limit   In no span were more tokens handed out than the burst and what the rate
 *           gives in it, and one burst more for each fault on the store.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <stdlib.h>
#include <string.h>

/* ---- latches */

enum { IDS = WORKERS_MAX * 8 };

/* Ids of one latch that counted, or may have, by some moment. */
typedef struct id_set {
    bool in[IDS];
    unsigned count;
} id_set;

static void id_add(id_set *is, uint64_t id)
{
    is->count += !is->in[id % IDS];
    is->in[id % IDS] = true;
}

static int by_latch(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->invoked_ns < y->invoked_ns ? -1 : x->invoked_ns > y->invoked_ns;
}

/* Whether the answer says how many ids were missing, and how many; of one that says
 * only that it was closed, at least one was. */
static bool read_left(const record *rec, uint64_t *least, uint64_t *most)
{
    *least = rec->expected;
    *most = rec->expected;
    if (rec->returned_ns == 0)
        return false;
    if (rec->op == OP_WAIT && rec->status == DIBS_NOTFOUND)
        *least = *most = LATCH_COUNT;
    else if (rec->op == OP_WAIT && rec->status == DIBS_TIMEOUT)
        *least = 1, *most = LATCH_COUNT;
    else if (rec->status != DIBS_OK)
        return false;
    return true;
}

static void tell_latch(history *hs, const deed *dd, const char *what,
                       uint64_t left, unsigned ids)
{
    char at[MOMENT_ROOM], to[MOMENT_ROOM];

    fprintf(hs->out,
            "latch %u of %u ids: worker %u.%u found %llu missing from %s to "
            "%s, when %u %s\n",
            dd->rec->key, LATCH_COUNT, dd->worker, dd->life,
            (unsigned long long)left, moment(hs, dd->rec->invoked_ns, at),
            moment(hs, dd->rec->returned_ns, to), ids, what);
}

static void check_answer(history *hs, const deed *all, size_t count, size_t at)
{
    static id_set begun, done;
    const record *rec = all[at].rec;
    uint64_t least, most, still, open = LATCH_COUNT;

    if (!read_left(rec, &least, &most))
        return;
    memset(&begun, 0, sizeof(begun));
    memset(&done, 0, sizeof(done));
    for (size_t i = 0; i < count; i++) {
        const record *other = all[i].rec;
        uint64_t low, high;

        if (other->returned_ns && other->returned_ns < rec->invoked_ns &&
            read_left(other, &low, &high) && high < open)
            open = high; /* it was seen so far already */
        if (other->op != OP_COUNT)
            continue;
        if (other->invoked_ns < rec->returned_ns)
            id_add(&begun, other->value);
        if (i == at || (other->returned_ns && other->status == DIBS_OK &&
                        other->returned_ns < rec->invoked_ns))
            id_add(&done, other->value);
    }
    if (most + begun.count < LATCH_COUNT && breach(hs, LATCH))
        tell_latch(hs, &all[at], "had begun to count", most, begun.count);
    still = done.count < LATCH_COUNT ? LATCH_COUNT - done.count : 0;
    if (least > (open < still ? open : still) && breach(hs, VALUES_KEPT))
        tell_latch(hs, &all[at], "had counted", least, done.count);
}

void check_latches(history *hs)
{
    deed *all = hs->latches.list;
    size_t from = 0;

    qsort(all, hs->latches.count, sizeof(*all), by_latch);
    for (size_t i = 0; i < hs->latches.count; i++) {
        if (all[i].rec->key != all[from].rec->key)
            from = i;
        if (i + 1 < hs->latches.count &&
            all[i + 1].rec->key == all[from].rec->key)
            continue;
        for (size_t k = from; k <= i; k++)
            check_answer(hs, all + from, i + 1 - from, k - from);
    }
}

/* ---- the limit */

/* A call that took longer says little about when its tokens were handed out. */
#define QUICK_NS INT64_C(20000000)

/* So many calls back a span may reach. */
enum { REACH = 1000 };

static int by_returned(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->returned_ns < y->returned_ns ? -1
                                           : x->returned_ns > y->returned_ns;
}

static bool was_quick_take(const record *rec)
{
    return rec->returned_ns && rec->status == DIBS_OK &&
           rec->returned_ns - rec->invoked_ns <= QUICK_NS;
}

/* The tokens that a span of the limit may hand out, without faults. */
static double allowed_in(int64_t span_ns)
{
    return (double)LIMIT_BURST + (double)span_ns * (double)LIMIT_RATE / 1e9;
}

/* Of all spans that end with the call at `at`, the first that got too much. */
static bool check_spans(history *hs, const deed *all, size_t at)
{
    int64_t to = all[at].rec->returned_ns, from = to;
    uint64_t sum = 0;

    for (size_t i = at + 1; i-- > 0 && at - i < REACH;) {
        unsigned bursts;

        if (all[i].rec->invoked_ns < from)
            from = all[i].rec->invoked_ns;
        sum += all[i].rec->value;
        if ((double)sum <= allowed_in(to - from))
            continue;
        bursts = store_faults(hs, from, to);
        if ((double)sum <= allowed_in(to - from) + bursts * LIMIT_BURST)
            continue;
        if (breach(hs, LIMIT))
            fprintf(hs->out,
                    "%llu tokens in %.3f ms, of %u each second and a burst of "
                    "%u\n",
                    (unsigned long long)sum, (double)(to - from) / 1e6,
                    LIMIT_RATE, LIMIT_BURST);
        return true;
    }
    return false;
}

void check_limit(history *hs)
{
    deed *quick = must_have(hs->takes.count, sizeof(*quick));
    size_t count = 0, at = 0;

    for (size_t i = 0; i < hs->takes.count; i++)
        if (was_quick_take(hs->takes.list[i].rec))
            quick[count++] = hs->takes.list[i];
    qsort(quick, count, sizeof(*quick), by_returned);
    /* One surplus is in many spans. */
    while (at < count && !check_spans(hs, quick, at))
        at++;
    free(quick);
}
