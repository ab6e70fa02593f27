/* verb_cron.c - cron check, next, explain: expressions without a store. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "jobs/calendar.h"
#include "jobs/cron.h"
#include "jobs/moment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MAX = 1000, WORDS_MAX = 8192 };

static const char day_number_warning[] =
    "a weekday is a number here: 0 and 7 are Sunday, but 1 is Sunday in "
    "Quartz; write a name, such as MON";

/* An expression of the command line, its zone, and the ticks that were asked for. */
typedef struct plan {
    const char *text;
    dibs__cron cron;
    dibs__zone *zone;
    int64_t after;
    dibs__tick *ticks;
    size_t tick_count;
} plan;

static void end_plan(plan *pl)
{
    dibs__zone_free(pl->zone);
    free(pl->ticks);
}

/* The expression, and a caret below the column. */
static void say_place(const char *text, int column)
{
    dibsx_buf out;

    dibsx_buf_init(&out, WORDS_MAX);
    dibsx_buf_puts(&out, "  ");
    dibs__clean(&out, text);
    dibsx_buf_printf(&out, "\n  %*s\n", column, "^");
    (void)fputs(dibsx_buf_text(&out), stderr);
    dibsx_buf_fini(&out);
}

static int refuse_expression(const dibs__command *cmd, const char *text,
                             int column, const dibs_error *err)
{
    if (err->status != DIBS_INVALID)
        return dibs__cli_fail(cmd, err);
    if (!dibs__opt_flag(cmd, "quiet")) {
        dibs__cli_say("the cron expression is wrong at column %d: %s", column,
                      err->message);
        if (strlen(text) <= DIBS__CRON_TEXT_MAX)
            say_place(text, column);
    }
    return DIBS__EXIT_CONFIG;
}

/* The one operand. A shell has split an expression that is not in quotes. */
static const char *find_text(const dibs__command *cmd)
{
    if (dibs__operand_count(cmd) == 1)
        return dibs__operands(cmd)[0];
    dibs__cli_say("there is more than one expression; quote it: '0 2 * * *'");
    return NULL;
}

static int open_zone(const dibs__command *cmd, dibs__zone **out)
{
    dibs_error err = {0};

    if (dibs__zone_open(dibs__opt_text(cmd, "zone"), out, &err) == DIBS_OK)
        return 0;
    (void)dibs__cli_fail(cmd, &err);
    return err.status == DIBS_DENIED || err.status == DIBS_NOMEM
               ? dibs__exit_code(err.status)
               : DIBS__EXIT_CONFIG;
}

static int find_after(const dibs__command *cmd, plan *pl)
{
    const char *after = dibs__opt_text(cmd, "after");

    pl->after = dibsx_wall_us() / 1000000;
    if (!after || dibs__moment_parse(after, pl->zone, &pl->after))
        return 0;
    dibs__cli_say("--after %.40s is no time; write 2026-11-15T02:00:00Z, or "
                  "2026-11-15 02:00 in the zone",
                  after);
    return DIBS__EXIT_USAGE;
}

static int find_ticks(const dibs__command *cmd, plan *pl)
{
    size_t count = (size_t)dibs__opt_int(cmd, "count");
    int64_t after = pl->after;

    pl->ticks = calloc(count, sizeof(pl->ticks[0]));
    if (!pl->ticks)
        return dibs__cli_nomem("the list of times");
    pl->cron.anchor_s = pl->after;
    while (
        pl->tick_count < count &&
        dibs__cron_next(&pl->cron, pl->zone, after, &pl->ticks[pl->tick_count]))
        after = pl->ticks[pl->tick_count++].at;
    return 0;
}

/* 0, or an exit code after a message. End with end_plan() in any case. */
static int begin_plan(const dibs__command *cmd, plan *pl)
{
    dibs_error err = {0};
    int column = 1, code;

    *pl = (plan){.text = find_text(cmd)};
    if (!pl->text)
        return DIBS__EXIT_USAGE;
    if (dibs__cron_parse(pl->text, &pl->cron, &column, &err) != DIBS_OK)
        return refuse_expression(cmd, pl->text, column, &err);
    code = open_zone(cmd, &pl->zone);
    if (!code)
        code = find_after(cmd, pl);
    return code ? code : find_ticks(cmd, pl);
}

