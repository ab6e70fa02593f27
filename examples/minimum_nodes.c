/* minimum_nodes.c - three nodes; one leads as long as two of them live.
 *
 * Two are more than half of all: no two nodes lead, even if a failover of the store lost
 * its latest writes. In a real program each node is a process, and each a candidate.
 *
 *     minimum_nodes [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static bool print_member(const dibs_member_info *info, void *arg)
{
    (void)arg;
    printf("  %s%s\n", info->member,
           info->counts ? "" : ", does not count yet");
    return true;
}

static dibs_status
join(dibs_client *client, const char *name, dibs_member **out, dibs_error *err)
{
    return dibs_member_join(client, "scheduler",
                            DIBS_MEMBER_OPTS(.member = name, .ttl_ms = 750),
                            out, err);
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_election *one = NULL;
    dibs_member *two = NULL, *three = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = join(client, "two", &two, &err);
    if (rc == DIBS_OK)
        rc = join(client, "three", &three, &err);
    if (rc == DIBS_OK)
        rc = dibs_election_new(client, "scheduler",
                               DIBS_ELECTION_OPTS(.member = "one",
                                                  .minimum_nodes = 2,
                                                  .ttl_ms = 1500),
                               &one, &err);
    /* A member counts after a while, so that the first leader takes a second. */
    if (rc == DIBS_OK)
        rc = dibs_election_wait(one, -1, &err);
    if (rc == DIBS_OK) {
        printf("one leads. The members:\n");
        rc = dibs_members_list(client, "scheduler", print_member, NULL, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_election_free(one);
    dibs_member_leave(two);
    dibs_member_leave(three);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
