/* crontab.h - reads a crontab: lines of cron become jobs. Reads zone files. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_CRONTAB_H
#define DIBS_JOBS_CRONTAB_H

#include "jobs/zone.h"

enum { DIBS__CRONTAB_NAME_SIZE = 112, DIBS__CRONTAB_ENV_MAX = 100 };

typedef struct dibs__crontab_env {
    char *name;
    char *value;
} dibs__crontab_env;

/* A line. All text is borrowed for the call that hands it out. */
typedef struct dibs__crontab_job {
    const char *name;     /* from "# dibs: NAME" above, or cron-HASH8 */
    const char *schedule; /* as it is written */
    const char *zone;     /* of CRON_TZ; NULL: the zone of the machine */
    const char *user;     /* of a system crontab; else NULL */
    const char *shell;    /* the command */
    const char *input;    /* for its standard input, or NULL */
    const dibs__crontab_env *env;
    size_t env_count;
} dibs__crontab_job;

typedef struct dibs__crontab_sink {
    void (*job)(void *arg, const dibs__crontab_job *job);
    /* A mistake at a column, or, with column 0, something that was left out. */
    void (*note)(void *arg, size_t line, int column, const char *message);
    void *arg;
} dibs__crontab_sink;

typedef struct dibs__crontab_opts {
    int fields;  /* of an expression: 5, 6 or 7 */
    bool system; /* a user stands before the command */
} dibs__crontab_opts;

/* Hands out every line that is a job, and what cannot be one. NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__crontab_read(const char *text,
                                               const dibs__crontab_opts *opts,
                                               const dibs__crontab_sink *sink,
                                               dibs_error *err);

/* The zone of this machine, which cron has: localtime or timezone in /etc, else TZ, which is
 * of the caller. False: not known. */
bool dibs__host_zone(const char *etc, char out[DIBS__ZONE_NAME_MAX + 1]);

#endif