static const char *rule_text(dibs__tick_rule rule)
{
    switch (rule) {
    case DIBS__TICK_GAP:
        return "gap";
    case DIBS__TICK_FIRST_PASS:
        return "first pass";
    case DIBS__TICK_PLAIN:
        break;
    }
    return NULL;
}

static void json_ticks(dibsx_json *js, const plan *pl)
{
    char text[DIBS__MOMENT_SIZE], offset[DIBS__OFFSET_SIZE];

    dibsx_json_key(js, "times");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < pl->tick_count; i++) {
        const dibs__tick *tick = &pl->ticks[i];
        char instant[DIBS__MOMENT_SIZE + 1];

        dibs__moment_text(tick->at, text);
        (void)snprintf(instant, sizeof(instant), "%sZ", text);
        dibs__moment_text(tick->at + tick->offset_s, text);
        dibs__offset_text(tick->offset_s, offset);
        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "instant", instant);
        dibsx_json_pair_text(js, "local", text);
        dibsx_json_pair_text(js, "offset", offset);
        dibsx_json_pair_text(js, "rule", rule_text(tick->rule));
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static void json_head(dibsx_json *js, const plan *pl)
{
    char tzdata[DIBS__TZDATA_SIZE];

    dibs__tzdata_version(tzdata);
    dibsx_json_pair_text(js, "expression", pl->text);
    dibsx_json_pair_text(js, "zone", dibs__zone_name(pl->zone));
    dibsx_json_pair_text(js, "tzdata", tzdata[0] ? tzdata : NULL);
}

static void json_warnings(dibsx_json *js, const dibs__cron *cron)
{
    dibsx_json_key(js, "warnings");
    dibsx_json_open(js, '[');
    if (cron->day_numbers)
        dibsx_json_text(js, day_number_warning);
    dibsx_json_close(js, ']');
}

static void say_warnings(const dibs__command *cmd, const dibs__cron *cron)
{
    if (cron->day_numbers && !dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("%s", day_number_warning);
}

static const char *note_text(dibs__tick_rule rule)
{
    switch (rule) {
    case DIBS__TICK_GAP:
        return "the time is in a gap: runs at its end";
    case DIBS__TICK_FIRST_PASS:
        return "the time comes twice: runs the first time";
    case DIBS__TICK_PLAIN:
        break;
    }
    return "";
}

static int print_ticks(const dibs__command *cmd, const plan *pl)
{
    static const char *const heads[] = {"DAY", "LOCAL", "UTC", "NOTE"};
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed",
                                   "Thu", "Fri", "Sat"};
    char text[DIBS__MOMENT_SIZE], offset[DIBS__OFFSET_SIZE];
    dibs__table table;
    int code;

    dibs__table_init(&table, 4, heads);
    for (size_t i = 0; i < pl->tick_count; i++) {
        int64_t local = pl->ticks[i].at + pl->ticks[i].offset_s;

        dibs__table_cell(&table, days[dibs__weekday_of(dibs__day_at(local))]);
        dibs__moment_text(local, text);
        dibs__offset_text(pl->ticks[i].offset_s, offset);
        dibs__table_cellf(&table, "%s%s", text, offset);
        dibs__moment_text(pl->ticks[i].at, text);
        dibs__table_cellf(&table, "%sZ", text);
        dibs__table_cell(&table, note_text(pl->ticks[i].rule));
    }
    code = dibs__table_print(&table, dibs__colours_of(cmd));
    dibs__table_fini(&table);
    return code;
}

/* An expression with years may have had its last tick. */
static int say_no_tick(const dibs__command *cmd, const plan *pl)
{
    char text[DIBS__MOMENT_SIZE];

    dibs__moment_text(pl->after, text);
    if (!dibs__opt_flag(cmd, "quiet"))
        dibs__cli_say("there is no time after %sZ; the years of the "
                      "expression are over",
                      text);
    return 1;
}

