/* test_counters.c - a snapshot of the counters of a client while others count. */
/* SPDX-License-Identifier: MIT */
#include "core/client.h"
#include "core/stats/counters.h"
#include "unit.h"

#include <pthread.h>

static dibs_stats snapshot(const dibs_client *cl)
{
    dibs_stats stats = {.size = sizeof(stats)};

    dibs_stats_get(cl, &stats);
    return stats;
}

static void an_outcome_is_counted_once(void **state)
{
    static dibs_client cl;
    dibs_stats stats;

    (void)state;
    dibs__count_outcome(&cl.stats, DIBS_OK);
    dibs__count_outcome(&cl.stats, DIBS_BUSY);
    dibs__count_outcome(&cl.stats, DIBS_TIMEOUT);
    dibs__count_outcome(&cl.stats, DIBS_CANCELLED);
    dibs__count_outcome(&cl.stats, DIBS_UNAVAIL);
    stats = snapshot(&cl);
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.busy, 3);
    assert_int_equal(stats.timed_out, 1);
    assert_int_equal(stats.cancelled, 1);
    assert_int_equal(stats.failed, 1);
}

typedef struct counting {
    dibs_client cl;
    atomic_bool over;
} counting;

static void *time_out(void *arg)
{
    counting *c = arg;

    while (!atomic_load(&c->over)) {
        dibs__count_outcome(&c->cl.stats, DIBS_TIMEOUT);
        dibs__count_outcome(&c->cl.stats, DIBS_CANCELLED);
    }
    return NULL;
}

/* Nothing was refused, whenever one looks. */
static void busy_is_the_sum_of_its_parts(void **state)
{
    static counting c;
    uint64_t wrong = 0;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, time_out, &c), 0);
    while (snapshot(&c.cl).cancelled == 0)
        ;
    for (int i = 0; i < 200000; i++) {
        const dibs_stats stats = snapshot(&c.cl);

        wrong += stats.busy != stats.timed_out + stats.cancelled;
    }
    atomic_store(&c.over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outcome_is_counted_once),
        cmocka_unit_test(busy_is_the_sum_of_its_parts),
    };

    return cmocka_run_group_tests_name("counters", tests, NULL, NULL);
}
