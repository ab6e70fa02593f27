/* socket.c - sockets that keep deadlines: connecting, and waiting on them.
 *
 * Owns nothing but attempts that are under way. Runs on the caller's thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/socket.h"
#include "base/fail.h"
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

/* How long one attempt is alone before the next address is tried beside it. */
#define HEAD_START (250 * DIBSX_MS)

/* A peer that vanished without a word is noticed after about half a minute even
 * where no deadline is running. */
enum { KEEP_IDLE_S = 15, KEEP_EVERY_S = 5, KEEP_COUNT = 3 };

/* Attempts to connect that are under way at the same time. */
typedef struct race {
    const dibs__address *addresses;
    size_t count;
    size_t started;
    size_t running;
    struct pollfd fds[DIBS__ADDRESS_MAX]; /* fd -1: not running */
    struct pollfd halt; /* ends the race; fd -1: nothing does */
    int number;         /* why the last one failed */
    size_t failed;
} race;

dibs_status
dibs__address_unix(const char *path, dibs__address *out, dibs_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = strlen(path);

    if (len >= sizeof(at.sun_path))
        return dibsx_fail(err, DIBS_INVALID,
                          "the path of a unix socket has at most %zu bytes",
                          sizeof(at.sun_path) - 1);
    memcpy(at.sun_path, path, len + 1);
    memset(out, 0, sizeof(*out));
    memcpy(&out->at, &at, sizeof(at));
    out->len = sizeof(at);
    return DIBS_OK;
}

void dibs__address_text(const dibs__address *address, char *out, size_t size)
{
    char name[INET6_ADDRSTRLEN] = "?";
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;

    switch (address->at.ss_family) {
    case AF_INET:
        memcpy(&in4, &address->at, sizeof(in4));
        (void)inet_ntop(AF_INET, &in4.sin_addr, name, sizeof(name));
        (void)snprintf(out, size, "%s:%d", name, ntohs(in4.sin_port));
        break;
    case AF_INET6:
        memcpy(&in6, &address->at, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, name, sizeof(name));
        (void)snprintf(out, size, "[%s]:%d", name, ntohs(in6.sin6_port));
        break;
    default:
        memcpy(&un, &address->at, sizeof(un));
        (void)snprintf(out, size, "%s", un.sun_path);
    }
}

static int poll_ms(dibsx_nsec until)
{
    int64_t ms = dibsx_wait_ms(until, dibsx_now());

    return ms > INT_MAX ? INT_MAX : (int)ms;
}

short dibs__socket_wait(int fd, short events, int abort_fd, dibsx_nsec until)
{
    struct pollfd fds[2] = {{.fd = fd, .events = events},
                            {.fd = abort_fd, .events = POLLIN}};
    int count;

    do {
        count = poll(fds, 2, poll_ms(until));
    } while (count < 0 && errno == EINTR);
    if (fds[1].revents)
        return POLLPRI;
    return count > 0 ? fds[0].revents : 0;
}

static void set_int(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

/* None of these is needed for a right answer, so one that a system lacks is
 * passed over; but without the slice a receive could block for ever. */
static bool prepare_socket(int fd, int family)
{
    struct timeval slice = {.tv_usec = DIBS__RECEIVE_SLICE / 1000};

    if (family != AF_UNIX) {
        set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
        set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S);
        set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_COUNT);
    }
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof(slice)) == 0;
}

static void attempt_failed(race *rc, size_t i, int number)
{
    if (rc->fds[i].fd >= 0) {
        close(rc->fds[i].fd);
        rc->running--;
    }
    rc->fds[i].fd = -1;
    rc->number = number;
    rc->failed = i;
}

/* Starts the attempt at the next address. */
static void start_attempt(race *rc)
{
    size_t i = rc->started++;
    const dibs__address *to = &rc->addresses[i];
    int family = to->at.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    rc->fds[i] = (struct pollfd){.fd = fd, .events = POLLOUT};
    if (fd < 0) {
        attempt_failed(rc, i, errno);
        return;
    }
    rc->running++;
    if (!prepare_socket(fd, family) ||
        (connect(fd, (const struct sockaddr *)&to->at, to->len) != 0 &&
         errno != EINPROGRESS))
        attempt_failed(rc, i, errno);
}

/* The socket of an attempt that has succeeded, or -1. */
static int take_connected(race *rc)
{
    for (size_t i = 0; i < rc->started; i++) {
        int number = 0;
        socklen_t len = sizeof(number);
        int fd = rc->fds[i].fd;

        if (fd < 0 || !rc->fds[i].revents)
            continue;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &len) != 0)
            number = errno;
        if (number == 0) {
            rc->fds[i].fd = -1;
            return fd;
        }
        attempt_failed(rc, i, number);
    }
    return -1;
}

/* Whether any attempt has come to an end. */
static bool await_any(race *rc, dibsx_nsec until)
{
    struct pollfd fds[DIBS__ADDRESS_MAX + 1];
    int count;

    memcpy(fds, rc->fds, rc->started * sizeof(fds[0]));
    fds[rc->started] = rc->halt;
    count = poll(fds, rc->started + 1, poll_ms(until));
    memcpy(rc->fds, fds, rc->started * sizeof(fds[0]));
    rc->halt = fds[rc->started];
    return count > 0;
}

static int run_race(race *rc, dibsx_nsec deadline)
{
    while (rc->running > 0 || rc->started < rc->count) {
        dibsx_nsec next_at;
        int fd;

        if (rc->started < rc->count)
            start_attempt(rc);
        next_at = dibsx_now() + HEAD_START;
        if (rc->started == rc->count || next_at > deadline)
            next_at = deadline;
        if (rc->running > 0 && await_any(rc, next_at)) {
            fd = take_connected(rc);
            if (fd >= 0)
                return fd;
        }
        if (rc->halt.revents) {
            rc->number = ECANCELED;
            return -1;
        }
        if (dibsx_now() >= deadline) {
            if (rc->running > 0)
                rc->number = ETIMEDOUT;
            return -1;
        }
    }
    return -1;
}

static dibs_status fail_race(const race *rc, dibs_error *err)
{
    bool denied = rc->number == EACCES || rc->number == EPERM;
    char where[DIBS__ADDRESS_TEXT];

    dibs__address_text(&rc->addresses[rc->failed], where, sizeof(where));
    if (rc->number == ETIMEDOUT)
        return dibsx_fail_at(err, DIBS_UNAVAIL, "ETIMEDOUT",
                             "%s did not answer in time", where);
    return dibsx_fail_at(err, denied ? DIBS_DENIED : DIBS_UNAVAIL,
                         dibsx_errno_name(rc->number),
                         "cannot connect to %s (%s)", where,
                         dibsx_errno_name(rc->number));
}

static bool make_blocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

dibs_status
dibs__socket_open(const dibs__address *addresses, size_t count, int abort_fd,
                  dibsx_nsec deadline, int *fd, dibs_error *err)
{
    race rc = {.addresses = addresses,
               .count = count,
               .halt = {.fd = abort_fd, .events = POLLIN}};

    assert(count > 0 && count <= DIBS__ADDRESS_MAX);
    *fd = run_race(&rc, deadline);
    for (size_t i = 0; i < rc.started; i++)
        if (rc.fds[i].fd >= 0)
            close(rc.fds[i].fd);
    if (*fd < 0)
        return fail_race(&rc, err);
    if (!make_blocking(*fd)) {
        close(*fd);
        *fd = -1;
        return dibsx_fail(err, DIBS_UNAVAIL, "a socket cannot be set up (%s)",
                          dibsx_errno_name(errno));
    }
    return DIBS_OK;
}
