/* node_marks.h - the marks of jobs that a node has seen, by their names. The node's thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_MARKS_H
#define DIBS_NODE_NODE_MARKS_H

#include "base/table.h"
#include "jobs/board.h"

enum { DIBS__MARKS_FEW = 1024 };

/* Rule 13: the highest mark that this node has seen of a job since its latest reset. */
typedef struct dibs__node_mark {
    dibsx_table_node node; /* first, so that one is the other */
    char job[DIBS__JOB_NAME_SIZE];
    int64_t mark_s, local_s;
    uint64_t resets;
    int64_t ran_s;  /* a tick whose run was there; 0: none */
    unsigned stale; /* ticks that were refused since the last that was not */
} dibs__node_mark;

/* Zeroed storage has none. End with dibs__marks_free(). */
typedef struct dibs__node_marks {
    dibsx_table table;
    size_t seen; /* marks that the last look left, */
    bool looks;  /* ... and another one goes on, */
    size_t at;   /* ... from this chain */
} dibs__node_marks;

void dibs__marks_free(dibs__node_marks *marks);

/* The mark of a job, which is 0 at first. NULL: no memory. */
dibs__node_mark *dibs__marks_find(dibs__node_marks *marks, const char *job);

/* Drops some marks of jobs that are in no set any more, when there are twice as many marks
 * as after the last look: one request at most. */
DIBS_MUST_CHECK dibs_status dibs__marks_look(dibs__node_marks *marks,
                                             const dibs__board *board,
                                             dibs_error *err);

#endif
