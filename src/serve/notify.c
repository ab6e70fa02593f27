/* notify.c - telling the service manager how the daemon is. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/notify.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void dibs__serve_notify(const char *lines)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    int fd;

    if (len < 2 || len >= sizeof(at.sun_path) || !strchr("/@", *path))
        return;
    memcpy(at.sun_path, path, len);
    /* "@name" is a name that no file has. */
    if (*path == '@')
        at.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, lines, strlen(lines), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (struct sockaddr *)&at,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void dibs__serve_notify_reloading(void)
{
    struct timespec now;
    char lines[80];

    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%lld",
             (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    dibs__serve_notify(lines);
}

long dibs__serve_watchdog_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");

    if (!text || (pid && strtol(pid, NULL, 10) != (long)getpid()))
        return 0;
    return strtol(text, NULL, 10) / 2000;
}
