/* verb_join.c - `dibs join GROUP [--] COMMAND...`: be a member while a command runs.
 *
 * The client keeps the seat; the command runs under the guard of run, so that nothing
 * of its tree is left when the seat is given up. Main thread only. */
/* SPDX-License-Identifier: MIT */
#include "cli/command.h"
#include "cli/run/guarded.h"
#include "cli/verbs.h"

static int take_seat(dibs__guarded *g)
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

static int run_command(dibs__guarded *g)
{
    dibs__watched watched = {.locks = NULL};
    dibs_error err = {0};

    if (dibs__guarded_run(g, &watched, NULL, 0, &err) == DIBS_OK)
        return dibs__guarded_code(g);
    (void)dibs__cli_fail(g->cmd, &err);
    return DIBS__EXIT_WRAPPER;
}

static int run_join(const dibs__command *cmd)
{
    dibs__guarded g;
    int die_of, code;

    dibs__guarded_init(&g, cmd);
    g.opts.on_lost = DIBS__LOST_IGNORE;
    code = dibs__guarded_open(&g, "when it leaves");
    if (!code)
        code = dibs__cli_open(cmd, &g.cl);
    if (!code)
        code = take_seat(&g);
    die_of = dibs__signals_pending(&g.signals);
    if (!code && !die_of)
        code = run_command(&g);
    dibs__guarded_fini(&g, die_of);
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
        "group, once it has been there for --ttl and a third of it, of "
        "which at most --store-timeout counts.\n",
    .examples = "A worker that others can see:\n"
                "  dibs join workers -- ./worker\n"
                "With an address:\n"
                "  dibs join workers --meta addr=10.0.0.7:8080 -- ./worker\n",
    .exits = "N the command ended with N\n"
             "64 the name is a barrier or a latch\n" DIBS__COMMAND_EXITS,
    .options = "ttl,owner,meta",
    .min_operands = 2,
    DIBS__TAKES_COMMAND,
    .run = run_join,
};
