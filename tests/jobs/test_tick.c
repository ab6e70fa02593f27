/* test_tick.c - late ticks, pauses, and the store's clock in the intent of a tick. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/tick.h"

#include <string.h>

#define US INT64_C(1000000)

static dibs__step step = {.name = "main", .kind = DIBS__STEP_RUN};
static dibs__schedule schedule;
static dibs__job job;
static dibs__job_state state;
static dibs__run run, *live_run, *next_run;
static dibs__intent in;
static dibs__scene sc;
static dibs__ticker tk;

/* A job that is due each 10 s, from 1000 on, of which nothing has run yet. */
static void make_job(dibs__misfire_policy policy)
{
    int column;

    CHECK(DIBS_OK,
          dibs__cron_parse("@every 10s", &schedule.cron, &column, err));
    job = (dibs__job){.name = "j",
                      .enabled = true,
                      .schedule = {.at = &schedule, .count = 1},
                      .from_s = DIBS__JOB_NONE,
                      .until_s = DIBS__JOB_NONE,
                      .misfire = {.policy = policy, .grace_ms = 3000, .max = 3},
                      .start_deadline_ms = DIBS__JOB_NONE,
                      .max_running = DIBS__JOB_NONE,
                      .run_timeout_ms = DIBS__JOB_NONE,
                      .history = {.keep_ms = 1000},
                      .steps = &step,
                      .step_count = 1};
    dibs__zone_free((dibs__zone *)tk.zone);
    memset(&tk, 0, sizeof(tk));
    CHECK(DIBS_OK, dibs__zone_open("UTC", (dibs__zone **)&tk.zone, err));
    tk.tzdata = "2025b";
    tk.hash = "h";
    dibs__job_state_init(&state, "j");
    dibs__tick_reset(&job, &state, &tk, 1000 * US);
    assert_int_equal(state.next_s, 1010);
}

static dibs_status take(int64_t now_us)
{
    dibs__run_fini(&run);
    dibs__intent_fini(&in);
    dibs__job_state_noted(&state, 1);
    sc = (dibs__scene){.job = &job,
                       .run = &run,
                       .state = &state,
                       .live = live_run,
                       .next = next_run,
                       .now_us = now_us,
                       .in = &in};
    return dibs__tick_take(&sc, &tk, NULL);
}

static void done(void)
{
    dibs__run_fini(&run);
    dibs__intent_fini(&in);
    dibs__zone_free((dibs__zone *)tk.zone);
    tk.zone = NULL;
}

static void test_run_once(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    assert_status(take(1010 * US - 1), DIBS_STALE);
    assert_status(take(1035 * US), DIBS_OK);
    assert_string_equal(run.id, "j@19700101T001710Z");
    assert_int_equal(run.tick_s, 1030);
    assert_int_equal(run.merged, 2);
    assert_int_equal(state.merged, 2);
    assert_int_equal(state.mark_s, 1030);
    assert_int_equal(state.due_us, 1040 * US);
    assert_int_equal(in.not_before_us, 1030 * US);
    done();
}

static void test_params_have_their_defaults(void **unused)
{
    dibs__param params[] = {{.name = "none"},
                            {.name = "region", .initial = "eu"}};

    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.params = (dibs__param_list){.at = params, .count = 2};
    assert_status(take(1015 * US), DIBS_OK);
    assert_int_equal(run.param_count, 1);
    assert_string_equal(run.params[0].name, "region");
    assert_string_equal(run.params[0].value, "eu");
    done();

    /* One from a store may require what a file must not. */
    make_job(DIBS__MISFIRE_RUN_ONCE);
    params[0].required = true;
    job.params = (dibs__param_list){.at = params, .count = 2};
    assert_status(take(1015 * US), DIBS_INVALID);
    done();
}

