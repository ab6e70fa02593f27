/* verb_queue_items.c - queue peek, dead, purge, redrive: the items of a queue. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/changes.h"
#include "cli/confirm.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/value_json.h"
#include "cli/verbs.h"
#include "show/queue_json.h"
#include <dibs/queue_admin.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHOWN_COLUMNS = 60, /* of the data, in a table */
    SHOWN_BYTES = SHOWN_COLUMNS * 4
};

/* The beginning of the data, in one cell. */
static void add_data(dibs__table *table, const dibs_item_info *item)
{
    char start[SHOWN_BYTES + 1];
    size_t len = item->len < SHOWN_BYTES ? item->len : SHOWN_BYTES;
    dibsx_buf text;

    memcpy(start, item->data, len);
    for (size_t i = 0; i < len; i++)
        start[i] = (char)(start[i] == '\0' ? '?' : start[i]);
    start[len] = '\0';
    dibsx_buf_init(&text, sizeof(start) + 8);
    dibs__cut(&text, start, SHOWN_COLUMNS);
    if (text.len < item->len)
        dibsx_buf_puts(&text, "...");
    dibs__table_cell(table, dibsx_buf_text(&text));
    dibsx_buf_fini(&text);
}

static bool add_row(const dibs_item_info *item, void *arg)
{
    dibs__table *table = arg;
    char due[32] = "";

    if (item->place == DIBS_ITEM_LATER)
        dibsx_duration_text(item->due_ms, due, sizeof(due));
    dibs__table_cellf(table, "%" PRIu64, item->id);
    dibs__table_cellf(table, "%" PRId32, item->priority);
    dibs__table_cellf(table, "%u", (unsigned)item->attempts);
    dibs__table_cell(table, due);
    dibs__table_cell(table, item->to);
    dibs__table_cell(table, item->reason);
    dibs__table_cellf(table, "%zu", item->len);
    add_data(table, item);
    return true;
}

static bool add_dead_row(const dibs_item_info *item, void *arg)
{
    dibs__table *table = arg;
    char since[64];

    dibs__wall_text(item->dead_wall_us, since, sizeof(since));
    dibs__table_cellf(table, "%" PRIu64, item->id);
    dibs__table_cell(table, since);
    dibs__table_cellf(table, "%u", (unsigned)item->attempts);
    dibs__table_cellf(table, "%u", (unsigned)item->lost);
    dibs__table_cell(table, item->reason);
    dibs__table_cellf(table, "%zu", item->len);
    add_data(table, item);
    return true;
}

static bool add_json(const dibs_item_info *item, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibs__json_item(js, item, "place", "since", SIZE_MAX);
    dibsx_json_close(js, '}');
    return true;
}

static dibs_status
list_place(const dibs__command *cmd, dibs_client *cl, dibs_item_place place,
           dibs_item_info_fn *each, void *out, dibs_error *err)
{
    return dibs_queue_peek(cl, dibs__operands(cmd)[0], place,
                           (size_t)dibs__opt_int(cmd, "skip"),
                           (size_t)dibs__opt_int(cmd, "count"), each, out, err);
}

static dibs_status list_items(const dibs__command *cmd, dibs_client *cl,
                              dibs__shape shape, void *out, dibs_error *err)
{
    return list_place(cmd, cl, dibs__place_find(dibs__opt_text(cmd, "place")),
                      shape == DIBS__AS_JSON ? add_json : add_row, out, err);
}

static dibs_status list_dead(const dibs__command *cmd, dibs_client *cl,
                             dibs__shape shape, void *out, dibs_error *err)
{
    return list_place(cmd, cl, DIBS_ITEM_DEAD,
                      shape == DIBS__AS_JSON ? add_json : add_dead_row, out,
                      err);
}

static int peek_items(const dibs__command *cmd)
{
    static const char *const heads[] = {"ID", "PRIORITY", "ATTEMPTS", "DUE",
                                        "TO", "REASON",   "BYTES",    "DATA"};
    static const dibs__listing items = {.key = "items",
                                        .heads = heads,
                                        .columns = 8,
                                        .list = list_items};

    return dibs__list(cmd, &items);
}

static int show_dead(const dibs__command *cmd)
{
    static const char *const heads[] = {"ID",     "SINCE", "ATTEMPTS", "LOST",
                                        "REASON", "BYTES", "DATA"};
    static const dibs__listing items = {.key = "items",
                                        .heads = heads,
                                        .columns = 7,
                                        .list = list_dead};

    return dibs__list(cmd, &items);
}

