/* contract_rate.c - rates: never more tokens than the limit allows, whoever asks, and
 * waits that are exact. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 16, CALLS = 25 }; /* 400 in all */

#define HOUR_US INT64_C(3600000000)

/* One token at once, of a limit that gives back one in a period. */
static dibs__draw
draw_of(const contract *t, int64_t cost, int64_t period_us, int64_t burst)
{
    return (dibs__draw){.name = t->name,
                        .cost = cost,
                        .least = cost,
                        .count = 1,
                        .period_us = period_us,
                        .burst = burst};
}

static dibs_status
draw(contract *t, size_t handle, const dibs__draw *what, dibs__drawn *out)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};
    dibs_status rc = st->ops->rate->draw(st, what, contract_soon(), out, &err);

    if (rc != DIBS_OK && rc != DIBS_BUSY && rc != DIBS_INVALID)
        print_message("draw: %s\n", err.message);
    return rc;
}

static void first_call_takes_no_more_than_burst(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 5, HOUR_US, 5);
    dibs__drawn got;

    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    assert_int_equal(got.granted, 5);
    assert_int_equal(got.wait_us, 0);
    assert_int_equal(got.remaining, 0);
    what.cost = what.least = 1;
    assert_status(draw(t, 1, &what, &got), DIBS_BUSY);
    assert_int_equal(got.granted, 0);
    assert_int_equal(got.remaining, 0);
    assert_true(got.wait_us > 0 && got.wait_us <= HOUR_US);
}

static void part_of_it_will_do(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 3, HOUR_US, 5);
    dibs__drawn got;

    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    assert_int_equal(got.remaining, 2);
    assert_status(draw(t, 1, &what, &got), DIBS_BUSY);
    assert_int_equal(got.remaining, 2);
    what.least = 2;
    assert_status(draw(t, 2, &what, &got), DIBS_OK);
    assert_int_equal(got.granted, 2);
    assert_int_equal(got.wait_us, 0);
    assert_int_equal(got.remaining, 0);
}

static void zero_is_refused(void **state)
{
    contract *t = *state;
    const dibs__draw good = draw_of(t, 1, HOUR_US, 1);
    dibs__draw bad[8];
    dibs__drawn got;

    for (size_t i = 0; i < 8; i++)
        bad[i] = good;
    bad[0].count = 0;
    bad[1].period_us = 0;
    bad[2].burst = 0;
    bad[3].cost = bad[3].least = 0;
    bad[4].least = 0;
    bad[5].wait_us = -1;
    bad[6].count = -1;
    bad[7].burst = bad[7].cost = INT64_C(1) << 40; /* not to be counted */
    for (size_t i = 0; i < 8; i++) {
        got.granted = 7;
        assert_status(draw(t, 0, &bad[i], &got), DIBS_INVALID);
        assert_int_equal(got.granted, 0);
    }
    assert_status(draw(t, 0, &good, &got), DIBS_OK);
}

static void more_than_burst_is_refused_not_slept(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 3, 1000, 2);
    dibs__drawn got;

    what.wait_us = HOUR_US;
    assert_status(draw(t, 0, &what, &got), DIBS_INVALID);
    what.cost = what.least = 2;
    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    assert_int_equal(got.wait_us, 0);
}

/* After the wait of a refusal the tokens are there, and it is no longer than it must
 * be. */
static void wait_is_exact(void **state)
{
    contract *t = *state;
    int64_t period_us = pace_ms(30) * 1000;
    dibs__draw what = draw_of(t, 1, period_us, 1);
    dibs_status rc = DIBS_OK;
    dibs__drawn got;

    while (rc == DIBS_OK)
        rc = draw(t, 0, &what, &got);
    assert_status(rc, DIBS_BUSY);
    assert_true(got.wait_us > 0 && got.wait_us <= period_us);
    contract_sleep_until(
        dibsx_now() + (got.wait_us + CONTRACT_DRIFT_MS * 1000) * INT64_C(1000));
    assert_status(draw(t, 1, &what, &got), DIBS_OK);
    assert_int_equal(got.wait_us, 0);
}

