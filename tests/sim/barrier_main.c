/* barrier_main.c - parties of a barrier in simulated time: the roster rule as their
 * store, slow, lost and late requests, rings that come or not, calls that time out,
 * parties that die.
 *
 *     sim_barrier [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_barrier --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold:
 *   B1  a call is counted once at most, over all generations;
 *   B2  a generation opens with as many calls as it needs, the seat of each alive;
 *   B3  opened and broken are told only to calls counted in one that did;
 *   B4  a call that ended in time-out or loss is in none that opens later; one that
 *       ended unknown may be;
 *   B6  a call ends LATE_MS after its time at the latest;
 *   B9  a party that has heard between two calls that its seat ended is told with the next. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/barrier_machine.h"
#include "seeds.h"
#include "store/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIES = 3, EVENTS = 512, GENS = 4096, SPAN_S = 120 };
enum { TTL_MS = 3000, POLL_MS = 500, LIMIT_MS = 300, LATE_MS = 5000 };

typedef enum mutant {
    NO_MUTANT,
    ANY_RING,   /* a ring about any generation ends a wait */
    OLD_RECORD, /* a withdrawal leaves the record as it was */
    NO_AFTER,   /* an arrival counts whatever it came after */
    NO_BREAK,   /* the end of a seat breaks nothing */
    ANY_ANSWER, /* the answer to a keep is taken for that to the call */
    MUTANTS
} mutant;

typedef enum kind {
    WAKE,
    SERVE,
    ANSWER,
    GIVE_UP,
    KEPT, /* the session's answer */
    RING,
    DEATH
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int who;
    uint64_t request, life, id, call;
    dibs__meet item;
    dibs__meet_news news;
} event;

typedef struct seat_row {
    uint64_t id; /* 0: none */
    dibs__seat seat;
} seat_row;

typedef struct party {
    dibs__barrier_party machine;
    uint64_t life, call, request;
    bool in_call, answered, lost;
    dibsx_nsec call_until, keep_at;
} party;

/* A generation and the calls that are counted in it, each as 100 * call + party. */
typedef struct generation {
    uint64_t gen, calls[PARTIES + 1], ids[PARTIES + 1];
    uint32_t count;
    char fate; /* o, b; 0: it gathers */
} generation;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now;
    event events[EVENTS];
    size_t count;
    party parties[PARTIES];
    dibs__roster ro;
    seat_row seats[64];
    generation gens[GENS];
    size_t gen_count;
    char over[PARTIES][20000]; /* calls that ended in time-out or loss */
    uint64_t opened;
    const char *wrong;
} world;

#include "events.h"

static bool chance(world *w, unsigned of_1000)
{
    return dibsx_prng_below(&w->prng, 1000) < of_1000;
}

static dibsx_nsec span(world *w, int64_t low_ms, int64_t high_ms)
{
    return (low_ms +
            (int64_t)dibsx_prng_below(&w->prng,
                                      (uint64_t)(high_ms - low_ms) + 1)) *
           DIBSX_MS;
}

static generation *find_gen(world *w, uint64_t gen)
{
    for (size_t i = w->gen_count; i > 0; i--)
        if (w->gens[i - 1].gen == gen)
            return &w->gens[i - 1];
    if (w->gen_count == GENS) {
        w->wrong = "the simulation has no room for a generation";
        return &w->gens[0];
    }
    w->gens[w->gen_count] = (generation){.gen = gen};
    return &w->gens[w->gen_count++];
}

static bool is_in(const generation *g, uint64_t call)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->calls[i] == call)
            return true;
    return false;
}

static void count_call(world *w, uint64_t gen, uint64_t call, uint64_t id)
{
    generation *g = find_gen(w, gen);

    for (size_t i = 0; i < w->gen_count; i++)
        if (is_in(&w->gens[i], call))
            w->wrong = "B1: a call is counted twice";
    if (g->count > PARTIES) {
        w->wrong = "B2: more calls than parties";
        return;
    }
    g->ids[g->count] = id;
    g->calls[g->count++] = call;
}

static void uncount_call(world *w, uint64_t gen, uint64_t call)
{
    generation *g = find_gen(w, gen);

    for (uint32_t i = 0; i < g->count; i++)
        if (g->calls[i] == call) {
            g->calls[i] = g->calls[--g->count];
            g->ids[i] = g->ids[g->count];
            return;
        }
}

static bool is_seated(const world *w, uint64_t id)
{
    for (size_t i = 0; i < 64; i++)
        if (w->seats[i].id == id)
            return true;
    return false;
}

