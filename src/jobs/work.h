/* work.h - how a job or a step is executed: command, surroundings, limits, retries.
 *
 * Durations are milliseconds and sizes are bytes; DIBS__JOB_NONE is a limit that is
 * not set. All text is in the arena of the job. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_WORK_H
#define DIBS_JOBS_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIBS__JOB_NONE ((int64_t)-1)

enum { DIBS__JOB_CODES_WORDS = 256 / 64 };

/* Bits of retry.on. */
typedef enum dibs__retry_on {
    DIBS__RETRY_FAILED = 1,
    DIBS__RETRY_TIMEOUT = 2,
    DIBS__RETRY_LOST = 4
} dibs__retry_on;

typedef struct dibs__texts {
    const char **at; /* NULL ends; NULL when there are none */
    size_t count;
} dibs__texts;

typedef struct dibs__pair {
    const char *name;
    const char *value;
} dibs__pair;

typedef struct dibs__pairs {
    dibs__pair *at; /* in order of names */
    size_t count;
} dibs__pairs;

typedef struct dibs__retry {
    int64_t attempts; /* in all: 1 is no retry */
    uint32_t on;      /* bits of dibs__retry_on */
    int64_t delay_ms;
    int64_t factor;
    int64_t max_delay_ms;
    int64_t jitter_pct;
} dibs__retry;

typedef struct dibs__output_limits {
    int64_t keep; /* bytes in all; 0: none */
    int64_t head; /* of these, from the beginning */
} dibs__output_limits;

/* How an attempt is executed: keys that a job and a step have. A step has those of
 * its job where it gives none. */
typedef struct dibs__work {
    dibs__texts run;
    const char *shell;
    const char *call;
    const char *dir;
    const char *user;
    dibs__pairs env; /* a step: its own beside those of its job */
    const char *env_file;
    const char *input;   /* stdin; NULL: /dev/null */
    const char *runs_on; /* a label; NULL: any node */
    uint64_t ok_codes[DIBS__JOB_CODES_WORDS];
    int64_t timeout_ms; /* or NONE */
    int64_t signal;     /* its number */
    int64_t kill_after_ms;
    dibs__retry retry;
    dibs__output_limits output;
} dibs__work;

/* Whether an exit code counts as success. */
static inline bool dibs__work_code_ok(const dibs__work *work, int code)
{
    return code >= 0 && code < 256 &&
           (work->ok_codes[code / 64] >> (code % 64) & 1);
}

#endif