/* A caller that can wait has its turn at once: the answer says how long to sleep. */
static void waits_are_granted_in_order(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 1, HOUR_US, 1);
    dibsx_nsec begun_at = dibsx_now();
    dibs__drawn got;

    what.wait_us = 4 * HOUR_US;
    for (int i = 0; i < 5; i++) {
        int64_t slack_us;

        assert_status(draw(t, (size_t)i % CONTRACT_HANDLES, &what, &got),
                      DIBS_OK);
        slack_us = contract_ms_since(begun_at) * 1000 + 1000;
        assert_int_equal(got.granted, 1);
        assert_int_equal(got.remaining, 0);
        assert_true(got.wait_us <= i * HOUR_US);
        assert_true(got.wait_us >= i * HOUR_US - slack_us);
    }
    assert_status(draw(t, 0, &what, &got), DIBS_BUSY);
    assert_true(got.wait_us > 4 * HOUR_US && got.wait_us <= 5 * HOUR_US);
}

/* Draws as fast as it can: what is granted stays below the line at any moment. */
static void expect_no_more(contract *t, const dibs__draw *what, int64_t span_ms)
{
    dibsx_nsec begun_at = dibsx_now();
    int64_t total = 0;
    size_t i = 0;

    do {
        int64_t elapsed_us;
        dibs__drawn got;
        dibs_status rc;

        rc = draw(t, i++ % CONTRACT_HANDLES, what, &got);
        if (pace_explains(rc))
            MISSED("a draw is %s", dibs_status_name(rc));
        elapsed_us = (dibsx_now() - begun_at) / 1000 + CONTRACT_DRIFT_MS * 1000;
        total += got.granted;
        if (total > what->burst + elapsed_us * what->count / what->period_us)
            fail_msg("%" PRId64 " tokens in %" PRId64 " us", total, elapsed_us);
    } while (contract_ms_since(begun_at) < span_ms);
    assert_true(total >= what->burst);
}

static void no_double_rate_at_a_boundary(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 4, 10000, 4);

    what.least = 1;
    expect_no_more(t, &what, 80);
}

static void key_lives_while_it_counts_at_1M_per_s(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 2000, 1, 2000);

    what.least = 1;
    expect_no_more(t, &what, 60);
}

static void given_back_never_above_burst(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 10, 1, 10);
    dibs__drawn got;

    what.least = 1;
    for (int i = 0; i < 3; i++) {
        assert_status(draw(t, 0, &what, &got), DIBS_OK);
        assert_true(got.granted + got.remaining <= 10);
        contract_sleep_until(dibsx_after_ms(dibsx_now(), 5));
    }
}

/* As many tokens are out as before, under the new rate and the new burst. */
static void a_new_rate_takes_effect_at_once(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 8, 24 * HOUR_US, 10);
    dibs__drawn got;

    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    what = draw_of(t, 1, HOUR_US, 8);
    assert_status(draw(t, 1, &what, &got), DIBS_BUSY);
    assert_int_equal(got.remaining, 0);
    assert_true(got.wait_us > 0 && got.wait_us <= HOUR_US);
    what.burst = 20;
    assert_status(draw(t, 2, &what, &got), DIBS_OK);
    assert_true(got.remaining == 11);
    what = draw_of(t, 1, 48 * HOUR_US, 10);
    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    assert_int_equal(got.remaining, 0);
}

/* The rule in C and that of the store: periods are so long that the time between two
 * draws adds nothing. */
static void every_store_counts_alike(void **state)
{
    contract *t = *state;
    dibsx_nsec begun_at = dibsx_now();
    dibs__rate model = {0};
    uint32_t seed = 12345;

    for (int i = 0; i < 60; i++) {
        dibs__drawn expected, got;
        dibs__draw what, reduced;

        seed = seed * 1664525 + 1013904223;
        what = (dibs__draw){.name = t->name,
                            .cost = 1 + (seed >> 10) % 7,
                            .count = 3 + (i / 20) * 4,
                            .period_us = INT64_C(7000000000000),
                            .burst = 20 + (seed >> 20) % 20,
                            .wait_us = (seed >> 8) % 5 * (HOUR_US * 400)};
        what.least = 1 + (seed >> 15) % what.cost;
        assert_int_equal(dibs__rate_check(&what, &reduced, NULL), DIBS_OK);
        (void)dibs__rate_draw(&model, &reduced, dibsx_now() / 1000, &expected);
        assert_status(draw(t, (size_t)i % CONTRACT_HANDLES, &what, &got),
                      expected.granted > 0 ? DIBS_OK : DIBS_BUSY);
        assert_int_equal(got.granted, expected.granted);
        assert_int_equal(got.remaining, expected.remaining);
        assert_true(llabs(got.wait_us - expected.wait_us) <=
                    contract_ms_since(begun_at) * 1000 + 10000);
    }
}

