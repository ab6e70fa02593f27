/* holder.c - another process: takes a lock, says so, and holds it until it is
 * ended.
 *
 *     core_holder URL NAME TTL_MS */
/* SPDX-License-Identifier: MIT */
#include "pace.h"

#include <dibs/dibs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;

    if (argc != 4)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    rc = dibs_open(argv[1], DIBS_CLIENT_OPTS(.label = "holder"), &cl, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(cl, argv[2],
                           DIBS_LOCK_OPTS(.ttl_ms = strtol(argv[3], NULL, 10)),
                           &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, &err);
    if (rc != DIBS_OK) {
        fprintf(stderr, "core_holder: %s\n", err.message);
        return pace_explains(rc) ? PACE_MISSED : 1;
    }
    printf("held\n");
    fflush(stdout);
    for (;;)
        pause();
}
