/* verb_job_nodes.c - job nodes and job drain: the nodes of a board. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "cli/changes.h"
#include "cli/job_board.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/node_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NODES_MAX = 512, LOOK_NODES = 0, LOOK_DRAINING, LOOK_LIVE, LOOKS };

typedef struct listed_node {
    char id[DIBS__NODE_SIZE];
    bool draining;
    int64_t until_us;
} listed_node;

typedef struct node_list {
    listed_node at[NODES_MAX];
    size_t count;
    int64_t live[DIBS_LOOK_MAX]; /* fences of steps that run */
    size_t live_count;
    int64_t now_us;
} node_list;

static bool note_entry(const dibs_index_entry *entry, void *arg)
{
    node_list *list = arg;

    if (entry->look == LOOK_LIVE && list->live_count < DIBS_LOOK_MAX)
        list->live[list->live_count++] = entry->at;
    if (entry->look == LOOK_LIVE || list->count == NODES_MAX)
        return true;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->at[i].id, entry->member) == 0) {
            list->at[i].draining = true; /* It is on its way to the other. */
            return true;
        }
    list->at[list->count].draining = entry->look == LOOK_DRAINING;
    list->at[list->count].until_us = entry->at;
    (void)snprintf(list->at[list->count++].id, DIBS__NODE_SIZE, "%.16s",
                   entry->member);
    return true;
}

static dibs_status
read_list(const dibs__board *board, node_list *list, dibs_error *err)
{
    static const char *const names[LOOKS] = {"nodes", "draining", "live"};
    char keys[LOOKS][DIBS_NAME_MAX + 1];
    dibs_index_look looks[LOOKS];
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < LOOKS && rc == DIBS_OK; i++) {
        looks[i] = (dibs_index_look){.index = keys[i],
                                     .up_to = DIBS_INDEX_AT_MAX,
                                     .limit = DIBS_LOOK_MAX};
        rc = dibs__board_key(board, names[i], keys[i], err);
    }
    if (rc == DIBS_OK)
        rc = dibs_index_first(board->cl, looks, LOOKS, &list->now_us,
                              note_entry, list, err);
    return rc;
}

/* NOTFOUND: its node is gone, and others have not noticed yet. */
static dibs_status read_record(const dibs__board *board, const char *id,
                               dibs__node_record *rec, dibs_error *err)
{
    char inner[DIBS__NODE_SIZE + 8], key[DIBS_NAME_MAX + 1];
    dibs_value value = {0};
    dibs_status rc;

    (void)snprintf(inner, sizeof(inner), "node/%s", id);
    rc = dibs__board_key(board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_state_get(board->cl, key, &value, err);
    if (rc == DIBS_OK)
        rc = dibs__node_record_read(rec, id, value.data, value.len, err);
    dibs_value_free(&value);
    return rc;
}

static size_t count_running(const node_list *list, uint64_t fence)
{
    size_t running = 0;

    for (size_t i = 0; i < list->live_count; i++)
        running += (uint64_t)list->live[i] == fence;
    return running;
}

static void json_node(dibsx_json *js, const dibs__node_record *rec,
                      bool draining, size_t running)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "id", rec->id);
    dibsx_json_pair_text(js, "state", draining ? "draining" : "active");
    dibsx_json_pair_text(js, "host", rec->host);
    dibsx_json_pair_int(js, "pid", rec->pid);
    dibsx_json_pair_int(js, "running", (int64_t)running);
    dibsx_json_pair_int(js, "slots", (int64_t)rec->slots);
    dibsx_json_pair_text(js, "labels", rec->labels);
    dibsx_json_pair_int(js, "ttl_ms", rec->ttl_ms);
    dibs__json_moment(js, "joined", rec->joined_us / 1000000);
    dibsx_json_pair_text(js, "version", rec->version);
    dibsx_json_close(js, '}');
}

static void row_of_node(dibs__table *table, const dibs__node_record *rec,
                        bool draining, size_t running)
{
    char joined[32];

    dibs__moment_cell(rec->joined_us, joined, sizeof(joined));
    dibs__table_cell(table, rec->id);
    dibs__table_cell(table, draining ? "draining" : "active");
    dibs__table_cell(table, rec->host);
    dibs__table_cellf(table, "%" PRId64, rec->pid);
    dibs__table_cellf(table, "%zu/%" PRIu64, running, rec->slots);
    dibs__table_cell(table, rec->labels[0] ? rec->labels : "-");
    dibs__table_cell(table, joined);
}

