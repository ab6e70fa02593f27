/* jobs_bell.c - the bell of the board in sim_jobs: rings that are lost, late or repeated, and
 * nodes that sleep until a number or a ring. */
/* SPDX-License-Identifier: MIT */
#include "jobs_sim.h"

#include <string.h>

#include "events.h"

/* Now and then the store rings for nobody, and no node knows. */
static bool is_lost(world *w)
{
    if (w->clear)
        return false;
    if (w->now >= w->bell_down_until && chance(w, 30))
        w->bell_down_until = w->now + span(w, 1000, 6000);
    return w->now < w->bell_down_until || chance(w, 250);
}

void ring_nodes(world *w)
{
    for (int i = 0; i < NODES; i++) {
        int times = !w->clear && chance(w, 100) ? 2 : 1;

        w->rings++;
        if (is_lost(w)) {
            w->lost_rings++;
            continue;
        }
        for (; times > 0; times--) {
            bool late = !w->clear && chance(w, 100);

            add(w, (event){.kind = RING,
                           .at = w->now + span(w, 0, late ? 4000 : 20),
                           .who = i});
        }
    }
}

/* A node that has lost its connection knows that it may have missed rings. */
void hear_ring(world *w, int who)
{
    dibs__wake *wake = &w->nodes[who].wake;

    if (wake->hears && w->mutant != NO_RINGS)
        dibs__wake_rang(wake, w->now, !w->clear && chance(w, 30));
}

void listen_again(world *w, int who)
{
    dibs__wake *wake = &w->nodes[who].wake;

    if (w->now >= wake->listen_at)
        dibs__wake_listened(wake, w->now, w->clear || !chance(w, 100));
    if (w->mutant == RING_ALONE || w->mutant == NO_OWN_LOOK)
        wake->hears = true;
}

void begin_look(world *w, int who)
{
    dibs__wake *wake = &w->nodes[who].wake;

    w->looks++;
    dibs__wake_looking(wake, w->now);
    if (w->mutant == RING_ALONE || w->mutant == NO_OWN_LOOK)
        wake->look_at = DIBSX_NEVER;
}

void look_within(world *w, int who, int64_t ms)
{
    if (w->mutant != RING_ALONE)
        dibs__wake_within(&w->nodes[who].wake, w->now, ms);
}

void look_at_number(world *w, int who, int64_t at_us)
{
    int64_t wait_us = at_us - wall_us(w) - w->nodes[who].noise_us;

    look_within(w, who, wait_us > 0 ? (wait_us + 999) / 1000 : 0);
}
