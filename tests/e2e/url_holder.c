/* url_holder.c - a program that is given a store's URL on its standard input,
 * holds a lock there, and forgets the URL: what is left of it in memory is the
 * library's.
 *
 *     url_holder NAME
 *
 * Says "held"; closes the client after the next line and says "closed"; ends when
 * its input does. */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static char url[4096];

/* A line of the input, without its end; read by hand, so that no buffer keeps it.
 * False when there is none. */
static bool read_line(char *out, size_t size)
{
    size_t len = 0;

    while (len < size - 1 && read(STDIN_FILENO, out + len, 1) == 1) {
        if (out[len] == '\n') {
            out[len] = '\0';
            return true;
        }
        len++;
    }
    return false;
}

static void say(const char *word)
{
    puts(word);
    fflush(stdout);
}

/* Leaves the heap full of gaps, none of which has another beside it: a block that
 * grows has to move, and what it leaves behind is not joined with what was free. */
static void make_gaps(void)
{
    enum { SIZES = 96, STEP = 16, GAPS = 8 };
    static char *blocks[SIZES][2 * GAPS];

    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < COUNT_OF(blocks[i]); k++)
            blocks[i][k] = malloc((i + 1) * STEP);
    for (size_t i = 0; i < SIZES; i++)
        for (size_t k = 0; k < COUNT_OF(blocks[i]); k += 2)
            free(blocks[i][k]);
}

static dibs_status
hold(const char *name, dibs_client **cl, dibs_lock **lock, dibs_error *err)
{
    dibs_status rc = dibs_open(url, NULL, cl, err);

    explicit_bzero(url, sizeof(url));
    if (rc == DIBS_OK)
        rc = dibs_lock_new(*cl, name, NULL, lock, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(*lock, err);
    return rc;
}

int main(int argc, char **argv)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc;
    char word[16];
    bool more;

    if (argc != 2 || !read_line(url, sizeof(url)))
        return 2;
    make_gaps();
    rc = hold(argv[1], &cl, &lock, &err);
    say(rc == DIBS_OK ? "held" : err.message);
    more = rc == DIBS_OK && read_line(word, sizeof(word));
    dibs_lock_free(lock);
    dibs_close(cl);
    if (more) {
        say("closed");
        while (read_line(word, sizeof(word)))
            continue;
    }
    return rc == DIBS_OK ? 0 : 1;
}