static void check_opening(world *w, const generation *g)
{
    if (g->count != PARTIES)
        w->wrong = "B2: a generation opened without all its calls";
    for (uint32_t i = 0; i < g->count; i++) {
        if (w->over[g->calls[i] % 100][g->calls[i] / 100])
            w->wrong = "B4: a call that was over is in one that opened";
        if (!is_seated(w, g->ids[i]))
            w->wrong = "B2: a generation opened with a seat that had ended";
    }
}

static void note_news(world *w, const dibs__meet_news *news)
{
    generation *g = find_gen(w, news->gen);

    g->fate = news->opened ? 'o' : 'b';
    w->opened += news->opened;
    if (news->opened)
        check_opening(w, g);
    for (int who = 0; who < PARTIES; who++)
        if (chance(w, 800))
            add(w, (event){.kind = RING,
                           .at = w->now + span(w, 0, 60),
                           .who = who,
                           .news = *news});
}

static seat_row *find_seat(world *w, uint64_t id)
{
    seat_row *unused = NULL;

    for (size_t i = 0; i < 64; i++) {
        if (w->seats[i].id == id)
            return &w->seats[i];
        if (w->seats[i].id == 0)
            unused = &w->seats[i];
    }
    if (unused)
        unused->seat.mark = DIBS__SEAT_NONE;
    return unused;
}

static void end_seats(world *w)
{
    uint32_t ended = 0, used = 0;

    for (size_t i = 0; i < 64; i++)
        if (w->seats[i].id && w->seats[i].seat.until_us <= w->ro.now_us) {
            ended++;
            used += w->seats[i].seat.kind != DIBS__SEAT_NEW;
            w->seats[i].id = 0;
        }
    dibs__meet_ended(&w->ro, ended, w->mutant == NO_BREAK ? 0 : used);
}

/* The step at the store. */
static void do_item(world *w, event *ev)
{
    uint64_t call = 100 * ev->call + (uint64_t)ev->who;
    seat_row *row;
    dibs__seat before;

    w->ro.now_us = w->ro.now_wall_us = w->now / 1000;
    (void)dibs__meet_begin(&w->ro, &ev->item, "");
    end_seats(w);
    row = find_seat(w, ev->id);
    before = row->seat;
    if (w->mutant == NO_AFTER && ev->item.verb == DIBS__ARRIVE &&
        before.mark != DIBS__SEAT_NONE && before.rec != w->ro.head.gen)
        ev->item.after = before.rec;
    dibs__meet_apply(&w->ro, &row->seat, &ev->item);
    if (w->mutant == OLD_RECORD && ev->item.verb == DIBS__WITHDRAW &&
        ev->item.rc == DIBS_TIMEOUT && row->seat.mark == DIBS__SEAT_PUT)
        row->seat.rec = ev->item.number = ev->item.after;
    if (row->seat.mark == DIBS__SEAT_PUT) {
        row->id = ev->id;
        if (ev->item.verb == DIBS__ARRIVE && row->seat.rec != before.rec)
            count_call(w, row->seat.rec, call, ev->id);
        if (ev->item.verb == DIBS__WITHDRAW &&
            before.kind == DIBS__SEAT_ARRIVED &&
            row->seat.kind == DIBS__SEAT_IDLE)
            uncount_call(w, before.rec, call);
        row->seat.mark = DIBS__SEAT_KEPT;
    } else if (row->seat.mark == DIBS__SEAT_GONE)
        row->id = 0;
    for (uint32_t i = 0; i < w->ro.news_count; i++)
        note_news(w, &w->ro.news[i]);
}

/* How the call of a party ended. */
static void end_call(world *w, int who)
{
    party *p = &w->parties[who];
    uint64_t call = 100 * p->call + (uint64_t)who;
    dibs_status rc = p->machine.rc;

    p->in_call = false;
    if (rc == DIBS_OK || rc == DIBS_STALE) {
        generation *g = find_gen(w, p->machine.after);

        if (g->fate != (rc == DIBS_OK ? 'o' : 'b') || !is_in(g, call))
            w->wrong = "B3: a call was told what its generation did not do";
    } else if (rc != DIBS_UNKNOWN)
        w->over[who][p->call] = 1;
    if (w->now > p->call_until + (dibsx_nsec)LATE_MS * DIBSX_MS)
        w->wrong = "B6: a call did not end";
}

static void send_request(world *w, int who, const dibs__meet *item)
{
    party *p = &w->parties[who];
    event ev = {.kind = SERVE, .who = who, .item = *item};

    ev.request = ++p->request;
    ev.life = p->life;
    ev.call = p->call;
    ev.id =
        (uint64_t)(who + 1) * 1000000 + p->life * 1000 + p->machine.id_number;
    ev.at = w->now + span(w, 0, chance(w, 50) ? 4000 : 40);
    if (!chance(w, 40))
        add(w, ev);
    ev.kind = GIVE_UP;
    ev.at = w->now + (dibsx_nsec)LIMIT_MS * DIBSX_MS;
    add(w, ev);
}

