/* check_breaker_state.c - how the state of the breaker changed, and its permits.
 *
 *   breaker  A closed version is replaced by an open one, after as many bad calls under it
 *            as open it. An open one is replaced by another after a bad probe of it, or
 *            by a closed one after as many good ones as close it. Versions rise, each is
 *            replaced once and has one state, and no client goes back. A permit is
 *            refused only while all can be in use: one that was given back is free, and
 *            one whose prober has died is free after its ttl.
 *
 * A change counts from when a client asks for it, whatever the store answers: it has
 * decided by then. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <inttypes.h>
#include <stdlib.h>

/* A store may round the end of a permit up. */
#define ROUNDED_NS INT64_C(2000000)

static const char *const states[] = {"unknown", "closed", "open"};

/* Changes that were made, by the version that they made. */
typedef struct story {
    deed *made;
    size_t count;
} story;

static int by_made(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static int by_replaced(const void *a, const void *b)
{
    const record *x = ((const deed *)a)->rec, *y = ((const deed *)b)->rec;

    return x->expected < y->expected ? -1 : x->expected > y->expected;
}

static const record *find_made(const story *sy, uint64_t version)
{
    const record wanted = {.fence = version};
    const deed *dd = bsearch(&(deed){&wanted, 0, 0}, sy->made, sy->count,
                             sizeof(*sy->made), by_made);

    return dd ? dd->rec : NULL;
}

/* A call that passed and ended by then, under that version, as far as is known. */
static bool
is_under(const record *rec, uint64_t version, int64_t made_ns, int64_t by_ns)
{
    if (!rec->returned_ns || rec->status != DIBS_OK || !rec->released_ns ||
        rec->released_ns > by_ns || rec->exclusive)
        return false;
    return rec->expected == SEEN_NOTHING ? rec->returned_ns >= made_ns
                                         : rec->fence == version;
}

/* What a client can have known of a version when it asked to replace it. */
typedef struct evidence {
    uint64_t state; /* SEEN_* */
    unsigned bad, bad_probes, good_probes;
} evidence;

static evidence
find_evidence(const history *hs, const story *sy, const record *change)
{
    const record *made = find_made(sy, change->expected);
    evidence ev = {.state = made ? made->value : SEEN_NOTHING};

    if (change->expected == 0) /* there was none */
        ev.state = SEEN_CLOSED;
    for (size_t i = 0; i < hs->calls.count; i++) {
        const record *rec = hs->calls.list[i].rec;

        if (!is_under(rec, change->expected, made ? made->invoked_ns : 0,
                      change->invoked_ns))
            continue;
        if (ev.state == SEEN_NOTHING)
            ev.state = rec->expected;
        ev.bad +=
            !rec->permits && rec->expected != SEEN_OPEN && rec->value == 0;
        ev.bad_probes += rec->permits && rec->value == 0;
        ev.good_probes += rec->permits && rec->value != 0;
    }
    return ev;
}

static bool is_legal(const record *change, const evidence *ev)
{
    if (change->value == SEEN_CLOSED)
        return ev->state != SEEN_CLOSED && ev->good_probes >= NEED;
    return (ev->state != SEEN_OPEN && ev->bad >= THRESHOLD) ||
           (ev->state != SEEN_CLOSED && ev->bad_probes > 0);
}

static void check_change(history *hs, const story *sy, const deed *dd)
{
    const record *rec = dd->rec;
    const evidence ev = find_evidence(hs, sy, rec);
    char at[MOMENT_ROOM];

    if (is_legal(rec, &ev) || !breach(hs, BREAKER))
        return;
    fprintf(hs->out,
            "worker %u.%u asked for %s in the place of version %" PRIu64
            " (%s) at %s, after %u bad calls, %u bad and %u good probes of "
            "it; %u bad calls open it, and %u good probes close it\n",
            dd->worker, dd->life, states[rec->value], rec->expected,
            states[ev.state], moment(hs, rec->invoked_ns, at), ev.bad,
            ev.bad_probes, ev.good_probes, THRESHOLD, NEED);
}

static void
tell_two(history *hs, const char *what, const deed *a, const deed *b)
{
    char first[MOMENT_ROOM], second[MOMENT_ROOM];

    fprintf(hs->out,
            "%s: %" PRIu64 " by %" PRIu64 ", by worker %u.%u at %s; %" PRIu64
            " by %" PRIu64 ", by worker %u.%u at %s\n",
            what, a->rec->expected, a->rec->fence, a->worker, a->life,
            moment(hs, a->rec->invoked_ns, first), b->rec->expected,
            b->rec->fence, b->worker, b->life,
            moment(hs, b->rec->invoked_ns, second));
}

/* Leaves them in the order of what they made. */
static void check_versions(history *hs, story *sy)
{
    qsort(sy->made, sy->count, sizeof(*sy->made), by_replaced);
    for (size_t i = 1; i < sy->count; i++)
        if (sy->made[i].rec->expected == sy->made[i - 1].rec->expected &&
            breach(hs, BREAKER))
            tell_two(hs, "a version was replaced twice", &sy->made[i - 1],
                     &sy->made[i]);
    qsort(sy->made, sy->count, sizeof(*sy->made), by_made);
    for (size_t i = 0; i < sy->count; i++)
        if (sy->made[i].rec->fence <= sy->made[i].rec->expected &&
            breach(hs, BREAKER))
            tell_two(hs, "a version was replaced by one that is no higher",
                     &sy->made[i], &sy->made[i]);
}

/* The mistake in what a call found; NULL: none. `before` is the version that the call
 * before it in the same process found. */
static const char *
find_mistake(const story *sy, const record *rec, uint64_t before)
{
    const record *made = find_made(sy, rec->fence);

    if (rec->fence < before)
        return "went back to that version";
    if (made && made->value != rec->expected)
        return "found it in another state than it was made";
    if (rec->permits && rec->expected == SEEN_CLOSED)
        return "made a probe of it";
    return NULL;
}

static void check_calls(history *hs, const story *sy)
{
    const deed *last = NULL; /* that knew its version */

    for (size_t i = 0; i < hs->calls.count; i++) {
        const deed *dd = &hs->calls.list[i];
        bool same =
            last && last->worker == dd->worker && last->life == dd->life;
        const char *what;
        char at[MOMENT_ROOM];

        if (!dd->rec->returned_ns || dd->rec->expected == SEEN_NOTHING)
            continue;
        what = find_mistake(sy, dd->rec, same ? last->rec->fence : 0);
        if (what && breach(hs, BREAKER))
            fprintf(hs->out,
                    "version %" PRIu64 " (%s): worker %u.%u %s at %s\n",
                    dd->rec->fence, states[dd->rec->expected], dd->worker,
                    dd->life, what, moment(hs, dd->rec->returned_ns, at));
        last = dd;
    }
}

void check_breaker_state(history *hs)
{
    story sy = {.made = must_have(hs->changes.count, sizeof(*sy.made))};

    for (size_t i = 0; i < hs->changes.count; i++) {
        const record *rec = hs->changes.list[i].rec;

        if (rec->returned_ns && rec->status == DIBS_OK)
            sy.made[sy.count++] = hs->changes.list[i];
    }
    check_versions(hs, &sy);
    for (size_t i = 0; i < hs->changes.count; i++)
        check_change(hs, &sy, &hs->changes.list[i]);
    check_calls(hs, &sy);
    free(sy.made);
}

/* Until when a permit may have been in use; 0: it was not granted. */
static int64_t permit_end(const history *hs, const deed *dd)
{
    const record *rec = dd->rec;
    int64_t last_ns = rec->returned_ns ? rec->returned_ns : life_end(hs, dd);
    int64_t ttl_ns = hs->run->ttl_ms * 1000000 + ROUNDED_NS;

    if (rec->returned_ns && rec->status != DIBS_OK &&
        rec->status != DIBS_UNKNOWN)
        return 0;
    if (rec->released_ns)
        return rec->released_ns;
    return last_ns == INT64_MAX ? last_ns : last_ns + ttl_ns;
}

/* A permit with its end: it is looked at often. */
typedef struct use {
    int64_t from_ns, to_ns;
} use;

static unsigned
count_in_use(const use *uses, size_t count, const record *refused)
{
    unsigned sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += uses[i].from_ns < refused->returned_ns &&
               uses[i].to_ns > refused->invoked_ns;
    return sum;
}

void check_permits(history *hs)
{
    use *uses = must_have(hs->permits.count, sizeof(*uses));
    int64_t ttl_ns = hs->run->ttl_ms * 1000000;
    size_t count = 0;

    for (size_t i = 0; i < hs->permits.count; i++) {
        const deed *dd = &hs->permits.list[i];

        uses[count] = (use){dd->rec->invoked_ns, permit_end(hs, dd)};
        count += uses[count].to_ns > 0;
    }
    for (size_t i = 0; i < hs->permits.count; i++) {
        const deed *dd = &hs->permits.list[i];
        const record *rec = dd->rec;
        char at[MOMENT_ROOM];
        unsigned in_use;

        if (!rec->returned_ns || rec->status != DIBS_BUSY ||
            was_disturbed(hs, NOBODY, rec->invoked_ns - ttl_ns,
                          rec->returned_ns))
            continue;
        in_use = count_in_use(uses, count, rec);
        if (in_use < PROBES && breach(hs, BREAKER))
            fprintf(hs->out,
                    "worker %u.%u was refused a permit at %s, when %u of %u "
                    "could be in use\n",
                    dd->worker, dd->life, moment(hs, rec->returned_ns, at),
                    in_use, PROBES);
    }
    free(uses);
}
