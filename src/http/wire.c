/* wire.c - the bytes of a connection, and the room that one address may take.
 *
 * Owns nothing. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "http/wire.h"
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Connections beyond the share of an address that are answered, and for how long they
 * may ask. */
enum { CROWD_ANSWERED = 8, CROWD_MS = 2000, RECORD_MAX = 16 * 1024 };

/* TLS may want the other direction than the phase of the connection does. */
static ssize_t note_wants(dibs__http_link *link, ssize_t done, int wants)
{
    link->wants = done < 0 && errno == EAGAIN
                      ? (wants == POLLIN ? EPOLLIN : EPOLLOUT)
                      : 0;
    return done;
}

ssize_t dibs__http_wire_read(dibs__http_link *link, void *out, size_t size)
{
    int wants = POLLIN;

    if (!link->seal)
        return recv(link->fd, out, size, MSG_DONTWAIT);
    return note_wants(link, dibs__http_seal_read(link->seal, out, size, &wants),
                      wants);
}

/* One record takes the head of an answer and the begin of its bytes. After a write that
 * was not done, the same bytes come again. */
static ssize_t
write_record(dibs__http_link *link, const struct iovec *parts, size_t count)
{
    char record[RECORD_MAX];
    size_t len = 0;
    int wants = POLLOUT;

    for (size_t i = 0; i < count && len < RECORD_MAX; i++) {
        size_t part = parts[i].iov_len;

        if (part > RECORD_MAX - len)
            part = RECORD_MAX - len;
        if (part > 0)
            memcpy(record + len, parts[i].iov_base, part);
        len += part;
    }
    return note_wants(link,
                      dibs__http_seal_write(link->seal, record, len, &wants),
                      wants);
}

ssize_t dibs__http_wire_write(dibs__http_link *link, const struct iovec *parts,
                              size_t count)
{
    struct msghdr text = {.msg_iov = (struct iovec *)parts,
                          .msg_iovlen = count};

    if (link->seal)
        return write_record(link, parts, count);
    return sendmsg(link->fd, &text, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void dibs__http_wire_end(dibs__http_link *link)
{
    if (link->seal)
        dibs__http_seal_end(link->seal);
    (void)shutdown(link->fd, SHUT_WR);
}

bool dibs__http_wire_pending(const dibs__http_link *link)
{
    return link->seal && dibs__http_seal_pending(link->seal);
}

void dibs__http_wire_peer(int fd, char out[DIBS__HTTP_PEER_MAX])
{
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(at);
    struct ucred who = {.pid = 0};
    socklen_t who_len = sizeof(who);

    *out = '\0';
    if (getpeername(fd, (struct sockaddr *)&at, &len) != 0)
        return;
    if (at.ss_family != AF_UNIX)
        (void)getnameinfo((struct sockaddr *)&at, len, out, DIBS__HTTP_PEER_MAX,
                          NULL, 0, NI_NUMERICHOST);
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_len) == 0)
        snprintf(out, DIBS__HTTP_PEER_MAX, "unix:%lu", (unsigned long)who.uid);
}

/* -- Crowds. */

static unsigned count_peer(const dibs__http_server *server, const char *peer)
{
    unsigned count = 0;

    for (const dibs__http_link *link = server->links; link; link = link->next)
        count += strcmp(link->peer, peer) == 0;
    return count;
}

bool dibs__http_crowd_admit(dibs__http_link *link)
{
    dibs__http_server *server = link->server;
    const unsigned most = server->opts.crowd
                              ? server->opts.crowd(server->opts.arg, link->peer)
                              : 0;
    const unsigned count = most ? count_peer(server, link->peer) : 0;

    if (count <= most)
        return true;
    atomic_fetch_add(&server->crowded, 1);
    link->crowded = true;
    dibs__http_link_set(link, DIBS__HTTP_HEAD, CROWD_MS);
    return count <= most + CROWD_ANSWERED;
}

_Static_assert((int)DIBS__HTTP_PEER_MAX <= (int)DIBSX_QUOTA_NAME_SIZE,
               "an address has a quota of its own");

bool dibs__http_is_hasty(dibs__http_server *server, int fd)
{
    const dibs__http_opts *opts = &server->opts;
    char peer[DIBS__HTTP_PEER_MAX];
    unsigned rate;

    dibs__http_wire_peer(fd, peer);
    rate = opts->haste ? opts->haste(opts->arg, peer) : 0;
    if (!rate || dibsx_quota_take(server->handshakes, peer, rate, dibsx_now()))
        return false;
    atomic_fetch_add(&server->hasty, 1);
    return true;
}

typedef bool fits_fn(const dibs__http_link *link);

static bool is_idle(const dibs__http_link *link)
{
    return link->phase == DIBS__HTTP_IDLE;
}

/* Its request is not whole; nothing is under way that would end with it. */
static bool is_asking(const dibs__http_link *link)
{
    return link->phase == DIBS__HTTP_HEAD || link->phase == DIBS__HTTP_BODY;
}

/* The connection that fits and has been so longest: it is due first. With a peer, of
 * that one alone. */
static dibs__http_link *
find_longest(const dibs__http_server *server, fits_fn *fits, const char *peer)
{
    dibs__http_link *longest = NULL;

    for (dibs__http_link *link = server->links; link; link = link->next) {
        if (fits(link) && (!peer || strcmp(link->peer, peer) == 0) &&
            (!longest || link->due.at < longest->due.at))
            longest = link;
    }
    return longest;
}

/* The address that has most connections whose request is not whole; a sample of them
 * tells one that has many. */
static const char *find_crowd(const dibs__http_server *server)
{
    const char *most_peer = NULL;
    unsigned most = 0, looked = 0;

    for (const dibs__http_link *link = server->links; link && looked < 16;
         link = link->next) {
        unsigned count;

        if (!is_asking(link))
            continue;
        looked++;
        count = count_peer(server, link->peer);
        if (count > most) {
            most = count;
            most_peer = link->peer;
        }
    }
    return most_peer;
}

void dibs__http_crowd_relieve(dibs__http_server *server)
{
    const unsigned max = server->opts.connections_max;
    dibs__http_link *link;

    if (server->link_count < max - max / 8)
        return;
    link = find_longest(server, is_idle, NULL);
    if (!link) {
        const char *peer = find_crowd(server);

        link = peer ? find_longest(server, is_asking, peer) : NULL;
    }
    if (!link)
        return;
    atomic_fetch_add(&server->relieved, 1);
    dibs__http_link_close(link);
}
