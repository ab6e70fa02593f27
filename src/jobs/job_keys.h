/* job_keys.h - the keys of a jobs file: one table for readers, writers and documents.
 *
 * The rows are in order of names. A row says where the value is within its struct, how
 * it is written and what is allowed; `initial` is the default, as it would be typed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_KEYS_H
#define DIBS_JOBS_JOB_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum dibs__key_type {
    DIBS__KEY_FLAG,      /* bool: yes or no */
    DIBS__KEY_INT,       /* int64_t */
    DIBS__KEY_DURATION,  /* int64_t, milliseconds */
    DIBS__KEY_SIZE,      /* int64_t, bytes: 512, 64k, 1m */
    DIBS__KEY_PERCENT,   /* int64_t: 20% */
    DIBS__KEY_SIGNAL,    /* int64_t: TERM */
    DIBS__KEY_MOMENT,    /* int64_t, seconds since 1970 */
    DIBS__KEY_TEXT,      /* const char *; min and max are its length */
    DIBS__KEY_NAME,      /* const char *: as jobs are named */
    DIBS__KEY_PATH,      /* const char *: from / */
    DIBS__KEY_ZONE,      /* const char * */
    DIBS__KEY_PATTERN,   /* const char *: an extended regular expression */
    DIBS__KEY_CHOICE,    /* an enum, in the order of `choices` */
    DIBS__KEY_CHOICES,   /* uint32_t, bits in the order of `choices` */
    DIBS__KEY_CODES,     /* uint64_t[4]: exit codes */
    DIBS__KEY_WORDS,     /* dibs__texts; ${param.x} is filled in */
    DIBS__KEY_NAMES,     /* dibs__texts: names of jobs or steps */
    DIBS__KEY_ENV,       /* dibs__pairs: variables */
    DIBS__KEY_WITH,      /* dibs__pairs: params; ${param.x} is filled in */
    DIBS__KEY_SCHEDULES, /* dibs__schedules */
    DIBS__KEY_PARAMS,    /* dibs__param_list */
    DIBS__KEY_GROUP,     /* a struct with keys of its own */
    DIBS__KEY_STEPS      /* of a job; its reader knows them */
} dibs__key_type;

typedef struct dibs__key {
    const char *name;
    dibs__key_type type;
    size_t at; /* bytes from the begin of the struct */
    int64_t min;
    int64_t max;
    const char *initial; /* NULL: not set */
    const char *choices; /* "skip|fail|retry" */
    const struct dibs__keys *group;
    const char *doc; /* one line */
} dibs__key;

typedef struct dibs__keys {
    const char *of; /* "a job", for messages */
    const dibs__key *rows;
    size_t count;
} dibs__keys;

extern const dibs__keys dibs__job_keys; /* of dibs__job */
extern const dibs__keys
    dibs__work_keys; /* of dibs__work: jobs and steps have them */
extern const dibs__keys dibs__step_keys;  /* of dibs__step */
extern const dibs__keys dibs__param_keys; /* of dibs__param */

/* The row of this name, or NULL. */
const dibs__key *dibs__keys_find(const dibs__keys *keys, const char *name);

/* The place of a word in "a|b|c", or -1; and the word at a place, as length and text,
 * or NULL. */
int dibs__choice_find(const char *choices, const char *word);
const char *dibs__choice_at(const char *choices, int place, size_t *len);

#endif
