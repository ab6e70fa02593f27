/* state_counter.c - a shared counter, changed by compare-and-set.
 *
 * Read, compute, write if the version is the same, otherwise retry. (For plain sums
 * dibs_state_add() does it in one step.)
 *
 *     state_counter [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>
#include <stdlib.h>

/* Doubles the number of `key`, or sets it to 1. */
static dibs_status
grow(dibs_client *client, const char *key, long long *out, dibs_error *err)
{
    dibs_status rc;

    do {
        dibs_value old = {0};
        char text[24];
        int len;

        rc = dibs_state_get(client, key, &old, err);
        if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
            return rc;
        *out = rc == DIBS_OK ? 2 * strtoll(old.data, NULL, 10) : 1;
        len = snprintf(text, sizeof(text), "%lld", *out);
        /* Version 0 (DIBS_VERSION_NONE) expects no value. */
        rc = dibs_state_cas(client, key, old.version, text, (size_t)len, 0,
                            NULL, err);
        dibs_value_free(&old);
    } while (rc == DIBS_STALE);
    return rc;
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_error err = {0};
    dibs_status rc;
    long long number = 0;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    for (int i = 0; i < 5 && rc == DIBS_OK; i++) {
        rc = grow(client, "example-counter", &number, &err);
        printf("the counter is %lld\n", number);
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    dibs_close(client);
    return rc == DIBS_OK ? 0 : 1;
}
