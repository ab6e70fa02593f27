/* barrier.c - three workers go through the phases of a computation together.
 *
 * No worker begins a phase before all have ended the one before. Usually each is a
 * process of its own, on its own machine; here they are threads.
 *
 *     barrier [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <pthread.h>
#include <stdio.h>

enum { WORKERS = 3, PHASES = 4 };

static dibs_client *client;

static void *work(void *arg)
{
    const char *name = arg;
    dibs_barrier *barrier = NULL;
    dibs_error err = {0};
    int phase = 0;
    dibs_status rc =
        dibs_barrier_new(client, "phases",
                         DIBS_BARRIER_OPTS(.parties = WORKERS, .wait_ms = 60000,
                                           .label = name),
                         &barrier, &err);

    for (; phase < PHASES && rc == DIBS_OK; phase++)
        rc = dibs_barrier_wait(barrier, NULL, &err); /* after its part */
    /* A worker that died or gave up: the message says who is missing. */
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", name, err.message);
    else
        printf("%s went through %d phases\n", name, phase);
    dibs_barrier_free(barrier);
    return NULL;
}

int main(int argc, char **argv)
{
    static char names[WORKERS][16];
    pthread_t workers[WORKERS];
    dibs_error err = {0};

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int i = 0; i < WORKERS; i++) {
        snprintf(names[i], sizeof(names[i]), "worker-%d", i);
        pthread_create(&workers[i], NULL, work, names[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    dibs_close(client);
    return 0;
}
