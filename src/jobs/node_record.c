/* node_record.c - see node_record.h. */
/* SPDX-License-Identifier: MIT */
#include "jobs/node_record.h"

#include "jobs/fields.h"
#include "jobs/places.h"
#include <stdio.h>
#include <string.h>

static const dibs__field fields[] = {
    DIBS__NUMBER("fence", U64, dibs__node_record, fence),
    DIBS__TEXT("host", dibs__node_record, host),
    DIBS__NUMBER("pid", I64, dibs__node_record, pid),
    DIBS__TEXT("labels", dibs__node_record, labels),
    DIBS__NUMBER("slots", U64, dibs__node_record, slots),
    DIBS__NUMBER("ttl_ms", I64, dibs__node_record, ttl_ms),
    DIBS__NUMBER("joined_us", I64, dibs__node_record, joined_us),
    DIBS__TEXT("version", dibs__node_record, version),
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

dibs_status
dibs__node_record_read(dibs__node_record *rec, const char *id, const void *json,
                       size_t len, dibs_error *err)
{
    dibsx_json_doc doc = {0};
    dibs_status rc = dibsx_json_read(json, len, &doc, err);

    memset(rec, 0, sizeof(*rec));
    if (rc == DIBS_OK)
        rc = dibs__fields_read(doc.root, fields, FIELDS, rec, err);
    dibsx_json_doc_fini(&doc);
    if (rc != DIBS_OK)
        memset(rec, 0, sizeof(*rec));
    (void)snprintf(rec->id, sizeof(rec->id), "%s", id);
    return rc;
}

void dibs__node_record_write(const dibs__node_record *rec, dibsx_buf *out)
{
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibs__fields_write(&js, fields, FIELDS, rec);
    dibsx_json_close(&js, '}');
}

static void put_key(const char *id, char out[DIBS__PLACE_SIZE])
{
    (void)snprintf(out, DIBS__PLACE_SIZE, "node/%.16s", id);
}

void dibs__node_record_keep(const dibs__node_record *rec, bool draining,
                            int64_t now_us, dibs__intent *in)
{
    int64_t keep_ms = DIBS__NODE_KEEP * rec->ttl_ms;
    char key[DIBS__PLACE_SIZE];
    dibsx_buf json;

    put_key(rec->id, key);
    dibsx_buf_init(&json, DIBS__NODE_RECORD_MAX);
    dibs__node_record_write(rec, &json);
    if (!dibsx_buf_ok(&json))
        in->failed = true;
    else
        dibs__intent_put(in, key, json.data, json.len, keep_ms);
    dibs__intent_enter(in, draining ? "draining" : "nodes", rec->id,
                       now_us + keep_ms * 1000);
    if (draining)
        dibs__intent_leave(in, "nodes", rec->id);
    dibsx_buf_fini(&json);
}

void dibs__node_record_leave(const char *id, dibs__intent *in)
{
    char key[DIBS__PLACE_SIZE];

    put_key(id, key);
    dibs__intent_delete(in, key);
    dibs__intent_leave(in, "nodes", id);
    dibs__intent_leave(in, "draining", id);
}

void dibs__node_record_drain(const char *id, int64_t until_us, dibs__intent *in)
{
    dibs__intent_leave(in, "nodes", id);
    dibs__intent_enter(in, "draining", id, until_us);
    dibs__intent_tell(in, "draining");
}
