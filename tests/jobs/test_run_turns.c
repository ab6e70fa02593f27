/* test_run_turns.c - runs of one job that meet: forbid, replace, queue, and the lock of the job. */
/* SPDX-License-Identifier: MIT */
#include "run_scene.h"

#include <stdio.h>

/* A run that has begun does not end well without the step whose lock was held. */
static void test_a_run_is_skipped_as_a_whole(void **unused)
{
    static const dibs__outcome busy = {.reason = DIBS__REASON_BUSY};

    (void)unused;
    make_job(1);
    job.lock.key = "k";
    job.lock.retry_delay_ms = 5;
    steps[A].work.retry.attempts = 3;
    steps[A].work.retry.on = DIBS__RETRY_FAILED;
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_begin(&sc, A, who.nonce, err));
    end(A, &badly);
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    claim(A);
    end(A, &busy);
    expect(A, DIBS__STATE_RETRY);
    assert_int_equal(run.steps[A].attempt, 1);
    sc.now_us += 5000;
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    claim(A);
    CHECK(DIBS_OK, dibs__run_begin(&sc, A, who.nonce, err));
    end(A, &well);
    expect_run(DIBS__STATE_OK);
    done();

    /* Its own step has the lock. */
    for (int policy = DIBS__BUSY_SKIP; policy <= DIBS__BUSY_RETRY; policy++) {
        make_job(2);
        job.lock.key = "k";
        job.lock.on_busy = (dibs__on_busy)policy;
        begin_run("j.1");
        claim(A);
        claim(B);
        end(B, &busy);
        expect(B, DIBS__STATE_RETRY);
        CHECK(DIBS_OK, dibs__run_begin(&sc, A, who.nonce, err));
        end(A, &well);
        expect_run(DIBS__STATE_ACTIVE);
        done();
    }

    /* Another has it: none of the steps begins. */
    make_job(3);
    need(C, A);
    job.lock.key = "k";
    begin_run("j.1");
    claim(A);
    end(A, &busy);
    expect(B, DIBS__STATE_SKIPPED);
    expect_run(DIBS__STATE_SKIPPED);
    done();
}

static void test_forbid_and_max_running(void **unused)
{
    dibs__run first;

    (void)unused;
    make_job(1);
    job.concurrency = DIBS__CONCURRENCY_FORBID;
    begin_run("j.1");
    assert_string_equal(state.live, "j.1");
    first = run;
    CHECK(DIBS_OK, dibs__run_make(&run, "j.2", &job, "h", err));
    CHECK(DIBS_BUSY, dibs__run_start(&sc, err));
    dibs__run_fini(&run);
    run = first;
    claim(A);
    end(A, &well);
    assert_string_equal(state.live, "");
    done();

    make_job(1);
    job.max_running = 1;
    begin_run("j.1");
    claim(A);
    assert_int_equal(state.running, 1);
    first = run;
    begin_run("j.2");
    CHECK(DIBS_FULL, dibs__run_claim(&sc, A, &who, err));
    dibs__run_fini(&run);
    run = first;
    end(A, &well);
    assert_int_equal(state.running, 0);
    done();
}

/* The run that follows is READY by the commit that ends the one before it. */
static void test_replace(void **unused)
{
    dibs__run second, third;

    (void)unused;
    make_job(1);
    job.concurrency = DIBS__CONCURRENCY_REPLACE;
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_true(run.steps[A].cancel && second.follows);
    assert_int_equal(second.steps[A].state, DIBS__STATE_PENDING);
    CHECK(DIBS_OK, dibs__run_make(&third, "j.3", &job, "h", err));
    sc.run = &third;
    sc.next = &second;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_int_equal(second.state, DIBS__STATE_CANCELLED);
    assert_string_equal(state.follows, "j.3");
    sc.run = &run;
    sc.live = NULL;
    sc.next = &third;
    CHECK(DIBS_OK, dibs__run_end(&sc, A, who.nonce, &badly, err));
    expect_run(DIBS__STATE_CANCELLED);
    assert_int_equal(third.steps[A].state, DIBS__STATE_READY);
    assert_string_equal(state.live, "j.3");
    assert_string_equal(state.follows, "");
    dibs__run_fini(&second);
    dibs__run_fini(&third);
    done();
}

