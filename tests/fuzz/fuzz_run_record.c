/* fuzz_run_record.c - records of runs and states of jobs: what is read has no flaw, and
 * is the same when it is written and read again. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "jobs/batch.h"

static void check_run(const uint8_t *data, size_t size)
{
    dibs__run run, back;
    dibsx_buf first, second;

    dibsx_buf_init(&first, (size_t)8 * DIBS__RUN_JSON_MAX);
    dibsx_buf_init(&second, (size_t)8 * DIBS__RUN_JSON_MAX);
    if (dibs__run_read(&run, "r", data, size, NULL) == DIBS_OK) {
        REQUIRE(!dibs__run_flaw(&run));
        dibs__run_write(&run, &first);
        REQUIRE(dibs__run_read(&back, "r", first.data, first.len, NULL) ==
                DIBS_OK);
        dibs__run_write(&back, &second);
        REQUIRE(first.len == second.len &&
                memcmp(first.data, second.data, first.len) == 0);
        dibs__run_fini(&back);
    }
    dibs__run_fini(&run);
    dibsx_buf_fini(&first);
    dibsx_buf_fini(&second);
}

static void check_state(const uint8_t *data, size_t size)
{
    dibs__job_state state, back;
    dibsx_buf json;

    dibsx_buf_init(&json, (size_t)8 * DIBS__STATE_JSON_MAX);
    if (dibs__job_state_read(&state, "j", data, size, NULL) == DIBS_OK) {
        dibs__job_state_write(&state, &json);
        REQUIRE(dibs__job_state_read(&back, "j", json.data, json.len, NULL) ==
                DIBS_OK);
        REQUIRE(memcmp(&state, &back, sizeof(state)) == 0);
    }
    dibsx_buf_fini(&json);
}

static void check_batch(const uint8_t *data, size_t size)
{
    dibs__batch batch;

    if (dibs__batch_read(&batch, "b", data, size, 1, NULL) == DIBS_OK)
        REQUIRE(batch.waiter_count <= DIBS__BATCH_WAITERS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_run(data, size);
    check_state(data, size);
    check_batch(data, size);
    return 0;
}
