/* state.c - the state of a job as JSON. */
/* SPDX-License-Identifier: MIT */
#include "jobs/state.h"
#include "base/fail.h"
#include "jobs/fields.h"

#include <stdio.h>
#include <string.h>

static const dibs__field fields[] = {
    DIBS__TEXT("hash", dibs__job_state, hash),
    DIBS__TEXT("set", dibs__job_state, set),
    DIBS__NUMBER("anchor", I64, dibs__job_state, anchor_s),
    DIBS__NUMBER("mark", I64, dibs__job_state, mark_s),
    DIBS__NUMBER("mark_local", I64, dibs__job_state, mark_local_s),
    DIBS__NUMBER("resets", U64, dibs__job_state, resets),
    DIBS__NUMBER("next", I64, dibs__job_state, next_s),
    DIBS__NUMBER("next_local", I64, dibs__job_state, next_local_s),
    DIBS__TEXT("tzdata", dibs__job_state, tzdata),
    DIBS__NUMBER("due_us", I64, dibs__job_state, due_us),
    DIBS__NUMBER("paused", BOOL, dibs__job_state, paused),
    DIBS__TEXT("paused_by", dibs__job_state, paused_by),
    DIBS__TEXT("note", dibs__job_state, note),
    DIBS__NUMBER("paused_until_us", I64, dibs__job_state, paused_until_us),
    DIBS__TEXT("live", dibs__job_state, live),
    DIBS__TEXT("follows", dibs__job_state, follows),
    DIBS__NUMBER("running", U64, dibs__job_state, running),
    DIBS__NUMBER("missed", U64, dibs__job_state, missed),
    DIBS__NUMBER("merged", U64, dibs__job_state, merged),
    DIBS__NUMBER("skipped", U64, dibs__job_state, skipped),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void dibs__job_state_init(dibs__job_state *state, const char *job)
{
    memset(state, 0, sizeof(*state));
    (void)snprintf(state->job, sizeof(state->job), "%s", job);
}

const char *dibs__job_state_flaw(const dibs__job_state *state)
{
    if (state->follows[0] && !state->live[0])
        return "a run waits for the end of none";
    if (state->next_s && state->next_s <= state->mark_s)
        return "the next tick is not after the mark";
    if (state->due_us < 0 || state->paused_until_us < 0)
        return "a time is before 1970";
    return NULL;
}

dibs_status dibs__job_state_read(dibs__job_state *state, const char *job,
                                 const void *json, size_t len, dibs_error *err)
{
    dibsx_json_doc doc = {0};
    const char *flaw;
    dibs_status rc;

    dibs__job_state_init(state, job);
    rc = dibsx_json_read(json, len, &doc, err);
    if (rc == DIBS_OK)
        rc = dibs__fields_read(doc.root, fields, FIELDS, state, err);
    flaw = rc == DIBS_OK ? dibs__job_state_flaw(state) : NULL;
    if (flaw)
        rc = dibsx_fail(err, DIBS_INVALID, "the job %s has no valid state: %s",
                        job, flaw);
    dibsx_json_doc_fini(&doc);
    if (rc != DIBS_OK)
        dibs__job_state_init(state, job);
    return rc;
}

void dibs__job_state_write(const dibs__job_state *state, dibsx_buf *out)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibs__fields_write(&js, fields, FIELDS, state);
    dibsx_json_close(&js, '}');
}
