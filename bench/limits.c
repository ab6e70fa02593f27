/* limits.c - limits that are never reached. */
/* SPDX-License-Identifier: MIT */
#include "bench/limits.h"
#include "bench/pairs.h"

dibs_limit *limit_new(dibs_client *client, const char *name, int64_t chunk)
{
    dibs_limit *limit;
    dibs_error err;

    must_succeed(dibs_limit_new(client, name,
                                DIBS_LIMIT_OPTS(.count = 100000000,
                                                .burst = 100000000,
                                                .chunk = chunk),
                                &limit, &err),
                 &err);
    return limit;
}

void limit_take(void *limit)
{
    dibs_error err;

    must_succeed(dibs_limit_take(limit, 1, &err), &err);
}
