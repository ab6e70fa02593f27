/* latch_main.c - waits for a latch in simulated time: the roster rule as their store,
 * counts that are repeated or late, resets, tells that come late or not at all, lost
 * connections, a store that is away and comes back, perhaps without its last data.
 *
 *     sim_latch [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_latch --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event:
 *   L1  the latch is open exactly when NEED ids have counted, and tells it then;
 *   L2  a look says so until the reset, also when the store was away;
 *   L3  an id counts once in a generation; a count for another one is refused;
 *   (1) a wait ends open only if the latch was open at a moment during the wait;
 *   (2) a wait for an open latch ends: PROMPT, if no tell was lost unnoticed; else with
 *       its next look, which it begins at first after a second, later every ten;
 *   (3) a wait sends no request without a reason, and none that the store forbids. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/latch_machine.h"
#include "seeds.h"
#include "store/meet.h"
#include "store/topic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAITS = 3, WORKERS = 3, IDS = 6, NEED = 4, EVENTS = 512 };
enum { SPAN_S = 300, DELAY_MS = 50, PROMPT_MS = 600 };
enum { LATE_MS = DIBS__LATCH_LAST_MS * 5 / 4 + PROMPT_MS };

typedef enum mutant {
    NO_MUTANT,
    ANY_TELL,    /* a tell of any generation ends a wait */
    DROP_BUSY,   /* tells that come while a request is under way are dropped */
    NO_MISSED,   /* a lost connection is not reported */
    LOST_EAR,    /* an ear counts though its connection was lost meanwhile */
    ANY_EAR,     /* an ear that failed counts */
    NO_SECOND,   /* no look follows an ear */
    NO_LOOK,     /* the wait sleeps until it is told */
    LATE_LOOK,   /* the first look by itself comes as late as the last ones */
    HURRY,       /* what failed is tried again at once */
    DENIED_EAR,  /* a store that forbids listening is asked again */
    COUNT_AGAIN, /* an id counts each time */
    ANY_COUNT,   /* a count for another generation counts */
    KEEP_IDS,    /* a reset leaves the ids that have counted */
    MUTANTS
} mutant;

typedef enum kind {
    BEGIN,
    SERVE,
    WAKE,
    TELL,
    CONNECTED,
    MISSED,
    WORK, /* a worker counts, or repeats its count */
    COUNT,
    COUNTED,
    RESET,
    TROUBLE
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int who;
    uint64_t number; /* a generation; of a request or a call */
    int conn;        /* that the tell is on */
    int id;
    uint64_t after;
} event;

typedef struct waiter {
    dibs__latch machine;
    dibs__latch_todo doing;
    bool waits;
    uint64_t request; /* its number; others are over */
    dibsx_nsec begun_at, deadline, sent_at;
    dibs_status rc; /* of the request, set where it is served */
    uint64_t generation;
    int looks, sent, stirs, denials;
    int conn; /* the connection of its doorbell */
    bool connected;
    dibsx_nsec ear_until; /* at the store */
    dibsx_nsec told_at;   /* the last tell arrives then */
    dibsx_nsec back_at;   /* and the last MISSED */
    dibsx_nsec failed_at;
    bool untold; /* of the last opening, and does not know */
} waiter;

typedef struct worker {
    bool calls;
    int id;
    uint64_t call, timer, after, seen;
} worker;

/* The latch as it must be. */
typedef struct truth {
    uint64_t gen; /* 0: there is none */
    uint32_t ids; /* a bit for each that has counted */
    dibsx_nsec kept_until;
} truth;

typedef struct store {
    dibs__roster ro;
    dibs__seat ids[IDS];
    truth truth;
} store;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now, away_until;
    event events[EVENTS];
    size_t count;
    store st, older; /* older: before the last change */
    bool denies;     /* nobody may listen */
    int64_t keep_ms;
    uint64_t last_gen;
    dibsx_nsec open_at, last_open; /* since when; its last moment */
    waiter waits[WAITS];
    worker workers[WORKERS];
    uint64_t opened;
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

