/* test_run_machine.c - what may happen to a run, step by step; tests/sim has many nodes
 * that do it at once. */
/* SPDX-License-Identifier: MIT */
#include "jobs/batch.h"
#include "jobs/follow.h"
#include "jobs/history.h"
#include "run_scene.h"

#include <stdio.h>
#include <string.h>

/* a, then b and c, then d: d opens with the end of the last of both. */
static void test_fan_in_once(void **unused)
{
    (void)unused;
    make_job(4);
    need(B, A);
    need(C, A);
    need(D, B);
    need(D, C);
    begin_run("j.1");
    expect(A, DIBS__STATE_READY);
    expect(D, DIBS__STATE_PENDING);
    claim(A);
    end(A, &well);
    expect(B, DIBS__STATE_READY);
    claim(B);
    claim(C);
    end(C, &well);
    expect(D, DIBS__STATE_PENDING);
    end(B, &well);
    expect(D, DIBS__STATE_READY);
    claim(D);
    end(D, &well);
    expect_run(DIBS__STATE_OK);
    done();
}

/* As many as there can be: all run together, each end is asked whether it is the last. */
static void test_fan_in_of_all_once(void **unused)
{
    static dibs__step wide[DIBS__JOB_STEPS_MAX];
    static char names[DIBS__JOB_STEPS_MAX][8];
    const size_t last = DIBS__JOB_STEPS_MAX - 1;

    (void)unused;
    make_job(1);
    for (size_t i = 0; i <= last; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "s%zu", i);
        wide[i] = steps[A];
        wide[i].name = names[i];
    }
    for (size_t i = 0; i < last; i++)
        wide[last].needs[i / 64] |= UINT64_C(1) << (i % 64);
    wide[last].need_names.count = last;
    job.steps = wide;
    job.step_count = last + 1;
    begin_run("j.1");
    for (size_t i = 0; i < last; i++)
        claim(i);
    for (size_t i = 0; i < last; i++) {
        expect(last, DIBS__STATE_PENDING);
        end(i, &well);
    }
    expect(last, DIBS__STATE_READY);
    claim(last);
    end(last, &well);
    expect_run(DIBS__STATE_OK);
    assert_int_equal(run.steps[last].attempt, 1);
    done();
}

static void fail_a(dibs__on_failure policy)
{
    make_job(5);
    need(B, A);
    need(C, B);
    need(D, C);
    steps[A].on_failure = policy;
    steps[D].when = DIBS__WHEN_ALWAYS;
    begin_run("j.1");
    claim(A);
    end(A, &badly);
}

static void test_policies_of_failure(void **unused)
{
    (void)unused;
    fail_a(DIBS__FAILURE_FAIL);
    expect(E, DIBS__STATE_SKIPPED);
    expect(C, DIBS__STATE_SKIPPED);
    expect(D, DIBS__STATE_READY);
    claim(D);
    end(D, &well);
    expect_run(DIBS__STATE_FAILED);
    assert_int_equal(run.reason, DIBS__REASON_FAILED);
    done();

    fail_a(DIBS__FAILURE_SKIP);
    expect(B, DIBS__STATE_SKIPPED);
    expect(C, DIBS__STATE_SKIPPED);
    expect(E, DIBS__STATE_READY);
    claim(E);
    end(E, &well);
    claim(D);
    end(D, &well);
    expect_run(DIBS__STATE_OK);
    done();

    fail_a(DIBS__FAILURE_CONTINUE);
    expect(B, DIBS__STATE_READY);
    done();
}

/* Without needs, a step of `when: failed` comes after all others. */
static void test_when_failed(void **unused)
{
    for (int fails = 0; fails < 2; fails++) {
        (void)unused;
        make_job(2);
        steps[B].when = DIBS__WHEN_FAILED;
        begin_run("j.1");
        expect(B, DIBS__STATE_PENDING);
        claim(A);
        end(A, fails ? &badly : &well);
        expect(B, fails ? DIBS__STATE_READY : DIBS__STATE_SKIPPED);
        if (!fails)
            expect_run(DIBS__STATE_OK);
        done();
    }
}

static void test_retry_and_backoff(void **unused)
{
    (void)unused;
    make_job(1);
    steps[A].work.retry = (dibs__retry){.attempts = 3,
                                        .on = DIBS__RETRY_LOST,
                                        .delay_ms = 10,
                                        .factor = 2,
                                        .max_delay_ms = 1000};
    begin_run("j.1");
    claim(A);
    dibs__run_noted(&run, 1);
    CHECK(DIBS_STALE, dibs__run_lost(&sc, A, 8, err));
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    expect(A, DIBS__STATE_RETRY);
    dibs__scene_write(&sc);
    assert_non_null(find_change(DIBS__INTENT_LEAVE, "live"));
    assert_int_equal(find_change(DIBS__INTENT_ENTER, "retry")->at, 1010000);
    CHECK(DIBS_STALE, dibs__run_retry(&sc, err));
    sc.now_us = 1010000;
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    assert_int_equal(in.not_before_us, 1010000);
    claim(A);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    assert_int_equal(run.steps[A].at_us, 1010000 + 20000);
    sc.now_us += 20000;
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    claim(A);
    end(A, &badly); /* Not among the reasons for a retry. */
    expect_run(DIBS__STATE_FAILED);
    assert_int_equal(run.attempt_count, 3);
    done();
}

