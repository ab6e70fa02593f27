/* verb_latch.c - latch count-down, wait, ls, show, reset. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/changes.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"

#include <inttypes.h>
#include <stdio.h>

/* False after a message: -n is missing. */
static bool find_count(const dibs__command *cmd, uint32_t *count)
{
    if (dibs__opt_given(cmd, "count")) {
        *count = (uint32_t)dibs__opt_int(cmd, "count");
        return true;
    }
    dibs__cli_say("latch: -n is missing: how many must count down in all");
    return false;
}

static void print_left(const dibs_latch_state *at)
{
    if (at->left)
        printf("%u of %u left", (unsigned)at->left, (unsigned)at->count);
    else
        printf("open");
}

/* Without a generation if that is not known. */
static int print_json(const dibs__command *cmd, const dibs_latch_state *at)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_bool(&report.js, "open", at->left == 0);
    dibsx_json_pair_uint(&report.js, "count", at->count);
    dibsx_json_pair_uint(&report.js, "left", at->left);
    if (at->generation)
        dibsx_json_pair_uint(&report.js, "generation", at->generation);
    return dibs__report_end(&report);
}

static int print_counted(const dibs__command *cmd, const dibs_latch_state *at)
{
    if (dibs__opt_flag(cmd, "json"))
        return print_json(cmd, at);
    print_left(at);
    putchar('\n');
    return dibs__out_done();
}

static int count_down(const dibs__command *cmd)
{
    const char *id =
        dibs__opt_given(cmd, "id") ? dibs__opt_text(cmd, "id") : NULL;
    uint64_t generation = dibs__opt_given(cmd, "generation")
                              ? (uint64_t)dibs__opt_int(cmd, "generation")
                              : 0;
    dibs_latch_state at;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    uint32_t count;
    int code;

    if (!find_count(cmd, &count))
        return DIBS__EXIT_USAGE;
    code = dibs__cli_open(cmd, &cl);
    if (code)
        return code;
    if (dibs_latch_count_down_in(cl, dibs__operands(cmd)[0], count, generation,
                                 id, &at, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else if (!dibs__opt_flag(cmd, "quiet"))
        code = print_counted(cmd, &at);
    dibs_close(cl);
    return code;
}

/* The state at the end of a wait in vain, for --json. */
static void
print_closed(const dibs__command *cmd, dibs_client *cl, uint32_t count)
{
    dibs_latch_state at;
    dibs_status rc = dibs_latch_show(cl, dibs__operands(cmd)[0], &at, NULL);

    if (rc == DIBS_NOTFOUND)
        at = (dibs_latch_state){.count = count, .left = count};
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        (void)print_json(cmd, &at);
}

/* The library says once that the store is out of reach. */
static int await_latch(const dibs__command *cmd, dibs_client *cl,
                       uint32_t count, int64_t wait_ms)
{
    bool json = dibs__opt_flag(cmd, "json");
    dibs_error err = {0};
    dibs_status rc =
        dibs_latch_wait(cl, dibs__operands(cmd)[0], count, wait_ms, &err);

    if (rc == DIBS_OK)
        return json ? print_json(cmd, &(dibs_latch_state){.count = count}) : 0;
    if (json && rc == DIBS_TIMEOUT)
        print_closed(cmd, cl, count);
    return dibs__cli_fail(cmd, &err);
}

static int wait_latch(const dibs__command *cmd)
{
    bool bounded = dibs__opt_given(cmd, "wait");
    int64_t wait_ms = bounded ? dibs__opt_ms(cmd, "wait") : 0;
    dibsx_nsec end =
        bounded ? dibsx_after_ms(dibsx_now(), wait_ms) : DIBSX_NEVER;
    dibs_client *cl = NULL;
    uint32_t count;
    int code;

    if (!find_count(cmd, &count))
        return DIBS__EXIT_USAGE;
    code = dibs__cli_open_waiting(cmd, wait_ms, &cl);
    if (code)
        return code;
    code = await_latch(cmd, cl, count, dibsx_wait_ms(end, dibsx_now()));
    dibs_close(cl);
    return code;
}

static int print_latch(const dibs__command *cmd, dibs_client *cl)
{
    dibs_latch_state at;
    dibs_error err = {0};

    if (dibs_latch_show(cl, dibs__operands(cmd)[0], &at, &err) != DIBS_OK)
        return dibs__cli_fail(cmd, &err);
    if (dibs__opt_flag(cmd, "json"))
        return print_json(cmd, &at);
    print_left(&at);
    printf(", generation %" PRIu64 "\n", at.generation);
    return dibs__out_done();
}

static int show_latch(const dibs__command *cmd)
{
    dibs_client *cl = NULL;
    int code = dibs__cli_open(cmd, &cl);

    if (!code)
        code = print_latch(cmd, cl);
    dibs_close(cl);
    return code;
}

/* Where the latches of a list go. */
typedef struct listing {
    dibs__shape shape;
    void *out;
} listing;

static bool list_latch(const char *name, const dibs_latch_state *at, void *arg)
{
    const listing *li = arg;

    if (li->shape == DIBS__AS_NAMES) {
        dibs__list_name(name);
    } else if (li->shape == DIBS__AS_JSON) {
        dibsx_json_open(li->out, '{');
        dibsx_json_pair_text(li->out, "name", name);
        dibsx_json_pair_bool(li->out, "open", at->left == 0);
        dibsx_json_pair_uint(li->out, "count", at->count);
        dibsx_json_pair_uint(li->out, "left", at->left);
        dibsx_json_pair_uint(li->out, "generation", at->generation);
        dibsx_json_close(li->out, '}');
    } else {
        dibs__table_cell(li->out, name);
        dibs__table_cell(li->out, at->left ? "closed" : "open");
        dibs__table_cellf(li->out, "%u", (unsigned)at->left);
        dibs__table_cellf(li->out, "%u", (unsigned)at->count);
    }
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    listing li = {shape, out};

    return dibs_latch_list(cl, dibs__operands(cmd)[0], list_latch, &li, err);
}

static int list_latches(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "STATE", "LEFT", "COUNT"};
    static const dibs__listing latches = {.key = "latches",
                                          .heads = heads,
                                          .columns = 4,
                                          .list = list_in_shape};

    return dibs__list(cmd, &latches);
}

static int reset_latch(const dibs__command *cmd)
{
    const char *name = dibs__operands(cmd)[0];
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    code = dibs__cli_change_begin(cmd, cl, "latch-reset", name);
    if (!code) {
        dibs_status rc = dibs_latch_reset(cl, name, &err);

        dibs__cli_change_end(cmd, cl, "latch-reset", name, rc);
        code = rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
        if (!code && dibs__opt_flag(cmd, "json"))
            code = print_latch(cmd, cl);
    }
    dibs_close(cl);
    return code;
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("count", "N", 1, DIBS_LATCH_MAX), .aliases = "total",
     .letter = 'n', .verbs = "latch count-down,latch wait",
     .help = "How many different ids must count down in all. Needed."},
    {DIBS__ROW_TEXT("id", "ID"), .otherwise = "an id of its own",
     .help = "The id that counts, once however often it is given: that of a "
             "job, for one."},
    {DIBS__ROW_INT("generation", "N", 1, INT64_MAX),
     .otherwise = "the one that gathers",
     .help = "Count only in this generation, as latch show prints it: a count "
             "that comes late, after a reset, changes nothing."},
    {DIBS__ROW_WAIT_LONG, .verbs = "latch wait",
     .help = "Wait at most this long, also for a store that is not up; 0 looks "
             "once."},
};