static dibsx_nsec later(dibsx_nsec a, dibsx_nsec b)
{
    return a > b ? a : b;
}

/* ---- the store */

static bool is_open(const world *w)
{
    return w->st.truth.gen != 0 && __builtin_popcount(w->st.truth.ids) >= NEED;
}

/* After a change of the truth, or of the time. */
static void note_state(world *w)
{
    truth *now = &w->st.truth;

    if (now->gen != 0 && now->kept_until <= w->now) {
        if (is_open(w))
            w->last_open = now->kept_until;
        *now = (truth){0};
    }
    if (!is_open(w)) {
        w->open_at = DIBSX_NEVER;
        return;
    }
    w->last_open = w->now;
    if (w->open_at == DIBSX_NEVER)
        w->open_at = w->now;
}

/* The tells of one connection arrive in order. */
static void tell_all(world *w, uint64_t gen)
{
    for (int i = 0; i < WAITS; i++) {
        waiter *wt = &w->waits[i];
        dibsx_nsec at = w->now + span(w, 0, chance(w, 80) ? 4000 : DELAY_MS);

        wt->untold = false;
        if (!wt->connected || wt->ear_until <= w->now)
            continue;
        if (chance(w, 30)) {
            wt->untold = true;
            continue;
        }
        wt->told_at = at > wt->told_at ? at : wt->told_at + 1;
        add(w, (event){.kind = TELL,
                       .at = wt->told_at,
                       .who = i,
                       .number = gen,
                       .conn = wt->conn});
    }
}

static void plant_before(world *w, dibs__seat *seat, dibs__meet *item)
{
    if (item->verb != DIBS__COUNT)
        return;
    if (w->mutant == COUNT_AGAIN)
        seat->mark = DIBS__SEAT_NONE;
    if (w->mutant == ANY_COUNT)
        item->after = 0;
}

/* The step at the store; `id` is -1 where the verb has none. */
static void do_item(world *w, dibs__meet *item, int id)
{
    dibs__roster *ro = &w->st.ro;
    dibs__seat none = {.mark = DIBS__SEAT_NONE};
    dibs__seat *seat = id < 0 ? &none : &w->st.ids[id];
    store before = w->st;

    ro->now_us = ro->now_wall_us = w->now / 1000;
    (void)dibs__meet_begin(ro, item, "");
    if (ro->forgets)
        memset(w->st.ids, 0, sizeof(w->st.ids));
    ro->forgets = false;
    plant_before(w, seat, item);
    dibs__meet_apply(ro, seat, item);
    if (ro->forgets && w->mutant != KEEP_IDS)
        memset(w->st.ids, 0, sizeof(w->st.ids));
    if (seat->mark == DIBS__SEAT_PUT)
        seat->mark = DIBS__SEAT_KEPT;
    if (ro->changed)
        w->older = before;
    for (uint32_t i = 0; i < ro->news_count; i++)
        tell_all(w, ro->news[i].gen);
}

/* A generation begins. */
static void found_truth(world *w, uint64_t gen)
{
    if (gen <= w->last_gen)
        w->wrong = "L3: the number of a generation does not rise";
    w->last_gen = gen;
    w->st.truth = (truth){.gen = gen};
}

static void keep_truth(world *w)
{
    w->st.truth.kept_until = w->now / 1000 * 1000 + w->keep_ms * DIBSX_MS;
}

static dibs_status status_now(const world *w)
{
    if (w->st.truth.gen == 0)
        return DIBS_NOTFOUND;
    return is_open(w) ? DIBS_OK : DIBS_BUSY;
}

/* What a count must be answered. */
static dibs_status expect_count(world *w, const event *ev, uint64_t gen)
{
    truth *now = &w->st.truth;
    uint32_t bit = 1u << ev->id;

    if (ev->after != 0 && ev->after != now->gen)
        return DIBS_STALE;
    if (now->gen == 0)
        found_truth(w, gen);
    if (!is_open(w) && !(now->ids & bit)) {
        now->ids |= bit;
        keep_truth(w);
    }
    return status_now(w);
}