static int print_next(const dibs__command *cmd)
{
    dibs__report report;
    plan pl;
    int code = begin_plan(cmd, &pl);

    if (!code && dibs__opt_flag(cmd, "json")) {
        dibs__report_begin(&report);
        json_head(&report.js, &pl);
        json_ticks(&report.js, &pl);
        code = dibs__report_end(&report);
    } else if (!code && pl.tick_count > 0) {
        code = print_ticks(cmd, &pl);
    }
    if (!code && pl.tick_count == 0)
        code = say_no_tick(cmd, &pl);
    end_plan(&pl);
    return code;
}

/* The words with a capital and their zone: "At 02:30 every day, in UTC." */
static void
print_words(const dibs__command *cmd, const plan *pl, const dibsx_buf *words)
{
    const char *text = dibsx_buf_text(words);

    printf("%c%s", text[0] - ('a' - 'A'), text + 1);
    if (pl->cron.every_s)
        printf(", counted from the first load of a job; below, from %s",
               dibs__opt_given(cmd, "after") ? "--after" : "now");
    else
        printf(", in the zone %s", dibs__zone_name(pl->zone));
    printf(".\n%s\n", dibs__cron_shift_words(&pl->cron));
    if (pl->tick_count > 0)
        printf("\n");
}

static int print_explained(const dibs__command *cmd, const plan *pl,
                           const dibsx_buf *words)
{
    dibs__report report;

    if (!dibs__opt_flag(cmd, "json")) {
        say_warnings(cmd, &pl->cron);
        print_words(cmd, pl, words);
        return pl->tick_count > 0 ? print_ticks(cmd, pl) : 0;
    }
    dibs__report_begin(&report);
    json_head(&report.js, pl);
    dibsx_json_pair_text(&report.js, "words", dibsx_buf_text(words));
    dibsx_json_pair_text(&report.js, "clock_changes",
                         dibs__cron_shift_words(&pl->cron));
    json_warnings(&report.js, &pl->cron);
    json_ticks(&report.js, pl);
    return dibs__report_end(&report);
}

static int explain_expression(const dibs__command *cmd)
{
    dibsx_buf words;
    plan pl;
    int code = begin_plan(cmd, &pl);

    if (!code) {
        dibsx_buf_init(&words, WORDS_MAX);
        dibs__cron_words(&pl.cron, &words);
        code = dibsx_buf_ok(&words) ? print_explained(cmd, &pl, &words)
                                    : dibs__cli_nomem("the words");
        dibsx_buf_fini(&words);
    }
    if (!code && pl.tick_count == 0)
        code = say_no_tick(cmd, &pl);
    end_plan(&pl);
    return code;
}

static int check_expression(const dibs__command *cmd)
{
    const char *text = find_text(cmd);
    dibs__cron cron;
    dibs__report report;
    dibs_error err = {0};
    int column = 1, code;
    dibs_status rc;

    if (!text)
        return DIBS__EXIT_USAGE;
    rc = dibs__cron_parse(text, &cron, &column, &err);
    if (rc == DIBS_INVALID && access(text, F_OK) == 0) {
        dibs__cli_say("%.200s is a file, not a cron expression; check it with: "
                      "dibs job check FILE",
                      text);
        return DIBS__EXIT_USAGE;
    }
    if (!dibs__opt_flag(cmd, "json") || (rc != DIBS_OK && rc != DIBS_INVALID)) {
        if (rc != DIBS_OK)
            return refuse_expression(cmd, text, column, &err);
        say_warnings(cmd, &cron);
        return 0;
    }
    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "expression", text);
    dibsx_json_pair_bool(&report.js, "ok", rc == DIBS_OK);
    if (rc == DIBS_OK) {
        json_warnings(&report.js, &cron);
    } else {
        dibsx_json_pair_int(&report.js, "column", column);
        dibsx_json_pair_text(&report.js, "message", err.message);
    }
    code = dibs__report_end(&report);
    return code || rc == DIBS_OK ? code : DIBS__EXIT_CONFIG;
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("count", "N", 1, COUNT_MAX), .letter = 'n', .initial = "5",
     .help = "How many times to print."},
    {DIBS__ROW_TEXT("zone", "ZONE"), .letter = 'z', .initial = "UTC",
     .offers = "UTC|Europe/Berlin|Europe/London|America/New_York|"
               "America/Los_Angeles|Asia/Tokyo|Asia/Kolkata",
     .help = "The time zone whose clocks count, such as Europe/Berlin. Never "
             "the zone of this machine by itself."},
    {DIBS__ROW_TEXT("after", "TIME"), .aliases = "from", .otherwise = "now",
     .help = "Print times after this one: 2026-11-15T02:00:00Z, or "
             "2026-11-15 02:00, or 2026-11-15, on the clocks of --zone."},
};

