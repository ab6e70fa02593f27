/* pg_world.c - see pg_world.h. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

pg_server world_sv;

int world_begin(void **state)
{
    (void)state;
    return pg_start(&world_sv) ? 0 : -1;
}

int world_end(void **state)
{
    (void)state;
    pg_stop(&world_sv);
    return 0;
}
