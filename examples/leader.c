/* leader.c - of several candidates one leads; when it resigns, the next one does.
 *
 * The term is a fencing token: pass it to the resource that the leader writes to.
 *
 *     leader [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

/* A step of the leader's work: short, so that a loss ends it in time. */
static void schedule_next(const char *who, uint64_t term)
{
    printf("%s schedules under term %llu\n", who, (unsigned long long)term);
}

/* Leads until the work is done or the lead is lost. */
static dibs_status
work_as_leader(dibs_election *election, const char *who, dibs_error *err)
{
    dibs_status rc = dibs_election_wait(election, -1, err);

    for (int step = 0; step < 3 && rc == DIBS_OK; step++) {
        schedule_next(who, dibs_election_term(election));
        rc = dibs_election_check(election);
    }
    return rc == DIBS_OK ? dibs_election_resign(election, err) : rc;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_election *one = NULL, *two = NULL;
    dibs_error err = {0};
    dibs_status rc;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_election_new(client, "scheduler",
                               DIBS_ELECTION_OPTS(.member = "one"), &one, &err);
    if (rc == DIBS_OK)
        rc = dibs_election_new(client, "scheduler",
                               DIBS_ELECTION_OPTS(.member = "two"), &two, &err);
    if (rc == DIBS_OK)
        rc = work_as_leader(one, "one", &err);
    if (rc == DIBS_OK)
        rc = work_as_leader(two, "two", &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_election_free(one);
    dibs_election_free(two);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
