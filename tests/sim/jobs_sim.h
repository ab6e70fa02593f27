/* jobs_sim.h - the world of sim_jobs: its store, its nodes and what happens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SIM_JOBS_H
#define DIBS_SIM_JOBS_H

#include "base/rand.h"
#include "jobs/task.h"
#include "jobs/tick.h"
#include "jobs/wake.h"

enum {
    NODES = 3,
    JOBS = 7,
    TASKS = 4,
    VALUES = 512,
    ENTRIES = 1024,
    EVENTS = 2048,
    TREES = 256,
    LEASES = 512,
    RUNS = 1024,
    STEPS = 5,
    SPAN_S = 40
};
/* LATE_MS: all nodes may stand still for most of it. */
enum { TTL_MS = 3000, MARGIN_MS = 60, LIMIT_MS = 300, LATE_MS = 16000 };
/* Looks of a node by itself, and how soon what is due or ready is found where nothing
 * fails. */
enum { LOOK_MS = 4000, LISTEN_MS = 3000, AGAIN_MS = 100, CALM_MS = 1500 };

/* The rules of the engine, each taken out. */
typedef enum mutant {
    NO_MUTANT,
    NO_VERSION,    /* a commit does not compare versions */
    NO_CLOCK,      /* ... nor the store's clock */
    NO_LATE,       /* ... nor the last moment */
    SPLIT_MARK,    /* mark and run of a tick are two commits */
    EARLY_SETTLES, /* EARLY ends a claim of which a try had no answer */
    NO_REPEAT,     /* a claim without an answer is forgotten */
    NO_REREAD,     /* a result that meets another version is dropped */
    NO_HOLD,       /* a claim with too little of the lease left is forgotten */
    START_FIRST,   /* a tree starts when the claim is sent */
    NO_GUARD,      /* a tree lives on when belief has ended */
    NO_LEASE,      /* a run is taken over from a node that lives */
    NODE_LIST,     /* dead nodes are found in a list, not by what is live */
    AT_ONCE,       /* the run that follows another is READY at once */
    END_FIRST,     /* the end is committed before the tree is dead */
    ANY_NONCE,     /* a result counts for whatever attempt is the current one */
    ANY_FENCE,     /* a takeover takes all steps of the run */
    NO_STATE,      /* the end of a run does not let the next one begin */
    FIRST_ONLY,    /* a tick is left to the first by rank, dead or alive */
    RING_ALONE,    /* a node looks when the bell rings, and at no other time */
    NO_OWN_LOOK,   /* ... or at the next number, but not by itself */
    NO_RINGS,      /* a node does not listen */
    MUTANTS
} mutant;

/* Indexes that matter here. */
typedef enum index_id {
    DUE,
    READY,
    LIVE,
    RETRY,
    DEADLINE,
    RESUME,
    INDEXES
} index_id;

typedef struct sim_value {
    char key[DIBS__PLACE_SIZE];
    uint32_t hash;
    uint64_t version;
    char *data;
    size_t len;
    dibsx_nsec ended_at; /* of a run that has ended: 0 for others */
} sim_value;

typedef struct sim_entry {
    index_id index;
    char member[DIBS__PLACE_SIZE];
    int64_t at;
    dibsx_nsec since; /* when it was entered */
} sim_entry;

/* All that was ever done for a run. */
typedef struct sim_run {
    char id[DIBS__RUN_ID_SIZE];
    uint32_t hash;
    uint32_t starts[STEPS];
} sim_run;

typedef struct sim_lease {
    uint64_t fence;
    int who;
    dibsx_nsec until;
    bool struck; /* NODE_LIST */
} sim_lease;

/* A process tree. It dies with its node's belief, whatever becomes of the node. */
typedef struct sim_tree {
    bool alive;
    uint64_t serial;
    char run[DIBS__RUN_ID_SIZE];
    char step[DIBS__JOB_NAME_SIZE];
    int job, who;
    uint64_t fence;
    dibsx_nsec ends_at, valid_until;
    bool guarded; /* it was killed as belief ended, or its node died */
    bool fails, cancelled;
} sim_tree;

