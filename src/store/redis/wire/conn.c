/* conn.c - one connection to a server: bytes out, replies in.
 *
 * Owns the socket, the TLS on it and the reader of replies. Runs on the thread
 * of the caller. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/conn.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/spin.h"
#include "store/redis/wire/tls.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum {
    INPUT_SIZE = 16384,
    COMMAND_ON_STACK = 1024,
    TLS_ALERT = 0x15 /* the first byte with which TLS says what is wrong */
};

static const char too_slow[] = "the server did not answer in time";

struct dibs__conn {
    int fd;
    int abort_fd;   /* ends the opening; -1: nothing does */
    dibs__tls *tls; /* NULL: none */
    redisReader *reader;
    dibs__guard guard;
    dibsx_spin spin;
    bool fresh;     /* nothing has been received yet */
    uint64_t taken; /* bytes that the kernel or TLS has taken */
    uint64_t given; /* bytes that may have left: TLS may fail half-way */
    char input[INPUT_SIZE];
};

void dibs__conn_close(dibs__conn *cn)
{
    if (!cn)
        return;
    dibs__tls_close(cn->tls);
    if (cn->fd >= 0)
        close(cn->fd);
    if (cn->reader)
        dibs__hi.redisReaderFree(cn->reader);
    dibsx_free(cn);
}

static dibs_status
connect_socket(dibs__conn *cn, const dibs__redis_conf *conf, dibs__resolver *rs,
               dibsx_nsec deadline, dibs_error *err)
{
    dibs__address addresses[DIBS__ADDRESS_MAX];
    size_t count = 1;
    dibs_status rc = conf->path
                         ? dibs__address_unix(conf->path, addresses, err)
                         : dibs__resolve(rs, deadline, addresses, &count, err);

    if (rc != DIBS_OK)
        return rc;
    return dibs__socket_open(addresses, count, cn->abort_fd, deadline, &cn->fd,
                             err);
}

dibs_status
dibs__conn_start(const dibs__redis_conf *conf, dibs__resolver *rs, int abort_fd,
                 dibsx_nsec deadline, dibs__conn **out, dibs_error *err)
{
    dibs__conn *cn = NULL;
    dibs_status rc = dibs__hiredis_load(err);

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    cn = dibsx_zalloc(sizeof(*cn));
    if (!cn)
        return dibsx_nomem(err, "a connection");
    cn->fd = -1;
    cn->abort_fd = abort_fd;
    cn->fresh = true;
    dibsx_spin_init(&cn->spin, dibsx_processors());
    cn->reader = dibs__hi.redisReaderCreate();
    if (!cn->reader)
        rc = dibsx_nomem(err, "a reader of replies");
    if (rc == DIBS_OK)
        rc = connect_socket(cn, conf, rs, deadline, err);
    if (rc == DIBS_OK && conf->tls)
        rc = dibs__tls_open(conf, cn->fd, deadline, &cn->tls, err);
    if (rc == DIBS_OK)
        *out = cn;
    else
        dibs__conn_close(cn);
    return rc;
}

void dibs__conn_settle(dibs__conn *cn)
{
    cn->abort_fd = -1;
}

void dibs__conn_sever(dibs__conn *cn)
{
    (void)shutdown(cn->fd, SHUT_RDWR);
}

bool dibs__conn_ends(const dibs__conn *cn, char own[DIBS__ADDRESS_TEXT],
                     char other[DIBS__ADDRESS_TEXT])
{
    dibs__address here = {.len = sizeof(here.at)};
    dibs__address there = {.len = sizeof(there.at)};

    if (getsockname(cn->fd, (struct sockaddr *)&here.at, &here.len) != 0 ||
        getpeername(cn->fd, (struct sockaddr *)&there.at, &there.len) != 0 ||
        here.at.ss_family == AF_UNIX)
        return false;
    dibs__address_text(&here, own, DIBS__ADDRESS_TEXT);
    dibs__address_text(&there, other, DIBS__ADDRESS_TEXT);
    return true;
}

bool dibs__conn_gone(dibs__conn *cn)
{
    char byte;
    ssize_t len = recv(cn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (len < 0)
        return errno != EAGAIN && errno != EINTR;
    /* TLS sends records of its own at times, such as the end of the stream. */
    return len == 0 || !cn->tls ||
           dibs__tls_read(cn->tls, cn->input, sizeof(cn->input), NULL) != 0;
}

int dibs__conn_fd(const dibs__conn *cn)
{
    return cn->fd;
}

bool dibs__conn_has_more(const dibs__conn *cn)
{
    return cn->tls && dibs__tls_pending(cn->tls);
}

/* A call on the socket failed: 0 when it may be tried again, else -1. */
static ssize_t socket_failed(const char *what, dibs_error *err)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    (void)dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(errno),
                        "%s the server failed (%s)", what,
                        dibsx_errno_name(errno));
    return -1;
}