/* A pause of hours is up to all of its jitter longer. */
static void test_jitter_of_long_pauses(void **unused)
{
    const int64_t hour_us = INT64_C(3600) * 1000000;

    (void)unused;
    make_job(1);
    steps[A].work.retry = (dibs__retry){.attempts = 2,
                                        .on = DIBS__RETRY_LOST,
                                        .delay_ms = 10 * 3600 * 1000,
                                        .factor = 1,
                                        .jitter_pct = 50,
                                        .max_delay_ms = 10 * 3600 * 1000};
    begin_run("j.1");
    sc.chance = (uint64_t)(10 * hour_us);
    claim(A);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    assert_int_equal(run.steps[A].at_us, sc.now_us + 15 * hour_us);
    done();
}

/* on_lost: finish: the end of an attempt counts, although its node was taken for gone. */
static void test_late_results(void **unused)
{
    static const dibs__outcome lost = {.reason = DIBS__REASON_LOST};

    (void)unused;
    for (int finish = 0; finish < 2; finish++) {
        make_job(1);
        job.on_lost = finish ? DIBS__LOST_FINISH : DIBS__LOST_KILL;
        begin_run("j.1");
        claim(A);
        CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
        expect_run(DIBS__STATE_FAILED);
        CHECK(DIBS_STALE, dibs__run_end(&sc, A, who.nonce, &lost, err));
        CHECK(DIBS_STALE, dibs__run_end(&sc, A, "x2", &well, err));
        sc.now_us = 3000000;
        CHECK(finish ? DIBS_OK : DIBS_STALE,
              dibs__run_end(&sc, A, who.nonce, &well, err));
        expect_run(finish ? DIBS__STATE_OK : DIBS__STATE_FAILED);
        assert_int_equal(run.reason,
                         finish ? DIBS__REASON_NONE : DIBS__REASON_LOST);
        CHECK(DIBS_STALE, dibs__run_end(&sc, A, who.nonce, &badly, err));
        assert_int_equal(run.attempt_count, 1);
        assert_int_equal(run.attempts[0].reason, run.reason);
        done();
    }
    /* What was skipped with the loss does not come back. */
    make_job(2);
    need(B, A);
    job.on_lost = DIBS__LOST_FINISH;
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    CHECK(DIBS_STALE, dibs__run_end(&sc, A, who.nonce, &well, err));
    expect_run(DIBS__STATE_FAILED);
    done();
}

/* A result counts with its nonce alone, and once. */
static void test_results_of_others(void **unused)
{
    (void)unused;
    make_job(1);
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_STALE, dibs__run_claim(&sc, A, &who, err));
    CHECK(DIBS_STALE, dibs__run_end(&sc, A, "x2", &well, err));
    end(A, &well);
    CHECK(DIBS_STALE, dibs__run_end(&sc, A, who.nonce, &badly, err));
    expect_run(DIBS__STATE_OK);
    done();
}

static void test_lock_of_the_job(void **unused)
{
    static const dibs__outcome busy = {.reason = DIBS__REASON_BUSY};

    (void)unused;
    make_job(1);
    job.lock.key = "k";
    begin_run("j.1");
    claim(A);
    expect(A, DIBS__STATE_CLAIMED);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    expect(A, DIBS__STATE_READY);
    assert_int_equal(run.steps[A].attempt, 0);
    claim(A);
    CHECK(DIBS_STALE, dibs__run_begin(&sc, A, "x2", err));
    CHECK(DIBS_OK, dibs__run_begin(&sc, A, who.nonce, err));
    expect(A, DIBS__STATE_RUNNING);
    done();

    make_job(1);
    job.lock.key = "k";
    begin_run("j.1");
    claim(A);
    end(A, &busy);
    expect_run(DIBS__STATE_SKIPPED);
    done();
}

/* The lock came too late: nothing was started, so nothing ended well. */
static void test_late_after_the_lock(void **unused)
{
    static const dibs__outcome late = {.reason = DIBS__REASON_LATE};

    (void)unused;
    make_job(1);
    job.lock.key = "k";
    begin_run("j.1");
    claim(A);
    end(A, &late);
    expect_run(DIBS__STATE_MISSED);
    done();
}

