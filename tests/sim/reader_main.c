/* reader_main.c - readers of a topic in simulated time: a log that grows, is trimmed and
 * goes back, slow and lost requests, tells that come late or not at all.
 *
 *     sim_reader [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_reader --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event:
 *   - a reader gets the positions of the log in order, each one or a range that names it;
 *   - a gap names entries that are gone, and a fork something that the store has lost;
 *   - the end is reached: LATE after the last change or failed request; PROMPT after it,
 *     if the store told the reader of all appends meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/reader_machine.h"
#include "seeds.h"
#include "store/topic.h"

#include <stdio.h>
#include <string.h>

#define MSEC ((dibsx_nsec)1000000)

enum { READERS = 3, EVENTS = 512, SPAN_S = 120, DELAY_MS = 50, PAGE = 4 };
enum { LOG_MAX = 8192, PROMPT_MS = 900 };
enum { LATE_MS = 2 * DIBS__READER_LOOK_MS + PROMPT_MS };

typedef enum mutant {
    NO_MUTANT,
    DROP_BUSY,    /* tells that come while a request is under way are dropped */
    NO_PRIOR,     /* every entry is taken for the next one */
    NO_LOOK,      /* the reader sleeps until it is told */
    NO_BOUND,     /* a last position above its own is nothing to a reader */
    NEWER_ONLY,   /* a last position below its own is nothing to a reader */
    FAILED_EMPTY, /* a read that failed counts as one that found nothing */
    BOUND_BELATED, /* the bounds of after a read are taken for those of before */
    MUTANTS
} mutant;

typedef enum kind { APPEND, TROUBLE, CUT, TELL, MISSED, SERVE, WAKE } kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int reader;
    uint64_t number; /* a position told; of a request */
    int conn;        /* that the tell is on */
} event;

typedef struct entry {
    uint64_t position, prior;
    bool trimmed, lost;
} entry;

typedef struct client {
    dibs__reader machine;
    dibs__reader_todo doing;
    uint64_t request; /* its number; others are over */
    dibsx_nsec sent_at;
    dibs_status rc; /* of the request, set where it is served */
    dibs__log_span span;
    entry page[PAGE];
    size_t page_count;
    bool more;
    int conn; /* the connection of its doorbell */
    bool connected;
    dibsx_nsec ear_until, told_at, failed_at, cut_at;
    uint64_t at; /* all up to here was delivered or named */
    bool any, from_end;
} client;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now, away_until, changed_at;
    event events[EVENTS];
    size_t count;
    entry log[LOG_MAX];
    size_t entries;
    uint64_t last;
    client readers[READERS];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

/* The tells of one connection arrive in order. */
static void tell_all(world *w, uint64_t position)
{
    for (int i = 0; i < READERS; i++) {
        client *c = &w->readers[i];
        dibsx_nsec at = w->now + span(w, 0, DELAY_MS);

        if (!c->connected || c->ear_until <= w->now)
            continue;
        c->told_at = at > c->told_at ? at : c->told_at + 1;
        add(w, (event){.kind = TELL,
                       .at = c->told_at,
                       .reader = i,
                       .number = position,
                       .conn = c->conn});
    }
}

static void trim_log(world *w)
{
    size_t through = w->entries;

    if (!chance(w, 200))
        through = dibsx_prng_below(&w->prng, w->entries + 1);
    for (size_t i = 0; i < through; i++)
        w->log[i].trimmed = true;
    w->changed_at = w->now;
}

static void append_entry(world *w)
{
    static const int64_t pauses_ms[] = {3, 30, 300, 5000};
    int64_t most = pauses_ms[dibsx_prng_below(&w->prng, 4)];
    uint64_t position = (uint64_t)w->now / 1000;

    if (position <= w->last)
        position = w->last + 1;
    if (w->entries < LOG_MAX) {
        w->log[w->entries++] = (entry){.position = position, .prior = w->last};
        w->last = position;
        w->changed_at = w->now;
        tell_all(w, position);
    }
    if (chance(w, 30))
        trim_log(w);
    add(w, (event){.kind = APPEND, .at = w->now + span(w, 0, most)});
}

static void cut(world *w, int i)
{
    client *c = &w->readers[i];

    if (!c->connected)
        return;
    c->connected = false;
    c->conn++;
    c->ear_until = 0;
    c->cut_at = w->now;
    add(w,
        (event){.kind = MISSED, .at = w->now + span(w, 1, 2500), .reader = i});
}

/* The newest entries are lost. */
static void go_back(world *w)
{
    size_t gone = dibsx_prng_below(&w->prng, 5);

    for (size_t i = w->entries; i > 0 && gone > 0; i--)
        if (!w->log[i - 1].lost) {
            w->log[i - 1].lost = true;
            w->last = w->log[i - 1].prior;
            gone--;
        }
    w->changed_at = w->now;
}

