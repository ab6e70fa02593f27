/* job_json.h - a definition as the store keeps it: canonical JSON, known by its hash.
 *
 * Keys are in order, defaults are written out, and what is not set is left out; a step
 * has only what differs from its job. So two files that mean the same have one JSON, and
 * reading it back gives the same definition, also where later defaults differ. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_JSON_H
#define DIBS_JOBS_JOB_JSON_H

#include "base/buf.h"
#include "jobs/definition.h"

/* Appends the JSON. The buffer's own limit is the caller's to check. */
void dibs__job_json(const dibs__job *job, dibsx_buf *out);

/* The first 16 digits of the SHA-256 of a text. */
void dibs__job_hash(const void *text, size_t len,
                    char out[DIBS__JOB_HASH_SIZE]);

/* Reads such a JSON. Its zone need not be installed. INVALID: err says why. Free with
 * dibs__job_free(). */
DIBS_MUST_CHECK dibs_status dibs__job_from_json(const char *text, size_t len,
                                                dibs__job **out,
                                                dibs_error *err);

#endif
