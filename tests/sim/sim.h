/* sim.h - a simulated world: many lease machines, one store, a bad network.
 *
 * Everything is drawn from one seed. Time is the world's own and jumps from
 * event to event. Every client has a clock of its own, which starts anywhere and
 * runs a little fast or slow; the store's wall clock, from which fences come,
 * is set forwards and back at will. Requests, answers and notices are delayed,
 * lost before they took effect, lost after, and delivered to clients that have
 * long given up. Clients pause, crash, and start again. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_SIM_H
#define DIBS_TESTS_SIM_H

#include "base/clock.h"
#include "base/rand.h"
#include "core/machine/lease.h"
#include "store/grant.h"

enum { CLIENTS_MAX = 8, EVENTS_MAX = 4096, GONE_MAX = 128 };

typedef enum event_kind {
    EVENT_REQUEST, /* a request reaches the store */
    EVENT_ANSWER,  /* its answer reaches the client */
    EVENT_TIMEOUT, /* ... or the client stops waiting for it */
    EVENT_NOTICE,  /* a notice reaches the client */
    EVENT_WAKE,    /* a client looks at its clock */
    EVENT_WALL     /* somebody sets the store's wall clock */
} event_kind;

typedef enum request_kind { ASK, RENEW, RELEASE } request_kind;

typedef struct event {
    dibsx_nsec at; /* world time */
    uint64_t order;
    event_kind kind;
    int client;
    uint64_t request; /* number, so that late answers are told apart */
    request_kind what;
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    int64_t ttl_ms;
    bool queue;
    bool unanswered;
    dibsx_nsec sent_at; /* on the client's clock */
    dibs_status rc;
    dibs__answer ans;
    int64_t left_ms;
} event;

typedef struct client {
    int number;
    dibs__lease lease;
    dibs__mode mode;
    uint32_t permits;
    bool waits; /* queues up, or tries once */
    int64_t ttl_ms;
    uint64_t asking; /* the request that it waits for; 0: none */
    uint64_t renewing;
    uint64_t wake; /* the wake-up that counts */
    double rate;   /* of its clock against the world's */
    dibsx_nsec offset;
    dibsx_nsec paused_until; /* world time */
    dibsx_nsec give_up_at;   /* on its own clock, as all below */
    dibsx_nsec work_until;
    dibsx_nsec next_at; /* when it starts, or asks again */
    uint64_t acquisitions;
} client;

typedef struct world {
    uint64_t seed;
    dibsx_prng prng;
    dibsx_nsec now;
    dibsx_nsec end;
    bool healed;     /* the network is good from here on */
    int64_t wall_us; /* added to world time for the store's wall clock */
    int loss;        /* of 1,000 messages */
    int late;        /* of 1,000 messages */
    int notice_loss;
    uint32_t capacity; /* of permits; 0: a lock */
    dibs__roll roll;
    client clients[CLIENTS_MAX];
    int client_count;
    event events[EVENTS_MAX];
    size_t event_count;
    uint64_t last_order;
    uint64_t last_request;
    uint64_t last_fence; /* the highest that was ever believed */
    char gone[GONE_MAX][DIBS_OWNER_SIZE]; /* who has left, of late */
    size_t gone_count;
    uint64_t acquired;
    uint64_t lost;
    uint64_t notified;
    uint64_t crashes;
    bool trace;
} world;

/* Chances and spans from the world's seed. */
bool sim_chance(world *w, int of_thousand);
dibsx_nsec sim_span(world *w, int64_t from_ms, int64_t to_ms);

/* Events: what happens when. */
void sim_add(world *w, const event *ev);
event sim_next(world *w);

/* The network and the store. */
uint64_t sim_send(world *w, client *cl, event *ev);
void sim_request(world *w, const event *ev);

/* The clients. */
dibsx_nsec sim_clock(const world *w, const client *cl);
dibsx_nsec sim_world_time(const client *cl, dibsx_nsec at);
void sim_client_start(world *w, int number);
void sim_client_event(world *w, const event *ev);

/* What must hold after every event. Aborts with the seed otherwise. */
void sim_check(world *w);
void sim_note(const world *w, const client *cl, const char *what);

#endif
