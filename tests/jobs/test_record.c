/* test_record.c - records of runs and states of jobs: written, read again, and refused. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "check.h"
#include "jobs/state.h"

#include <stdio.h>
#include <string.h>

static dibs__step two_steps[] = {
    {.name = "extract", .kind = DIBS__STEP_RUN},
    {.name = "load", .kind = DIBS__STEP_CALL, .work = {.call = "load"}},
};
static dibs__job two = {.name = "etl", .steps = two_steps, .step_count = 2};

static void make_run(dibs__run *run)
{
    CHECK(DIBS_OK, dibs__run_make(run, "etl@20261115T020000Z", &two,
                                  "0123456789abcdef", err));
    run->made_us = 1794708000000001;
    run->tick_s = 1794708000;
    run->state = DIBS__STATE_ACTIVE;
    CHECK(DIBS_OK, dibs__run_param(run, "region", "e\"u", err));
    run->steps[0].state = DIBS__STATE_RUNNING;
    run->steps[0].attempt = 2;
    run->steps[0].fence = UINT64_C(9007199254740991);
    (void)snprintf(run->steps[0].node, DIBS__NODE_SIZE, "00112233445566aa");
    (void)snprintf(run->steps[0].nonce, DIBS__NONCE_SIZE, "aabbccddeeff");
    CHECK(DIBS_OK, dibs__step_result(&run->steps[1], "a\0b", 3, err));
    run->attempts[run->attempt_count++] =
        (dibs__run_attempt){.step = 0,
                            .attempt = 1,
                            .reason = DIBS__REASON_LOST,
                            .exit_code = -1,
                            .ended_us = 5};
}

static void test_reads_what_it_wrote(void **unused)
{
    dibs__run run, back;
    dibsx_buf first, second;

    (void)unused;
    make_run(&run);
    dibsx_buf_init(&first, DIBS__RUN_JSON_MAX);
    dibsx_buf_init(&second, DIBS__RUN_JSON_MAX);
    dibs__run_write(&run, &first);
    CHECK(DIBS_OK, dibs__run_read(&back, run.id, first.data, first.len, err));
    dibs__run_write(&back, &second);
    assert_string_equal(dibsx_buf_text(&first), dibsx_buf_text(&second));
    assert_int_equal(back.steps[0].state, DIBS__STATE_RUNNING);
    assert_int_equal(back.steps[0].fence, run.steps[0].fence);
    assert_string_equal(back.steps[1].label, "call/load");
    assert_int_equal(back.steps[1].result_len, 3);
    assert_memory_equal(back.steps[1].result, "a\0b", 3);
    assert_int_equal(back.attempts[0].exit_code, -1);
    assert_string_equal(back.params[0].value, "e\"u");
    dibsx_buf_fini(&first);
    dibsx_buf_fini(&second);
    dibs__run_fini(&run);
    dibs__run_fini(&back);
}

/* Bytes that are no text come back as they were. */
static void test_results_of_any_bytes(void **unused)
{
    static const char bytes[] = "\xff\0\xc3(\x80";
    dibs__run run, back;
    dibsx_buf json;

    (void)unused;
    make_run(&run);
    CHECK(DIBS_OK,
          dibs__step_result(&run.steps[1], bytes, sizeof(bytes) - 1, err));
    dibsx_buf_init(&json, DIBS__RUN_JSON_MAX);
    dibs__run_write(&run, &json);
    assert_non_null(
        strstr(dibsx_buf_text(&json), "\"result_base64\":\"/wDDKIA=\""));
    CHECK(DIBS_OK, dibs__run_read(&back, run.id, json.data, json.len, err));
    assert_int_equal(back.steps[1].result_len, sizeof(bytes) - 1);
    assert_memory_equal(back.steps[1].result, bytes, sizeof(bytes) - 1);
    dibsx_buf_fini(&json);
    dibs__run_fini(&run);
    dibs__run_fini(&back);
}

