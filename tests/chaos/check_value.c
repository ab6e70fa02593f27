/* check_value.c - whether the operations on a value have an order.
 *
 * Versions give the order of the writes, so nothing has to be searched: with them
 * known, the operations are linearizable when
 *   1. no two writes have one version;
 *   2. a read, and a compare-and-set that found another version, saw what was
 *      written with that version, not before that was begun;
 *   3. what was done before another operation began does not come after it;
 *   4. between a compare-and-set and the version that it expected is no other.
 * A write that was not answered counts from the moment a read saw it, and may have
 * been made at any time since it was begun; one that was refused is never seen.
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <dibs/types.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An operation with its place in the order. */
typedef struct step {
    const deed *dd;
    uint64_t version;
    int64_t to_ns; /* INT64_MAX: not known to have ended */
    bool write;
} step;

static void tell_step(const history *hs, const step *sp)
{
    static const char *const names[] = {"", "read", "set", "compared and set"};
    const record *rec = sp->dd->rec;
    char from[MOMENT_ROOM], to[MOMENT_ROOM];

    fprintf(hs->out, "worker %u.%u %s version %" PRIu64 " between %s and %s",
            sp->dd->worker, sp->dd->life,
            rec->op == OP_CAS && !sp->write ? "found" : names[rec->op],
            sp->version, moment(hs, rec->invoked_ns, from),
            sp->to_ns == INT64_MAX ? "some time" : moment(hs, sp->to_ns, to));
}

static void tell_two(const history *hs, uint32_t value, const char *what,
                     const step *a, const step *b)
{
    fprintf(hs->out, "value %u: %s: ", value, what);
    tell_step(hs, a);
    fprintf(hs->out, "; ");
    tell_step(hs, b);
    fprintf(hs->out, "\n");
}

/* The write of a value, which says who wrote it and where that is logged. */
static const record *find_write(const history *hs, uint64_t value, deed *whose)
{
    uint32_t worker = (uint32_t)(value >> 48) - 1;
    uint32_t life = (uint32_t)(value >> 28 & 0xfffff);
    uint64_t index = value & 0xfffffff;

    for (size_t i = 0; i < hs->log_count; i++) {
        const record_log *log = hs->logs[i];

        if (log->worker == worker && log->life == life &&
            index < atomic_load(&log->count) &&
            log->records[index].value == value) {
            *whose = (deed){&log->records[index], worker, life};
            return whose->rec;
        }
    }
    return NULL;
}

static bool is_ambiguous(const record *rec)
{
    return rec->returned_ns == 0 || rec->status == DIBS_UNKNOWN;
}

/* What a read says of the write that it saw. */
static void check_seen(history *hs, uint32_t value, const step *sp)
{
    const record *rec = sp->dd->rec;
    deed whose = {0};
    const record *write = find_write(hs, rec->value, &whose);
    step of = {&whose, 0, INT64_MAX, true};

    if (!write) {
        if (breach(hs, VALUES_KEPT)) {
            fprintf(hs->out, "value %u: what nobody wrote: ", value);
            tell_step(hs, sp);
            fprintf(hs->out, "\n");
        }
        return;
    }
    of.version = write->fence;
    if (!is_ambiguous(write))
        of.to_ns = write->returned_ns;
    if (write->returned_ns && write->status != DIBS_OK &&
        !is_ambiguous(write)) {
        if (breach(hs, VALUES_KEPT))
            tell_two(hs, value, "a write that was refused was seen", &of, sp);
    } else if (!is_ambiguous(write) && write->fence != rec->fence) {
        if (breach(hs, VALUES_KEPT))
            tell_two(hs, value, "one write was seen at another version", &of,
                     sp);
    } else if (rec->returned_ns < write->invoked_ns &&
               breach(hs, VALUES_KEPT)) {
        tell_two(hs, value, "seen before it was written", &of, sp);
    }
}

/* Those that have a place in the order. Deeds of unanswered writes that were seen
 * go to `seen`, which has room for one per operation. */
