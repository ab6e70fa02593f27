/* link.c - connections: what comes and goes, and how long it may take.
 *
 *     HEAD --> BODY --> (WORKING) --> SENDING --+--> IDLE --> HEAD
 *      |        |                     ^ ^  |    +--> LEAVING --> GONE
 *      +--------+-- refused at once --+ |  v
 *                                     PARKED (a stream without news)
 *
 * Owns one record per connection, its descriptor, and the exchange under way. Loop
 * thread only. While it is WORKING, the exchange is the pool's, and nothing is
 * read. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "http/inside.h"
#include "http/later.h"
#include "http/request.h"
#include "http/stream.h"
#include "http/wire.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* A client that has had the last answer may still be sending; closing at once would
 * take the answer away. So much is read, and for so long. */
enum { LEAVE_MS = 1000, LEAVE_MAX = 16 * 1024 * 1024 };

void dibs__http_link_set(dibs__http_link *link, dibs__http_phase phase,
                         int64_t span_ms)
{
    dibsx_heap *dues = &link->server->dues;

    link->phase = phase;
    if (span_ms < 0)
        dibsx_heap_remove(dues, &link->due);
    else if (span_ms > 0)
        dibsx_heap_set(dues, &link->due, dibsx_after_ms(dibsx_now(), span_ms));
}

/* Has epoll look for these events; 0 takes it out, or an end would be reported
 * again and again. */
static bool watch(dibs__http_link *link, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.ptr = link};
    int how = !events         ? EPOLL_CTL_DEL
              : link->watched ? EPOLL_CTL_MOD
                              : EPOLL_CTL_ADD;

    if (events == link->watched)
        return true;
    link->watched = events;
    return epoll_ctl(link->server->epoll_fd, how, link->fd, &ev) == 0;
}

static dibs__http_link *
link_new(dibs__http_server *server, const dibs__http_listener *at, int fd)
{
    dibs__http_link *link = NULL;
    const int one = 1;

    if (dibsx_heap_reserve(&server->dues, server->link_count + 1))
        link = dibsx_zalloc(sizeof(*link) + server->opts.head_max);
    if (!link)
        return NULL;
    /* Answers are sent whole; there is nothing to be gained by waiting. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    link->seal = at->tls ? dibs__http_seal_new(at->tls, fd) : NULL;
    if (at->tls && !link->seal) {
        dibsx_free(link);
        return NULL;
    }
    link->server = server;
    link->fd = fd;
    link->kind = at->kind;
    dibs__http_wire_peer(fd, link->peer);
    link->next = server->links;
    if (link->next)
        link->next->prev = link;
    server->links = link;
    server->link_count++;
    dibs__http_link_set(link, DIBS__HTTP_HEAD, server->opts.receive_ms);
    return link;
}

void dibs__http_link_open(dibs__http_server *server,
                          const dibs__http_listener *at, int fd)
{
    dibs__http_link *link = link_new(server, at, fd);

    if (!link)
        close(fd);
    else if (!dibs__http_crowd_admit(link) || !watch(link, EPOLLIN))
        dibs__http_link_close(link);
}

static void end_exchange(dibs__http_link *link)
{
    dibs__http_exchange_free(link->ex);
    link->ex = NULL;
}

void dibs__http_link_close(dibs__http_link *link)
{
    dibs__http_server *server = link->server;

    dibsx_heap_remove(&server->dues, &link->due);
    if (link->prev)
        link->prev->next = link->next;
    else
        server->links = link->next;
    if (link->next)
        link->next->prev = link->prev;
    server->link_count--;
    if (link->ex && link->ex->engaged)
        server->under_way--;
    end_exchange(link);
    /* Closing does not take it out of epoll while a process that was forked just
     * now has a copy: an event would name memory that is gone. */
    (void)watch(link, 0);
    dibs__http_seal_free(link->seal);
    close(link->fd);
    dibsx_free(link);
}

static void consume(dibs__http_link *link, size_t len)
{
    link->in_len -= len;
    link->in_seen = 0;
    memmove(link->in, link->in + len, link->in_len);
}

