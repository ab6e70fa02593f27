/* signals.c - the signals that `dibs run` serves, and dying of one properly.
 *
 * They stay blocked for the life of the process and are read where they can be
 * acted upon: by the waiting thread (lock_acquire.c) or the main loop (supervise.c),
 * never by a handler. */
/* SPDX-License-Identifier: MIT */
#include "exec/signals.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* A shell adds this to the number of the signal that ended a command. */
enum { SHELL_SIGNAL = 128 };

static const int served[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                             SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

static bool ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void dibs__signals_block(dibs__signals *sig)
{
    sigemptyset(&sig->served);
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (!ignored(served[i]))
            sigaddset(&sig->served, served[i]);

    /* SIGTTOU blocked lets a background process take its terminal back. */
    sigset_t mask = sig->served;
    sigaddset(&mask, SIGPIPE);
    sigaddset(&mask, SIGTTOU);
    pthread_sigmask(SIG_BLOCK, &mask, &sig->old_mask);

    /* Inherited as ignored, it would take the status of children away. */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &plain, &sig->old_chld);
}

bool dibs__signal_fatal(int number)
{
    return number == SIGINT || number == SIGTERM || number == SIGHUP ||
           number == SIGQUIT || number == SIGUSR1 || number == SIGUSR2;
}

bool dibs__signal_ends(int number)
{
    return dibs__signal_fatal(number) && number != SIGUSR1 && number != SIGUSR2;
}

int dibs__signals_pending(const dibs__signals *sig)
{
    sigset_t pending;
    if (sigpending(&pending) != 0)
        return 0;
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (dibs__signal_fatal(served[i]) &&
            sigismember(&sig->served, served[i]) == 1 &&
            sigismember(&pending, served[i]) == 1)
            return served[i];
    return 0;
}

static void unblock(int number)
{
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}

_Noreturn void dibs__signal_die(int number)
{
    signal(number, SIG_DFL);
    unblock(number);
    raise(number);
    _exit(SHELL_SIGNAL + number);
}

/* A signal to stop discards a SIGCONT that is pending, so that one which is pending
 * afterwards has continued this process. Blocked, it is kept even if it is ignored. */
bool dibs__signal_stop(bool group)
{
    sigset_t mask, go_on, pending;
    sigemptyset(&go_on);
    sigaddset(&go_on, SIGCONT);
    pthread_sigmask(SIG_BLOCK, &go_on, &mask);
    unblock(SIGTSTP);
    kill(group ? 0 : getpid(), SIGTSTP);
    bool stopped =
        sigpending(&pending) == 0 && sigismember(&pending, SIGCONT) == 1;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return stopped;
}

int dibs__signal_parse(const char *text)
{
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end != text)
        return *end == '\0' && number > 0 && number < NSIG ? (int)number : 0;
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name && strcasecmp(name, text) == 0)
            return i;
    }
    return 0;
}