static void make_trouble(world *w)
{
    if (chance(w, 500)) {
        w->away_until = w->now + span(w, 1, 4000);
        for (int i = 0; i < READERS; i++)
            cut(w, i);
        if (chance(w, 400))
            go_back(w);
    } else {
        cut(w, (int)dibsx_prng_below(&w->prng, READERS));
    }
    add(w, (event){.kind = TROUBLE, .at = w->now + span(w, 100, 12000)});
}

static void serve_read(world *w, client *c)
{
    c->page_count = 0;
    c->more = false;
    for (size_t i = 0; i < w->entries; i++) {
        const entry *e = &w->log[i];

        if (e->trimmed || e->lost || e->position <= c->machine.at)
            continue;
        if (c->page_count == PAGE) {
            c->more = true;
            return;
        }
        c->page[c->page_count++] = *e;
    }
}

static void serve(world *w, client *c)
{
    c->rc = DIBS_OK;
    c->page_count = 0;
    if (w->now < w->away_until)
        c->rc = DIBS_UNAVAIL;
    else if (c->doing == DIBS__READER_EAR && !c->connected)
        c->rc = DIBS_UNAVAIL;
    else if (c->doing == DIBS__READER_EAR)
        c->ear_until = dibsx_after_ms(w->now, DIBS__EAR_MS);
    else if (c->doing == DIBS__READER_READ)
        serve_read(w, c);
    else
        c->span = (dibs__log_span){.last = w->last};
}

/* No entry of (from, to) may be there unread. */
static bool all_gone(const world *w, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < w->entries; i++) {
        const entry *e = &w->log[i];

        if (e->position > from && e->position < to && !e->trimmed && !e->lost)
            return false;
    }
    return true;
}

static bool any_lost(const world *w, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < w->entries; i++)
        if (w->log[i].lost && w->log[i].position > from &&
            w->log[i].position <= to)
            return true;
    return false;
}

static bool is_trimmed_or_lost(const world *w, uint64_t position)
{
    for (size_t i = 0; i < w->entries; i++)
        if (w->log[i].position == position)
            return w->log[i].trimmed || w->log[i].lost;
    return position == 0;
}

static void deliver(world *w, client *c, dibs__reader_news news, const entry *e)
{
    const dibs__reader *r = &c->machine;

    if (news == DIBS__READER_EVENT) {
        if (c->any && e->position <= c->at)
            w->wrong = "an event comes out of order";
        if (c->any && e->prior != c->at)
            w->wrong = "an event is passed over unnamed";
        c->at = e->position;
    } else if (news == DIBS__READER_GAP) {
        if (c->any && r->gap_from != c->at)
            w->wrong = "a gap does not begin at the reader";
        if (!all_gone(w, r->gap_from, r->gap_to) ||
            !is_trimmed_or_lost(w, r->gap_to))
            w->wrong = "a gap names an event that is there";
        c->at = r->gap_to;
    } else if (news == DIBS__READER_FORK) {
        if (!any_lost(w, r->gap_from, r->gap_to))
            w->wrong = "a fork without a loss";
        c->at = r->gap_from;
    }
    c->any = c->any || news != DIBS__READER_NOTHING;
}

static void show_page(world *w, client *c)
{
    for (size_t i = 0; i < c->page_count;) {
        dibs__log_entry shown = {.position = c->page[i].position,
                                 .prior = c->page[i].prior,
                                 .store_wall_us = (int64_t)c->page[i].position};
        dibs__reader_news news;

        if (w->mutant == NO_PRIOR)
            shown.prior = c->machine.at;
        news = dibs__reader_show(&c->machine, &shown);
        deliver(w, c, news, &c->page[i]);
        if (news == DIBS__READER_EVENT || news == DIBS__READER_NOTHING)
            i++;
    }
    c->page_count = 0;
}

static void finish_bounds(world *w, client *c)
{
    dibs__log_span at = c->span;

    if (w->mutant == NO_BOUND && at.last > c->machine.at && c->machine.placed)
        at.last = c->machine.at;
    if (w->mutant == NEWER_ONLY && at.last < c->machine.at)
        at.last = c->machine.at;
    deliver(w, c, dibs__reader_bounded(&c->machine, w->now, c->rc, &at), NULL);
    if (c->from_end && c->machine.placed && !c->any) {
        c->any = true;
        c->at = c->machine.at;
    }
}

static void finish(world *w, client *c)
{
    dibs_status rc = c->rc;

    if (rc != DIBS_OK && (rc == DIBS_UNKNOWN || c->doing != DIBS__READER_EAR))
        c->failed_at = w->now;
    if (c->doing == DIBS__READER_EAR) {
        dibs__reader_eared(&c->machine, c->sent_at, w->now, rc);
    } else if (c->doing == DIBS__READER_BOUNDS) {
        finish_bounds(w, c);
    } else {
        if (w->mutant == FAILED_EMPTY)
            rc = DIBS_OK;
        if (w->mutant == BOUND_BELATED && w->last > c->machine.at)
            c->machine.bound = w->last;
        deliver(w, c,
                dibs__reader_read(&c->machine, w->now, rc,
                                  c->rc == DIBS_OK ? c->page_count : 0,
                                  c->rc == DIBS_OK && c->more),
                NULL);
        if (c->rc == DIBS_OK)
            show_page(w, c);
    }
    c->doing = DIBS__READER_SLEEP;
}

