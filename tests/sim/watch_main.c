/* watch_main.c - watches of a value in simulated time: a store that changes, expires
 * and goes back, slow and lost requests, tells that come late or not at all.
 *
 *     sim_watch [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_watch --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event:
 *   - the last value is delivered: LATE after the last change or failed request;
 *     PROMPT after it, if the store told the watch of all changes meanwhile;
 *   - no version is delivered twice in a row;
 *   - a change that is not called merged is the only one since the last; one with a
 *     lower version, and no other, is called back. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "coord/watch_machine.h"
#include "seeds.h"
#include "store/topic.h"

#include <stdio.h>
#include <string.h>

#define MSEC ((dibsx_nsec)1000000)

enum { WATCHES = 3, EVENTS = 512, SPAN_S = 240, DELAY_MS = 50 };
enum { PROMPT_MS = 600, LATE_MS = DIBS__WATCH_LOOK_MS + PROMPT_MS };

typedef enum mutant {
    NO_MUTANT,
    DROP_BUSY,  /* tells that come while a request is under way are dropped */
    NO_MISSED,  /* a lost connection is not reported */
    ONLY_NEWER, /* a lower version counts as the known one */
    NO_EXPIRY,  /* values are said to live for ever */
    NO_LOOK,    /* the watch sleeps until it is told */
    ANY_EAR,    /* an ear that failed counts */
    MUTANTS
} mutant;

typedef enum kind {
    CHANGE,
    EXPIRE,
    TROUBLE,
    CUT,
    TELL,
    MISSED,
    SERVE,
    WAKE
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int watch;
    uint64_t
        number; /* a version told; the version that expires; of a request */
    int conn;   /* that the tell is on */
} event;

typedef struct watcher {
    dibs__watch machine;
    dibs__watch_todo doing;
    uint64_t request; /* its number; others are over */
    dibsx_nsec sent_at;
    dibs_status rc; /* of the request, set where it is served */
    dibs__value_head head;
    uint64_t seq;
    bool served;
    int conn; /* the connection of its doorbell */
    bool connected;
    dibsx_nsec ear_until, ear_since; /* at the store; as the watch has it */
    dibsx_nsec told_at;              /* the last tell arrives then */
    dibsx_nsec failed_at, cut_at;
    uint64_t shown, shown_seq; /* delivered last */
    bool any;
} watcher;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now, away_until;
    event events[EVENTS];
    size_t count;
    uint64_t version, last_version, older; /* now; highest; one before */
    dibsx_nsec expires_at, changed_at;
    uint64_t seq; /* changes so far; those that were lost do not count */
    uint64_t older_seq;
    watcher watches[WATCHES];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

/* The tells of one connection arrive in order. */
static void tell_all(world *w, uint64_t version)
{
    for (int i = 0; i < WATCHES; i++) {
        watcher *wt = &w->watches[i];
        dibsx_nsec at = w->now + span(w, 0, DELAY_MS);

        if (!wt->connected || wt->ear_until <= w->now)
            continue;
        wt->told_at = at > wt->told_at ? at : wt->told_at + 1;
        add(w, (event){.kind = TELL,
                       .at = wt->told_at,
                       .watch = i,
                       .number = version,
                       .conn = wt->conn});
    }
}

static void set_value(world *w, uint64_t version, int64_t ttl_ms, bool tell)
{
    if (w->version) {
        w->older = w->version;
        w->older_seq = w->seq;
    }
    w->version = version;
    w->expires_at = DIBSX_NEVER;
    w->changed_at = w->now;
    w->seq++;
    if (version > w->last_version)
        w->last_version = version;
    if (ttl_ms > 0) {
        w->expires_at = w->now + ttl_ms * MSEC;
        add(w, (event){.kind = EXPIRE, .at = w->expires_at, .number = version});
    }
    if (tell)
        tell_all(w, version);
}

static void put_value(world *w)
{
    uint64_t version = (uint64_t)w->now / 1000;

    if (version <= w->last_version)
        version = w->last_version + 1;
    set_value(w, version,
              chance(w, 300) ? (int64_t)dibsx_prng_below(&w->prng, 900) + 1 : 0,
              true);
}

static void change_value(world *w)
{
    static const int64_t pauses_ms[] = {3, 30, 300, 5000};
    int64_t most = pauses_ms[dibsx_prng_below(&w->prng, 4)];

    if (w->version && chance(w, 200))
        set_value(w, 0, 0, true);
    else
        put_value(w);
    add(w, (event){.kind = CHANGE, .at = w->now + span(w, 0, most)});
}

