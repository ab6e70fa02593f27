/* worker.h - one process that takes and gives back until enough was held. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_HISTORY_WORKER_H
#define DIBS_TESTS_HISTORY_WORKER_H

#include "record.h"

/* Works on the store until the run has its holds; the exit status. `run` is the
 * folder of the run, `life` numbers the processes that a worker has had. */
int worker_main(const char *url, const char *run, uint32_t worker,
                uint32_t life);

/* The name of a key in the store. */
void key_name(uint32_t key, char *out, size_t size);

#endif
