/* sticky.c - one process acquires the same lock again and again.
 *
 * The client keeps a sticky lease after the release, so that the next acquire needs
 * no round trip. It releases the lease when another owner asks for the name.
 *
 *     sticky [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

enum { TIMES = 1000 };

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_lock *mine = NULL, *theirs = NULL;
    dibs_error err = {0};
    uint64_t fence = 0;
    int same = 0;
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "index",
                           DIBS_LOCK_OPTS(.flags = DIBS_LOCK_STICKY), &mine,
                           &err);
    for (int i = 0; i < TIMES && rc == DIBS_OK; i++) {
        rc = dibs_lock_acquire(mine, &err);
        if (rc != DIBS_OK)
            break;
        same += dibs_lock_fence(mine) == fence;
        fence = dibs_lock_fence(mine);
        rc = dibs_lock_release(mine, &err);
    }
    printf("taken %d times, %d of them without a round trip\n", TIMES, same);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "index", DIBS_LOCK_OPTS(.wait_ms = 10000),
                           &theirs, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(theirs, &err);
    if (rc == DIBS_OK)
        printf("another has it now, under a higher token: %s\n",
               dibs_lock_fence(theirs) > fence ? "yes" : "no");
    else
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(theirs);
    dibs_lock_free(mine);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
