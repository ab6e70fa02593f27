/* node_record.h - what a board knows of its nodes, for users to see. Pure.
 *
 * A node writes its record while it is there, and stands in the index "nodes", or in
 * "draining" once it takes nothing new. The number there is the moment at which the entry
 * counts no more, as its node has not written it again. No rule of runs rests on any of
 * this: a node is gone when its lease is. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_NODE_RECORD_H
#define DIBS_JOBS_NODE_RECORD_H

#include "base/buf.h"
#include "jobs/intent.h"
#include "jobs/run_step.h"

enum {
    DIBS__NODE_HOST_SIZE = 65,
    DIBS__NODE_LABEL_TEXT_SIZE = 2048, /* "eu,gpu" */
    DIBS__NODE_RECORD_MAX = 4096,
    DIBS__NODE_KEEP = 3 /* times its ttl */
};

typedef struct dibs__node_record {
    char id[DIBS__NODE_SIZE]; /* the key has it, not the JSON */
    uint64_t fence;           /* of its lease, and of its steps in "live" */
    char host[DIBS__NODE_HOST_SIZE];
    int64_t pid;
    char labels[DIBS__NODE_LABEL_TEXT_SIZE]; /* with commas between them */
    uint64_t slots;
    int64_t ttl_ms;
    int64_t joined_us; /* of the store's clock */
    char version[32];  /* of dibs */
} dibs__node_record;

/* INVALID: this is no record; err says why. */
DIBS_MUST_CHECK dibs_status dibs__node_record_read(dibs__node_record *rec,
                                                   const char *id,
                                                   const void *json, size_t len,
                                                   dibs_error *err);
void dibs__node_record_write(const dibs__node_record *rec, dibsx_buf *out);

/* Writes the record and its entry anew; `draining`: it takes nothing new. */
void dibs__node_record_keep(const dibs__node_record *rec, bool draining,
                            int64_t now_us, dibs__intent *in);

/* The node has left. */
void dibs__node_record_leave(const char *id, dibs__intent *in);

/* A user asks for its drain: the entry changes its index, and the bell rings. */
void dibs__node_record_drain(const char *id, int64_t until_us,
                             dibs__intent *in);

#endif
