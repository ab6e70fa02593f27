/* check_main.c - looks at what a run wrote down.
 *
 *     check FOLDER       tells what was found; 1 when a promise was broken, PACE_MISSED
 *                        when all that is wrong is that it took too long
 *     check --promises   prints what is promised where
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "pace.h"

#include <string.h>

static size_t holds_of(const history *hs)
{
    size_t sum = 0;

    for (size_t i = 0; i < KEYS; i++)
        sum += hs->hold_counts[i];
    return sum;
}

static void tell_faults(const history *hs)
{
    char names[64][FAULT_NAME];
    unsigned counts[64], kinds = 0;

    for (unsigned i = 0; i < atomic_load(&hs->faults->count); i++) {
        const fault_entry *fe = &hs->faults->entries[i];
        unsigned k = 0;

        while (k < kinds && strcmp(names[k], fe->name) != 0)
            k++;
        if (k == kinds && kinds < 64) {
            memcpy(names[kinds], fe->name, FAULT_NAME);
            counts[kinds++] = 0;
        }
        if (k < 64)
            counts[k]++;
    }
    printf("faults:");
    for (unsigned k = 0; k < kinds; k++)
        printf(" %s %u", names[k], counts[k]);
    printf("\n");
}

static void tell_bank(const history *hs)
{
    unsigned count = atomic_load(&hs->bank->count), accepted = 0;

    for (unsigned i = 0; i < count; i++)
        accepted += hs->bank->entries[i].accepted;
    printf("bank: %u accepted, %u refused\n", accepted, count - accepted);
}

static size_t count_passed(const deed_list *dl)
{
    size_t count = 0;

    for (size_t i = 0; i < dl->count; i++)
        count += dl->list[i].rec->returned_ns && dl->list[i].rec->status == 0;
    return count;
}

/* The rounds that are over, and the tokens that were had. */
static void tell_coordination(const history *hs)
{
    unsigned long long tokens = 0;
    size_t majority = 0;

    for (size_t i = 0; i < hs->terms.count; i++)
        majority += hs->terms.list[i].rec->key;

    for (size_t i = 0; i < hs->takes.count; i++)
        if (hs->takes.list[i].rec->returned_ns &&
            hs->takes.list[i].rec->status == 0)
            tokens += hs->takes.list[i].rec->value;
    printf("election: %zu terms, %zu with a majority; latches: %u opened; "
           "limit: %llu tokens; "
           "barrier: %zu of %zu passed; breaker: %zu of %zu\n",
           hs->terms.count - majority, majority, atomic_load(&hs->run->latch),
           tokens, count_passed(&hs->meets), hs->meets.count,
           count_passed(&hs->calls), hs->calls.count);
}

static int check(const char *folder)
{
    history hs = {0};
    size_t bad, late;

    if (!history_open(&hs, folder)) {
        fprintf(stderr, "check: %s has no run in it\n", folder);
        return 2;
    }
    history_check(&hs);
    tell_faults(&hs);
    tell_bank(&hs);
    tell_coordination(&hs);
    for (int i = 0; i < INVARIANTS; i++)
        if (hs.breaches[i] > 0)
            printf("%s: %zu breaches\n", invariant_name((invariant)i),
                   hs.breaches[i]);
    bad = history_violations(&hs);
    printf("%s: operations %zu, holds %zu, errors %zu, faults %u, violations "
           "%zu, not promised %zu\n",
           hs.run->topology, hs.operations, holds_of(&hs), hs.errors,
           atomic_load(&hs.faults->count), bad, history_counted(&hs));
    late = hs.late;
    history_fini(&hs);
    return bad == 0 ? 0 : bad == late ? PACE_MISSED : 1;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--promises") == 0) {
        promise_print();
        return 0;
    }
    if (argc != 2) {
        fprintf(stderr, "usage: check FOLDER | --promises\n");
        return 2;
    }
    return check(argv[1]);
}