static void cut(world *w, int i)
{
    watcher *wt = &w->watches[i];

    if (!wt->connected)
        return;
    wt->connected = false;
    wt->conn++;
    wt->ear_until = 0;
    wt->cut_at = w->now;
    add(w,
        (event){.kind = MISSED, .at = w->now + span(w, 1, 2500), .watch = i});
}

/* Changes are lost, and are none any more. */
static void go_back(world *w)
{
    uint64_t version = w->older < w->version ? w->older : 0;
    uint64_t seq = version ? w->older_seq : w->seq + 1;

    set_value(w, version, 0, false);
    w->seq = seq;
}

/* The store is away for a while, and comes back, perhaps without its last data. */
static void make_trouble(world *w)
{
    if (chance(w, 500)) {
        w->away_until = w->now + span(w, 1, 4000);
        for (int i = 0; i < WATCHES; i++)
            cut(w, i);
        if (chance(w, 400))
            go_back(w);
    } else {
        cut(w, (int)dibsx_prng_below(&w->prng, WATCHES));
    }
    add(w, (event){.kind = TROUBLE, .at = w->now + span(w, 100, 12000)});
}

static dibs_status serve_ear(world *w, watcher *wt)
{
    if (!wt->connected)
        return DIBS_UNAVAIL;
    wt->ear_until = dibsx_after_ms(w->now, DIBS__EAR_MS);
    return DIBS_OK;
}

static void serve(world *w, watcher *wt)
{
    int64_t left = w->expires_at - w->now;

    wt->served = true;
    wt->seq = w->seq;
    wt->head = (dibs__value_head){.version = w->version, .expires_ms = -1};
    if (w->version && w->expires_at != DIBSX_NEVER)
        wt->head.expires_ms = (left + MSEC - 1) / MSEC;
    if (w->now < w->away_until)
        wt->rc = DIBS_UNAVAIL;
    else if (wt->doing == DIBS__WATCH_EAR)
        wt->rc = serve_ear(w, wt);
    else
        wt->rc = wt->doing == DIBS__WATCH_FETCH && !w->version ? DIBS_NOTFOUND
                                                               : DIBS_OK;
}

static void deliver(world *w, watcher *wt, const dibs__watch_news *news)
{
    uint64_t version = wt->head.version;

    if (wt->any && version == wt->shown)
        w->wrong = "a version is delivered twice in a row";
    if (wt->any && !news->merged && wt->seq != wt->shown_seq + 1)
        w->wrong = "a change is not called merged and was not the only one";
    if (news->back != (wt->any && version && version < wt->shown))
        w->wrong = "a lower version is not called back, or a higher one is";
    wt->any = true;
    wt->shown = version;
    wt->shown_seq = wt->seq;
}

static void finish(world *w, watcher *wt)
{
    dibs__watch_news news;
    dibs__value_head head = wt->head;
    dibs_status rc = wt->rc;

    /* An ear that fails at once delays nothing. */
    if (rc == DIBS_UNKNOWN ||
        (rc == DIBS_UNAVAIL && wt->doing != DIBS__WATCH_EAR))
        wt->failed_at = w->now;
    if (w->mutant == NO_EXPIRY)
        head.expires_ms = -1;
    if (wt->doing == DIBS__WATCH_EAR) {
        if (rc == DIBS_OK && w->now > wt->machine.ear_until)
            wt->ear_since = w->now;
        if (w->mutant == ANY_EAR)
            rc = DIBS_OK;
        dibs__watch_eared(&wt->machine, wt->sent_at, w->now, rc);
    } else if (wt->doing == DIBS__WATCH_LOOK) {
        if (w->mutant == ONLY_NEWER && head.version < wt->machine.known)
            head.version = wt->machine.known;
        dibs__watch_looked(&wt->machine, wt->sent_at, w->now, rc, &head);
    } else if (dibs__watch_fetched(&wt->machine, wt->sent_at, w->now, rc, &head,
                                   &news)) {
        deliver(w, wt, &news);
    }
    wt->doing = DIBS__WATCH_SLEEP;
}

