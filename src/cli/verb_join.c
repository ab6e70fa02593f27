/* verb_join.c - `dibs join GROUP [--] COMMAND...`: be a member while a command runs.
 *
 * The client keeps the seat; the command runs under the guard of run, so that nothing
 * of its tree is left when the seat is given up. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "cli/command.h"
#include "cli/run/env.h"
#include "cli/run/inputs.h"
#include "cli/run/options.h"
#include "cli/run/supervise.h"
#include "cli/verbs.h"
#include "exec/signals.h"
#include "exec/tree_means.h"
#include <signal.h>
#include <string.h>

typedef struct guest {
    const dibs__command *cmd;
    dibs__run_opts opts;
    dibs__signals signals;
    dibs__tree_means means;
    dibs__run_inputs inputs;
    dibs_client *cl;
    dibs_member *member;
    dibs__outcome out;
} guest;

static void read_options(guest *g)
{
    const dibs__command *cmd = g->cmd;

    g->opts = (dibs__run_opts){.name = dibs__operands(cmd)[0],
                               .argv = dibs__operands(cmd) + 1,
                               .ttl_ms = dibs__opt_ms(cmd, "ttl"),
                               .kill_after_ms = dibs__opt_ms(cmd, "stop"),
                               .signal = SIGTERM,
                               .on_lost = DIBS__LOST_IGNORE,
                               .on_yield = DIBS__YIELD_IGNORE,
                               .lost_code = DIBS__EXIT_LOST,
                               .status_fd = -1,
                               .quiet = dibs__opt_flag(cmd, "quiet"),
                               .verbose = dibs__opt_flag(cmd, "verbose")};
    g->out = (dibs__outcome){.exit_status = -1};
}

/* Known before anybody counts on this member. */
static int open_all(guest *g)
{
    dibs_error err;

    dibs__tree_means_init(&g->means);
    if (!dibs__tree_means_whole(&g->means)) {
        dibs__cli_say("cannot run %s: the processes that it starts could not "
                      "be found, to end them when it leaves: %s",
                      g->opts.argv[0], dibs__tree_means_advice);
        return DIBS__EXIT_WRAPPER;
    }
    if (dibs__run_inputs_open(&g->inputs, false, false, &err) != DIBS_OK) {
        (void)dibs__cli_fail(g->cmd, &err);
        return DIBS__EXIT_WRAPPER;
    }
    return dibs__cli_open(g->cmd, &g->cl);
}

static int take_seat(guest *g)
{
    dibs_error err = {0};
    dibs_member_opts opts = {.size = sizeof opts,
                             .ttl_ms = g->opts.ttl_ms,
                             .member = dibs__opt_text(g->cmd, "member"),
                             .meta = dibs__opt_all(g->cmd, "meta")};

    if (dibs_member_join(g->cl, g->opts.name, &opts, &g->member, &err) !=
        DIBS_OK)
        return dibs__cli_fail(g->cmd, &err);
    return 0;
}

static int run_command(guest *g)
{
    dibs__watched watched = {.held_at = dibsx_now(),
                             .inputs = &g->inputs,
                             .signals = &g->signals,
                             .means = &g->means};
    dibs__run_env env = {0};
    dibs_error err = {0};
    dibs_status rc = dibs__run_env_init(&env, NULL, 0, -1, &err);

    if (rc == DIBS_OK)
        rc = dibs__supervise(&g->opts, &watched, env.vars, &g->out, &err);
    dibs__run_env_fini(&env);
    if (rc != DIBS_OK) {
        (void)dibs__cli_fail(g->cmd, &err);
        return DIBS__EXIT_WRAPPER;
    }
    if (g->out.exec_errno)
        dibs__cli_say("cannot run %s: %s", g->opts.argv[0],
                      strerror(g->out.exec_errno));
    return dibs__outcome_code(&g->out, &g->opts);
}

static int run_join(const dibs__command *cmd)
{
    guest g = {.cmd = cmd};
    int die_of, code;

    read_options(&g);
    dibs__signals_block(&g.signals);
    code = open_all(&g);
    if (!code)
        code = take_seat(&g);
    die_of = code ? 0 : dibs__signals_pending(&g.signals);
    if (!code && !die_of)
        code = run_command(&g);
    dibs_member_leave(g.member);
    dibs_close(g.cl);
    dibs__run_inputs_close(&g.inputs);
    dibs__tree_means_fini(&g.means);
    if (die_of)
        dibs__signal_die(die_of);
    return code;
}

const dibs__verb dibs__verb_join = {
    .name = "join",
    .operands = "GROUP [--] COMMAND [ARG...]",
    .summary = "be a member of a group while a command runs",
    .about =
        "Takes a seat in the group, runs COMMAND, and gives the seat up when "
        "the whole process tree of the command has ended. If this process "
        "dies, the seat ends after --ttl. While the store is out of reach the "
        "command goes on; when it is back, this process takes a seat again.\n"
        "A member counts for --min-nodes of an election with the name of the "
        "group, from about four thirds of --ttl after it joined.\n",
    .examples = "A worker that others can see:\n"
                "  dibs join workers -- ./worker\n"
                "With an address:\n"
                "  dibs join workers --meta addr=10.0.0.7:8080 -- ./worker\n",
    .exits = "N the command ended with N\n"
             "64 the name is a barrier or a latch\n"
             "125 dibs itself failed around the command\n"
             "126 the command could not be run\n"
             "127 there is no such command\n"
             "128+N ended by signal N\n",
    .options = "ttl,owner,meta",
    .min_operands = 2,
    .max_operands = -1,
    .kind = DIBS__COMMAND,
    .tail = true,
    .run = run_join,
};
