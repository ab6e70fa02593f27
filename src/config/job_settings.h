/* job_settings.h - the sweeps of a node, of `dibs work` and of `dibs serve`. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_JOB_SETTINGS_H
#define DIBS_CONFIG_JOB_SETTINGS_H

/* clang-format off */
#define DIBS__SETTING_SWEEP_PREFIX                                             \
    .name = "sweep-prefix", .env = "DIBS_JOBS_SWEEP_PREFIX",                   \
    .key = "jobs.sweep_prefix", .type = DIBS__BEGIN, .initial = "workflow:",   \
    .max = DIBS_NAME_MAX - (sizeof("cleanup-scheduler") - 1)
#define DIBS__SETTING_RETRY_EVERY                                              \
    .name = "retry-every", .env = "DIBS_JOBS_RETRY_EVERY",                     \
    .key = "jobs.retry_every", .type = DIBS__DURATION, .max = DIBS__DAYS(1),   \
    .initial = "0"
#define DIBS__SETTING_TIMEOUT_EVERY                                            \
    .name = "timeout-every", .env = "DIBS_JOBS_TIMEOUT_EVERY",                 \
    .key = "jobs.timeout_every", .type = DIBS__DURATION, .max = DIBS__DAYS(1), \
    .initial = "1s"
#define DIBS__SETTING_RESUME_EVERY                                             \
    .name = "resume-every", .env = "DIBS_JOBS_RESUME_EVERY",                   \
    .key = "jobs.resume_every", .type = DIBS__DURATION, .max = DIBS__DAYS(1),  \
    .initial = "0"
#define DIBS__SETTING_CLEANUP_EVERY                                            \
    .name = "cleanup-every", .env = "DIBS_JOBS_CLEANUP_EVERY",                 \
    .key = "jobs.cleanup_every", .type = DIBS__DURATION, .max = DIBS__DAYS(1), \
    .initial = "1m"
/* clang-format on */

#endif
