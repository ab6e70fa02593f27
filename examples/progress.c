/* progress.c - a lease that is renewed only while the work makes progress.
 *
 * A worker that hangs does not end its process, so renewals go on and others wait
 * for ever. With progress_ms the worker must call dibs_lock_tick(). If it does not,
 * the lease expires and another owner gets the name.
 *
 *     progress [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <poll.h>
#include <stdio.h>

enum { TTL_MS = 1500, PROGRESS_MS = 1000, STEPS = 20 };

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "import",
                           DIBS_LOCK_OPTS(.ttl_ms = TTL_MS,
                                          .progress_ms = PROGRESS_MS),
                           &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(lock, &err);
    for (int i = 0; i < STEPS && rc == DIBS_OK; i++) {
        poll(NULL, 0, 100); /* one step of the work */
        dibs_lock_tick(lock);
        rc = dibs_lock_check(lock);
    }
    if (rc == DIBS_OK) {
        struct pollfd lost = {.fd = dibs_lock_lost_fd(lock), .events = POLLIN};

        printf("worked for longer than the ttl: held\n");
        poll(&lost, 1, -1); /* the work hangs */
        printf("no tick: %s\n", dibs_status_name(dibs_lock_check(lock)));
    } else {
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    }
    dibs_lock_free(lock);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
