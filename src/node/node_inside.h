/* node_inside.h - the parts of a node, for each other. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_INSIDE_H
#define DIBS_NODE_NODE_INSIDE_H

#include "base/clock.h"
#include "jobs/board_stage.h"
#include "jobs/node_record.h"
#include "jobs/wake.h"
#include "node/attempt_ops.h"
#include "node/node.h"
#include <dibs/lock.h>

enum {
    DIBS__NODE_ALIVE_MAX = 64,
    DIBS__NODE_OTHERS_MAX = 256,
    DIBS__NODE_KNOWN_MAX = 2048
};

/* Another node, as its lease was seen: it lasts until then at least. */
typedef struct dibs__node_alive {
    char id[DIBS__NODE_SIZE];
    dibsx_nsec until;
} dibs__node_alive;

/* A step of another node that was seen alive: it is looked at again then. */
typedef struct dibs__node_known {
    uint64_t hash; /* of the entry of `live`; 0: none */
    dibsx_nsec until;
} dibs__node_known;

/* Rule 13: the highest mark that this node has seen of a job. */
typedef struct dibs__node_mark {
    char job[DIBS__JOB_NAME_SIZE];
    int64_t mark_s, local_s;
} dibs__node_mark;

struct dibs__node {
    const dibs__node_opts *opts;
    const dibs__board *board;
    const dibs__attempt_ops *ops;
    void *executor;   /* of the ops */
    dibs_lock *lease; /* NULL: not joined */
    char id[DIBS__NODE_SIZE];
    uint64_t fence;
    int64_t joined_us;
    dibs__node_task *tasks; /* as many as slots */
    dibs__node_mark *marks;
    size_t mark_count;
    unsigned stops;      /* signals that asked it to stop */
    bool draining;       /* nothing new is taken */
    dibsx_nsec drain_at; /* commands are asked to end */
    bool drained;        /* they were */
    dibs__wake wake;
    dibs_bell *bell;   /* of the board; NULL: the store has none */
    dibsx_nsec own_at; /* when to read the records of its own commands */
    dibsx_nsec join_at;
    dibsx_nsec record_at;           /* when its record is written again */
    struct dibs__node_zones *zones; /* NULL: no new zone data */
    char tzdata[DIBS__TZDATA_SIZE]; /* the zone data that it has dealt with */
    dibsx_nsec zones_at;            /* when to look at it again */
    dibsx_nsec sweep_at[DIBS__SWEEPS];
    char swept[8][DIBS__PLACE_SIZE]; /* the last entry of each sweep */
    dibs__node_alive alive[DIBS__NODE_ALIVE_MAX];
    size_t alive_count;
    dibs__node_known known[DIBS__NODE_KNOWN_MAX];
    dibs__node_known left[DIBS__NODE_KNOWN_MAX]; /* jobs it cannot tick */
    char others[DIBS__NODE_OTHERS_MAX][DIBS__NODE_SIZE]; /* that tick */
    size_t other_count;
    bool agreed; /* a commit of a task was answered with yes */
    bool idle;   /* the last look found nothing to do */
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
void dibs__node_keep_output(dibs__node *node, const dibs__node_task *task,
                            const char *head, size_t head_len, const char *tail,
                            size_t tail_len, uint64_t left_out);

/* The lease as the node may believe in it, less the time that killing takes. */
dibsx_nsec dibs__node_valid_until(dibs__node *node);

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

/* Sweeps over an index. The entries of `live` are those of nodes that may be gone. */
typedef struct dibs__node_entry {
    char member[DIBS__PLACE_SIZE];
    int64_t at;
} dibs__node_entry;
typedef dibs_status
dibs__sweep_fn(dibs__node *node, const dibs__node_entry *entry,
               dibs_error *err);
dibs__sweep_fn dibs__sweep_retry, dibs__sweep_deadline, dibs__sweep_live,
    dibs__sweep_resume, dibs__sweep_trim;

/* Whether the node of an entry of `live` was seen alive, and its lease still lasts; and
 * the look at the end of such a lease. */
bool dibs__node_is_known(dibs__node *node, const dibs__node_entry *entry);
void dibs__node_await_gone(dibs__node *node);

/* Leaves an entry of `due` to other nodes for so long; whether it is left. */
void dibs__node_leave(dibs__node *node, const dibs__node_entry *entry,
                      int64_t ms);
bool dibs__node_is_left(const dibs__node *node, const dibs__node_entry *entry);

/* Tasks. A claim that is in the scene becomes one, and is sent. False: no slot is free,
 * or the claim is refused. */
bool dibs__node_has_room(const dibs__node *node);
bool dibs__node_claim(dibs__node *node, dibs__stage *st, size_t step);
void dibs__node_proceed(dibs__node *node);
void dibs__node_collect(dibs__node *node);
void dibs__node_look_at_own(dibs__node *node);
size_t dibs__node_busy(const dibs__node *node);
dibsx_nsec dibs__node_next_at(const dibs__node *node);
void dibs__node_lose_all(dibs__node *node);
void dibs__node_stop_all(dibs__node *node, bool at_once);
void dibs__node_free_tasks(dibs__node *node);

#endif