/* Runs of two definitions meet when a jobs file was changed: each is judged by its own. */
static void test_replace_with_other_steps(void **unused)
{
    dibs__step other[2];
    dibs__job fresh;
    dibs__run second, third;

    (void)unused;
    make_job(1);
    job.concurrency = DIBS__CONCURRENCY_REPLACE;
    begin_run("j.1");
    claim(A);
    other[0] = steps[A];
    other[1] = steps[B];
    other[0].kind = DIBS__STEP_SLEEP;
    other[0].sleep_ms = 5;
    other[1].needs[0] = 1;
    other[1].need_names.count = 1;
    fresh = job;
    fresh.steps = other;
    fresh.step_count = 2;
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &fresh, "h2", err));
    sc.run = &second;
    sc.job = &fresh;
    sc.live = &run;
    sc.live_job = &job;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    /* A run of one step replaces that of two. */
    CHECK(DIBS_OK, dibs__run_make(&third, "j.3", &job, "h", err));
    sc.run = &third;
    sc.job = &job;
    sc.next = &second;
    sc.next_job = &fresh;
    sc.live_job = NULL;
    other[1].when = DIBS__WHEN_ALWAYS; /* Nothing of it was to run. */
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_int_equal(second.state, DIBS__STATE_CANCELLED);
    assert_int_equal(second.steps[B].state, DIBS__STATE_CANCELLED);
    dibs__run_fini(&second);
    dibs__run_fini(&third);
    other[1].when = DIBS__WHEN_OK;
    CHECK(DIBS_OK, dibs__run_make(&second, "j.4", &fresh, "h2", err));
    second.follows = true;
    (void)snprintf(state.follows, sizeof(state.follows), "j.4");
    sc.run = &run;
    sc.live = NULL;
    CHECK(DIBS_OK, dibs__run_end(&sc, A, who.nonce, &badly, err));
    assert_string_equal(state.live, "j.4");
    assert_int_equal(second.steps[A].state, DIBS__STATE_WAITING);
    assert_int_equal(second.steps[B].state, DIBS__STATE_PENDING);
    dibs__run_fini(&second);
    done();
}

/* One waits, and begins by the commit that ends the one before it; no further one does. */
static void test_queue(void **unused)
{
    dibs__run second, third;

    (void)unused;
    make_job(1);
    job.concurrency = DIBS__CONCURRENCY_QUEUE;
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_true(second.follows && !run.steps[A].cancel);
    assert_int_equal(second.steps[A].state, DIBS__STATE_PENDING);
    CHECK(DIBS_OK, dibs__run_make(&third, "j.3", &job, "h", err));
    sc.run = &third;
    sc.next = &second;
    CHECK(DIBS_BUSY, dibs__run_start(&sc, err));
    assert_string_equal(state.follows, "j.2");
    sc.run = &run;
    sc.live = NULL;
    end(A, &well);
    expect_run(DIBS__STATE_OK);
    assert_int_equal(second.steps[A].state, DIBS__STATE_READY);
    assert_string_equal(state.live, "j.2");
    assert_string_equal(state.follows, "");
    /* A place that was left is free. */
    sc.run = &third;
    sc.live = &second;
    sc.next = NULL;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_string_equal(state.follows, "j.3");
    CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    assert_int_equal(third.state, DIBS__STATE_CANCELLED);
    assert_string_equal(state.live, "j.2");
    assert_string_equal(state.follows, "");
    dibs__run_fini(&second);
    dibs__run_fini(&third);
    done();
}

/* The time of a run that waits may be over: it ends without a turn, and nothing of it
 * begins. */
static void test_a_follower_leaves_its_place(void **unused)
{
    dibs__run second;

    (void)unused;
    for (int late = 0; late < 2; late++) {
        make_job(3);
        need(B, A);
        steps[C].when = DIBS__WHEN_ALWAYS;
        job.concurrency = DIBS__CONCURRENCY_QUEUE;
        begin_run("j.1");
        claim(A);
        *(late ? &job.start_deadline_ms : &job.run_timeout_ms) = 5;
        CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
        second.cause = DIBS__CAUSE_HAND;
        sc.run = &second;
        sc.live = &run;
        CHECK(DIBS_OK, dibs__run_start(&sc, err));
        assert_int_equal(dibs__run_deadline_at(&second), sc.now_us + 5000);
        dibs__scene_write(&sc);
        assert_non_null(find_change(DIBS__INTENT_TELL, "deadline"));
        assert_int_equal(dibs__run_deadline(&sc, NULL), DIBS_STALE);
        sc.now_us += 5000;
        CHECK(DIBS_OK, dibs__run_deadline(&sc, err));
        assert_int_equal(second.state,
                         late ? DIBS__STATE_MISSED : DIBS__STATE_FAILED);
        assert_int_equal(second.reason,
                         late ? DIBS__REASON_LATE : DIBS__REASON_TIMEOUT);
        assert_int_equal(second.steps[C].state, DIBS__STATE_SKIPPED);
        assert_null(dibs__run_check(&job, &second));
        assert_string_equal(state.live, "j.1");
        assert_string_equal(state.follows, "");
        dibs__run_fini(&second);
        done();
    }
}

