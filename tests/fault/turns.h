/* turns.h - the turns of nodes, for tests on the fault store: names of src/jobs and of the
 * contract clash in one file. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_FAULT_TURNS_H
#define DIBS_FAULT_TURNS_H

#include <stddef.h>
#include <stdint.h>

enum { TURN_NODE_SIZE = 17, TURN_JOB_SIZE = 32 };

/* How long the node `own` leaves a job that is due to the others. */
int64_t turn_delay_ms(const char *job, const char *own,
                      const char *const *others, size_t count);

#endif
