/* breaker_main.c - clients of a circuit breaker in simulated time, on the rule of
 * meters: slow, lost and late requests, a store that is away, probes that never end,
 * clients that die, notices that are lost, late and repeated, and a service that fails at
 * times.
 *
 *     sim_breaker [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_breaker --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * What must hold, after every event (the numbers are those of breaker_machine.h):
 *   C1  it opens only for THRESHOLD bad calls that began under the version replaced;
 *   C2  it closes only for NEED good probes of the version replaced;
 *   C3  no more than PROBES permits are believed in, and a probe begins under one;
 *   C5  the store counts no more calls than were made;
 *   C4, C6  when all is well again, it closes for all, and all know the version. */
/* SPDX-License-Identifier: MIT */
#include "coord/breaker_machine.h"
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 3, CALLS = 3, EVENTS = 512, VERSIONS = 4096, GRANTS = 64 };
enum { SPAN_S = 60, HEALED_S = 40, DELAY_MS = 20, TIMEOUT_MS = 600 };
enum { THRESHOLD = 4, NEED = 2, PROBES = 2, RECOVERY_MS = 700, TTL_MS = 400 };
enum { SAMPLING_MS = 2000 };

typedef enum mutant {
    NO_MUTANT,
    ANY_VERSION,     /* a report is counted whatever its version */
    PUT_ANYWAY,      /* the state is written whatever its version */
    PERMIT_FOR_EVER, /* a permit has no end */
    OWN_LIMIT,       /* every client has its permits */
    OTHER_VERSION,   /* a permit is good for a probe of another generation */
    LATE_PERMIT,     /* a probe begins without a look at the time */
    WINDOW_STAYS,    /* the count does not begin anew with a version */
    REPORTED_AGAIN,  /* a report that had no answer is sent again */
    MUTANTS
} mutant;

typedef enum event_kind {
    CALL,
    CALL_OVER,
    SERVE,
    ANSWER,
    HEAR,
    WORK,
    TROUBLE,
    DEATH
} event_kind;
typedef enum step { METER, LOOK, PUT, ASK, RELEASE } step;

/* A request; late: its client has given it up. */
typedef struct request {
    step what;
    int client, call;
    uint64_t life; /* of the client, that sent it */
    dibsx_nsec sent_at;
    bool lost;
    dibs__meter report;
    dibs__breaker_act act;
    dibs__breaker_pass pass;
    char owner[DIBS_OWNER_SIZE];
    dibs_status rc;
    dibs__sums sums;
    uint64_t version;
    int64_t left_ms;
} request;

typedef struct event {
    event_kind kind;
    dibsx_nsec at;
    int client, call;
    uint64_t life;
    request rq;
    uint64_t version; /* HEAR: that, and what it shows */
    char shown[64];
} event;

typedef struct call {
    bool busy;
    dibs__breaker_pass pass;
    uint64_t version; /* under which it began */
    dibs__breaker_state state;
} call;

typedef struct peer {
    dibs__breaker machine;
    uint64_t life;
    bool working;  /* a request of the worker is under way */
    uint64_t seen; /* the last version that it knew */
    call calls[CALLS];
} peer;

typedef struct grant {
    char owner[DIBS_OWNER_SIZE];
    dibsx_nsec until;
} grant;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    dibsx_nsec now, away_until, bad_until;
    event events[EVENTS];
    size_t count;
    uint64_t owners;

    /* The store. */
    uint64_t version;
    dibs__breaker_state state;
    dibsx_nsec state_until;
    dibs__meter_window window;
    grant grants[GRANTS];

    /* The truth, by version. */
    int64_t bad[VERSIONS], good[VERSIONS], probed[VERSIONS];
    int64_t opened, closed, probes, shown;
    peer peers[CLIENTS];
    const char *wrong;
} world;

#include "events.h"
#include "luck.h"

static bool healed(const world *w)
{
    return w->now >= HEALED_S * DIBSX_SEC;
}

static void
add_plain(world *w, event_kind kind, dibsx_nsec at, int client, int nth)
{
    event ev = {.kind = kind, .at = at, .client = client, .call = nth};

    ev.life = w->peers[client].life;
    add(w, ev);
}

