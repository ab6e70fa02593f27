/* with_lock.c - a block of code that runs under a lock.
 *
 * Leaving the block releases the lease, also by break or return.
 *
 *     with_lock [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

static void handle_hourly_task(uint64_t fence)
{
    printf("the hourly task runs under fence %" PRIu64 "\n", fence);
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    int runs = 0;

    if (dibs_open(argc > 1 ? argv[1] : NULL,
                  DIBS_CLIENT_OPTS(.prefix = "workflow:"), &client,
                  &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    DIBS_WITH_LOCK(client, "hourly-task", .ttl_ms = 300000, .retries = 3,
                   .retry_delay_ms = 500)
    {
        handle_hourly_task(dibs_lock_fence(dibs_held));
        runs++;
    }
    if (runs == 0)
        printf("another process has the hourly task\n");
    dibs_close(client);
    return 0;
}
