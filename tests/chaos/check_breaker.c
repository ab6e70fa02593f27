/* check_breaker.c - what the breaker let pass, and what it refused.
 *
 *   breaker  No more probes were under way than have permits, where the store was there
 *            to count them. No call was refused before as many bad calls had been made
 *            as open it.
 *   alive    A call passed after the last fault: no permit is lost for ever.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <stdlib.h>

static bool has_passed(const record *rec)
{
    return rec->returned_ns && rec->status == DIBS_OK;
}

/* Until when the permit of a probe was surely its own: it was granted after it was
 * asked for. */
static int64_t permit_end(const history *hs, const record *rec)
{
    int64_t end = rec->invoked_ns + hs->run->ttl_ms * 1000000;

    return rec->released_ns && rec->released_ns < end ? rec->released_ns : end;
}

static bool is_probe(const history *hs, const record *rec)
{
    return has_passed(rec) && rec->permits &&
           rec->returned_ns < permit_end(hs, rec) &&
           !was_disturbed(hs, NOBODY, rec->invoked_ns, permit_end(hs, rec));
}

static int by_returned(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->returned_ns < y->returned_ns ? -1
                                           : x->returned_ns > y->returned_ns;
}

/* Of those that began before it, how many were under way when this one began. */
static unsigned count_beside(const history *hs, const deed *probes, size_t at)
{
    unsigned count = 0;

    for (size_t i = 0; i < at; i++)
        count += permit_end(hs, probes[i].rec) > probes[at].rec->returned_ns;
    return count;
}

static void check_probes(history *hs)
{
    deed *probes = must_have(hs->calls.count, sizeof(*probes));
    size_t count = 0;

    for (size_t i = 0; i < hs->calls.count; i++)
        if (is_probe(hs, hs->calls.list[i].rec))
            probes[count++] = hs->calls.list[i];
    qsort(probes, count, sizeof(*probes), by_returned);
    for (size_t i = 0; i < count; i++) {
        unsigned beside = count_beside(hs, probes, i);
        char at[MOMENT_ROOM];

        if (beside >= PROBES && breach(hs, BREAKER))
            fprintf(hs->out,
                    "worker %u.%u began a probe at %s beside %u others, and "
                    "%u are allowed\n",
                    probes[i].worker, probes[i].life,
                    moment(hs, probes[i].rec->returned_ns, at), beside, PROBES);
    }
    free(probes);
}

/* Bad calls that began before that moment; one without an end may have been bad. */
static unsigned count_bad(const history *hs, int64_t by_ns)
{
    unsigned count = 0;

    for (size_t i = 0; i < hs->calls.count; i++) {
        const record *rec = hs->calls.list[i].rec;

        count += has_passed(rec) && rec->returned_ns < by_ns &&
                 (rec->released_ns == 0 || rec->value == 0);
    }
    return count;
}

static void check_first_refusal(history *hs)
{
    const deed *first = NULL;
    char at[MOMENT_ROOM];

    for (size_t i = 0; i < hs->calls.count; i++) {
        const deed *dd = &hs->calls.list[i];

        if (dd->rec->returned_ns && dd->rec->status == DIBS_BUSY &&
            (!first || dd->rec->returned_ns < first->rec->returned_ns))
            first = dd;
    }
    if (first && count_bad(hs, first->rec->returned_ns) < THRESHOLD &&
        breach(hs, BREAKER))
        fprintf(hs->out,
                "worker %u.%u was refused at %s, after %u bad calls, and %u "
                "open it\n",
                first->worker, first->life,
                moment(hs, first->rec->returned_ns, at),
                count_bad(hs, first->rec->returned_ns), THRESHOLD);
}

static void check_recovers(history *hs)
{
    int64_t calm_ns = atomic_load(&hs->run->calm_ns);

    for (size_t i = 0; i < hs->calls.count; i++)
        if (has_passed(hs->calls.list[i].rec) &&
            hs->calls.list[i].rec->returned_ns > calm_ns)
            return;
    if (calm_ns == 0 || hs->calls.count == 0)
        return;
    hs->late++;
    if (breach(hs, ALIVE))
        fprintf(hs->out, "breaker: no call passed after the last fault\n");
}

void check_breaker(history *hs)
{
    check_probes(hs);
    check_first_refusal(hs);
    check_recovers(hs);
}