/* A node that waits for the lock gives the step back when it stops. */
static void test_stop_before_the_lock(void **unused)
{
    static const dibs__outcome stopped = {.reason = DIBS__REASON_STOPPED};

    (void)unused;
    make_job(1);
    job.lock.key = "k";
    begin_run("j.1");
    claim(A);
    end(A, &stopped);
    expect(A, DIBS__STATE_READY);
    assert_int_equal(run.steps[A].attempt, 0);
    assert_int_equal(run.attempt_count, 0);
    claim(A);
    CHECK(DIBS_OK, dibs__run_begin(&sc, A, who.nonce, err));
    end(A, &stopped);
    expect_run(DIBS__STATE_FAILED);
    done();
}

static void test_cancel(void **unused)
{
    (void)unused;
    make_job(3);
    need(B, A);
    need(C, B);
    steps[C].when = DIBS__WHEN_ALWAYS;
    begin_run("j.1");
    claim(A);
    dibs__run_noted(&run, 1);
    CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    expect(A, DIBS__STATE_RUNNING);
    expect(B, DIBS__STATE_CANCELLED);
    assert_true(run.steps[A].cancel);
    dibs__scene_write(&sc);
    assert_non_null(find_change(DIBS__INTENT_TELL, "node/n1"));
    expect(C, DIBS__STATE_READY);
    end(A, &badly);
    expect(A, DIBS__STATE_CANCELLED);
    CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    expect_run(DIBS__STATE_CANCELLED);
    CHECK(DIBS_STALE, dibs__run_cancel(&sc, DIBS__REASON_CANCELLED, err));
    look();
    done();
}

static void test_limits(void **unused)
{
    (void)unused;
    make_job(1);
    job.start_deadline_ms = 10;
    begin_run("j.1");
    assert_int_equal(dibs__run_deadline_at(&run), 1010000);
    sc.now_us = 1010001;
    CHECK(DIBS_STALE, dibs__run_claim(&sc, A, &who, err));
    CHECK(DIBS_OK, dibs__run_deadline(&sc, err));
    expect_run(DIBS__STATE_MISSED);
    done();

    make_job(2);
    need(B, A);
    job.run_timeout_ms = 10;
    begin_run("j.1");
    claim(A);
    sc.now_us = 1010001;
    CHECK(DIBS_OK, dibs__run_deadline(&sc, err));
    assert_true(run.steps[A].cancel);
    expect(B, DIBS__STATE_SKIPPED);
    assert_int_equal(dibs__run_deadline_at(&run), 0);
    end(A, &badly);
    expect_run(DIBS__STATE_FAILED);
    assert_int_equal(run.reason, DIBS__REASON_TIMEOUT);
    done();
}

/* The run of a `job` step goes on to its end, as a command does. */
static void test_a_child_of_a_run_that_fails(void **unused)
{
    dibs__run child;

    (void)unused;
    make_job(2);
    steps[A].kind = DIBS__STEP_JOB;
    steps[A].job = "other";
    begin_run("j.1");
    expect(A, DIBS__STATE_WAITING);
    claim(B);
    end(B, &badly);
    expect(A, DIBS__STATE_WAITING);
    expect_run(DIBS__STATE_ACTIVE);
    CHECK(DIBS_OK, dibs__run_make(&child, "other.1", &job, "h", err));
    child.state = DIBS__STATE_OK;
    CHECK(DIBS_OK, dibs__run_child(&sc, A, &child, err));
    expect(A, DIBS__STATE_OK);
    expect_run(DIBS__STATE_FAILED);
    dibs__run_fini(&child);
    done();
}

static void test_waits(void **unused)
{
    (void)unused;
    make_job(3);
    need(B, A);
    need(C, B);
    steps[A].kind = DIBS__STEP_SLEEP;
    steps[A].sleep_ms = 5;
    steps[B].kind = DIBS__STEP_WAIT;
    steps[B].wait.bookmark = "ok";
    steps[B].wait.timeout_ms = 50;
    begin_run("j.1");
    CHECK(DIBS_BUSY, dibs__run_bookmark(&sc, "ok", "1", 1, "me", err));
    CHECK(DIBS_STALE, dibs__run_resume(&sc, err));
    assert_int_equal(dibs__run_resume_at(&run), 1005000);
    sc.now_us = 1005000;
    CHECK(DIBS_OK, dibs__run_resume(&sc, err));
    expect(B, DIBS__STATE_WAITING);
    assert_int_equal(dibs__run_deadline_at(&run), 1055000);
    CHECK(DIBS_NOTFOUND, dibs__run_bookmark(&sc, "no", "1", 1, "me", err));
    CHECK(DIBS_OK, dibs__run_bookmark(&sc, "ok", "1", 1, "me", err));
    CHECK(DIBS_STALE, dibs__run_bookmark(&sc, "ok", "2", 1, "you", err));
    assert_string_equal(run.steps[B].result, "1");
    expect(C, DIBS__STATE_READY);
    look();
    done();
}