static void names_have_limits_of_their_own(void **state)
{
    contract *t = *state;
    char longest[2][DIBS_NAME_MAX + 1], other[96];
    dibs__draw what = draw_of(t, 1, HOUR_US, 1);
    const char *const names[] = {t->name, other, longest[0], longest[1]};
    dibs__drawn got;

    snprintf(other, sizeof(other), "%s{x}y", t->name);
    for (size_t i = 0; i < 2; i++) {
        memset(longest[i], 'n', DIBS_NAME_MAX);
        memcpy(longest[i], t->name, strlen(t->name));
        longest[i][DIBS_NAME_MAX - 1] = (char)('a' + i);
        longest[i][DIBS_NAME_MAX] = '\0';
    }
    for (size_t i = 0; i < 4; i++) {
        what.name = names[i];
        assert_status(draw(t, 0, &what, &got), DIBS_OK);
        assert_status(draw(t, 1, &what, &got), DIBS_BUSY);
    }
}

/* A limit, a lock and a value may have the same name. */
static void a_limit_is_neither_a_lock_nor_a_value(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 1, HOUR_US, 2);
    actor a = contract_actor(t, 0);
    dibs__drawn got;

    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(draw(t, 1, &what, &got), DIBS_OK);
    assert_status(draw(t, 2, &what, &got), DIBS_BUSY);
    assert_status(actor_release(&a), DIBS_OK);
}

static void a_limit_outlives_its_handle(void **state)
{
    contract *t = *state;
    dibs__draw what = draw_of(t, 1, HOUR_US, 1);
    dibs__drawn got;

    assert_status(draw(t, 0, &what, &got), DIBS_OK);
    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_status(draw(t, 0, &what, &got), DIBS_BUSY);
}

typedef struct crowd {
    contract *t;
    size_t handle;
    int64_t granted;
    int failed;
} crowd;

static void *draw_often(void *arg)
{
    crowd *c = arg;
    dibs__draw what = draw_of(c->t, 1, HOUR_US, THREADS * CALLS / 2);
    dibs__drawn got;

    for (int i = 0; i < CALLS; i++) {
        dibs_status rc = draw(c->t, c->handle, &what, &got);

        if (pace_explains(rc))
            MISSED("a draw is %s", dibs_status_name(rc));
        c->failed += rc != DIBS_OK && rc != DIBS_BUSY;
        c->granted += got.granted;
    }
    return NULL;
}

static void draws_400_callers_on_one_key(void **state)
{
    contract *t = *state;
    pthread_t threads[THREADS];
    crowd crowds[THREADS];
    int64_t total = 0;

    for (size_t i = 0; i < THREADS; i++) {
        crowds[i] = (crowd){.t = t, .handle = i % CONTRACT_HANDLES};
        assert_int_equal(pthread_create(&threads[i], NULL, draw_often,
                                        &crowds[i]),
                         0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowds[i].failed, 0);
        total += crowds[i].granted;
    }
    assert_int_equal(total, THREADS * CALLS / 2);
}

enum { SHOWN_MAX = 8 };

/* The rows of a list, in the order in which they came. */
typedef struct shown {
    dibs__rate_row rows[SHOWN_MAX];
    size_t count, stop;
} shown;

static bool copy_row(const dibs__rate_row *row, void *arg)
{
    shown *out = arg;

    assert_true(out->count < SHOWN_MAX);
    out->rows[out->count++] = *row;
    return out->count < out->stop;
}

