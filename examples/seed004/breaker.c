/* breaker.c - a circuit breaker around an operation: after five failures in five
 * minutes, on any instance, all instances stop calling for a minute.
 *
 *     breaker [URL]
 */
/* SPDX-License-Identifier: MIT */
#include <dibs/dibs.h>
#include <stdio.h>

enum { MINUTE_MS = 60 * 1000 };

/* Calls the operation, or refuses at once with DIBS_BUSY. */
static dibs_status
execute_with_circuit_breaker(dibs_breaker *breaker, bool (*operation)(void),
                             bool *good, dibs_error *err)
{
    dibs_pass pass;
    dibs_status rc = dibs_breaker_enter(breaker, &pass, err);

    *good = rc == DIBS_OK && operation();
    if (rc == DIBS_OK)
        dibs_breaker_leave(breaker, &pass, *good);
    return rc;
}

static bool charge_card(void)
{
    return false; /* the service is down */
}

int main(int argc, char **argv)
{
    dibs_client *client = NULL;
    dibs_breaker *breaker = NULL;
    dibs_error err = {0};
    int calls = 0;
    bool good;
    dibs_status rc = dibs_open(argc > 1 ? argv[1] : NULL, NULL, &client, &err);

    if (rc == DIBS_OK)
        rc = dibs_breaker_new(client, "payments",
                              DIBS_BREAKER_OPTS(.threshold = 5,
                                                .recovery_ms = MINUTE_MS,
                                                .sampling_ms = 5 * MINUTE_MS),
                              &breaker, &err);
    while (rc == DIBS_OK && calls < 100) {
        rc = execute_with_circuit_breaker(breaker, charge_card, &good, &err);
        calls += rc == DIBS_OK;
    }
    printf("%d calls failed, then: %s\n", calls, err.message);
    dibs_breaker_free(breaker);
    dibs_close(client);
    return rc == DIBS_BUSY ? 0 : 1;
}
