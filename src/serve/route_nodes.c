/* route_nodes.c - the nodes of a board, by their leases and records, and their drain; and
 * the daemons, by their seats.
 * Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "jobs/node_record.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/noun_json.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>

/* A node by its place in the index "nodes" or "draining". */
typedef struct sought_node {
    const char *id;
    bool found, drains;
    int64_t until_us;
} sought_node;

static bool note_entry(const dibs_index_entry *entry, void *arg)
{
    sought_node *sn = arg;

    if (strcmp(entry->member, sn->id) != 0)
        return true;
    sn->found = true;
    sn->drains = sn->drains || entry->look == 1;
    sn->until_us = entry->at;
    return true;
}

static dibs_status
find_node(const dibs__board *board, sought_node *sn, dibs_error *err)
{
    static const char *const names[] = {"nodes", "draining"};
    char keys[2][DIBS_NAME_MAX + 1];
    dibs_index_look looks[2];
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < 2 && rc == DIBS_OK; i++) {
        looks[i] = (dibs_index_look){.index = keys[i],
                                     .up_to = DIBS_INDEX_AT_MAX,
                                     .limit = DIBS_LOOK_MAX};
        rc = dibs__board_key(board, names[i], keys[i], err);
    }
    return rc == DIBS_OK ? dibs_index_first(board->cl, looks, 2, NULL,
                                            note_entry, sn, err)
                         : rc;
}

/* False: the node has not written a record yet, or is gone. */
static bool
read_record(const dibs__board *board, const char *id, dibs__node_record *rec)
{
    char inner[DIBS_NAME_MAX + 1], key[DIBS_NAME_MAX + 1];
    dibs_value value = {0};
    bool good;

    (void)snprintf(inner, sizeof(inner), "node/%.100s", id);
    good =
        dibs__board_key(board, inner, key, NULL) == DIBS_OK &&
        dibs_state_get(board->cl, key, &value, NULL) == DIBS_OK &&
        dibs__node_record_read(rec, id, value.data, value.len, NULL) == DIBS_OK;
    dibs_value_free(&value);
    return good;
}

typedef struct node_list {
    dibsx_json *js;
    const dibs__board_picture *picture;
    size_t cut; /* the part of names before the id */
    uint64_t count;
} node_list;

static void put_steps(node_list *nl, uint64_t fence)
{
    dibsx_json_key(nl->js, "steps");
    dibsx_json_open(nl->js, '[');
    for (size_t i = 0; i < nl->picture->live_count; i++) {
        const dibs__board_live *live = &nl->picture->live[i];

        if (live->fence != fence)
            continue;
        dibsx_json_open(nl->js, '{');
        dibsx_json_pair_text(nl->js, "run", live->run);
        dibsx_json_pair_text(nl->js, "step", live->step);
        dibsx_json_close(nl->js, '}');
    }
    dibsx_json_close(nl->js, ']');
}

static void put_facts(node_list *nl, const char *id)
{
    sought_node sn = {.id = id};
    dibs__node_record rec;

    if (find_node(&nl->picture->board, &sn, NULL) != DIBS_OK)
        sn.drains = false;
    dibsx_json_pair_text(nl->js, "state", sn.drains ? "draining" : "active");
    if (!read_record(&nl->picture->board, id, &rec))
        return;
    dibsx_json_pair_uint(nl->js, "slots", rec.slots);
    dibsx_json_pair_text(nl->js, "labels", rec.labels);
    dibsx_json_pair_text(nl->js, "version", rec.version);
}

