/* session_main.c - a client of the sidecar, two daemons and a store in simulated time:
 * requests that are slow or lost, a client that stops, silent cuts, a store that is
 * away, a daemon that dies or drains, and clocks that run at different speeds.
 *
 *     sim_session [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_session --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * The daemons drive the machine of session_machine.h; the client keeps to the rule of
 * docs/serve.md. A rival takes the name at the first moment at which the store would
 * give it away. Must hold, after every event:
 *   - the client does not believe in its lease at that moment;
 *   - no daemon renews a lease that no client has, or one that its client removed;
 *   - the machine's own check (S2 to S6). */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "seeds.h"
#include "serve/session_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 256, DAEMONS = 2, SESSIONS = 64, RECORDS = 12, LEASES = 4 };
enum { TTL_MS = 10000, SESSION_MS = 6000, SPAN_S = 70, SWEEP_MS = 50 };
enum { RIVAL = -1 }; /* an owner */
enum { CLIENT = DAEMONS, STORE = DAEMONS + 1, CLOCKS };

typedef enum mutant {
    NO_MUTANT,
    FROM_ANSWER,  /* the client counts from the answer */
    NO_DRIFT,     /* the daemon tells the time without allowance for drift */
    SESSION_ONLY, /* it tells the session's time, whatever the lease has */
    WHILE_OPEN,   /* the client believes what a stream says by being open */
    ANCHOR_LATE,  /* the anchor is the moment of the answer */
    SAME_OWNER,   /* a lease that moves keeps its owner */
    TELL_TTL, /* every answer tells the whole ttl, not that of a beat alone */
    DRAIN_RELEASES,  /* a daemon that ends releases its leases */
    KEEP_GRANT,      /* a grant that comes after the end is kept */
    RETRY_ACQUIRES,  /* a put that comes again acquires again */
    REMOVE_FORGOTTEN /* removing an id that is not known leaves no trace */
} mutant;

typedef enum kind {
    CLIENT_TURN,
    REQUEST, /* reaches a daemon */
    REPLY,   /* reaches the client */
    PUSH,    /* a daemon sends on its stream */
    PUSHED,  /* the client hears it */
    SWEEP,   /* of a daemon */
    ACQUIRE, /* reaches the store */
    GRANTED, /* reaches the daemon */
    RENEW,   /* is due */
    RENEWAL, /* reaches the store */
    RENEWED, /* reaches the daemon */
    RELEASE  /* reaches the store */
} kind;

typedef enum wish { OPEN, BEAT, PUT, REMOVE } wish;

typedef enum word { KEPT, GONE, UNKNOWN_SESSION } word;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int daemon, session, record;
    wish wish;
    word word;
    int id;    /* of a lease */
    int owner; /* at the store; 0: none */
    bool good;
    dibsx_nsec t0; /* the client's clock, or the daemon's for the store */
    int64_t valid_ms;
    dibsx_nsec until, clock;
} event;

/* A lease of a daemon. */
typedef struct record {
    dibs__session_lease machine; /* first */
    bool used;
    bool live; /* renewed */
    int owner; /* 0 before the grant */
    int from;  /* the owner that it is taken over from, or 0 */
    dibsx_nsec valid_until;
} record;

typedef struct session {
    dibs__session machine;
    record records[RECORDS];
    int removed_below; /* ids whose removal the client has heard of */
} session;

typedef struct daemon_ {
    bool up;
    int count;
    session sessions[SESSIONS];
} daemon_;

typedef struct window {
    dibsx_nsec from, until;
} window;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now;
    event events[EVENTS];
    size_t count;
    const char *wrong;
    int64_t off[CLOCKS], ppm[CLOCKS];
    /* The store. */
    int owner, owners;
    dibsx_nsec until; /* its clock */
    /* What goes wrong. */
    window away, stop, cut;
    dibsx_nsec dies_at, drains_at, moves_at;
    bool stream;
    daemon_ daemons[DAEMONS];
    /* The client. */
    int at, session, id, token, unanswered;
    bool removing;
    dibsx_nsec believe; /* its clock */
    dibsx_nsec anchor_at, anchor_clock;
    int anchor_daemon;
    int64_t believed, granted, moved;
} world;

