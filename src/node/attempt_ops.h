/* attempt_ops.h - an attempt in the hands of a node, and how attempts are executed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_ATTEMPT_OPS_H
#define DIBS_NODE_ATTEMPT_OPS_H

#include "base/clock.h"
#include "jobs/task.h"
#include <dibs/lock.h>

typedef struct dibs__node dibs__node;
typedef struct dibs__node_task dibs__node_task;

/* How attempts are executed: as commands (node_command.c), or as calls of functions of
 * this program (call.c). `at` of a task and `executor` of a node are theirs. */
typedef struct dibs__attempt_ops {
    dibs_status (*open)(dibs__node *node, dibs_error *err);
    /* Ends what still runs, and waits for it. No task has an attempt any more. */
    void (*close)(dibs__node *node);
    int (*event_fd)(const dibs__node *node); /* readable: an attempt has news */
    /* The lease lasts until then; attempts have to be over so long before. */
    void (*believe)(dibs__node *node, dibsx_nsec valid_until);
    int64_t (*margin_ms)(const dibs__node *node);
    /* Whether nothing of this task may be left when the node joins anew. */
    bool (*ends_with_lease)(const dibs__node_task *task);
    /* Starts a task, with its run as it is read. Sets `at`. DIBS_UNAVAIL: nothing was
     * started, and a later try may. */
    dibs_status (*start)(dibs__node *node, dibs__node_task *task,
                         const dibs__run *run, dibs_error *err);
    /* Asks it to end: LOST, CANCELLED or STOPPED. */
    void (*stop)(dibs__node *node, dibs__node_task *task, dibs__reason why,
                 bool at_once);
    dibs__node_task *(*next_ended)(dibs__node *node); /* NULL: none */
    void (*take_outcome)(dibs__node *node, dibs__node_task *task);
    void (*flush)(dibs__node *node, dibs__node_task *task);
    void (*end)(dibs__node_task *task); /* frees `at`, which has ended */
} dibs__attempt_ops;

/* An attempt in the hands of this node. */
struct dibs__node_task {
    bool used;
    dibs__task task;
    const dibs__job *job; /* of a file of this node; or its own: */
    dibs__job *own_job;   /* of a call: as the store has it */
    const dibs__step *step;
    uint32_t attempt;
    const dibs__run *written; /* its run, as it was just written; or NULL */
    dibs__run kept; /* ... until its next change; without an id: not kept */
    dibs__task_todo todo; /* for a later turn; WAIT: nothing */
    dibsx_nsec todo_at;
    dibsx_nsec failed_at; /* its first try in vain since the node should stop */
    dibsx_nsec refused_at; /* the first start that was to be tried again */
    dibs__intent in;       /* the one that is under way */
    dibs_lock *lock;       /* of the job */
    int64_t lock_tries;
    void *at;             /* as it is executed; NULL: it is not */
    dibs__reason ends_by; /* why this node ends it; NONE: it does not */
    dibs__outcome outcome;
    char result[DIBS__RUN_RESULT_MAX];
    dibsx_buf unkept; /* its output, which the store did not take yet */
    int64_t flush_ms; /* output is written after 1, 2, 4 .. 30 s */
    dibsx_nsec flush_at;
    dibsx_nsec followed_until; /* ... and every 500 ms until then */
    uint64_t kept_bytes;       /* of output, when it was last written */
    int64_t end_by_us;         /* of its run; 0: no limit */
    bool over; /* its attempt has ended: this is the last of its output */
};

#endif
