/* quorum_main.c - runs the simulation of a quorum over many seeds.
 *
 *     sim_quorum [SEEDS [FIRST]]      so many seeds from FIRST on
 *     sim_quorum --mutant N SEEDS     with the rule N left out, which must be missed
 *
 * After every event: no two clients believe that they hold the name, or the same
 * slot of it, and each new belief has a higher fence than any that was believed when
 * it was asked for; and a lease that is asked for again has the fence that it has.
 * In the end the network and the nodes heal, and everybody gets a
 * turn. */
/* SPDX-License-Identifier: MIT */
#include "quorum.h"
#include "seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAL_SECONDS = 60 };

static world sim;

bool world_chance(world *w, int of_thousand)
{
    return (int)dibsx_prng_below(&w->prng, 1000) < of_thousand;
}

int64_t world_between(world *w, int64_t from, int64_t to)
{
    return from +
           (int64_t)dibsx_prng_below(&w->prng, (uint64_t)(to - from + 1));
}

static bool is_before(const mail *a, const mail *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/* A heap by time. */
void world_post(world *w, const mail *ml)
{
    size_t i = w->mail_count++;

    if (w->mail_count > MAIL_MAX) {
        fprintf(stderr, "seed %llu: too much mail\n",
                (unsigned long long)w->seed);
        exit(2);
    }
    w->mails[i] = *ml;
    w->mails[i].order = ++w->last_order;
    while (i > 0 && is_before(&w->mails[i], &w->mails[(i - 1) / 2])) {
        mail other = w->mails[(i - 1) / 2];

        w->mails[(i - 1) / 2] = w->mails[i];
        w->mails[i] = other;
        i = (i - 1) / 2;
    }
}

static mail next_mail(world *w)
{
    mail first = w->mails[0];
    size_t i = 0, child;

    w->mails[0] = w->mails[--w->mail_count];
    while ((child = 2 * i + 1) < w->mail_count) {
        mail other = w->mails[i];

        if (child + 1 < w->mail_count &&
            is_before(&w->mails[child + 1], &w->mails[child]))
            child++;
        if (!is_before(&w->mails[child], &w->mails[i]))
            break;
        w->mails[i] = w->mails[child];
        w->mails[child] = other;
        i = child;
    }
    return first;
}

/* The slots of a name: never more holders than those. */
static const char *check_slots(world *w)
{
    const peer *believers[SLOTS_MAX + 1] = {NULL};

    for (int i = 0; i < w->peer_count; i++) {
        const peer *pr = &w->peers[i];

        if (!dibs__lease_valid(&pr->lease, peer_clock(w, pr)))
            continue;
        if (believers[pr->slots.slot])
            return "two clients believe that they hold a slot";
        believers[pr->slots.slot] = pr;
        if (pr->lease.fence <= pr->floor)
            return "a fence is lower than one before it";
        for (uint32_t k = 1; k < pr->slots.slot; k++)
            if (believers[k] && believers[k]->lease.fence == pr->lease.fence)
                return "two slots have the same fence";
        if (pr->lease.fence > w->last_fence)
            w->last_fence = pr->lease.fence;
    }
    return believers[0] ? "a slot has no number" : NULL;
}

/* NULL when all is well. */
static const char *check(world *w)
{
    const peer *believer = NULL;

    if (w->capacity > 0)
        return check_slots(w);
    for (int i = 0; i < w->peer_count; i++) {
        const peer *pr = &w->peers[i];

        if (!dibs__lease_valid(&pr->lease, peer_clock(w, pr)))
            continue;
        if (believer)
            return "two clients believe that they hold the name";
        believer = pr;
    }
    if (!believer || believer->lease.fence == w->last_fence)
        return NULL;
    if (believer->lease.fence < w->last_fence)
        return "a fence is lower than one before it";
    w->last_fence = believer->lease.fence;
    return NULL;
}

static void deliver(world *w, mail *ml)
{
    peer *pr = &w->peers[ml->peer];

    if (!ml->timer && !ml->answer) {
        if (w->now < w->nodes[ml->node].down_till)
            return;
        node_answer(w, ml);
        ml->at = w->now + world_between(w, 0, w->usual_ms) * DIBSX_MS;
        if (w->healed || !world_chance(w, w->loss))
            world_post(w, ml);
        return;
    }
    /* A paused client finds its mail when it goes on. */
    if (w->now < pr->paused_until) {
        ml->at = pr->paused_until;
        world_post(w, ml);
    } else if (ml->timer) {
        peer_look(w, pr);
    } else {
        peer_hear(w, ml);
    }
}

static void disturb(world *w)
{
    peer *pr = &w->peers[world_between(w, 0, w->peer_count - 1)];

    node_strike(w);
    if (w->healed)
        return;
    if (world_chance(w, 30))
        pr->paused_until = w->now + world_between(w, 0, 5000) * DIBSX_MS;
    else if (world_chance(w, 20))
        peer_start(w, pr->number);
}

static const char *run_until(world *w, dibsx_nsec end)
{
    const char *wrong = NULL;
    dibsx_nsec next_disturbance = w->now;

    while (w->mail_count > 0 && w->mails[0].at <= end && !wrong) {
        mail ml = next_mail(w);

        if (ml.at > w->now)
            w->now = ml.at;
        if (w->now >= next_disturbance) {
            disturb(w);
            next_disturbance = w->now + world_between(w, 50, 300) * DIBSX_MS;
        }
        deliver(w, &ml);
        wrong = w->wrong ? w->wrong : check(w);
    }
    return wrong;
}

static void set_up(world *w, uint64_t seed, mutant left_out)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = left_out;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = 1000 * DIBSX_SEC;
    w->count = seed % 2 ? 3 : 5;
    if (seed % 4 >= 2 || left_out == MUTANT_UNDER_WAY)
        w->capacity = (uint32_t)(1 + seed / 4 % SLOTS_MAX);
    w->usual_ms = w->capacity > 0 ? 90 : 30;
    w->peer_count = (int)world_between(w, 2, PEERS_MAX);
    w->loss = (int)world_between(w, 0, 150);
    w->late = (int)world_between(w, 0, w->capacity > 0 ? 400 : 150);
    for (size_t i = 0; i < w->count; i++) {
        w->nodes[i].rate = 1 + (double)world_between(w, -200, 200) / 1e6;
        w->nodes[i].offset_us =
            INT64_C(1790000000000000) + world_between(w, -100000, 100000);
    }
    for (int i = 0; i < w->peer_count; i++)
        peer_start(w, i);
}

