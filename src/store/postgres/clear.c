/* clear.c - no password in clear text over a connection that others could read.
 *
 * libpq sends it to whoever asks in that way, be it somebody in between. Since
 * version 16 it can be told not to. Before, the messages of the server are looked at
 * in the kernel's buffer, where libpq has not read them yet: what it will read is
 * known but for bytes that come between the look and the read, and that it has read
 * such bytes is seen the next time.
 *
 * Owns nothing; runs on the thread that connects. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/clear.h"
#include "base/fail.h"
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* More than any server has to say before it knows who asks; how often a count is
 * repeated that changes meanwhile; and numbers of the protocol. */
enum { LOOK_MAX = 8192, TRIES = 100, CLEAR_TEXT = 3, AUTH_OK = 0 };

enum { STATE_CLOSE_WAIT = 8, STATE_CLOSING = 11 };

dibs_status dibs__pg_clear_fail(dibs_error *err)
{
    return dibsx_fail(err, DIBS_DENIED,
                      "the server wants the password in clear text, which "
                      "others could read: ask for TLS (sslmode=verify-full or "
                      "require), set up scram-sha-256 at the server, or allow "
                      "it (cleartext=1)");
}

static const char *word(const dibs__pg_words *words, const char *name)
{
    for (size_t i = 0; i < words->count; i++) {
        if (strcmp(words->names[i], name) == 0)
            return words->values[i];
    }
    return NULL;
}

/* Whether TLS is a condition, and not a wish. */
static bool wants_tls(const dibs__pg_words *words)
{
    const char *mode = word(words, "sslmode");

    mode = mode ? mode : getenv("PGSSLMODE");
    return mode &&
           (strcmp(mode, "require") == 0 || strncmp(mode, "verify-", 7) == 0);
}

const char *
dibs__pg_clear_rule(const dibs__pg_conf *conf, const dibs__pg_words *words)
{
    const char *host = word(words, "host");

    if (conf->cleartext || wants_tls(words) || word(words, "require_auth") ||
        getenv("PGREQUIREAUTH"))
        return NULL;
    host = host ? host : getenv("PGHOST");
    /* A folder, and so a socket of this machine. */
    if (host && *host == '/' && !strchr(host, ','))
        return NULL;
    return "!password";
}

/* How many bytes have come, less those that wait to be read. False when that
 * cannot be told. */
static bool count_read(int fd, uint64_t *count)
{
    for (int i = 0; i < TRIES; i++) {
        struct tcp_info before = {0}, after = {0};
        socklen_t len = sizeof(before);
        int waiting;

        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &before, &len) != 0 ||
            ioctl(fd, SIOCINQ, &waiting) != 0)
            return false;
        len = sizeof(after);
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &after, &len) != 0)
            return false;
        if (before.tcpi_bytes_received != after.tcpi_bytes_received ||
            before.tcpi_state != after.tcpi_state)
            continue;
        *count =
            (uint64_t)after.tcpi_bytes_received - (uint64_t)(unsigned)waiting;
        /* The end of a connection counts as a byte. */
        if ((after.tcpi_state == STATE_CLOSE_WAIT ||
             after.tcpi_state == STATE_CLOSING) &&
            *count > 0)
            --*count;
        return true;
    }
    return false;
}

static uint32_t number_at(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

/* The head of a message is in: its type and its length; of a question for proof
 * also which. False: it is the one that is not answered, or no message. */
static bool judge(dibs__pg_clear *clear)
{
    bool asks = clear->head[0] == 'R';
    uint32_t len = number_at(clear->head + 1);

    if (len < (asks ? 8U : 4U))
        return false;
    if (asks && clear->head_len < DIBS__PG_CLEAR_HEAD)
        return true;
    if (asks && number_at(clear->head + 5) == CLEAR_TEXT)
        return false;
    clear->open = asks && number_at(clear->head + 5) == AUTH_OK;
    clear->skip = (uint64_t)len + 1 - clear->head_len;
    clear->head_len = 0;
    return true;
}

static bool scan(dibs__pg_clear *clear, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len && !clear->open; i++) {
        if (clear->skip > 0) {
            clear->skip--;
            continue;
        }
        clear->head[clear->head_len++] = (unsigned char)bytes[i];
        if (clear->head_len >= 5 && !judge(clear))
            return false;
    }
    clear->seen += len;
    return true;
}

/* The one byte that answers the question for TLS. What comes with it was sent
 * before it could be known what the answer to that is. */
static bool scan_tls(dibs__pg_clear *clear, const char *bytes, size_t len)
{
    if (bytes[0] == 'E')
        return scan(clear, bytes, len);
    if (bytes[0] == 'N' && len > 1)
        return false;
    clear->seen += len;
    return true;
}

/* Looks at what waits to be read beyond what was seen. */
static bool look(dibs__pg_clear *clear, int fd, bool tls)
{
    char bytes[LOOK_MAX];
    uint64_t taken = 0;
    ssize_t got;
    size_t old;

    if (!count_read(fd, &taken) || taken > clear->seen)
        return false;
    got = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0)
        return true;
    old = (size_t)(clear->seen - taken);
    if (got == LOOK_MAX || old > (size_t)got)
        return false;
    if (old == (size_t)got)
        return true;
    return tls ? scan_tls(clear, bytes + old, (size_t)got - old)
               : scan(clear, bytes + old, (size_t)got - old);
}

dibs_status
dibs__pg_clear_look(dibs__pg_clear *clear, const PGconn *pq, dibs_error *err)
{
    PGconn *conn = (PGconn *)(uintptr_t)pq;
    int fd = dibs__pq.PQsocket(pq);
    ConnStatusType state = dibs__pq.PQstatus(pq);
    struct sockaddr_storage here = {.ss_family = AF_UNSPEC};
    socklen_t here_len = sizeof(here), len = sizeof(uint64_t);
    uint64_t socket = 0;

    if (clear->allowed || fd < 0 || dibs__pq.PQsslInUse(conn) ||
        getsockname(fd, (struct sockaddr *)&here, &here_len) != 0 ||
        here.ss_family == AF_UNIX)
        return DIBS_OK;
    (void)getsockopt(fd, SOL_SOCKET, SO_COOKIE, &socket, &len);
    if (socket != clear->socket)
        *clear = (dibs__pg_clear){.socket = socket};
    if (clear->open || look(clear, fd,
                            state == CONNECTION_SSL_STARTUP ||
                                state == CONNECTION_GSS_STARTUP))
        return DIBS_OK;
    return dibs__pg_clear_fail(err);
}
