/* spawn.h - starting a worker: this program again, with everything that it needs
 * to know in its arguments and its environment, but for secrets. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_SPAWN_H
#define DIBS_DEMO_SPAWN_H

#include "demo/demo.h"
#include <sys/types.h>

typedef struct dibs__demo_line dibs__demo_line;

/* Makes the command line and the environment of the workers. URLs, which are borrowed,
 * are in neither: each worker reads them from a pipe. Configuration files are not
 * read again. Free with dibs__demo_line_free(). */
DIBS_MUST_CHECK dibs_status dibs__demo_line_new(const dibs__demo_opts *opts,
                                                dibs__demo_line **out,
                                                dibs_error *err);
void dibs__demo_line_free(dibs__demo_line *line);

/* Starts worker `id`; *fd reads what it says. It gets SIGTERM when this thread
 * ends. It does not inherit the signals that are blocked here. */
DIBS_MUST_CHECK dibs_status dibs__demo_spawn(dibs__demo_line *line, int id,
                                             pid_t *pid, int *fd,
                                             dibs_error *err);

#endif