/* A file is refused for it; runs of the store may have it. A lost answer is of one of them. */
static void test_two_steps_with_one_bookmark(void **unused)
{
    size_t i = 9;

    (void)unused;
    make_job(3);
    need(C, B);
    steps[A].kind = steps[C].kind = DIBS__STEP_WAIT;
    steps[A].wait.bookmark = steps[C].wait.bookmark = "ok";
    begin_run("j.1");
    assert_true(dibs__run_find_bookmark(&sc, "ok", "n1", &i));
    assert_int_equal(i, A);
    CHECK(DIBS_OK, dibs__run_bookmark(&sc, "ok", "1", 1, "me", err));
    (void)snprintf(run.steps[A].nonce, sizeof(run.steps[A].nonce), "n1");
    CHECK(DIBS_STALE, dibs__run_bookmark(&sc, "ok", "2", 1, "you", err));
    claim(B);
    end(B, &well);
    expect(C, DIBS__STATE_WAITING);
    assert_true(dibs__run_find_bookmark(&sc, "ok", "n1", &i));
    assert_int_equal(i, A);
    CHECK(DIBS_OK, dibs__run_bookmark(&sc, "ok", "2", 1, "you", err));
    assert_string_equal(run.steps[C].result, "2");
    expect_run(DIBS__STATE_OK);
    assert_false(dibs__run_find_bookmark(&sc, "no", "n1", &i));
    done();
}

static void test_rerun_from_a_step(void **unused)
{
    dibs__run older;

    (void)unused;
    make_job(3);
    need(B, A);
    need(C, B);
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK,
          dibs__run_end(&sc, A, who.nonce,
                        &(dibs__outcome){.result = "r", .result_len = 1}, err));
    claim(B);
    end(B, &badly);
    older = run;
    CHECK(DIBS_OK, dibs__run_make(&run, "j.2", &job, "h", err));
    CHECK(DIBS_NOTFOUND, dibs__run_rerun(&job, &run, &older, "x", err));
    CHECK(DIBS_OK, dibs__run_rerun(&job, &run, &older, "b", err));
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    expect(A, DIBS__STATE_OK);
    assert_string_equal(run.steps[A].result, "r");
    expect(B, DIBS__STATE_READY);
    look();
    dibs__run_fini(&older);
    done();
}

/* It does the same work again, and is not late by it. */
static void test_rerun_of_a_tick(void **unused)
{
    char tick[DIBS__TICK_TEXT_SIZE];
    dibs__run older;

    (void)unused;
    make_job(1);
    job.start_deadline_ms = 5000;
    begin_run("j@x");
    dibs__run_tick_text(&run, tick);
    assert_string_equal(tick, "");
    claim(A);
    end(A, &badly);
    run.cause = DIBS__CAUSE_TICK;
    run.tick_s = 1;
    older = run;
    CHECK(DIBS_OK, dibs__run_make(&run, "j.2", &job, "h", err));
    CHECK(DIBS_OK, dibs__run_rerun(&job, &run, &older, NULL, err));
    sc.now_us = 60000000;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    dibs__run_tick_text(&run, tick);
    assert_string_equal(tick, "1970-01-01T00:00:01Z");
    assert_int_equal(dibs__run_due_us(&older), 1000000);
    assert_int_equal(dibs__run_due_us(&run), 60000000);
    assert_int_equal(run.start_by_us, 65000000);
    dibs__run_fini(&older);
    done();
}

/* A record that is too long loses results, and not its state. */
static void test_results_that_do_not_fit(void **unused)
{
    static char big[DIBS__RUN_RESULT_MAX];
    static dibs__step many[100];

    (void)unused;
    make_job(1);
    memset(big, '\1', sizeof(big)); /* Six bytes each in JSON. */
    for (int i = 0; i < 100; i++) {
        many[i] = steps[A];
        many[i].name = "s";
    }
    job.steps = many;
    job.step_count = 100;
    begin_run("j.1");
    for (int i = 0; i < 100; i++)
        CHECK(DIBS_OK, dibs__step_result(&run.steps[i], big, sizeof(big), err));
    dibs__scene_write(&sc);
    assert_true(dibs__intent_ok(&in));
    assert_true(find_change(DIBS__INTENT_PUT, "run/j.1")->len <=
                DIBS__RUN_JSON_MAX);
    done();
}

static void give_params(size_t count, char fill)
{
    static char value[4096];

    memset(value, fill, sizeof(value) - 1);
    for (size_t i = 0; i < count; i++) {
        char name[24];

        (void)snprintf(name, sizeof(name), "p%zu", i);
        CHECK(DIBS_OK, dibs__run_param(&run, name, value, err));
    }
}

