/* check_election.c - what candidates of the elections relied on.
 *
 *   exclusion  No two led at once. A look that found a candidate leading is good for
 *              stop_ms more, unless its lost callback has returned: no sooner could
 *              another gain.
 *   majority   The same of the election that counts its members.
 *   fence      No two candidates had one term. While the store lost nothing, a later
 *              leader has a higher one.
 *   told       Gained and lost were called in turn, gained first, each once for a term;
 *              after lost no look found it leading, and none after a sleep that
 *              outlasted the lease.
 *   alive      Somebody led after the last fault. check_election_time.c has the rest.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_from(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static int by_term(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->fence < y->fence ? -1 : x->fence > y->fence;
}

/* Until when nobody else may lead. */
static int64_t term_end(const history *hs, const record *rec)
{
    int64_t end = rec->looked_ns + hs->run->stop_ms * 1000000;

    return rec->released_ns && rec->released_ns < end ? rec->released_ns : end;
}

static void tell_term(const history *hs, const deed *dd)
{
    char from[MOMENT_ROOM], to[MOMENT_ROOM];

    fprintf(hs->out,
            "worker %u.%u, term %" PRIu64 ", led from %s and could until %s",
            dd->worker, dd->life, dd->rec->fence,
            moment(hs, dd->rec->from_ns, from),
            moment(hs, term_end(hs, dd->rec), to));
}

static void
tell_two(history *hs, const char *what, const deed *a, const deed *b)
{
    fprintf(hs->out, "election: %s: ", what);
    tell_term(hs, a);
    fprintf(hs->out, "; ");
    tell_term(hs, b);
    fprintf(hs->out, "\n");
}

/* Those that led, in the order in which they did. */
static size_t collect_led(const history *hs, uint32_t key, deed *led)
{
    size_t count = 0;

    for (size_t i = 0; i < hs->terms.count; i++)
        if (hs->terms.list[i].rec->key == key && hs->terms.list[i].rec->from_ns)
            led[count++] = hs->terms.list[i];
    qsort(led, count, sizeof(*led), by_from);
    return count;
}

static void
check_overlap(history *hs, invariant what, const deed *led, size_t count)
{
    const deed *last = NULL; /* that ends last */

    for (size_t i = 0; i < count; i++) {
        if (last && led[i].rec->from_ns < term_end(hs, last->rec) &&
            breach(hs, what))
            tell_two(hs, "two led at once", last, &led[i]);
        if (!last || term_end(hs, led[i].rec) > term_end(hs, last->rec))
            last = &led[i];
    }
}

static void check_terms(history *hs, deed *led, size_t count)
{
    for (size_t i = 1; history_loss(hs) == LOSS_NONE && i < count; i++)
        if (led[i].rec->fence < led[i - 1].rec->fence && breach(hs, FENCE))
            tell_two(hs, "a later term is lower", &led[i - 1], &led[i]);
    qsort(led, count, sizeof(*led), by_term);
    for (size_t i = 1; i < count; i++)
        if (led[i].rec->fence == led[i - 1].rec->fence && breach(hs, FENCE))
            tell_two(hs, "a term was given twice", &led[i - 1], &led[i]);
}

/* The mistake in how a term was announced; NULL: none. `next` is the term after it in
 * the same process, or NULL. */
static const char *find_mistold(const record *rec, const record *next)
{
    if (rec->value != 1)
        return rec->value == 0 ? "lost a term that it never gained"
                               : "gained a term twice";
    if (rec->expected > 1)
        return "was told twice that it had lost";
    if (next && rec->expected == 0)
        return "was never told that it had lost, and gained another";
    if (rec->told_ns && rec->missed_ns == 0)
        return "found itself leading when it was told that it had lost";
    if (rec->told_ns && rec->looked_ns > rec->told_ns)
        return "found itself leading after it was told that it had lost";
    return NULL;
}

static void check_announced(history *hs, const deed *dd, const record *next)
{
    const char *what = find_mistold(dd->rec, next);
    int64_t slept =
        slept_at(hs, dd->worker, dd->rec->from_ns, dd->rec->looked_ns);
    char at[MOMENT_ROOM];

    if (!what && dd->rec->from_ns && slept)
        what = "led on after it had slept";
    if (what && breach(hs, TOLD))
        fprintf(hs->out,
                "election: worker %u.%u, term %" PRIu64 " of %s: it %s\n",
                dd->worker, dd->life, dd->rec->fence,
                moment(hs, dd->rec->invoked_ns, at), what);
}

static void check_someone_led(history *hs)
{
    int64_t calm_ns = atomic_load(&hs->run->calm_ns);

    for (size_t i = 0; i < hs->terms.count; i++)
        if (hs->terms.list[i].rec->key == 0 &&
            hs->terms.list[i].rec->looked_ns > calm_ns)
            return;
    if (calm_ns == 0 || hs->terms.count == 0)
        return;
    hs->late++;
    if (breach(hs, ALIVE))
        fprintf(hs->out, "election: nobody led after the last fault\n");
}

/* The term after it in the same process; NULL: none. */
static const record *find_next(const deed_list *terms, size_t at)
{
    const deed *dd = &terms->list[at];

    for (size_t i = at + 1; i < terms->count; i++) {
        const deed *next = &terms->list[i];

        if (next->worker != dd->worker || next->life != dd->life)
            return NULL;
        if (next->rec->key == dd->rec->key)
            return next->rec;
    }
    return NULL;
}

void check_election(history *hs)
{
    const deed_list *terms = &hs->terms;
    deed *led = must_have(terms->count, sizeof(*led));

    for (uint32_t key = 0; key < ELECTIONS; key++) {
        size_t count = collect_led(hs, key, led);

        check_overlap(hs, key == 0 ? EXCLUSION : MAJORITY, led, count);
        check_gaps(hs, key, led, count);
        check_terms(hs, led, count);
    }
    free(led);
    for (size_t i = 0; i < terms->count; i++) {
        check_announced(hs, &terms->list[i], find_next(terms, i));
        check_reason(hs, &terms->list[i]);
    }
    check_someone_led(hs);
}
