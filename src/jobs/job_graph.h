/* job_graph.h - rules of a jobs file that concern more than one job. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_JOB_GRAPH_H
#define DIBS_JOBS_JOB_GRAPH_H

#include "jobs/job_file.h"

/* Reports steps that run jobs in a circle, or without the params that these require,
 * followers in a circle, and locks that two jobs share. `jobs` is the map that the entries come from. NOMEM. */
DIBS_MUST_CHECK dibs_status dibs__job_graph_check(
    dibs__job_reader *rd, const dibs__job_entry *entries, size_t count,
    const dibsx_yaml_node *jobs, dibs_error *err);

#endif
