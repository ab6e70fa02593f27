/* test_client_watch.c - watches on a store that fails: the last value arrives
 * whatever is lost. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <string.h>

static dibs_watch *watch_key(world *w)
{
    dibs_watch *watch = NULL;

    CHECK(DIBS_OK, dibs_state_watch(w->one, "v", &watch, err));
    return watch;
}

static void write_text(world *w, const char *text)
{
    CHECK(DIBS_OK,
          dibs_state_set(w->other, "v", text, strlen(text), 0, NULL, err));
}

static dibs_change expect_text(dibs_watch *watch, const char *text)
{
    dibs_change ch;

    CHECK(DIBS_OK, dibs_watch_next(watch, WORLD_BOUND_MS, &ch, err));
    assert_string_equal(ch.value.data, text);
    dibs_value_free(&ch.value);
    return ch;
}

static void a_watch_without_notices_looks_by_itself(void **state)
{
    world *w = *state;
    dibs_watch *watch = watch_key(w);

    write_text(w, "1");
    (void)expect_text(watch, "1");
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_FAIL, -1);
    write_text(w, "2");
    write_text(w, "3");
    assert_true(expect_text(watch, "3").merged);
    dibs_watch_free(watch);
}

/* Of both it is said that changes may have been merged. */
static void a_watch_that_cannot_listen_looks_by_itself(void **state)
{
    world *w = *state;
    dibs_watch *watch = watch_key(w);

    world_fault(w, DIBS__STEP_EAR, DIBS__FAULT_FAIL, -1);
    write_text(w, "1");
    (void)expect_text(watch, "1");
    write_text(w, "2");
    assert_true(expect_text(watch, "2").merged);
    dibs_watch_free(watch);
}

static void missed_notices_are_made_up_for(void **state)
{
    world *w = *state;
    dibs_watch *watch = watch_key(w);
    int ears;

    write_text(w, "1");
    (void)expect_text(watch, "1");
    ears = world_seen(w, DIBS__STEP_EAR);
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, 1);
    write_text(w, "2");
    assert_true(expect_text(watch, "2").merged);
    assert_true(world_seen(w, DIBS__STEP_EAR) > ears);
    dibs_watch_free(watch);
}

static void a_watch_outlasts_a_store_that_is_away(void **state)
{
    world *w = *state;
    dibs_watch *watch = watch_key(w);
    dibs_change ch;

    world_fault(w, DIBS__STEP_GET, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_watch_next(watch, 0, &ch, err));
    assert_null(ch.value.data);
    write_text(w, "1");
    (void)expect_text(watch, "1");
    world_fault(w, DIBS__STEP_HEADS, DIBS__FAULT_DROP_BEFORE, 2);
    world_fault(w, DIBS__STEP_GET, DIBS__FAULT_FAIL, 2);
    write_text(w, "2");
    (void)expect_text(watch, "2");
    dibs_watch_free(watch);
}

static void a_free_watch_is_no_longer_told(void **state)
{
    world *w = *state;
    dibs_watch *watch = watch_key(w);
    int ears;

    write_text(w, "1");
    (void)expect_text(watch, "1");
    ears = world_seen(w, DIBS__STEP_EAR);
    dibs_watch_free(watch);
    assert_int_equal(world_seen(w, DIBS__STEP_EAR), ears + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_watch_without_notices_looks_by_itself),
        WORLD_TEST(a_watch_that_cannot_listen_looks_by_itself),
        WORLD_TEST(missed_notices_are_made_up_for),
        WORLD_TEST(a_watch_outlasts_a_store_that_is_away),
        WORLD_TEST(a_free_watch_is_no_longer_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
