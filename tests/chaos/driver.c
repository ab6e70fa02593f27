/* driver.c - how a ground of queues or jobs drives its store. Owns the choice of the store
 * and the numbers that are drawn. One thread. */
/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

const ground *driver_ground = &ground_sqlite;
static const char *kill_name;
static uint64_t drawn = 1;

bool driver_choose(const driver_place *places, const char *name)
{
    while (places->name && strcmp(places->name, name) != 0)
        places++;
    kill_name = places->kill;
    driver_ground = ground_find(name);
    return places->name && driver_ground;
}

bool driver_is_embedded(void)
{
    return driver_ground == &ground_sqlite;
}

bool driver_begin(const char *folder, const char *file, char url[URL_ROOM])
{
    static crew cw;

    if (driver_is_embedded())
        return snprintf(url, URL_ROOM, "sqlite:%s/%s", folder, file) < URL_ROOM;
    cw.folder = folder;
    return driver_ground->begin(&cw, url);
}

void driver_end(void)
{
    if (!driver_is_embedded())
        driver_ground->end();
}

void driver_seed(uint64_t seed)
{
    drawn = seed * 0x9e3779b97f4a7c15 | 1;
}

uint64_t driver_draw(void)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn;
}

bool driver_is_due(int64_t *at_ns, int64_t span_ms)
{
    if (now_ns() < *at_ns)
        return false;
    *at_ns = now_ns() + span_ms * 1000000;
    return true;
}

static const ground_fault *find_fault(const char *name)
{
    for (const ground_fault *ft = driver_ground->faults; ft->name; ft++)
        if (strcmp(ft->name, name) == 0)
            return ft;
    return NULL;
}

static void rest(int64_t least_ms, int64_t away_ms)
{
    poll(NULL, 0,
         (int)(least_ms + (int64_t)(driver_draw() % (uint64_t)away_ms)));
}

bool driver_kill_server(int64_t away_ms)
{
    const ground_fault *ft = find_fault(kill_name);

    if (!ft->strike(0, driver_draw()))
        return false;
    if (!ft->heal)
        return true;
    rest(20, away_ms);
    return ft->heal(0);
}

void driver_cut(int64_t away_ms)
{
    static const char *const names[] = {"reset", "reset", "drop", "half"};
    const ground_fault *ft = find_fault(names[driver_draw() % 4]);

    if (!ft)
        ft = find_fault("unplug");
    if (ft->strike(1, driver_draw()) && ft->heal) {
        rest(5, away_ms);
        ft->heal(1);
    }
}
