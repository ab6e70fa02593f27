/* redis_world.c - see redis_world.h. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

static int settle_in(void **state, bool started)
{
    world *w = *state;

    if (!started)
        return -1;
    server_url(&w->sv, w->url);
    w->one = world_client(w->url, 2000);
    w->other = world_client(w->url, 2000);
    return 0;
}

int world_setup(void **state)
{
    world *w = calloc(1, sizeof(*w));

    *state = w;
    return settle_in(state, w && server_start(&w->sv, NULL));
}

int world_setup_forgetful(void **state)
{
    world *w = calloc(1, sizeof(*w));

    *state = w;
    return settle_in(state, w && server_start_forgetful(&w->sv, NULL));
}

int world_teardown(void **state)
{
    world *w = *state;

    if (!w)
        return -1;
    dibs_close(w->one);
    dibs_close(w->other);
    server_stop(&w->sv);
    free(w);
    return 0;
}