static bool put_node(const dibs_lease_info *info, void *arg)
{
    node_list *nl = arg;
    const dibs_party *holder = info->holder_count ? &info->holders[0] : NULL;

    if (!holder)
        return true;
    nl->count++;
    dibsx_json_open(nl->js, '{');
    dibsx_json_pair_text(nl->js, "id", info->name + nl->cut);
    dibsx_json_pair_text(nl->js, "host", holder->host);
    dibsx_json_pair_int(nl->js, "pid", holder->pid);
    dibsx_json_pair_text(nl->js, "label", holder->label);
    dibsx_json_pair_uint(nl->js, "fence", holder->fence);
    dibsx_json_pair_int(nl->js, "age_ms", holder->age_ms);
    dibsx_json_pair_int(nl->js, "left_ms", holder->left_ms);
    dibsx_json_pair_int(nl->js, "ttl_ms", holder->ttl_ms);
    dibsx_json_pair_text(nl->js, "stale", holder->stale);
    put_facts(nl, info->name + nl->cut);
    put_steps(nl, holder->fence);
    dibsx_json_close(nl->js, '}');
    return true;
}

static bool put_daemon(const dibs_member_info *info, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibs__noun_member(js, info);
    dibsx_json_close(js, '}');
    return true;
}

/* The daemons of every board. */
static dibs_status put_daemons(dibs_client *cl, dibsx_json *js, dibs_error *err)
{
    dibs_status rc;

    dibsx_json_key(js, "daemons");
    dibsx_json_open(js, '[');
    rc = dibs_members_list(cl, DIBS__SERVE_NODES, put_daemon, js, err);
    dibsx_json_close(js, ']');
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

void dibs__serve_get_nodes(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__board_picture *picture = dibs__serve_take_board(ex);
    char begins[DIBS_NAME_MAX + 1];
    node_list nl = {.picture = picture};
    dibs_error err = {0};
    dibs_status rc;

    if (!picture)
        return;
    rc = dibs__board_key(&picture->board, "node/", begins, &err);
    nl.cut = strlen(begins);
    nl.js = dibs__http_answer(ex, 200);
    dibsx_json_key(nl.js, "items");
    dibsx_json_open(nl.js, '[');
    if (rc == DIBS_OK)
        rc = dibs_lease_list(sv->data, begins, put_node, &nl, &err);
    dibsx_json_close(nl.js, ']');
    dibsx_json_pair_uint(nl.js, "total", nl.count);
    dibsx_json_pair_text(nl.js, "board", picture->board.name);
    dibsx_json_pair_text(nl.js, "engine",
                         dibs__engine_phase_name(
                             dibs__engine_phase_of(&sv->engine)));
    if (rc == DIBS_OK)
        rc = put_daemons(sv->data, nl.js, &err);
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    dibs__board_picture_drop(picture);
}

/* It takes nothing new, and stops when its commands have ended. */
static dibs_status
drain_node(const dibs__board *board, const char *id, dibs_error *err)
{
    sought_node sn = {.id = id};
    bool doubt = false;
    dibs__intent in;
    dibs_status rc = find_node(board, &sn, err);

    if (rc == DIBS_OK && !sn.found)
        rc = dibsx_fail(err, DIBS_NOTFOUND,
                        "there is no node %.60s on the board %s", id,
                        board->name);
    if (rc != DIBS_OK || sn.drains)
        return rc;
    dibs__intent_init(&in);
    dibs__node_record_drain(id, sn.until_us, &in);
    rc = dibs__board_commit(board, &in, &doubt, err);
    dibs__intent_fini(&in);
    return rc;
}

void dibs__serve_post_node_drain(dibs__http_exchange *ex)
{
    const char *id = dibs__http_param(ex, "node"), *reason = NULL;
    const dibsx_json_node *body;
    dibs__board board;
    dibs_error err = {0};
    dibs_status rc;

    if (!dibs__serve_ask_change(ex, "reason", &body, &reason) ||
        !dibs__serve_ask_board(ex, &board))
        return;
    if (!dibs__serve_audit_begin(ex, "node-drain", id, reason))
        return;
    rc = drain_node(&board, id, &err);
    dibs__serve_audit_end(ex, "node-drain", id, reason, rc);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibsx_json_pair_text(dibs__http_answer(ex, 202), "id", id);
    else
        (void)dibs__serve_fail(ex, &err);
}