static dibs__meet serve_count(world *w, const event *ev)
{
    dibs__meet item = {.id = "id",
                       .verb = DIBS__COUNT,
                       .after = ev->after,
                       .need = NEED,
                       .ttl_ms = w->keep_ms};
    bool was_open = is_open(w);
    dibs_status rc;

    do_item(w, &item, ev->id);
    rc = expect_count(w, ev, item.number);
    if (item.rc != rc || item.number != w->st.truth.gen)
        w->wrong = rc == DIBS_STALE ? "L3: a count for another generation "
                                      "is not refused"
                                    : "L1, L3: an id does not count once";
    if (w->st.ro.news_count != (is_open(w) && !was_open))
        w->wrong = "L1: an opening is not told, or none is";
    note_state(w);
    return item;
}

static void serve_look(world *w, waiter *wt)
{
    dibs__meet item = {.id = "", .verb = DIBS__LOOK, .need = NEED};

    do_item(w, &item, -1);
    if (item.rc != status_now(w) || item.number != w->st.truth.gen)
        w->wrong = "L2: a look does not find what has counted";
    wt->rc = item.rc;
    wt->generation = item.number;
}

static void serve_ear(world *w, waiter *wt)
{
    wt->rc = w->denies ? DIBS_DENIED : !wt->connected ? DIBS_UNAVAIL : DIBS_OK;
    if (wt->rc == DIBS_OK)
        wt->ear_until = dibsx_after_ms(w->now, DIBS__EAR_MS);
}

static void reset_latch(world *w)
{
    static const int64_t pauses_ms[] = {500, 5000, 20000, 60000};
    dibs__meet item = {.id = "", .verb = DIBS__RESET, .ttl_ms = w->keep_ms};
    bool exists = w->st.truth.gen != 0;

    add(w, (event){.kind = RESET,
                   .at = w->now +
                         span(w, 0, pauses_ms[dibsx_prng_below(&w->prng, 4)])});
    if (w->now < w->away_until)
        return;
    do_item(w, &item, -1);
    if (item.rc != (exists ? DIBS_OK : DIBS_NOTFOUND))
        w->wrong = "L2: a reset does not find the latch";
    if (!exists)
        return;
    found_truth(w, item.number);
    keep_truth(w);
    note_state(w);
}

/* ---- workers */

static void set_timer(world *w, int who, dibsx_nsec after)
{
    add(w, (event){.kind = WORK,
                   .at = w->now + after,
                   .who = who,
                   .number = ++w->workers[who].timer});
}

/* A worker repeats its count until it is answered. */
static void on_work(world *w, const event *ev)
{
    worker *wk = &w->workers[ev->who];

    if (ev->number != wk->timer)
        return;
    if (!wk->calls) {
        wk->calls = true;
        wk->call++;
        wk->id = (int)dibsx_prng_below(&w->prng, IDS);
        wk->after = chance(w, 600) ? wk->seen : 0;
    }
    if (chance(w, 950))
        add(w,
            (event){.kind = COUNT,
                    .at = w->now + span(w, 0, chance(w, 50) ? 4000 : DELAY_MS),
                    .who = ev->who,
                    .number = wk->call,
                    .id = wk->id,
                    .after = wk->after});
    set_timer(w, ev->who, span(w, 300, 1000));
}

static void on_count(world *w, const event *ev)
{
    event answer = *ev;

    if (w->now < w->away_until)
        return;
    answer.kind = COUNTED;
    answer.after = serve_count(w, ev).number;
    answer.at = w->now + span(w, 0, DELAY_MS);
    if (chance(w, 900))
        add(w, answer);
}

static void on_counted(world *w, const event *ev)
{
    static const int64_t pauses_ms[] = {30, 300, 3000, 12000};
    worker *wk = &w->workers[ev->who];

    if (!wk->calls || ev->number != wk->call)
        return;
    wk->calls = false;
    wk->seen = ev->after;
    set_timer(w, ev->who, span(w, 0, pauses_ms[dibsx_prng_below(&w->prng, 4)]));
}