/* Begins what the machine wants. A request is served on its way, and answered. */
static void proceed(world *w, int i)
{
    watcher *wt = &w->watches[i];
    dibsx_nsec until;

    if (wt->doing != DIBS__WATCH_SLEEP)
        return;
    wt->doing = dibs__watch_next(&wt->machine, w->now, &until);
    wt->request++;
    if (wt->doing == DIBS__WATCH_SLEEP) {
        if (w->mutant != NO_LOOK && until != DIBSX_NEVER)
            add(w, (event){.kind = WAKE,
                           .at = until,
                           .watch = i,
                           .number = wt->request});
        return;
    }
    wt->sent_at = w->now;
    wt->served = false;
    wt->rc = DIBS_UNKNOWN;
    if (chance(w, 990))
        add(w, (event){.kind = SERVE,
                       .at = w->now + span(w, 0, DELAY_MS),
                       .watch = i,
                       .number = wt->request});
    else /* No answer: given up after a while. */
        add(w, (event){.kind = WAKE,
                       .at = w->now + span(w, 500, 5000),
                       .watch = i,
                       .number = wt->request});
}

static void on_tell(world *w, const event *ev)
{
    watcher *wt = &w->watches[ev->watch];

    if (ev->conn != wt->conn)
        return;
    if (w->mutant == DROP_BUSY && wt->doing != DIBS__WATCH_SLEEP)
        return;
    (void)dibs__watch_told(&wt->machine, ev->number);
    proceed(w, ev->watch);
}

static void on_missed(world *w, const event *ev)
{
    watcher *wt = &w->watches[ev->watch];

    wt->connected = true;
    if (w->mutant != NO_MISSED)
        dibs__watch_missed(&wt->machine);
    proceed(w, ev->watch);
}

static void on_serve(world *w, const event *ev)
{
    watcher *wt = &w->watches[ev->watch];

    serve(w, wt);
    add(w, (event){.kind = WAKE,
                   .at = w->now + span(w, 0, DELAY_MS),
                   .watch = ev->watch,
                   .number = wt->request});
}

/* An answer, the end of a sleep, or of the patience with a request. */
static void on_wake(world *w, const event *ev)
{
    watcher *wt = &w->watches[ev->watch];

    if (ev->number != wt->request)
        return;
    if (wt->doing != DIBS__WATCH_SLEEP)
        finish(w, wt);
    proceed(w, ev->watch);
}

static dibsx_nsec later(dibsx_nsec a, dibsx_nsec b)
{
    return a > b ? a : b;
}

static void check(world *w)
{
    for (int i = 0; i < WATCHES; i++) {
        const watcher *wt = &w->watches[i];
        dibsx_nsec calm =
            later(w->changed_at, later(w->away_until, wt->failed_at));
        bool due = !wt->any || wt->shown != w->version;
        bool waits = wt->doing != DIBS__WATCH_SLEEP &&
                     w->now - wt->sent_at > 2 * DELAY_MS * MSEC;

        if (!due || waits || w->now < calm)
            continue;
        if (w->now - calm > LATE_MS * MSEC)
            w->wrong = "the last value is not delivered";
        /* After a failure the watch looks when a look is due. */
        calm = later(calm, dibsx_after_ms(later(w->away_until, wt->failed_at),
                                          DIBS__WATCH_LOOK_MS));
        calm = later(calm, later(wt->cut_at, wt->ear_since));
        if (wt->connected && wt->ear_until > w->now && wt->any &&
            wt->ear_since > wt->cut_at && w->now - calm > PROMPT_MS * MSEC)
            w->wrong = "a value that the store told of is late";
    }
}

static void handle(world *w, const event *ev)
{
    switch (ev->kind) {
    case CHANGE:
        change_value(w);
        break;
    case EXPIRE:
        if (w->version == ev->number && w->expires_at <= w->now)
            set_value(w, 0, 0, false);
        break;
    case TROUBLE:
        make_trouble(w);
        break;
    case CUT:
        cut(w, ev->watch);
        break;
    case TELL:
        on_tell(w, ev);
        break;
    case MISSED:
        on_missed(w, ev);
        break;
    case SERVE:
        on_serve(w, ev);
        break;
    case WAKE:
        on_wake(w, ev);
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
    w->expires_at = DIBSX_NEVER;
    add(w, (event){.kind = CHANGE, .at = w->now + span(w, 0, 3000)});
    add(w, (event){.kind = TROUBLE, .at = w->now + span(w, 0, 20000)});
    for (int i = 0; i < WATCHES; i++) {
        dibs__watch_init(&w->watches[i].machine);
        w->watches[i].connected = true;
        proceed(w, i);
    }
    while (!w->wrong && w->now < SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        handle(w, &ev);
        check(w);
    }
    return w->wrong;
}

static world the_world;

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s\n", (unsigned long long)seeds, SPAN_S);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
