/* spawn.h - starting a worker or the daemon: this program again, with everything that
 * it needs to know in its arguments and its environment, but for secrets. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_SPAWN_H
#define DIBS_DEMO_SPAWN_H

#include "demo/demo.h"
#include <sys/types.h>

/* Descriptors that a child inherits have this number or a higher one, out of the way of
 * a socket that it is given. */
enum { DIBS__DEMO_FREE_FD = 10 };

typedef struct dibs__demo_line dibs__demo_line;

/* Makes the command line and the environment of the workers. URLs, which are borrowed,
 * are in neither: each worker reads them from a pipe. Configuration files are not
 * read again. Free with dibs__demo_line_free(). */
DIBS_MUST_CHECK dibs_status dibs__demo_line_new(const dibs__demo_opts *opts,
                                                dibs__demo_line **out,
                                                dibs_error *err);
void dibs__demo_line_free(dibs__demo_line *line);

/* Likewise, of the daemon (`dibs serve`), which listens on the socket `listen_fd` and
 * reads its access tokens from `tokens_fd`, which is DIBS__DEMO_FREE_FD at least. Both
 * are borrowed. */
DIBS_MUST_CHECK dibs_status dibs__demo_daemon_line_new(
    const dibs__demo_opts *opts, int listen_fd, int tokens_fd,
    dibs__demo_line **out, dibs_error *err);

/* Starts worker `id`; *fd reads what it says. It gets SIGTERM when this thread
 * ends. It does not inherit the signals that are blocked here. */
DIBS_MUST_CHECK dibs_status dibs__demo_spawn(dibs__demo_line *line, int id,
                                             pid_t *pid, int *fd,
                                             dibs_error *err);

/* Starts the daemon; *fd reads its log. Likewise, but signals of the terminal do not
 * reach it: the primary ends it. */
DIBS_MUST_CHECK dibs_status dibs__demo_spawn_daemon(dibs__demo_line *line,
                                                    pid_t *pid, int *fd,
                                                    dibs_error *err);

#endif
