/* node_inside.h - the parts of a node, for each other. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_INSIDE_H
#define DIBS_NODE_NODE_INSIDE_H

#include "base/clock.h"
#include "jobs/board_stage.h"
#include "jobs/node_record.h"
#include "jobs/setback.h"
#include "jobs/store_clock.h"
#include "jobs/wake.h"
#include "node/attempt_ops.h"
#include "node/node.h"
#include "node/node_marks.h"
#include "node/node_seen.h"
#include <dibs/lock.h>

struct dibs__node {
    const dibs__node_opts *opts;
    const dibs__board *board;
    dibs__board own; /* ... which is this one, with its cache */
    const dibs__attempt_ops *ops;
    void *executor;   /* of the ops */
    dibs_lock *lease; /* NULL: not joined */
    char id[DIBS__NODE_SIZE];
    uint64_t fence;
    int64_t joined_us;
    dibs__node_task *tasks; /* as many as slots */
    dibs__node_marks marks;
    unsigned stops;      /* signals that asked it to stop */
    bool draining;       /* nothing new is taken */
    dibsx_nsec drain_at; /* commands are asked to end */
    bool drained;        /* they were */
    bool killed;         /* ... at once */
    dibs__wake wake;
    dibs__setback setback;
    dibs__store_clock clock;
    dibs_bell *bell;   /* of the board; NULL: the store has none */
    dibsx_nsec own_at; /* when to read the records of its own commands */
    dibsx_nsec join_at;
    dibsx_nsec record_at;           /* when its record is written again */
    struct dibs__node_zones *zones; /* NULL: no new zone data */
    char tzdata[DIBS__TZDATA_SIZE]; /* the zone data that it has dealt with */
    dibsx_nsec zones_at;            /* when to look at it again */
    dibsx_nsec sweep_at[DIBS__SWEEPS];
    bool sweep_soon[DIBS__SWEEPS]; /* it has not done all that it could */
    uint32_t tick_skip; /* where ticks go on behind the first that are due */
    char swept[8][DIBS__PLACE_SIZE]; /* the last entry of each sweep */
    size_t sweep_from[8];    /* where each goes on among its first entries, */
    uint32_t sweep_skip[8];  /* ... and behind them */
    struct dibs__trim *trim; /* a sweep of history that goes on; or NULL */
    dibs__claim_place claim_place;
    dibsx_nsec beyond_at; /* when to look behind the first of `live` */
    dibs__node_alive alive[DIBS__NODE_ALIVE_MAX];
    size_t alive_count;
    dibs__node_known known[DIBS__NODE_KNOWN_MAX];
    dibs__node_known left[DIBS__NODE_KNOWN_MAX]; /* it cannot deal with */
    char others[DIBS__NODE_OTHERS_MAX][DIBS__NODE_SIZE]; /* that tick */
    size_t other_count;
    bool idle; /* the last look found nothing to do */
    char said[256];
    dibsx_nsec said_at;
};

/* Runs a node whose attempts are executed so. DIBS_OK: it was to stop, and nothing of it
 * runs any more. */
DIBS_MUST_CHECK dibs_status dibs__node_serve(const dibs__node_opts *opts,
                                             const dibs__attempt_ops *ops,
                                             dibs_error *err);

/* A line for its log. The same line comes once a minute. */
void dibs__node_say(dibs__node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dibs__node_complain(dibs__node *node, const char *what,
                         const dibs_error *err);

/* Whether steps with this label are for this node. */
bool dibs__node_takes(const dibs__node *node, const char *label);

/* Writes output of an attempt into the store: its beginning, its end, and how much is left
 * out between them. */
void dibs__node_keep_output(dibs__node *node, dibs__node_task *task,
                            const char *head, size_t head_len, const char *tail,
                            size_t tail_len, uint64_t left_out);

/* The lease as the node may believe in it, less the time that killing takes. */
dibsx_nsec dibs__node_valid_until(dibs__node *node);

/* The store's clock for a record, as a look or a commit had it last; 0: it is to be read. */
int64_t dibs__node_now_us(dibs__node *node);

/* The definition in a file of this node, or NULL. */
const dibs__job *
dibs__node_job(const dibs__node *node, const char *job, const char *hash);
/* Looks at the indexes, and does what is due and ready. */
void dibs__node_look(dibs__node *node);

/* Looks again within so many milliseconds; takes nothing new from now on. */
void dibs__node_hurry(dibs__node *node, int64_t ms);
void dibs__node_drain(dibs__node *node, const char *why);

/* The record of this node, for others to see: written again in time, and removed; and
 * one that its node does not write any more is struck off. */
void dibs__node_write_record(dibs__node *node, int64_t now_us);
void dibs__node_remove_record(dibs__node *node);
void dibs__node_strike_off(dibs__node *node, const char *index, const char *id);

/* Tasks. A claim that is in the scene becomes one, and is sent. DIBS_NOTFOUND: the step is
 * not for this node; DIBS_BUSY: no slot is free; or why the claim is refused. */
bool dibs__node_has_room(const dibs__node *node);
dibs_status dibs__node_claim(dibs__node *node, dibs__stage *st, size_t step);

/* The same without sending it: the caller commits the intent of the task, and hears the
 * answer for it. The run that was written goes with it; with yes the task may take all
 * that is in it. */
dibs_status dibs__node_prepare(dibs__node *node, dibs__stage *st, size_t step,
                               dibs__node_task **out);
void dibs__node_answered(dibs__node *node, dibs__node_task *task,
                         const dibs__answer *answer, dibs__run *run,
                         const dibs_error *err);
void dibs__node_proceed(dibs__node *node);
void dibs__node_collect(dibs__node *node);
void dibs__node_look_at_own(dibs__node *node);
size_t dibs__node_busy(const dibs__node *node);
dibsx_nsec dibs__node_next_at(const dibs__node *node);
void dibs__node_lose_all(dibs__node *node);
void dibs__node_stop_all(dibs__node *node, bool at_once);
void dibs__node_free_tasks(dibs__node *node);

#endif
