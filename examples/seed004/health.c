/* health.c - the health check of a service: a lock, a value, the leader, with times.
 *
 *     health [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

static void print_part(const dibs_health_part *part, void *arg)
{
    static const char *const results[] = {"ok", "skipped", "slow", "missing",
                                          "failed"};

    (void)arg;
    printf("  %-7s %-7s %6" PRId64 " us %s\n", part->name,
           results[part->result], part->took_us, part->detail);
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"healthy", "degraded", "unhealthy"};
    dibs_client *client = NULL;
    dibs_election *election = NULL;
    dibs_health health = DIBS_UNHEALTHY;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK) /* any instance may lead; here it is this one */
        rc = dibs_election_new(client, "job-scheduler", NULL, &election, &err);
    if (rc == DIBS_OK)
        rc = dibs_election_wait(election, -1, &err);
    if (rc == DIBS_OK)
        rc = dibs_health_check(client,
                               DIBS_HEALTH_OPTS(.election = "job-scheduler",
                                                .slow_ms = 60000,
                                                .each = print_part),
                               &health, &err);
    printf("coordination services are %s\n", words[health]);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_election_free(election);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
