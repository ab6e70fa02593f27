/* poll_verb.c - looking again and again. Main thread; signals are taken where it
 * sleeps. */
/* SPDX-License-Identifier: MIT */
#include "cli/poll_verb.h"

#include "exec/signals.h"
#include <time.h>

/* Waits one interval. The signal that ends it all, or 0. */
static int pause_for(const dibs__signals *sig, int64_t span_ms)
{
    struct timespec span = {(time_t)(span_ms / 1000),
                            (long)(span_ms % 1000) * 1000000};
    int number = sigtimedwait(&sig->served, NULL, &span);

    if (number == SIGTSTP)
        dibs__signal_stop(false);
    return number > 0 && dibs__signal_fatal(number) ? number : 0;
}

int dibs__poll_verb(const dibs__command *cmd, dibs__look_fn *look, void *arg)
{
    int64_t interval_ms = dibs__opt_ms(cmd, "interval");
    dibs__signals sig;
    dibs_client *cl = NULL;
    int code, fatal = 0;

    dibs__signals_block(&sig);
    code = dibs__cli_open(cmd, &cl);
    while (!code && !fatal) {
        code = look(cmd, cl, arg);
        if (!code)
            fatal = pause_for(&sig, interval_ms);
    }
    dibs_close(cl);
    if (fatal)
        dibs__signal_die(fatal);
    return code;
}

int dibs__poll_verb_failed(const dibs__command *cmd, const dibs_error *err)
{
    int code = dibs__cli_fail(cmd, err);

    return err->retriable ? 0 : code;
}
