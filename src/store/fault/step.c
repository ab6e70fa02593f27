/* step.c - which fault a step has: chosen by a test, or by the URL. All handles share the
 * faults that a test has set. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/fault/step.h"
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static struct {
    pthread_rwlock_t lock;
    dibs__fault_fn *fn;
    void *arg;
    _Atomic uint64_t counts[DIBS__STEP_COUNT];
} by_tests = {.lock = PTHREAD_RWLOCK_INITIALIZER};

void dibs__fault_set(dibs__fault_fn *fn, void *arg)
{
    pthread_rwlock_wrlock(&by_tests.lock);
    by_tests.fn = fn;
    by_tests.arg = arg;
    for (size_t i = 0; i < DIBS__STEP_COUNT; i++)
        atomic_store(&by_tests.counts[i], 0);
    pthread_rwlock_unlock(&by_tests.lock);
}

static dibs__fault choose_by_test(dibs__step step)
{
    dibs__fault fault = {0};

    pthread_rwlock_rdlock(&by_tests.lock);
    if (by_tests.fn)
        fault =
            by_tests.fn(step, atomic_fetch_add(&by_tests.counts[step], 1) + 1,
                        by_tests.arg);
    pthread_rwlock_unlock(&by_tests.lock);
    return fault;
}

static dibs__fault choose_by_rule(dibs__fault_store *fs, dibs__step step)
{
    const dibs__fault_rule *rule = &fs->rule;
    bool every_step = rule->step == DIBS__STEP_COUNT &&
                      step != DIBS__STEP_OPEN && step != DIBS__STEP_LISTEN &&
                      step != DIBS__STEP_BELL;
    bool faulty;

    if (step != rule->step && !every_step)
        return (dibs__fault){0};
    pthread_mutex_lock(&fs->mutex);
    faulty = rule->by_chance ? dibsx_prng_below(&fs->prng, rule->every) == 0
                             : ++fs->count % rule->every == 0;
    pthread_mutex_unlock(&fs->mutex);
    return faulty ? rule->fault : (dibs__fault){0};
}

static void sleep_until(dibsx_nsec until)
{
    struct timespec at = {.tv_sec = (time_t)(until / DIBSX_SEC),
                          .tv_nsec = (long)(until % DIBSX_SEC)};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* True when the deadline came first. */
static bool delay_step(int64_t delay_ms, dibsx_nsec deadline)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), delay_ms);

    sleep_until(until < deadline ? until : deadline);
    return until >= deadline;
}

dibs_status dibs__fault_lose_answer(dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNKNOWN, "FAULT", "the answer was lost");
}

dibs_status dibs__fault_begin(dibs__fault_store *fs, dibs__step step,
                              dibsx_nsec deadline, bool *after, dibs_error *err)
{
    dibs__fault fault = choose_by_test(step);

    *after = false;
    if (fault.kind == DIBS__FAULT_NONE && fault.delay_ms == 0)
        fault = choose_by_rule(fs, step);
    if (fault.delay_ms > 0 && delay_step(fault.delay_ms, deadline))
        return dibs__fault_lose_answer(err);
    switch (fault.kind) {
    case DIBS__FAULT_FAIL:
        return dibsx_fail_at(err, DIBS_UNAVAIL, "FAULT",
                             "the store fails, as the test or the URL asks");
    case DIBS__FAULT_DROP_BEFORE:
        return dibs__fault_lose_answer(err);
    case DIBS__FAULT_DROP_AFTER:
        *after = true;
        return DIBS_OK;
    case DIBS__FAULT_NONE:
        break;
    }
    return DIBS_OK;
}

dibs_status dibs__fault_begin_read(dibs__fault_store *fs, dibs__step step,
                                   dibsx_nsec deadline, dibs_error *err)
{
    bool after;
    dibs_status rc = dibs__fault_begin(fs, step, deadline, &after, err);

    return rc == DIBS_OK && after ? dibs__fault_lose_answer(err) : rc;
}