/* Some requests get lost; some are done long after their client gave them up. */
static void send(world *w, const request *rq)
{
    bool bad = !healed(w) && chance(w, 30);
    event ev = {.kind = SERVE, .client = rq->client, .rq = *rq};

    ev.rq.sent_at = w->now;
    ev.rq.life = w->peers[rq->client].life;
    ev.rq.rc = DIBS_UNKNOWN;
    ev.at = w->now + span(w, 0, DELAY_MS);
    if (bad) {
        event given_up = ev;

        ev.rq.lost = true;
        ev.at = w->now + span(w, 0, 3000);
        given_up.kind = ANSWER;
        given_up.at = w->now + TIMEOUT_MS * DIBSX_MS;
        add(w, given_up);
        if (chance(w, 500))
            return;
    }
    add(w, ev);
}

static void expire_value(world *w)
{
    if (w->version != 0 && w->now >= w->state_until) {
        w->version = 0;
        w->state = DIBS__BREAKER_CLOSED;
    }
}

/* The version as the truth has it: numbers of an hour, since the value outlives it. */
static void serve_meter(world *w, request *rq)
{
    dibs__meter report = rq->report;
    int64_t left_ms = (w->state_until - w->now) / DIBSX_MS;

    if (w->mutant == ANY_VERSION)
        report.version = w->version;
    rq->sums = (dibs__sums){.version = w->version,
                            .expires_ms = w->version ? left_ms : -1};
    snprintf(rq->sums.state, sizeof(rq->sums.state), "%s",
             w->version ? dibs__breaker_text(w->state) : "");
    rq->rc = report.version == w->version ? DIBS_OK : DIBS_STALE;
    if (rq->rc != DIBS_OK)
        return;
    if (w->mutant == WINDOW_STAYS)
        w->window.version = report.version;
    (void)dibs__meter_add(&w->window, &report, w->now / DIBSX_MS, &rq->sums);
    if (w->state == DIBS__BREAKER_CLOSED
            ? rq->sums.bad > w->bad[w->version]
            : rq->sums.good > w->probed[w->version])
        w->wrong = "C5: more calls are counted than were made";
}

/* Notices get lost, come late, out of order and twice. */
static void tell_client(world *w, int client, const dibs__breaker_act *act)
{
    event ev = {.kind = HEAR, .client = client, .version = w->version};

    ev.life = w->peers[client].life;
    if (chance(w, 900))
        snprintf(ev.shown, sizeof(ev.shown), "%lld %s", (long long)act->ttl_ms,
                 dibs__breaker_text(act->state));
    do {
        ev.at = w->now + span(w, 0, chance(w, 50) ? 3000 : DELAY_MS);
        if (chance(w, 900))
            add(w, ev);
    } while (chance(w, 50));
}

static void serve_put(world *w, request *rq)
{
    rq->version = w->version;
    rq->rc = DIBS_STALE;
    if (rq->act.version != w->version && w->mutant != PUT_ANYWAY)
        return;
    if (rq->act.state == DIBS__BREAKER_OPEN &&
        w->state == DIBS__BREAKER_CLOSED && w->bad[w->version] < THRESHOLD)
        w->wrong = "C1: it opens without bad calls of its version";
    if (rq->act.state == DIBS__BREAKER_CLOSED && w->probed[w->version] < NEED)
        w->wrong = "C2: it closes without good probes of its version";
    w->opened += rq->act.state == DIBS__BREAKER_OPEN;
    w->closed += rq->act.state == DIBS__BREAKER_CLOSED;
    w->state = rq->act.state;
    w->version = w->version + 1 + (uint64_t)w->opened % 2;
    w->state_until = dibsx_after_ms(w->now, rq->act.ttl_ms);
    rq->version = w->version;
    rq->rc = DIBS_OK;
    if (w->version >= VERSIONS - 2)
        w->wrong = "the simulation has no room for a version";
    for (int i = 0; i < CLIENTS; i++)
        tell_client(w, i, &rq->act);
}

static grant *find_grant(world *w, const char *owner)
{
    for (size_t i = 0; i < GRANTS; i++)
        if (w->grants[i].until > w->now &&
            strcmp(w->grants[i].owner, owner) == 0)
            return &w->grants[i];
    return NULL;
}

