/* node_view.h - the indexes of a board as a node sees them in one look. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_VIEW_H
#define DIBS_NODE_NODE_VIEW_H

#include "node/node_sweep.h"
#include <dibs/jobs.h>

enum {
    DIBS__LOOK_DUE,
    DIBS__LOOK_RETRY,
    DIBS__LOOK_DEADLINE,
    DIBS__LOOK_RESUME,
    DIBS__LOOK_TRIM,
    DIBS__LOOK_LIVE,
    DIBS__LOOK_NODES,
    DIBS__LOOK_DRAINING,
    DIBS__LOOK_READY, /* ... and one for each label, or for each function */
    DIBS__LOOKS_MAX = DIBS__LOOK_READY + 1 + DIBS_JOBS_FUNCTIONS_MAX
};

enum {
    DIBS__VIEW_ENTRIES = 64, /* of an index with numbers that are due */
    DIBS__AGAIN_MS = 1000,   /* what could not be done now */
    DIBS__STUCK_AGAIN_MS = 60000,
    DIBS__STUCK_MAX = 256 /* in one look: the node has other things to do */
};

typedef struct dibs__view {
    dibs__node_entry *at; /* by their indexes, in order */
    size_t count, room;
    bool failed;
    char names[DIBS__LOOKS_MAX][DIBS_NAME_MAX + 1];
    dibs_index_look looks[DIBS__LOOKS_MAX];
    size_t look_count, first; /* of the request that is under way */
    int64_t now_us;           /* the store's clock, */
    dibsx_nsec taken_at;      /* when this was the time of this node */
} dibs__view;

/* All indexes, in one request as a rule. NULL: err says why. Free it. */
dibs__view *dibs__view_take(dibs__node *node, dibs_error *err);
void dibs__view_free(dibs__view *view);

/* The entries of one index behind look->skip; `look` is one of a view, with its number. */
dibs__view *dibs__view_page(dibs__node *node, dibs_index_look *look,
                            size_t number, dibs_error *err);

/* Ticks the jobs that are due. */
void dibs__node_tick(dibs__node *node, const dibs__view *v);

/* Claims steps that are ready. */
void dibs__node_claim_ready(dibs__node *node, const dibs__view *v);

/* Looks again at a moment of the store's clock; negative: no moment. */
void dibs__node_hurry_to(dibs__node *node, int64_t at_us, int64_t now_us);

/* Does the sweeps that are due. */
void dibs__node_sweep(dibs__node *node, const dibs__view *v, dibsx_nsec now);

#endif
