/* poll_verb.c - looking again and again. Main thread; signals are taken where it
 * sleeps. */
/* SPDX-License-Identifier: MIT */
#include "cli/poll_verb.h"

#include "cli/print.h"
#include <time.h>

int dibs__poll_rest(const dibs__signals *sig, int64_t interval_ms, void *arg)
{
    struct timespec span = {(time_t)(interval_ms / 1000),
                            (long)(interval_ms % 1000) * 1000000};
    int number = sigtimedwait(&sig->served, NULL, &span);

    (void)arg;
    if (number == SIGTSTP)
        (void)dibs__signal_stop(false);
    return number > 0 && dibs__signal_fatal(number) ? number : 0;
}

int dibs__poll_verb_resting(const dibs__command *cmd, dibs__look_fn *look,
                            dibs__rest_fn *rest, void *arg)
{
    int64_t interval_ms = dibs__opt_ms(cmd, "interval");
    dibs__signals sig;
    dibs_client *cl = NULL;
    int code, fatal = 0;

    dibs__signals_block(&sig);
    code = dibs__cli_open(cmd, &cl);
    if (code)
        fatal = dibs__signals_pending(&sig);
    while (!code && !fatal) {
        code = look(cmd, cl, arg);
        if (!code)
            fatal = rest(&sig, interval_ms, arg);
    }
    dibs_close(cl);
    if (fatal > 0)
        dibs__signal_die(fatal);
    return code == DIBS__POLL_ENOUGH ? 0 : code;
}

/* The rest of a verb that is there to print: it ends when nobody reads. */
static int
rest_if_read(const dibs__signals *sig, int64_t interval_ms, void *arg)
{
    int number = dibs__poll_rest(sig, interval_ms, arg);

    return number || dibs__out_unread() == 0 ? number : SIGPIPE;
}

int dibs__poll_verb(const dibs__command *cmd, dibs__look_fn *look, void *arg)
{
    return dibs__poll_verb_resting(cmd, look, rest_if_read, arg);
}

int dibs__poll_verb_failed(const dibs__command *cmd, const dibs_error *err)
{
    int code = dibs__cli_fail(cmd, err);

    return err->retriable ? 0 : code;
}
