/* run_scene.h - a job of a few commands and a run of it, for the tests of what may happen
 * to runs. Each program has one of its own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_RUN_SCENE_H
#define DIBS_TESTS_RUN_SCENE_H

#include "check.h"
#include "jobs/run_machine.h"

#include <string.h>

enum { A, B, C, D, E };

static dibs__step steps[5];
static dibs__job job;
static dibs__run run;
static dibs__job_state state;
static dibs__intent in;
static dibs__scene sc;
static dibs__claimant who = {.node = "n1", .fence = 7, .nonce = "x1"};
static const dibs__outcome well = {0};
static const dibs__outcome badly = {.reason = DIBS__REASON_FAILED,
                                    .exit_code = 3};

static inline void need(int step, int other)
{
    steps[step].needs[0] |= UINT64_C(1) << other;
    steps[step].need_names.count++;
}

/* A job of so many commands, without needs; tests change it before begin(). */
static inline void make_job(size_t count)
{
    static const char *const names[] = {"a", "b", "c", "d", "e"};

    memset(steps, 0, sizeof(steps));
    for (int i = 0; i < 5; i++) {
        steps[i].name = names[i];
        steps[i].kind = DIBS__STEP_RUN;
        steps[i].wait.timeout_ms = DIBS__JOB_NONE;
        steps[i].work.retry.attempts = 1;
        steps[i].work.retry.factor = 2;
    }
    job = (dibs__job){.name = "j",
                      .enabled = true,
                      .max_running = DIBS__JOB_NONE,
                      .start_deadline_ms = DIBS__JOB_NONE,
                      .run_timeout_ms = DIBS__JOB_NONE,
                      .history = {.keep_ms = 1000},
                      .steps = steps,
                      .step_count = count};
    dibs__job_state_init(&state, "j");
    dibs__intent_init(&in);
}

static inline void begin_run(const char *id)
{
    CHECK(DIBS_OK, dibs__run_make(&run, id, &job, "h", err));
    run.cause = DIBS__CAUSE_HAND;
    sc = (dibs__scene){.job = &job, .run = &run, .now_us = 1000000, .in = &in};
    if (dibs__scene_needs_state(&job))
        sc.state = &state;
    CHECK(DIBS_OK, dibs__run_start(&sc, err));
}

static inline void look(void)
{
    const char *flaw = dibs__run_check(&job, &run);

    if (flaw)
        fail_msg("%s", flaw);
}

static inline void claim(size_t step)
{
    CHECK(DIBS_OK, dibs__run_claim(&sc, step, &who, err));
    look();
}

static inline void end(size_t step, const dibs__outcome *outcome)
{
    CHECK(DIBS_OK, dibs__run_end(&sc, step, who.nonce, outcome, err));
    look();
}

static inline void expect(size_t step, dibs__run_state expected)
{
    assert_string_equal(dibs__run_state_name(run.steps[step].state),
                        dibs__run_state_name(expected));
}

static inline void expect_run(dibs__run_state expected)
{
    assert_string_equal(dibs__run_state_name(run.state),
                        dibs__run_state_name(expected));
}

static inline void done(void)
{
    dibs__run_fini(&run);
    dibs__intent_fini(&in);
}

static inline const dibs__intent_change *
find_change(dibs__intent_verb verb, const char *key)
{
    for (size_t i = 0; i < in.change_count; i++)
        if (in.changes[i].verb == verb && strcmp(in.changes[i].key, key) == 0)
            return &in.changes[i];
    return NULL;
}

#endif