#include "events.h"
#include "luck.h"

static bool within(const world *w, window span_of)
{
    return w->now >= span_of.from && w->now < span_of.until;
}

static dibsx_nsec clock_of(const world *w, int who)
{
    return w->off[who] + w->now + w->now / 1000000 * w->ppm[who];
}

static dibsx_nsec delay(world *w)
{
    return chance(w, 950) ? span(w, 1, 150) : span(w, 200, 5000);
}

static void later(world *w, dibsx_nsec after, event ev)
{
    ev.at = w->now + after;
    add(w, ev);
}

static session *session_of(world *w, const event *ev)
{
    return &w->daemons[ev->daemon].sessions[ev->session];
}

static record *record_of(world *w, const event *ev)
{
    return &session_of(w, ev)->records[ev->record];
}

/* -- A daemon. */

static record *unused(world *w, session *s)
{
    for (int i = 0; i < RECORDS; i++)
        if (!s->records[i].used)
            return &s->records[i];
    w->wrong = "the simulation has no room for a lease";
    return &s->records[0];
}

static void send_release(world *w, const record *re)
{
    if (!within(w, w->away) && chance(w, 950))
        later(w, delay(w) / 4, (event){.kind = RELEASE, .owner = re->owner});
}

static void
ask_store(world *w, const event *ev, const session *s, const record *re)
{
    event ask = {ACQUIRE,
                 .daemon = ev->daemon,
                 .session = ev->session,
                 .record = (int)(re - s->records),
                 .owner = ++w->owners,
                 .t0 = clock_of(w, ev->daemon)};

    later(w, delay(w) / 4, ask);
}

static void
act(world *w, const event *ev, session *s, record *re, dibs__session_todo todo)
{
    switch (todo) {
    case DIBS__SESSION_START:
        ask_store(w, ev, s, re);
        break;
    case DIBS__SESSION_RELEASE:
        re->live = false;
        send_release(w, re);
        break;
    case DIBS__SESSION_LEAVE:
        re->live = false;
        if (w->mutant == DRAIN_RELEASES)
            send_release(w, re);
        break;
    case DIBS__SESSION_CANCEL: /* ACQUIRE looks whether it is wanted */
    case DIBS__SESSION_NOTHING:
        break;
    }
}

static void do_all(world *w, const event *ev)
{
    session *s = session_of(w, ev);
    dibs__session_todo todo;
    record *re;

    while ((re = (record *)dibs__session_next(&s->machine, &todo)))
        act(w, ev, s, re, todo);
    while ((re = (record *)dibs__session_forgotten(&s->machine)))
        re->used = false;
}

static void on_acquire(world *w, const event *ev)
{
    record *re = record_of(w, ev);
    dibsx_nsec clock = clock_of(w, STORE);
    event answer = *ev;
    bool free = w->owner == 0 || clock >= w->until;

    answer.kind = GRANTED;
    answer.good = false;
    if (!w->daemons[ev->daemon].up)
        return;
    if (re->machine.stage != DIBS__STAGE_WAITING && chance(w, 500)) {
        later(w, 0, answer); /* the cancel came in time */
        return;
    }
    if (within(w, w->away) || (!re->from && !free)) {
        answer.kind = ACQUIRE; /* waits, and asks again */
        answer.t0 = clock_of(w, ev->daemon) + 100 * DIBSX_MS;
        later(w, 100 * DIBSX_MS, answer);
        return;
    }
    if (!re->from || (w->owner == re->from && !free)) {
        answer.good = true;
        if (w->mutant == SAME_OWNER && re->from)
            answer.owner = re->from;
        w->owner = answer.owner;
        w->until = clock + TTL_MS * DIBSX_MS;
        w->granted++;
        w->moved += re->from > 0;
    }
    later(w, delay(w), answer);
}

