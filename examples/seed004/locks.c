/* locks.c - one instance sends mail, an order is entered twice, readers and a writer,
 * and a semaphore.
 *
 *     locks [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

enum { MINUTE_MS = 60 * 1000 };

static void send_bulk_emails(dibs_client *client)
{
    /* Released at the end of the block; renewed meanwhile. */
    DIBS_WITH_LOCK(client, "bulk-email-job", .ttl_ms = 30 * MINUTE_MS)
    {
        printf("only this instance sends\n");
    }
}

static void process_payment(dibs_client *client)
{
    DIBS_WITH_LOCK(client, "order:7", .ttl_ms = 2 * MINUTE_MS,
                   .flags = DIBS_LOCK_REENTRANT)
    {
        printf("the payment is inside the lock of its order\n");
    }
}

static void process_order(dibs_client *client)
{
    DIBS_WITH_LOCK(client, "order:7", .ttl_ms = 5 * MINUTE_MS,
                   .flags = DIBS_LOCK_REENTRANT)
    {
        process_payment(client);
    }
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    send_bulk_emails(client);
    process_order(client);
    DIBS_WITH_LOCK(client, "catalogue", .mode = DIBS_SHARED)
    printf("a reader, beside other readers\n");
    DIBS_WITH_LOCK(client, "catalogue", .ttl_ms = 5 * MINUTE_MS)
    printf("the writer, alone\n");
    DIBS_WITH_LOCK(client, "downloads", .mode = DIBS_PERMITS, .permits = 1,
                   .capacity = 3)
    printf("one of three downloads, fence %llu\n",
           (unsigned long long)dibs_lock_fence(dibs_held));
    dibs_close(client);
}
