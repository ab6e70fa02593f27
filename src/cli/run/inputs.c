/* inputs.c - requests to give the lock back, and ticks of progress.
 *
 * Owns the descriptors. Main thread, but for dibs__run_inputs_yield(). */
/* SPDX-License-Identifier: MIT */
#include "cli/run/inputs.h"

#include "base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static bool open_ticks(dibs__run_inputs *inputs)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    inputs->tick_fd = ends[0];
    inputs->command_fd = ends[1];
    /* Only the reading end must not block: the other is the command's. */
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
           fcntl(ends[1], F_SETFD, 0) == 0;
}

dibs_status dibs__run_inputs_open(dibs__run_inputs *inputs, bool yields,
                                  bool ticks, dibs_error *err)
{
    bool done = true;

    *inputs = (dibs__run_inputs){-1, -1, -1};
    if (ticks)
        done = open_ticks(inputs);
    if (done && yields) {
        inputs->yield_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        done = inputs->yield_fd >= 0;
    }
    if (done)
        return DIBS_OK;
    int number = errno;
    dibs__run_inputs_close(inputs);
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot open a pipe: %s", strerror(number));
}

void dibs__run_inputs_close(dibs__run_inputs *inputs)
{
    shut(&inputs->yield_fd);
    shut(&inputs->tick_fd);
    shut(&inputs->command_fd);
}

void dibs__run_inputs_yield(dibs_lock *lock, void *arg)
{
    const dibs__run_inputs *inputs = arg;
    const uint64_t one = 1;

    (void)lock;
    /* It fails only when as much as can be counted has come already. */
    (void)!write(inputs->yield_fd, &one, sizeof one);
}

void dibs__run_inputs_started(dibs__run_inputs *inputs)
{
    shut(&inputs->command_fd);
}

bool dibs__run_inputs_take(int *fd)
{
    char bytes[4096];
    ssize_t got = read(*fd, bytes, sizeof bytes);

    if (got == 0)
        shut(fd);
    return got > 0;
}