/* ---- trouble */

/* Tells of the new connection may arrive before MISSED does, and ears be answered. */
static void cut(world *w, int who)
{
    waiter *wt = &w->waits[who];
    dibsx_nsec at = w->now + span(w, 1, chance(w, 500) ? 30 : 2500);

    if (!wt->connected)
        return;
    wt->connected = false;
    wt->conn++;
    wt->ear_until = 0;
    add(w, (event){.kind = CONNECTED, .at = at, .who = who});
    at += span(w, 0, 30);
    wt->back_at = later(wt->back_at, at);
    add(w, (event){.kind = MISSED, .at = at, .who = who});
}

/* Another handle of the client gives up the ear that they share, and says so. */
static void deafen(world *w, int who)
{
    waiter *wt = &w->waits[who];
    dibsx_nsec at = w->now + span(w, 0, 5);

    if (!wt->connected)
        return;
    wt->ear_until = 0;
    wt->back_at = later(wt->back_at, at);
    add(w, (event){.kind = MISSED, .at = at, .who = who});
}

static void make_trouble(world *w)
{
    int who = (int)dibsx_prng_below(&w->prng, WAITS);

    if (chance(w, 300)) {
        w->away_until = w->now + span(w, 1, 4000);
        for (int i = 0; i < WAITS; i++)
            cut(w, i);
        if (chance(w, 300)) {
            w->st = w->older;
            note_state(w);
        }
    } else if (chance(w, 500)) {
        cut(w, who);
    } else {
        deafen(w, who);
    }
    add(w, (event){.kind = TROUBLE,
                   .at = w->now + span(w, 0, chance(w, 300) ? 200 : 12000)});
}

/* ---- waits */

static void end_wait(world *w, int who)
{
    waiter *wt = &w->waits[who];
    bool open = wt->machine.open;

    if (open && w->last_open < wt->begun_at)
        w->wrong = "(1) a wait ended open and the latch was not";
    w->opened += open;
    wt->waits = false;
    wt->request++;
    /* Or another wait of this client listens on. */
    if (chance(w, 500))
        wt->ear_until = 0;
    add(w, (event){.kind = BEGIN, .at = w->now + span(w, 0, 3000), .who = who});
}

static void send_request(world *w, int who)
{
    waiter *wt = &w->waits[who];
    event ev = {.kind = SERVE, .who = who, .number = wt->request};

    if (wt->doing == DIBS__LATCH_LOOK)
        dibs__latch_looks(&wt->machine);
    else
        dibs__latch_ears(&wt->machine);
    wt->sent_at = w->now;
    wt->sent++;
    wt->rc = DIBS_UNKNOWN;
    ev.at = w->now + span(w, 0, DELAY_MS);
    if (chance(w, 10)) { /* No answer: given up after a while. */
        ev.kind = WAKE;
        ev.at = w->now + span(w, 500, 5000);
    }
    add(w, ev);
}

/* The time of the next look by itself is spread by a quarter. */
static void check_sleep(world *w, const waiter *wt, dibsx_nsec until)
{
    int64_t most_ms = DIBS__LATCH_LAST_MS;

    if (wt->looks <= 4 && (DIBS__LATCH_FIRST_MS << wt->looks) < most_ms)
        most_ms = DIBS__LATCH_FIRST_MS << wt->looks;
    if (until <= w->now || until > w->now + most_ms * 5 / 4 * DIBSX_MS)
        w->wrong = "(2) a wait sleeps for too long, or not at all";
}

static void sleep_until(world *w, int who, dibsx_nsec until)
{
    waiter *wt = &w->waits[who];

    check_sleep(w, wt, until);
    if (w->mutant == NO_LOOK)
        until = DIBSX_NEVER;
    if (wt->deadline < until)
        until = wt->deadline;
    if (until != DIBSX_NEVER)
        add(w, (event){.kind = WAKE,
                       .at = until,
                       .who = who,
                       .number = wt->request});
}