/* A run begins only if its record has room for all that comes. */
static void test_params_that_do_not_fit(void **unused)
{
    (void)unused;
    for (size_t count = 60; count < 64; count++) {
        make_job(5);
        CHECK(DIBS_OK, dibs__run_make(&run, "j.1", &job, "h", err));
        give_params(count, 'x');
        CHECK(count < 63 ? DIBS_OK : DIBS_INVALID, dibs__run_fits(&run, err));
        done();
    }
    make_job(1);
    CHECK(DIBS_OK, dibs__run_make(&run, "j.1", &job, "h", err));
    give_params(12, '\1'); /* Six bytes each in JSON. */
    CHECK(DIBS_INVALID, dibs__run_fits(&run, err));
    done();
}

/* A record that has no room is told from one for which memory was short. */
static void test_a_record_that_is_too_long(void **unused)
{
    (void)unused;
    make_job(1);
    begin_run("j.1");
    give_params(64, 'x');
    dibs__scene_write(&sc);
    assert_false(dibs__intent_ok(&in));
    assert_true(in.too_long);
    done();
}

static size_t count_changes(dibs__intent_verb verb, const char *key)
{
    size_t count = 0;

    for (size_t i = 0; i < in.change_count; i++)
        count +=
            in.changes[i].verb == verb && strcmp(in.changes[i].key, key) == 0;
    return count;
}

/* Two members of any jobs; it completes once, with the end of the last. */
/* The index says whether a member ended well, also when its end comes late. */
static void test_ends_of_members(void **unused)
{
    (void)unused;
    make_job(1);
    job.on_lost = DIBS__LOST_FINISH;
    begin_run("j.1");
    memcpy(run.batch, "b1", sizeof("b1"));
    claim(A);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    dibs__scene_write(&sc);
    assert_false(
        dibs__batch_well(find_change(DIBS__INTENT_ENTER, "batch/b1")->at));
    dibs__intent_fini(&in);
    dibs__run_noted(&run, 9);
    sc.now_us = 3000001;
    end(A, &well);
    dibs__scene_write(&sc);
    assert_true(
        dibs__batch_well(find_change(DIBS__INTENT_ENTER, "batch/b1")->at));
    assert_int_equal(count_changes(DIBS__INTENT_ENTER, "resume"), 0);
    done();
}

static void test_batch(void **unused)
{
    const dibs__intent_change *put;
    dibs__batch batch, back;

    (void)unused;
    make_job(1);
    dibs__batch_init(&batch, "b1");
    for (int i = 0; i < 2; i++) {
        CHECK(DIBS_OK, dibs__run_make(&run, "j.1", &job, "h", err));
        CHECK(DIBS_OK, dibs__batch_join(&batch, &run, err));
        if (i == 0)
            dibs__run_fini(&run);
    }
    CHECK(DIBS_INVALID, dibs__batch_expect(&batch, 1, err));
    CHECK(DIBS_OK, dibs__batch_expect(&batch, 2, err));
    CHECK(DIBS_INVALID, dibs__batch_expect(&batch, 3, err));
    CHECK(DIBS_FULL, dibs__batch_join(&batch, &run, err));
    sc = (dibs__scene){.job = &job, .run = &run, .now_us = 1000000, .in = &in};
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    claim(A);
    end(A, &well);
    dibs__scene_write(&sc);
    assert_non_null(find_change(DIBS__INTENT_ENTER, "batch/b1"));
    assert_string_equal(find_change(DIBS__INTENT_ENTER, "resume")->member,
                        "batch/b1");
    dibs__intent_fini(&in);
    dibs__batch_wait(&batch, "w.1");
    dibs__batch_wait(&batch, "w.1");
    dibs__batch_wait(&batch, "w.2");
    assert_false(dibs__batch_look(&batch, 1, 7, &in));
    dibs__batch_commit(&batch, 5, &in);
    assert_true(find_change(DIBS__INTENT_ENTER, "trim")->at ==
                5 + DIBS__BATCH_FORGET_US);
    put = find_change(DIBS__INTENT_PUT, "batch/b1");
    CHECK(DIBS_OK, dibs__batch_read(&back, "b1", put->data, put->len, 9, err));
    assert_int_equal(back.waiter_count, 2);
    assert_int_equal(back.made_us, 5);
    dibs__intent_fini(&in);
    assert_true(dibs__batch_look(&back, 2, 7, &in));
    assert_int_equal(count_changes(DIBS__INTENT_ENTER, "resume"), 2);
    dibs__batch_commit(&back, 7, &in);
    assert_int_equal(in.checks[0].version, 9);
    assert_true(find_change(DIBS__INTENT_ENTER, "trim")->at ==
                dibs__batch_gone_us(&back));
    assert_int_equal(back.made_us, 5);
    dibs__intent_fini(&in);
    assert_true(dibs__batch_look(&back, 2, 8, &in));
    assert_int_equal(back.complete_us, 7);
    assert_int_equal(count_changes(DIBS__INTENT_ENTER, "resume"), 0);
    CHECK(DIBS_INVALID,
          dibs__batch_read(&back, "b1", "{\"of\":-1}", 9, 1, err));
    done();
}

