/* test_check.c - the checker finds what it is there to find, and nothing else. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>
#include <stdlib.h>

enum { MUTEX = 0, READ_WRITE = 4, SEMAPHORE = 6 };

static record held(uint32_t key, uint64_t fence, int64_t from, int64_t to)
{
    return (record){.invoked_ns = from - 5,
                    .granted_ns = from,
                    .believed_ns = to,
                    .fence = fence,
                    .key = key,
                    .exclusive = key != SEMAPHORE};
}

static record reader(uint64_t fence, int64_t from, int64_t to)
{
    record rec = held(READ_WRITE, fence, from, to);

    rec.exclusive = false;
    return rec;
}

static record permits(uint32_t count, uint64_t fence, int64_t from, int64_t to)
{
    record rec = held(SEMAPHORE, fence, from, to);

    rec.permits = count;
    return rec;
}

static size_t violations(const record *records, size_t count, const stop *stops)
{
    record_log *log = calloc(1, sizeof(*log));
    history hs = {.stops = stops, .stop_count = stops ? 1 : 0};
    size_t bad;

    assert_non_null(log);
    log->worker = 3;
    for (size_t i = 0; i < count; i++)
        log->records[i] = records[i];
    atomic_store(&log->count, (unsigned)count);
    assert_true(history_add(&hs, log));
    bad = history_check(&hs);
    history_fini(&hs);
    free(log);
    return bad;
}

#define VIOLATIONS(...)                                                        \
    violations((const record[]){__VA_ARGS__},                                  \
               sizeof((const record[]){__VA_ARGS__}) / sizeof(record), NULL)

static void one_after_the_other_is_right(void **state)
{
    (void)state;
    assert_int_equal(VIOLATIONS(held(MUTEX, 1, 100, 200),
                                held(MUTEX, 2, 200, 300),
                                held(MUTEX, 3, 310, 320)),
                     0);
    assert_int_equal(VIOLATIONS(reader(1, 100, 200), reader(2, 150, 250),
                                held(READ_WRITE, 3, 250, 260)),
                     0);
    assert_int_equal(VIOLATIONS(permits(1, 1, 100, 200),
                                permits(2, 2, 110, 210),
                                permits(1, 3, 205, 300)),
                     0);
}

static void two_at_once_are_found(void **state)
{
    (void)state;
    assert_int_equal(VIOLATIONS(held(MUTEX, 1, 100, 200),
                                held(MUTEX, 2, 199, 300)),
                     1);
    assert_int_equal(VIOLATIONS(reader(1, 100, 200),
                                held(READ_WRITE, 2, 150, 250)),
                     1);
    assert_int_equal(VIOLATIONS(permits(2, 1, 100, 200),
                                permits(2, 2, 150, 210)),
                     1);
}

static void fences_that_repeat_or_fall_are_found(void **state)
{
    (void)state;
    assert_true(VIOLATIONS(held(MUTEX, 7, 100, 200), held(MUTEX, 7, 300, 400)) >
                0);
    assert_int_equal(VIOLATIONS(held(MUTEX, 8, 100, 200),
                                held(MUTEX, 7, 300, 400)),
                     1);
}

static void who_overtakes_is_found(void **state)
{
    const stop stopped = {.worker = 3, .from_ns = 50, .to_ns = 60};
    record waited = held(MUTEX, 2, 300, 400);
    record late = held(MUTEX, 1, 100, 200);
    record both[2];

    (void)state;
    waited.invoked_ns = 10;
    waited.queued_ns = 20;
    late.invoked_ns = 30;
    both[0] = waited;
    both[1] = late;
    assert_int_equal(violations(both, 2, NULL), 1);
    assert_int_equal(violations(both, 2, &stopped), 0);
    both[1].invoked_ns = 15;
    assert_int_equal(violations(both, 2, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other_is_right),
        cmocka_unit_test(two_at_once_are_found),
        cmocka_unit_test(fences_that_repeat_or_fall_are_found),
        cmocka_unit_test(who_overtakes_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
