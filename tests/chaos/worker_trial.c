/* worker_trial.c - what a worker does to itself when it is asked to: storms of
 * signals, forks, threads that are cancelled while they wait, and sleep. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void nothing(int number)
{
    (void)number;
}

/* A signal each millisecond, and no call is taken up again after it. */
static void set_storm(bool on)
{
    struct sigaction action = {.sa_handler = nothing};
    struct itimerval every = {.it_value = {0, on ? 1000 : 0},
                              .it_interval = {0, on ? 1000 : 0}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

/* The child's handles are dead, and its end takes nothing from the parent. It ends
 * without the destructors of libraries: those that libpq brings along take locks of
 * the C library, which a thread of the parent may have had. */
static void child_main(worker *wk, dibs_lock *held)
{
    dibs_error err = {0};
    bool told = true;

    if (held) {
        told = dibs_lock_check(held) != DIBS_OK &&
               dibs_lock_release(held, &err) == DIBS_FORKED;
    }
    told = told && dibs_ping(wk->cl, NULL, &err) == DIBS_FORKED &&
           dibs_lock_try(wk->locks[0][1], &err) == DIBS_FORKED;
    dibs_close(wk->cl);
    _exit(told ? 0 : 1);
}

static void fork_once(worker *wk, dibs_lock *held)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0)
        child_main(wk, held);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid > 0 && status != 0) {
        fprintf(stderr, "worker: the child of a fork could use its handles\n");
        _exit(3);
    }
}

static void give_up(void *arg)
{
    dibs_lock_free(arg);
}

static void *wait_for_it(void *arg)
{
    dibs_lock *lock = arg;
    dibs_error err = {0};

    pthread_cleanup_push(give_up, lock);
    (void)(dibs_lock_acquire(lock, &err) == DIBS_OK);
    pthread_testcancel();
    (void)dibs_lock_release(lock, &err);
    pthread_cleanup_pop(1);
    return NULL;
}

static void *wait_long(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

/* The C library loads a file for the first cancellation, and ends the program when
 * there is no descriptor left for that. */
void worker_trial_prepare(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, wait_long, NULL) == 0) {
        pthread_cancel(thread);
        pthread_join(thread, NULL);
    }
}

/* A thread that is cancelled while it waits leaves nothing behind. */
static void cancel_once(worker *wk)
{
    char name[NAME_ROOM];
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    pthread_t thread;

    key_name(0, name);
    if (dibs_lock_new(wk->cl, name,
                      DIBS_LOCK_OPTS(.ttl_ms = wk->run->ttl_ms, .wait_ms = 500),
                      &lock, &err) != DIBS_OK)
        return;
    if (pthread_create(&thread, NULL, wait_for_it, lock) != 0) {
        dibs_lock_free(lock);
        return;
    }
    usleep((useconds_t)worker_pick(wk, 2000));
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

/* Its machine sleeps for longer than the lease lasts: the lease is lost at the first
 * look, whatever is known of it elsewhere, and stays so. */
static void sleep_once(worker *wk, const dibs_lock *held)
{
    record *rec = worker_begin(wk, OP_PAUSE, 0);

    if (rec)
        rec->returned_ns = rec->invoked_ns;
    atomic_fetch_add(&wk->ahead_us[1],
                     sleep_us(wk->run->ttl_ms, worker_pick(wk, 1000)));
    if (dibs_lock_check(held) == DIBS_OK || dibs_lock_valid_ms(held) != 0) {
        fprintf(stderr, "worker: slept, and held on\n");
        _exit(3);
    }
}

void worker_trial(worker *wk, dibs_lock *held)
{
    static bool storm;
    atomic_uint *asked = &wk->run->trials[wk->log->worker];
    unsigned trials = atomic_load(asked);

    if (storm != ((trials & TRIAL_SIGNALS) != 0)) {
        storm = !storm;
        set_storm(storm);
    }
    if ((trials & (TRIAL_FORK | TRIAL_CANCEL | TRIAL_SLEEP)) == 0)
        return;
    if ((trials & TRIAL_FORK) != 0 && held) {
        atomic_fetch_and(asked, ~(unsigned)TRIAL_FORK);
        fork_once(wk, held);
        atomic_fetch_add(&wk->run->trials_done, 1);
    }
    if ((trials & TRIAL_SLEEP) != 0 && held) {
        atomic_fetch_and(asked, ~(unsigned)TRIAL_SLEEP);
        sleep_once(wk, held);
        atomic_fetch_add(&wk->run->trials_done, 1);
    }
    if ((trials & TRIAL_CANCEL) != 0 && !held) {
        atomic_fetch_and(asked, ~(unsigned)TRIAL_CANCEL);
        cancel_once(wk);
        atomic_fetch_add(&wk->run->trials_done, 1);
    }
}
