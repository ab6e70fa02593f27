/* semaphore.c - at most three downloads at once, over threads or machines.
 *
 * All clients must name the same capacity; another one fails with DIBS_MISMATCH.
 *
 *     semaphore [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 8, AT_ONCE = 3, DOWNLOADS = 5 };

static atomic_int now, most, done;

static void download(dibs_lock *lock, void *arg)
{
    int inside = ++now, seen = most;

    (void)lock;
    (void)arg;
    while (inside > seen && !atomic_compare_exchange_weak(&most, &seen, inside))
        continue;
    now--;
    done++;
}

static void *work(void *client)
{
    for (int i = 0; i < DOWNLOADS; i++)
        if (dibs_with_lock(client, "downloads",
                           DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .permits = 1,
                                          .capacity = AT_ONCE, .wait_ms = -1),
                           download, NULL, NULL) != DIBS_OK)
            break;
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t workers[WORKERS];
    dibs_client *client = NULL;
    dibs_error err = {0};

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&workers[i], NULL, work, client) != 0)
            return 1;
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    printf("%d downloads, never more than %d at once\n", done, AT_ONCE);
    dibs_close(client);
    return done == WORKERS * DOWNLOADS && most <= AT_ONCE ? 0 : 1;
}