static int show_list(const dibs__command *cmd, const dibs__board *board,
                     const node_list *list)
{
    static const char *const heads[] = {"NODE",    "STATE",  "HOST",  "PID",
                                        "RUNNING", "LABELS", "JOINED"};
    bool json = dibs__opt_flag(cmd, "json");
    dibs__report report = {0};
    dibs__table table;
    dibs__node_record rec;
    int code = 0;

    dibs__table_init(&table, sizeof(heads) / sizeof(heads[0]), heads);
    if (json) {
        dibs__report_begin(&report);
        dibsx_json_key(&report.js, "nodes");
        dibsx_json_open(&report.js, '[');
    }
    for (size_t i = 0; i < list->count; i++) {
        const listed_node *one = &list->at[i];
        size_t running;

        if (one->until_us <= list->now_us ||
            read_record(board, one->id, &rec, NULL) != DIBS_OK)
            continue;
        running = count_running(list, rec.fence);
        if (json)
            json_node(&report.js, &rec, one->draining, running);
        else
            row_of_node(&table, &rec, one->draining, running);
    }
    if (json) {
        dibsx_json_close(&report.js, ']');
        code = dibs__report_end(&report);
    } else {
        code = dibs__table_print(&table, dibs__colours_of(cmd));
    }
    dibs__table_fini(&table);
    return code;
}

/* Opens the board, reads the list, and does something with both. */
typedef int list_fn(const dibs__command *cmd, const dibs__board *board,
                    const node_list *list);

static int with_list(const dibs__command *cmd, list_fn *use)
{
    node_list *list = dibsx_zalloc(sizeof(*list));
    dibs__open_board ob;
    dibs_error err = {0};
    int code;

    if (!list)
        return dibs__cli_nomem("the list of nodes");
    code = dibs__board_open(cmd, &ob);
    if (!code && read_list(&ob.board, list, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    if (!code)
        code = use(cmd, &ob.board, list);
    dibs__board_close(&ob);
    dibsx_free(list);
    return code;
}

static int show_nodes(const dibs__command *cmd)
{
    return with_list(cmd, show_list);
}

/* The node whose id begins so; NULL after a message. */
static const listed_node *find_node(const node_list *list, const char *begins)
{
    const listed_node *found = NULL;

    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].until_us <= list->now_us ||
            strncmp(list->at[i].id, begins, strlen(begins)) != 0)
            continue;
        if (found) {
            dibs__cli_say("more than one node begins with %s; give more of its "
                          "id",
                          begins);
            return NULL;
        }
        found = &list->at[i];
    }
    if (!found)
        dibs__cli_say("there is no node %s; 'dibs job nodes' lists those there "
                      "are",
                      begins);
    return found;
}

static int drain_listed(const dibs__command *cmd, const dibs__board *board,
                        const node_list *list)
{
    const listed_node *found = find_node(list, dibs__operands(cmd)[0]);
    bool doubt = false;
    dibs_error err = {0};
    dibs__intent in;
    dibs_status rc;
    int code;

    if (!found)
        return 1;
    code = dibs__cli_change_begin(cmd, board->cl, "node-drain", found->id);
    if (code)
        return code;
    dibs__intent_init(&in);
    dibs__node_record_drain(found->id, found->until_us, &in);
    rc = dibs__board_commit(board, &in, &doubt, &err);
    dibs__cli_change_end(cmd, board->cl, "node-drain", found->id, rc);
    if (rc != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    dibs__intent_fini(&in);
    return code;
}

static int drain_node(const dibs__command *cmd)
{
    return with_list(cmd, drain_listed);
}

const dibs__verb dibs__verb_job_nodes = {
    .name = "job nodes",
    .summary = "list the nodes that execute jobs",
    .about = "Shows the nodes of a board: where they run, their labels, and "
             "how many of their slots are in use. A node that drains takes "
             "nothing new. A node that has died is listed until its record "
             "expires, three times its ttl after it was written.\n",
    .examples = "  dibs job nodes\n",
    .exits = "0 the list was printed; it may be empty\n",
    .options = "json",
    .run = show_nodes,
};

const dibs__verb dibs__verb_job_drain = {
    .name = "job drain",
    .operands = "NODE",
    .summary = "let a node finish its work and stop",
    .about =
        "Does the same as TERM to the node: it takes nothing new, and "
        "stops when its commands have ended, or have been ended after its "
        "--drain-within. NODE is its id, or the beginning of it. The verb "
        "does not wait; dibs job nodes shows the node until it has left.\n",
    .examples = "  dibs job drain 254b81d2\n",
    .exits = "1 there is no such node\n",
    .options = "reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = drain_node,
};
