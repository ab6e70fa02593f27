/* listen.c - sockets that listen. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "http/server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

typedef union place {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} place;

static socklen_t fill_place(place *at, const char *address, int port)
{
    memset(at, 0, sizeof(*at));
    if (inet_pton(AF_INET, address, &at->v4.sin_addr) == 1) {
        at->v4.sin_family = AF_INET;
        at->v4.sin_port = htons((uint16_t)port);
        return sizeof(at->v4);
    }
    if (inet_pton(AF_INET6, address, &at->v6.sin6_addr) == 1) {
        at->v6.sin6_family = AF_INET6;
        at->v6.sin6_port = htons((uint16_t)port);
        return sizeof(at->v6);
    }
    return 0;
}

dibs_status
dibs__http_listen(const char *address, int port, int *fd, dibs_error *err)
{
    const int one = 1;
    int number;
    place at;
    socklen_t len = fill_place(&at, address, port);

    *fd = -1;
    if (!len || port < 0 || port > 65535)
        return dibsx_fail(err, DIBS_INVALID,
                          "cannot listen on %s port %d: no such address",
                          address, port);
    *fd =
        socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* A port is free again as soon as nobody listens on it. */
    if (*fd >= 0 &&
        setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
        bind(*fd, &at.any, len) == 0 && listen(*fd, SOMAXCONN) == 0)
        return DIBS_OK;
    number = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return dibsx_fail_at(err, number == EADDRINUSE ? DIBS_BUSY : DIBS_REFUSED,
                         dibsx_errno_name(number),
                         "cannot listen on %s port %d: %s", address, port,
                         strerror(number));
}

/* Somebody accepts there. */
static bool is_answered(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool answered;

    if (fd < 0)
        return true;
    answered = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ||
               errno == EAGAIN;
    close(fd);
    return answered;
}

/* Nobody else can connect before the mode is set: the file has none at first. */
static bool bind_unix(int fd, const struct sockaddr_un *at, unsigned mode)
{
    const mode_t before = umask(0777);
    bool done = bind(fd, (const struct sockaddr *)at, sizeof(*at)) == 0;
    const int number = errno;

    (void)umask(before);
    errno = number;
    return done && chmod(at->sun_path, (mode_t)mode) == 0 &&
           listen(fd, SOMAXCONN) == 0;
}

static bool is_socket(const char *path)
{
    struct stat at;

    return lstat(path, &at) == 0 && S_ISSOCK(at.st_mode);
}

dibs_status dibs__http_listen_unix(const char *path, unsigned mode, int *fd,
                                   dibs_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int number;

    *fd = -1;
    if (strlen(path) >= sizeof(at.sun_path))
        return dibsx_fail(err, DIBS_INVALID,
                          "cannot listen on %.120s: the path is longer than "
                          "%zu bytes",
                          path, sizeof(at.sun_path) - 1);
    memcpy(at.sun_path, path, strlen(path));
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (is_socket(path) && is_answered(&at))
        number = EADDRINUSE;
    else if (is_socket(path) && unlink(path) != 0)
        number = errno;
    else if (*fd >= 0 && bind_unix(*fd, &at, mode))
        return DIBS_OK;
    else
        number = errno;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    return dibsx_fail_at(err, number == EADDRINUSE ? DIBS_BUSY : DIBS_REFUSED,
                         dibsx_errno_name(number),
                         "cannot listen on %.120s: %s", path, strerror(number));
}

int dibs__http_port(int fd)
{
    place at;
    socklen_t len = sizeof(at);

    if (getsockname(fd, &at.any, &len) != 0)
        return 0;
    if (at.any.sa_family != AF_INET && at.any.sa_family != AF_INET6)
        return 0;
    return ntohs(at.any.sa_family == AF_INET6 ? at.v6.sin6_port
                                              : at.v4.sin_port);
}
