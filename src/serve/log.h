/* log.h - the daemon's log: lines on standard error, as key=value or as JSON.
 *
 * A line that the descriptor does not take at once is dropped and counted: a reader
 * that stands still must not stop the daemon. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_LOG_H
#define DIBS_SERVE_LOG_H

#include "base/clock.h"
#include <dibs/dibs.h>
#include <pthread.h>

typedef struct dibs__serve_log {
    int fd;
    bool json;
    pthread_mutex_t mutex; /* for all below */
    dibsx_nsec second_at;  /* the second that is counted began */
    unsigned access;       /* lines about requests in it */
    uint64_t dropped;      /* lines since the last that said so */
} dibs__serve_log;

/* A text or, with NULL, a number. */
typedef struct dibs__serve_fact {
    const char *key; /* NULL ends */
    const char *text;
    int64_t number;
} dibs__serve_fact;

#define DIBS__SERVE_FACTS(...)                                                 \
    ((const dibs__serve_fact[]){__VA_ARGS__, {NULL, NULL, 0}})

void dibs__serve_log_init(dibs__serve_log *log, bool json);
void dibs__serve_log_fini(dibs__serve_log *log);

/* `event` is a short fixed word. Facts may be NULL. */
void dibs__serve_say(dibs__serve_log *log, dibs_log_level level,
                     const char *event, const dibs__serve_fact *facts,
                     const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A line about a request: at most 100 a second, then they are only counted. */
void dibs__serve_log_access(dibs__serve_log *log,
                            const dibs__serve_fact *facts);

/* As the log of a client. */
dibs_log_fn dibs__serve_log_client;

#endif
