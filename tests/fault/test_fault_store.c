/* test_fault_store.c - the fault store itself: it does what it was told, by
 * function and by URL, and nothing else. */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "base/clock.h"
#include "store/fault.h"
#include <dibs/state.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(5000));
}

static dibs__store *open_url(const char *url)
{
    dibs__store *st = NULL;

    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    return st;
}

static dibs_status add(dibs__store *st, int64_t *sum)
{
    dibs_error err = {0};

    return st->ops->value->add(st, "n", 1, soon(), sum, &err);
}

static dibs_status now(dibs__store *st)
{
    dibs_error err = {0};
    int64_t store_wall_us;

    return st->ops->now(st, soon(), &store_wall_us, &err);
}

/* Adds three times under the URL's faults and returns what the sum is then. */
static int64_t sum_after(const char *params, dibs_status wanted)
{
    dibs__store *plain = open_url("memory:sum");
    dibs__store *faulty;
    char url[128];
    int64_t sum = 0;

    snprintf(url, sizeof(url), "fault+memory:sum?%s", params);
    faulty = open_url(url);
    for (int i = 0; i < 3; i++)
        assert_status(add(faulty, &sum), wanted);
    assert_status(add(plain, &sum), DIBS_OK);
    dibs__store_close(faulty);
    dibs__store_close(plain);
    return sum - 1;
}

static void each_fault_does_or_does_not_do_the_step(void **state)
{
    (void)state;
    assert_int_equal(sum_after("", DIBS_OK), 3);
    assert_int_equal(sum_after("fault=none", DIBS_OK), 3);
    assert_int_equal(sum_after("fault=fail", DIBS_UNAVAIL), 0);
    assert_int_equal(sum_after("fault=drop_before", DIBS_UNKNOWN), 0);
    assert_int_equal(sum_after("fault=drop_after", DIBS_UNKNOWN), 3);
    assert_int_equal(sum_after("fault=fail&step=get", DIBS_OK), 3);
}

static void every_nth_step_of_the_kind_is_faulty(void **state)
{
    dibs__store *st = open_url("fault+memory:nth?fault=fail&step=add&every=3");
    int64_t sum;

    (void)state;
    for (int i = 1; i <= 9; i++) {
        assert_status(now(st), DIBS_OK);
        assert_status(add(st, &sum), i % 3 == 0 ? DIBS_UNAVAIL : DIBS_OK);
    }
    dibs__store_close(st);
}

static uint64_t pattern_of(const char *url)
{
    dibs__store *st = open_url(url);
    uint64_t pattern = 0;

    for (int i = 0; i < 64; i++)
        pattern = pattern << 1 | (now(st) != DIBS_OK);
    dibs__store_close(st);
    return pattern;
}

static void a_seed_repeats_its_faults(void **state)
{
    uint64_t one = pattern_of("fault+memory:?fault=fail&every=4&seed=1");
    uint64_t two = pattern_of("fault+memory:?fault=fail&every=4&seed=2");

    (void)state;
    assert_true(one == pattern_of("fault+memory:?fault=fail&every=4&seed=1"));
    assert_true(one != two);
    assert_true(one != 0 && ~one != 0);
}

static void what_is_not_understood_is_refused(void **state)
{
    const char *bad[] = {"fault+memory:?fault=often",
                         "fault+memory:?every=0",
                         "fault+memory:?every=-1",
                         "fault+memory:?step=dance",
                         "fault+memory:?seed=x",
                         "fault+nowhere:",
                         "fault+:"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dibs__store *st = NULL;
        dibs_error err = {0};

        assert_status(dibs__store_open(bad[i], soon(), &st, &err),
                      DIBS_INVALID);
        assert_null(st);
        assert_true(strlen(err.message) > 0);
    }
}

static void a_delay_is_kept_but_not_beyond_the_deadline(void **state)
{
    dibs__store *st = open_url("fault+memory:?delay_ms=60&step=now");
    dibsx_nsec began_at = dibsx_now();
    dibs_error err = {0};
    int64_t store_wall_us;

    (void)state;
    assert_status(now(st), DIBS_OK);
    assert_true(dibsx_now() - began_at >= 60 * DIBSX_MS);
    began_at = dibsx_now();
    assert_status(st->ops->now(st, dibsx_after_ms(began_at, 20), &store_wall_us,
                               &err),
                  DIBS_UNKNOWN);
    IN_TIME(dibsx_now() - began_at < pace_ms(60) * DIBSX_MS);
    dibs__store_close(st);
}

typedef struct script {
    dibs__step step;
    uint64_t last_count;
} script;

/* Fails the second step of one kind. */
static dibs__fault fail_second(dibs__step step, uint64_t count, void *arg)
{
    script *sc = arg;

    if (step != sc->step)
        return (dibs__fault){0};
    sc->last_count = count;
    return (dibs__fault){.kind =
                             count == 2 ? DIBS__FAULT_FAIL : DIBS__FAULT_NONE};
}

static void a_function_is_told_the_step_and_its_count(void **state)
{
    script sc = {.step = DIBS__STEP_NOW};
    dibs__store *st = open_url("fault+memory:");
    int64_t sum;

    (void)state;
    dibs__fault_set(fail_second, &sc);
    assert_status(now(st), DIBS_OK);
    assert_status(add(st, &sum), DIBS_OK);
    assert_status(now(st), DIBS_UNAVAIL);
    assert_status(now(st), DIBS_OK);
    assert_int_equal(sc.last_count, 3);
    dibs__fault_set(NULL, NULL);
    assert_status(now(st), DIBS_OK);
    assert_int_equal(sc.last_count, 3);
    dibs__store_close(st);
}

