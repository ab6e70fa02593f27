/* verb_deadlocks.c - deadlocks: who waits in a circle, in words. Main thread only.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/fail.h"
#include "cli/options.h"
#include "cli/poll_verb.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "show/monitor_json.h"

#include <string.h>

/* One look, written down. */
typedef struct finding {
    bool json;
    size_t circles;
    dibs__report report; /* as JSON, */
    dibsx_buf text;      /* or in words */
    dibsx_buf mark;      /* what makes it differ from another look */
} finding;

static void put_who(dibsx_buf *out, const dibs_wait_link *link)
{
    dibs__clean(out, link->who);
    if (*link->label) {
        dibsx_buf_puts(out, " (");
        dibs__clean(out, link->label);
        dibsx_buf_putc(out, ')');
    }
}

/* `next` holds what is waited for. */
static void
put_link(dibsx_buf *out, const dibs_wait_link *link, const dibs_wait_link *next)
{
    char waited[32];

    dibsx_duration_text(link->waited_ms, waited, sizeof(waited));
    dibsx_buf_puts(out, "  ");
    put_who(out, link);
    dibsx_buf_puts(out, " holds ");
    dibs__clean(out, link->holds);
    dibsx_buf_printf(out, " (fence %llu) and waits %s for ",
                     (unsigned long long)link->fence, waited);
    dibs__clean(out, link->wants);
    dibsx_buf_puts(out, ", held by ");
    put_who(out, next);
    dibsx_buf_putc(out, '\n');
}

static bool add_circle(const dibs_wait_link *links, size_t count, void *arg)
{
    finding *found = arg;

    found->circles++;
    for (size_t i = 0; i < count; i++)
        dibsx_buf_printf(&found->mark, "%s %llu %s\n", links[i].who,
                         (unsigned long long)links[i].fence, links[i].wants);
    if (found->json) {
        dibsx_json_open(&found->report.js, '{');
        dibsx_json_key(&found->report.js, "links");
        dibs__json_links(&found->report.js, links, count);
        dibsx_json_close(&found->report.js, '}');
        return true;
    }
    dibsx_buf_printf(&found->text, "deadlock of %zu:\n", count);
    for (size_t i = 0; i < count; i++)
        put_link(&found->text, &links[i], &links[(i + 1) % count]);
    return true;
}

static void finding_fini(finding *found)
{
    dibsx_buf_fini(&found->report.buf);
    dibsx_buf_fini(&found->text);
    dibsx_buf_fini(&found->mark);
}

/* End with finding_fini(), whatever the answer. */
static dibs_status find_circles(const dibs__command *cmd, dibs_client *cl,
                                finding *found, dibs_error *err)
{
    dibs_status rc;

    *found = (finding){.json = dibs__opt_flag(cmd, "json")};
    dibsx_buf_init(&found->text, DIBS__OUT_MAX);
    dibsx_buf_init(&found->mark, DIBS__OUT_MAX);
    dibs__report_begin(&found->report);
    dibsx_json_key(&found->report.js, "deadlocks");
    dibsx_json_open(&found->report.js, '[');
    rc = dibs_deadlocks(cl, dibs__operands(cmd)[0], add_circle, found, err);
    dibsx_json_close(&found->report.js, ']');
    if (!found->circles)
        dibsx_buf_puts(&found->text, "no deadlock\n");
    if (rc == DIBS_OK &&
        (!dibsx_buf_ok(&found->text) || !dibsx_buf_ok(&found->mark)))
        rc = dibsx_nomem(err, "the output");
    return rc;
}

static int print(finding *found)
{
    if (found->json)
        return dibs__report_end(&found->report);
    dibs__out_text(dibsx_buf_text(&found->text));
    return dibs__out_done();
}

/* Prints what is not as it was; `arg` is the look before. */
static int look_again(const dibs__command *cmd, dibs_client *cl, void *arg)
{
    finding *before = arg, now;
    dibs_error err = {0};
    int code = 0;

    if (find_circles(cmd, cl, &now, &err) != DIBS_OK) {
        finding_fini(&now);
        return dibs__poll_verb_failed(cmd, &err);
    }
    if (strcmp(dibsx_buf_text(&now.mark), dibsx_buf_text(&before->mark)) != 0)
        code = print(&now);
    finding_fini(before);
    *before = now;
    return code;
}

static int look_once(const dibs__command *cmd)
{
    finding found = {.json = false};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    if (find_circles(cmd, cl, &found, &err) == DIBS_OK)
        code = print(&found);
    else
        code = dibs__cli_fail(cmd, &err);
    if (!code && found.circles)
        code = 1;
    finding_fini(&found);
    dibs_close(cl);
    return code;
}

static int find_deadlocks(const dibs__command *cmd)
{
    finding before = {.json = false};
    int code;

    if (!dibs__opt_flag(cmd, "watch"))
        return look_once(cmd);
    code = dibs__poll_verb(cmd, look_again, &before);
    finding_fini(&before);
    return code;
}

static const dibs__option options[] = {
    {.name = "watch",
     .help = "Look again and again, and print what is new, until interrupted."},
};

const dibs__option_rows dibs__options_deadlocks =
    DIBS__OPTION_ROWS("deadlocks", options);

const dibs__verb dibs__verb_deadlocks = {
    .name = "deadlocks",
    .operands = "[PREFIX]",
    .summary = "find holders that wait for each other",
    .about = "Prints each circle: who holds what, and waits for what, and who "
             "holds that. Among names that begin with PREFIX, if it is given. "
             "Owners are compared by host, process and thread. A dibs run or "
             "acquire that waits inside the command of another run counts as "
             "a wait of that run too, whose command is taken to wait for it. "
             "Names acquired with run --also cannot deadlock.\n"
             "To end one, break one of its leases, or let the waits be bounded "
             "(-w).\n",
    .examples = "As a check:\n"
                "  dibs deadlocks --json >circles.json || mail-them\n",
    .exits = "0 there is none\n"
             "1 there is at least one\n"
             "128+N with --watch: ended by signal N\n",
    .options = "json,interval",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = find_deadlocks,
};
