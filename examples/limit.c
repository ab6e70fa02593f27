/* limit.c - no more than 100 messages a second, however many programs send them.
 *
 * Each message takes a token. The limit is its name: all programs that use the name
 * share it. A call waits up to two seconds for its token, in order. If that is not
 * enough, it is refused and learns when to try again.
 *
 *     limit [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

enum { MESSAGES = 30 };

static void send_message(int number)
{
    (void)number; /* Call the service that has the quota. */
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_limit *limit = NULL;
    dibs_error err = {0};
    dibs_status rc;
    int sent = 0;

    rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);
    if (rc == DIBS_OK)
        rc = dibs_limit_new(client, "sms-gateway",
                            DIBS_LIMIT_OPTS(.count = 100, .burst = 20,
                                            .wait_ms = 2000),
                            &limit, &err);
    while (rc == DIBS_OK && sent < MESSAGES) {
        rc = dibs_limit_take(limit, 1, &err);
        if (rc == DIBS_OK)
            send_message(sent++);
    }
    if (rc == DIBS_BUSY)
        printf("too many; try again in %lld ms\n",
               (long long)dibs_limit_retry_ms(limit));
    else if (rc != DIBS_OK)
        fprintf(stderr, "%s: %s\n", dibs_status_name(rc), err.message);
    printf("%d messages sent\n", sent);
    dibs_limit_free(limit);
    dibs_close(client);
    return rc != DIBS_OK;
}
