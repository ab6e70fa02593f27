/* signal_wait.c - see signal_wait.h. Owns the thread of the signals. */
/* SPDX-License-Identifier: MIT */
#include "cli/signal_wait.h"

#include "base/fail.h"
#include <string.h>
#include <time.h>

enum { CANCEL_AGAIN_MS = 10 };

static int next_signal(const dibs__signal_wait *w)
{
    int64_t ms = w->fatal  ? CANCEL_AGAIN_MS
                 : w->tell ? dibsx_wait_ms(w->tell_at, dibsx_now())
                           : -1;
    struct timespec span = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    return ms < 0 ? sigwaitinfo(&w->set, NULL)
                  : sigtimedwait(&w->set, NULL, &span);
}

static void tell_if_due(dibs__signal_wait *w)
{
    if (!w->tell || dibsx_now() < w->tell_at)
        return;
    w->tell_at = DIBSX_NEVER;
    w->tell(w->arg);
}

static void *serve_signals(void *arg)
{
    dibs__signal_wait *w = arg;

    for (;;) {
        int number = next_signal(w);

        if (number == SIGRTMIN)
            return NULL;
        if (number == SIGTSTP)
            (void)dibs__signal_stop(false);
        if (number > 0 && dibs__signal_fatal(number) && !w->fatal)
            w->fatal = number;
        if (w->fatal)
            w->cancel(w->arg);
        else
            tell_if_due(w);
    }
}

dibs_status dibs__signal_wait_begin(dibs__signal_wait *w,
                                    const dibs__signals *sig, dibs_error *err)
{
    int failed;

    w->set = sig->served;
    sigaddset(&w->set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &w->set, &w->old_mask);
    failed = pthread_create(&w->thread, NULL, serve_signals, w);
    if (!failed)
        return DIBS_OK;
    pthread_sigmask(SIG_SETMASK, &w->old_mask, NULL);
    return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(failed),
                         "cannot start a thread: %s", strerror(failed));
}

void dibs__signal_wait_end(dibs__signal_wait *w)
{
    pthread_kill(w->thread, SIGRTMIN);
    pthread_join(w->thread, NULL);
    pthread_sigmask(SIG_SETMASK, &w->old_mask, NULL);
}
