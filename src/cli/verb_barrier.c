/* verb_barrier.c - barrier: waits for the other parties; barrier show looks at them,
 * barrier ls at all barriers. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/list_verb.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/signal_wait.h"
#include "cli/verbs.h"
#include <dibs/barrier.h>

#include <stdio.h>
#include <string.h>

static int
print_outcome(const dibs__command *cmd, dibs_status rc, const dibs_error *err,
              uint64_t generation, int64_t waited_ms)
{
    dibs__report report;

    dibs__report_begin(&report);
    dibsx_json_pair_text(&report.js, "name", dibs__operands(cmd)[0]);
    dibsx_json_pair_bool(&report.js, "passed", rc == DIBS_OK);
    dibsx_json_pair_text(&report.js, "status", dibs_status_name(rc));
    dibsx_json_key(&report.js, "reason");
    if (rc == DIBS_OK)
        dibsx_json_null(&report.js);
    else
        dibsx_json_text(&report.js, err->message);
    dibsx_json_pair_int(&report.js, "parties", dibs__opt_int(cmd, "parties"));
    dibsx_json_key(&report.js, "generation");
    if (rc == DIBS_OK)
        dibsx_json_uint(&report.js, generation);
    else
        dibsx_json_null(&report.js);
    dibsx_json_pair_int(&report.js, "waited_ms", waited_ms);
    return dibs__report_end(&report);
}

/* A wait of 0 still arrives, and passes if it is the last to come. */
static int64_t wait_of(const dibs__command *cmd)
{
    int64_t wait_ms = dibs__opt_ms(cmd, "wait");

    if (!dibs__opt_given(cmd, "wait"))
        return 0;
    return wait_ms > 0 ? wait_ms : 1;
}

static void cancel_wait(void *arg)
{
    dibs_barrier_cancel(arg);
}

/* A party that is ended by a signal gives its seat up first, so that the others need not
 * wait until it has ended by itself. */
typedef struct party {
    dibs_barrier *barrier;
    dibs__signals signals;
    int fatal; /* 0: none */
} party;

