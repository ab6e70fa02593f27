/* async_poll.c - waiting for a lock inside a poll() loop.
 *
 * The loop works while it waits, a round each 50 ms. After three rounds the holder
 * releases, and the client calls granted().
 *
 *     async_poll [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <poll.h>
#include <stdio.h>

static int rounds;
static dibs_status ended = DIBS_BUSY;

static void
granted(dibs_lock *lock, dibs_status status, const dibs_error *err, void *arg)
{
    (void)arg;
    ended = status;
    if (status == DIBS_OK)
        printf("granted under fence %llu after %d rounds of work\n",
               (unsigned long long)dibs_lock_fence(lock), rounds);
    else
        fprintf(stderr, "%s\n", err->message);
}

int main(int argc, char **argv)
{
    const dibs_lock_opts *opts = DIBS_LOCK_OPTS(.wait_ms = 10000);
    struct pollfd pfd = {.events = POLLIN};
    dibs_client *client = NULL;
    dibs_lock *holder = NULL, *waiter = NULL;
    dibs_error err = {0};

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK ||
        dibs_lock_new(client, "a", NULL, &holder, &err) != DIBS_OK ||
        dibs_lock_new(client, "a", opts, &waiter, &err) != DIBS_OK ||
        dibs_lock_try(holder, &err) != DIBS_OK ||
        (pfd.fd = dibs_async_fd(client)) < 0 ||
        dibs_lock_acquire_async(waiter, granted, NULL, &err) != DIBS_OK)
        fprintf(stderr, "%s\n", err.message);
    else
        while (ended == DIBS_BUSY) {
            if (poll(&pfd, 1, 50) > 0)
                dibs_async_process(client);
            else if (++rounds == 3)
                dibs_lock_release(holder, &err);
        }
    dibs_lock_free(waiter);
    dibs_lock_free(holder);
    dibs_close(client);
    return ended == DIBS_OK ? 0 : 1;
}
