/* check_election_time.c - whether there is a leader when there can be one, and stays.
 *
 *   alive   After the last fault no span without a leader is longer than the ttl and
 *           AGAIN_NS, in which a candidate asks again that heard of nothing; and LEAD_NS, and
 *           STEPS times the longest step in it. A candidate that died may be granted the
 *           lease all the same, and has it for CLAIM_MS. With a minimum of members these
 *           must be counted first. Time in which a process was not run does not count.
 *           Nobody loses the lead without a reason: the leader gave it up, or a fault was
 *           on it or on the store, or a process was not run, or the store was slow; of
 *           members that are too few, on one of them.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/elect.h>
#include <inttypes.h>

/* Who waits for a lease asks again so often. */
#define AGAIN_NS INT64_C(1000000000)
/* How long the name of an heir stays whose transfer could not take it away. */
#define NAMED_NS INT64_C(5000000000)

/* For steps that are under way, on a machine with others to run. */
#define LEAD_NS INT64_C(1000000000)

/* That one after the other make a leader: each may take as long as the longest of all. */
enum { STEPS = 10 };

static int64_t ttl_ns(const history *hs)
{
    return hs->run->ttl_ms * 1000000;
}

/* Until when it led. */
static int64_t lead_end(const history *hs, const deed *dd)
{
    int64_t ended_ns = atomic_load(&hs->run->ended_ns);

    if (dd->rec->told_ns)
        return dd->rec->told_ns;
    return life_end(hs, dd) == INT64_MAX ? ended_ns : dd->rec->looked_ns;
}

/* Whether a candidate may have died whose place in the queue was left at that moment:
 * it stands for as long as a claim. */
static bool had_died(const history *hs, int64_t at_ns)
{
    int64_t from_ns = at_ns - CLAIM_MS * INT64_C(1000000);

    for (uint32_t i = 0; i < hs->run->workers; i++)
        if (last_on_worker(hs, i, from_ns, at_ns))
            return true;
    return false;
}

/* The longest span without a leader that begins at that moment. */
static int64_t allowed_gap(const history *hs, uint32_t key, int64_t from_ns)
{
    int64_t span_ns = ttl_ns(hs) + AGAIN_NS + LEAD_NS;

    /* Seats that are new count after their ttl and a heartbeat; then one more is to tell
     * of it. */
    if (key == 1)
        span_ns += ttl_ns(hs) + 2 * (ttl_ns(hs) / 3);
    if (had_died(hs, from_ns + ttl_ns(hs)))
        span_ns += CLAIM_MS * INT64_C(1000000);
    return span_ns;
}

/* Whether this is one step, which waits for nothing but the store. */
static bool is_step(const record *rec)
{
    switch (rec->op) {
    case OP_HOLD:
        return !rec->waited;
    case OP_GET:
    case OP_SET:
    case OP_CAS:
    case OP_COUNT:
    case OP_TAKE:
    case OP_PERMIT:
    case OP_CHANGE:
        return true;
    default:
        return false;
    }
}

/* The longest step that began in that span: the history's own measure of the machine. */
static int64_t longest_step(const history *hs, int64_t from_ns, int64_t to_ns)
{
    int64_t longest_ns = 0;

    for (size_t i = 0; i < hs->log_count; i++) {
        unsigned count = atomic_load(&hs->logs[i]->count);

        for (unsigned k = 0; k < count; k++) {
            const record *rec = &hs->logs[i]->records[k];
            int64_t span_ns = rec->returned_ns - rec->invoked_ns;

            if (is_step(rec) && rec->invoked_ns > from_ns &&
                rec->invoked_ns < to_ns && span_ns > longest_ns)
                longest_ns = span_ns;
        }
    }
    return longest_ns;
}

static void check_gap(history *hs, uint32_t key, int64_t from_ns, int64_t to_ns)
{
    int64_t most_ns = allowed_gap(hs, key, from_ns), gap_ns;
    char at[MOMENT_ROOM];

    if (to_ns - from_ns <= most_ns)
        return;
    most_ns += STEPS * longest_step(hs, from_ns, to_ns);
    gap_ns = calm_in(hs, ANYBODY, from_ns, to_ns);
    if (gap_ns <= most_ns)
        return;
    hs->late++;
    if (breach(hs, ALIVE))
        fprintf(hs->out,
                "election: nobody led for %.3f s from %s on, after the last "
                "fault; %.3f s are allowed\n",
                (double)gap_ns / 1e9, moment(hs, from_ns, at),
                (double)most_ns / 1e9);
}