/* An intent on its way: a repeat is the same. */
typedef struct parcel {
    int refs;
    dibs__intent in;
    bool is_end; /* a claimant tells the end of an attempt */
} parcel;

typedef struct sim_task {
    bool used;
    uint64_t serial, request; /* 0: none is under way */
    dibs__task task;
    int job;
    parcel *parcel;
    uint64_t tree; /* 0: none */
    dibs__outcome outcome;
} sim_task;

typedef struct sim_node {
    uint64_t fence, life, request;
    char id[DIBS__NODE_SIZE];
    dibsx_nsec valid_until, renew_at, stopped_until, noise_until;
    int64_t noise_us;
    dibs__wake wake;
    sim_task tasks[TASKS];
} sim_node;

typedef enum kind {
    WAKE,
    SERVE,
    ANSWER,
    GIVE_UP,
    RENEW,
    RENEWED,
    LOCKED,
    RING,
    HAND,
    DEATH,
    STOP,
    JUMP
} kind;

typedef struct event {
    kind kind;
    dibsx_nsec at;
    int who;
    uint64_t life, task, request, fence;
    dibsx_nsec sent_at;
    parcel *parcel;
    dibs_status rc;
    bool taken;
} event;

typedef struct world {
    mutant mutant;
    bool calm;  /* nothing fails */
    bool quiet; /* no job has a schedule; callers start runs now and then */
    bool clear; /* rings are not lost, late or repeated */
    dibsx_nsec bell_down_until;
    uint64_t rings, lost_rings, looks;
    uint64_t at_ticks; /* deaths that are planned for a tick */
    dibsx_prng prng;
    dibsx_nsec now;
    int64_t shift_us; /* of the store's clock */
    event events[EVENTS];
    size_t count;
    sim_node nodes[NODES];
    sim_value values[VALUES];
    sim_entry entries[ENTRIES];
    size_t entry_count;
    sim_lease leases[LEASES];
    size_t lease_count;
    sim_tree trees[TREES];
    sim_run runs[RUNS];
    size_t run_count;
    uint64_t version, fence, serial;
    uint64_t ticks[JOBS]; /* runs that ticks have made */
    uint64_t ended[DIBS__STATES];
    uint64_t taken_over, held, refused;
    int64_t due_us[JOBS]; /* as it was seen last; 0: it was not due */
    dibsx_nsec due_since[JOBS];
    const char *wrong;
} world;

/* jobs_main.c */
bool chance(world *w, unsigned of_1000);
dibsx_nsec span(world *w, int64_t low_ms, int64_t high_ms);

/* jobs_bell.c: rings of the board's bell, and when a node looks for them. */
void ring_nodes(world *w);
void hear_ring(world *w, int who);
void listen_again(world *w, int who);
void begin_look(world *w, int who);
void look_within(world *w, int who, int64_t ms);
void look_at_number(world *w, int who, int64_t at_us);

/* jobs_check.c */
void check_due(world *w);
void check_ready(world *w);
void check_live(world *w);
void check_states(world *w);

/* jobs_tree.c */
void start_tree(world *w, int who, sim_task *task);
sim_tree *find_tree(world *w, uint64_t serial);
void end_trees(world *w);

/* jobs_store.c */
extern dibs__job sim_jobs[JOBS];
void open_jobs(void);
int find_job(const char *name);
int64_t wall_us(const world *w);
sim_value *find_value(world *w, const char *part, const char *name);
dibs_status do_commit(world *w, parcel *sent, int who, uint64_t fence);
void free_values(world *w);
sim_run *find_run(world *w, const char *id);
sim_lease *find_lease(world *w, uint64_t fence);
bool first_entry(const world *w, index_id index, int64_t from, size_t skip,
                 sim_entry *out);
bool read_run(world *w, const char *id, dibs__run *run);
bool read_state(world *w, int job, dibs__job_state *state);

#endif
