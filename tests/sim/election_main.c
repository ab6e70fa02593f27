/* election_main.c - candidates of an election in simulated time: a store that is slow,
 * loses messages and revokes leases, processes that are not run, and programs that
 * stop late or never.
 *
 *     sim_election [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_election --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * The invariants of an election, checked after every event:
 *   E1 no two candidates lead, but for a lease that was revoked;
 *   E2 terms rise;
 *   E3 gained and lost are announced in turn; lost comes stop_ms before the store could
 *      grant the lease to another, if the process was run;
 *   E4 a leader has enough seats, where the election asks for them;
 *   E5 when trouble is over, one leads within a ttl, whatever a program does;
 *   E6 no lease is given back while its work goes on;
 *   E7 no candidate asks while work of its last term goes on;
 *   E8 none rests because of work that has stopped.
 *
 * Each seed has a quiet world as well, in which nothing fails for ten minutes: messages
 * take their time, and no more. There the first term is the only one. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/election_machine.h"
#include "seeds.h"

#include <stdio.h>
#include <string.h>

#define MSEC ((dibsx_nsec)1000000)

enum { CANDIDATES = 3, EVENTS = 512, SPAN_S = 120, CALM_S = 90, QUIET_S = 600 };
enum {
    TTL_MS = 3000,
    STOP_MS = 300,
    DELAY_MS = 60,
    RETRY_MS = 200,
    LOOK_MS = 100
};

typedef enum mutant {
    NO_MUTANT,
    NO_CLOCK,      /* a look does not compare clocks */
    FROM_ANSWER,   /* validity counts from the answer */
    SEATS_LATE,    /* seats count from the answer */
    RENEWS_ENDING, /* the lease of a term that ends is renewed */
    RELEASE_FIRST, /* the lease goes back before the work has stopped */
    REVIVES,       /* a renewal leads back to LEADING */
    LOST_UNTOLD,   /* a loss by resignation is not announced */
    ASKS_EARLY,    /* a candidate asks while its work goes on */
    RENEWS_LATE,   /* a renewal comes when the leader has to stop already */
    MUTANTS
} mutant;

typedef enum kind {
    WAKE,    /* the end of a sleep */
    ASK,     /* an ask arrives */
    RENEW,   /* time to renew */
    RENEWAL, /* a renewal arrives */
    RELEASE, /* a release arrives */
    HEART,   /* time for a heartbeat */
    BEAT,    /* it arrives */
    GRANTED, /* answers */
    RENEWED,
    RELEASED,
    COUNTED,
    STOP, /* the work stops */
    LOOK, /* a program looks whether it leads */
    TROUBLE,
    WISH
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int who;
    uint64_t number; /* of the sleep; the term of a renewal */
    dibsx_nsec sent_at;
    int64_t left_ms; /* by the answer; -1: refused */
} event;

typedef struct candidate {
    dibs__election machine;
    uint64_t sleep;        /* its number; others are over */
    dibsx_nsec paused_til; /* not run until then */
    dibsx_nsec seats_til;  /* enough seats live so long, in truth */
    dibsx_nsec lock_til;   /* as the lock has it */
    bool at_work, stubborn;
    bool looks;     /* stops by its own look, perhaps before it is told */
    uint64_t owner; /* a new one for each acquire */
    uint64_t gained, revoked; /* terms */
    bool announced;           /* gained, and not lost yet */
} candidate;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    bool quiet; /* nothing fails */
    dibsx_prng prng;
    dibsx_nsec now, away_until;
    event events[EVENTS];
    size_t count;
    int holder; /* -1: none */
    uint64_t owner;
    uint64_t fence, last_term;
    dibsx_nsec until; /* of the lease at the store */
    candidate all[CANDIDATES];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

static bool is_calm(const world *w)
{
    return w->quiet || w->now > CALM_S * DIBSX_SEC;
}

static bool bad_luck(world *w, unsigned of_1000)
{
    return chance(w, of_1000) && !is_calm(w);
}

static void later(world *w, kind what, int who, int64_t low_ms, int64_t high_ms)
{
    add(w, (event){.kind = what,
                   .at = w->now + span(w, low_ms, high_ms),
                   .who = who,
                   .sent_at = w->now});
}

/* Something that a program does in its term. */
static void of_term(world *w, kind what, int who, int64_t high_ms)
{
    add(w, (event){.kind = what,
                   .at = w->now + span(w, 0, high_ms),
                   .who = who,
                   .number = w->all[who].gained});
}

static bool looks_leading(const world *w, const candidate *c)
{
    if (w->mutant == NO_CLOCK)
        return c->machine.state == DIBS__ELECTION_LEADING;
    return dibs__election_leads(&c->machine, w->now);
}

