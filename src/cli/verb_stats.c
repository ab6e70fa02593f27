/* verb_stats.c - stats: what is going on now, and what went on with each name. */
/* SPDX-License-Identifier: MIT */
#include "cli/list_verb.h"
#include "cli/verbs.h"
#include "show/monitor_json.h"

typedef struct visit {
    dibsx_json *js; /* NULL: as a table */
    dibs__table *table;
    size_t count;
} visit;

static int64_t longest_wait_ms(const dibs_lease_info *info)
{
    int64_t longest = 0;

    for (size_t i = 0; i < info->waiter_count; i++) {
        if (info->waiters[i].age_ms > longest)
            longest = info->waiters[i].age_ms;
    }
    return longest;
}

static size_t holder_count(const dibs_lease_info *info)
{
    size_t count = 0;

    for (size_t i = 0; i < info->holder_count; i++)
        count += !info->holders[i].left;
    return count;
}

static bool each_live(const dibs_lease_info *info, void *arg)
{
    visit *vt = arg;

    vt->count++;
    if (vt->js) {
        dibsx_json_open(vt->js, '{');
        dibsx_json_pair_text(vt->js, "name", info->name);
        dibsx_json_pair_uint(vt->js, "holders", holder_count(info));
        dibsx_json_pair_uint(vt->js, "waiters", info->waiter_count);
        dibsx_json_pair_int(vt->js, "longest_wait_ms", longest_wait_ms(info));
        dibsx_json_close(vt->js, '}');
        return true;
    }
    dibs__table_cell(vt->table, info->name);
    dibs__table_cellf(vt->table, "%zu", holder_count(info));
    dibs__table_cellf(vt->table, "%zu", info->waiter_count);
    if (info->waiter_count)
        dibs__table_span(vt->table, longest_wait_ms(info));
    else
        dibs__table_cell(vt->table, "");
    return true;
}

static void cell_count(dibs__table *table, uint64_t count)
{
    dibs__table_cellf(table, "%llu", (unsigned long long)count);
}

static void cell_spans(dibs__table *table, const dibs_spans *spans)
{
    const uint64_t us[] = {spans->mean_us, spans->p50_us, spans->p95_us,
                           spans->p99_us, spans->max_us};

    for (size_t i = 0; i < sizeof(us) / sizeof(us[0]); i++) {
        if (spans->count)
            dibs__table_span_us(table, us[i]);
        else
            dibs__table_cell(table, "");
    }
}

static bool each_shared(const dibs_name_stats *st, void *arg)
{
    visit *vt = arg;

    vt->count++;
    if (vt->js) {
        dibs__json_stats(vt->js, st);
        return true;
    }
    dibs__table_cell(vt->table, st->name);
    cell_count(vt->table, st->attempts);
    cell_count(vt->table, st->acquired);
    cell_count(vt->table, st->busy);
    cell_count(vt->table, st->lost);
    cell_count(vt->table, st->failed);
    dibs__table_cellf(vt->table, "%u%%",
                      st->attempts
                          ? (unsigned)(st->contended * 100 / st->attempts)
                          : 0);
    cell_spans(vt->table, &st->wait);
    cell_spans(vt->table, &st->hold);
    return true;
}

static int print_json(const dibs__command *cmd, dibs_client *cl)
{
    const char *begins = dibs__operands(cmd)[0];
    dibs__report report;
    visit vt = {.js = &report.js};
    dibs_error err = {0};
    dibs_status rc;

    dibs__report_begin(&report);
    dibsx_json_key(&report.js, "live");
    dibsx_json_open(&report.js, '[');
    rc = dibs_lease_list(cl, begins, each_live, &vt, &err);
    dibsx_json_close(&report.js, ']');
    dibsx_json_key(&report.js, "names");
    dibsx_json_open(&report.js, '[');
    if (rc == DIBS_OK)
        rc = dibs_name_stats_shared(cl, begins, each_shared, &vt, &err);
    dibsx_json_close(&report.js, ']');
    if (rc == DIBS_OK)
        return dibs__report_end(&report);
    dibsx_buf_fini(&report.buf);
    return dibs__cli_fail(cmd, &err);
}

/* Names that are in use just now. */
static int print_live(const dibs__command *cmd, dibs_client *cl)
{
    static const char *const heads[] = {"NAME", "HOLDERS", "WAITERS",
                                        "LONGEST-WAIT"};
    dibs__table table;
    visit vt = {.table = &table};
    dibs_error err = {0};
    int code = 0;

    dibs__table_init(&table, sizeof(heads) / sizeof(heads[0]), heads);
    if (dibs_lease_list(cl, dibs__operands(cmd)[0], each_live, &vt, &err) !=
        DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (vt.count)
        code = dibs__table_print(&table, dibs__colours_of(cmd));
    if (!code && vt.count)
        dibs__out_text("\n");
    dibs__table_fini(&table);
    return code;
}

static int print_shared(const dibs__command *cmd, dibs_client *cl)
{
    static const char *const heads[] = {"NAME",      "ATTEMPTS",  "ACQUIRED",
                                        "BUSY",      "LOST",      "FAILED",
                                        "CONTENDED", "WAIT-MEAN", "P50",
                                        "P95",       "P99",       "MAX",
                                        "HOLD-MEAN", "P50",       "P95",
                                        "P99",       "MAX"};
    dibs__table table;
    visit vt = {.table = &table};
    dibs_error err = {0};
    int code = 0;

    dibs__table_init(&table, sizeof(heads) / sizeof(heads[0]), heads);
    if (dibs_name_stats_shared(cl, dibs__operands(cmd)[0], each_shared, &vt,
                               &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (vt.count)
        code = dibs__table_print(&table, dibs__colours_of(cmd));
    else if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("no statistics are shared here: --share-stats, "
                      "DIBS_SHARE_STATS=1 or share_stats: yes in the "
                      "configuration makes run and acquire share theirs");
    dibs__table_fini(&table);
    return code;
}

static int show_stats(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    int code = dibs__cli_open(cmd, &cl);

    if (!code && dibs__opt_flag(cmd, "json")) {
        code = print_json(cmd, cl);
    } else if (!code) {
        code = print_live(cmd, cl);
        if (!code)
            code = print_shared(cmd, cl);
    }
    dibs_close(cl);
    return code;
}

const dibs__verb dibs__verb_stats = {
    .name = "stats",
    .operands = "[PREFIX]",
    .summary = "show how much locks are used and waited for",
    .about =
        "First the names in use: how many hold them, how many wait, and how "
        "long the first of these has waited. Then what became of all "
        "acquires of each name, the most contended first: attempts, how many "
        "were acquired, refused or not granted in time (busy), lost, ended "
        "by an error (failed), how many had to wait or were refused "
        "(contended), and how long the waiting and the holding took: on the "
        "mean, in half of the cases at most P50, in 95 of a hundred at most "
        "P95, in 99 at most P99, and never more than MAX.\n"
        "The second part is of those who share their statistics in the "
        "store, which costs them a little: run and acquire with "
        "--share-stats, DIBS_SHARE_STATS=1 or share_stats: yes in the "
        "configuration, programs with share_stats in their options. It is "
        "as of a few seconds ago and forgets a name after a day without "
        "use. A lock of acquire counts as held until its token is printed.\n",
    .examples = "The most contended names:\n"
                "  dibs stats | head\n",
    .exits = "0 shown, even when there is nothing\n",
    .options = "json",
    .max_operands = 1,
    .kind = DIBS__LOCKS,
    .run = show_stats,
};
