/* test_redis_backoff.c - attempts to connect are spread, further and further. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/backoff.h"
#include "unit.h"

enum { CLIENTS = 1000 };

/* The bound in milliseconds after so many failures. */
static dibsx_nsec bound(int failures)
{
    dibsx_nsec ms = 25;

    for (int i = 1; i < failures && ms < 2000; i++)
        ms *= 2;
    return (ms < 2000 ? ms : 2000) * DIBSX_MS;
}

/* Clients that failed together: none after the bound, and over all of it. */
static void attempts_are_spread_evenly(void **state)
{
    (void)state;
    for (int failures = 1; failures < 12; failures++) {
        int quarters[4] = {0};

        for (uint64_t seed = 0; seed < CLIENTS; seed++) {
            dibs__backoff bo;
            dibsx_nsec delay;

            dibs__backoff_init(&bo, seed * 0x9E3779B97F4A7C15u);
            for (int i = 0; i < failures; i++)
                dibs__backoff_failed(&bo, 1000);
            delay = bo.due_at - 1000;
            assert_true(delay >= 0 && delay <= bound(failures));
            if (delay < bound(failures))
                quarters[delay * 4 / bound(failures)]++;
        }
        for (int i = 0; i < 4; i++)
            assert_in_range(quarters[i], CLIENTS / 8, CLIENTS / 2);
    }
}

static void success_begins_anew(void **state)
{
    dibs__backoff bo;

    (void)state;
    dibs__backoff_init(&bo, 1);
    assert_int_equal(bo.due_at, 0);
    for (int i = 0; i < 100; i++)
        dibs__backoff_failed(&bo, 0);
    dibs__backoff_worked(&bo);
    assert_int_equal(bo.due_at, 0);
    dibs__backoff_failed(&bo, 0);
    assert_true(bo.due_at <= bound(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attempts_are_spread_evenly),
        cmocka_unit_test(success_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