/* A rerun from a step on has ends of the run before it, and nothing that begins a run: it did
 * not go well for that. */
static void test_a_late_rerun_has_not_ended_well(void **unused)
{
    dibs__run second;

    (void)unused;
    make_job(3);
    need(B, A);
    need(C, B);
    job.concurrency = DIBS__CONCURRENCY_QUEUE;
    begin_run("j.1");
    claim(A);
    job.start_deadline_ms = 5;
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    second.cause = DIBS__CAUSE_RERUN;
    second.steps[A].state = DIBS__STATE_OK;
    second.steps[A].ended_us = 1;
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    sc.now_us += 5000;
    CHECK(DIBS_OK, dibs__run_deadline(&sc, err));
    assert_int_equal(second.state, DIBS__STATE_FAILED);
    assert_int_equal(second.reason, DIBS__REASON_LATE);
    assert_int_equal(second.steps[B].state, DIBS__STATE_MISSED);
    assert_null(dibs__run_check(&job, &second));
    assert_string_equal(state.follows, "");
    dibs__run_fini(&second);
    done();
}

/* Its time may be over before it can begin; the job goes on all the same. */
static void test_a_follower_that_is_late(void **unused)
{
    dibs__run second;

    (void)unused;
    make_job(1);
    job.concurrency = DIBS__CONCURRENCY_REPLACE;
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_true(second.follows);
    second.reason = DIBS__REASON_TIMEOUT;
    sc.run = &run;
    sc.live = NULL;
    sc.next = &second;
    CHECK(DIBS_OK, dibs__run_end(&sc, A, who.nonce, &badly, err));
    assert_int_equal(second.state, DIBS__STATE_FAILED);
    assert_string_equal(state.live, "");
    assert_string_equal(state.follows, "");
    dibs__run_fini(&second);
    done();
}

/* 256 steps open and end at once, within the bound of a commit; but two such runs do not
 * change in one. */
static void test_widest_run(void **unused)
{
    static dibs__step many[DIBS__JOB_STEPS_MAX];
    dibs__run second;

    (void)unused;
    make_job(1);
    for (int i = 0; i < DIBS__JOB_STEPS_MAX; i++)
        many[i] = steps[A];
    job.steps = many;
    job.step_count = DIBS__JOB_STEPS_MAX;
    job.concurrency = DIBS__CONCURRENCY_REPLACE;
    begin_run("j.1");
    dibs__scene_write(&sc);
    assert_true(dibs__intent_ok(&in) && in.change_count <= 320);
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_BUSY, dibs__run_start(&sc, err));
    dibs__run_fini(&second);
    sc.run = &run;
    sc.live = NULL;
    dibs__intent_fini(&in);
    dibs__run_noted(&run, 1);
    CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    dibs__scene_write(&sc);
    assert_true(dibs__intent_ok(&in) && in.change_count <= 320);
    expect_run(DIBS__STATE_CANCELLED);
    done();
}

/* The end of the widest run and the beginning of the next one are one commit. */
static void test_widest_queue(void **unused)
{
    static dibs__step many[DIBS__JOB_QUEUE_MAX];
    dibs__run second;

    (void)unused;
    make_job(1);
    for (int i = 0; i < DIBS__JOB_QUEUE_MAX; i++)
        many[i] = steps[A];
    job.steps = many;
    job.step_count = DIBS__JOB_QUEUE_MAX;
    job.concurrency = DIBS__CONCURRENCY_QUEUE;
    begin_run("j.1");
    CHECK(DIBS_OK, dibs__run_make(&second, "j.2", &job, "h", err));
    sc.run = &second;
    sc.live = &run;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    dibs__run_noted(&run, 1);
    dibs__run_noted(&second, 1);
    sc.run = &run;
    sc.live = NULL;
    sc.next = &second;
    CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    assert_int_equal(second.steps[A].state, DIBS__STATE_READY);
    dibs__scene_write(&sc);
    assert_true(dibs__intent_ok(&in) && in.change_count <= 320);
    dibs__run_fini(&second);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_is_skipped_as_a_whole),
        cmocka_unit_test(test_forbid_and_max_running),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_a_follower_leaves_its_place),
        cmocka_unit_test(test_a_late_rerun_has_not_ended_well),
        cmocka_unit_test(test_replace_with_other_steps),
        cmocka_unit_test(test_a_follower_that_is_late),
        cmocka_unit_test(test_widest_run),
        cmocka_unit_test(test_widest_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
