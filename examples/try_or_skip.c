/* try_or_skip.c - run a function under a lock, or skip it if the lock is busy.
 *
 * Two callers want the report at once; the second gets DIBS_BUSY and does not wait.
 *
 *     try_or_skip [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

static const char *made(dibs_status rc)
{
    return rc == DIBS_OK     ? "made here"
           : rc == DIBS_BUSY ? "skipped, it is being made"
                             : dibs_status_text(rc);
}

static void second_asker(dibs_lock *lock, void *arg)
{
    (void)lock;
    (void)arg;
    printf("never printed: the first asker still holds it\n");
}

static void make_report(dibs_lock *lock, void *arg)
{
    dibs_client *client = arg;
    dibs_status rc;

    (void)lock;
    rc = dibs_with_lock(client, "report", NULL, second_asker, NULL, NULL);
    printf("second asker: %s\n", made(rc));
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc;

    if (dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err) != DIBS_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    rc = dibs_with_lock(client, "report", NULL, make_report, client, &err);
    printf("first asker: %s\n", made(rc));
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
