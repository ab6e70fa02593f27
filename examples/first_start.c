/* first_start.c - make the schema when the program starts, then use the store.
 *
 * Of many that start at once one makes it; the others find it made. A store that
 * keeps no schema says so. With PostgreSQL the role needs the right to create a
 * schema then; where it should not have that, run `dibs store init` instead.
 *
 *     first_start [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static void work(dibs_lock *lock, void *arg)
{
    (void)arg;
    printf("at work under token %llu\n",
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
