/* breakers.c - calls behind a breaker. */
/* SPDX-License-Identifier: MIT */
#include "bench/breakers.h"
#include "bench/pairs.h"
#include "bench/samples.h"

dibs_breaker *breaker_new(dibs_client *client, const dibs_breaker_opts *opts)
{
    dibs_breaker *breaker;
    dibs_error err;

    must_succeed(dibs_breaker_new(client, "bench-breaker", opts, &breaker,
                                  &err),
                 &err);
    return breaker;
}

bool breaker_call(dibs_breaker *breaker, bool good)
{
    dibs_pass pass;

    if (dibs_breaker_enter(breaker, &pass, NULL) != DIBS_OK)
        return false;
    dibs_breaker_leave(breaker, &pass, good);
    return true;
}

void breaker_report(void *breaker)
{
    dibs_breaker_info info;
    dibs_error err;

    if (!breaker_call(breaker, true))
        give_up("breaker", "changed its state");
    must_succeed(dibs_breaker_get(breaker, &info, &err), &err);
    if (info.alone)
        give_up("breaker", "the store did not answer");
}
