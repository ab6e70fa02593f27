/* main.c - runs the simulation over many seeds and checks what must hold.
 *
 *     sim [SEEDS [FIRST]]     so many seeds from FIRST on; default 1000 from 1
 *     sim --seed N            that seed again, telling what happens
 *
 * After every event: no two clients believe in leases that exclude each other;
 * whoever believes is a holder at the store, under the same fence and for longer;
 * every new belief has a higher fence than any before it; nobody who has left
 * holds anything. In the end the network heals and everybody gets a turn. */
/* SPDX-License-Identifier: MIT */
#include "seed.h"
#include "sim.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAD_SECONDS = 120, GOOD_SECONDS = 60 };

static world sim;

void sim_note(const world *w, const client *cl, const char *what)
{
    if (w->trace)
        printf("%10.3f s  client %d (%.6s) %s, fence %llu\n",
               (double)w->now / 1e9, cl->number, cl->lease.owner, what,
               (unsigned long long)cl->lease.fence);
}

static void fail(const world *w, const char *what)
{
    fprintf(stderr, "seed %llu, %.6f s: %s\nagain with: sim --seed %llu\n",
            (unsigned long long)w->seed, (double)w->now / 1e9, what,
            (unsigned long long)w->seed);
    exit(1);
}

/* An assertion of the code under test failed: the seed must be known. */
static void aborted(int number)
{
    static const char text[] = "aborted; again with: sim --seed ";
    char digits[24];
    size_t at = sizeof(digits);
    uint64_t rest = sim.seed;

    (void)number;
    digits[--at] = '\n';
    do
        digits[--at] = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    (void)!write(2, text, sizeof(text) - 1);
    (void)!write(2, digits + at, sizeof(digits) - at);
    _exit(1);
}

static bool believes(const world *w, const client *cl)
{
    return dibs__lease_valid(&cl->lease, sim_clock(w, cl));
}

static void check_exclusion(const world *w)
{
    uint32_t exclusive = 0, others = 0, permits = 0;

    for (int i = 0; i < w->client_count; i++) {
        const client *cl = &w->clients[i];
        if (!believes(w, cl))
            continue;
        if (cl->mode == DIBS__EXCLUSIVE)
            exclusive++;
        else
            others++;
        permits += cl->permits;
    }
    if (exclusive > 1 || (exclusive == 1 && others > 0))
        fail(w, "two clients believe that they hold the name");
    if (w->capacity > 0 && permits > w->capacity)
        fail(w, "more permits are believed in than there are");
}

static const dibs__party *holder(const world *w, const char *owner)
{
    for (size_t i = 0; i < w->roll.count; i++)
        if (w->roll.parties[i].role == DIBS__HOLDER &&
            memcmp(w->roll.parties[i].owner, owner, DIBS_OWNER_SIZE) == 0)
            return &w->roll.parties[i];
    return NULL;
}

static void check_agreement(world *w, client *cl)
{
    const dibs__party *party = holder(w, cl->lease.owner);
    dibsx_nsec until = sim_world_time(cl, cl->lease.valid_until);

    if (!party || party->fence != cl->lease.fence)
        fail(w, "a client believes what the store does not");
    if (until / 1000 > party->until_us)
        fail(w, "a client believes for longer than the store");
}

/* Fences rise in the order in which belief begins, in every kind where only one
 * can believe at a time. */
static void check_fence(world *w, const client *cl)
{
    if (w->capacity > 0 || w->seed % 3 == 1)
        return;
    if (cl->lease.fence < w->last_fence)
        fail(w, "a fence is lower than one before it");
    w->last_fence = cl->lease.fence;
}

/* Once the store has let an owner go, no late request of it is granted. */
static void check_gone(world *w)
{
    for (size_t i = 0; i < GONE_MAX; i++)
        if (w->gone[i][0] != '\0' && holder(w, w->gone[i]))
            fail(w, "an owner that has left is a holder");
}

