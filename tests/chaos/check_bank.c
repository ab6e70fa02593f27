/* check_bank.c - what was guarded by fences.
 *
 *   bank   after a fence no older one is accepted, and each write that was is one
 *          more than the one before it: no step is lost
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <inttypes.h>

typedef struct account {
    const bank_entry *highest;
    const bank_entry *written;
} account;

static void tell_entry(history *hs, const bank_entry *en)
{
    char at[MOMENT_ROOM];

    fprintf(hs->out, "worker %u %s at %s under fence %" PRIu64, en->worker,
            en->write ? "wrote" : "read", moment(hs, en->at_ns, at), en->fence);
}

static void tell_two(history *hs, const char *what, const bank_entry *a,
                     const bank_entry *b)
{
    fprintf(hs->out, "key %u: %s: ", b->key, what);
    if (a) {
        tell_entry(hs, a);
        fprintf(hs->out, " (%" PRIu64 "); ", a->value);
    }
    tell_entry(hs, b);
    if (b->write)
        fprintf(hs->out, " (%" PRIu64 " after %" PRIu64 ")", b->value,
                b->based_on);
    fprintf(hs->out, "\n");
}

void check_bank(history *hs)
{
    account accounts[KEYS] = {{NULL, NULL}};
    unsigned count = atomic_load(&hs->bank->count);

    if (count == BANK_ROOM && breach(hs, BANK))
        fprintf(hs->out, "the log is full: the run was too long for it\n");
    for (unsigned i = 0; i < count; i++) {
        const bank_entry *en = &hs->bank->entries[i];
        account *ac = &accounts[en->key % KEYS];

        if (!en->accepted)
            continue;
        if (ac->highest && en->fence < ac->highest->fence && breach(hs, BANK))
            tell_two(hs, "an older fence was accepted", ac->highest, en);
        if (!ac->highest || en->fence > ac->highest->fence)
            ac->highest = en;
        if (!en->write)
            continue;
        if (en->based_on != (ac->written ? ac->written->value : 0) &&
            breach(hs, BANK))
            tell_two(hs, "a write was lost", ac->written, en);
        ac->written = en;
    }
}