/* The session keeps the seat of a party, whatever that does meanwhile. */
static void keep_seat(world *w, int who)
{
    party *p = &w->parties[who];
    event ev = {.kind = SERVE,
                .who = who,
                .life = p->life,
                .at = w->now + span(w, 0, chance(w, 50) ? 4000 : 40),
                .item = {.who = "",
                         .verb = DIBS__KEEP,
                         .fence = p->machine.fence,
                         .need = PARTIES,
                         .ttl_ms = TTL_MS}};

    if (p->machine.fence == 0 || w->now < p->keep_at)
        return;
    p->keep_at = w->now + (dibsx_nsec)TTL_MS / 3 * DIBSX_MS;
    ev.id =
        (uint64_t)(who + 1) * 1000000 + p->life * 1000 + p->machine.id_number;
    if (!chance(w, 40))
        add(w, ev);
}

static void proceed(world *w, int who)
{
    party *p = &w->parties[who];
    dibs__meet item = {.who = ""};
    dibs__party_todo todo;
    dibsx_nsec until;

    if (!p->in_call && !p->machine.calling && chance(w, 300)) {
        p->call++;
        p->in_call = true;
        p->call_until = w->now + span(w, 200, 6000);
        dibs__party_call(&p->machine, p->call_until, w->now);
        if (p->lost && (p->machine.calling || p->machine.rc != DIBS_LOST))
            w->wrong = "B9: a party was not told that its seat had ended";
        p->lost = false;
    }
    todo = dibs__party_next(&p->machine, w->now, &item, &until);
    if (p->in_call && !p->machine.calling)
        end_call(w, who);
    if (todo == DIBS__PARTY_SEND)
        send_request(w, who, &item);
    keep_seat(w, who);
}

static void handle(world *w, event *ev)
{
    party *p = &w->parties[ev->who];
    bool current =
        ev->life == p->life && ev->request == p->request && p->machine.flying;

    switch (ev->kind) {
    case WAKE:
        add(w, (event){.kind = WAKE,
                       .at = w->now + span(w, 10, 100),
                       .who = ev->who});
        break;
    case SERVE:
        do_item(w, ev);
        ev->kind = ev->item.verb == DIBS__KEEP ? KEPT : ANSWER;
        ev->at = w->now + span(w, 0, 40);
        if (!chance(w, 40))
            add(w, *ev);
        break;
    case ANSWER:
        if (current)
            dibs__party_answered(&p->machine, &ev->item, w->now);
        break;
    case KEPT:
        if (ev->life == p->life && ev->item.rc == DIBS_LOST) {
            if (!p->machine.calling && ev->item.fence == p->machine.fence)
                p->lost = true;
            dibs__party_unseated(&p->machine, ev->item.fence, w->now);
        } else if (w->mutant == ANY_ANSWER && ev->life == p->life &&
                   p->machine.flying && p->machine.sent == DIBS__ARRIVE)
            dibs__party_answered(&p->machine, &ev->item, w->now);
        break;
    case GIVE_UP:
        if (current)
            dibs__party_answered(&p->machine, NULL, w->now);
        break;
    case RING:
        if (w->mutant == ANY_RING)
            ev->news.gen = p->machine.gen ? p->machine.gen : ev->news.gen;
        dibs__party_rung(&p->machine, ev->news.gen, ev->news.opened);
        break;
    case DEATH:
        if (p->in_call)
            w->over[ev->who][p->call] =
                0; /* It may count until its seat ends. */
        p->in_call = p->lost = false;
        p->life++;
        dibs__party_init(&p->machine, PARTIES, TTL_MS, POLL_MS, 20,
                         chance(w, 500));
        add(w, (event){.kind = DEATH,
                       .at = w->now + span(w, 5000, 40000),
                       .who = ev->who});
        break;
    }
    proceed(w, ev->who);
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    for (int i = 0; i < PARTIES; i++) {
        dibs__party_init(&w->parties[i].machine, PARTIES, TTL_MS, POLL_MS, 20,
                         chance(w, 500));
        add(w, (event){.kind = WAKE, .at = w->now + span(w, 0, 100), .who = i});
        add(w, (event){.kind = DEATH,
                       .at = w->now + span(w, 5000, 40000),
                       .who = i});
    }
    while (!w->wrong && w->now < (dibsx_nsec)SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        handle(w, &ev);
    }
    if (!w->wrong && w->opened == 0)
        w->wrong = "no generation opened";
    return w->wrong;
}

static world the_world;
static uint64_t opened; /* generations of all seeds */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    opened += the_world.opened;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s, %llu generations opened\n",
           (unsigned long long)seeds, SPAN_S, (unsigned long long)opened);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
