/* verb_ls.c - ls and show: what is locked, by whom, and who waits. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/listing.h"
#include "cli/verbs.h"

#include <stdio.h>

static void cell_span(dibs__table *table, int64_t span_ms)
{
    char text[32];

    dibsx_duration_text(span_ms, text, sizeof(text));
    dibs__table_cell(table, text);
}

static void cell_party(dibs__table *table, const dibs_party *party)
{
    dibsx_buf text;

    dibsx_buf_init(&text, 4096);
    dibs__party_text(&text, party);
    if (party->left)
        dibsx_buf_puts(&text, ", released");
    dibs__table_cell(table, dibsx_buf_text(&text));
    dibsx_buf_fini(&text);
}

static void
row(dibs__table *table, const dibs_lease_info *info, const dibs_party *holder)
{
    dibs__table_cell(table, info->name);
    if (holder) {
        cell_party(table, holder);
        cell_span(table, holder->age_ms);
        cell_span(table, holder->left_ms);
        dibs__table_cellf(table, "%llu", (unsigned long long)holder->fence);
    } else {
        for (int i = 0; i < 4; i++)
            dibs__table_cell(table, "");
    }
    dibs__table_cellf(table, "%zu", info->waiter_count);
}

static bool each_row(const dibs_lease_info *info, void *arg)
{
    for (size_t i = 0; i < info->holder_count; i++)
        row(arg, info, &info->holders[i]);
    if (info->holder_count == 0)
        row(arg, info, NULL);
    return true;
}

static bool each_name(const dibs_lease_info *info, void *arg)
{
    (void)arg;
    dibs__list_name(info->name);
    return true;
}

static bool each_json(const dibs_lease_info *info, void *arg)
{
    dibsx_json *js = arg;

    dibsx_json_open(js, '{');
    dibs__json_lease(js, info);
    dibsx_json_close(js, '}');
    return true;
}

static dibs_status list(dibs_client *cl, const char *begins, dibs__shape shape,
                        void *out, dibs_error *err)
{
    static dibs_lease_fn *const each[DIBS__SHAPES] = {each_row, each_json,
                                                      each_name};

    return dibs_lease_list(cl, begins, each[shape], out, err);
}

int dibs__verb_ls(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "HOLDER", "HELD",
                                        "LEFT", "FENCE",  "WAITING"};
    static const dibs__listing locks = {.key = "locks",
                                        .heads = heads,
                                        .columns = 6,
                                        .list = list};

    return dibs__list(cmd, &locks);
}

/* What show hands to its callback. */
typedef struct showing {
    const dibs__command *cmd;
    int code;
} showing;

static int show_json(const dibs_lease_info *info)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibs__json_lease(&report.js, info);
    return dibs__report_end(&report);
}

static void
party_lines(dibsx_buf *out, const char *title, const dibs_party *parties,
            size_t count, const dibs__colours *colours)
{
    char age[32], left[32];

    for (size_t i = 0; i < count; i++) {
        const dibs_party *party = &parties[i];

        dibsx_duration_text(party->age_ms, age, sizeof(age));
        dibsx_duration_text(party->left_ms, left, sizeof(left));
        dibsx_buf_printf(out, "%s%s%s  ", colours->bold, title, colours->off);
        dibs__party_text(out, party);
        dibsx_buf_printf(out, "\n  owner   %s\n  mode    %s\n", party->owner,
                         party->mode);
        if (party->fence)
            dibsx_buf_printf(out, "  fence   %llu\n",
                             (unsigned long long)party->fence);
        if (party->priority)
            dibsx_buf_printf(out, "  priority %d\n", (int)party->priority);
        dibsx_buf_printf(out, "  since   %s\n  left    %s%s\n", age, left,
                         party->left    ? " (released, kept closed)"
                         : party->claim ? " (not yet confirmed)"
                                        : "");
    }
}

static int show_text(const dibs_lease_info *info, const dibs__colours *colours)
{
    dibsx_buf out;
    int code = DIBS__EXIT_INTERNAL;

    dibsx_buf_init(&out, DIBS__OUT_MAX);
    dibsx_buf_printf(&out, "%sname%s    ", colours->bold, colours->off);
    dibs__clean(&out, info->name);
    dibsx_buf_putc(&out, '\n');
    if (info->capacity)
        dibsx_buf_printf(&out, "permits %u\n", (unsigned)info->capacity);
    party_lines(&out, "holder", info->holders, info->holder_count, colours);
    party_lines(&out, "waiter", info->waiters, info->waiter_count, colours);
    if (dibsx_buf_ok(&out)) {
        dibs__out(out.data, out.len);
        code = dibs__out_done();
    } else {
        dibs__cli_say("no memory for the output");
    }
    dibsx_buf_fini(&out);
    return code;
}

static bool show_one(const dibs_lease_info *info, void *arg)
{
    showing *sh = arg;

    sh->code = dibs__opt_flag(sh->cmd, "json")
                   ? show_json(info)
                   : show_text(info, dibs__colours_of(sh->cmd));
    return false;
}

int dibs__verb_show(const dibs__command *cmd)
{
    showing sh = {.cmd = cmd};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    rc = dibs_lease_show(cl, dibs__operands(cmd)[0], show_one, &sh, &err);
    dibs_close(cl);
    return rc == DIBS_OK ? sh.code : dibs__cli_fail(cmd, &err);
}
