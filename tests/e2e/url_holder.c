/* url_holder.c - a program that is given a store's URL on its standard input,
 * holds a lock there, and forgets the URL: what is left of it in memory is the
 * library's.
 *
 *     url_holder NAME
 *
 * Says "held" and ends when its input does. */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char url[4096];

/* The first line; read by hand, so that no buffer keeps it. */
static void read_url(void)
{
    size_t len = 0;

    while (len < sizeof(url) - 1 && read(STDIN_FILENO, url + len, 1) == 1 &&
           url[len] != '\n')
        len++;
    url[len] = '\0';
}

int main(int argc, char **argv)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;
    char byte;

    if (argc != 2)
        return 2;
    read_url();
    rc = dibs_open(url, NULL, &cl, &err);
    explicit_bzero(url, sizeof(url));
    if (rc == DIBS_OK)
        rc = dibs_lock_new(cl, argv[1], NULL, &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(lock, &err);
    if (rc == DIBS_OK) {
        puts("held");
        fflush(stdout);
        while (read(STDIN_FILENO, &byte, 1) > 0)
            continue;
    } else {
        puts(err.message);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
    return rc == DIBS_OK ? 0 : 1;
}