/* Does what the machine wants, as a wait does: the first look comes in any case. */
static void proceed(world *w, int who)
{
    waiter *wt = &w->waits[who];
    dibsx_nsec until;

    if (!wt->waits || wt->doing != DIBS__LATCH_SLEEP)
        return;
    wt->request++;
    wt->doing = dibs__latch_next(&wt->machine, w->now, &until);
    if (wt->sent == 0 && wt->doing != DIBS__LATCH_LOOK)
        w->wrong = "(2) a wait does not begin with a look";
    if (wt->doing == DIBS__LATCH_OPEN ||
        (wt->sent > 0 && w->now >= wt->deadline))
        end_wait(w, who);
    else if (wt->doing == DIBS__LATCH_SLEEP)
        sleep_until(w, who, until);
    else
        send_request(w, who);
}

static void on_begin(world *w, const event *ev)
{
    waiter *wt = &w->waits[ev->who];

    dibs__latch_init(&wt->machine, w->seed + wt->request);
    if (w->mutant == LATE_LOOK)
        wt->machine.span_ms = DIBS__LATCH_LAST_MS;
    wt->waits = true;
    wt->doing = DIBS__LATCH_SLEEP;
    wt->begun_at = w->now;
    wt->deadline = chance(w, 300)   ? DIBSX_NEVER
                   : chance(w, 300) ? w->now + span(w, 0, 2000)
                                    : w->now + span(w, 5000, 60000);
    wt->looks = wt->sent = wt->stirs = wt->denials = 0;
    wt->failed_at = 0;
    wt->untold = false;
    proceed(w, ev->who);
}

static void on_serve(world *w, const event *ev)
{
    waiter *wt = &w->waits[ev->who];

    if (w->now < w->away_until)
        wt->rc = DIBS_UNAVAIL;
    else if (wt->doing == DIBS__LATCH_EAR)
        serve_ear(w, wt);
    else
        serve_look(w, wt);
    add(w, (event){.kind = WAKE,
                   .at = w->now + span(w, 0, DELAY_MS),
                   .who = ev->who,
                   .number = wt->request});
}

static void finish_ear(world *w, waiter *wt)
{
    dibsx_nsec look_at = wt->machine.look_at;
    dibs_status rc = wt->rc;

    wt->denials += rc == DIBS_DENIED;
    if (wt->denials > 1)
        w->wrong = "(3) a wait asks again for what the store forbids";
    if (w->mutant == ANY_EAR && rc != DIBS_DENIED)
        rc = DIBS_OK;
    if (w->mutant == DENIED_EAR && rc == DIBS_DENIED)
        rc = DIBS_UNAVAIL;
    dibs__latch_eared(&wt->machine, wt->sent_at, w->now, rc);
    if (w->mutant == NO_SECOND)
        wt->machine.look_at = look_at;
}

static void finish(world *w, waiter *wt)
{
    bool failed = wt->rc == DIBS_UNKNOWN || wt->rc == DIBS_UNAVAIL;

    if (failed)
        wt->failed_at = w->now;
    if (wt->doing == DIBS__LATCH_EAR) {
        finish_ear(w, wt);
    } else {
        wt->looks += !failed;
        dibs__latch_looked(&wt->machine, w->now, wt->rc, wt->generation);
    }
    if (w->mutant == HURRY && failed)
        wt->machine.look_at = w->now;
    wt->doing = DIBS__LATCH_SLEEP;
}

/* An answer, the end of a sleep, or of the patience with a request. */
static void on_wake(world *w, const event *ev)
{
    waiter *wt = &w->waits[ev->who];

    if (ev->number != wt->request)
        return;
    if (wt->doing != DIBS__LATCH_SLEEP)
        finish(w, wt);
    proceed(w, ev->who);
}

