/* election_split_main.c - an election with minimum_nodes on two servers that answer for
 * the same name: failovers that lose writes, members that come over one by one, go back,
 * stand still, die and start anew, requests that are carried out late.
 *
 *     sim_election_split [SEEDS [FIRST]]   so many seeds from FIRST on
 *     sim_election_split --mutant N SEEDS  without rule N, which must be noticed
 *
 * The seats follow the roster rule (store/meet.c), candidates the machine of an election.
 * More than half of all members are needed. What must hold:
 *   E1  no two candidates lead, at whatever servers;
 *   E4  while a candidate leads, enough seats have not ended at its server, or that
 *       server has been replaced;
 *   E5  when trouble is over, one leads.
 *
 * The rules, each of which is left out by the mutant of its number:
 *   N1  an answer is the time left of the need-th longest seat, not a count;
 *   N2  belief counts from the send of the heartbeat;
 *   N3  a seat counts when seats of its member elsewhere have ended for certain;
 *   N4  a server counts only seats that were taken in its own run;
 *   N5  a heartbeat that is carried out late is refused;
 *   N6  a term counts seats by heartbeats that were sent after its grant, and ends
 *       with the candidate's own seat: else the server that counts may be another one
 *       than the server that has the lease.
 *
 * Left out: a candidate that goes back to a server which was replaced, has the lease of
 * that one, and returns; and a server that takes over twice within a seat ttl. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/election_machine.h"
#include "seeds.h"
#include "store/meet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEMBERS = 3,
    NEED = 2,
    SEATS = 64,
    EVENTS = 1024,
    SPAN_S = 90,
    CALM_S = 75
};
enum { TTL_MS = 1800, STOP_MS = 20, BEAT_MS = 100, SEAT_MS = 900 };
enum { LATE_MS = 100, SETTLE_MS = SEAT_MS + LATE_MS, DELAY_MS = 20 };

typedef enum kind {
    WAKE,
    BEAT,
    HURRY,
    SERVE,
    ANSWER,
    GIVE_UP,
    ASK,
    RENEW,
    FAILOVER,
    DOWN,
    MOVE,
    TROUBLE
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int who, server;
    uint64_t number; /* of the sleep, of the request, of the life */
    dibsx_nsec sent_at;
    uint64_t id;
    dibs__meet item;
} event;

typedef struct row {
    uint64_t id; /* 0: none */
    dibs__seat seat;
} row;

/* All that a server has, and what it hands down. */
typedef struct data {
    dibs__roster roster;
    row rows[SEATS];
    int holder; /* of the lease; -1: none */
    uint64_t owner;
    dibsx_nsec until;
} data;

typedef struct server {
    bool up;
    int64_t ahead_us; /* of its clock */
    char run[DIBS__RUN_MAX];
    data data;
    data
        handed; /* as the other one will get it: the latest writes are missing */
} server;

typedef struct member {
    dibs__election machine;
    int server;
    uint64_t life;  /* of its process */
    uint64_t sleep; /* its number; others are over */
    uint64_t request;
    bool asks;  /* a request is under way */
    bool hurry; /* another one is wanted at once */
    uint64_t id, fence;
    int64_t clock_us;
    dibsx_nsec clock_at;
    bool stray; /* has gone back to the old server, for its seat alone */
    dibsx_nsec paused_til;
    uint64_t owner; /* a new one for each acquire */
    dibsx_nsec lock_til;
} member;

