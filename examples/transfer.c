/* transfer.c - a program hands its lease to another, here to a copy of itself.
 *
 * The token is a secret: it goes through a pipe, not through arguments.
 *
 *     transfer [URL [heir]]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* A lease that no heir accepts would stand until its ttl: it is taken back. */
static dibs_status hand_on(dibs_lock *lock, const char *url, dibs_error *err)
{
    char token[DIBS_TOKEN_SIZE];
    int pipe_fds[2], status = 0;
    dibs_status rc = dibs_lock_acquire(lock, err);

    if (rc != DIBS_OK || pipe(pipe_fds) != 0)
        return rc;
    if (fork() == 0) {
        dup2(pipe_fds[0], STDIN_FILENO);
        close(pipe_fds[1]);
        execl("/proc/self/exe", "transfer", url, "heir", (char *)NULL);
        _exit(127);
    }
    rc = dibs_lock_transfer(lock, token, err);
    if (rc == DIBS_OK)
        dprintf(pipe_fds[1], "%s", token);
    close(pipe_fds[1]);
    if ((wait(&status) < 0 || status != 0) && rc == DIBS_OK)
        rc = dibs_lock_accept(lock, token, err);
    return rc;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : ""; /* the store without a URL */
    char token[DIBS_TOKEN_SIZE] = "";
    dibs_client *client = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_open(url, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_lock_new(client, "deployment", NULL, &lock, &err);
    if (rc == DIBS_OK && argc < 3)
        rc = hand_on(lock, url, &err);
    else if (rc == DIBS_OK)
        rc = dibs_lock_accept(lock, fgets(token, sizeof(token), stdin), &err);
    if (rc == DIBS_OK && argc > 2)
        printf("heir: fence %" PRIu64 "\n", dibs_lock_fence(lock));
    else if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_lock_free(lock);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
