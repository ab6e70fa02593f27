/* node_list.c - see node_list.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/node_list.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/node_record.h"
#include "serve/row.h"
#include "serve/run_fetch.h"
#include <string.h>

typedef struct listed_node {
    dibs_lease_info *lease;
    bool drains;
} listed_node;

typedef struct node_list {
    const dibs__board_picture *picture;
    size_t cut; /* the part of names before the id */
    listed_node *rows;
    size_t count;
    uint64_t total;
    bool failed; /* there is no memory */
} node_list;

static const char *id_of(const node_list *nl, const listed_node *row)
{
    return row->lease->name + nl->cut;
}

static bool keep_node(const dibs_lease_info *info, void *arg)
{
    node_list *nl = arg;
    dibs_lease_info *copy;

    if (info->holder_count == 0)
        return true;
    nl->total++;
    if (nl->count == DIBS__NODES_SHOWN_MAX)
        return true;
    copy = dibs__serve_row_copy(info);
    nl->failed = !copy;
    if (copy)
        nl->rows[nl->count++].lease = copy;
    return copy != NULL;
}

static dibs_status list_leases(node_list *nl, dibs_error *err)
{
    char begins[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__board_key(&nl->picture->board, "node/", begins, err);

    if (rc != DIBS_OK)
        return rc;
    nl->cut = strlen(begins);
    rc = dibs_lease_list(nl->picture->board.cl, begins, keep_node, nl, err);
    return nl->failed ? dibsx_nomem(err, "the list of nodes") : rc;
}

static bool note_drain(const dibs_index_entry *entry, void *arg)
{
    node_list *nl = arg;

    for (size_t i = 0; i < nl->count; i++)
        if (strcmp(id_of(nl, &nl->rows[i]), entry->member) == 0)
            nl->rows[i].drains = true;
    return true;
}

static dibs_status find_drains(node_list *nl, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_index_look look = {.index = key,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};
    dibs_status rc = dibs__board_key(&nl->picture->board, "draining", key, err);

    return rc == DIBS_OK ? dibs_index_first(nl->picture->board.cl, &look, 1,
                                            NULL, note_drain, nl, err)
                         : rc;
}

static void put_steps(const node_list *nl, dibsx_json *js, uint64_t fence)
{
    dibsx_json_key(js, "steps");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < nl->picture->live_count; i++) {
        const dibs__board_live *live = &nl->picture->live[i];

        if (live->fence != fence)
            continue;
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "run", live->run);
        dibsx_json_pair_text(js, "step", live->step);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

/* The node may have written no record yet, or be gone. */
static void put_record(dibsx_json *js, const char *id, const dibs_value *value)
{
    dibs__node_record rec;

    if (value->version == 0 ||
        dibs__node_record_read(&rec, id, value->data, value->len, NULL) !=
            DIBS_OK)
        return;
    dibsx_json_pair_uint(js, "slots", rec.slots);
    dibsx_json_pair_text(js, "labels", rec.labels);
    dibsx_json_pair_text(js, "version", rec.version);
}

static void put_node(const node_list *nl, dibsx_json *js,
                     const listed_node *row, const dibs_value *record)
{
    const dibs_party *holder = &row->lease->holders[0];

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "id", id_of(nl, row));
    dibsx_json_pair_text(js, "host", holder->host);
    dibsx_json_pair_int(js, "pid", holder->pid);
    dibsx_json_pair_text(js, "label", holder->label);
    dibsx_json_pair_uint(js, "fence", holder->fence);
    dibsx_json_pair_int(js, "age_ms", holder->age_ms);
    dibsx_json_pair_int(js, "left_ms", holder->left_ms);
    dibsx_json_pair_int(js, "ttl_ms", holder->ttl_ms);
    dibsx_json_pair_text(js, "stale", holder->stale);
    dibsx_json_pair_text(js, "state", row->drains ? "draining" : "active");
    put_record(js, id_of(nl, row), record);
    put_steps(nl, js, holder->fence);
    dibsx_json_close(js, '}');
}

/* Writes the nodes from `first` on whose records are one request; *done: how many. */
static dibs_status put_part(const node_list *nl, size_t first, dibsx_json *js,
                            size_t *done, dibs_error *err)
{
    dibs_value records[DIBS_GET_MANY_MAX] = {{.version = 0}};
    const char *ids[DIBS_GET_MANY_MAX];
    size_t count = 0;
    dibs_status rc;

    for (; count < DIBS_GET_MANY_MAX && first + count < nl->count; count++)
        ids[count] = id_of(nl, &nl->rows[first + count]);
    rc = dibs__record_fetch(&nl->picture->board, "node/", ids, count, records,
                            err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        put_node(nl, js, &nl->rows[first + i], &records[i]);
        dibs_value_free(&records[i]);
    }
    *done = count;
    return rc;
}

static dibs_status
put_list(const node_list *nl, dibsx_json *js, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t at = 0, done = 0; at < nl->count && rc == DIBS_OK; at += done)
        rc = put_part(nl, at, js, &done, err);
    dibsx_json_close(js, ']');
    dibsx_json_pair_uint(js, "total", nl->total);
    dibsx_json_pair_bool(js, "complete", nl->count == nl->total);
    return rc;
}

dibs_status dibs__node_list_json(const dibs__board_picture *picture,
                                 dibsx_json *js, dibs_error *err)
{
    node_list nl = {.picture = picture};
    dibs_status rc = DIBS_OK;

    nl.rows = dibsx_zalloc_n(DIBS__NODES_SHOWN_MAX, sizeof(*nl.rows));
    if (!nl.rows)
        return dibsx_nomem(err, "the list of nodes");
    rc = list_leases(&nl, err);
    if (rc == DIBS_OK && nl.count > 0)
        rc = find_drains(&nl, err);
    if (rc == DIBS_OK)
        rc = put_list(&nl, js, err);
    for (size_t i = 0; i < nl.count; i++)
        dibsx_free(nl.rows[i].lease);
    dibsx_free(nl.rows);
    return rc;
}
