/* thread.c - starting threads that leave signals to others.
 *
 * Owns nothing; callable from any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/thread.h"
#include <signal.h>

int dibsx_thread_start(pthread_t *thread, void *(*body)(void *), void *arg)
{
    sigset_t all, before;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(thread, NULL, body, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}
