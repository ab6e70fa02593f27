/* route_nodes.c - the nodes of a board, by their leases. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/daemon.h"
#include "serve/job_ask.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>

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
    put_steps(nl, holder->fence);
    dibsx_json_close(nl->js, '}');
    return true;
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
        rc = dibs_lease_list(sv->cl, begins, put_node, &nl, &err);
    dibsx_json_close(nl.js, ']');
    dibsx_json_pair_uint(nl.js, "total", nl.count);
    dibsx_json_pair_text(nl.js, "board", picture->board.name);
    dibsx_json_pair_text(nl.js, "engine",
                         dibs__engine_phase_name(
                             dibs__engine_phase_of(&sv->engine)));
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    dibs__board_picture_drop(picture);
}
