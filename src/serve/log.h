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
    dibs_client *cl, *data; /* whose lines it has; NULL: not open yet */
    pthread_mutex_t mutex;  /* for all below */
    dibs_log_level usual;   /* of the settings */
    dibs_log_level level;   /* ... or as an admin has set it, */
    dibsx_nsec until; /* ... until then; DIBSX_NEVER: until it is set back */
    dibsx_nsec second_at; /* the second that is counted began */
    unsigned access;      /* lines about requests in it */
    uint64_t dropped;     /* lines since the last that said so */
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

/* The level of the clients' lines, as the settings have it. */
void dibs__serve_log_settle(dibs__serve_log *log, dibs_client *cl,
                            dibs_client *data, dibs_log_level usual);

/* Another one for so long; negative: until it is set back to the usual one, which is
 * `level` NULL. */
void dibs__serve_log_set(dibs__serve_log *log, const dibs_log_level *level,
                         int64_t for_ms);

/* The level now, and for how long; -1: without end. */
dibs_log_level dibs__serve_log_get(dibs__serve_log *log, int64_t *left_ms);

/* "error" to "trace"; false: it is none of them. */
const char *dibs__serve_level_text(dibs_log_level level);
DIBS_MUST_CHECK bool
dibs__serve_level_read(const char *text, dibs_log_level *out);

/* As the log of a client. */
dibs_log_fn dibs__serve_log_client;

#endif
