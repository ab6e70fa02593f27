/* executor_wire.h - the messages between a node and its executor. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_EXECUTOR_WIRE_H
#define DIBS_EXEC_EXECUTOR_WIRE_H

#include <stdint.h>

/* The executor is the node's own program under this name, with two words: the
 * numbers of its socket and of the page. */
#define DIBS__EXECUTOR_NAME "dibs-executor"

/* Commands that run at a time. */
enum { DIBS__SLOTS_MAX = 1024 };

typedef enum dibs__ask_kind {
    DIBS__ASK_START, /* with the descriptors below */
    DIBS__ASK_END,   /* the tree of the slot, for `reason` */
    DIBS__ASK_LOOK   /* at the page: it was moved to earlier; and count it */
} dibs__ask_kind;

/* The descriptors of a START, in this order. */
enum {
    DIBS__FD_SPEC,
    DIBS__FD_STDIN,
    DIBS__FD_STDOUT,
    DIBS__FD_STDERR,
    DIBS__FD_COUNT
};

typedef struct dibs__ask {
    int32_t kind; /* dibs__ask_kind */
    uint32_t slot;
    int32_t reason;  /* END: dibs__attempt_reason */
    int32_t at_once; /* END: without the time that the command asked for */
} dibs__ask;

/* An attempt has ended: nothing is left of its tree. */
typedef struct dibs__report {
    uint32_t slot;
    int32_t reason; /* dibs__attempt_reason */
    int32_t exit_code;
    int32_t exit_signal;
    int32_t number;     /* NOT_STARTED: an errno */
    int32_t stage;      /* NOT_STARTED: dibs__spawn_stage */
    int32_t guard_died; /* LOST: for this, not for the end of the lease */
} dibs__report;

#endif