void sim_check(world *w)
{
    check_exclusion(w);
    for (int i = 0; i < w->client_count; i++)
        if (believes(w, &w->clients[i])) {
            check_agreement(w, &w->clients[i]);
            check_fence(w, &w->clients[i]);
        }
}

static void set_up(world *w, uint64_t seed, bool trace)
{
    dibs__roll_fini(&w->roll);
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->trace = trace;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->client_count = 2 + (int)dibsx_prng_below(&w->prng, CLIENTS_MAX - 1);
    w->capacity =
        seed % 3 == 2 ? 1 + (uint32_t)dibsx_prng_below(&w->prng, 4) : 0;
    w->loss = (int)dibsx_prng_below(&w->prng, 150);
    w->late = (int)dibsx_prng_below(&w->prng, 150);
    w->notice_loss = sim_chance(w, 200) ? 1000 : w->loss;
    w->wall_us = 1700000000000000;
    w->now = DIBSX_SEC;
    for (int i = 0; i < w->client_count; i++)
        sim_client_start(w, i);
    sim_add(w, &(event){.kind = EVENT_WALL, .at = 5 * DIBSX_SEC});
}

static void set_wall(world *w)
{
    event again = {.kind = EVENT_WALL};

    w->wall_us += (sim_span(w, 0, 7200000) - 3600 * DIBSX_SEC) / 1000;
    again.at = w->now + sim_span(w, 1000, 30000);
    sim_add(w, &again);
}

static void run_until(world *w, dibsx_nsec end)
{
    while (w->event_count > 0 && w->events[0].at <= end) {
        event ev = sim_next(w);
        w->now = ev.at;
        if (ev.kind == EVENT_REQUEST) {
            sim_request(w, &ev);
            check_gone(w);
        } else if (ev.kind == EVENT_WALL) {
            set_wall(w);
        } else {
            sim_client_event(w, &ev);
        }
        sim_check(w);
    }
    w->now = end;
}

/* When the network is good again, everybody gets a turn. */
static void check_liveness(world *w)
{
    uint64_t before[CLIENTS_MAX];

    w->healed = true;
    run_until(w, w->now + 15 * DIBSX_SEC);
    for (int i = 0; i < w->client_count; i++)
        before[i] = w->clients[i].acquisitions;
    run_until(w, w->now + GOOD_SECONDS * DIBSX_SEC);
    for (int i = 0; i < w->client_count; i++)
        if (w->clients[i].acquisitions == before[i])
            fail(w, "a client got no turn in a good minute");
}

static void run_seed(world *w, uint64_t seed, bool trace)
{
    set_up(w, seed, trace);
    run_until(w, BAD_SECONDS * DIBSX_SEC);
    check_liveness(w);
}

static uint64_t number_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? number_of(argv[1]) : 1000;
    uint64_t first = argc > 2 ? number_of(argv[2]) : seed_of_many();
    uint64_t acquired = 0, lost = 0, notified = 0, crashes = 0;
    dibsx_nsec start = dibsx_now();
    double simulated = 0, took;

    signal(SIGABRT, aborted);
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        run_seed(&sim, number_of(argv[2]), true);
        dibs__roll_fini(&sim.roll);
        return 0;
    }
    for (uint64_t i = 0; i < seeds; i++) {
        run_seed(&sim, first + i, false);
        simulated += (double)sim.now / 1e9;
        acquired += sim.acquired;
        lost += sim.lost;
        notified += sim.notified;
        crashes += sim.crashes;
    }
    dibs__roll_fini(&sim.roll);
    took = (double)(dibsx_now() - start) / 1e9;
    printf("%llu seeds, %llu leases, %llu by notice, %llu lost, %llu crashes; "
           "%.0f s simulated in %.1f s, %.0f times real time\n",
           (unsigned long long)seeds, (unsigned long long)acquired,
           (unsigned long long)notified, (unsigned long long)lost,
           (unsigned long long)crashes, simulated, took, simulated / took);
    return acquired > 0 && notified > 0 && lost > 0 ? 0 : 1;
}
