/* yield.c - a holder of low importance releases on request.
 *
 * The request is a callback, which the holder may ignore. Here the worker stops and
 * releases.
 *
 *     yield [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <semaphore.h>
#include <stdio.h>

/* Runs on the client's keeper thread: wakes the worker and returns. */
static void asked_for_it(dibs_lock *lock, void *arg)
{
    (void)lock;
    sem_post(arg);
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    uint32_t asked = 0;
    dibs_status rc;
    sem_t stop;

    sem_init(&stop, 0, 0);
    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "reindex",
                           DIBS_LOCK_OPTS(.on_yield = asked_for_it,
                                          .on_yield_arg = &stop),
                           &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(lock, &err);
    if (rc == DIBS_OK) /* another process would do this */
        rc = dibs_lease_yield(client, "reindex", 0, &asked, &err);
    if (rc == DIBS_OK) {
        sem_wait(&stop); /* a real worker would check a flag in its loop */
        rc = dibs_lock_release(lock, &err);
        printf("%u asked, gave way: %s\n", asked, dibs_status_name(rc));
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(lock);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