static const char *run_seed(world *w, uint64_t seed, mutant left_out)
{
    uint64_t before[PEERS_MAX];
    const char *wrong;

    set_up(w, seed, left_out);
    wrong = run_until(w, w->now + RUN_SECONDS * DIBSX_SEC);
    if (wrong || left_out != MUTANT_NONE)
        return wrong;
    w->healed = true;
    wrong = run_until(w, w->now + 15 * DIBSX_SEC);
    for (int i = 0; i < w->peer_count; i++)
        before[i] = w->peers[i].turns;
    if (!wrong)
        wrong = run_until(w, w->now + HEAL_SECONDS * DIBSX_SEC);
    for (int i = 0; i < w->peer_count && !wrong; i++)
        if (w->peers[i].turns == before[i])
            wrong = "a client got no turn in a good minute";
    return wrong;
}

static uint64_t number_of(const char *text)
{
    return strtoull(text, NULL, 10);
}

/* A rule that is left out must be missed within so many seeds. */
static int run_mutant(mutant left_out, uint64_t seeds)
{
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        const char *wrong = run_seed(&sim, seed, left_out);

        if (wrong) {
            printf("mutant %d, seed %llu: %s\n", (int)left_out,
                   (unsigned long long)seed, wrong);
            return 0;
        }
    }
    printf("mutant %d was not missed in %llu seeds\n", (int)left_out,
           (unsigned long long)seeds);
    return 1;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? number_of(argv[1]) : 500;
    uint64_t first = argc > 2 ? number_of(argv[2]) : seed_of_many();
    uint64_t leases = 0, split = 0, lost = 0, restarts = 0, steps = 0;
    uint64_t permits = 0, moves = 0, repeats = 0, doubts = 0;

    if (argc == 4 && strcmp(argv[1], "--mutant") == 0)
        return run_mutant((mutant)number_of(argv[2]), number_of(argv[3]));
    for (uint64_t seed = first; seed < first + seeds; seed++) {
        const char *wrong = run_seed(&sim, seed, MUTANT_NONE);

        if (wrong) {
            printf("seed %llu, %.3f s: %s\nagain with: sim_quorum 1 %llu\n",
                   (unsigned long long)seed, (double)sim.now / 1e9, wrong,
                   (unsigned long long)seed);
            return 1;
        }
        leases += sim.leases;
        split += sim.split;
        lost += sim.lost;
        restarts += sim.restarts;
        steps += sim.steps;
        permits += sim.permits;
        moves += sim.moves;
        repeats += sim.repeats;
        doubts += sim.doubts;
    }
    printf(
        "%llu seeds, %llu leases, %llu of them slots, after %llu taken ones, "
        "%llu fences written back, %llu lost, %llu "
        "nodes emptied, %llu clocks set, %llu asked for again, %llu of them in "
        "doubt\n",
        (unsigned long long)seeds, (unsigned long long)leases,
        (unsigned long long)permits, (unsigned long long)moves,
        (unsigned long long)split, (unsigned long long)lost,
        (unsigned long long)restarts, (unsigned long long)steps,
        (unsigned long long)repeats, (unsigned long long)doubts);
    return leases > permits && permits > 0 && moves > 0 && lost > 0 &&
                   split > 0 && doubts > 0
               ? 0
               : 1;
}
