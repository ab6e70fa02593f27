/* queue_sim.h - the world of sim_queue: its store, its clients and what happens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SIM_QUEUE_H
#define DIBS_SIM_QUEUE_H

#include "base/rand.h"
#include "coord/producer_machine.h"
#include "store/deliver.h"

enum {
    CLIENTS = 3,
    HAND = 16,
    LANES = 64,
    ITEMS = 512,
    PUSHES = 512,
    PUSHERS = 256,
    EVENTS = 1024,
    SPAN_S = 60
};
enum { TTL_MS = 1500, PLACE_MS = 500 };

/* The rules of store/deliver.h, each taken out. */
typedef enum mutant {
    NO_MUTANT,
    NO_NUMBER,         /* (1) a request is done as often as it comes */
    NO_NUMBER_PUSH,    /* (1) a push too */
    PUSH_BY_ITEM,      /* (1) a push is known as long as its item lives */
    NO_WAIT_ANSWER,    /* (2) the next number is sent without an answer */
    NO_TOKEN_LANE,     /* (3) a token counts also when its lane is gone */
    VALID_FROM_ANSWER, /* (4) */
    NO_BELIEF_END,     /* (5) */
    NO_GAP,            /* (6) */
    NO_STAMP,          /* (6) only numbers that skip one are noticed */
    NO_UNHEARD,        /* (7) */
    REPEAT_EATS,       /* (7) a repeat tells it for good */
    HEARD_BY_ITEM,     /* (7) not by the whole token */
    NO_RING_VALID,     /* (8) */
    NO_RING_FENCE,     /* (8) */
    NO_REPLACE,        /* (8) */
    SPLIT_PLACE,       /* (9) a place is given in a step of its own */
    NO_HAND,           /* (9) */
    COUNTER,           /* (11) without the clock */
    OLD_TEND,          /* an answer to a tend that was sent before counts */
    MUTANTS
} mutant;

typedef enum kind {
    WAKE,
    PRODUCE,
    RETRY,
    DEATH,
    SNAPSHOT,
    RESTART,
    RING,
    ANSWER,
    TENDED,
    PUSHED,
    SERVE, /* from here on: steps at the store */
    TEND_LANE,
    LEAVE_LANE,
    PUSH_ITEM,
    GIVE_PLACE /* SPLIT_PLACE */
} kind;

typedef struct request {
    int who;
    uint64_t life, try;
    int64_t sent_us;
    uint64_t lane, number, seen;
    int64_t span_ms;
    uint32_t want;
    bool places;
    dibs__token heard[HAND];
    size_t heard_count;
    dibs__settlement settle[HAND];
    size_t settle_count;

    dibs_status rc; /* the answer */
    uint64_t stamp;
    dibs__token told[2 * HAND];
    size_t told_count;
} request;

typedef struct event {
    kind kind;
    int64_t at_us;
    bool loses; /* the request is done, its answer is lost */
    request rq;
    dibs__token token;
    uint64_t push;
    bool delayed;
    int32_t priority;
} event;

typedef struct client {
    uint64_t life, tries;
    dibs__consumer machine;
    dibs__lane_item hand[HAND]; /* without an id: none */
    request flying;
} client;

typedef struct producer {
    dibs__producer machine;
    uint64_t push, lanes;
    bool delayed;
    int32_t priority;
} producer;

/* What has become of a push, over all that happened. */
typedef struct pushed {
    uint64_t id, fence; /* the highest */
    unsigned made, acked, told;
    bool answered, died;
} pushed;

typedef struct store {
    dibs__queue_head head;
    uint64_t watermark;
    dibs__lane lanes[LANES];
    size_t lane_count;
    dibs__item items[ITEMS];
    size_t item_count;
    dibs__pusher pushers[PUSHERS];
    size_t pusher_count;
} store;

typedef struct world {
    uint64_t seed;
    mutant mutant;
    dibsx_prng prng;
    int64_t now_us;
    event events[EVENTS];
    size_t event_count;
    client clients[CLIENTS];
    producer producer;
    store store, saved;
    bool rolled; /* the store has gone back */
    pushed pushes[PUSHES];
    uint64_t push_count, acked_total;
    const char *wrong;
} world;

/* Does the step of an event, and writes the answer into it. */
void sim_store_serve(world *w, event *ev);
void sim_store_save(world *w);
void sim_store_restore(world *w);

/* NULL when there is none. */
dibs__item *sim_item(world *w, uint64_t id);
dibs__lane *sim_lane(world *w, uint64_t lane);
void sim_note_told(world *w, dibs__token token);

/* In queue_main.c. */
void sim_ring(world *w, uint64_t lane, dibs__token token);
void sim_add(world *w, event ev);

#endif
