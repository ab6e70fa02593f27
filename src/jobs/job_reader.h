/* job_reader.h - what reading definitions needs all along: reports, zones, memory.
 *
 * The source is a tree of YAML nodes, also where the text was JSON. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_READER_H
#define DIBS_JOBS_JOB_READER_H

#include "base/yaml.h"
#include "jobs/job_value.h"

/* Hears of mistakes and warnings, in the order in which they are found. */
typedef struct dibs__job_sink {
    void (*note)(void *arg, bool warning, size_t line, size_t column,
                 const char *message);
    void *arg;
} dibs__job_sink;

enum { DIBS__JOB_NOTES_MAX = 20 }; /* the sink hears of no more mistakes */

typedef struct dibs__job_reader {
    const dibs__job_sink *sink;
    dibs__value_context ctx;
    size_t mistakes;
    size_t warnings;
    bool nomem;  /* memory was short */
    bool mute;   /* warnings are not wanted */
    bool stored; /* from the store: places and zones do not matter */
    struct dibs__open_zone *zones;
} dibs__job_reader;

/* The caller owns the struct; end with dibs__job_reader_fini(). */
void dibs__job_reader_init(dibs__job_reader *rd, const dibs__job_sink *sink);
void dibs__job_reader_fini(dibs__job_reader *rd);

/* A mistake, a warning, at a node. */
void dibs__job_mistake(dibs__job_reader *rd, const dibsx_yaml_node *at,
                       const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void dibs__job_warn(dibs__job_reader *rd, const dibsx_yaml_node *at,
                    const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The failure of a value; `key` may be NULL. */
void dibs__job_failure(dibs__job_reader *rd, const dibsx_yaml_node *at,
                       const char *key, const dibs_error *err);

/* A mistake at a column within the text of a scalar, from 1. */
void dibs__job_mistake_within(dibs__job_reader *rd, const dibsx_yaml_node *at,
                              size_t column, const char *message);

/* The zone of this name, open until the reader ends. INVALID, NOTFOUND, DENIED. */
DIBS_MUST_CHECK dibs_status dibs__job_zone(dibs__job_reader *rd,
                                           const char *name,
                                           const dibs__zone **out,
                                           dibs_error *err);

/* The value under a key, NULL: none, or null. `map` may be NULL. */
const dibsx_yaml_node *
dibs__node_get(const dibsx_yaml_node *map, const char *key);

typedef struct dibs__job_source {
    const dibsx_yaml_node *key; /* where its name stands */
    const dibsx_yaml_node *map; /* its keys */
    const dibsx_yaml_node
        *defaults; /* what holds where it gives none, or NULL */
} dibs__job_source;

/* The value that a job gives, or its defaults; NULL: neither. A null of the job takes back
 * what its defaults give. */
const dibsx_yaml_node *
dibs__source_get(const dibs__job_source *source, const char *key);

#endif
