/* batch.c - batches of runs. */
/* SPDX-License-Identifier: MIT */
#include "jobs/batch.h"
#include "base/fail.h"
#include "jobs/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const dibs__field fields[] = {
    DIBS__NUMBER("of", U64, dibs__batch, of),
    DIBS__NUMBER("started", U64, dibs__batch, started),
    DIBS__NUMBER("made_us", I64, dibs__batch, made_us),
    DIBS__NUMBER("complete_us", I64, dibs__batch, complete_us),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

void dibs__batch_init(dibs__batch *batch, const char *id)
{
    memset(batch, 0, sizeof(*batch));
    (void)snprintf(batch->id, sizeof(batch->id), "%s", id);
}

static dibs_status
read_waiters(dibs__batch *batch, const dibsx_json_node *list, dibs_error *err)
{
    if (!list || list->kind != DIBSX_JSON_LIST)
        return DIBS_OK;
    for (const dibsx_json_node *node = list->child; node; node = node->next) {
        if (batch->waiter_count == DIBS__BATCH_WAITERS_MAX ||
            node->kind != DIBSX_JSON_TEXT || node->len >= DIBS__RUN_ID_SIZE)
            return dibsx_fail(err, DIBS_INVALID,
                              "the batch %s has waiters that are no runs, or "
                              "too many",
                              batch->id);
        (void)snprintf(batch->waiters[batch->waiter_count++], DIBS__RUN_ID_SIZE,
                       "%s", node->text);
    }
    return DIBS_OK;
}

dibs_status
dibs__batch_read(dibs__batch *batch, const char *id, const void *json,
                 size_t len, uint64_t version, dibs_error *err)
{
    dibsx_json_doc doc = {0};
    dibs_status rc;

    dibs__batch_init(batch, id);
    rc = dibsx_json_read(json, len, &doc, err);
    if (rc == DIBS_OK)
        rc = dibs__fields_read(doc.root, fields, FIELDS, batch, err);
    if (rc == DIBS_OK)
        rc = read_waiters(batch, dibsx_json_get(doc.root, "waiters"), err);
    dibsx_json_doc_fini(&doc);
    if (rc != DIBS_OK)
        dibs__batch_init(batch, id);
    else
        batch->version = version;
    return rc;
}

dibs_status dibs__batch_expect(dibs__batch *batch, uint64_t of, dibs_error *err)
{
    if (of == 0 || of == batch->of)
        return DIBS_OK;
    if (batch->of)
        return dibsx_fail(err, DIBS_INVALID,
                          "the batch %s has %" PRIu64 " members, not %" PRIu64,
                          batch->id, batch->of, of);
    if (of < batch->started)
        return dibsx_fail(err, DIBS_INVALID,
                          "%" PRIu64 " members of the batch %s were started, "
                          "more than %" PRIu64,
                          batch->started, batch->id, of);
    batch->of = of;
    batch->changed = true;
    return DIBS_OK;
}

dibs_status
dibs__batch_join(dibs__batch *batch, dibs__run *run, dibs_error *err)
{
    if (batch->complete_us || (batch->of && batch->started >= batch->of))
        return dibsx_fail(err, DIBS_FULL,
                          "all %" PRIu64 " members of the batch %s were "
                          "started; choose another name for a new batch",
                          batch->of, batch->id);
    batch->started++;
    batch->changed = true;
    memcpy(run->batch, batch->id, sizeof(run->batch));
    run->changed = true;
    return DIBS_OK;
}

void dibs__batch_wait(dibs__batch *batch, const char *run)
{
    for (size_t i = 0; i < batch->waiter_count; i++)
        if (strcmp(batch->waiters[i], run) == 0)
            return;
    if (batch->complete_us || batch->waiter_count == DIBS__BATCH_WAITERS_MAX)
        return;
    (void)snprintf(batch->waiters[batch->waiter_count++], DIBS__RUN_ID_SIZE,
                   "%s", run);
    batch->changed = true;
}

bool dibs__batch_look(dibs__batch *batch, uint64_t ended, int64_t now_us,
                      dibs__intent *in)
{
    char name[DIBS__PLACE_SIZE];

    if (!batch->complete_us && (batch->of == 0 || ended < batch->of))
        return false;
    (void)snprintf(name, sizeof(name), "batch/%s", batch->id);
    dibs__intent_leave(in, "resume", name);
    if (batch->complete_us)
        return true;
    batch->complete_us = now_us;
    batch->changed = true;
    for (size_t i = 0; i < batch->waiter_count; i++)
        dibs__intent_enter(in, "resume", batch->waiters[i], now_us);
    batch->waiter_count = 0;
    dibs__intent_tell(in, "resume");
    return true;
}

/* The record of a complete batch is kept for longer than this, so that the clock of the store
 * may go back by as much. */
#define CLOCK_SLACK_US (INT64_C(24) * 3600 * 1000000)

int64_t dibs__batch_since_us(const dibs__batch *batch)
{
    return batch->made_us > CLOCK_SLACK_US ? batch->made_us - CLOCK_SLACK_US
                                           : 0;
}

#define GONE_LATER_US (INT64_C(60) * 1000000)

int64_t dibs__batch_gone_us(const dibs__batch *batch)
{
    return batch->complete_us + DIBS__BATCH_KEEP_MS * 1000 + GONE_LATER_US;
}

static void enter_trim(const dibs__batch *batch, int64_t now_us,
                       const char *member, dibs__intent *in)
{
    if (batch->complete_us)
        dibs__intent_enter(in, "trim", member, dibs__batch_gone_us(batch));
    else if (batch->version == 0)
        dibs__intent_enter(in, "trim", member, now_us + DIBS__BATCH_FORGET_US);
}

void dibs__batch_commit(dibs__batch *batch, int64_t now_us, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];
    dibsx_json js;
    dibsx_buf json;

    if (!batch->changed)
        return;
    if (batch->version == 0)
        batch->made_us = now_us;
    (void)snprintf(key, sizeof(key), "batch/%s", batch->id);
    dibsx_buf_init(&json, DIBS__BATCH_JSON_MAX);
    dibsx_json_init(&js, &json);
    dibsx_json_open(&js, '{');
    dibs__fields_write(&js, fields, FIELDS, batch);
    if (batch->waiter_count > 0) {
        dibsx_json_key(&js, "waiters");
        dibsx_json_open(&js, '[');
        for (size_t i = 0; i < batch->waiter_count; i++)
            dibsx_json_text(&js, batch->waiters[i]);
        dibsx_json_close(&js, ']');
    }
    dibsx_json_close(&js, '}');
    if (!dibsx_buf_ok(&json))
        in->failed = true;
    else
        dibs__intent_put(in, key, json.data, json.len,
                         batch->complete_us ? DIBS__BATCH_KEEP_MS : 0);
    dibs__intent_check_version(in, key, batch->version);
    enter_trim(batch, now_us, key, in);
    dibsx_buf_fini(&json);
}