/* Begins what the machine wants. A request is served on its way, and answered. */
static void proceed(world *w, int i)
{
    client *c = &w->readers[i];
    dibsx_nsec until;

    if (c->doing != DIBS__READER_SLEEP)
        return;
    c->doing = dibs__reader_next(&c->machine, w->now, &until);
    c->request++;
    if (c->doing == DIBS__READER_SLEEP) {
        if (w->mutant != NO_LOOK)
            add(w, (event){.kind = WAKE,
                           .at = until,
                           .reader = i,
                           .number = c->request});
        return;
    }
    c->sent_at = w->now;
    c->rc = DIBS_UNKNOWN;
    if (chance(w, 990))
        add(w, (event){.kind = SERVE,
                       .at = w->now + span(w, 0, DELAY_MS),
                       .reader = i,
                       .number = c->request});
    else /* No answer: given up after a while. */
        add(w, (event){.kind = WAKE,
                       .at = w->now + span(w, 500, 5000),
                       .reader = i,
                       .number = c->request});
}

static void on_tell(world *w, const event *ev)
{
    client *c = &w->readers[ev->reader];

    if (ev->conn != c->conn)
        return;
    if (w->mutant == DROP_BUSY && c->doing != DIBS__READER_SLEEP)
        return;
    (void)dibs__reader_told(&c->machine, ev->number);
    proceed(w, ev->reader);
}

static void on_missed(world *w, const event *ev)
{
    w->readers[ev->reader].connected = true;
    dibs__reader_missed(&w->readers[ev->reader].machine);
    proceed(w, ev->reader);
}

static void on_serve(world *w, const event *ev)
{
    client *c = &w->readers[ev->reader];

    serve(w, c);
    add(w, (event){.kind = WAKE,
                   .at = w->now + span(w, 0, DELAY_MS),
                   .reader = ev->reader,
                   .number = c->request});
}

/* An answer, the end of a sleep, or of the patience with a request. */
static void on_wake(world *w, const event *ev)
{
    client *c = &w->readers[ev->reader];

    if (ev->number != c->request)
        return;
    if (c->doing != DIBS__READER_SLEEP)
        finish(w, c);
    proceed(w, ev->reader);
}

static dibsx_nsec later(dibsx_nsec a, dibsx_nsec b)
{
    return a > b ? a : b;
}

static void check(world *w)
{
    for (int i = 0; i < READERS; i++) {
        const client *c = &w->readers[i];
        dibsx_nsec calm =
            later(w->changed_at, later(w->away_until, c->failed_at));
        bool waits = c->doing != DIBS__READER_SLEEP &&
                     w->now - c->sent_at > 2 * DELAY_MS * MSEC;

        if (!c->any || c->at == w->last || waits || w->now < calm)
            continue;
        if (w->now - calm > LATE_MS * MSEC)
            w->wrong = "the end is not reached";
        calm = later(calm, c->cut_at + 3500 * MSEC);
        calm = later(calm, later(w->away_until, c->failed_at) + 1100 * MSEC);
        /* A trim is not told. */
        if (c->connected && c->ear_until > w->now && w->last > c->at &&
            !is_trimmed_or_lost(w, w->last) && w->now - calm > PROMPT_MS * MSEC)
            w->wrong = "an event that the store told of is late";
    }
}

static void step(world *w)
{
    event ev = take_first(w);

    w->now = ev.at;
    switch (ev.kind) {
    case APPEND:
        append_entry(w);
        break;
    case TROUBLE:
        make_trouble(w);
        break;
    case CUT:
        cut(w, ev.reader);
        break;
    case TELL:
        on_tell(w, &ev);
        break;
    case MISSED:
        on_missed(w, &ev);
        break;
    case SERVE:
        on_serve(w, &ev);
        break;
    case WAKE:
        on_wake(w, &ev);
        break;
    }
    check(w);
}

static const char *run(uint64_t seed, int planted, dibsx_nsec *at)
{
    static world w;

    memset(&w, 0, sizeof(w));
    w.seed = seed;
    w.mutant = (mutant)planted;
    w.now = 1000000 * MSEC;
    w.changed_at = w.now;
    w.prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    add(&w, (event){.kind = APPEND, .at = w.now});
    add(&w, (event){.kind = TROUBLE, .at = w.now + span(&w, 100, 12000)});
    for (int i = 0; i < READERS; i++) {
        w.readers[i].connected = true;
        dibs__reader_init(&w.readers[i].machine,
                          i == 0   ? DIBS__FROM_START
                          : i == 1 ? DIBS__FROM_END
                                   : DIBS__FROM_POSITION,
                          0);
        w.readers[i].from_end = i == 1;
        w.readers[i].any = i == 2;
        proceed(&w, i);
    }
    while (!w.wrong && w.now < (1000 + SPAN_S) * 1000 * MSEC)
        step(&w);
    *at = w.now;
    return w.wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s\n", (unsigned long long)seeds, SPAN_S);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run, report);
}
