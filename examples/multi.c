/* multi.c - lock two accounts at once: all or none; cannot deadlock.
 *
 * One thread moves money from A to B, the other from B to A. The order in which
 * they name the accounts does not matter.
 *
 *     multi [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>

enum { TURNS = 20 };

static dibs_client *client;
static int balance[] = {1000, 1000}; /* guarded by the set */

static void *move_money(void *arg)
{
    const int from = *(const int *)arg;
    const char *const names[2][2] = {{"account-a", "account-b"},
                                     {"account-b", "account-a"}};
    dibs_multi *both = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_multi_new(client, names[from], 2,
                        DIBS_LOCK_OPTS(.wait_ms = 30000), &both, &err);
    for (int i = 0; i < TURNS && rc == DIBS_OK; i++) {
        rc = dibs_multi_acquire(both, &err);
        if (rc != DIBS_OK)
            break;
        balance[from] -= 10 + from;
        balance[1 - from] += 10 + from;
        rc = dibs_multi_release(both, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_multi_free(both);
    return NULL;
}

int main(int argc, char **argv)
{
    int from[] = {0, 1};
    pthread_t threads[2];

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, NULL) != DIBS_OK)
        return 1;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, move_money, &from[i]) != 0)
            return 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    printf("accounts: %d and %d, %d in all\n", balance[0], balance[1],
           balance[0] + balance[1]);
    dibs_close(client);
    return 0;
}