static dibs_status wait_served(party *p, uint64_t *generation, dibs_error *err)
{
    dibs__signal_wait wait = {.cancel = cancel_wait, .arg = p->barrier};
    dibs_status rc = dibs__signal_wait_begin(&wait, &p->signals, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs_barrier_wait(p->barrier, generation, err);
    dibs__signal_wait_end(&wait);
    p->fatal = wait.fatal;
    return rc;
}

static int await_parties(const dibs__command *cmd, party *p)
{
    dibsx_nsec begun_at = dibsx_now();
    uint64_t generation = 0;
    dibs_error err = {0};
    dibs_status rc = wait_served(p, &generation, &err);
    int code = 0;

    if (p->fatal && rc != DIBS_OK)
        return DIBS__EXIT_SIGNAL + p->fatal;

    if (dibs__opt_flag(cmd, "json"))
        code = print_outcome(cmd, rc, &err, generation,
                             (dibsx_now() - begun_at) / DIBSX_MS);
    if (rc != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    return code;
}

static int wait_barrier(const dibs__command *cmd)
{
    party p = {.barrier = NULL};
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code;

    if (!dibs__opt_given(cmd, "parties")) {
        dibs__cli_say("barrier: -n is missing: how many parties wait for each "
                      "other");
        return DIBS__EXIT_USAGE;
    }
    dibs__signals_block(&p.signals);
    code = dibs__cli_open(cmd, &cl);
    if (code)
        p.fatal = dibs__signals_pending(&p.signals);
    else if (dibs_barrier_new(
                 cl, dibs__operands(cmd)[0],
                 DIBS_BARRIER_OPTS(.parties =
                                       (uint32_t)dibs__opt_int(cmd, "parties"),
                                   .wait_ms = wait_of(cmd),
                                   .flags = dibs__opt_flag(cmd, "withdraw")
                                                ? DIBS_BARRIER_WITHDRAW
                                                : 0),
                 &p.barrier, &err) != DIBS_OK)
        code = dibs__cli_fail(cmd, &err);
    else
        code = await_parties(cmd, &p);
    dibs_barrier_free(p.barrier);
    dibs_close(cl);
    if (p.fatal && code)
        dibs__signal_die(p.fatal);
    return code;
}

/* The parties of a look, as lines or as JSON. */
typedef struct listing {
    bool json;
    dibsx_buf lines;
    dibs__report report;
} listing;

static bool add_party(const dibs_barrier_party *seat, void *arg)
{
    listing *li = arg;
    dibsx_json *js = &li->report.js;

    if (!li->json) {
        dibs__clean(&li->lines, seat->who);
        dibsx_buf_puts(&li->lines, seat->arrived ? "\n" : " (has not come)\n");
        return true;
    }
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "who", seat->who);
    dibsx_json_pair_bool(js, "arrived", seat->arrived);
    dibsx_json_pair_int(js, "left_ms", seat->left_ms);
    dibsx_json_close(js, '}');
    return true;
}

static int end_listing(listing *li, const dibs_barrier_state *at)
{
    if (li->json) {
        dibsx_json_close(&li->report.js, ']');
        dibsx_json_pair_uint(&li->report.js, "parties", at->parties);
        dibsx_json_pair_uint(&li->report.js, "seated", at->seated);
        dibsx_json_pair_uint(&li->report.js, "arrived", at->arrived);
        dibsx_json_pair_uint(&li->report.js, "generation", at->generation);
        return dibs__report_end(&li->report);
    }
    printf("%u of %u parties have come, %u have a seat\n",
           (unsigned)at->arrived, (unsigned)at->parties, (unsigned)at->seated);
    dibs__out_text(dibsx_buf_text(&li->lines));
    return dibs__out_done();
}

static int show_barrier(const dibs__command *cmd, const char *name)
{
    listing li = {.json = dibs__opt_flag(cmd, "json")};
    dibs_barrier_state at;
    dibs_client *cl = NULL;
    dibs_error err = {0};
    int code = dibs__cli_open(cmd, &cl);

    if (code)
        return code;
    dibsx_buf_init(&li.lines, DIBS__OUT_MAX);
    dibs__report_begin(&li.report);
    dibsx_json_pair_text(&li.report.js, "name", name);
    dibsx_json_key(&li.report.js, "members");
    dibsx_json_open(&li.report.js, '[');
    if (dibs_barrier_show(cl, name, &at, add_party, &li, &err) != DIBS_OK) {
        code = dibs__cli_fail(cmd, &err);
        li.json = false;
    } else {
        code = end_listing(&li, &at);
    }
    if (!li.json)
        dibsx_buf_fini(&li.report.buf);
    dibsx_buf_fini(&li.lines);
    dibs_close(cl);
    return code;
}

/* Where the barriers of a list go. */
typedef struct rows {
    dibs__shape shape;
    void *out;
} rows;

static bool
list_barrier(const char *name, const dibs_barrier_state *at, void *arg)
{
    const rows *to = arg;

    if (to->shape == DIBS__AS_NAMES) {
        dibs__list_name(name);
    } else if (to->shape == DIBS__AS_JSON) {
        dibsx_json_open(to->out, '{');
        dibsx_json_pair_text(to->out, "name", name);
        dibsx_json_pair_uint(to->out, "parties", at->parties);
        dibsx_json_pair_uint(to->out, "seated", at->seated);
        dibsx_json_pair_uint(to->out, "arrived", at->arrived);
        dibsx_json_pair_uint(to->out, "generation", at->generation);
        dibsx_json_close(to->out, '}');
    } else {
        dibs__table_cell(to->out, name);
        dibs__table_cellf(to->out, "%u", (unsigned)at->parties);
        dibs__table_cellf(to->out, "%u", (unsigned)at->seated);
        dibs__table_cellf(to->out, "%u", (unsigned)at->arrived);
    }
    return true;
}

static dibs_status list_in_shape(const dibs__command *cmd, dibs_client *cl,
                                 dibs__shape shape, void *out, dibs_error *err)
{
    rows to = {shape, out};
    const char *begins =
        dibs__operand_count(cmd) == 2 ? dibs__operands(cmd)[1] : NULL;

    return dibs_barrier_list(cl, begins, list_barrier, &to, err);
}

static int list_barriers(const dibs__command *cmd)
{
    static const char *const heads[] = {"NAME", "PARTIES", "SEATED", "ARRIVED"};
    static const dibs__listing barriers = {.key = "barriers",
                                           .heads = heads,
                                           .columns = 4,
                                           .list = list_in_shape};

    return dibs__list(cmd, &barriers);
}

/* `dibs barrier ls -n 2` waits at a barrier of that name: a wait needs -n. */
static bool is_listing(const dibs__command *cmd)
{
    return strcmp(dibs__operands(cmd)[0], "ls") == 0 &&
           !dibs__opt_given(cmd, "parties");
}

static int barrier_command(const dibs__command *cmd)
{
    char *const *words = dibs__operands(cmd);

    if (is_listing(cmd))
        return list_barriers(cmd);

    if (dibs__operand_count(cmd) == 1)
        return wait_barrier(cmd);
    if (strcmp(words[0], "show") == 0)
        return show_barrier(cmd, words[1]);
    dibs__cli_say(
        "barrier: '%.40s' is too many: give one name, show and a name, "
        "or ls and a beginning of names",
        words[1]);
    return DIBS__EXIT_USAGE;
}

static const dibs__option options[] = {
    {DIBS__ROW_INT("parties", "N", 1, DIBS_BARRIER_MAX), .letter = 'n',
     .help = "How many parties wait for each other. Needed, but for show and "
             "ls."},
    {.name = "withdraw",
     .help = "When -w is over, take back this arrival only: the others wait "
             "on. Without it the barrier breaks for all."},
    {DIBS__ROW_WAIT_LONG,
     .help = "Wait at most this long for the other parties."},
};

const dibs__option_rows dibs__options_barrier =
    DIBS__OPTION_ROWS("barrier", options);

const dibs__verb dibs__verb_barrier = {
    .name = "barrier",
    .operands = "[show|ls] NAME",
    .summary = "wait until a number of parties have come",
    .about = "Arrives at the barrier NAME, and exits when as many parties wait "
             "there "
             "as -n says. All give the same number. If a party dies or gives "
             "up, the "
             "others exit with 122 and a message that says who is missing.\n"
             "`dibs barrier show NAME` lists the parties that have a seat, "
             "`dibs barrier ls [PREFIX]` the barriers where a party has one.\n",
    .examples = "Five workers begin the next phase together, within a minute:\n"
                "  sh load.sh && dibs barrier phase-1 -n 5 -w 60s && ./merge\n"
                "Come back later without disturbing the others:\n"
                "  dibs barrier phase-1 -n 5 -w 10s --withdraw\n"
                "See who is missing:\n"
                "  dibs barrier show phase-1\n"
                "All barriers whose names begin with phase-:\n"
                "  dibs barrier ls phase-\n",
    .exits = "0 all parties have come; show, ls: printed\n"
             "1 show: no party has a seat\n"
             "64 the barrier has another number of parties\n"
             "75 -w is over, or all seats are taken\n"
             "122 a party died or gave up, or the seat was lost\n",
    .options = "json,names,ttl,owner",
    .min_operands = 1,
    .max_operands = 2,
    .run = barrier_command,
};
