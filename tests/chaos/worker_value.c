/* worker_value.c - what a worker does to values. Each that is written is written
 * once, so that a read tells which write it saw. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t number_of(const dibs_value *value)
{
    return value->data ? strtoull(value->data, NULL, 10) : 0;
}

static dibs_status
get(worker *wk, const char *key, record *rec, dibs_error *err)
{
    dibs_value value = {0};
    dibs_status rc = dibs_state_get(wk->cl, key, &value, err);

    if (rc == DIBS_OK) {
        rec->fence = value.version;
        rec->value = number_of(&value);
    }
    dibs_value_free(&value);
    return rc;
}

static dibs_status
put(worker *wk, const char *key, record *rec, dibs_error *err)
{
    char text[32];
    int len;

    rec->value = ((uint64_t)wk->log->worker + 1) << 48 |
                 (uint64_t)wk->log->life << 28 |
                 (uint64_t)(rec - wk->log->records);
    len = snprintf(text, sizeof(text), "%" PRIu64, rec->value);
    return rec->op == OP_SET ? dibs_state_set(wk->cl, key, text, (size_t)len, 0,
                                              &rec->fence, err)
                             : dibs_state_cas(wk->cl, key, rec->expected, text,
                                              (size_t)len, 0, &rec->fence, err);
}

void worker_value(worker *wk)
{
    record *rec = worker_record(wk);
    char key[NAME_ROOM];
    dibs_error err = {0};

    if (!rec)
        return;
    rec->op = (uint8_t)(OP_GET + worker_pick(wk, 3));
    rec->key = (uint32_t)worker_pick(wk, VALUES);
    rec->expected = wk->versions[rec->key];
    snprintf(key, sizeof(key), "chaos-value-%u", rec->key);
    rec->invoked_ns = now_ns();
    rec->status = (int32_t)(rec->op == OP_GET ? get(wk, key, rec, &err)
                                              : put(wk, key, rec, &err));
    rec->returned_ns = now_ns();
    atomic_fetch_add(&wk->run->operations, 1);
    if (rec->status == DIBS_OK || rec->status == DIBS_STALE)
        wk->versions[rec->key] = rec->fence;
    wk->no_values = rec->status == DIBS_UNSUPPORTED;
}
