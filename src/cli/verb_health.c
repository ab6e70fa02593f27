/* verb_health.c - health: does coordination work, part by part? */
/* SPDX-License-Identifier: MIT */
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <stdio.h>

typedef struct visit {
    bool json;
    dibs__report report; /* the list of parts is open */
    dibs__table table;
} visit;

static const char *health_word(dibs_health health)
{
    static const char *const words[] = {"healthy", "degraded", "unhealthy"};

    return words[health];
}

static const char *result_word(dibs_part_result result)
{
    static const char *const words[] = {"ok", "skipped", "slow", "missing",
                                        "failed"};

    return words[result];
}

static void add_part(const dibs_health_part *part, void *arg)
{
    visit *vt = arg;
    dibsx_json *js = &vt->report.js;

    if (!vt->json) {
        dibs__table_cell(&vt->table, part->name);
        dibs__table_cell(&vt->table, result_word(part->result));
        dibs__table_span_us(&vt->table, (uint64_t)part->took_us);
        dibs__table_cell(&vt->table, part->detail);
        return;
    }
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", part->name);
    dibsx_json_pair_text(js, "result", result_word(part->result));
    dibsx_json_pair_text(js, "status", dibs_status_name(part->status));
    dibsx_json_pair_int(js, "took_us", part->took_us);
    dibsx_json_pair_text(js, "detail", part->detail);
    dibsx_json_close(js, '}');
}

static void begin_visit(visit *vt)
{
    static const char *const heads[] = {"PART", "RESULT", "TOOK", "DETAIL"};

    dibs__table_init(&vt->table, 4, heads);
    dibs__report_begin(&vt->report);
    dibsx_json_key(&vt->report.js, "parts");
    dibsx_json_open(&vt->report.js, '[');
}

/* Prints what was found and frees it. `url` and `why` may be NULL. */
static int end_visit(const dibs__command *cmd, visit *vt, dibs_health health,
                     const char *url, const char *why)
{
    const dibs__colours *colours = dibs__colours_of(cmd);
    int code = 0;

    if (vt->json) {
        dibsx_json_close(&vt->report.js, ']');
        dibsx_json_pair_text(&vt->report.js, "health", health_word(health));
        dibsx_json_pair_text(&vt->report.js, "reason", why);
        dibsx_json_pair_text(&vt->report.js, "url", url);
        code = dibs__report_end(&vt->report);
    } else {
        dibsx_buf_fini(&vt->report.buf);
        if (!dibs__opt_flag(cmd, "quiet")) {
            printf("%s%s%s\n",
                   health == DIBS_HEALTHY    ? colours->green
                   : health == DIBS_DEGRADED ? colours->yellow
                                             : colours->red,
                   health_word(health), colours->off);
            code = dibs__table_print(&vt->table, colours);
        }
    }
    dibs__table_fini(&vt->table);
    return code;
}

/* A store that cannot be opened is unhealthy, and JSON says so too. */
static int report_closed(const dibs__command *cmd, int open_code)
{
    visit vt = {.json = true};

    if (open_code == DIBS__EXIT_USAGE || !dibs__opt_flag(cmd, "json"))
        return open_code;
    begin_visit(&vt);
    (void)end_visit(cmd, &vt, DIBS_UNHEALTHY, NULL,
                    "the store cannot be opened");
    return open_code;
}

static int check_health(const dibs__command *cmd)
{
    visit vt = {.json = dibs__opt_flag(cmd, "json")};
    dibs_health health = DIBS_UNHEALTHY;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int code = dibs__cli_open_lazy(cmd, &cl);

    if (code)
        return report_closed(cmd, code);
    begin_visit(&vt);
    rc = dibs_health_check(
        cl,
        DIBS_HEALTH_OPTS(.election = dibs__opt_text(cmd, "election"),
                         .group = dibs__opt_text(cmd, "group"),
                         .slow_ms = dibs__opt_ms(cmd, "slow"), .each = add_part,
                         .arg = &vt),
        &health, &err);
    code = end_visit(cmd, &vt, health, dibs_url(cl),
                     rc == DIBS_OK ? NULL : err.message);
    dibs_close(cl);
    if (rc != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    return code ? code : health == DIBS_DEGRADED;
}

static const dibs__option options[] = {
    {DIBS__ROW_TEXT("election", "NAME"), .otherwise = "none is looked at",
     .help = "An election that must have a leader."},
    {DIBS__ROW_TEXT("group", "GROUP"), .otherwise = "none is looked at",
     .help = "A group that must have members."},
    {DIBS__ROW_SPAN("slow", 1, DIBS__DAYS(1)), .initial = "1s",
     .help = "A part that takes longer than this is slow."},
};

const dibs__option_rows dibs__options_health =
    DIBS__OPTION_ROWS("health", options);

const dibs__verb dibs__verb_health = {
    .name = "health",
    .summary = "check that locks, values and leaders work, and time them",
    .about =
        "Acquires and releases a lock, and writes, reads, replaces and deletes "
        "a value. Both have a name of their own below dibs.health/ and expire "
        "after 5 seconds, so that the check disturbs nobody and leaves nothing "
        "behind. With --election it looks for a leader, with --group for "
        "members.\n"
        "Each part is ok, slow (longer than --slow), missing (no leader, no "
        "members), failed, or skipped: this store cannot do it, or a part "
        "before found the store out of reach. A slow or missing part makes "
        "the whole degraded, a failed one unhealthy; the exit code says why: "
        "69, 77 or 78.\n"
        "In a Redis cluster a check uses one shard, by the name of the host. "
        "To see only whether the store answers, use dibs ping.\n",
    .examples = "As the health check of a service that needs its scheduler:\n"
                "  dibs health -q --election scheduler\n"
                "For a dashboard:\n"
                "  dibs health --json --slow 50ms\n",
    .exits = "0 healthy\n"
             "1 degraded: a part is slow, or there is no leader or member\n"
             "64 --group is the name of a barrier or a latch\n"
             "78 the store lost the lock or the value of the check\n",
    .options = "json",
    .run = check_health,
};
