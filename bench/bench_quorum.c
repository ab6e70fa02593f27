/* bench_quorum.c - locks on a quorum of Redis servers, beside the bare driver.
 *
 *     bench_quorum BLOCKS PORT...    one thread; three to nine ports
 *     bench_quorum BLOCKS stop PID PID PORT...
 *                                    the same while two of the servers are stopped
 *
 * bench/pairs.h has the form of the output. The servers should be idle, of this
 * machine, and vote: run.sh tells each that it never granted
 * a lock. */
/* SPDX-License-Identifier: MIT */
#include "bench/majority.h"
#include "bench/pairs.h"
#include "bench/samples.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOPPED = 2, WARM_UP = 20 };

/* The two that are stopped while it is measured; 0: none. */
static pid_t stopped[STOPPED];

static void tell_stopped(int signal_number)
{
    for (int i = 0; i < STOPPED; i++)
        if (stopped[i] > 0)
            (void)kill(stopped[i], signal_number);
}

/* Stops them once both sides are connected, and all nodes have the scripts. */
static void stop_some(majority *mj, dibs_lock *lock)
{
    for (int i = 0; i < WARM_UP; i++) {
        majority_pair(mj);
        lock_pair(lock);
    }
    tell_stopped(SIGSTOP);
    /* The last release may have been answered by one that is stopped now, and be under
     * way to one that is not. */
    lock_pair(lock);
}

int main(int argc, char **argv)
{
    long blocks = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int first = 2, count, ports[MAJORITY_MAX];
    dibs_client *client;
    dibs_lock *lock;
    majority *mj;
    char url[512];
    int len;

    if (argc > 4 && strcmp(argv[2], "stop") == 0) {
        for (int i = 0; i < STOPPED; i++)
            stopped[i] = (pid_t)strtol(argv[3 + i], NULL, 10);
        first = 3 + STOPPED;
    }
    count = argc - first;
    if (blocks < 1 || count < 3 || count > MAJORITY_MAX || count % 2 == 0)
        give_up("usage", "bench_quorum BLOCKS PORT...");
    len = snprintf(url, sizeof(url), "redlock://");
    for (int i = 0; i < count; i++) {
        ports[i] = (int)strtol(argv[first + i], NULL, 10);
        len += snprintf(url + len, sizeof(url) - (size_t)len, "%s127.0.0.1:%d",
                        i ? "," : "", ports[i]);
    }
    mj = majority_open(ports, count);
    client = client_open(url);
    lock = lock_new(client, 0, 0);
    if (stopped[0])
        stop_some(mj, lock);
    measure_pairs(&(side){majority_pair, mj}, &(side){lock_pair, lock},
                  (size_t)blocks);
    tell_stopped(SIGCONT);
    dibs_lock_free(lock);
    dibs_close(client);
    majority_close(mj);
    return 0;
}