static bool on_entry(const dibs__log_entry *entry, void *arg)
{
    unsigned *count = arg;

    (void)entry;
    (*count)++;
    return true;
}

typedef struct world {
    dibs__store *faulty;
    dibs__store *plain;
    dibs__answer ans;
    dibs_error err;
} world;

static const char *const one = "00000000000000000000000000000001";
static const char *const two = "00000000000000000000000000000002";

static dibs_status ask_all(world *w, dibs__store *st, const char *owner)
{
    dibs__ask asks[] = {{.name = "a", .owner = owner, .permits = 1},
                        {.name = "b", .owner = owner, .permits = 1}};
    dibs__answer answers[2];
    size_t blocked = 9;
    dibs_status rc;

    for (int i = 0; i < 2; i++) {
        asks[i].ttl_ms = 10000;
        asks[i].who = "here:1";
    }
    memset(answers, 0xa5, sizeof(answers));
    rc = st->ops->lease->acquire_all(st, asks, 2, soon(), answers, &blocked,
                                     &w->err);
    assert_true(rc == DIBS_OK || (answers[1].fence == 0 && blocked == 0));
    w->ans = answers[0];
    return rc;
}

static dibs_status
hand_on(world *w, dibs__store *st, const char *from, const char *to)
{
    dibs__conversion turn = {.name = "a",
                             .owner = from,
                             .fence = w->ans.fence,
                             .to_owner = to,
                             .ttl_ms = 10000};
    dibs__answer ans;
    dibs_status rc;

    memset(&ans, 0xa5, sizeof(ans));
    rc = st->ops->lease->convert(st, &turn, soon(), &ans, &w->err);
    assert_true(rc == DIBS_OK || ans.fence == 0);
    return rc;
}

static dibs_status yield(world *w, dibs__store *st)
{
    uint32_t asked = 9;
    dibs_status rc = st->ops->lease->yield(st, "a", 0, soon(), &asked, &w->err);

    assert_int_equal(asked, 0);
    return rc;
}

static dibs_status append(world *w, dibs__store *st)
{
    uint64_t position = 9;
    dibs_status rc = st->ops->log->append(
        st, &(dibs__append){.topic = "t", .data = "x", .len = 1, .keep = 10},
        soon(), &position, &w->err);

    assert_int_equal(rc == DIBS_OK, position != 0);
    return rc;
}

static dibs_status read_all(world *w, dibs__store *st, unsigned *count)
{
    *count = 0;
    return st->ops->log->read(st, "t", 0, 100, soon(), on_entry, count,
                              &w->err);
}

/* Each of these steps under a fault of its own name only. */
static void
test_step(const char *step, const char *fault, dibs_status wanted, bool done)
{
    world w = {.plain = open_url("memory:steps")};
    unsigned count = 0;
    char url[128];

    snprintf(url, sizeof(url), "fault+memory:steps?fault=%s&step=%s", fault,
             step);
    w.faulty = open_url(url);
    if (strcmp(step, "acquire_all") == 0) {
        assert_status(ask_all(&w, w.faulty, one), wanted);
        assert_status(ask_all(&w, w.plain, two), done ? DIBS_BUSY : DIBS_OK);
    } else if (strcmp(step, "convert") == 0) {
        assert_status(ask_all(&w, w.faulty, one), DIBS_OK);
        assert_status(hand_on(&w, w.faulty, one, two), wanted);
        assert_status(hand_on(&w, w.plain, one, one),
                      done ? DIBS_LOST : DIBS_OK);
    } else if (strcmp(step, "yield") == 0) {
        assert_status(ask_all(&w, w.faulty, one), DIBS_OK);
        assert_status(yield(&w, w.faulty), wanted);
        assert_status(yield(&w, w.plain), DIBS_OK);
    } else if (strcmp(step, "append") == 0) {
        assert_status(append(&w, w.faulty), wanted);
        assert_status(read_all(&w, w.faulty, &count), DIBS_OK);
        assert_int_equal(count, done);
    } else {
        assert_status(append(&w, w.faulty), DIBS_OK);
        assert_status(read_all(&w, w.faulty, &count), wanted);
        assert_int_equal(count, wanted == DIBS_OK);
    }
    dibs__store_close(w.faulty);
    dibs__store_close(w.plain);
}

static void steps_of_sets_and_logs_have_their_faults(void **state)
{
    static const char *const steps[] = {"acquire_all", "convert", "yield",
                                        "append", "read"};

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        test_step(steps[i], "none", DIBS_OK, true);
        test_step(steps[i], "fail", DIBS_UNAVAIL, false);
        test_step(steps[i], "drop_before", DIBS_UNKNOWN, false);
        test_step(steps[i], "drop_after", DIBS_UNKNOWN, true);
    }
}

static void an_open_can_fail(void **state)
{
    dibs__store *st = NULL;
    dibs_error err = {0};

    (void)state;
    assert_status(dibs__store_open("fault+memory:?fault=fail&step=open", soon(),
                                   &st, &err),
                  DIBS_UNAVAIL);
    assert_null(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_does_or_does_not_do_the_step),
        cmocka_unit_test(every_nth_step_of_the_kind_is_faulty),
        cmocka_unit_test(a_seed_repeats_its_faults),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(a_delay_is_kept_but_not_beyond_the_deadline),
        cmocka_unit_test(a_function_is_told_the_step_and_its_count),
        cmocka_unit_test(steps_of_sets_and_logs_have_their_faults),
        cmocka_unit_test(an_open_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