/* Those that begin with the name of the test and this, behind a name. */
static size_t list_rates(contract *t, const char *tail, const char *after,
                         size_t max, shown *out)
{
    dibs__store *st = t->st[CONTRACT_HANDLES - 1];
    char begins[DIBS_NAME_MAX + 1];
    const dibs__rate_query query = {begins, after, max};
    dibs_error err = {0};
    dibs_status rc;

    snprintf(begins, sizeof(begins), "%.200s%.50s", t->name, tail);
    out->count = 0;
    rc = st->ops->rate->rates(st, &query, contract_soon(), copy_row, out, &err);
    if (rc != DIBS_OK)
        FAIL_OF(rc, "rates: status %d: %s", (int)rc, err.message);
    return out->count;
}

static void take_of(contract *t, const char *tail, int64_t cost)
{
    dibs__draw what = draw_of(t, cost, HOUR_US, 10);
    char name[DIBS_NAME_MAX + 1];
    dibs__drawn got;

    snprintf(name, sizeof(name), "%.200s%.50s", t->name, tail);
    what.name = name;
    assert_status(draw(t, 0, &what, &got), DIBS_OK);
}

static void a_list_has_what_is_out(void **state)
{
    contract *t = *state;
    dibs__draw brief = draw_of(t, 1, 1000, 1);
    shown all = {.stop = SHOWN_MAX};
    dibs__drawn got;

    assert_int_equal(list_rates(t, "", "", SHOWN_MAX, &all), 0);
    take_of(t, "-b", 2);
    take_of(t, "-b", 1);
    take_of(t, "-a", 10);
    assert_status(draw(t, 1, &brief, &got), DIBS_OK);
    contract_sleep_until(dibsx_after_ms(dibsx_now(), 20));
    /* What has come back is not there. */
    assert_int_equal(list_rates(t, "", "", SHOWN_MAX, &all), 2);
    assert_string_equal(all.rows[0].name + strlen(t->name), "-a");
    assert_int_equal(all.rows[0].out, 10);
    assert_string_equal(all.rows[1].name + strlen(t->name), "-b");
    assert_int_equal(all.rows[1].out, 3);
    assert_int_equal(all.rows[1].count, 1);
    assert_int_equal(all.rows[1].period_us, HOUR_US);
    assert_true(all.rows[1].full_us > 2 * HOUR_US &&
                all.rows[1].full_us <= 3 * HOUR_US);
    assert_int_equal(list_rates(t, "-b", "", SHOWN_MAX, &all), 1);
}

static void a_list_of_limits_goes_on_behind_a_name(void **state)
{
    contract *t = *state;
    shown page = {.stop = SHOWN_MAX}, rest = {.stop = SHOWN_MAX};
    static const char *const tails[] = {"-3", "-1", "-4", "-2", "-10"};

    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
        take_of(t, tails[i], 1);
    assert_int_equal(list_rates(t, "", "", 2, &page), 2);
    assert_string_equal(page.rows[1].name + strlen(t->name), "-10");
    assert_int_equal(list_rates(t, "", page.rows[1].name, SHOWN_MAX, &rest), 3);
    assert_string_equal(rest.rows[0].name + strlen(t->name), "-2");
    assert_int_equal(list_rates(t, "", rest.rows[2].name, SHOWN_MAX, &page), 0);
    page.stop = 1;
    assert_int_equal(list_rates(t, "", "", SHOWN_MAX, &page), 1);
}

int contract_rate(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(first_call_takes_no_more_than_burst),
        CONTRACT_TEST(part_of_it_will_do),
        CONTRACT_TEST(zero_is_refused),
        CONTRACT_TEST(more_than_burst_is_refused_not_slept),
        CONTRACT_TEST(wait_is_exact),
        CONTRACT_TEST(waits_are_granted_in_order),
        CONTRACT_TEST(no_double_rate_at_a_boundary),
        CONTRACT_TEST(key_lives_while_it_counts_at_1M_per_s),
        CONTRACT_TEST(given_back_never_above_burst),
        CONTRACT_TEST(a_new_rate_takes_effect_at_once),
        CONTRACT_TEST(every_store_counts_alike),
        CONTRACT_TEST(names_have_limits_of_their_own),
        CONTRACT_TEST(a_limit_is_neither_a_lock_nor_a_value),
        CONTRACT_TEST(a_limit_outlives_its_handle),
        CONTRACT_TEST(draws_400_callers_on_one_key),
        CONTRACT_TEST(a_list_has_what_is_out),
        CONTRACT_TEST(a_list_of_limits_goes_on_behind_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