ssize_t
dibs__conn_send(dibs__conn *cn, const char *bytes, size_t len, dibs_error *err)
{
    ssize_t sent;

    if (cn->tls) {
        cn->given = cn->taken + len;
        sent = dibs__tls_write(cn->tls, bytes, len, err);
    } else {
        sent = send(cn->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0)
            sent = socket_failed("sending to", err);
    }
    if (sent > 0) {
        cn->taken += (size_t)sent;
        cn->given = cn->taken;
    }
    return sent;
}

uint64_t dibs__conn_given(const dibs__conn *cn)
{
    return cn->given;
}

void dibs__conn_await_room(dibs__conn *cn, dibsx_nsec until)
{
    (void)dibs__socket_wait(cn->fd, POLLOUT, -1, until);
}

static int closed_by_server(dibs__conn *cn, dibs_error *err)
{
    (void)dibsx_fail_at(err, DIBS_UNAVAIL, "EOF",
                        "the server closed the connection%s",
                        cn->fresh && !cn->tls
                            ? " at once; does it expect TLS (rediss:)?"
                            : "");
    return -1;
}

/* Lets the guard see what has come, then the reader. */
static int feed_reader(dibs__conn *cn, size_t len, dibs_error *err)
{
    const char *why = dibs__guard_admit(&cn->guard, cn->input, len);

    if (why && cn->fresh && !cn->tls && cn->input[0] == TLS_ALERT)
        why = "it expects TLS: write rediss: instead of redis:";
    cn->fresh = false;
    if (why) {
        (void)dibsx_fail(err, DIBS_REFUSED,
                         "the server's answer cannot be used: %s", why);
        return -1;
    }
    if (dibs__hi.redisReaderFeed(cn->reader, cn->input, len) != REDIS_OK) {
        (void)dibsx_nomem(err, "the server's answer");
        return -1;
    }
    return 1;
}

static bool is_readable(dibs__conn *cn, bool sending, dibsx_nsec until)
{
    short events = sending ? POLLIN | POLLOUT : POLLIN;

    return (dibs__socket_wait(cn->fd, events, -1, until) & ~POLLOUT) != 0;
}

static ssize_t receive_now(dibs__conn *cn)
{
    return recv(cn->fd, cn->input, sizeof(cn->input), MSG_DONTWAIT);
}

/* Spins for a moment, if that has been quicker lately, and then sleeps. */
static ssize_t receive_soon(dibs__conn *cn, dibsx_nsec now)
{
    bool looking = dibsx_spin_begin(&cn->spin);
    dibsx_nsec until = looking ? now + DIBSX_SPIN_MAX : now;
    ssize_t len = -1;

    errno = EAGAIN;
    for (dibsx_nsec at = now; at < until && len < 0 && errno == EAGAIN;
         at = dibsx_now())
        len = receive_now(cn);
    if (len < 0 && errno == EAGAIN)
        len = recv(cn->fd, cn->input, sizeof(cn->input), 0);
    dibsx_spin_end(&cn->spin, looking, dibsx_now() - now);
    return len;
}

static ssize_t
receive_plain(dibs__conn *cn, dibs__expect expect, dibsx_nsec deadline)
{
    dibsx_nsec now = dibsx_now();
    bool sending = expect == DIBS__EXPECT_ROOM;

    if (expect == DIBS__EXPECT_NONE)
        return receive_now(cn);
    if (sending || deadline - now <= DIBS__RECEIVE_SLICE) {
        if (is_readable(cn, sending, deadline))
            return receive_now(cn);
        errno = EAGAIN;
        return -1;
    }
    if (expect == DIBS__EXPECT_SOON)
        return receive_soon(cn, now);
    return recv(cn->fd, cn->input, sizeof(cn->input), 0);
}

static int receive_tls(dibs__conn *cn, dibs__expect expect, dibsx_nsec deadline,
                       dibs_error *err)
{
    dibsx_nsec slice_end = dibsx_now() + DIBS__RECEIVE_SLICE;
    bool sending = expect == DIBS__EXPECT_ROOM;
    ssize_t len;

    if (expect != DIBS__EXPECT_NONE && !dibs__tls_pending(cn->tls) &&
        !is_readable(cn, sending, deadline < slice_end ? deadline : slice_end))
        return 0;
    len = dibs__tls_read(cn->tls, cn->input, sizeof(cn->input), err);
    return len > 0 ? feed_reader(cn, (size_t)len, err) : (int)len;
}

