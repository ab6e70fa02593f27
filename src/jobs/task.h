/* task.h - an attempt in the hands of its node, from its claim to its end. Pure.
 *
 *            yes                      lock         yes               tree is dead
 *   ASKING -------> [LOCKING -------> BEGINNING] ------> RUNNING ------------> ENDING
 *     | no             | lock busy       | no       |  ^  enough of the          | yes, or
 *     v                v                 v          v  |  lease again            v not ours
 *    GONE            ENDING            GONE        HELD                        GONE
 *
 * The caller sends an intent, says how each try ended, reads the record if it is asked to,
 * and does what the answer says. Rules (docs/design.md, Jobs):
 *   5  A commit without an answer is sent again unchanged until the answer is yes,
 *      STALE or LATE; then the nonce in the record decides: an earlier try that comes
 *      after LATE is late too. EARLY settles a first try alone: an earlier one may yet be
 *      carried out. A begin that is LATE ends the step unstarted, for DIBS__REASON_LATE.
 *   6  Nothing is started before yes, nor with less than DIBS__TASK_MARGIN_MS of the lease
 *      left: the claim is HELD and started after the next renewal.
 *   7  When belief in the lease ends, all of the node's tasks are over; their trees are
 *      dead by then. A tree that the guard killed is lost.
 *   9  A result is sent again, with the record's new version, as long as the record has
 *      the attempt's nonce; else it is dropped.
 *   10 The end is sent after the tree is dead. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_TASK_H
#define DIBS_JOBS_TASK_H

#include "base/clock.h"
#include "jobs/run_machine.h"

enum { DIBS__TASK_MARGIN_MS = 1000 };

typedef enum dibs__task_state {
    DIBS__TASK_ASKING,    /* a tick or a claim is under way */
    DIBS__TASK_LOCKING,   /* claimed; the lock of the job is waited for */
    DIBS__TASK_BEGINNING, /* the begin is under way */
    DIBS__TASK_HELD,      /* ours, and not started */
    DIBS__TASK_RUNNING,
    DIBS__TASK_ENDING, /* the tree is dead, the end is under way */
    DIBS__TASK_GONE
} dibs__task_state;

typedef enum dibs__task_todo {
    DIBS__TASK_WAIT,  /* nothing now */
    DIBS__TASK_AGAIN, /* send the same intent again */
    DIBS__TASK_READ,  /* read the record, and say dibs__task_read() */
    DIBS__TASK_PLAN, /* read the record, and make the intent of this state anew */
    DIBS__TASK_LOCK,  /* take the lock of the job */
    DIBS__TASK_START, /* start the command */
    DIBS__TASK_DROP   /* it is over: free it */
} dibs__task_todo;

typedef struct dibs__task {
    dibs__task_state state;
    char run[DIBS__RUN_ID_SIZE];
    char step[DIBS__JOB_NAME_SIZE];
    char nonce[DIBS__NONCE_SIZE];
    bool locks;    /* the job has a lock */
    bool doubt;    /* a try of the intent had no answer */
    bool refused;  /* the end was dropped: another attempt is the current one */
    bool outlived; /* its node lost the lease, and the tree goes on */
} dibs__task;

void dibs__task_init(dibs__task *task, const char *run, const char *step,
                     const char *nonce, bool locks);

/* How a try of the intent ended. */
dibs__task_todo dibs__task_answered(dibs__task *task, dibs_status rc,
                                    dibsx_nsec now, dibsx_nsec valid_until);

/* The record as it is now; NULL: there is none. */
dibs__task_todo dibs__task_read(dibs__task *task, const dibs__run *run,
                                dibsx_nsec now, dibsx_nsec valid_until);

/* The lock was taken, or was busy. The intent of the new state is to be planned. */
dibs__task_todo dibs__task_locked(dibs__task *task, bool taken);

/* The lease was renewed: what was held may start. */
dibs__task_todo
dibs__task_renewed(dibs__task *task, dibsx_nsec now, dibsx_nsec valid_until);

/* A start that could not be made when it was due is to be made now (6). */
dibs__task_todo dibs__task_start_later(dibs__task *task, dibsx_nsec now,
                                       dibsx_nsec valid_until);

/* The tree is dead, or could not be started. */
dibs__task_todo dibs__task_died(dibs__task *task);

/* Belief in the lease is over. */
void dibs__task_lose(dibs__task *task);

/* ... and the tree goes on (on_lost: finish). Others take the attempt for lost meanwhile;
 * its end is sent all the same. Only for one whose tree was started. */
void dibs__task_outlive(dibs__task *task);

/* The record says that this attempt, which runs or waits for the lock, has to end. */
bool dibs__task_must_end(const dibs__task *task, const dibs__run *run);

#endif