static void on_granted(world *w, const event *ev)
{
    session *s = session_of(w, ev);
    record *re = record_of(w, ev);
    bool wanted = re->machine.stage == DIBS__STAGE_WAITING;
    event renew = *ev;

    if (!w->daemons[ev->daemon].up)
        return;
    if (ev->good) {
        re->owner = ev->owner;
        re->live = true;
        re->valid_until = ev->t0 + dibs__session_less_drift(TTL_MS) * DIBSX_MS;
        renew.kind = RENEW;
        later(w, 0, renew);
    }
    dibs__session_answered(&s->machine, &re->machine,
                           ev->good ? DIBS_OK : DIBS_LOST, (uint64_t)ev->owner);
    if (w->mutant == KEEP_GRANT && !wanted)
        re->machine.todo = DIBS__SESSION_NOTHING;
    do_all(w, ev);
}

static void on_renew(world *w, const event *ev)
{
    record *re = record_of(w, ev);
    event renewal = *ev;

    if (!w->daemons[ev->daemon].up || !re->live || re->owner != ev->owner)
        return;
    if (clock_of(w, ev->daemon) >= re->valid_until) {
        re->live = false;
        dibs__session_lost(&session_of(w, ev)->machine, &re->machine);
        return;
    }
    renewal.kind = RENEWAL;
    renewal.t0 = clock_of(w, ev->daemon);
    if (!within(w, w->away) && chance(w, 950))
        later(w, delay(w) / 4, renewal);
    later(w, TTL_MS / 3 * DIBSX_MS, *ev);
}

static void on_renewal(world *w, const event *ev)
{
    event answer = *ev;

    answer.kind = RENEWED;
    answer.good = w->owner == ev->owner && clock_of(w, STORE) < w->until;
    if (answer.good && w->until < clock_of(w, STORE) + TTL_MS * DIBSX_MS)
        w->until = clock_of(w, STORE) + TTL_MS * DIBSX_MS;
    if (chance(w, 950))
        later(w, delay(w) / 4, answer);
}

static void on_renewed(world *w, const event *ev)
{
    record *re = record_of(w, ev);
    dibsx_nsec until = ev->t0 + dibs__session_less_drift(TTL_MS) * DIBSX_MS;

    if (!w->daemons[ev->daemon].up || !re->live || re->owner != ev->owner)
        return;
    if (!ev->good) {
        re->live = false;
        dibs__session_lost(&session_of(w, ev)->machine, &re->machine);
    } else if (until > re->valid_until &&
               clock_of(w, ev->daemon) < re->valid_until) {
        re->valid_until = until;
    }
}

/* Tells what the client may believe of its lease. */
static void tell(world *w, const event *ev, event *answer)
{
    session *s = session_of(w, answer);
    char id[16];
    record *re;
    dibsx_nsec now = clock_of(w, ev->daemon);
    int64_t lease_ms;

    snprintf(id, sizeof(id), "%d", ev->id);
    re = (record *)dibs__session_find(&s->machine, id);
    answer->clock = now;
    if (!re || re->machine.stage == DIBS__STAGE_WAITING)
        return;
    if (re->machine.stage != DIBS__STAGE_HELD) {
        answer->word = GONE;
        return;
    }
    lease_ms = dibsx_valid_ms(re->valid_until, now);
    answer->owner = re->owner;
    answer->valid_ms = dibs__session_told_ms(&s->machine, now, lease_ms);
    answer->until = dibs__session_told_until(&s->machine, now, lease_ms);
    if (w->mutant == NO_DRIFT && answer->valid_ms > 0)
        answer->valid_ms = (answer->until - now) / DIBSX_MS;
    if (w->mutant == SESSION_ONLY)
        answer->valid_ms = dibs__session_told_ms(&s->machine, now, SESSION_MS);
    if (w->mutant == TELL_TTL)
        answer->valid_ms = dibs__session_less_drift(
            lease_ms < SESSION_MS ? lease_ms : SESSION_MS);
}

static void put_lease(world *w, const event *ev, event *at)
{
    session *s = session_of(w, at);
    record *fresh = unused(w, s);
    dibs__session_lease *found;
    char id[16];

    snprintf(id, sizeof(id), "%d", ev->id);
    switch (dibs__session_put_lease(&s->machine, &fresh->machine, id,
                                    clock_of(w, ev->daemon), &found)) {
    case DIBS__PUT_NEW:
        ((record *)found)->used = true;
        ((record *)found)->live = false;
        ((record *)found)->owner = 0;
        ((record *)found)->from = ev->wish == OPEN ? ev->owner : 0;
        break;
    case DIBS__PUT_KNOWN:
        if (w->mutant == RETRY_ACQUIRES && found->asking)
            ask_store(w, at, s, (record *)found);
        break;
    case DIBS__PUT_FULL:
    case DIBS__PUT_ENDED:
        break;
    }
}