/* A step that is a run of another job: made once, waited for, its result passed on. */
/* A run with the limit of its parent, admitted at 1 s: the earlier of both holds. */
static void expect_limit(int64_t parent_us, int64_t timeout_ms, int64_t end_us)
{
    make_job(1);
    job.run_timeout_ms = timeout_ms;
    CHECK(DIBS_OK, dibs__run_make(&run, "j.1", &job, "h", err));
    run.end_by_us = parent_us;
    sc = (dibs__scene){.job = &job, .run = &run, .now_us = 1000000, .in = &in};
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    assert_int_equal(run.end_by_us, end_us);
    done();
}

static void test_child_has_the_limit_of_its_parent(void **unused)
{
    (void)unused;
    expect_limit(0, DIBS__JOB_NONE, 0);
    expect_limit(0, 1000, 2000000);
    expect_limit(5000000, DIBS__JOB_NONE, 5000000);
    expect_limit(5000000, 1000, 2000000);
    expect_limit(1500000, 1000, 1500000);
}

static void test_child(void **unused)
{
    static dibs__step other_step = {.name = "main",
                                    .kind = DIBS__STEP_RUN,
                                    .work = {.retry = {.attempts = 1}}};
    static dibs__param other_param = {.name = "region", .required = true};
    static dibs__pair with = {.name = "region", .value = "${param.r}-1"};
    dibs__job other = {.name = "load",
                       .params = {.at = &other_param, .count = 1},
                       .steps = &other_step,
                       .step_count = 1};
    dibs__run child, again;

    (void)unused;
    make_job(1);
    steps[A].kind = DIBS__STEP_JOB;
    steps[A].job = "load";
    CHECK(DIBS_OK, dibs__run_make(&run, "j.1", &job, "h", err));
    CHECK(DIBS_OK, dibs__run_param(&run, "r", "eu", err));
    sc = (dibs__scene){.job = &job, .run = &run, .now_us = 1000000, .in = &in};
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
    expect(A, DIBS__STATE_WAITING);
    assert_int_equal(dibs__run_resume_at(&run), 1000000);
    CHECK(DIBS_INVALID,
          dibs__child_make(&job, &run, A, &other, "h2", &child, err));
    dibs__run_fini(&child);
    steps[A].with = (dibs__pairs){.at = &with, .count = 1};
    CHECK(DIBS_OK, dibs__child_make(&job, &run, A, &other, "h2", &child, err));
    CHECK(DIBS_OK, dibs__child_make(&job, &run, A, &other, "h2", &again, err));
    assert_string_equal(child.id, again.id);
    assert_string_equal(child.params[0].value, "eu-1");
    assert_int_equal(child.end_by_us, 0);
    dibs__run_fini(&again);
    run.end_by_us = 7000000;
    CHECK(DIBS_OK, dibs__child_make(&job, &run, A, &other, "h2", &again, err));
    assert_int_equal(again.end_by_us, 7000000);
    dibs__run_fini(&again);
    assert_false(dibs__run_saw_child(&run.steps[A]));
    CHECK(DIBS_OK, dibs__run_child(&sc, A, &child, err));
    assert_true(dibs__run_saw_child(&run.steps[A]));
    assert_int_equal(dibs__run_resume_at(&run), 1000000 + 5000000);
    child.steps[0].state = DIBS__STATE_OK;
    child.state = DIBS__STATE_OK;
    CHECK(DIBS_OK, dibs__step_result(&child.steps[0], "r", 1, err));
    CHECK(DIBS_OK, dibs__run_child(&sc, A, &child, err));
    expect_run(DIBS__STATE_OK);
    assert_string_equal(run.steps[A].result, "r");
    CHECK(DIBS_STALE, dibs__run_unmade(&sc, A, err));
    look();
    dibs__run_fini(&child);
    done();
}

static void test_runs_that_follow(void **unused)
{
    const char *names[] = {"next", NULL};
    dibs__job next = {.name = "next", .steps = steps, .step_count = 1};
    dibs__run then;

    (void)unused;
    make_job(1);
    job.then.ok = (dibs__texts){.at = names, .count = 1};
    begin_run("j.1");
    assert_int_equal(dibs__then_jobs(&job, &run)->count, 0);
    claim(A);
    end(A, &well);
    assert_true(run.owes);
    assert_int_equal(dibs__run_resume_at(&run), run.ended_us);
    assert_string_equal(dibs__then_jobs(&job, &run)->at[0], "next");
    CHECK(DIBS_OK, dibs__then_make(&run, &next, "h", &then, err));
    assert_string_equal(then.origin, "j.1");
    dibs__run_fini(&then);
    dibs__run_followed(&sc, &run);
    assert_int_equal(dibs__run_resume_at(&run), 0);
    done();
}

