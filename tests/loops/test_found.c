/* test_found.c - what the loops have found, each as a test of its own.
 *
 *     test_found URL */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "faults.h"

#include <dibs/dibs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* No use below makes more calls of a kind, but for those of SQLite's memory. */
enum { CALLS_MAX = 400, STEPS = 5, RELEASE = 2 };
#define TTL_MS pace_ms(200)

static const char *url;

/* The answers to one use: open, acquire, release, put, and put again. */
typedef struct answers {
    dibs_status rc[STEPS];
    dibs_error err[STEPS];
    bool late; /* on a busy machine: the lease had run out before the release */
} answers;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static dibs_status put(dibs_client *cl, dibs_error *err)
{
    return dibs_state_set(cl, "found", "x", 1, 0, NULL, err);
}

static void use(answers *as)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;

    *as = (answers){.rc = {DIBS_OK}};
    as->rc[0] = dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = pace_ms(2000)),
                          &cl, &as->err[0]);
    if (as->rc[0] == DIBS_OK)
        as->rc[1] =
            dibs_lock_new(cl, "found",
                          DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = 5000),
                          &lock, &as->err[1]);
    if (lock) {
        int64_t from_ms = now_ms();

        as->rc[1] = dibs_lock_acquire(lock, &as->err[1]);
        if (as->rc[1] == DIBS_OK)
            as->rc[RELEASE] = dibs_lock_release(lock, &as->err[RELEASE]);
        as->late = now_ms() - from_ms >= TTL_MS;
    }
    if (as->rc[0] == DIBS_OK) {
        as->rc[3] = put(cl, &as->err[3]);
        as->rc[4] = put(cl, &as->err[4]);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The n-th call fails, once; false when there are not so many. */
static bool use_with(fault_kind kind, unsigned long n, int sort, answers *as)
{
    faults_arm(kind, n, 1, sort);
    faults_take_part(true);
    use(as);
    faults_take_part(false);
    faults_disarm();
    return faults_count(kind) >= n;
}

/* Of one failure one step knows, and it says what is true. */
static void expect_told(const answers *as, fault_kind kind, unsigned long n)
{
    int failed = 0;

    for (int i = 0; i < STEPS; i++) {
        dibs_status rc = as->rc[i];

        if (i == RELEASE && rc == DIBS_LOST && as->late)
            continue;
        failed += rc != DIBS_OK;
        if (rc != DIBS_OK && rc != DIBS_UNAVAIL && rc != DIBS_UNKNOWN &&
            rc != DIBS_NOMEM)
            FAIL_OF(rc, "%s %lu, step %d: %s", fault_name(kind), n, i,
                    as->err[i].message);
    }
    if (failed > 1)
        fail_msg("%s %lu: %d steps failed; the last said %s", fault_name(kind),
                 n, failed, as->err[STEPS - 1].message);
}

/* SQLite opens for reading what it cannot open for writing, and a connection once
 * stayed so: every change was denied from then on. */
static void a_lack_of_descriptors_passes(void **state)
{
    answers as;
    unsigned long n = 1;

    (void)state;
    while (n < CALLS_MAX && use_with(FAULT_OPEN, n, 0, &as))
        expect_told(&as, FAULT_OPEN, n++);
    assert_in_range(n, 2, CALLS_MAX - 1);
}

/* The reader of replies once took a lack of memory for a broken answer. */
static void a_lack_of_memory_passes(void **state)
{
    answers as;
    unsigned long n = 1;

    (void)state;
    while (n < CALLS_MAX && use_with(FAULT_ALLOC, n, 0, &as))
        expect_told(&as, FAULT_ALLOC, n++);
    assert_true(n > 2);
}

/* The boot id was once not read again after a signal. */
static void a_signal_is_not_noticed(void **state)
{
    static const struct {
        fault_kind kind;
        int sort; /* EINTR */
    } calls[] = {{FAULT_READ, 1}, {FAULT_WRITE, 1}, {FAULT_POLL, 0}};
    answers as;

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        for (unsigned long n = 1;
             n < CALLS_MAX && use_with(calls[i].kind, n, calls[i].sort, &as);
             n++)
            for (int step = 0; step < STEPS; step++)
                if (as.rc[step] != DIBS_OK)
                    FAIL_OF(as.rc[step], "%s %lu, step %d: %s",
                            fault_name(calls[i].kind), n, step,
                            as.err[step].message);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lack_of_descriptors_passes),
        cmocka_unit_test(a_lack_of_memory_passes),
        cmocka_unit_test(a_signal_is_not_noticed),
    };

    if (argc != 2)
        return 2;
    url = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