static void tell_gained(world *w, int i)
{
    candidate *c = &w->all[i];

    if (c->announced)
        w->wrong = "gained is announced twice";
    if (c->machine.term <= w->last_term && c->machine.term != c->revoked)
        w->wrong = "a term is not higher than the last";
    if (c->at_work)
        w->wrong = "a term is gained while work of the last one goes on";
    if (c->machine.term > w->last_term)
        w->last_term = c->machine.term;
    c->gained = c->machine.term;
    c->announced = true;
    c->at_work = true;
    if (c->looks)
        of_term(w, LOOK, i, LOOK_MS);
}

/* With says_stopped the work stops soon, late or, of the stubborn one, never. */
static void tell_lost(world *w, int i)
{
    candidate *c = &w->all[i];
    bool was_run = w->now > c->paused_til + MSEC;
    bool ours = w->holder == i && w->fence == c->gained;

    if (w->mutant == LOST_UNTOLD && c->machine.why == DIBS__ELECTION_RESIGNED) {
        c->at_work = false;
        dibs__election_stopped(&c->machine, w->now);
        return;
    }
    if (!c->announced)
        w->wrong = "lost is announced without gained";
    if (w->quiet)
        w->wrong = "a leader has lost, and nothing failed";
    if (c->machine.why == DIBS__ELECTION_EXPIRED && ours && was_run &&
        w->until - w->now < STOP_MS * MSEC)
        w->wrong = "a loss is announced too late";
    c->announced = false;
    if (!c->machine.terms.says_stopped)
        c->at_work = false;
    else if (!c->looks && (!c->stubborn || chance(w, 700)))
        of_term(w, STOP, i, bad_luck(w, 200) ? 9000 : STOP_MS);
    if (w->mutant == RELEASE_FIRST)
        dibs__election_stopped(&c->machine, w->now);
}

/* A lock whose lease has ended sends nothing. */
static void send_release(world *w, int i)
{
    candidate *c = &w->all[i];
    bool sends = w->now < c->lock_til && !bad_luck(w, 100);

    if (w->now < c->lock_til && c->at_work)
        w->wrong = "a lease is given back while its work goes on";
    c->lock_til = 0;
    later(w, sends ? RELEASE : RELEASED, i, 0, DELAY_MS);
}

static void proceed(world *w, int i)
{
    candidate *c = &w->all[i];
    dibs__election_todo todo;
    dibsx_nsec wake_at;

    do {
        if (w->mutant == ASKS_EARLY &&
            c->machine.state == DIBS__ELECTION_RESTING)
            c->machine.working = false;
        todo = dibs__election_next(&c->machine, w->now, &wake_at);
        if (todo == DIBS__ELECTION_ASK) {
            c->owner++;
            later(w, ASK, i, 0, DELAY_MS);
        } else if (todo == DIBS__ELECTION_RELEASE)
            send_release(w, i);
        else if (todo == DIBS__ELECTION_TELL_GAINED)
            tell_gained(w, i);
        else if (todo == DIBS__ELECTION_TELL_LOST)
            tell_lost(w, i);
    } while (todo != DIBS__ELECTION_SLEEP);
    c->sleep++;
    if (wake_at != DIBSX_NEVER)
        add(w, (event){.kind = WAKE,
                       .at = wake_at > w->now ? wake_at : w->now + 1,
                       .who = i,
                       .number = c->sleep});
}

static void expire(world *w)
{
    if (w->holder >= 0 && w->now >= w->until)
        w->holder = -1;
}

static bool is_away(const world *w)
{
    return w->now < w->away_until;
}

static bool has_lease(const world *w, int i)
{
    return w->holder == i && w->owner == w->all[i].owner;
}

/* Asks are idempotent: one that finds its lease is answered with the time left. A busy
 * store is asked again; a candidate that gave up leaves nothing. */
static void serve_ask(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];
    bool lost = bad_luck(w, 50);

    expire(w);
    if (!c->machine.wanted) {
        if (has_lease(w, ev->who))
            w->holder = -1;
        dibs__election_refused(&c->machine, DIBS__ELECTION_REST_MS, w->now);
        proceed(w, ev->who);
        return;
    }
    if (!is_away(w) && w->holder < 0) {
        w->holder = ev->who;
        w->owner = c->owner;
        w->fence++;
        w->until = dibsx_after_ms(w->now, TTL_MS);
    }
    if (is_away(w) || !has_lease(w, ev->who) || lost) {
        later(w, ASK, ev->who, RETRY_MS, 2 * RETRY_MS);
        return;
    }
    add(w, (event){.kind = GRANTED,
                   .at = w->now + span(w, 0, DELAY_MS),
                   .who = ev->who,
                   .number = w->fence,
                   .sent_at = ev->sent_at,
                   .left_ms = (w->until - w->now) / MSEC});
}

static dibsx_nsec valid_until(const world *w, const event *ev)
{
    return dibsx_after_ms(w->mutant == FROM_ANSWER ? w->now : ev->sent_at,
                          ev->left_ms);
}

