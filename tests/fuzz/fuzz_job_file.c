/* fuzz_job_file.c - jobs files: a note has a place, a file with a mistake gives nothing,
 * and the JSON of a definition reads back as the same. Text that begins with a brace
 * is also read as such a JSON. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "jobs/job_file.h"
#include "jobs/job_json.h"

static void check_note(void *arg, bool warning, size_t line, size_t column,
                       const char *message)
{
    size_t *mistakes = arg;

    REQUIRE(line > 0 && column > 0 && message[0]);
    REQUIRE(!strchr(message, '\n') || strchr(message, '\''));
    *mistakes += !warning;
}

/* Needs are of steps that are there, and no step comes back to itself. */
static void check_steps(const dibs__job *job)
{
    uint64_t done[DIBS__JOB_NEEDS_WORDS] = {0};
    size_t left = job->step_count, before;

    REQUIRE(left > 0 && left <= DIBS__JOB_STEPS_MAX);
    do {
        before = left;
        for (size_t i = 0; i < job->step_count; i++) {
            bool ready = !(done[i / 64] >> (i % 64) & 1);

            for (size_t w = 0; w < DIBS__JOB_NEEDS_WORDS; w++)
                ready &= (job->steps[i].needs[w] & ~done[w]) == 0;
            if (ready) {
                done[i / 64] |= UINT64_C(1) << (i % 64);
                left--;
            }
        }
    } while (left > 0 && left < before);
    REQUIRE(left == 0);
    for (size_t i = 0; i < job->step_count; i++) {
        const dibs__step *step = &job->steps[i];

        REQUIRE(step->kind != DIBS__STEP_NOTHING && step->name);
        REQUIRE(step->kind != DIBS__STEP_RUN || step->work.run.count > 0);
        REQUIRE(step->kind != DIBS__STEP_SHELL || step->work.shell);
        REQUIRE(step->kind != DIBS__STEP_CALL || step->work.call);
        REQUIRE(step->kind != DIBS__STEP_JOB || step->job);
        REQUIRE(step->kind != DIBS__STEP_WAIT ||
                !step->wait.bookmark != !step->wait.batch);
    }
}

/* `fits`: the JSON must not be too large. */
static void check_job(const dibs__job *job, bool fits)
{
    dibs__job *again = NULL;
    dibsx_buf json, same;

    check_steps(job);
    dibsx_buf_init(&json, 64 * DIBS__JOB_JSON_MAX);
    dibsx_buf_init(&same, 64 * DIBS__JOB_JSON_MAX);
    dibs__job_json(job, &json);
    REQUIRE(dibsx_buf_ok(&json));
    if (json.len > DIBS__JOB_JSON_MAX) {
        REQUIRE(!fits);
        dibsx_buf_fini(&json);
        return;
    }
    REQUIRE(dibs__job_from_json(dibsx_buf_text(&json), json.len, &again,
                                NULL) == DIBS_OK);
    dibs__job_json(again, &same);
    REQUIRE(strcmp(dibsx_buf_text(&json), dibsx_buf_text(&same)) == 0);
    dibs__job_free(again);
    dibsx_buf_fini(&json);
    dibsx_buf_fini(&same);
}

/* A definition of the store may be larger when it is written with defaults. */
static void check_json(const uint8_t *data, size_t size)
{
    dibs__job *job = NULL;

    if (dibs__job_from_json((const char *)data, size, &job, NULL) == DIBS_OK)
        check_job(job, false);
    dibs__job_free(job);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t mistakes = 0;
    const dibs__job_sink sink = {check_note, &mistakes};
    dibs__job_file file;
    dibs_status rc = dibs__job_file_read((const char *)data, size, "f.yaml",
                                         &sink, &file, NULL);

    REQUIRE(rc == DIBS_OK || rc == DIBS_INVALID);
    REQUIRE((rc == DIBS_OK) == (mistakes == 0));
    REQUIRE(rc == DIBS_OK || file.count == 0);
    for (size_t i = 0; i < file.count; i++)
        check_job(file.entries[i].job, true);
    dibs__job_file_fini(&file);
    if (size > 0 && data[0] == '{')
        check_json(data, size);
    return 0;
}
