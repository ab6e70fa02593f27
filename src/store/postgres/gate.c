/* gate.c - passes the bytes of a server on to libpq, a piece at a time.
 *
 * Owns the connection and our end of the pair. Runs on the thread that has the
 * connection; never blocks. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/gate.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool dibs__pg_gate_set(dibs__pg_gate *gate, int fd)
{
    int pair[2] = {-1, -1};
    int server_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (server_fd < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) != 0)
        goto out;
    if (dup3(pair[0], fd, O_CLOEXEC) < 0)
        goto out;
    close(pair[0]);
    gate->set = true;
    gate->server_fd = server_fd;
    gate->libpq_fd = pair[1];
    gate->out_len = 0;
    return true;
out:
    if (server_fd >= 0)
        close(server_fd);
    if (pair[0] >= 0) {
        close(pair[0]);
        close(pair[1]);
    }
    return false;
}

void dibs__pg_gate_fini(dibs__pg_gate *gate)
{
    if (!gate->set)
        return;
    close(gate->server_fd);
    close(gate->libpq_fd);
    gate->set = false;
}

size_t dibs__pg_waiting(int fd)
{
    int count = 0;

    return ioctl(fd, FIONREAD, &count) == 0 && count > 0 ? (size_t)count : 0;
}

void dibs__pg_gate_lift(dibs__pg_gate *gate, int fd)
{
    if (!gate->set || gate->out_len > 0 || dibs__pg_waiting(fd) > 0 ||
        dibs__pg_waiting(gate->libpq_fd) > 0)
        return;
    if (dup3(gate->server_fd, fd, O_CLOEXEC) >= 0)
        dibs__pg_gate_fini(gate);
}

void dibs__pg_gate_let_out(dibs__pg_gate *gate)
{
    ssize_t sent;

    if (gate->out_len == 0) {
        ssize_t got = recv(gate->libpq_fd, gate->out, sizeof(gate->out), 0);

        if (got <= 0)
            return;
        gate->out_len = (size_t)got;
    }
    sent = send(gate->server_fd, gate->out, gate->out_len, MSG_NOSIGNAL);
    if (sent <= 0)
        return;
    gate->out_len -= (size_t)sent;
    memmove(gate->out, gate->out + sent, gate->out_len);
}

/* The pair has room for a piece: it is empty. */
static bool pass_on(const dibs__pg_gate *gate, const char *piece, size_t len)
{
    ssize_t sent;

    do
        sent = send(gate->libpq_fd, piece, len, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)len;
}

size_t dibs__pg_gate_let_in(const dibs__pg_gate *gate, size_t most,
                            dibs__pg_gate_look *look, void *arg)
{
    char piece[DIBS__PG_GATE_PIECE];
    ssize_t got = recv(gate->server_fd, piece,
                       most < sizeof(piece) ? most : sizeof(piece), 0);

    if (got > 0 && look && !look(arg, piece, (size_t)got))
        return 0;
    if (got > 0 && pass_on(gate, piece, (size_t)got))
        return (size_t)got;
    if (got >= 0 || (errno != EAGAIN && errno != EINTR))
        shutdown(gate->libpq_fd, SHUT_WR);
    return 0;
}