void check_gaps(history *hs, uint32_t key, const deed *led, size_t count)
{
    int64_t at_ns = atomic_load(&hs->run->calm_ns);
    int64_t ended_ns = atomic_load(&hs->run->ended_ns);

    if (at_ns == 0 || count == 0)
        return;
    for (size_t i = 0; i < count && led[i].rec->from_ns < ended_ns; i++) {
        if (led[i].rec->from_ns > at_ns)
            check_gap(hs, key, at_ns, led[i].rec->from_ns);
        if (lead_end(hs, &led[i]) > at_ns)
            at_ns = lead_end(hs, &led[i]);
    }
    if (ended_ns > at_ns)
        check_gap(hs, key, at_ns, ended_ns);
}

/* Whether its program gave the term up, or had handed it to another: who leads next finds
 * that, too, until it is forgotten. */
static bool was_given_up(const history *hs, const deed *dd)
{
    int64_t told_ns = dd->rec->told_ns;
    int64_t named_ns = ttl_ns(hs) > NAMED_NS ? ttl_ns(hs) : NAMED_NS;

    for (size_t i = 0; i < hs->hands.count; i++) {
        const deed *hand = &hs->hands.list[i];
        const record *rec = hand->rec;
        int64_t end_ns = rec->returned_ns ? rec->returned_ns : told_ns;
        bool own = hand->worker == dd->worker && hand->life == dd->life;

        if (rec->key != dd->rec->key || rec->invoked_ns > told_ns)
            continue;
        if (own && (rec->fence == dd->rec->fence || end_ns >= told_ns))
            return true;
        if (rec->value == HAND_ON && end_ns + named_ns + AGAIN_NS > told_ns)
            return true;
    }
    return false;
}

/* A worker whose log is full ends by itself. */
static bool is_full(const history *hs, const deed *dd)
{
    for (size_t i = 0; i < hs->log_count; i++)
        if (hs->logs[i]->worker == dd->worker && hs->logs[i]->life == dd->life)
            return atomic_load(&hs->logs[i]->count) == LOG_ROOM;
    return false;
}

static bool was_any_struck(const history *hs, int64_t from_ns, int64_t to_ns)
{
    for (uint32_t i = 0; i < hs->run->workers; i++)
        if (was_struck(hs, i, from_ns, to_ns))
            return true;
    return false;
}

/* Whether a step took longer than that, or a process was not run though no fault was on
 * it: not all threads of the others were, then. */
static bool is_slow(const history *hs, const record_log *log, const record *rec,
                    int64_t least_ns)
{
    if (rec->op == OP_PAUSE)
        return !last_on_worker(hs, log->worker, rec->invoked_ns,
                               rec->returned_ns);
    return is_step(rec) && rec->returned_ns - rec->invoked_ns > least_ns;
}

static bool
was_slow(const history *hs, int64_t least_ns, int64_t from_ns, int64_t to_ns)
{
    for (size_t i = 0; i < hs->log_count; i++) {
        unsigned count = atomic_load(&hs->logs[i]->count);

        for (unsigned k = 0; k < count; k++) {
            const record *rec = &hs->logs[i]->records[k];

            if (rec->invoked_ns < to_ns && rec->returned_ns > from_ns &&
                is_slow(hs, hs->logs[i], rec, least_ns))
                return true;
        }
    }
    return false;
}

/* What may have ended a term; false: nothing. A lease is renewed every third of its ttl. Seats
 * are as old when a heartbeat counts them, and the next answer has a sixth left to come. */
static bool has_reason(const history *hs, const deed *dd)
{
    int64_t ttl = ttl_ns(hs), told_ns = dd->rec->told_ns;

    switch (dd->rec->status) {
    case DIBS_LOST_RESIGNED:
        return was_given_up(hs, dd) || is_full(hs, dd);
    case DIBS_LOST_FEW:
        return was_any_struck(hs, told_ns - 3 * ttl, told_ns) ||
               was_slow(hs, ttl / 6, told_ns - 2 * ttl, told_ns);
    default:
        return was_struck(hs, dd->worker, told_ns - ttl, told_ns) ||
               was_slow(hs, ttl / 3, told_ns - 2 * ttl, told_ns);
    }
}

void check_reason(history *hs, const deed *dd)
{
    static const char *const whys[] = {"no", "EXPIRED", "TAKEN", "FEW",
                                       "RESIGNED"};
    int64_t ended_ns = atomic_load(&hs->run->ended_ns);
    const record *rec = dd->rec;
    unsigned why = (unsigned)rec->status < 5 ? (unsigned)rec->status : 0;
    char at[MOMENT_ROOM];

    if (rec->told_ns == 0 || (ended_ns && rec->told_ns > ended_ns) ||
        has_reason(hs, dd))
        return;
    hs->late += why != DIBS_LOST_RESIGNED;
    if (breach(hs, ALIVE))
        fprintf(hs->out,
                "election: worker %u.%u lost term %" PRIu64
                " at %s (%s), and nothing had happened\n",
                dd->worker, dd->life, rec->fence, moment(hs, rec->told_ns, at),
                whys[why]);
}