const dibs__option_rows dibs__options_latch =
    DIBS__OPTION_ROWS("latch count-down", options);

const dibs__verb dibs__verb_latch = {
    .name = "latch",
    .operands = "VERB",
    .summary = "wait until a number of jobs are done",
    .about = "A latch opens when so many different ids have counted down, and "
             "stays open until it is reset. The store keeps it for a day after "
             "the last count.\n",
};

const dibs__verb dibs__verb_latch_count_down = {
    .name = "latch count-down",
    .operands = "NAME",
    .summary = "count an id down, once",
    .about = "Prints how many are left. With --id, a job that runs twice "
             "counts once; repeat the command if its outcome is unknown.\n",
    .examples = "At the end of each of 100 jobs:\n"
                "  dibs latch count-down batch:42 -n 100 --id \"$JOB_ID\"\n",
    .exits = "0 counted, now or before\n"
             "1 the latch has another generation than --generation\n"
             "64 the latch waits for another number\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = count_down,
};

const dibs__verb dibs__verb_latch_wait = {
    .name = "latch wait",
    .operands = "NAME",
    .summary = "wait until a latch is open",
    .about = "Nobody need have counted yet. Goes on while the store is out of "
             "reach, and says so once. With --json one object tells at the end "
             "whether the latch is open, and how many are left.\n",
    .examples = "After all of 100 jobs, an hour at most:\n"
                "  dibs latch wait batch:42 -n 100 -w 1h && ./collect\n",
    .exits = "0 it is open\n"
             "64 the latch waits for another number\n"
             "75 it did not open within --wait\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = wait_latch,
};

const dibs__verb dibs__verb_latch_ls = {
    .name = "latch ls",
    .operands = "[PREFIX]",
    .summary = "list latches",
    .about = "One line per latch whose name begins with PREFIX: whether it is "
             "open, and how many of its ids have not counted yet.\n",
    .exits = "0 listed\n",
    .options = "json,names",
    .max_operands = 1,
    .run = list_latches,
};

const dibs__verb dibs__verb_latch_show = {
    .name = "latch show",
    .operands = "NAME",
    .summary = "say how many are left",
    .about = "Also prints the generation, a number that rises with each "
             "reset.\n",
    .exits = "0 printed\n"
             "1 nobody has counted\n",
    .options = "json",
    .min_operands = 1,
    .max_operands = 1,
    .run = show_latch,
};

const dibs__verb dibs__verb_latch_reset = {
    .name = "latch reset",
    .operands = "NAME",
    .summary = "close a latch and forget its counts",
    .about = "With --json it prints the latch as latch show does.\n",
    .exits = "0 it is closed\n"
             "1 nobody has counted\n",
    .options = "json,reason",
    .min_operands = 1,
    .max_operands = 1,
    .run = reset_latch,
};