/* A sweep makes what follows a lost run, while the run ends well after all: the run still owes
 * what follows that. */
static void test_a_late_end_is_followed(void **unused)
{
    const char *names[] = {"next", NULL};
    dibs__run lost;

    (void)unused;
    make_job(1);
    job.on_lost = DIBS__LOST_FINISH;
    job.then.ok = job.then.failed = (dibs__texts){.at = names, .count = 1};
    begin_run("j.1");
    claim(A);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    assert_true(run.owes);
    lost = run;
    sc.now_us++;
    CHECK(DIBS_OK, dibs__run_end(&sc, A, who.nonce, &well, err));
    expect_run(DIBS__STATE_OK);
    dibs__run_followed(&sc, &lost);
    assert_true(run.owes);
    assert_int_equal(dibs__run_resume_at(&run), run.ended_us);
    dibs__run_followed(&sc, &run);
    assert_false(run.owes);
    done();
}

/* The runs of its steps are to be cancelled too, whoever ended it; those that were not begun
 * have none. */
static void test_a_cancelled_run_leaves_children(void **unused)
{
    (void)unused;
    for (int begun = 0; begun < 2; begun++) {
        make_job(2);
        steps[B].kind = DIBS__STEP_JOB;
        steps[B].job = "load";
        need(B, A);
        begin_run("j.1");
        claim(A);
        if (begun)
            end(A, &well);
        CHECK(DIBS_OK, dibs__run_cancel(&sc, DIBS__REASON_REPLACED, err));
        if (!begun)
            end(A, &badly);
        expect_run(DIBS__STATE_CANCELLED);
        assert_int_equal(run.owes, begun);
        assert_int_equal(dibs__run_resume_at(&run), begun ? run.ended_us : 0);
        dibs__run_followed(&sc, &run);
        assert_false(run.owes);
        done();
    }
}

static bool
goes(dibs__history_look *at, dibs__run_state end_state, int64_t ended_us)
{
    run.state = end_state;
    run.ended_us = ended_us;
    return dibs__history_goes(at, &run);
}

/* The living and those that owe others stay, whatever the limits are; runs that did nothing
 * push no others out. */
static void test_cleanup_spares_the_living(void **unused)
{
    const dibs__history limits = {.ok = 1, .failed = 2, .keep_ms = 1};
    dibs__history_look at = {.limits = &limits, .now_us = 10000};

    (void)unused;
    make_job(1);
    begin_run("j.1");
    assert_false(goes(&at, DIBS__STATE_ACTIVE, 0));
    assert_false(goes(&at, DIBS__STATE_OK, 9900));
    assert_false(goes(&at, DIBS__STATE_FAILED, 9800));
    assert_true(goes(&at, DIBS__STATE_OK, 9700));
    assert_false(goes(&at, DIBS__STATE_CANCELLED, 9600));
    assert_true(goes(&at, DIBS__STATE_FAILED, 9500));
    run.owes = true;
    assert_false(goes(&at, DIBS__STATE_OK, 1));
    run.owes = false;
    at = (dibs__history_look){.limits = &limits, .now_us = 10000};
    assert_false(goes(&at, DIBS__STATE_SKIPPED, 9900));
    assert_true(goes(&at, DIBS__STATE_MISSED, 9800));
    assert_true(goes(&at, DIBS__STATE_SKIPPED, 9700));
    assert_false(goes(&at, DIBS__STATE_FAILED, 9600));
    assert_false(goes(&at, DIBS__STATE_OK, 9500));
    at = (dibs__history_look){.limits = &limits, .now_us = 10000};
    assert_true(goes(&at, DIBS__STATE_OK, 1));
    run.steps[A].attempt = 2;
    run.version = 5;
    dibs__history_drop(&run, &in);
    assert_int_equal(in.checks[0].version, 5);
    assert_non_null(find_change(DIBS__INTENT_DELETE, "run/j.1"));
    assert_non_null(find_change(DIBS__INTENT_DELETE, "out/j.1/a/2"));
    assert_non_null(find_change(DIBS__INTENT_LEAVE, "runs/j"));
    done();
}

/* It is not known how far the steps of a run came whose record has expired. */
static void test_outputs_of_an_expired_run_go(void **unused)
{
    (void)unused;
    make_job(1);
    steps[A].work.retry.attempts = 2;
    CHECK(DIBS_OK, dibs__history_forget(&job, "j.1", &in, err));
    assert_int_equal(in.checks[0].version, 0);
    assert_non_null(find_change(DIBS__INTENT_DELETE, "out/j.1/a/2"));
    assert_non_null(find_change(DIBS__INTENT_LEAVE, "runs/j"));
    done();
}

