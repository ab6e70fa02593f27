/* hello_lock.c - acquire a lease, use its fencing token, release it.
 *
 *     hello_lock [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc != DIBS_OK)
        goto out;
    rc = dibs_lock_new(client, "hello",
                       DIBS_LOCK_OPTS(.ttl_ms = 10000, .wait_ms = 5000), &lock,
                       &err);
    if (rc != DIBS_OK)
        goto out;
    rc = dibs_lock_acquire(lock, &err);
    if (rc != DIBS_OK)
        goto out;

    /* Pass the token to the guarded resource, which refuses a late writer with a
     * smaller one. */
    printf("held under fence %" PRIu64 ", valid for %" PRId64 " ms\n",
           dibs_lock_fence(lock), dibs_lock_valid_ms(lock));
    rc = dibs_lock_release(lock, &err);

out:
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(lock);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
