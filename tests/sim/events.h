/* events.h - what happens next in a simulation. Included after its event, which has
 * `at`, and its world, which has `events` (EVENTS of them), `count` and `wrong`: the code
 * is the same for all, the types are not. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SIM_EVENTS_H
#define DIBS_TESTS_SIM_EVENTS_H

static inline void add(world *w, event ev)
{
    if (w->count == EVENTS)
        w->wrong = "the simulation has no room for an event";
    else
        w->events[w->count++] = ev;
}

static inline event take_first(world *w)
{
    size_t first = 0;
    event ev;

    for (size_t i = 1; i < w->count; i++)
        if (w->events[i].at < w->events[first].at)
            first = i;
    ev = w->events[first];
    w->events[first] = w->events[--w->count];
    return ev;
}

#endif