static void serve_ask(world *w, request *rq)
{
    dibsx_nsec first = DIBSX_NEVER;
    size_t valid = 0, free_at = GRANTS;

    for (size_t i = 0; i < GRANTS; i++)
        if (w->grants[i].until <= w->now) {
            free_at = i;
        } else {
            valid++;
            if (w->grants[i].until < first)
                first = w->grants[i].until;
        }
    rq->rc = DIBS_BUSY;
    rq->left_ms = first == DIBSX_NEVER ? TTL_MS : (first - w->now) / DIBSX_MS;
    if ((valid >= PROBES && w->mutant != OWN_LIMIT) || free_at == GRANTS)
        return;
    rq->rc = DIBS_OK;
    memcpy(w->grants[free_at].owner, rq->owner, sizeof(rq->owner));
    w->grants[free_at].until = w->mutant == PERMIT_FOR_EVER
                                   ? DIBSX_NEVER
                                   : dibsx_after_ms(w->now, TTL_MS);
}

static void serve(world *w, const event *ev)
{
    event answer = *ev;
    request *rq = &answer.rq;
    grant *held;

    expire_value(w);
    if (w->now < w->away_until) {
        rq->rc = DIBS_UNAVAIL;
    } else if (rq->what == METER || rq->what == LOOK) {
        serve_meter(w, rq);
    } else if (rq->what == PUT) {
        serve_put(w, rq);
    } else if (rq->what == ASK) {
        serve_ask(w, rq);
    } else {
        held = find_grant(w, rq->owner);
        rq->rc = DIBS_OK;
        if (held)
            held->until = 0;
    }
    if (rq->lost)
        return;
    answer.kind = ANSWER;
    answer.at = w->now + (chance(w, 20) ? span(w, 0, TIMEOUT_MS - DELAY_MS)
                                        : span(w, 0, DELAY_MS));
    add(w, answer);
}

/* The worker of a client: one request at a time. */
static void work(world *w, int client)
{
    peer *p = &w->peers[client];
    request rq = {.client = client};

    if (p->working)
        return;
    switch (dibs__breaker_next(&p->machine, w->now, &rq.act)) {
    case DIBS__BREAKER_SLEEP:
        return;
    case DIBS__BREAKER_EAR:
        dibs__breaker_eared(&p->machine, w->now, w->now,
                            w->now < w->away_until ? DIBS_UNAVAIL : DIBS_OK);
        return;
    case DIBS__BREAKER_REPORT:
        rq.what = METER;
        rq.report = rq.act.report;
        break;
    case DIBS__BREAKER_PUT:
        rq.what = PUT;
        break;
    case DIBS__BREAKER_RELEASE:
        rq.what = RELEASE;
        memcpy(rq.owner, rq.act.permit.owner, sizeof(rq.owner));
        break;
    }
    p->working = true;
    send(w, &rq);
}

static void hear(world *w, const event *ev)
{
    peer *p = &w->peers[ev->client];

    if (ev->life != p->life)
        return;
    w->shown += ev->shown[0] && ev->version > p->machine.version;
    dibs__breaker_shown(&p->machine, ev->version, ev->shown, w->now);
    work(w, ev->client);
}

static void begin_call(world *w, int client, int nth)
{
    peer *p = &w->peers[client];
    call *c = &p->calls[nth];

    c->version = p->machine.version;
    c->state = p->machine.state;
    w->probes += c->pass.permit != 0;
    /* Some callers never say how it ended. */
    if (chance(w, 20))
        c->busy = false;
    else
        add_plain(w, CALL_OVER, w->now + span(w, 1, 150), client, nth);
}

/* C3, at the moment at which a probe begins. */
static void check_probe(world *w, peer *p, uint64_t id)
{
    const dibs__breaker_permit *pm = dibs__breaker_permit_of(&p->machine, id);
    size_t believed = 0;

    if (pm->gen != p->machine.gen)
        w->wrong = "C3: a probe begins in another generation than its permit";
    if (pm->own)
        return;
    if (!find_grant(w, pm->owner))
        w->wrong = "C3: a probe begins without a permit";
    for (size_t i = 0; i < CLIENTS; i++)
        for (size_t k = 0; k < DIBS__BREAKER_PERMITS; k++) {
            const dibs__breaker_permit *at = &w->peers[i].machine.permits[k];

            believed += at->use == DIBS__PERMIT_PROBING && !at->own &&
                        at->valid_until > w->now;
        }
    if (believed > PROBES)
        w->wrong = "C3: more permits are believed in than there are";
}

