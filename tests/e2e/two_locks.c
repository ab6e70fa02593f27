/* two_locks.c - takes one lock and then another, in one process, as a program
 * does that may meet another in a deadlock.
 *
 *     two_locks URL PREFIX FIRST SECOND
 *
 * An empty URL or PREFIX leaves it to the configuration.
 *
 * Says "first" when it has the first one, and takes the second when it has read
 * a line; says "second" when it has that. Ends without a word when it fails. */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>

#include <stdio.h>

static int take(dibs_client *cl, const char *name, dibs_lock **out)
{
    dibs_error err;

    if (dibs_lock_new(cl, name, DIBS_LOCK_OPTS(.wait_ms = -1, .label = name),
                      out, &err) == DIBS_OK &&
        dibs_lock_acquire(*out, &err) == DIBS_OK)
        return 0;
    fprintf(stderr, "two_locks: %s\n", err.message);
    return 1;
}

static int take_both(dibs_client *cl, char **names)
{
    static const char *const words[] = {"first", "second"};
    dibs_lock *locks[2] = {NULL, NULL};
    char line[16];
    int code = 0;

    for (int i = 0; i < 2 && !code; i++) {
        code = take(cl, names[i], &locks[i]);
        if (code)
            break;
        printf("%s\n", words[i]);
        fflush(stdout);
        if (!fgets(line, sizeof(line), stdin))
            code = 1;
    }
    dibs_lock_free(locks[1]);
    dibs_lock_free(locks[0]);
    return code;
}

int main(int argc, char **argv)
{
    dibs_client *cl = NULL;
    dibs_error err;
    int code;

    if (argc != 5)
        return 2;
    if (dibs_open(argv[1],
                  DIBS_CLIENT_OPTS(.prefix = *argv[2] ? argv[2] : NULL), &cl,
                  &err) != DIBS_OK) {
        fprintf(stderr, "two_locks: %s\n", err.message);
        return 1;
    }
    code = take_both(cl, argv + 3);
    dibs_close(cl);
    return code;
}