/* Years of ticks cost as much as minutes, and nothing stops for good. */
static void test_thousand_missed_ticks_start_one(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    assert_status(take(900000003 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 900000000);
    assert_int_equal(state.merged, DIBS__TICKS_COUNTED - 1);
    assert_int_equal(state.next_s, 900000010);
    done();
}

static void test_skip(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_SKIP);
    assert_status(take(1023 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1020);
    assert_int_equal(state.missed, 1);
    assert_int_equal(in.not_after_us, 1023 * US);
    assert_status(take(1033 * US + 1), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.missed, 2);
    assert_int_equal(state.mark_s, 1030);
    assert_int_equal(in.not_before_us, 1033 * US + 1);
    done();
}

static void test_run_all(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ALL);
    assert_status(take(1065 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1040);
    assert_int_equal(state.missed, 3);
    assert_int_equal(in.not_before_us, 1060 * US);
    assert_status(take(1065 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1050);
    assert_status(take(1065 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1060);
    assert_status(take(1065 * US), DIBS_STALE);
    assert_int_equal(state.missed, 3);
    done();
}

static void test_jitter_is_fixed(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.jitter_ms = 5000;
    tk.jitter_us = dibs__job_jitter_us(&job, "main");
    assert_true(tk.jitter_us >= 0 && tk.jitter_us < 5000000);
    assert_int_equal(tk.jitter_us, dibs__job_jitter_us(&job, "main"));
    dibs__tick_refresh(&job, &state, &tk);
    assert_int_equal(state.due_us, 1010 * US + tk.jitter_us);
    assert_status(take(1010 * US + tk.jitter_us), DIBS_OK);
    assert_int_equal(run.tick_s, 1010);
    assert_int_equal(in.not_before_us, 1010 * US + tk.jitter_us);
    done();
}

/* The store has lost writes: the node that saw the mark does not tick again. */
static void test_mark_is_written_back(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    tk.seen_s = tk.seen_local_s = 1020;
    assert_status(take(1025 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.mark_s, 1020);
    assert_int_equal(state.next_s, 1030);
    done();
}

/* A user sets the mark back: a node that has seen the higher one obeys. If the store has
 * lost that, the node that saw it writes it back. */
static void test_reset_sets_the_mark_back(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    tk.seen_s = tk.seen_local_s = 1020;
    state.mark_s = state.mark_local_s = 1020;
    dibs__tick_reset(&job, &state, &tk, 905 * US);
    assert_int_equal(state.resets, 1);
    assert_int_equal(state.next_s, 910);
    assert_status(take(910 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 910);
    done();
    make_job(DIBS__MISFIRE_RUN_ONCE);
    state.mark_s = state.mark_local_s = 1020;
    dibs__tick_refresh(&job, &state, &tk);
    tk.seen_s = tk.seen_local_s = 910;
    tk.seen_resets = 1;
    assert_status(take(1030 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.mark_s, 910);
    assert_int_equal(state.resets, 1);
    done();
}

/* Its run is in the history, so that no commit could make it. */
static void test_a_tick_that_ran_before_is_dealt_with(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    tk.ran_s = 1010;
    assert_status(take(1010 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.mark_s, 1010);
    assert_int_equal(state.next_s, 1020);
    assert_int_equal(state.missed + state.merged + state.skipped, 0);
    assert_status(take(1020 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1020);
    done();
}

/* The end of a pause is no reset: what has run does not run again. */
static void test_unpause_after_the_clock_was_set_back(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    state.mark_s = state.mark_local_s = 1020;
    dibs__job_pause(&state, "me", "repair", 0);
    dibs__job_unpause(&job, &state, &tk, 905 * US);
    assert_int_equal(state.mark_s, 1020);
    assert_int_equal(state.next_s, 1030);
    assert_int_equal(state.resets, 0);
    done();
}

static void test_pause(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    dibs__job_pause(&state, "me", "repair", 0);
    assert_status(take(1100 * US), DIBS_STALE);
    dibs__job_unpause(&job, &state, &tk, 1105 * US);
    assert_int_equal(state.next_s, 1110);
    dibs__job_pause(&state, "me", "repair", 1205 * US);
    assert_int_equal(state.due_us, 1205 * US);
    assert_status(take(1206 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_false(state.paused);
    assert_int_equal(state.next_s, 1210);
    done();
}

/* The job is due again at the end of its pause, not only at its first time after that. */
static void test_pause_ends_before_its_last_moment(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    dibs__job_pause(&state, "me", "repair", 1200 * US);
    assert_status(take(1200 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(in.not_before_us, 1200 * US);
    assert_int_equal(state.mark_s, 1199);
    assert_int_equal(state.due_us, 1200 * US);
    assert_status(take(1200 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1200);
    assert_int_equal(state.merged + state.missed, 0);
    done();
    make_job(DIBS__MISFIRE_RUN_ONCE);
    dibs__job_pause(&state, "me", "repair", 1200 * US + 1);
    assert_status(take(1200 * US + 1), DIBS_OK);
    assert_int_equal(state.due_us, 1210 * US);
    done();
}

/* Nodes that come late to the end of a pause treat the ticks since then as late ones. */
static void test_ticks_after_a_pause_are_late(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    dibs__job_pause(&state, "me", "repair", 1200 * US);
    assert_status(take(1235 * US), DIBS_OK);
    assert_false(state.paused);
    assert_status(take(1235 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 1230);
    assert_int_equal(state.merged, 3);
    done();
    make_job(DIBS__MISFIRE_SKIP);
    dibs__job_pause(&state, "me", "repair", 1200 * US);
    assert_status(take(1235 * US), DIBS_OK);
    assert_status(take(1235 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.missed, 4);
    done();
    make_job(DIBS__MISFIRE_RUN_ALL);
    dibs__job_pause(&state, "me", "repair", 1200 * US);
    assert_status(take(1225 * US), DIBS_OK);
    for (int64_t tick_s = 1200; tick_s <= 1220; tick_s += 10) {
        assert_status(take(1225 * US), DIBS_OK);
        assert_int_equal(run.tick_s, tick_s);
    }
    assert_status(take(1225 * US), DIBS_STALE);
    assert_int_equal(state.missed, 0);
    done();
}

/* A mark that is ahead stays: what has run does not run again. */
static void test_a_pause_sets_no_mark_back(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    state.mark_s = state.mark_local_s = 1220;
    dibs__job_pause(&state, "me", "repair", 1200 * US);
    assert_status(take(1235 * US), DIBS_OK);
    assert_int_equal(state.mark_s, 1220);
    assert_int_equal(state.next_s, 1230);
    assert_int_equal(state.resets, 0);
    done();
}

static void test_forbid_counts_what_it_skips(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.concurrency = DIBS__CONCURRENCY_FORBID;
    assert_status(take(1010 * US), DIBS_OK);
    assert_string_equal(state.live, run.id);
    assert_status(take(1020 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_int_equal(state.skipped, 1);
    assert_int_equal(state.mark_s, 1020);
    done();
}

/* The second tick waits for the first; the third finds no place. */
static void test_queue_counts_what_it_skips(void **unused)
{
    dibs__run first, second;

    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.concurrency = DIBS__CONCURRENCY_QUEUE;
    assert_status(take(1010 * US), DIBS_OK);
    first = run;
    run = (dibs__run){0};
    live_run = &first;
    assert_status(take(1020 * US), DIBS_OK);
    assert_true(run.follows);
    assert_string_equal(state.follows, run.id);
    second = run;
    run = (dibs__run){0};
    next_run = &second;
    assert_status(take(1030 * US), DIBS_OK);
    assert_string_equal(run.id, "");
    assert_string_equal(state.follows, second.id);
    assert_int_equal(state.skipped, 1);
    assert_int_equal(state.mark_s, 1030);
    live_run = next_run = NULL;
    dibs__run_fini(&first);
    dibs__run_fini(&second);
    done();
}

/* A tick and the claim of its run are one commit. */
static void test_tick_with_claim(void **unused)
{
    const dibs__claimant who = {.node = "n", .fence = 5, .nonce = "x"};
    bool live = false;

    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.start_deadline_ms = 2000;
    assert_status(take(1011 * US), DIBS_OK);
    assert_status(dibs__run_claim(&sc, 0, &who, NULL), DIBS_OK);
    assert_int_equal(in.not_after_us, 1012 * US);
    dibs__scene_write(&sc);
    assert_int_equal(in.check_count, 2);
    for (size_t i = 0; i < in.change_count; i++) {
        assert_string_not_equal(in.changes[i].key, "ready/");
        live |= strcmp(in.changes[i].key, "live") == 0 && in.changes[i].at == 5;
    }
    assert_true(live);
    done();
}

/* Hangfire 546: the first tick of a yearly job came while no node was there. */
static void test_peer_missed_yearly_job_runs(void **unused)
{
    const int64_t year = 31536000; /* 1971-01-01 */
    int column;

    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    CHECK(DIBS_OK, dibs__cron_parse("0 0 1 1 *", &schedule.cron, &column, err));
    dibs__tick_reset(&job, &state, &tk, 1000 * US);
    assert_int_equal(state.next_s, year);
    assert_status(take((year + 900) * US), DIBS_OK);
    assert_int_equal(run.tick_s, year);
    assert_int_equal(state.merged + state.missed, 0);
    assert_int_equal(state.next_s, 2 * year);
    done();
}

/* river 791, systemd 21166: a node that starts again each hour computes the next time
 * anew, and a job of a week still comes after a week. */
static void test_peer_interval_longer_than_uptime(void **unused)
{
    const int64_t week = 7 * 86400;
    int column;

    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    job.jitter_ms = 60000;
    CHECK(DIBS_OK, dibs__cron_parse("@every 7d", &schedule.cron, &column, err));
    tk.jitter_us = dibs__job_jitter_us(&job, "main");
    dibs__tick_reset(&job, &state, &tk, 1000 * US);
    for (int64_t at_s = 1000; at_s < 1000 + week; at_s += 3600) {
        tk.jitter_us = dibs__job_jitter_us(&job, "main");
        dibs__tick_refresh(&job, &state, &tk);
        assert_status(take(at_s * US), DIBS_STALE);
        assert_int_equal(state.due_us, (1000 + week) * US + tk.jitter_us);
    }
    assert_status(take((1000 + week) * US + tk.jitter_us), DIBS_OK);
    assert_int_equal(run.tick_s, 1000 + week);
    done();
}

/* robfig PR 480, sidekiq-scheduler 283: the store's clock goes back by an hour, and
 * forward again. */
static void test_peer_clock_set_back(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    assert_status(take(10010 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 10010);
    for (int64_t at_s = 6410; at_s < 10020; at_s += 10)
        assert_status(take(at_s * US), DIBS_STALE);
    assert_status(take(10020 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 10020);
    assert_int_equal(run.merged, 0);
    done();
}

static void test_peer_clock_set_forward(void **unused)
{
    (void)unused;
    make_job(DIBS__MISFIRE_RUN_ONCE);
    assert_status(take(1010 * US), DIBS_OK);
    assert_status(take(4610 * US), DIBS_OK);
    assert_int_equal(run.tick_s, 4610);
    assert_int_equal(run.merged, 359);
    assert_int_equal(in.not_before_us, 4610 * US);
    assert_status(take(1020 * US), DIBS_STALE);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run_once),
        cmocka_unit_test(test_params_have_their_defaults),
        cmocka_unit_test(test_thousand_missed_ticks_start_one),
        cmocka_unit_test(test_skip),
        cmocka_unit_test(test_run_all),
        cmocka_unit_test(test_jitter_is_fixed),
        cmocka_unit_test(test_mark_is_written_back),
        cmocka_unit_test(test_reset_sets_the_mark_back),
        cmocka_unit_test(test_a_tick_that_ran_before_is_dealt_with),
        cmocka_unit_test(test_unpause_after_the_clock_was_set_back),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_ends_before_its_last_moment),
        cmocka_unit_test(test_ticks_after_a_pause_are_late),
        cmocka_unit_test(test_a_pause_sets_no_mark_back),
        cmocka_unit_test(test_forbid_counts_what_it_skips),
        cmocka_unit_test(test_queue_counts_what_it_skips),
        cmocka_unit_test(test_tick_with_claim),
        cmocka_unit_test(test_peer_missed_yearly_job_runs),
        cmocka_unit_test(test_peer_interval_longer_than_uptime),
        cmocka_unit_test(test_peer_clock_set_back),
        cmocka_unit_test(test_peer_clock_set_forward),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