static int64_t renew_every_ms(const world *w)
{
    return w->mutant == RENEWS_LATE ? TTL_MS - STOP_MS : TTL_MS / 3;
}

static void on_granted(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];

    c->lock_til = valid_until(w, ev);
    dibs__election_granted(&c->machine, ev->number, c->lock_til, w->now);
    later(w, RENEW, ev->who, renew_every_ms(w), renew_every_ms(w));
}

/* The lock sends a renewal; without an answer it repeats it. */
static void on_renew(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];
    bool renews = dibs__election_renews(&c->machine, w->now);

    if (w->mutant == RENEWS_ENDING && w->now < c->machine.valid_until)
        renews = renews || c->machine.state == DIBS__ELECTION_ENDING;
    if (!renews)
        return;
    if (!bad_luck(w, 100))
        add(w, (event){.kind = RENEWAL,
                       .at = w->now + span(w, 0, DELAY_MS),
                       .who = ev->who,
                       .number = c->machine.term,
                       .sent_at = w->now});
    later(w, RENEW, ev->who, bad_luck(w, 300) ? RETRY_MS : renew_every_ms(w),
          renew_every_ms(w));
}

static void serve_renewal(world *w, const event *ev)
{
    event answer = *ev;

    expire(w);
    if (is_away(w) || bad_luck(w, 100))
        return;
    answer.kind = RENEWED;
    answer.at = w->now + span(w, 0, DELAY_MS);
    answer.left_ms = -1;
    if (w->holder == ev->who && w->fence == ev->number) {
        w->until = dibsx_after_ms(w->now, TTL_MS);
        answer.left_ms = TTL_MS;
    }
    add(w, answer);
}

static void on_renewed(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];

    if (c->machine.term != ev->number)
        return;
    if (w->now >= c->lock_til)
        return; /* The lock has lost its lease for good. */
    if (ev->left_ms < 0) {
        c->lock_til = 0;
        dibs__election_taken(&c->machine);
        return;
    }
    if (valid_until(w, ev) > c->lock_til)
        c->lock_til = valid_until(w, ev);
    if (w->mutant == REVIVES && c->machine.state == DIBS__ELECTION_ENDING &&
        c->machine.why == DIBS__ELECTION_EXPIRED) {
        c->machine.state = DIBS__ELECTION_LEADING;
        c->machine.told_gained = false;
        c->machine.told_lost = false;
    }
    dibs__election_renewed(&c->machine, valid_until(w, ev), w->now);
}

static void serve_release(world *w, const event *ev)
{
    expire(w);
    if (w->holder == ev->who && !is_away(w))
        w->holder = -1;
    later(w, RELEASED, ev->who, 0, DELAY_MS);
}

/* Enough seats live for a while; too few only when that is over. */
static void serve_beat(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];
    event answer = *ev;

    if (is_away(w) || bad_luck(w, 50))
        return;
    answer.kind = COUNTED;
    answer.at = w->now + span(w, 0, DELAY_MS);
    answer.left_ms = bad_luck(w, 150) ? 0 : span(w, 1000, 1500) / MSEC;
    if (answer.left_ms == 0 && w->now < c->seats_til)
        answer.left_ms = (c->seats_til - w->now) / MSEC;
    if (dibsx_after_ms(w->now, answer.left_ms) > c->seats_til)
        c->seats_til = dibsx_after_ms(w->now, answer.left_ms);
    add(w, answer);
}

static void on_heart(world *w, const event *ev)
{
    later(w, BEAT, ev->who, 0, DELAY_MS);
    later(w, HEART, ev->who, 200, 300);
}

static void on_counted(world *w, const event *ev)
{
    dibs__election_counted(&w->all[ev->who].machine,
                           w->mutant == SEATS_LATE ? w->now : ev->sent_at,
                           ev->left_ms);
}

static void on_stop(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];

    if (!c->at_work || c->gained != ev->number)
        return;
    c->at_work = false;
    dibs__election_stopped(&c->machine, w->now);
}

static void on_look(world *w, const event *ev)
{
    candidate *c = &w->all[ev->who];

    if (looks_leading(w, c) && c->gained == ev->number)
        of_term(w, LOOK, ev->who, LOOK_MS);
    else
        on_stop(w, ev);
}

/* Processes pause, the store is away, leases are revoked. */
static void make_trouble(world *w)
{
    int i = (int)dibsx_prng_below(&w->prng, CANDIDATES);

    if (is_calm(w))
        return;
    if (chance(w, 300)) {
        w->away_until = w->now + span(w, 1, 2 * TTL_MS);
    } else if (chance(w, 300) && w->holder >= 0) {
        w->all[w->holder].revoked = w->fence;
        w->holder = -1;
    } else if (w->now >= w->all[i].paused_til) {
        w->all[i].paused_til = w->now + span(w, 1, 2 * TTL_MS);
    }
    later(w, TROUBLE, 0, 100, 8000);
}