int dibs__conn_receive(dibs__conn *cn, dibs__expect expect, dibsx_nsec deadline,
                       dibs_error *err)
{
    ssize_t len;

    if (cn->tls)
        return receive_tls(cn, expect, deadline, err);
    len = receive_plain(cn, expect, deadline);
    if (len > 0)
        return feed_reader(cn, (size_t)len, err);
    if (len == 0 || (cn->fresh && errno == ECONNRESET))
        return closed_by_server(cn, err);
    return (int)socket_failed("receiving from", err);
}

bool dibs__conn_next(dibs__conn *cn, redisReply **out, dibs_error *err)
{
    void *reply = NULL;

    *out = NULL;
    if (dibs__hi.redisReaderGetReply(cn->reader, &reply) != REDIS_OK) {
        if (cn->reader->err == REDIS_ERR_OOM)
            (void)dibsx_nomem(err, "the server's answer");
        else
            (void)dibsx_fail(err, DIBS_REFUSED,
                             "the server's answer cannot be used: %s",
                             cn->reader->errstr);
        return false;
    }
    *out = reply;
    return true;
}

/* Until all is sent or the deadline. */
static dibs_status send_all(dibs__conn *cn, const char *bytes, size_t len,
                            dibsx_nsec deadline, dibs_error *err)
{
    uint64_t before = cn->given;
    dibs_error why = {0};

    while (len > 0) {
        ssize_t sent = dibs__conn_send(cn, bytes, len, &why);

        if (sent == 0 && dibsx_now() >= deadline) {
            (void)dibsx_fail_at(&why, DIBS_TIMEOUT, "ETIMEDOUT", "%s",
                                too_slow);
            sent = -1;
        }
        if (sent < 0)
            return dibsx_fail_at(err,
                                 cn->given == before ? DIBS_UNAVAIL
                                                     : DIBS_UNKNOWN,
                                 why.origin, "%s", why.message);
        if (sent == 0)
            dibs__conn_await_room(cn, deadline);
        bytes += sent;
        len -= (size_t)sent;
    }
    return DIBS_OK;
}

dibs_status dibs__conn_tell(dibs__conn *cn, const dibs__words *words,
                            dibsx_nsec deadline, dibs_error *err)
{
    char small[COMMAND_ON_STACK];
    size_t room = dibs__words_room(words);
    char *bytes = room <= sizeof(small) ? small : dibsx_zalloc(room);
    dibs_status rc;

    if (!bytes)
        return dibsx_nomem(err, "a command");
    rc = send_all(cn, bytes, dibs__words_encode(words, bytes), deadline, err);
    /* It may have been a password. */
    explicit_bzero(bytes, room);
    if (bytes != small)
        dibsx_free(bytes);
    return rc;
}

/* One reply, from what is there or will come. */
static dibs_status
await_reply(dibs__conn *cn, int abort_fd, dibsx_nsec deadline, redisReply **out,
            dibs_error *why)
{
    bool last = false;

    if (abort_fd < 0)
        abort_fd = cn->abort_fd;
    for (;;) {
        bool pending = cn->tls && dibs__tls_pending(cn->tls);

        if (!dibs__conn_next(cn, out, why))
            return why->status;
        if (*out)
            return DIBS_OK;
        if (last)
            return dibsx_fail_at(why, DIBS_TIMEOUT, "ETIMEDOUT", "%s",
                                 too_slow);
        if (abort_fd >= 0 &&
            dibs__socket_wait(cn->fd, POLLIN, abort_fd,
                              pending ? dibsx_now() : deadline) == POLLPRI)
            return dibsx_fail(why, DIBS_CANCELLED, "listening was ended");
        if (dibs__conn_receive(cn, DIBS__EXPECT_INPUT, deadline, why) < 0)
            return why->status;
        last = dibsx_now() >= deadline;
    }
}

dibs_status dibs__conn_hear(dibs__conn *cn, int abort_fd, dibsx_nsec deadline,
                            redisReply **out, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status rc = await_reply(cn, abort_fd, deadline, out, &why);

    return rc == DIBS_OK
               ? rc
               : dibsx_fail_at(err, rc, why.origin, "%s", why.message);
}

dibs_status
dibs__conn_ask(dibs__conn *cn, const dibs__words *words, dibsx_nsec deadline,
               redisReply **out, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status rc;

    *out = NULL;
    rc = dibs__conn_tell(cn, words, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    rc = await_reply(cn, -1, deadline, out, &why);
    if (rc == DIBS_OK)
        return rc;
    return dibsx_fail_at(err, DIBS_UNKNOWN, why.origin, "%s", why.message);
}
