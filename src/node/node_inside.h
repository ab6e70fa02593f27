/* node_inside.h - the parts of a node, for each other. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_INSIDE_H
#define DIBS_NODE_NODE_INSIDE_H

#include "exec/executor.h"
#include "exec/result_files.h"
#include "jobs/board_stage.h"
#include "jobs/task.h"
#include "node/node.h"
#include <dibs/lock.h>

enum { DIBS__NODE_ALIVE_MAX = 64 };

/* An attempt in the hands of this node. */
typedef struct dibs__node_task {
    bool used;
    dibs__task task;
    const dibs__job *job; /* of a file of this node */
    const dibs__step *step;
    uint32_t attempt;
    dibs__task_todo todo; /* for a later turn; WAIT: nothing */
    dibsx_nsec todo_at;
    dibs__intent in; /* the one that is under way */
    dibs_lock *lock; /* of the job */
    int64_t lock_tries;
    dibs__attempt *at;
    dibs__result_files files;
    dibs__reason ends_by; /* why this node ends it; NONE: it does not */
    dibs__outcome outcome;
    char result[DIBS__RESULT_MAX];
    int64_t flush_ms; /* output is written after 1, 2, 4 .. 30 s */
    dibsx_nsec flush_at;
} dibs__node_task;

/* Rule 13: the highest mark that this node has seen of a job. */
typedef struct dibs__node_mark {
    char job[DIBS__JOB_NAME_SIZE];
    int64_t mark_s, local_s;
} dibs__node_mark;

typedef struct dibs__node {
    const dibs__node_opts *opts;
    const dibs__board *board;
    dibs__executor *ex;
    dibs_lock *lease; /* NULL: not joined */
    char id[DIBS__NODE_SIZE];
    uint64_t fence;
    dibs__node_task *tasks; /* as many as slots */
    dibs__node_mark *marks;
    size_t mark_count;
    unsigned stops;      /* signals that asked it to stop */
    dibsx_nsec drain_at; /* commands are asked to end; 0: not */
    bool drained;        /* they were */
    dibsx_nsec look_at;
    dibsx_nsec join_at;
    dibsx_nsec sweep_at[DIBS__SWEEPS];
    char alive[DIBS__NODE_ALIVE_MAX][DIBS__NODE_SIZE]; /* found by this look */
    size_t alive_count;
    bool agreed; /* a commit of a task was answered with yes */
    bool idle;   /* the last look found nothing to do */
    char said[256];
    dibsx_nsec said_at;
} dibs__node;

/* A line for its log. The same line comes once a minute. */
void dibs__node_say(dibs__node *node, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void dibs__node_complain(dibs__node *node, const char *what,
                         const dibs_error *err);

/* The lease as the node may believe in it, less the time that killing takes. */
dibsx_nsec dibs__node_valid_until(dibs__node *node);

/* The definition in a file of this node, or NULL. */
const dibs__job *
dibs__node_job(const dibs__node *node, const char *job, const char *hash);

/* Looks at the indexes, and does what is due and ready. */
void dibs__node_look(dibs__node *node);

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

/* The command of a task is started, with its run as it is read. */
DIBS_MUST_CHECK dibs_status dibs__command_start(dibs__node *node,
                                                dibs__node_task *task,
                                                const dibs__run *run,
                                                dibs_error *err);

/* How it ended, into the outcome. */
void dibs__command_ended(dibs__node *node, dibs__node_task *task);

/* Writes its output by now into the store. */
void dibs__command_flush(dibs__node *node, dibs__node_task *task);

#endif