/* Says how many it is about, and asks, unless --yes. */
static int
confirm_change(const dibs__command *cmd, dibs_client *cl, const char *verb,
               uint64_t (*count)(const dibs__command *,
                                 const dibs_queue_info *))
{
    const char *name = dibs__operands(cmd)[0];
    dibs_queue_info info = {.size = sizeof(info)};
    dibs_error err = {0};
    char question[DIBS_NAME_MAX + 96];
    uint64_t many;

    if (dibs__opt_flag(cmd, "yes"))
        return 0;
    if (dibs_queue_stats(cl, name, &info, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    many = count(cmd, &info);
    snprintf(question, sizeof(question), "%s %" PRIu64 " item%s of %s?", verb,
             many, many == 1 ? "" : "s", name);
    return dibs__confirm(question);
}

static int
report_change(const dibs__command *cmd, const char *key, uint64_t count)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        if (dibs__opt_flag(cmd, "quiet"))
            return 0;
        printf("%" PRIu64 "\n", count);
        return dibs__out_done();
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_uint(&report.js, key, count);
    return dibs__report_end(&report);
}

static uint32_t purge_places(const dibs__command *cmd)
{
    uint32_t named = (dibs__opt_flag(cmd, "dead") ? DIBS_ITEM_DEAD : 0u) |
                     (dibs__opt_flag(cmd, "done") ? DIBS_ITEM_DONE : 0u);

    if (dibs__opt_flag(cmd, "all"))
        return DIBS_ITEM_READY | DIBS_ITEM_LATER | DIBS_ITEM_OUT |
               DIBS_ITEM_DEAD | DIBS_ITEM_DONE;
    return named ? named : DIBS_ITEM_READY | DIBS_ITEM_LATER;
}

static uint64_t
count_purged(const dibs__command *cmd, const dibs_queue_info *info)
{
    uint32_t which = purge_places(cmd);

    return (which & DIBS_ITEM_READY ? info->ready + info->later : 0) +
           (which & DIBS_ITEM_OUT ? info->out : 0) +
           (which & DIBS_ITEM_DEAD ? info->dead : 0) +
           (which & DIBS_ITEM_DONE ? info->done : 0);
}

static int purge_items(const dibs__command *cmd)
{
    uint64_t purged = 0;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__confirm_possible(cmd), reported;

    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (!code)
        code = confirm_change(cmd, cl, "drop", count_purged);
    if (!code)
        code = dibs__cli_change_begin(cmd, cl, "queue-purge",
                                      dibs__operands(cmd)[0]);
    if (!code) {
        dibs_status rc = dibs_queue_purge(cl, dibs__operands(cmd)[0],
                                          purge_places(cmd), &purged, &err);

        dibs__cli_change_end_items(cmd, cl, "queue-purge",
                                   dibs__operands(cmd)[0], purged, rc);
        reported = rc == DIBS_OK || purged > 0
                       ? report_change(cmd, "purged", purged)
                       : 0;
        code = rc != DIBS_OK ? dibs__cli_fail(cmd, &err) : reported;
    }
    dibs_close(cl);
    return code;
}

static uint64_t
count_redriven(const dibs__command *cmd, const dibs_queue_info *info)
{
    uint64_t most = dibs__opt_given(cmd, "count")
                        ? (uint64_t)dibs__opt_int(cmd, "count")
                        : UINT64_MAX;

    if (dibs__operand_count(cmd) > 1)
        return 1;
    return info->dead < most ? info->dead : most;
}

static int parse_id(const dibs__command *cmd, uint64_t *id)
{
    const char *word = dibs__operands(cmd)[1];
    char *end = NULL;

    *id = 0;
    if (!word)
        return 0;
    errno = 0;
    *id = strtoull(word, &end, 10);
    if (*word >= '0' && *word <= '9' && *end == '\0' && !errno && *id != 0)
        return 0;
    dibs__cli_say("'%.60s' is not the id of an item: a number, as dibs queue "
                  "dead prints it",
                  word);
    return DIBS__EXIT_USAGE;
}

static int redrive_items(const dibs__command *cmd)
{
    uint64_t max = dibs__opt_given(cmd, "count")
                       ? (uint64_t)dibs__opt_int(cmd, "count")
                       : 0;
    uint64_t id, redriven = 0;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = parse_id(cmd, &id), reported;

    if (!code)
        code = dibs__confirm_possible(cmd);
    if (!code)
        code = dibs__cli_open(cmd, &cl);
    if (!code)
        code = confirm_change(cmd, cl, "redrive", count_redriven);
    if (!code)
        code = dibs__cli_change_begin(cmd, cl, "queue-redrive",
                                      dibs__operands(cmd)[0]);
    if (!code) {
        dibs_status rc = dibs_queue_redrive(cl, dibs__operands(cmd)[0], id, max,
                                            &redriven, &err);

        dibs__cli_change_end_items(cmd, cl, "queue-redrive",
                                   dibs__operands(cmd)[0], redriven, rc);
        reported = rc == DIBS_OK || redriven > 0
                       ? report_change(cmd, "redriven", redriven)
                       : 0;
        code = rc != DIBS_OK ? dibs__cli_fail(cmd, &err) : reported;
    }
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_CHOICE("place", "PLACE", "ready|later|out|dead|done"),
     .initial = "ready", .verbs = "queue peek",
     .help = "Which items: ready; later, that is delayed; out, with a worker; "
             "dead; or done: the records that a queue with --keep-done keeps, "
             "the last one first, with the result for the data."},
    {DIBS__ROW_INT("count", "N", 1, 1000000), .letter = 'n', .initial = "20",
     .help = "List so many items at most."},
    {DIBS__ROW_INT("skip", "N", 0, INT64_MAX / 2), .initial = "0",
     .help = "Begin after so many items."},
    {DIBS__ROW_INT("count", "N", 1, 1000000000), .letter = 'n',
     .otherwise = "all", .verbs = "queue redrive",
     .help = "Redrive so many at most."},
    {.name = "dead",
     .verbs = "queue purge",
     .help = "Drop the dead letters instead."},
    {.name = "done",
     .verbs = "queue purge",
     .help = "Drop the records of done items instead."},
    {.name = "all",
     .verbs = "queue purge",
     .help = "Drop dead letters and records of done items too, and the items "
             "that workers have: "
             "these cannot ack them any more."},
};