static void try_call(world *w, int client, int nth)
{
    peer *p = &w->peers[client];
    call *c = &p->calls[nth];
    request rq = {.client = client, .call = nth};
    dibs__breaker_permit *pm;

    c->busy = true;
    switch (dibs__breaker_enter(&p->machine, w->now, &c->pass)) {
    case DIBS__ENTER_PASS:
        if (c->pass.permit)
            check_probe(w, p, c->pass.permit);
        begin_call(w, client, nth);
        break;
    case DIBS__ENTER_REFUSED:
        c->busy = false;
        break;
    case DIBS__ENTER_LOOK:
        rq.what = LOOK;
        dibs__breaker_report(&p->machine, w->now, &rq.report);
        send(w, &rq);
        break;
    case DIBS__ENTER_ASK:
        pm = dibs__breaker_permit_of(&p->machine, c->pass.permit);
        snprintf(pm->owner, sizeof(pm->owner), "%llu",
                 (unsigned long long)++w->owners);
        rq.what = ASK;
        rq.pass = c->pass;
        memcpy(rq.owner, pm->owner, sizeof(rq.owner));
        send(w, &rq);
        break;
    }
}

static void answer_ask(world *w, const request *rq)
{
    peer *p = &w->peers[rq->client];
    call *c = &p->calls[rq->call];
    dibs__breaker_permit *pm =
        dibs__breaker_permit_of(&p->machine, rq->pass.permit);
    dibsx_nsec until = w->mutant == LATE_PERMIT
                           ? w->now + TTL_MS * DIBSX_MS
                           : rq->sent_at + TTL_MS * DIBSX_MS;
    dibs__enter_todo todo;

    if (w->mutant == OTHER_VERSION && pm)
        pm->gen = p->machine.gen;
    todo = dibs__breaker_answered(&p->machine, &rq->pass, w->now, rq->rc, until,
                                  rq->left_ms);
    c->pass = rq->pass;
    if (w->mutant == OTHER_VERSION && todo == DIBS__ENTER_PASS)
        c->pass.gen = p->machine.gen;
    c->busy = todo == DIBS__ENTER_PASS;
    if (!c->busy)
        return;
    check_probe(w, p, rq->pass.permit);
    begin_call(w, rq->client, rq->call);
}

/* Of a client that has died meanwhile nobody hears. */
static void answer(world *w, const event *ev)
{
    const request *rq = &ev->rq;
    peer *p = &w->peers[rq->client];

    if (rq->life != p->life)
        return;
    if (rq->what == ASK) {
        answer_ask(w, rq);
        return;
    }
    if (rq->what == LOOK || rq->what == METER) {
        if (w->mutant == REPORTED_AGAIN && rq->rc == DIBS_UNKNOWN &&
            rq->report.version == p->machine.version &&
            p->machine.state == DIBS__BREAKER_CLOSED) {
            p->machine.bad += rq->report.bad;
            p->machine.good += rq->report.good;
        }
        dibs__breaker_metered(&p->machine, rq->sent_at, w->now, rq->rc,
                              &rq->sums);
    }
    if (rq->what == LOOK) {
        p->calls[rq->call].busy = false;
        return;
    }
    p->working = false;
    if (rq->what == PUT)
        dibs__breaker_put_over(&p->machine, &rq->act, w->now, rq->rc,
                               rq->version);
    else if (rq->what == RELEASE)
        dibs__breaker_released(&p->machine, rq->act.permit.id, w->now);
    work(w, rq->client);
}

/* What counts is what the call was begun as; a call counts as made if the client
 * still knows that version. */
static void end_call(world *w, const event *ev)
{
    peer *p = &w->peers[ev->client];
    call *c = &p->calls[ev->call];
    bool good =
        healed(w) || (w->now >= w->bad_until ? chance(w, 990) : chance(w, 100));

    if (ev->life != p->life || !c->busy)
        return;
    if (c->pass.permit == 0 && c->state == DIBS__BREAKER_CLOSED) {
        w->bad[c->version] += !good;
        w->good[c->version] += good;
    } else if (c->pass.permit != 0) {
        const dibs__breaker_permit *pm =
            dibs__breaker_permit_of(&p->machine, c->pass.permit);

        w->probed[c->version] += good && pm && !pm->own;
    }
    dibs__breaker_left(&p->machine, &c->pass, good, false, w->now);
    c->busy = false;
}

