/* lost.c - stop work when the lease is lost.
 *
 * The example revokes its own lease with dibs_lease_break(), as an operator does
 * with `dibs break`.
 *
 *     lost [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <semaphore.h>
#include <stdio.h>

/* Runs on the client's keeper thread and must return quickly. */
static void on_lost(dibs_lock *lock, void *arg)
{
    (void)lock;
    sem_post(arg);
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;
    sem_t stop;

    sem_init(&stop, 0, 0);
    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc != DIBS_OK)
        goto out;
    rc = dibs_lock_new(client, "lost-example",
                       DIBS_LOCK_OPTS(.ttl_ms = 2000, .on_lost = on_lost,
                                      .on_lost_arg = &stop),
                       &lock, &err);
    if (rc != DIBS_OK)
        goto out;
    if ((rc = dibs_lock_acquire(lock, &err)) != DIBS_OK)
        goto out;
    rc = dibs_lease_break(client, "lost-example", dibs_lock_fence(lock),
                          "to show what happens", NULL, &err);
    if (rc != DIBS_OK)
        goto out;
    sem_wait(&stop); /* a real worker would check a flag in its loop */
    rc = dibs_lock_release(lock, &err);
    printf("stopped work; release answers %s\n", dibs_status_name(rc));
    rc = rc == DIBS_LOST ? DIBS_OK : DIBS_INTERNAL;
out:
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(lock);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
