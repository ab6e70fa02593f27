/* output.c - lines, and a status line that stays below them.
 *
 * Owns the bytes that wait to be written. Primary's main thread. */
/* SPDX-License-Identifier: MIT */
#include "demo/output.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAITING_MAX = 1024 * 1024, ENOUGH = 256 * 1024 };

static const char erase[] = "\r\033[K";

/* A terminal that is ready may still take less than a write has, and then blocks.
 * It is opened anew not to do that, for to change the descriptor that we have been
 * given would change it for others too. */
void dibs__demo_output_init(dibs__demo_output *output)
{
    int fd = -1;

    if (isatty(STDOUT_FILENO))
        fd = open("/proc/self/fd/1",
                  O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *output = (dibs__demo_output){.fd = fd < 0 ? STDOUT_FILENO : fd,
                                  .owned = fd >= 0};
    dibsx_buf_init(&output->out, WAITING_MAX);
}

void dibs__demo_output_fini(dibs__demo_output *output)
{
    if (output->owned)
        close(output->fd);
    dibsx_buf_fini(&output->out);
}

bool dibs__demo_output_room(const dibs__demo_output *output)
{
    return output->out.len < ENOUGH;
}

static void hide(dibs__demo_output *output)
{
    if (output->shown)
        dibsx_buf_puts(&output->out, erase);
    output->shown = false;
}

void dibs__demo_output_lines(dibs__demo_output *output, const char *text,
                             size_t len)
{
    if (output->broken || output->out.len + len + sizeof(erase) > WAITING_MAX)
        return;
    hide(output);
    dibsx_buf_add(&output->out, text, len);
}

void dibs__demo_output_status(dibs__demo_output *output, const char *text)
{
    if (strcmp(output->status, text) == 0)
        return;
    hide(output);
    snprintf(output->status, sizeof(output->status), "%s", text);
}

bool dibs__demo_output_pending(const dibs__demo_output *output)
{
    return !output->broken &&
           (output->out.len > 0 || (!output->shown && *output->status));
}

/* At most PIPE_BUF at a time: so much a pipe that is ready takes at once. */
void dibs__demo_output_write(dibs__demo_output *output)
{
    size_t len;
    ssize_t put;

    if (!output->shown && *output->status) {
        dibsx_buf_puts(&output->out, output->status);
        output->shown = true;
    }
    len = output->out.len < PIPE_BUF ? output->out.len : PIPE_BUF;
    if (len == 0)
        return;
    put = write(output->fd, output->out.data, len);
    if (put < 0) {
        output->broken = errno != EINTR && errno != EAGAIN;
        return;
    }
    output->out.len -= (size_t)put;
    memmove(output->out.data, output->out.data + put, output->out.len + 1);
}
