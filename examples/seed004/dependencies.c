/* dependencies.c - a load that waits for an extraction and a transformation.
 *
 *     dependencies [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>
#include <string.h>

static dibs_jobs *jobs;

static dibs_status do_job(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    printf("%s\n", dibs_run_job(run));
    if (strcmp(dibs_run_job(run), "load") == 0)
        dibs_jobs_stop(jobs); /* so that the example ends */
    return DIBS_OK;
}

static dibs_status schedule_dependent_jobs(dibs_client *db, dibs_error *err)
{
    const char *both[] = {"extract", "transform", NULL};
    dibs_graph *etl = NULL;
    char run[DIBS_RUN_SIZE];
    bool ok =
        dibs_jobs_publish(jobs, err) == DIBS_OK &&
        dibs_graph_new("etl", &etl, err) == DIBS_OK &&
        dibs_graph_add(etl, "extract", "extract", NULL, err) == DIBS_OK &&
        dibs_graph_add(etl, "transform", "transform", NULL, err) == DIBS_OK &&
        dibs_graph_add(etl, "load", "load", both, err) == DIBS_OK &&
        dibs_graph_start(db, etl, run, err) == DIBS_OK;

    dibs_graph_free(etl);
    return ok ? DIBS_OK : err->status;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_jobs_open(client, NULL, &jobs, &err);
    if (rc == DIBS_OK) {
        DIBS_JOB(jobs, "extract", do_job, .attempts = 3);
        DIBS_JOB(jobs, "transform", do_job, .attempts = 3);
        DIBS_JOB(jobs, "load", do_job, .singleton = true);
        rc = schedule_dependent_jobs(client, &err);
    }
    if (rc == DIBS_OK)
        rc = dibs_jobs_run(jobs, &err);
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_jobs_close(jobs);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