/* Every node has another rank for a name, and each is the first for some. */
static void test_ranks(void **unused)
{
    static const char *const nodes[] = {"n1", "n2", "n3"};
    size_t first[3] = {0};

    (void)unused;
    for (int i = 0; i < 60; i++) {
        char name[16];
        size_t sum = 0;

        (void)snprintf(name, sizeof(name), "job-%d", i);
        for (size_t k = 0; k < 3; k++) {
            size_t rank = dibs__node_rank(name, nodes[k], nodes, 3);

            sum += rank;
            first[k] += rank == 0;
        }
        assert_int_equal(sum, 3);
    }
    assert_true(first[0] && first[1] && first[2]);
    assert_int_equal(dibs__rank_delay_ms(0), 0);
    assert_int_equal(dibs__rank_delay_ms(2), 200);
    assert_int_equal(dibs__rank_delay_ms(90), 500);
}

/* airflow 24906, 42553, 32289: two find the same loss. airflow 12396: a result that was
 * accepted stays. elsa 5045: a step of another node is left alone. */
static void test_peer_two_sweepers_one_loss(void **unused)
{
    (void)unused;
    make_job(1);
    steps[A].work.retry.attempts = 2;
    steps[A].work.retry.on = DIBS__RETRY_LOST;
    begin_run("j.1");
    claim(A);
    assert_status(dibs__run_lost(&sc, A, 8, NULL), DIBS_STALE);
    CHECK(DIBS_OK, dibs__run_lost(&sc, A, 7, err));
    expect(A, DIBS__STATE_RETRY);
    assert_status(dibs__run_lost(&sc, A, 7, NULL), DIBS_STALE);
    assert_int_equal(run.steps[A].attempt, 1);
    assert_status(dibs__run_end(&sc, A, who.nonce, &well, NULL), DIBS_STALE);
    sc.now_us += INT64_C(3600) * 1000000;
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    assert_status(dibs__run_retry(&sc, NULL), DIBS_STALE);
    claim(A);
    assert_int_equal(run.steps[A].attempt, 2);
    end(A, &well);
    assert_status(dibs__run_lost(&sc, A, 7, NULL), DIBS_STALE);
    expect_run(DIBS__STATE_OK);
    done();
}

/* temporal 11281: the deadline of a start holds for retries, too. */
static void test_peer_deadline_counts_on_retry(void **unused)
{
    (void)unused;
    make_job(1);
    steps[A].work.retry.attempts = 9;
    steps[A].work.retry.on = DIBS__RETRY_FAILED;
    job.start_deadline_ms = 5000;
    begin_run("j.1");
    assert_true(run.start_by_us > 0);
    claim(A);
    assert_int_equal(in.not_after_us, run.start_by_us);
    end(A, &badly);
    expect(A, DIBS__STATE_RETRY);
    sc.now_us = run.start_by_us;
    CHECK(DIBS_OK, dibs__run_retry(&sc, err));
    sc.now_us = run.start_by_us + 1;
    assert_status(dibs__run_claim(&sc, A, &who, NULL), DIBS_STALE);
    CHECK(DIBS_OK, dibs__run_deadline(&sc, err));
    expect_run(DIBS__STATE_FAILED);
    assert_int_equal(run.steps[A].attempt, 1);
    done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_two_sweepers_one_loss),
        cmocka_unit_test(test_peer_deadline_counts_on_retry),
        cmocka_unit_test(test_fan_in_once),
        cmocka_unit_test(test_fan_in_of_all_once),
        cmocka_unit_test(test_policies_of_failure),
        cmocka_unit_test(test_when_failed),
        cmocka_unit_test(test_retry_and_backoff),
        cmocka_unit_test(test_jitter_of_long_pauses),
        cmocka_unit_test(test_late_results),
        cmocka_unit_test(test_results_of_others),
        cmocka_unit_test(test_lock_of_the_job),
        cmocka_unit_test(test_a_child_of_a_run_that_fails),
        cmocka_unit_test(test_late_after_the_lock),
        cmocka_unit_test(test_stop_before_the_lock),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_two_steps_with_one_bookmark),
        cmocka_unit_test(test_rerun_from_a_step),
        cmocka_unit_test(test_rerun_of_a_tick),
        cmocka_unit_test(test_results_that_do_not_fit),
        cmocka_unit_test(test_params_that_do_not_fit),
        cmocka_unit_test(test_a_record_that_is_too_long),
        cmocka_unit_test(test_ends_of_members),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_child_has_the_limit_of_its_parent),
        cmocka_unit_test(test_runs_that_follow),
        cmocka_unit_test(test_a_late_end_is_followed),
        cmocka_unit_test(test_a_cancelled_run_leaves_children),
        cmocka_unit_test(test_cleanup_spares_the_living),
        cmocka_unit_test(test_outputs_of_an_expired_run_go),
        cmocka_unit_test(test_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
