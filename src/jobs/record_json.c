/* record_json.c - the record of a run as JSON. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "base/json_data.h"
#include "jobs/fields.h"
#include "jobs/record.h"
#include "jobs/record_names.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A step gets a node, a nonce, times and a resumer until its end; attempts are kept too. */
enum {
    STEP_GROWTH = 512,
    ATTEMPTS_GROWTH = 4096,
    TRIAL_MAX = 8 * DIBS__RUN_JSON_MAX
};

static const dibs__field run_fields[] = {
    DIBS__TEXT("job", dibs__run, job),
    DIBS__TEXT("hash", dibs__run, hash),
    DIBS__NAMED("state", dibs__state_names, DIBS__STATES, dibs__run, state),
    DIBS__NAMED("reason", dibs__reason_names, DIBS__REASONS, dibs__run, reason),
    DIBS__NAMED("cause", dibs__cause_names, DIBS__CAUSES, dibs__run, cause),
    DIBS__TEXT("origin", dibs__run, origin),
    DIBS__TEXT("parent", dibs__run, parent),
    DIBS__TEXT("batch", dibs__run, batch),
    DIBS__NUMBER("tick", I64, dibs__run, tick_s),
    DIBS__NUMBER("made_us", I64, dibs__run, made_us),
    DIBS__NUMBER("begun_us", I64, dibs__run, begun_us),
    DIBS__NUMBER("ended_us", I64, dibs__run, ended_us),
    DIBS__NUMBER("start_by_us", I64, dibs__run, start_by_us),
    DIBS__NUMBER("end_by_us", I64, dibs__run, end_by_us),
    DIBS__NUMBER("cancels", U32, dibs__run, cancels),
    DIBS__NUMBER("follows", BOOL, dibs__run, follows),
    DIBS__NUMBER("counted", BOOL, dibs__run, counted),
    DIBS__NUMBER("owes", BOOL, dibs__run, owes),
    DIBS__NUMBER("merged", U64, dibs__run, merged),
};

static const dibs__field step_fields[] = {
    DIBS__TEXT("name", dibs__run_step, name),
    DIBS__TEXT("label", dibs__run_step, label),
    DIBS__NUMBER("begins", BOOL, dibs__run_step, begins),
    DIBS__NAMED("state", dibs__state_names, DIBS__STATES, dibs__run_step,
                state),
    DIBS__NUMBER("attempt", U32, dibs__run_step, attempt),
    DIBS__TEXT("node", dibs__run_step, node),
    DIBS__NUMBER("fence", U64, dibs__run_step, fence),
    DIBS__TEXT("nonce", dibs__run_step, nonce),
    DIBS__NUMBER("cancel", BOOL, dibs__run_step, cancel),
    DIBS__NAMED("why_cancel", dibs__reason_names, DIBS__REASONS, dibs__run_step,
                why_cancel),
    DIBS__NAMED("waits", dibs__wait_names, DIBS__WAITS, dibs__run_step, waits),
    DIBS__NUMBER("at_us", I64, dibs__run_step, at_us),
    DIBS__NUMBER("until_us", I64, dibs__run_step, until_us),
    DIBS__NUMBER("begun_us", I64, dibs__run_step, begun_us),
    DIBS__NUMBER("ended_us", I64, dibs__run_step, ended_us),
    DIBS__NAMED("reason", dibs__reason_names, DIBS__REASONS, dibs__run_step,
                reason),
    DIBS__NUMBER("exit", I32, dibs__run_step, exit_code),
    DIBS__TEXT("who", dibs__run_step, who),
};

static const dibs__field attempt_fields[] = {
    DIBS__NUMBER("step", U32, dibs__run_attempt, step),
    DIBS__NUMBER("attempt", U32, dibs__run_attempt, attempt),
    DIBS__TEXT("node", dibs__run_attempt, node),
    DIBS__NAMED("reason", dibs__reason_names, DIBS__REASONS, dibs__run_attempt,
                reason),
    DIBS__NUMBER("exit", I32, dibs__run_attempt, exit_code),
    DIBS__NUMBER("begun_us", I64, dibs__run_attempt, begun_us),
    DIBS__NUMBER("ended_us", I64, dibs__run_attempt, ended_us),
};

