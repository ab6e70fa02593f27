/* progress.c - a job sets its progress, and every instance that watches sees it.
 *
 * A set is a publish: it tells all watches of the key in the same step. A watch that was
 * cut off sees the last value when it is back.
 *
 *     progress [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static dibs_status update_job_progress(dibs_client *client, const char *job,
                                       int percent, dibs_error *err)
{
    char key[64], text[16];
    int len = snprintf(text, sizeof(text), "%d", percent);

    snprintf(key, sizeof(key), "progress:%s", job);
    return dibs_state_set(client, key, text, (size_t)len, 0, NULL, err);
}

/* Waits for the next change and prints it. */
static dibs_status show_progress(dibs_watch *watch, dibs_error *err)
{
    dibs_change change;
    dibs_status rc = dibs_watch_next(watch, -1, &change, err);

    if (rc != DIBS_OK)
        return rc;
    printf("job 42: %s %%\n",
           change.value.data ? (const char *)change.value.data : "no");
    dibs_value_free(&change.value);
    return DIBS_OK;
}

int main(int argc, char **argv)
{
    dibs_client *job = NULL, *viewer = NULL;
    dibs_watch *watch = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &job, &err);

    if (rc == DIBS_OK)
        rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &viewer, &err);
    if (rc == DIBS_OK)
        rc = dibs_state_watch(viewer, "progress:42", &watch, &err);
    for (int percent = 0; percent <= 100 && rc == DIBS_OK; percent += 25) {
        rc = update_job_progress(job, "42", percent, &err);
        if (rc == DIBS_OK)
            rc = show_progress(watch, &err);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_watch_free(watch);
    dibs_close(viewer);
    dibs_close(job);
    return rc == DIBS_OK ? 0 : 1;
}
