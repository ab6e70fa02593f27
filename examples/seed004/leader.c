/* leader.c - a scheduler that runs on the leader only: callbacks start and stop it.
 *
 * Only when on_lost has returned can another instance lead.
 *
 *     leader [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

typedef struct scheduler {
    bool running;
} scheduler;

static void start_scheduler(dibs_election *election, uint64_t term, void *arg)
{
    scheduler *jobs = arg;

    (void)election;
    jobs->running = true;
    printf("leadership acquired: the scheduler starts under term %llu\n",
           (unsigned long long)term);
}

static void stop_scheduler(dibs_election *election, uint64_t term,
                           dibs_lost_why why, void *arg)
{
    scheduler *jobs = arg;

    (void)election;
    (void)term;
    jobs->running = false;
    printf("leadership %s: the scheduler has stopped\n",
           why == DIBS_LOST_RESIGNED ? "given up" : "lost");
}

int main(int argc, char **argv)
{
    scheduler jobs = {.running = false};
    dibs_client *client = NULL;
    dibs_election *election = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_election_new(client, "job-scheduler",
                               DIBS_ELECTION_OPTS(.ttl_ms = 60000,
                                                  .renew_every_ms = 20000,
                                                  .on_gained = start_scheduler,
                                                  .on_lost = stop_scheduler,
                                                  .arg = &jobs),
                               &election, &err);
    if (rc == DIBS_OK)
        rc = dibs_election_wait(election, -1, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_election_free(election); /* resigns: both callbacks have returned */
    dibs_close(client);
    return rc == DIBS_OK && !jobs.running ? 0 : 1;
}
