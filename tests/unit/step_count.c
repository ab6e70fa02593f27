/* step_count.c - see step_count.h. */
/* SPDX-License-Identifier: MIT */
#include "step_count.h"

#include "store/fault.h"
#include <stdatomic.h>

static atomic_uint steps[DIBS__STEP_COUNT];

static dibs__fault count_step(dibs__step step, uint64_t count, void *arg)
{
    (void)count;
    (void)arg;
    atomic_fetch_add(&steps[step], 1);
    return (dibs__fault){.kind = DIBS__FAULT_NONE};
}

void step_count_begin(void)
{
    for (size_t i = 0; i < DIBS__STEP_COUNT; i++)
        atomic_store(&steps[i], 0);
    dibs__fault_set(count_step, NULL);
}

step_counts step_count_end(void)
{
    step_counts counts = {.lists = atomic_load(&steps[DIBS__STEP_LIST]),
                          .firsts = atomic_load(&steps[DIBS__STEP_FIRST]),
                          .get_manys =
                              atomic_load(&steps[DIBS__STEP_GET_MANY])};

    dibs__fault_set(NULL, NULL);
    for (size_t i = 0; i < DIBS__STEP_COUNT; i++)
        counts.all += atomic_load(&steps[i]);
    return counts;
}
