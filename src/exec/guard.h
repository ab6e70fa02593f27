/* guard.h - the process between dibs and the command, which sees to it that the
 * command's whole tree is dead before the lease could pass to another.
 *
 *     dibs  --forks-->  backstop  --forks-->  guard  --forks-->  command ...
 *           ------------orders--------------->
 *           <-----------events----------------
 *           ==page====>  =======page=========>  when the tree must be dead
 *
 * The guard kills the tree when that moment comes and dibs has not moved it
 * (dibs is stopped, starved or the lease is gone) and when dibs or the backstop
 * dies. The backstop does it a little later, should the guard be stopped or dead
 * too: any two of the three may be. Processes that left the command's group or session
 * are found all the same: the guard is their subreaper, so they stay below it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_GUARD_H
#define DIBS_EXEC_GUARD_H

#include "base/clock.h"
#include "exec/belief.h"
#include "exec/signals.h"
#include "exec/spawn.h"
#include "exec/tree_means.h"
#include <dibs/types.h>
#include <stdatomic.h>
#include <sys/types.h>

/* The command and how to run it. Borrowed for the life of the guard. */
typedef struct dibs__guard_spec {
    char *const *argv;
    char *const *envp;
    const char *hook; /* shell line for DIBS__ORDER_HOOK, or NULL */
    const dibs__signals *signals;
    const dibs__tree_means *means;
    dibs__belief *belief; /* ends the tree as well; NULL: only the page does */
    const char *dir;      /* NULL: as it is */
    const char *user;     /* NULL: as this process */
    int tty;              /* the terminal to be given at the start, or -1 */
    int stdio[3];         /* become the standard descriptors; -1: as it is */
    int probe_ms;         /* how often to measure how late it is woken */
    bool own_group;       /* a process group of its own */
} dibs__guard_spec;

/* Shared by the three processes. Moments are on dibsx_now(), or DIBSX_NEVER. */
typedef struct dibs__guard_page {
    _Atomic int64_t kill_at; /* by dibs: when the guard kills */
    _Atomic int64_t last_at; /* by dibs: ... and the backstop, if need be */
    _Atomic int64_t late;    /* by the guard: how late it is woken */
    _Atomic uint32_t beats;  /* by the guard: how many times dibs asked it */
    _Atomic int32_t guard;   /* by the guard: its own process, or 0 */
    /* By the command, before it is one: its process, or 0; negative: the group it was
     * given. The guard may be stopped as soon as the command runs. */
    _Atomic int32_t head;
} dibs__guard_page;

typedef struct dibs__guard {
    pid_t pid; /* of the backstop, its parent */
    int sock;
    const dibs__tree_means *means;
    dibs__guard_page *page;
} dibs__guard;

typedef enum dibs__order {
    DIBS__ORDER_LOOK,   /* at the page: the moment was moved; and count it */
    DIBS__ORDER_SIGNAL, /* arg: to the command's group, or to it alone */
    DIBS__ORDER_END,    /* arg: to every process of the tree, and CONT */
    DIBS__ORDER_KILL,   /* the tree, until nothing is left */
    DIBS__ORDER_HOOK    /* start the hook */
} dibs__order;

typedef enum dibs__event_kind {
    DIBS__EVENT_NONE,    /* nothing to hear */
    DIBS__EVENT_REFUSED, /* arg: errno; the command could not be started */
    DIBS__EVENT_STOPPED, /* arg: the signal that stopped the command */
    DIBS__EVENT_ENDED,   /* arg: the command's status, as wait gives it */
    DIBS__EVENT_HOOK,    /* the hook has ended */
    DIBS__EVENT_OVERDUE, /* the moment came: the tree is being killed */
    DIBS__EVENT_CLEAR,   /* nothing is left of the tree */
    DIBS__EVENT_GONE     /* the guard itself has died */
} dibs__event_kind;

typedef struct dibs__event {
    int32_t kind; /* dibs__event_kind */
    int32_t arg;
    int32_t clear; /* nothing was left of the tree when this was sent */
    int32_t stage; /* of REFUSED: dibs__spawn_stage */
} dibs__event;

/* Forks the guard, which starts the command. Failures to start the command come
 * as events. End with dibs__guard_end(). */
DIBS_MUST_CHECK dibs_status dibs__guard_start(dibs__guard *guard,
                                              const dibs__guard_spec *job,
                                              dibsx_nsec kill_at,
                                              dibsx_nsec last_at,
                                              dibs_error *err);

/* Moves the moments at which the guard, and the backstop, kill the tree. */
void dibs__guard_deadline(dibs__guard *guard, dibsx_nsec kill_at,
                          dibsx_nsec last_at);

void dibs__guard_tell(dibs__guard *guard, dibs__order order, int arg);

/* The next event, without blocking. */
dibs__event dibs__guard_hear(dibs__guard *guard);

/* For when the guard is dead or does not answer: kills it, the backstop and all
 * of the tree from here. Returns when nothing is left. */
void dibs__guard_sweep(dibs__guard *guard);

/* When the guard, and the backstop, are to kill: the earlier of the moments on the
 * page and of the belief. */
dibsx_nsec
dibs__guard_kill_at(const dibs__guard_page *page, const dibs__belief *belief);
dibsx_nsec
dibs__guard_last_at(const dibs__guard_page *page, const dibs__belief *belief);

/* Its work is done, or was never begun. */
void dibs__guard_end(dibs__guard *guard);

/* The guard's own side: never returns. Runs in the forked process. */
_Noreturn void
dibs__guard_main(const dibs__guard_spec *job, dibs__guard_page *page, int sock,
                 pid_t group, pid_t backstop);

#endif
