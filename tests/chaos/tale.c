/* tale.c - see tale.h. */
/* SPDX-License-Identifier: MIT */
#include "tale.h"

#include <stdlib.h>
#include <string.h>

int begin(void **state)
{
    tale *tl = calloc(1, sizeof(*tl));

    assert_non_null(tl);
    for (uint32_t i = 0; i < 2; i++) {
        tl->logs[i] = calloc(1, sizeof(*tl->logs[i]));
        assert_non_null(tl->logs[i]);
        tl->logs[i]->worker = i;
        tl->logs[i]->life = 1;
    }
    tl->faults = calloc(1, sizeof(*tl->faults));
    tl->bank = calloc(1, sizeof(*tl->bank));
    assert_true(tl->faults && tl->bank);
    snprintf(tl->run.topology, sizeof(tl->run.topology), "sqlite");
    tl->run.wait_ms = 1000;
    tl->run.timeout_ms = 1000;
    *state = tl;
    return 0;
}

int end(void **state)
{
    tale *tl = *state;

    history_fini(&tl->hs);
    free(tl->text);
    free(tl->logs[0]);
    free(tl->logs[1]);
    free(tl->faults);
    free(tl->bank);
    free(tl);
    return 0;
}

record *add(tale *tl, uint32_t worker, record rec)
{
    record_log *log = tl->logs[worker];
    unsigned at = atomic_load(&log->count);

    log->records[at] = rec;
    atomic_store(&log->count, at + 1);
    return &log->records[at];
}

void fault(tale *tl, const char *name, uint32_t worker, int64_t from,
           int64_t to, loss lost)
{
    unsigned at = atomic_load(&tl->faults->count);
    fault_entry *fe = &tl->faults->entries[at];

    *fe = (fault_entry){.from_ns = from * MS,
                        .to_ns = to * MS,
                        .worker = worker,
                        .loss = (uint8_t)lost};
    snprintf(fe->name, sizeof(fe->name), "%s", name);
    atomic_store(&tl->faults->count, at + 1);
}

void judge(tale *tl)
{
    tl->hs = (history){.run = &tl->run,
                       .faults = tl->faults,
                       .bank = tl->bank,
                       .out = open_memstream(&tl->text, &tl->text_len)};
    assert_non_null(tl->hs.out);
    history_add(&tl->hs, tl->logs[0]);
    history_add(&tl->hs, tl->logs[1]);
    history_check(&tl->hs);
    fclose(tl->hs.out);
}

void assert_good(tale *tl)
{
    judge(tl);
    if (tl->text_len > 0)
        fail_msg("said: %s", tl->text);
    assert_int_equal(history_violations(&tl->hs), 0);
}

void assert_found(tale *tl, invariant what, const char *words)
{
    judge(tl);
    assert_int_equal(tl->hs.breaches[what], 1);
    if (!strstr(tl->text, words))
        fail_msg("\"%s\" is not in: %s", words, tl->text);
    assert_int_equal(history_violations(&tl->hs), 1);
}
