/* fork.c - the page that the kernel clears on fork. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/fork.h"
#include "base/fork_page.h"
#include <pthread.h>
#include <stdatomic.h>

/* The page, and the last number that was given out. The number survives a fork
 * and the page does not: that difference is the whole trick. */
static _Atomic(uint64_t) *page;
static atomic_uint_fast64_t last_number;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void map_page(void)
{
    page = dibsx_fork_page_map(sizeof(*page));
}

uint64_t dibs__fork_number(void)
{
    uint64_t fresh;
    uint64_t seen = 0;

    if (pthread_once(&once, map_page) != 0 || !page)
        return 0;
    if (atomic_load(page) == 0) {
        fresh = atomic_fetch_add(&last_number, 1) + 1;
        if (!atomic_compare_exchange_strong(page, &seen, fresh))
            return seen;
    }
    return atomic_load(page);
}

bool dibs__forked(uint64_t number)
{
    return atomic_load_explicit(page, memory_order_relaxed) != number;
}