static void write_params(dibsx_json *js, const dibs__run *run)
{
    if (run->param_count == 0)
        return;
    dibsx_json_key(js, "params");
    dibsx_json_open(js, '{');
    for (size_t i = 0; i < run->param_count; i++)
        dibsx_json_pair_text(js, run->params[i].name, run->params[i].value);
    dibsx_json_close(js, '}');
}

static void write_steps(dibsx_json *js, const dibs__run *run, bool results)
{
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < run->step_count; i++) {
        const dibs__run_step *step = &run->steps[i];

        dibsx_json_open(js, '{');
        dibs__fields_write(js, step_fields, COUNT(step_fields), step);
        if (step->result && results)
            dibsx_json_data(js, "result", step->result, step->result_len);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static void write_run(const dibs__run *run, bool results, dibsx_buf *out)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibs__fields_write(&js, run_fields, COUNT(run_fields), run);
    write_params(&js, run);
    write_steps(&js, run, results);
    if (run->attempt_count > 0) {
        dibsx_json_key(&js, "attempts");
        dibsx_json_open(&js, '[');
        for (size_t i = 0; i < run->attempt_count; i++) {
            dibsx_json_open(&js, '{');
            dibs__fields_write(&js, attempt_fields, COUNT(attempt_fields),
                               &run->attempts[i]);
            dibsx_json_close(&js, '}');
        }
        dibsx_json_close(&js, ']');
    }
    dibsx_json_close(&js, '}');
}

void dibs__run_write(const dibs__run *run, dibsx_buf *out)
{
    write_run(run, true, out);
}

dibs_status dibs__run_fits(const dibs__run *run, dibs_error *err)
{
    const size_t growth = ATTEMPTS_GROWTH + STEP_GROWTH * run->step_count;
    dibs_status rc = DIBS_OK;
    dibsx_buf json;

    if (run->param_count == 0) /* The bounds of a definition suffice. */
        return DIBS_OK;
    dibsx_buf_init(&json, TRIAL_MAX);
    write_run(run, false, &json);
    if (dibsx_buf_ok(&json) && json.len + growth > DIBS__RUN_JSON_MAX)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "the params of the run %s are too long: its record of "
                        "%d KiB has no room for them; pass on where the data "
                        "is",
                        run->id, DIBS__RUN_JSON_MAX / 1024);
    else if (!dibsx_buf_ok(&json))
        rc = dibsx_nomem(err, "the record of a run");
    dibsx_buf_fini(&json);
    return rc;
}

static size_t count_items(const dibsx_json_node *list)
{
    size_t count = 0;

    if (list && list->kind == DIBSX_JSON_LIST)
        for (const dibsx_json_node *node = list->child; node; node = node->next)
            count++;
    return count;
}

static dibs_status
read_base64(dibs__run_step *step, const dibsx_json_node *node, dibs_error *err)
{
    dibs_status rc;
    dibsx_buf bytes;

    dibsx_buf_init(&bytes, DIBS__RUN_JSON_MAX);
    rc = dibsx_base64_read(node->text, node->len, &bytes)
             ? dibs__step_result(step, bytes.data, bytes.len, err)
             : dibsx_fail(err, DIBS_INVALID,
                          "the result of a step is no base64");
    dibsx_buf_fini(&bytes);
    return rc;
}

/* Text as it is, other bytes as base64: the next step has to get the same. */
static dibs_status read_result(dibs__run_step *step,
                               const dibsx_json_node *record, dibs_error *err)
{
    const dibsx_json_node *text = dibsx_json_get(record, "result");
    const dibsx_json_node *base64 = dibsx_json_get(record, "result_base64");

    if (text && text->kind == DIBSX_JSON_TEXT)
        return dibs__step_result(step, text->text, text->len, err);
    if (base64 && base64->kind == DIBSX_JSON_TEXT)
        return read_base64(step, base64, err);
    return DIBS_OK;
}