static void begin_peer(world *w, int client)
{
    static const dibs__breaker_rules rules = {.threshold = THRESHOLD,
                                              .min_calls = 10,
                                              .sampling_ms = SAMPLING_MS,
                                              .recovery_ms = RECOVERY_MS,
                                              .probe_ttl_ms = TTL_MS,
                                              .probes = PROBES,
                                              .need = NEED,
                                              .min_clients = 1};
    peer *p = &w->peers[client];
    uint64_t life = p->life + 1;

    memset(p, 0, sizeof(*p));
    p->life = life;
    dibs__breaker_init(&p->machine, &rules, true, dibsx_prng_next(&w->prng));
    add_plain(w, WORK, w->now, client, 0);
    for (int i = 0; i < CALLS; i++)
        add_plain(w, CALL, w->now + span(w, 0, 100), client, i);
}

static void make_trouble(world *w)
{
    if (healed(w)) {
        w->away_until = w->bad_until = 0;
        return;
    }
    if (chance(w, 600))
        w->bad_until = w->now + span(w, 200, 4000);
    if (chance(w, 300))
        w->away_until = w->now + span(w, 1, 3000);
    if (chance(w, 300))
        for (int i = 0; i < CLIENTS; i++)
            dibs__breaker_missed(&w->peers[i].machine, w->now);
    add_plain(w, TROUBLE, w->now + span(w, 500, 5000), 0, 0);
}

static void handle(world *w, const event *ev)
{
    peer *p = &w->peers[ev->client];

    switch (ev->kind) {
    case CALL:
        if (ev->life != p->life)
            return;
        if (!p->calls[ev->call].busy)
            try_call(w, ev->client, ev->call);
        work(w, ev->client);
        add_plain(w, CALL, w->now + span(w, 5, 120), ev->client, ev->call);
        break;
    case CALL_OVER:
        end_call(w, ev);
        work(w, ev->client);
        break;
    case SERVE:
        serve(w, ev);
        break;
    case ANSWER:
        answer(w, ev);
        break;
    case HEAR:
        hear(w, ev);
        break;
    case WORK:
        if (ev->life != p->life)
            return;
        work(w, ev->client);
        add_plain(w, WORK, w->now + span(w, 1, 50), ev->client, 0);
        break;
    case TROUBLE:
        make_trouble(w);
        break;
    case DEATH:
        if (healed(w))
            return;
        begin_peer(w, ev->client);
        add_plain(w, DEATH, w->now + span(w, 2000, 15000), ev->client, 0);
        break;
    }
}

static void check(world *w)
{
    for (int i = 0; i < CLIENTS && !w->wrong; i++) {
        peer *p = &w->peers[i];

        w->wrong = dibs__breaker_check(&p->machine, w->now);
        if (p->machine.version < p->seen)
            w->wrong = "C6: a client goes back to a state that is over";
        p->seen = p->machine.version;
    }
}

static void check_end(world *w)
{
    for (int i = 0; i < CLIENTS && !w->wrong; i++) {
        if (w->peers[i].machine.version != w->version)
            w->wrong = "C6: a client does not know the version";
        else if (!dibs__breaker_passes(&w->peers[i].machine))
            w->wrong = "C4: it is still open when all is well";
    }
}

static const char *run_seed(world *w, uint64_t seed, mutant planted)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    w->mutant = planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    for (int i = 0; i < CLIENTS; i++) {
        begin_peer(w, i);
        add_plain(w, DEATH, w->now + span(w, 2000, 15000), i, 0);
    }
    add_plain(w, TROUBLE, w->now + span(w, 100, 3000), 0, 0);
    while (!w->wrong && w->now < SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        handle(w, &ev);
        check(w);
    }
    if (!w->wrong)
        check_end(w);
    return w->wrong;
}

static world the_world;
static int64_t opened, closed, probes, shown; /* of all seeds */

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    const char *wrong = run_seed(&the_world, seed, (mutant)planted);

    *at = the_world.now;
    opened += the_world.opened;
    closed += the_world.closed;
    probes += the_world.probes;
    shown += the_world.shown;
    return wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s: opened %lld times, closed %lld times, %lld "
           "probes\n",
           (unsigned long long)seeds, SPAN_S, (long long)opened,
           (long long)closed, (long long)probes);
    if (seeds >= 10 && (opened == 0 || closed == 0 || shown == 0)) {
        fprintf(stderr, "it never opened, never closed, or showed nothing\n");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