static void open_session(world *w, const event *ev, event *answer)
{
    daemon_ *d = &w->daemons[ev->daemon];

    if (d->count == SESSIONS) {
        w->wrong = "the simulation has no room for a session";
        return;
    }
    answer->session = d->count++;
    dibs__session_init(&d->sessions[answer->session].machine, SESSION_MS,
                       LEASES, clock_of(w, ev->daemon));
    if (ev->owner)
        put_lease(w, ev, answer);
    if (w->stream) {
        event push = *answer;

        push.kind = PUSH;
        later(w, 0, push);
    }
}

static void remove_lease(world *w, const event *ev)
{
    session *s = session_of(w, ev);
    record *fresh = unused(w, s);
    char id[16];

    snprintf(id, sizeof(id), "%d", ev->id);
    if (w->mutant == REMOVE_FORGOTTEN && !dibs__session_find(&s->machine, id))
        return;
    if (dibs__session_remove(&s->machine, &fresh->machine, id))
        fresh->used = true;
}

static void on_request(world *w, const event *ev)
{
    event answer = *ev;
    bool open = true;

    answer.kind = REPLY;
    answer.word = KEPT;
    answer.owner = 0;
    answer.valid_ms = 0;
    if (!w->daemons[ev->daemon].up)
        return;
    if (ev->wish == OPEN)
        open_session(w, ev, &answer);
    else if (ev->wish == BEAT)
        open = dibs__session_beat(&session_of(w, ev)->machine,
                                  clock_of(w, ev->daemon));
    else if (ev->wish == PUT)
        put_lease(w, ev, &answer);
    else
        remove_lease(w, ev);
    dibs__session_tick(&session_of(w, &answer)->machine,
                       clock_of(w, ev->daemon));
    open = open && session_of(w, &answer)->machine.end == DIBS__SESSION_OPEN;
    do_all(w, &answer);
    if (open)
        tell(w, ev, &answer);
    else
        answer.word = UNKNOWN_SESSION;
    if (!within(w, w->cut) && chance(w, 950))
        later(w, delay(w), answer);
}

/* What was sent before is acknowledged, unless there is a cut. */
static void on_push(world *w, const event *ev)
{
    session *s = session_of(w, ev);
    event push = *ev;

    if (!w->daemons[ev->daemon].up || s->machine.end != DIBS__SESSION_OPEN)
        return;
    if (!within(w, w->cut) &&
        !dibs__session_beat(&s->machine, clock_of(w, ev->daemon)))
        return;
    push.kind = PUSHED;
    push.id = w->id;
    tell(w, &push, &push);
    later(w, delay(w) + (within(w, w->cut) ? w->cut.until - w->now : 0), push);
    later(w, SESSION_MS / DIBS__SESSION_BEATS_PER_TTL * DIBSX_MS, *ev);
}

static void on_sweep(world *w, const event *ev)
{
    daemon_ *d = &w->daemons[ev->daemon];

    for (int i = 0; i < d->count && d->up; i++) {
        event at = {SWEEP, .daemon = ev->daemon, .session = i};

        dibs__session_tick(&d->sessions[i].machine, clock_of(w, ev->daemon));
        if (ev->daemon == 0 && w->now >= w->drains_at)
            dibs__session_finish(&d->sessions[i].machine,
                                 DIBS__SESSION_DRAINED);
        do_all(w, &at);
        if (!w->wrong)
            w->wrong = dibs__session_check(&d->sessions[i].machine);
    }
    if (ev->daemon == 0 && (w->now >= w->dies_at || w->now >= w->drains_at))
        d->up = false;
    later(w, SWEEP_MS * DIBSX_MS, *ev);
}

/* -- The client, as docs/serve.md has it. */

