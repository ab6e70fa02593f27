/* verb_show.c - show: one lock with its holders and its queue. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

/* The argument of the callback of show. */
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

/* "key=value" texts with a tab between them, a line each. */
static void meta_lines(dibsx_buf *out, const char *meta)
{
    char text[1024];

    while (*meta) {
        size_t len = strcspn(meta, "\t");

        snprintf(text, sizeof(text), "%.*s", (int)len, meta);
        dibsx_buf_puts(out, "  meta      ");
        dibs__clean(out, text);
        dibsx_buf_putc(out, '\n');
        meta += len + (meta[len] != '\0');
    }
}

static void times(dibsx_buf *out, const dibs_party *party)
{
    char age[32], left[32];

    dibsx_duration_text(party->age_ms, age, sizeof(age));
    dibsx_duration_text(party->left_ms, left, sizeof(left));
    dibsx_buf_printf(out, "  since     %s\n  left      %s%s\n", age, left,
                     party->left    ? " (released, kept closed)"
                     : party->claim ? " (not yet confirmed)"
                                    : "");
}

static void party_lines(dibsx_buf *out, const dibs_party *party,
                        uint32_t capacity, const dibs__colours *colours)
{
    dibs__party_text(out, party);
    dibsx_buf_printf(out, "\n  owner     %s\n  mode      ", party->owner);
    dibsx_buf_puts(out, capacity ? "permits, " : "");
    dibs__mode_text(out, party, capacity);
    dibsx_buf_putc(out, '\n');
    if (party->fence)
        dibsx_buf_printf(out, "  fence     %llu\n",
                         (unsigned long long)party->fence);
    if (party->priority)
        dibsx_buf_printf(out, "  priority  %d\n", (int)party->priority);
    times(out, party);
    meta_lines(out, party->meta);
    if (party->stale) {
        dibsx_buf_printf(out, "  %sstale%s     ", colours->yellow,
                         colours->off);
        dibs__clean(out, party->stale);
        dibsx_buf_putc(out, '\n');
    }
}

static int show_text(const dibs_lease_info *info, const dibs__colours *colours)
{
    dibsx_buf out;
    int code = DIBS__EXIT_INTERNAL;

    dibsx_buf_init(&out, DIBS__OUT_MAX);
    dibsx_buf_printf(&out, "%sname%s  ", colours->bold, colours->off);
    dibs__clean(&out, info->name);
    dibsx_buf_putc(&out, '\n');
    for (size_t i = 0; i < info->holder_count; i++) {
        dibsx_buf_printf(&out, "%sholder%s  ", colours->bold, colours->off);
        party_lines(&out, &info->holders[i], info->capacity, colours);
    }
    for (size_t i = 0; i < info->waiter_count; i++) {
        dibsx_buf_printf(&out, "%swaiter %zu%s  ", colours->bold, i + 1,
                         colours->off);
        party_lines(&out, &info->waiters[i], info->capacity, colours);
    }
    if (dibsx_buf_ok(&out)) {
        dibs__out(out.data, out.len);
        code = dibs__out_done();
    } else {
        code = dibs__cli_nomem("the output");
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

static int show_lock(const dibs__command *cmd)
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

const dibs__verb dibs__verb_show = {
    .name = "show",
    .operands = "NAME",
    .summary = "show one lock with its holders and its queue",
    .about = "Waiters come in the order in which they will be served.\n",
    .examples = "The holder of a lock:\n"
                "  dibs show nightly-backup\n",
    .exits = "0 shown\n"
             "1 nobody holds it and nobody waits\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = show_lock,
};
