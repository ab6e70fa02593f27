/* definition.h - a job as it is defined: when it is due, what it does, and its rules.
 *
 * job_file.h reads definitions from a file, job_json.h writes and reads the form in
 * which the store keeps them. All text of a definition is in one arena, so that a step
 * shares with its job what it has from there. A definition is never changed after it
 * was read, so that any thread may use it.
 *
 * Moments are seconds since 1970; work.h has the units of the rest. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_DEFINITION_H
#define DIBS_JOBS_DEFINITION_H

#include "jobs/cron.h"
#include "jobs/step.h"

enum {
    DIBS__JOB_NAME_MAX = 100, /* bytes, of jobs and of steps */
    DIBS__JOB_SCHEDULES_MAX = 32,
    DIBS__JOB_PARAMS_MAX = 64,
    DIBS__JOB_QUEUE_MAX = 150, /* steps: one commit ends a run and begins one */
    DIBS__JOB_JSON_MAX = 16 * 1024,
    DIBS__JOB_HASH_SIZE = 17 /* 16 hexadecimal digits and a NUL */
};

typedef enum dibs__misfire_policy {
    DIBS__MISFIRE_SKIP,
    DIBS__MISFIRE_RUN_ONCE,
    DIBS__MISFIRE_RUN_ALL
} dibs__misfire_policy;

typedef enum dibs__concurrency {
    DIBS__CONCURRENCY_ALLOW,
    DIBS__CONCURRENCY_FORBID,
    DIBS__CONCURRENCY_REPLACE,
    DIBS__CONCURRENCY_QUEUE
} dibs__concurrency;

typedef enum dibs__on_busy {
    DIBS__BUSY_SKIP,
    DIBS__BUSY_FAIL,
    DIBS__BUSY_RETRY
} dibs__on_busy;

typedef enum dibs__on_lost { DIBS__LOST_KILL, DIBS__LOST_FINISH } dibs__on_lost;

typedef struct dibs__schedule {
    const char *text;
    dibs__cron cron;
} dibs__schedule;

typedef struct dibs__schedules {
    dibs__schedule *at;
    size_t count;
} dibs__schedules;

typedef struct dibs__param {
    const char *name;
    const char *initial; /* NULL: none */
    const char *pattern; /* NULL: any text */
    bool required;
} dibs__param;

typedef struct dibs__param_list {
    dibs__param *at; /* in order of names */
    size_t count;
} dibs__param_list;

typedef struct dibs__job_lock {
    const char *key; /* NULL: the job has no lock */
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t retries;
    int64_t retry_delay_ms;
    int64_t hold_min_ms;
    dibs__on_busy on_busy;
} dibs__job_lock;

typedef struct dibs__misfire {
    dibs__misfire_policy policy;
    int64_t grace_ms;
    int64_t max; /* of run_all */
} dibs__misfire;

typedef struct dibs__history {
    int64_t ok;
    int64_t failed;
    int64_t keep_ms;
} dibs__history;

typedef struct dibs__then {
    dibs__texts ok; /* names of jobs */
    dibs__texts failed;
} dibs__then;

typedef struct dibs__job {
    const char *name;
    const char *description;
    bool enabled;
    dibs__schedules schedule; /* none: on demand */
    const char *zone;
    int64_t from_s;  /* or NONE */
    int64_t until_s; /* or NONE: the last moment at which it may be due */
    int64_t jitter_ms;
    dibs__misfire misfire;
    int64_t start_deadline_ms; /* or NONE */
    dibs__concurrency concurrency;
    int64_t max_running; /* or NONE; for allow */
    bool singleton;      /* concurrency and lock say it too */
    dibs__job_lock lock;
    dibs__param_list params;
    dibs__work work;        /* what steps start from */
    int64_t run_timeout_ms; /* or NONE */
    dibs__on_lost on_lost;
    dibs__history history;
    dibs__then then;
    dibs__step *steps; /* never empty; without `steps` it is one, "main" */
    size_t step_count;
    bool has_steps; /* the definition has the key */

    struct dibs__arena *arena; /* where all of this is */
    unsigned holders;          /* beside the first one */
} dibs__job;

/* NULL is a no-op. The last of its holders frees it. */
void dibs__job_free(dibs__job *job);

/* One more holder, on the same thread. Answers the job. */
dibs__job *dibs__job_hold(dibs__job *job);

/* The step of this name, or NULL. */
const dibs__step *dibs__job_step(const dibs__job *job, const char *name);

/* As in a jobs file: "allow". */
const char *dibs__concurrency_name(dibs__concurrency way);

/* `[A-Za-z0-9][A-Za-z0-9._-]*`, at most DIBS__JOB_NAME_MAX bytes. */
bool dibs__job_name_ok(const char *name);

#endif
