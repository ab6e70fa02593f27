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
#include "serve/node_list.h"
#include "serve/noun_json.h"
#include "serve/problem.h"
#include "serve/routes.h"
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

/* As dibs__serve_memo_fn. */
static dibs_status put_nodes(dibs_client *cl, const char *board, void *arg,
                             dibsx_json *js, dibs_error *err)
{
    dibs_status rc = dibs__node_list_json(arg, js, err);

    (void)board;
    return rc == DIBS_OK ? put_daemons(cl, js, err) : rc;
}

void dibs__serve_get_nodes(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__board_picture *picture = dibs__serve_take_board(ex);
    dibs_error err = {0};
    dibs_status rc;
    dibsx_json *js;

    if (!picture)
        return;
    js = dibs__http_answer(ex, 200);
    rc = dibs__serve_memo_put(&sv->nodes, sv->data, picture->board.name,
                              sv->opts->look_every_ms, put_nodes, picture, js,
                              &err);
    dibsx_json_pair_text(js, "board", picture->board.name);
    dibsx_json_pair_text(js, "engine",
                         dibs__engine_phase_name(
                             dibs__engine_phase_of(&sv->engine)));
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
    dibs__serve *sv = dibs__http_arg(ex);
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
    dibs__serve_memo_forget(&sv->nodes);
    dibs__serve_changed(ex);
    if (rc == DIBS_OK)
        dibsx_json_pair_text(dibs__http_answer(ex, 202), "id", id);
    else
        (void)dibs__serve_fail(ex, &err);
}