static void send_wish(world *w, wish what)
{
    event ev = {REQUEST,
                .daemon = w->at,
                .session = w->session,
                .wish = what,
                .id = w->id,
                .owner = what == OPEN ? w->token : 0,
                .t0 = clock_of(w, CLIENT)};

    w->unanswered++;
    if (!within(w, w->cut) && chance(w, 950))
        later(w, delay(w), ev);
}

static void move_on(world *w)
{
    w->at = w->dies_at < w->now || w->drains_at < w->now ? 1 : 1 - w->at;
    w->session = -1;
    w->unanswered = 0;
    w->anchor_at = -1;
}

static void next_id(world *w)
{
    w->id++;
    w->token = 0;
    w->removing = false;
    w->believe = -1;
}

static void on_turn(world *w, const event *ev)
{
    int64_t beat_ms = SESSION_MS / DIBS__SESSION_BEATS_PER_TTL;
    bool quiet = w->stream && w->token && !w->removing && w->anchor_at >= 0;

    if (within(w, w->stop)) {
        later(w, 100 * DIBSX_MS, *ev);
        return;
    }
    if (w->unanswered > 5 || w->now > w->moves_at) {
        w->moves_at = w->now > w->moves_at ? DIBSX_NEVER : w->moves_at;
        move_on(w);
    }
    if (chance(w, w->stream || !w->token ? 100 : 30)) {
        w->removing = true; /* belief ends before this is sent */
        w->believe = -1;
    }
    if (w->session < 0) {
        if (w->removing)
            next_id(w); /* at the daemon that was left, its session ends it */
        send_wish(w, OPEN);
    } else {
        send_wish(w, BEAT);
        send_wish(w, w->removing ? REMOVE : PUT);
    }
    later(w, span(w, beat_ms * 9 / 10, beat_ms * 11 / 10) * (quiet ? 15 : 1),
          *ev);
}

static void believe(world *w, dibsx_nsec until)
{
    if (until > w->believe && !w->removing)
        w->believe = until;
    w->believed++;
}

static void on_reply(world *w, const event *ev)
{
    bool fresh = ev->wish == OPEN && w->session < 0 && ev->id == w->id;

    if (within(w, w->stop)) {
        later(w, 100 * DIBSX_MS, *ev);
        return;
    }
    if (ev->daemon != w->at || (!fresh && ev->session != w->session))
        return;
    w->unanswered = 0;
    if (fresh)
        w->session = ev->session;
    if (ev->word == UNKNOWN_SESSION) {
        w->session = -1;
        return;
    }
    if (ev->wish == REMOVE && ev->id == w->id) {
        session_of(w, ev)->removed_below = w->id + 1;
        next_id(w);
        return;
    }
    if (ev->wish == BEAT) {
        w->anchor_at = w->mutant == ANCHOR_LATE ? clock_of(w, CLIENT) : ev->t0;
        w->anchor_clock = ev->clock;
        w->anchor_daemon = ev->daemon;
    }
    if (ev->id != w->id)
        return;
    if (ev->word == GONE) {
        next_id(w);
        return;
    }
    if (ev->owner)
        w->token = ev->owner;
    if (ev->valid_ms > 0)
        believe(w, (w->mutant == FROM_ANSWER ? clock_of(w, CLIENT) : ev->t0) +
                       ev->valid_ms * DIBSX_MS);
}

static void on_pushed(world *w, const event *ev)
{
    if (within(w, w->stop)) {
        later(w, 100 * DIBSX_MS, *ev);
        return;
    }
    if (ev->daemon != w->at || ev->session != w->session || ev->id != w->id)
        return;
    if (ev->owner && !w->removing)
        w->token = ev->owner;
    if (ev->word == GONE) {
        next_id(w);
    } else if (w->mutant == WHILE_OPEN && ev->owner) {
        believe(w, clock_of(w, CLIENT) + SESSION_MS * DIBSX_MS);
    } else if (w->anchor_at >= 0 && w->anchor_daemon == ev->daemon &&
               ev->until > 0) {
        believe(w, w->anchor_at + (ev->until - w->anchor_clock) / 100 * 99 -
                       2 * DIBSX_MS);
    }
}

