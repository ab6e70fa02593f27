/* socket.h - sockets that keep deadlines: connecting, and waiting on them. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_SOCKET_H
#define DIBS_STORE_REDIS_WIRE_SOCKET_H

#include "base/clock.h"
#include <dibs/types.h>
#include <sys/socket.h>

/* A receive blocks in the kernel for this long at most, and then the caller
 * looks at its deadline. One system call instead of two. */
#define DIBS__RECEIVE_SLICE (100 * DIBSX_MS)

/* Addresses that a name may stand for; more are left out. */
enum { DIBS__ADDRESS_MAX = 8 };

typedef struct dibs__address {
    struct sockaddr_storage at;
    socklen_t len;
} dibs__address;

/* The address of a unix socket. DIBS_INVALID when the path is too long. */
DIBS_MUST_CHECK dibs_status dibs__address_unix(const char *path,
                                               dibs__address *out,
                                               dibs_error *err);

/* An address as people write it, for messages. */
enum { DIBS__ADDRESS_TEXT = 128 };
void dibs__address_text(const dibs__address *address, char *out, size_t size);

/* Connects to the first address that answers. An attempt that is slow is joined
 * by one to the next address; one that failed is followed at once. The socket is
 * a blocking one whose receives end after DIBS__RECEIVE_SLICE. DIBS_UNAVAIL, also
 * when `abort_fd` (-1 for none) became readable, or DIBS_DENIED for a unix socket
 * without permission. */
DIBS_MUST_CHECK dibs_status dibs__socket_open(const dibs__address *addresses,
                                              size_t count, int abort_fd,
                                              dibsx_nsec deadline, int *fd,
                                              dibs_error *err);

/* Waits on a socket: returns `events` of poll(2), 0 when the time was up, and
 * POLLPRI when `abort_fd` (-1 for none) became readable. */
short dibs__socket_wait(int fd, short events, int abort_fd, dibsx_nsec until);

#endif
