/* monitor.c - list the holders and waiters of all names.
 *
 *     monitor [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>

static void print_party(const char *what, const dibs_party *p)
{
    printf("  %s by pid %" PRId64 " on %s for %" PRId64 " ms, %" PRId64
           " ms left\n",
           what, p->pid, p->host, p->age_ms, p->left_ms);
}

static bool print_lease(const dibs_lease_info *info, void *arg)
{
    int *names = arg;

    printf("%s\n", info->name);
    for (size_t i = 0; i < info->holder_count; i++)
        print_party("held", &info->holders[i]);
    for (size_t i = 0; i < info->waiter_count; i++)
        print_party("awaited", &info->waiters[i]);
    ++*names;
    return true; /* go on to the next name */
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int names = 0;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK) {
        /* The list has at least this name. */
        DIBS_WITH_LOCK(client, "monitor-example", .ttl_ms = 5000)
        {
            rc = dibs_lease_list(client, NULL, print_lease, &names, &err);
        }
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    printf("names in use: %d\n", names);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
