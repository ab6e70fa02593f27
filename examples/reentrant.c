/* reentrant.c - a function that holds a lock calls another that acquires it too.
 *
 * The second acquire of the same thread only counts: no round trip, the same
 * fencing token. The last release ends the lease.
 *
 *     reentrant [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

static const dibs_lock_opts ledger = {.size = sizeof(dibs_lock_opts),
                                      .flags = DIBS_LOCK_REENTRANT,
                                      .wait_ms = 5000};

/* Works alone and inside transfer(). */
static void book(dibs_lock *lock, void *arg)
{
    printf("  booked %d under fence %" PRIu64 "\n", *(const int *)arg,
           dibs_lock_fence(lock));
}

static void transfer(dibs_lock *lock, void *arg)
{
    dibs_client *client = arg;
    int amounts[] = {-100, 100};

    printf("transfer under fence %" PRIu64 "\n", dibs_lock_fence(lock));
    for (int i = 0; i < 2; i++)
        if (dibs_with_lock(client, "ledger", &ledger, book, &amounts[i],
                           NULL) != DIBS_OK)
            printf("never printed: this thread holds it\n");
    printf("still held for %" PRId64 " ms\n", dibs_lock_valid_ms(lock));
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_with_lock(client, "ledger", &ledger, transfer, client, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
