/* job_read.h - reads maps of a jobs file into structs, by the tables of their keys. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_READ_H
#define DIBS_JOBS_JOB_READ_H

#include "jobs/job_reader.h"

/* Keys, and the struct that their values are in. */
typedef struct dibs__key_scope {
    const dibs__keys *keys;
    void *base;
} dibs__key_scope;

/* Reads a map with the keys of all scopes; `of` is what has them, for messages ("a
 * job"). Values that are not given stay as they are; null sets a value back to its
 * default, but variables and params only add. `steps` is left to the caller, and so is
 * the key `besides`, which may be NULL. */
void dibs__keys_read(dibs__job_reader *rd, const dibs__key_scope *scopes,
                     size_t count, const char *of, const char *besides,
                     const dibsx_yaml_node *map);

/* Reads one value that is there. */
void dibs__row_read(dibs__job_reader *rd, const dibs__key *row,
                    const dibsx_yaml_node *value, void *base);

#endif