/* The exchange for what has come, be it nothing; NULL when memory is short. */
static dibs__http_exchange *exchange_of(dibs__http_link *link)
{
    if (!link->ex)
        link->ex = dibs__http_exchange_new(link);
    if (!link->ex)
        link->phase = DIBS__HTTP_GONE;
    return link->ex;
}

/* False: more of it is to come. */
static bool take_head(dibs__http_link *link)
{
    dibs__http_exchange *ex;
    ssize_t end;

    /* Some end a body with an empty line that is not part of it. */
    if (link->in_len >= 2 && memcmp(link->in, "\r\n", 2) == 0 &&
        !link->skipped) {
        consume(link, 2);
        link->skipped = true;
    }
    end = dibs__http_head_end(link->in, link->in_len, &link->in_seen);
    if (end == 0 && link->in_len < link->server->opts.head_max)
        return false;
    ex = exchange_of(link);
    if (!ex)
        return true;
    if (end > 0)
        dibs__http_begin(ex, link->in, (size_t)end);
    else if (end < 0)
        dibs__http_cut_short(
            ex, 400,
            "The request is not valid: a line of its head does not end in "
            "CR LF, or has a NUL in it");
    else
        dibs__http_cut_short(ex, 431, "The head of the request is too long");
    consume(link, end > 0 ? (size_t)end : link->in_len);
    return true;
}

/* False: more of it is to come. */
static bool take_body(dibs__http_link *link)
{
    size_t taken = dibs__http_take(link->ex, link->in, link->in_len);

    consume(link, taken);
    return link->phase != DIBS__HTTP_BODY;
}

/* The answer is out. */
static void take_leave(dibs__http_link *link)
{
    const dibs__http_opts *opts = &link->server->opts;
    bool last = link->ex->last;

    link->server->under_way--;
    end_exchange(link);
    link->dropped = 0;
    link->skipped = false;
    if (!last) {
        dibs__http_link_set(link, DIBS__HTTP_IDLE, opts->receive_ms);
        return;
    }
    dibs__http_wire_end(link);
    link->in_len = 0;
    dibs__http_link_set(link, DIBS__HTTP_LEAVING,
                        opts->send_ms < LEAVE_MS ? opts->send_ms : LEAVE_MS);
}

/* Takes what is sent already off the front of the parts; returns what is left. */
static size_t skip_sent(struct iovec *parts, size_t count, size_t sent)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++) {
        size_t skip = sent < parts[i].iov_len ? sent : parts[i].iov_len;

        if (skip > 0)
            parts[i].iov_base = (char *)parts[i].iov_base + skip;
        parts[i].iov_len -= skip;
        sent -= skip;
        left += parts[i].iov_len;
    }
    return left;
}

/* All of what there was is sent. A stream goes on in the next turn of the loop, so
 * that one with no end of bytes leaves time for the others. */
static bool end_sending(dibs__http_link *link)
{
    if (link->ex->stream.pull && !link->ex->ended) {
        dibs__http_stream_go_on(link->ex);
        return false;
    }
    take_leave(link);
    return true;
}

/* False: not all of the answer could be sent, or a stream will have more. */
static bool push(dibs__http_link *link)
{
    dibs__http_exchange *ex = link->ex;
    struct iovec parts[] = {{.iov_base = ex->out.data, .iov_len = ex->out.len},
                            {.iov_base = (void *)ex->bytes,
                             .iov_len = ex->byte_count},
                            {.iov_base = (void *)ex->tail,
                             .iov_len = strlen(ex->tail)}};
    size_t left = skip_sent(parts, 3, ex->sent);
    const int before = ex->streaming ? dibs__http_stream_unacked(ex) : 0;
    ssize_t sent = dibs__http_wire_write(link, parts, 3);

    if (sent < 0) {
        if (errno == EAGAIN || errno == EINTR)
            return false;
        link->phase = DIBS__HTTP_GONE;
        return true;
    }
    ex->sent += (size_t)sent;
    if (ex->streaming)
        dibs__http_stream_count(ex, before, (size_t)sent);
    return (size_t)sent == left && end_sending(link);
}

