/* wire.h - the bytes of a connection, with TLS or without, and the room that one address
 * may take. Loop thread. Not for users of the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_HTTP_WIRE_H
#define DIBS_HTTP_WIRE_H

#include "http/inside.h"
#include <sys/uio.h>

/* As recv() and sendmsg() without waiting. */
ssize_t dibs__http_wire_read(dibs__http_link *link, void *out, size_t size);
ssize_t dibs__http_wire_write(dibs__http_link *link, const struct iovec *parts,
                              size_t count);

/* The client gets no more; it may go on sending. */
void dibs__http_wire_end(dibs__http_link *link);

/* Bytes have come that epoll does not know of. */
bool dibs__http_wire_pending(const dibs__http_link *link);

/* The address of the other end, in digits; "unix:UID" for a local socket. */
void dibs__http_wire_peer(int fd, char out[DIBS__HTTP_PEER_MAX]);

/* Counts a connection that was accepted: false if its address has too many, and this one
 * is not worth an answer. */
bool dibs__http_crowd_admit(dibs__http_link *link);

/* Counts a handshake of TLS that a connection is to begin: true if its address has begun
 * too many. */
bool dibs__http_is_hasty(dibs__http_server *server, int fd);

/* Makes room, if there is little left, for one more connection: closes the one that
 * has been idle longest, or else the one whose request has been coming longest, of the
 * address with most connections. */
void dibs__http_crowd_relieve(dibs__http_server *server);

#endif