static void make_wish(world *w)
{
    int i = (int)dibsx_prng_below(&w->prng, CANDIDATES);
    candidate *c = &w->all[i];

    if (!is_calm(w) && chance(w, 400))
        dibs__election_resign(&c->machine, chance(w, 300));
    else
        for (i = 0; i < CANDIDATES; i++)
            dibs__election_start(&w->all[i].machine);
    for (i = 0; i < CANDIDATES; i++)
        if (w->now >= w->all[i].paused_til)
            proceed(w, i);
    later(w, WISH, 0, 100, is_calm(w) ? 500 : 5000);
}

static void check(world *w)
{
    int leaders = 0;

    for (int i = 0; i < CANDIDATES; i++) {
        const candidate *c = &w->all[i];

        if (c->machine.state == DIBS__ELECTION_RESTING && c->machine.working &&
            !c->at_work)
            w->wrong = "a candidate rests, although its work has stopped";
        if (!looks_leading(w, c) || c->machine.term == c->revoked)
            continue;
        leaders++;
        if (c->machine.terms.needs_seats && w->now >= c->seats_til)
            w->wrong = "a leader has too few seats";
    }
    if (leaders > 1)
        w->wrong = "two candidates lead";
    if (w->now > (CALM_S + 20) * DIBSX_SEC && leaders == 0)
        w->wrong = "nobody leads";
    if (w->quiet && leaders == 0 && w->last_term > 0)
        w->wrong = "nobody leads, and nothing failed";
    if (w->quiet && w->fence > 1)
        w->wrong = "there is another term, and nothing failed";
}

/* At the store, not in the process: a pause does not delay it. */
static bool is_at_store(kind what)
{
    return what == RENEWAL || what == RELEASE || what == BEAT ||
           what == TROUBLE || what == WISH;
}

static void handle_own(world *w, const event *ev)
{
    switch (ev->kind) {
    case GRANTED:
        on_granted(w, ev);
        break;
    case RENEW:
        on_renew(w, ev);
        break;
    case RENEWED:
        on_renewed(w, ev);
        break;
    case RELEASED:
        dibs__election_released(&w->all[ev->who].machine, w->now);
        break;
    case HEART:
        on_heart(w, ev);
        break;
    case COUNTED:
        on_counted(w, ev);
        break;
    case STOP:
        on_stop(w, ev);
        break;
    case LOOK:
        on_look(w, ev);
        break;
    default:
        if (ev->number != w->all[ev->who].sleep)
            return;
        break;
    }
    proceed(w, ev->who);
}

static void handle(world *w, const event *ev)
{
    event put_off = *ev;

    if (!is_at_store(ev->kind) && w->now < w->all[ev->who].paused_til) {
        put_off.at = w->all[ev->who].paused_til;
        add(w, put_off);
        return;
    }
    switch (ev->kind) {
    case ASK:
        serve_ask(w, ev);
        break;
    case RENEWAL:
        serve_renewal(w, ev);
        break;
    case RELEASE:
        serve_release(w, ev);
        break;
    case BEAT:
        serve_beat(w, ev);
        break;
    case TROUBLE:
        make_trouble(w);
        break;
    case WISH:
        make_wish(w);
        break;
    default:
        handle_own(w, ev);
        break;
    }
}

static void init_world(world *w, uint64_t seed, mutant planted, bool quiet)
{
    dibs__election_terms terms = {.stop_ms = STOP_MS};

    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->quiet = quiet;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    w->holder = -1;
    terms.needs_seats = chance(w, 400);
    for (int i = 0; i < CANDIDATES; i++) {
        terms.says_stopped = chance(w, 700);
        w->all[i].stubborn = i == 0;
        w->all[i].looks = i > 0 && terms.says_stopped && chance(w, 500);
        dibs__election_init(&w->all[i].machine, &terms);
        if (terms.needs_seats)
            later(w, HEART, i, 0, 300);
    }
    later(w, WISH, 0, 0, 0);
    later(w, TROUBLE, 0, 0, 10000);
}

static const char *run_seed(world *w, uint64_t seed, mutant planted, bool quiet)
{
    init_world(w, seed, planted, quiet);
    while (!w->wrong && w->now < (quiet ? QUIET_S : SPAN_S) * DIBSX_SEC) {
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
    const char *wrong = run_seed(&the_world, seed, (mutant)planted, true);

    if (!wrong)
        wrong = run_seed(&the_world, seed, (mutant)planted, false);
    *at = the_world.now;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s and of %d quiet ones, %llu terms in the last\n",
           (unsigned long long)seeds, SPAN_S, QUIET_S,
           (unsigned long long)the_world.last_term);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
