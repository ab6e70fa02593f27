/* breaker.c - stops calling a service that fails, in all programs at once.
 *
 * Each call asks the breaker first and says afterwards how it went. Five bad calls of
 * all programs within five minutes open it; then calls use the fallback at once. After
 * a minute one call is tried, and if that goes well, all are made again.
 *
 *     breaker [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

enum { ORDERS = 20, FAILS_FROM = 8 };

static bool pay(int order)
{
    return order < FAILS_FROM; /* Call the service, with a timeout. */
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_breaker *breaker = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int paid = 0, failed = 0, refused = 0;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_new(client, "payments",
                              DIBS_BREAKER_OPTS(.threshold = 5,
                                                .sampling_ms = 300000,
                                                .recovery_ms = 60000),
                              &breaker, &err);
    for (int order = 0; rc == DIBS_OK && order < ORDERS; order++) {
        dibs_pass pass;

        if (dibs_breaker_enter(breaker, &pass, NULL) == DIBS_OK) {
            bool good = pay(order);

            dibs_breaker_leave(breaker, &pass, good);
            paid += good;
            failed += !good;
        } else {
            refused++; /* Use the fallback. */
        }
    }
    if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    printf("%d paid, %d failed, %d refused at once\n", paid, failed, refused);
    dibs_breaker_free(breaker);
    dibs_close(client);
    return rc != DIBS_OK;
}