/* Reads what has come; false at the end of it, and when there is no room for more:
 * a client that talks on while it is sent a stream is cut off. */
static bool fill(dibs__http_link *link)
{
    size_t room = link->server->opts.head_max - link->in_len;
    ssize_t got = dibs__http_wire_read(link, link->in + link->in_len, room);

    if (got > 0)
        link->in_len += (size_t)got;
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

/* A request is not whole, but there may be bytes of it that epoll does not know of. */
static bool fill_pending(dibs__http_link *link)
{
    const size_t before = link->in_len;

    if (!dibs__http_wire_pending(link))
        return false;
    if (!fill(link))
        link->phase = DIBS__HTTP_GONE;
    return link->in_len > before;
}

/* One step, if it is not for others to act. */
static bool step(dibs__http_link *link)
{
    switch (link->phase) {
    case DIBS__HTTP_IDLE:
        /* The time that it was idle is not taken from this request. */
        if (link->in_len > 0)
            dibs__http_link_set(link, DIBS__HTTP_HEAD,
                                link->server->opts.receive_ms);
        return link->in_len > 0 || fill_pending(link);
    case DIBS__HTTP_HEAD:
        return take_head(link) || fill_pending(link);
    case DIBS__HTTP_BODY:
        return take_body(link) || fill_pending(link);
    case DIBS__HTTP_SENDING:
        return push(link);
    default:
        return false;
    }
}

void dibs__http_link_go_on(dibs__http_link *link)
{
    static const uint32_t wanted[] = {
        [DIBS__HTTP_HEAD] = EPOLLIN,   [DIBS__HTTP_BODY] = EPOLLIN,
        [DIBS__HTTP_WORKING] = 0,      [DIBS__HTTP_SENDING] = EPOLLOUT,
        [DIBS__HTTP_IDLE] = EPOLLIN,   [DIBS__HTTP_LEAVING] = EPOLLIN,
        [DIBS__HTTP_PARKED] = EPOLLIN, [DIBS__HTTP_WAITING] = EPOLLIN};

    while (step(link))
        continue;
    if (link->phase == DIBS__HTTP_GONE ||
        !watch(link, link->wants && wanted[link->phase] ? link->wants
                                                        : wanted[link->phase]))
        dibs__http_link_close(link);
}

static bool drain(dibs__http_link *link)
{
    bool more = fill(link);

    link->dropped += link->in_len;
    link->in_len = 0;
    return more && link->dropped <= LEAVE_MAX;
}

void dibs__http_link_serve(dibs__http_link *link)
{
    bool leaving = link->phase == DIBS__HTTP_LEAVING;

    if (link->phase != DIBS__HTTP_SENDING &&
        !(leaving ? drain(link) : fill(link)))
        link->phase = DIBS__HTTP_GONE;
    dibs__http_link_go_on(link);
}

void dibs__http_links_cut(dibs__http_server *server, dibsx_nsec now)
{
    dibsx_heap_node *first;

    while ((first = dibsx_heap_first(&server->dues)) && first->at <= now) {
        dibs__http_link *link = (dibs__http_link *)first;
        bool asking = (link->phase == DIBS__HTTP_HEAD ||
                       link->phase == DIBS__HTTP_BODY) &&
                      (!link->seal || dibs__http_seal_ready(link->seal));

        dibsx_heap_remove(&server->dues, first);
        if (link->phase == DIBS__HTTP_PARKED)
            dibs__http_stream_beat(link->ex);
        else if (link->phase == DIBS__HTTP_WAITING)
            dibs__http_later_ask(link->ex, true);
        else if (asking && exchange_of(link))
            dibs__http_cut_short(link->ex, 408,
                                 "The request took too long to arrive");
        else
            link->phase = DIBS__HTTP_GONE;
        dibs__http_link_go_on(link);
    }
}