static dibs_status
read_steps(dibs__run *run, const dibsx_json_node *list, dibs_error *err)
{
    size_t count = count_items(list);
    const dibsx_json_node *node = list ? list->child : NULL;

    if (count == 0 || count > DIBS__JOB_STEPS_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "a run has no steps, or more than %d",
                          DIBS__JOB_STEPS_MAX);
    run->steps = dibsx_zalloc_n(count, sizeof(*run->steps));
    if (!run->steps)
        return dibsx_nomem(err, "the steps of a run");
    for (run->step_count = 0; run->step_count < count; node = node->next) {
        dibs__run_step *step = &run->steps[run->step_count++];
        dibs_status rc =
            dibs__fields_read(node, step_fields, COUNT(step_fields), step, err);

        if (rc == DIBS_OK)
            rc = read_result(step, node, err);
        if (rc != DIBS_OK)
            return rc;
    }
    return DIBS_OK;
}

static dibs_status
read_params(dibs__run *run, const dibsx_json_node *map, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (!map || map->kind != DIBSX_JSON_MAP)
        return DIBS_OK;
    for (const dibsx_json_node *node = map->child; node && rc == DIBS_OK;
         node = node->next)
        rc = node->kind == DIBSX_JSON_TEXT
                 ? dibs__run_param(run, node->key, node->text, err)
                 : dibsx_fail(err, DIBS_INVALID, "a param is not a text");
    return rc;
}

static dibs_status
read_attempts(dibs__run *run, const dibsx_json_node *list, dibs_error *err)
{
    const dibsx_json_node *node = list ? list->child : NULL;

    if (count_items(list) > DIBS__RUN_ATTEMPTS_KEPT)
        return dibsx_fail(err, DIBS_INVALID, "a run has too many attempts");
    if (!list || list->kind != DIBSX_JSON_LIST)
        return DIBS_OK;
    for (; node; node = node->next) {
        dibs_status rc =
            dibs__fields_read(node, attempt_fields, COUNT(attempt_fields),
                              &run->attempts[run->attempt_count++], err);

        if (rc != DIBS_OK)
            return rc;
    }
    return DIBS_OK;
}

void dibs__run_json_unreadable(dibsx_json *js, const char *id, const char *job,
                               const char *why)
{
    dibsx_json_pair_text(js, "id", id);
    dibsx_json_pair_text(js, "job", job);
    dibsx_json_pair_text(js, "state", DIBS__RUN_UNREADABLE);
    dibsx_json_pair_text(js, "reason", why);
    dibsx_json_key(js, "params");
    dibsx_json_open(js, '{');
    dibsx_json_close(js, '}');
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    dibsx_json_close(js, ']');
}

dibs_status dibs__run_read(dibs__run *run, const char *id, const void *json,
                           size_t len, dibs_error *err)
{
    dibsx_json_doc doc = {0};
    dibs_error why = {0};
    const char *flaw;
    dibs_status rc;

    dibs__run_init(run, id);
    rc = dibsx_json_read(json, len, &doc, &why);
    if (rc == DIBS_OK)
        rc = dibs__fields_read(doc.root, run_fields, COUNT(run_fields), run,
                               &why);
    if (rc == DIBS_OK)
        rc = read_params(run, dibsx_json_get(doc.root, "params"), &why);
    if (rc == DIBS_OK)
        rc = read_steps(run, dibsx_json_get(doc.root, "steps"), &why);
    if (rc == DIBS_OK)
        rc = read_attempts(run, dibsx_json_get(doc.root, "attempts"), &why);
    flaw = rc == DIBS_OK ? dibs__run_flaw(run) : NULL;
    if (flaw)
        rc = dibsx_fail(&why, DIBS_INVALID, "%s", flaw);
    dibsx_json_doc_fini(&doc);
    if (rc == DIBS_OK)
        return DIBS_OK;
    dibs__run_fini(run);
    dibs__run_init(run, id);
    return rc == DIBS_INVALID
               ? dibsx_fail(err, rc, "the run %s has no valid record: %s", id,
                            why.message)
               : dibsx_fail(err, rc, "%s", why.message);
}