static void test_refuses_what_is_no_record(void **unused)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"job\":\"a\",\"steps\":[]}",
        "{\"job\":\"a\",\"steps\":[1]}",
        "{\"job\":\"a\",\"steps\":[{\"name\":\"m\"}]}",
        "{\"job\":\"a\",\"steps\":[{\"name\":\"m\",\"state\":\"OK\"}]}",
        "{\"job\":\"a\",\"steps\":[{\"name\":\"m\",\"state\":\"RUNNING\"}]}",
        "{\"job\":\"a\",\"state\":\"OK\",\"ended_us\":1,"
        "\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\"}]}",
        "{\"job\":\"a\",\"made_us\":1.5,"
        "\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\"}]}",
        "{\"job\":\"a\\u0000b\","
        "\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\"}]}",
        "{\"job\":\"a\",\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\","
        "\"result_base64\":\"no\"}]}",
        "{\"job\":\"a\",\"state\":\"NEVER\","
        "\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\"}]}",
    };
    static const char good[] =
        "{\"job\":\"a\",\"later\":{},"
        "\"steps\":[{\"name\":\"m\",\"state\":\"PENDING\"}]}";
    dibs__run run;

    (void)unused;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK(DIBS_INVALID,
              dibs__run_read(&run, "r", bad[i], strlen(bad[i]), err));
    CHECK(DIBS_OK, dibs__run_read(&run, "r", good, strlen(good), err));
    dibs__run_fini(&run);
}

/* Whatever allocation fails, the read says so and leaves nothing behind. */
static void test_reads_without_memory(void **unused)
{
    dibs__run run;
    dibsx_buf json;
    unsigned long n = 0;
    dibs_status rc;

    (void)unused;
    make_run(&run);
    dibsx_buf_init(&json, DIBS__RUN_JSON_MAX);
    dibs__run_write(&run, &json);
    dibs__run_fini(&run);
    do {
        dibsx_alloc_fail_at(++n);
        rc = dibs__run_read(&run, "r", json.data, json.len, NULL);
        dibsx_alloc_fail_at(0);
        assert_true(rc == DIBS_OK || rc == DIBS_NOMEM);
        dibs__run_fini(&run);
    } while (rc != DIBS_OK);
    assert_true(n > 3);
    dibsx_buf_fini(&json);
}

static void test_ids_of_runs(void **unused)
{
    char one[DIBS__RUN_ID_SIZE], two_ids[DIBS__RUN_ID_SIZE];

    (void)unused;
    dibs__run_id_of_tick("nightly", 1794708000, one);
    assert_string_equal(one, "nightly@20261115T020000Z");
    dibs__run_id_after("load", "a.1", "", one);
    dibs__run_id_after("load", "a.2", "", two_ids);
    assert_int_equal(strlen(one), strlen("load.0123456789ab"));
    assert_string_not_equal(one, two_ids);
}

static void test_state_of_a_job(void **unused)
{
    dibs__job_state state, back;
    dibsx_buf json;

    (void)unused;
    dibs__job_state_init(&state, "etl");
    state.mark_s = 100;
    state.mark_local_s = 3700;
    state.next_s = 160;
    state.due_us = 160 * 1000000;
    state.paused = true;
    (void)snprintf(state.note, sizeof(state.note), "line\nbreak");
    (void)snprintf(state.live, sizeof(state.live), "etl.1");
    dibsx_buf_init(&json, DIBS__STATE_JSON_MAX);
    dibs__job_state_write(&state, &json);
    CHECK(DIBS_OK,
          dibs__job_state_read(&back, "etl", json.data, json.len, err));
    assert_memory_equal(&state, &back, sizeof(state));
    CHECK(DIBS_INVALID, dibs__job_state_read(&back, "etl",
                                             "{\"mark\":5,"
                                             "\"next\":5}",
                                             19, err));
    CHECK(DIBS_INVALID,
          dibs__job_state_read(&back, "etl", "{\"follows\":\"x\"}", 15, err));
    dibsx_buf_fini(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_what_it_wrote),
        cmocka_unit_test(test_results_of_any_bytes),
        cmocka_unit_test(test_refuses_what_is_no_record),
        cmocka_unit_test(test_reads_without_memory),
        cmocka_unit_test(test_ids_of_runs),
        cmocka_unit_test(test_state_of_a_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
