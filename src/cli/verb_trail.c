/* verb_trail.c - trail: what was done by force, and by operators. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/poll_verb.h"
#include "cli/verbs.h"

#include <string.h>

typedef struct reading {
    const dibs__command *cmd;
    dibs__shape shape;
    void *out;
    uint64_t after; /* the position of the last entry that was seen */
    int code;
} reading;

static bool wanted(const reading *rd, const dibs_trail_entry *entry)
{
    const char *begins = dibs__operands(rd->cmd)[0];

    return !begins || strncmp(entry->name, begins, strlen(begins)) == 0;
}

static void json_pairs(dibsx_json *js, const dibs_trail_entry *entry)
{
    char time[40];

    dibs__wall_text(entry->wall_us, time, sizeof(time));
    dibsx_json_pair_uint(js, "position", entry->position);
    dibsx_json_pair_text(js, "time", time);
    dibsx_json_pair_text(js, "action", entry->action);
    dibsx_json_pair_text(js, "name", entry->name);
    dibsx_json_pair_uint(js, "fence", entry->fence);
    dibsx_json_pair_text(js, "holder", entry->holder);
    dibsx_json_pair_text(js, "by", entry->by);
    dibsx_json_pair_text(js, "reason", entry->reason);
}

static void put_row(dibs__table *table, const dibs_trail_entry *entry)
{
    char time[40];

    dibs__wall_text(entry->wall_us, time, sizeof(time));
    dibs__table_cell(table, time);
    dibs__table_cell(table, entry->action);
    dibs__table_cell(table, entry->name);
    if (entry->fence)
        dibs__table_cellf(table, "%llu", (unsigned long long)entry->fence);
    else
        dibs__table_cell(table, "");
    dibs__table_cell(table, entry->holder);
    dibs__table_cell(table, entry->by);
    dibs__table_cell(table, entry->reason);
}

static bool list_entry(const dibs_trail_entry *entry, void *arg)
{
    const reading *rd = arg;

    if (!wanted(rd, entry))
        return true;
    if (rd->shape == DIBS__AS_JSON) {
        dibsx_json_open(rd->out, '{');
        json_pairs(rd->out, entry);
        dibsx_json_close(rd->out, '}');
    } else {
        put_row(rd->out, entry);
    }
    return true;
}

static dibs_status list_entries(const dibs__command *cmd, dibs_client *cl,
                                dibs__shape shape, void *out, dibs_error *err)
{
    reading rd = {.cmd = cmd, .shape = shape, .out = out};

    return dibs_trail_read(cl, 0, list_entry, &rd, err);
}

static int print_line(const dibs_trail_entry *entry)
{
    char time[40];
    dibsx_buf line;
    int code;

    dibs__wall_text(entry->wall_us, time, sizeof(time));
    dibsx_buf_init(&line, 16 * 1024);
    dibsx_buf_printf(&line, "%s  %s  ", time, entry->action);
    dibs__clean(&line, entry->name);
    if (entry->fence)
        dibsx_buf_printf(&line, "  fence %llu",
                         (unsigned long long)entry->fence);
    if (*entry->holder) {
        dibsx_buf_puts(&line, "  from ");
        dibs__clean(&line, entry->holder);
    }
    dibsx_buf_puts(&line, "  by ");
    dibs__clean(&line, entry->by);
    if (*entry->reason) {
        dibsx_buf_puts(&line, ": ");
        dibs__clean(&line, entry->reason);
    }
    dibsx_buf_putc(&line, '\n');
    dibs__out_text(dibsx_buf_text(&line));
    code = dibsx_buf_ok(&line) ? dibs__out_done() : DIBS__EXIT_INTERNAL;
    dibsx_buf_fini(&line);
    return code;
}

static int print_json(const dibs_trail_entry *entry)
{
    dibs__report report;

    dibs__report_begin(&report);
    json_pairs(&report.js, entry);
    return dibs__report_end(&report);
}

static bool each_new(const dibs_trail_entry *entry, void *arg)
{
    reading *rd = arg;

    rd->after = entry->position;
    if (wanted(rd, entry))
        rd->code = dibs__opt_flag(rd->cmd, "json") ? print_json(entry)
                                                   : print_line(entry);
    return rd->code == 0;
}

static int print_news(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    reading *rd = arg;
    dibs_error err = {0};

    if (dibs_trail_read(cl, rd->after, each_new, rd, &err) != DIBS_OK)
        return dibs__poll_verb_failed(cmd, &err);
    return rd->code;
}

static int show_trail(const dibs__command *cmd)
{
    static const char *const heads[] = {"TIME",   "ACTION", "NAME",  "FENCE",
                                        "HOLDER", "BY",     "REASON"};
    static const dibs__listing trail = {.key = "trail",
                                        .heads = heads,
                                        .columns = 7,
                                        .list = list_entries};
    reading rd = {.cmd = cmd};

    if (dibs__opt_flag(cmd, "follow"))
        return dibs__poll_verb(cmd, print_news, &rd);
    return dibs__list(cmd, &trail);
}

static const dibs__option options[] = {
    {.name = "follow",
     .letter = 'f',
     .help = "Go on and print what is added, until interrupted."},
};

const dibs__option_rows dibs__options_trail =
    DIBS__OPTION_ROWS("trail", options);

const dibs__verb dibs__verb_trail = {
    .name = "trail",
    .operands = "[PREFIX]",
    .summary = "show what was done by force, and by operators",
    .about =
        "One line for each lease that was broken: when, which name and "
        "fence, who had it, who broke it, and why; and one for each change "
        "that an operator made with a verb or through 'dibs serve', such as "
        "queue-purge or job-pause. 'dibs job start' writes none: the run says "
        "who started it; nor does 'dibs job load' without --force. The store "
        "keeps the latest thousand or so. Only names that begin with PREFIX, "
        "if it is given. "
        "With --follow each line is printed as it comes; with --json as "
        "well, each is an object.\n",
    .examples = "Breaks of the nightly lock, and by whom:\n"
                "  dibs trail nightly\n",
    .exits = "0 shown, even when it is empty\n"
             "128+N with --follow: ended by signal N\n",
    .options = "json",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = show_trail,
};