static size_t collect(history *hs, uint32_t value, step *steps, deed *seen)
{
    size_t count = 0, seen_count = 0;

    for (size_t i = 0; i < hs->value_counts[value]; i++) {
        const deed *dd = &hs->values[value][i];
        const record *rec = dd->rec;
        bool ok = rec->status == DIBS_OK;
        deed whose;

        if (is_ambiguous(rec))
            continue;
        if (ok || (rec->op == OP_CAS && rec->status == DIBS_STALE) ||
            (rec->op == OP_GET && rec->status == DIBS_NOTFOUND))
            steps[count++] = (step){dd, rec->fence, rec->returned_ns,
                                    ok && rec->op != OP_GET};
        if (!ok || rec->op != OP_GET)
            continue;
        check_seen(hs, value, &steps[count - 1]);
        if (find_write(hs, rec->value, &whose) && is_ambiguous(whose.rec)) {
            seen[seen_count] = whose;
            steps[count++] =
                (step){&seen[seen_count++], rec->fence, INT64_MAX, true};
        }
    }
    return count;
}

static int by_version(const void *a, const void *b)
{
    const step *x = a, *y = b;

    if (x->version != y->version)
        return x->version < y->version ? -1 : 1;
    if (x->write != y->write)
        return x->write ? -1 : 1;
    return x->dd->rec < y->dd->rec ? -1 : x->dd->rec > y->dd->rec;
}

static int by_invoked(const void *a, const void *b)
{
    const step *x = a, *y = b;
    int64_t p = x->dd->rec->invoked_ns, q = y->dd->rec->invoked_ns;

    return p < q ? -1 : p > q;
}

static int by_end(const void *a, const void *b)
{
    const step *x = a, *y = b;

    return x->to_ns < y->to_ns ? -1 : x->to_ns > y->to_ns;
}

static void
check_versions(history *hs, uint32_t value, step *steps, size_t count)
{
    const step *last = NULL; /* the write before */

    qsort(steps, count, sizeof(*steps), by_version);
    for (size_t i = 0; i < count; i++) {
        const record *rec = steps[i].dd->rec;

        if (!steps[i].write || (last && last->dd->rec == rec))
            continue;
        if (last && last->version == steps[i].version &&
            breach(hs, VALUES_KEPT))
            tell_two(hs, value, "two writes at one version", last, &steps[i]);
        if (rec->op == OP_CAS && !is_ambiguous(rec) && last &&
            last->version > rec->expected && breach(hs, VALUES_KEPT)) {
            fprintf(hs->out, "expected version %" PRIu64 ", ", rec->expected);
            tell_two(hs, value, "another write came between", last, &steps[i]);
        }
        last = &steps[i];
    }
}

static void
check_real_time(history *hs, uint32_t value, step *steps, size_t count)
{
    step *ended = must_have(count, sizeof(*ended));
    const step *highest = NULL;
    size_t at = 0;

    memcpy(ended, steps, count * sizeof(*ended));
    qsort(ended, count, sizeof(*ended), by_end);
    qsort(steps, count, sizeof(*steps), by_invoked);
    for (size_t i = 0; i < count; i++) {
        const step *sp = &steps[i];

        for (; at < count && ended[at].to_ns < sp->dd->rec->invoked_ns; at++)
            if (!highest || ended[at].version > highest->version)
                highest = &ended[at];
        if (highest && highest->version + (sp->write ? 1 : 0) > sp->version &&
            breach(hs, VALUES_KEPT))
            tell_two(hs, value, "went back", highest, sp);
    }
    free(ended);
}

void check_value(history *hs, uint32_t value)
{
    size_t room = hs->value_counts[value];
    step *steps = must_have(2 * room, sizeof(*steps));
    deed *seen = must_have(room, sizeof(*seen));
    size_t count = collect(hs, value, steps, seen);

    check_versions(hs, value, steps, count);
    check_real_time(hs, value, steps, count);
    free(steps);
    free(seen);
}
