/* resume.c - a workflow that waits at a bookmark is resumed by one of two nodes; the other
 * hears that it is already in progress.
 *
 *     resume URL RUN     order.sh starts the run
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static dibs_status resume_bookmark(dibs_client *client, const char *run,
                                   dibs_bookmark_fn *core, void *arg)
{
    dibs_error err = {0};
    dibs_status rc =
        dibs_bookmark_work(client, run, "approval", core, arg, &err);

    if (rc == DIBS_BUSY) /* AlreadyInProgress() */
        printf("second caller: %s\n", err.message);
    else if (rc == DIBS_STALE)
        printf("third caller: %s\n", err.message);
    return rc;
}

struct node {
    dibs_client *client;
    const char *run;
};

/* The work of one resume. Meanwhile another node is asked to resume it, too. */
static dibs_status
resume_core(void *arg, char *data, size_t *len, dibs_error *err)
{
    struct node *second = arg;

    (void)err;
    if (second)
        resume_bookmark(second->client, second->run, resume_core, NULL);
    *len = (size_t)snprintf(data, *len, "approved");
    return DIBS_OK;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    struct node second = {.client = client, .run = argc > 2 ? argv[2] : ""};

    if (rc == DIBS_OK)
        rc = resume_bookmark(client, second.run, resume_core, &second);
    if (rc == DIBS_OK)
        resume_bookmark(client, second.run, resume_core, NULL);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
