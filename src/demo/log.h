/* log.h - what the demonstration says: lines of text, or of JSON, and events for
 * those who follow them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_LOG_H
#define DIBS_DEMO_LOG_H

#include "base/clock.h"
#include "demo/feed.h"

/* Takes a line with its end, and its stamp (merge.h). */
typedef void dibs__demo_put_fn(void *arg, const char *line, size_t len);

/* To tell of something that was a moment ago, take a copy and set `at`. */
typedef struct dibs__demo_log {
    dibs__demo_put_fn *put; /* gets the line with a stamp before it */
    void *arg;
    dibs__demo_feed *feed; /* gets it as JSON, whatever the form; or NULL */
    int worker;            /* 0: the primary */
    dibsx_nsec at;         /* 0: now */
    bool json;
    bool colour;
} dibs__demo_log;

typedef enum dibs__demo_mood {
    DIBS__DEMO_PLAIN,
    DIBS__DEMO_GOOD, /* a check mark goes before it */
    DIBS__DEMO_BAD   /* a cross, and "level":"error" */
} dibs__demo_mood;

/* A pair of the JSON form; text NULL: it is the number. */
typedef struct dibs__demo_fact {
    const char *key; /* NULL ends a list */
    const char *text;
    int64_t number;
} dibs__demo_fact;

#define DIBS__DEMO_FACTS(...)                                                  \
    ((const dibs__demo_fact[]){__VA_ARGS__, {NULL, NULL, 0}})

/* For `put`: writes to standard output. A line that cannot be written is lost. */
void dibs__demo_put_out(void *arg, const char *line, size_t len);

/* Makes one line and puts it, in one piece. `event` is a short fixed word and, with the
 * facts (may be NULL), only in the JSON form. Control characters in texts from
 * elsewhere are not passed on. Any thread, if `put` may be called there. */
void dibs__demo_say(const dibs__demo_log *log, dibs__demo_mood mood,
                    const char *event, const dibs__demo_fact *facts,
                    const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