const dibs__option_rows dibs__options_queue_items =
    DIBS__OPTION_ROWS("queue peek,queue dead", options);

const dibs__verb dibs__verb_queue_peek = {
    .name = "queue peek",
    .operands = "NAME",
    .summary = "list items of a queue, without taking them",
    .about = "Ready items are listed in the order of delivery, those for a "
             "worker last; delayed ones as they become due. A table shows the "
             "beginning of the data, --json all of it: as data, or as "
             "data_base64 if it is not text.\n",
    .examples = "The next item:\n"
                "  dibs queue peek mail -n 1 --json\n"
                "What workers have in hand:\n"
                "  dibs queue peek mail --place out\n",
    .exits = "0 listed, also if there are none\n"
             "1 there is no such queue\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = peek_items,
};

const dibs__verb dibs__verb_queue_dead = {
    .name = "queue dead",
    .operands = "NAME",
    .summary = "list dead letters, the oldest first, with the reasons",
    .about = "An item is dead when its tries are used up, when its workers "
             "died with it too often, or when a worker gave it up. It stays "
             "until dibs queue redrive or dibs queue purge --dead.\n",
    .exits = "0 listed, also if there are none\n"
             "1 there is no such queue\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = show_dead,
};

const dibs__verb dibs__verb_queue_purge = {
    .name = "queue purge",
    .operands = "NAME",
    .summary = "drop the items of a queue",
    .about = "Drops items that are ready or delayed, and prints how many. "
             "Items with a worker stay, but for --all. Asks on a terminal; "
             "elsewhere --yes is needed.\n",
    .examples = "Drop the dead letters:\n"
                "  dibs queue purge mail --dead --yes\n",
    .exits = "0 purged, also if there was nothing\n"
             "1 there is no such queue, or the answer was no\n",
    .options = "json,yes,reason",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__QUEUES,
    .run = purge_items,
};

const dibs__verb dibs__verb_queue_redrive = {
    .name = "queue redrive",
    .operands = "NAME [ID]",
    .summary = "make dead letters new items at the end of the queue",
    .about = "All dead letters, the oldest first, or the one with this ID; "
             "prints how many. They begin at attempt 1 again. Asks on a "
             "terminal; elsewhere --yes is needed.\n",
    .examples = "Try one first, then the rest:\n"
                "  dibs queue redrive mail -n 1 --yes\n"
                "  dibs queue redrive mail --yes\n",
    .exits = "0 redriven, also if there was nothing\n"
             "1 there is no such queue or dead letter, or the answer was no\n"
             "75 the queue is full\n",
    .options = "json,yes,reason",
    .min_operands = 1,
    .max_operands = 2,
    .kind = DIBS__QUEUES,
    .run = redrive_items,
};
