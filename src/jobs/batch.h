/* batch.h - a batch: runs of any jobs, whose ends others wait for together. Pure.
 *
 * The record says how many members there are to be, how many were started, and which runs
 * wait. The members that have ended are those of the index "batch/ID", each once however
 * often its end is written. The end of a member also enters the batch into "resume", so
 * that a node looks whether it is complete.
 *
 * Invariant I13: a batch completes once, after all of its members have ended. The version
 * of the record makes it once. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BATCH_H
#define DIBS_JOBS_BATCH_H

#include "jobs/places.h"

enum { DIBS__BATCH_WAITERS_MAX = 64, DIBS__BATCH_JSON_MAX = 16 * 1024 };

/* A complete batch is kept for a week. One that lacks members is forgotten when nothing has
 * happened to it for so long. */
#define DIBS__BATCH_KEEP_MS   (INT64_C(7) * 24 * 3600 * 1000)
#define DIBS__BATCH_FORGET_US (INT64_C(30) * 24 * 3600 * 1000000)

/* Begins the name of a batch where others are runs or jobs: in "resume" and "trim". */
#define DIBS__BATCH_PART "batch/"

typedef struct dibs__batch {
    char id[DIBS__JOB_NAME_SIZE]; /* the key has it, not the JSON */
    uint64_t version;             /* as read; 0: the store has none */
    uint64_t of;                  /* members in all; 0: not said yet */
    uint64_t started;
    int64_t made_us;     /* when the record was first written */
    int64_t complete_us; /* 0: it is not */
    char waiters[DIBS__BATCH_WAITERS_MAX][DIBS__RUN_ID_SIZE];
    size_t waiter_count;
    bool changed;
} dibs__batch;

void dibs__batch_init(dibs__batch *batch, const char *id);

/* INVALID: this is no batch; err says why, and it is as init leaves it. */
DIBS_MUST_CHECK dibs_status dibs__batch_read(dibs__batch *batch, const char *id,
                                             const void *json, size_t len,
                                             uint64_t version, dibs_error *err);

/* A number of members is said; 0 says nothing. INVALID: it is another than before, or
 * less than were started. */
dibs_status
dibs__batch_expect(dibs__batch *batch, uint64_t of, dibs_error *err);

/* A new run becomes a member, by the commit that makes it. FULL: all members were
 * started, or the batch is complete. */
dibs_status
dibs__batch_join(dibs__batch *batch, dibs__run *run, dibs_error *err);

/* The run waits; completion brings its look forward. A run beyond
 * DIBS__BATCH_WAITERS_MAX looks again every DIBS__LOOK_AGAIN_MS. */
void dibs__batch_wait(dibs__batch *batch, const char *run);

/* So many members have ended. True: the batch is complete, by this or before. */
bool dibs__batch_look(dibs__batch *batch, uint64_t ended, int64_t now_us,
                      dibs__intent *in);

/* Checks and writes the record if it has changed. Its making and its completion enter it
 * into "trim", so that a node takes its members out of their index in the end. */
void dibs__batch_commit(dibs__batch *batch, int64_t now_us, dibs__intent *in);

/* When to look whether a complete batch is gone: a little after it expires. */
int64_t dibs__batch_gone_us(const dibs__batch *batch);

/* Members that ended before this are not of this batch: another had its name, whose record
 * has expired. */
int64_t dibs__batch_since_us(const dibs__batch *batch);

#endif