static void on_tell(world *w, const event *ev)
{
    waiter *wt = &w->waits[ev->who];
    uint64_t gen = ev->number;

    if (ev->conn != wt->conn || !wt->waits)
        return;
    if (w->mutant == DROP_BUSY && wt->doing != DIBS__LATCH_SLEEP)
        return;
    if (w->mutant == ANY_TELL)
        gen = wt->machine.generation;
    wt->stirs++;
    dibs__latch_told(&wt->machine, gen);
    proceed(w, ev->who);
}

static void on_missed(world *w, const event *ev)
{
    waiter *wt = &w->waits[ev->who];

    if (!wt->waits || w->mutant == NO_MISSED)
        return;
    wt->stirs++;
    dibs__latch_missed(&wt->machine);
    if (w->mutant == LOST_EAR && wt->doing == DIBS__LATCH_EAR)
        wt->machine.cut = false;
    proceed(w, ev->who);
}

/* ---- the rules */

static void check_wait(world *w, const waiter *wt)
{
    dibsx_nsec away = later(w->away_until, wt->failed_at);
    dibsx_nsec calm = later(later(w->open_at, wt->begun_at), away);
    dibsx_nsec heard = later(wt->told_at, wt->back_at);
    bool lost = wt->doing != DIBS__LATCH_SLEEP &&
                w->now - wt->sent_at > 2 * DELAY_MS * DIBSX_MS;

    if (wt->sent > 4 + 3 * wt->stirs + 2 * (w->now - wt->begun_at) / DIBSX_SEC)
        w->wrong = "(3) a wait asks too often";
    if (!is_open(w) || lost)
        return;
    if (w->now - calm > LATE_MS * DIBSX_MS)
        w->wrong = "(2) a wait for an open latch goes on";
    /* After a failure it looks and listens when that is due. */
    calm = later(later(calm, heard), dibsx_after_ms(away, DIBS__LATCH_AWAY_MS));
    if (!w->denies && !wt->untold && wt->connected &&
        w->now - calm > PROMPT_MS * DIBSX_MS)
        w->wrong = "(2) an opening that the store told of is late";
}

static void handle(world *w, const event *ev)
{
    switch (ev->kind) {
    case BEGIN:
        on_begin(w, ev);
        break;
    case SERVE:
        on_serve(w, ev);
        break;
    case WAKE:
        on_wake(w, ev);
        break;
    case TELL:
        on_tell(w, ev);
        break;
    case CONNECTED:
        w->waits[ev->who].connected = true;
        break;
    case MISSED:
        on_missed(w, ev);
        break;
    case WORK:
        on_work(w, ev);
        break;
    case COUNT:
        on_count(w, ev);
        break;
    case COUNTED:
        on_counted(w, ev);
        break;
    case RESET:
        reset_latch(w);
        break;
    case TROUBLE:
        make_trouble(w);
        break;
    }
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    w->open_at = DIBSX_NEVER;
    w->denies = chance(w, 150);
    w->keep_ms = chance(w, 250) ? 20000 : (int64_t)24 * 3600 * 1000;
    add(w, (event){.kind = RESET, .at = w->now + span(w, 0, 20000)});
    add(w, (event){.kind = TROUBLE, .at = w->now + span(w, 0, 20000)});
    for (int i = 0; i < WORKERS; i++)
        set_timer(w, i, span(w, 0, 3000));
    for (int i = 0; i < WAITS; i++) {
        w->waits[i].connected = true;
        add(w,
            (event){.kind = BEGIN, .at = w->now + span(w, 0, 3000), .who = i});
    }
    while (!w->wrong && w->now < (dibsx_nsec)SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        note_state(w);
        handle(w, &ev);
        for (int i = 0; i < WAITS; i++)
            if (w->waits[i].waits)
                check_wait(w, &w->waits[i]);
    }
    if (!w->wrong && w->opened == 0)
        w->wrong = "no wait ended open";
    return w->wrong;
}

static world the_world;
static uint64_t opened; /* waits of all seeds that ended so */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    opened += the_world.opened;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s, %llu waits ended open\n",
           (unsigned long long)seeds, SPAN_S, (unsigned long long)opened);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
