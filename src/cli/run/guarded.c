/* guarded.c - the command of elect or join, which runs under the guard of run. */
/* SPDX-License-Identifier: MIT */
#include "cli/run/guarded.h"

#include "base/clock.h"
#include "cli/run/env.h"
#include <signal.h>
#include <string.h>

void dibs__guarded_init(dibs__guarded *g, const dibs__command *cmd)
{
    *g = (dibs__guarded){.cmd = cmd,
                         .inputs = {-1, -1, -1},
                         .out = {.exit_status = -1},
                         .opts = {.name = dibs__operands(cmd)[0],
                                  .argv = dibs__operands(cmd) + 1,
                                  .ttl_ms = dibs__opt_ms(cmd, "ttl"),
                                  .kill_after_ms = dibs__opt_ms(cmd, "stop"),
                                  .signal = SIGTERM,
                                  .on_lost = DIBS__LOST_KILL,
                                  .on_yield = DIBS__YIELD_IGNORE,
                                  .lost_code = DIBS__EXIT_LOST,
                                  .status_fd = -1,
                                  .output_fd = -1,
                                  .quiet = dibs__opt_flag(cmd, "quiet"),
                                  .verbose = dibs__opt_flag(cmd, "verbose")}};
    dibs__signals_block(&g->signals);
}

int dibs__guarded_open(dibs__guarded *g, const char *when)
{
    dibs_error err;

    dibs__tree_means_init(&g->means);
    if (!dibs__tree_means_whole(&g->means)) {
        if (!g->opts.quiet)
            dibs__cli_say("cannot run %s: the processes that it starts could "
                          "not be found, to end them %s: %s",
                          g->opts.argv[0], when, dibs__tree_means_advice);
        return DIBS__EXIT_WRAPPER;
    }
    if (dibs__run_inputs_open(&g->inputs,
                              g->opts.on_yield != DIBS__YIELD_IGNORE, false,
                              &err) == DIBS_OK)
        return 0;
    (void)dibs__cli_fail(g->cmd, &err);
    return DIBS__EXIT_WRAPPER;
}

dibs_status
dibs__guarded_run(dibs__guarded *g, dibs__watched *watched,
                  const dibs__held *held, size_t count, dibs_error *err)
{
    dibs__run_env env = {0};
    dibs_status rc = dibs__run_env_init(&env, held, count, -1, err);

    watched->held_at = dibsx_now();
    watched->inputs = &g->inputs;
    watched->signals = &g->signals;
    watched->means = &g->means;
    g->out = (dibs__outcome){.exit_status = -1};
    if (rc == DIBS_OK)
        rc = dibs__supervise(&g->opts, watched, env.vars, &g->out, err);
    dibs__run_env_fini(&env);
    return rc;
}

int dibs__guarded_code(const dibs__guarded *g)
{
    if (g->out.exec_errno && !g->opts.quiet)
        dibs__cli_say("cannot run %s: %s", g->opts.argv[0],
                      strerror(g->out.exec_errno));
    return dibs__outcome_code(&g->out, &g->opts);
}

void dibs__guarded_fini(dibs__guarded *g, int die_of)
{
    dibs_member_leave(g->member);
    dibs_close(g->cl);
    dibs__run_inputs_close(&g->inputs);
    dibs__tree_means_fini(&g->means);
    if (die_of)
        dibs__signal_die(die_of);
    dibs__outcome_interrupt(&g->out);
}