const dibs__option_rows dibs__options_cron =
    DIBS__OPTION_ROWS("cron next,cron explain", options);

#define EXPRESSIONS                                                            \
    "An expression has 5 fields: minute, hour, day of month, month, weekday. " \
    "With 6, seconds come first; with 7, the year comes last. A field is *, "  \
    "or a list of numbers, ranges and steps: 0,30 or 9-17 or */15. Months "    \
    "and "                                                                     \
    "weekdays have names. L is the last day, 15W the workday nearest to the "  \
    "15th, MON#1 the first Monday, FRIL the last Friday. @hourly, @daily, "    \
    "@weekly, @monthly, @yearly and @every 90m stand for expressions. No "     \
    "store is needed.\n"

const dibs__verb dibs__verb_cron = {
    .name = "cron",
    .operands = "VERB",
    .summary = "check and explain cron expressions",
    .about = EXPRESSIONS,
};

const dibs__verb dibs__verb_cron_check = {
    .name = "cron check",
    .operands = "EXPRESSION",
    .summary = "check a cron expression",
    .about = "Says where the first mistake is. Prints nothing if there is "
             "none. An expression that never fires, such as 0 0 30 2 *, is a "
             "mistake. dibs job check checks the schedules of a jobs "
             "file.\n" EXPRESSIONS,
    .examples = "In a build, before a schedule is used:\n"
                "  dibs cron check '0 2 * * MON-FRI'\n",
    .exits = "0 the expression is good\n"
             "78 it has a mistake, or never fires\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = -1,
    .plain = true,
    .run = check_expression,
};

const dibs__verb dibs__verb_cron_next = {
    .name = "cron next",
    .operands = "EXPRESSION",
    .summary = "print the next times of a cron expression",
    .about = "When clocks are set forward, times in the gap run once, at its "
             "end. When they are set back, a time that comes twice runs once. "
             "Expressions of every hour follow real time instead. A note says "
             "where this happens.\n" EXPRESSIONS,
    .examples = "The next five runs, on the clocks of Berlin:\n"
                "  dibs cron next '30 2 * * *' --zone Europe/Berlin\n"
                "On the day when they are set forward:\n"
                "  dibs cron next '30 2 * * *' -z Europe/Berlin -n 3 --after "
                "2027-03-27\n",
    .exits = "0 printed\n"
             "1 there is no such time: the years of the expression are over\n"
             "78 the expression has a mistake, or the zone is not installed\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = -1,
    .plain = true,
    .run = print_next,
};

const dibs__verb dibs__verb_cron_explain = {
    .name = "cron explain",
    .operands = "EXPRESSION",
    .summary = "say in words when a cron expression fires",
    .about = "Prints the expression in words, what it does when clocks "
             "change, and its next times.\n" EXPRESSIONS,
    .examples = "  dibs cron explain '0 9-17/2 * * MON-FRI' --zone "
                "America/New_York\n",
    .exits = "0 printed\n"
             "1 there is no such time: the years of the expression are over\n"
             "78 the expression has a mistake, or the zone is not installed\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = -1,
    .plain = true,
    .run = explain_expression,
};
