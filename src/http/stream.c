/* stream.c - answers that go on: their producers are asked for more whenever the
 * client has taken what there was.
 *
 *     fill --> SENDING --> all sent --> fill ...
 *               ^               +--> nothing new: PARKED --> woken, or silent for
 *               +------------------------------------------- long: fill
 *
 * Owns one portion of each stream while it is being sent, and nothing of one that is
 * parked. Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "http/stream.h"
#include "http/inside.h"
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Bytes that the kernel keeps for a stream. Without this bound it would take megabytes
 * for a client that does not read. */
enum { KERNEL_MAX = 64 * 1024 };

/* Each portion has its storage for as long as it is on its way. */
static void renew_portion(dibs__http_exchange *ex)
{
    dibsx_buf_fini(&ex->answer);
    dibsx_buf_init(&ex->answer, DIBS__HTTP_PULL_MAX);
    ex->byte_count = 0;
    ex->tail = "";
}

bool dibs__http_stream_admit(dibs__http_exchange *ex)
{
    dibs__http_server *server = ex->server;
    const unsigned send_ms = (unsigned)server->opts.send_ms;
    const int most = KERNEL_MAX;
    const int fd = ex->link->fd;

    if (server->stream_count >= server->opts.streams_max)
        return false;
    server->stream_count++;
    ex->streaming = true;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
    /* Else the end of a client whose machine is gone would be noticed after a quarter
     * of an hour. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &send_ms,
                     sizeof(send_ms));
    renew_portion(ex);
    return true;
}

/* One chunk, and the last one when the stream has ended. */
static void frame(dibs__http_exchange *ex)
{
    ex->bytes = ex->answer.data;
    ex->byte_count = ex->answer.len;
    if (ex->head.old)
        return;
    if (ex->byte_count > 0) {
        dibsx_buf_printf(&ex->out, "%zx\r\n", ex->byte_count);
        ex->tail = ex->ended ? "\r\n0\r\n\r\n" : "\r\n";
    } else if (ex->ended) {
        ex->tail = "0\r\n\r\n";
    }
}

void dibs__http_stream_fill(dibs__http_exchange *ex)
{
    /* At the end each is asked once more, whatever it has to say. */
    ex->ended =
        !ex->stream.pull(ex->stream.arg, &ex->answer) || ex->server->ending;
    frame(ex);
}

/* Asks for the next portion; false: there is none yet. One that did not fit is the end:
 * what was lost of it would be missing among the next ones. */
static bool refill(dibs__http_exchange *ex)
{
    renew_portion(ex);
    dibsx_buf_reset(&ex->out);
    ex->sent = 0;
    dibs__http_stream_fill(ex);
    return ex->ended || ex->byte_count > 0 || !dibsx_buf_ok(&ex->answer);
}

static void send_portion(dibs__http_exchange *ex)
{
    bool fits = dibsx_buf_ok(&ex->answer) && dibsx_buf_ok(&ex->out);

    dibs__http_link_set(ex->link, fits ? DIBS__HTTP_SENDING : DIBS__HTTP_GONE,
                        ex->server->opts.send_ms);
}

void dibs__http_stream_go_on(dibs__http_exchange *ex)
{
    if (refill(ex))
        send_portion(ex);
    else
        dibs__http_link_set(ex->link, DIBS__HTTP_PARKED,
                            ex->stream.idle_ms > 0 ? ex->stream.idle_ms : -1);
}

void dibs__http_stream_beat(dibs__http_exchange *ex)
{
    if (!refill(ex)) {
        dibsx_buf_puts(&ex->answer, ex->stream.idle);
        frame(ex);
    }
    send_portion(ex);
}

/* A stream without news stays as it is, also in when its next beat is due. */
void dibs__http_streams_wake(dibs__http_server *server)
{
    dibs__http_link *link, *next;

    for (link = server->links; link; link = next) {
        next = link->next;
        if (link->phase != DIBS__HTTP_PARKED || !refill(link->ex))
            continue;
        send_portion(link->ex);
        dibs__http_link_go_on(link);
    }
}

bool dibs__http_pull_part(dibsx_buf *from, dibsx_buf *out)
{
    const size_t room = DIBS__HTTP_PULL_MAX - out->len;
    const size_t len = from->len < room ? from->len : room;

    dibsx_buf_add(out, dibsx_buf_text(from), len);
    if (len == from->len) {
        dibsx_buf_reset(from);
        return false;
    }
    memmove(from->data, from->data + len, from->len - len + 1);
    from->len -= len;
    return true;
}

int dibs__http_stream_unacked(const dibs__http_exchange *ex)
{
    int count = -1;

    return ioctl(ex->link->fd, SIOCOUTQ, &count) == 0 ? count : -1;
}

/* A unix socket counts its buffers whole, and TLS adds to the bytes. Without those that the
 * client takes meanwhile it is too little, never too much. */
void dibs__http_stream_count(dibs__http_exchange *ex, int before, size_t sent)
{
    const int64_t more = (int64_t)dibs__http_stream_unacked(ex) - before;

    ex->given += more > (int64_t)sent ? (uint64_t)more : sent;
}

uint64_t dibs__http_sent(const dibs__http_exchange *ex)
{
    return ex->given;
}

bool dibs__http_acked(const dibs__http_exchange *ex, uint64_t mark)
{
    const int count = dibs__http_stream_unacked(ex);

    return count >= 0 && (uint64_t)count <= ex->given - mark;
}
