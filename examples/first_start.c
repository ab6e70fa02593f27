/* first_start.c - create the schema at program start, then use the store.
 *
 * Many programs may start at once: one creates the schema, the others find it. Only
 * PostgreSQL has a schema. Its role needs the right to create one; without that
 * right, an administrator runs `dibs store init` once.
 *
 *     first_start [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static void work(dibs_lock *lock, void *arg)
{
    (void)arg;
    printf("at work under fence %llu\n",
           (unsigned long long)dibs_lock_fence(lock));
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : NULL;
    dibs_store_state schema = {0};
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_store_setup(url, DIBS_STORE_INIT, 0, &schema, &err);

    if (rc == DIBS_OK)
        printf("schema: %s\n", !schema.needed   ? "none is needed"
                               : schema.changed ? "made"
                                                : "was there");
    if (rc == DIBS_OK)
        rc = dibs_open(url, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_with_lock(client, "report", NULL, work, NULL, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
