/* no_core_dump.c - no core files of dibs itself.
 *
 * Owns the limit that was in force at the start. Main thread. */
/* SPDX-License-Identifier: MIT */
#include "exec/no_core_dump.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit given;
static bool forbidden;

/* The hard limit stays, so that it can be taken back. */
static bool set_none(void)
{
    struct rlimit none = {.rlim_cur = 0, .rlim_max = given.rlim_max};

    return setrlimit(RLIMIT_CORE, &none) == 0;
}

void dibs__core_dump_forbid(void)
{
    if (getrlimit(RLIMIT_CORE, &given) == 0)
        forbidden = set_none();
}

void dibs__core_dump_allow(void)
{
    if (forbidden)
        (void)setrlimit(RLIMIT_CORE, &given);
}

void dibs__core_dump_forbid_again(void)
{
    if (forbidden)
        (void)set_none();
}