typedef struct world {
    uint64_t seed;
    int mutant;
    dibsx_prng prng;
    dibsx_nsec now;
    event events[EVENTS];
    size_t count;
    int primary;
    uint64_t last_id, terms;
    server servers[2];
    member all[MEMBERS];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

static bool is_calm(const world *w)
{
    return w->now > CALM_S * DIBSX_SEC;
}

static bool bad_luck(world *w, unsigned of_1000)
{
    return chance(w, of_1000) && !is_calm(w);
}

/* An event of the member's process, which is void after its death. */
static void later(world *w, kind what, int who, int64_t low_ms, int64_t high_ms)
{
    add(w, (event){.kind = what,
                   .at = w->now + span(w, low_ms, high_ms),
                   .who = who,
                   .number = w->all[who].life,
                   .sent_at = w->now});
}

/* Mostly short, and sometimes so long that all may have changed meanwhile. */
static dibsx_nsec delay(world *w)
{
    return bad_luck(w, 150) ? span(w, 0, 2 * SEAT_MS) : span(w, 0, DELAY_MS);
}

static int64_t clock_of(const world *w, const server *sv)
{
    return w->now / 1000 + sv->ahead_us;
}

static row *find_row(server *sv, uint64_t id)
{
    for (int i = 0; i < SEATS; i++)
        if (sv->data.rows[i].id == id)
            return &sv->data.rows[i];
    return NULL;
}

/* Ends the seats whose time has passed by then. */
static void end_seats(server *sv, int64_t by_us)
{
    uint32_t ended = 0, used = 0;

    for (int i = 0; i < SEATS; i++) {
        row *r = &sv->data.rows[i];

        if (r->id == 0 || r->seat.until_us > by_us)
            continue;
        ended++;
        used += r->seat.kind != DIBS__SEAT_NEW;
        r->id = 0;
    }
    dibs__meet_ended(&sv->data.roster, ended, used);
}

/* N1. For how long so many seats that count live. */
static int64_t left_of_many(const world *w, const server *sv, int64_t now_us)
{
    int64_t best_us = 0;

    for (int i = 0; i < SEATS; i++) {
        const row *one = &sv->data.rows[i];
        int as_long = 0;

        if (one->id == 0 || one->seat.kind == DIBS__SEAT_NEW ||
            one->seat.counts_us > now_us)
            continue;
        for (int j = 0; j < SEATS; j++) {
            const row *r = &sv->data.rows[j];

            as_long += r->id != 0 && r->seat.kind != DIBS__SEAT_NEW &&
                       r->seat.counts_us <= now_us &&
                       r->seat.until_us >= one->seat.until_us;
        }
        if (as_long >= NEED && one->seat.until_us > best_us)
            best_us = one->seat.until_us;
    }
    if (best_us <= now_us)
        return 0;
    return w->mutant == 1 ? SEAT_MS : (best_us - now_us) / 1000;
}

static void do_item(world *w, server *sv, uint64_t id, dibs__meet *item)
{
    dibs__roster *ro = &sv->data.roster;
    row *r;
    dibs__seat none = {.mark = DIBS__SEAT_NONE}, *seat = &none;

    ro->now_us = ro->now_wall_us = clock_of(w, sv);
    if (dibs__meet_begin(ro, item, sv->run))
        end_seats(sv, INT64_MAX);
    end_seats(sv, ro->now_us);
    r = find_row(sv, id);
    if (r) {
        seat = &r->seat;
        seat->mark = DIBS__SEAT_KEPT;
    }
    dibs__meet_apply(ro, seat, item);
    if (!r && seat->mark == DIBS__SEAT_PUT) {
        r = find_row(sv, 0);
        r->id = id;
        r->seat = *seat;
    }
    if (item->verb == DIBS__KEEP && item->rc == DIBS_OK)
        item->left_ms = left_of_many(w, sv, ro->now_us);
}

static void send_beat(world *w, int who)
{
    member *m = &w->all[who];
    event ev = {.kind = SERVE, .who = who, .server = m->server};

    m->hurry = m->asks;
    if (m->asks)
        return;
    if (m->id == 0)
        m->id = ++w->last_id;
    m->asks = true;
    m->request++;
    ev.sent_at = w->now;
    ev.at = w->now + delay(w);
    ev.number = m->request;
    ev.id = m->id;
    ev.item = (dibs__meet){.name = "e",
                           .id = "",
                           .who = "",
                           .verb = m->fence ? DIBS__KEEP : DIBS__SIT,
                           .flags = w->mutant == 4 ? 0 : DIBS__MEET_STRICT,
                           .fence = m->fence,
                           .need = NEED,
                           .ttl_ms = SEAT_MS,
                           .settle_ms = w->mutant == 3 ? 0 : SETTLE_MS,
                           .by_us = m->clock_us == 0 || w->mutant == 5
                                        ? 0
                                        : m->clock_us +
                                              (w->now - m->clock_at) / 1000 +
                                              (int64_t)LATE_MS * 1000};
    add(w, ev);
    add(w, (event){.kind = GIVE_UP,
                   .at = dibsx_after_ms(w->now, LATE_MS),
                   .who = who,
                   .number = m->request});
}

static void on_serve(world *w, const event *ev)
{
    server *sv = &w->servers[ev->server];
    event answer = *ev;

    if (!sv->up || bad_luck(w, 30))
        return;
    do_item(w, sv, ev->id, &answer.item);
    answer.kind = ANSWER;
    answer.at = w->now + delay(w);
    add(w, answer);
}

/* As the session does it. */
static void on_answer(world *w, const event *ev)
{
    member *m = &w->all[ev->who];
    const dibs__meet *item = &ev->item;

    if (!m->asks || m->request != ev->number)
        return;
    m->asks = false;
    m->clock_us = item->clock_us;
    m->clock_at = w->now;
    if (item->rc == DIBS_LOST ||
        (item->rc == DIBS_TIMEOUT && item->verb == DIBS__KEEP)) {
        m->id = m->fence = 0;
        dibs__election_unseated(&m->machine);
        send_beat(w, ev->who);
    } else if (item->rc == DIBS_OK && item->verb == DIBS__SIT) {
        m->fence = item->number;
        send_beat(w, ev->who);
    } else if (item->rc == DIBS_OK) {
        dibs__election_counted(&m->machine,
                               w->mutant == 2 ? w->now : ev->sent_at,
                               item->left_ms);
        if (m->hurry)
            send_beat(w, ev->who);
    }
}

static void proceed(world *w, int i)
{
    member *m = &w->all[i];
    dibs__election_todo todo;
    dibsx_nsec wake_at;

    do {
        todo = dibs__election_next(&m->machine, w->now, &wake_at);
        if (todo == DIBS__ELECTION_ASK) {
            m->owner++;
            later(w, ASK, i, 0, DELAY_MS);
        } else if (todo == DIBS__ELECTION_RELEASE) {
            data *d = &w->servers[m->server].data;

            if (d->holder == i && d->owner == m->owner)
                d->holder = -1;
            m->lock_til = 0;
            dibs__election_released(&m->machine, w->now);
        } else if (todo == DIBS__ELECTION_TELL_GAINED) {
            w->terms++;
        }
    } while (todo != DIBS__ELECTION_SLEEP);
    m->sleep++;
    if (wake_at != DIBSX_NEVER)
        add(w, (event){.kind = WAKE,
                       .at = wake_at > w->now ? wake_at : w->now + 1,
                       .who = i,
                       .number = m->sleep});
}

/* The lease: its queue and its delays are those of election_main.c. */
static void on_ask(world *w, int i)
{
    member *m = &w->all[i];
    server *sv = &w->servers[m->server];
    data *d = &sv->data;
    dibsx_nsec enough = m->machine.enough_until;

    if (d->holder >= 0 && w->now >= d->until)
        d->holder = -1;
    if (!sv->up || m->stray || (d->holder >= 0 && d->holder != i)) {
        later(w, ASK, i, 50, 100);
        return;
    }
    d->holder = i;
    d->owner = m->owner;
    d->until = m->lock_til = dibsx_after_ms(w->now, TTL_MS);
    dibs__election_granted(&m->machine, (uint64_t)w->now, m->lock_til, w->now);
    if (w->mutant == 6)
        m->machine.enough_until = enough;
    add(w,
        (event){.kind = HURRY, .at = w->now + 1, .who = i, .number = m->life});
    later(w, RENEW, i, TTL_MS / 3, TTL_MS / 3);
}

static void on_renew(world *w, int i)
{
    member *m = &w->all[i];
    server *sv = &w->servers[m->server];
    data *d = &sv->data;

    if (!dibs__election_renews(&m->machine, w->now) || w->now >= m->lock_til)
        return;
    if (sv->up && d->holder == i && d->owner == m->owner && w->now < d->until) {
        d->until = m->lock_til = dibsx_after_ms(w->now, TTL_MS);
        dibs__election_renewed(&m->machine, m->lock_til, w->now);
    } else if (sv->up) {
        dibs__election_taken(&m->machine);
    }
    later(w, RENEW, i, TTL_MS / 6, TTL_MS / 3);
}

/* The other server takes over, with what was handed down to it. The old one serves on
 * for a while those who speak to it. */
static void on_failover(world *w)
{
    int old = w->primary, next = 1 - w->primary;
    server *sv = &w->servers[next];

    if (is_calm(w))
        return;
    sv->data = w->servers[old].handed;
    if (bad_luck(w, 700))
        sv->data.holder = -1;
    sv->up = true;
    w->primary = next;
    if (bad_luck(w, 300)) /* it was restarted before */
        snprintf(sv->run, sizeof(sv->run), "%llu",
                 (unsigned long long)dibsx_prng_below(&w->prng, 1u << 30));
    add(w, (event){.kind = DOWN,
                   .at = w->now + span(w, 0, 2 * SEAT_MS),
                   .server = old});
    for (int i = 0; i < MEMBERS; i++)
        add(w, (event){.kind = MOVE,
                       .at = w->now + span(w, 0, 3 * SEAT_MS),
                       .who = i,
                       .server = next});
    add(w,
        (event){.kind = FAILOVER, .at = w->now + span(w, 4 * SEAT_MS, 15000)});
}

static void move_member(member *m, int to)
{
    m->server = to;
    m->stray = false;
}

static void on_down(world *w, const event *ev)
{
    if (ev->server == w->primary)
        return;
    w->servers[ev->server].up = false;
    for (int i = 0; i < MEMBERS; i++)
        move_member(&w->all[i], w->primary);
}

/* The process starts anew, under another id; its requests may still be on their way. */
static void restart_member(world *w, int i)
{
    member *m = &w->all[i];
    dibs__election_terms terms = {.stop_ms = STOP_MS, .needs_seats = true};

    m->life++;
    m->sleep++;
    m->request++;
    m->asks = false;
    m->id = m->fence = 0;
    m->clock_us = 0;
    m->owner++;
    dibs__election_init(&m->machine, &terms);
    dibs__election_start(&m->machine);
    later(w, BEAT, i, 0, BEAT_MS);
}

static void stray(const world *w, member *m)
{
    if (!w->servers[1 - w->primary].up || m->server != w->primary)
        return;
    m->server = 1 - w->primary;
    m->stray = true;
}

/* What a server hands down is always a little old. Members stand still, die, and speak
 * to the wrong server. */
static void make_trouble(world *w)
{
    int i = (int)dibsx_prng_below(&w->prng, MEMBERS);

    w->servers[w->primary].handed = w->servers[w->primary].data;
    if (bad_luck(w, 100))
        w->all[i].paused_til = w->now + span(w, 0, 2 * TTL_MS);
    else if (bad_luck(w, 80))
        restart_member(w, i);
    else if (bad_luck(w, 150) && w->now >= w->all[i].lock_til)
        stray(w, &w->all[i]);
    add(w, (event){.kind = TROUBLE, .at = w->now + span(w, 50, 500)});
}

static void check(world *w)
{
    int leaders = 0;

    for (int i = 0; i < MEMBERS; i++)
        leaders += dibs__election_leads(&w->all[i].machine, w->now);
    if (leaders > 1)
        w->wrong = "two candidates lead";
    if (w->now > (CALM_S + 12) * DIBSX_SEC && leaders == 0)
        w->wrong = "nobody leads";
}

static void handle_own(world *w, const event *ev)
{
    member *m = &w->all[ev->who];

    switch (ev->kind) {
    case WAKE:
        if (ev->number != m->sleep)
            return;
        break;
    case ANSWER:
        on_answer(w, ev);
        break;
    case GIVE_UP:
        if (m->asks && m->request == ev->number) {
            m->asks = false;
            send_beat(w, ev->who);
        }
        return;
    case MOVE:
        move_member(m, ev->server);
        return;
    default: /* of one life */
        if (ev->number != m->life)
            return;
        if (ev->kind == BEAT) {
            send_beat(w, ev->who);
            later(w, BEAT, ev->who, BEAT_MS, BEAT_MS);
        } else if (ev->kind == HURRY) {
            send_beat(w, ev->who);
        } else if (ev->kind == ASK) {
            on_ask(w, ev->who);
        } else {
            on_renew(w, ev->who);
        }
        break;
    }
    proceed(w, ev->who);
}

static void handle(world *w, const event *ev)
{
    event put_off = *ev;

    switch (ev->kind) {
    case SERVE:
        on_serve(w, ev);
        return;
    case FAILOVER:
        on_failover(w);
        return;
    case DOWN:
        on_down(w, ev);
        return;
    case TROUBLE:
        make_trouble(w);
        return;
    default:
        break;
    }
    if (w->now < w->all[ev->who].paused_til) {
        put_off.at = w->all[ev->who].paused_til;
        add(w, put_off);
        return;
    }
    handle_own(w, ev);
}

static void init_world(world *w, uint64_t seed, int planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    for (int i = 0; i < 2; i++) {
        server *sv = &w->servers[i];

        sv->ahead_us = span(w, 0, 5000) / 1000;
        sv->data.holder = sv->handed.holder = -1;
        snprintf(sv->run, sizeof(sv->run), "run %d", i);
    }
    w->servers[0].up = true;
    for (int i = 0; i < MEMBERS; i++)
        restart_member(w, i);
    add(w, (event){.kind = TROUBLE, .at = w->now});
    add(w,
        (event){.kind = FAILOVER, .at = w->now + span(w, 2 * SEAT_MS, 10000)});
}

static const char *run_seed(world *w, uint64_t seed, int planted)
{
    init_world(w, seed, planted);
    while (!w->wrong && w->now < SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        /* What looks say just before the event counts too. */
        w->now = ev.at - 1;
        check(w);
        w->now = ev.at;
        handle(w, &ev);
        check(w);
    }
    return w->wrong;
}

static world the_world;

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, planted);

    *at = the_world.now;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s, %llu terms in the last\n",
           (unsigned long long)seeds, SPAN_S,
           (unsigned long long)the_world.terms);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