/* -- The world. */

static void on_release(world *w, const event *ev)
{
    if (w->owner != ev->owner)
        return;
    w->owner = chance(w, 500) ? RIVAL : 0;
    w->until = clock_of(w, STORE) + span(w, 100, 8000);
}

static void handle(world *w, const event *ev)
{
    static void (*const handlers[])(world *, const event *) = {
        [CLIENT_TURN] = on_turn, [REQUEST] = on_request,
        [REPLY] = on_reply,      [PUSH] = on_push,
        [PUSHED] = on_pushed,    [SWEEP] = on_sweep,
        [ACQUIRE] = on_acquire,  [GRANTED] = on_granted,
        [RENEW] = on_renew,      [RENEWAL] = on_renewal,
        [RENEWED] = on_renewed,  [RELEASE] = on_release};

    handlers[ev->kind](w, ev);
}

static void check_session(world *w, const session *s)
{
    for (int i = 0; i < RECORDS; i++) {
        const record *re = &s->records[i];

        if (!re->used)
            continue;
        if (re->live && re->machine.stage != DIBS__STAGE_HELD &&
            re->machine.todo == DIBS__SESSION_NOTHING)
            w->wrong = "a daemon renews a lease that no client has";
        if (re->machine.stage == DIBS__STAGE_HELD &&
            strtol(re->machine.id, NULL, 10) < s->removed_below)
            w->wrong = "a lease is held that its client removed";
    }
}

static void check(world *w)
{
    bool free = w->owner <= 0 || clock_of(w, STORE) >= w->until;

    if (free && clock_of(w, CLIENT) < w->believe)
        w->wrong = "the client believes in a lease that a rival could have";
    for (int i = 0; i < DAEMONS; i++)
        for (int k = 0; k < w->daemons[i].count && w->daemons[i].up; k++)
            check_session(w, &w->daemons[i].sessions[k]);
}

static window draw_window(world *w, int64_t low_ms, int64_t a_ms, int64_t b_ms)
{
    const int64_t spans_ms[] = {0, 0, a_ms, b_ms};
    dibsx_nsec from = span(w, low_ms, 30000);

    return (window){from,
                    from + spans_ms[dibsx_prng_below(&w->prng, 4)] * DIBSX_MS};
}

static void begin_world(world *w)
{
    int how = (int)dibsx_prng_below(&w->prng, 3);

    for (int i = 0; i < CLOCKS; i++) {
        w->off[i] = span(w, 0, 1000000);
        w->ppm[i] = (int64_t)dibsx_prng_below(&w->prng, 3) * 5000 - 5000;
    }
    w->away = draw_window(w, 5000, 4000, 20000);
    w->stop = draw_window(w, 3000, 3000, 15000);
    w->cut = draw_window(w, 3000, 5000, 25000);
    w->dies_at = chance(w, 300) ? span(w, 5000, 40000) : DIBSX_NEVER;
    w->drains_at = chance(w, 200) ? span(w, 5000, 40000) : DIBSX_NEVER;
    w->moves_at = how == 2 ? span(w, 4000, 20000) : DIBSX_NEVER;
    w->stream = how == 1;
    w->session = -1;
    w->id = 1;
    w->believe = -1;
    w->anchor_at = -1;
    for (int i = 0; i < DAEMONS; i++) {
        w->daemons[i].up = true;
        later(w, 0, (event){.kind = SWEEP, .daemon = i});
    }
    later(w, 0, (event){.kind = CLIENT_TURN});
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    begin_world(w);
    while (!w->wrong && w->now < SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        handle(w, &ev);
        check(w);
    }
    return w->wrong;
}

static world the_world;
static int64_t believed, granted, moved; /* of all seeds */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    believed += the_world.believed;
    granted += the_world.granted;
    moved += the_world.moved;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s: %lld leases granted, %lld of them taken over, "
           "believed %lld times\n",
           (unsigned long long)seeds, SPAN_S, (long long)granted,
           (long long)moved, (long long)believed);
    if (seeds >= 10 && (moved == 0 || believed < (int64_t)seeds * 10)) {
        fprintf(stderr, "hardly any lease was believed in, or none moved\n");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
