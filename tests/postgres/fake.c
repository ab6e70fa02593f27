/* fake.c - see fake.h. The thread of a server owns its connection. */
/* SPDX-License-Identifier: MIT */
#include "fake.h"
#include "store/postgres/schema.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAR_MAX = 65536, CELLS = 4, COLUMN = 20, BACKEND = 4711 };

static void put_number(uint8_t *at, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(number >> (24 - 8 * i));
}

static uint32_t get_number(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

void fake_put(fake_packet *pk, char type, const void *body, size_t len)
{
    if (pk->len + len + 5 > sizeof(pk->bytes))
        return;
    pk->bytes[pk->len] = (uint8_t)type;
    put_number(pk->bytes + pk->len + 1, (uint32_t)len + 4);
    if (len > 0)
        memcpy(pk->bytes + pk->len + 5, body, len);
    pk->len += len + 5;
}

bool fake_send(fake *fk, int fd, const void *bytes, size_t len)
{
    const uint8_t *at = bytes;

    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);

        if (sent <= 0 || atomic_load(&fk->over))
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static bool hear(int fd, void *out, size_t len)
{
    return len == 0 || recv(fd, out, len, MSG_WAITALL) == (ssize_t)len;
}

/* One row of texts. */
static void put_row(fake_packet *pk, const char *const *cells, size_t count)
{
    uint8_t heads[2 + CELLS * COLUMN] = {0, (uint8_t)count};
    uint8_t row[256] = {0, (uint8_t)count};
    size_t head_len = 2, len = 2;

    for (size_t i = 0; i < count; i++) {
        size_t size = strlen(cells[i]);

        /* A name of one letter; nothing else of it matters. */
        memcpy(heads + head_len, "c", 2);
        head_len += COLUMN;
        put_number(row + len, (uint32_t)size);
        memcpy(row + len + 4, cells[i], size);
        len += 4 + size;
    }
    fake_put(pk, 'T', heads, head_len);
    fake_put(pk, 'D', row, len);
}

static bool greet(fake *fk, int fd)
{
    static const uint8_t ready = 'I';
    uint8_t start[8], key[8], zero[4] = {0};
    fake_packet pk = {.len = 0};
    uint8_t rest[HEAR_MAX];

    if (!hear(fd, start, sizeof(start)) || get_number(start) < 8 ||
        get_number(start) > HEAR_MAX || !hear(fd, rest, get_number(start) - 8))
        return false;
    fake_put(&pk, 'R', zero, sizeof(zero));
    if (fk->point != FAKE_AT_LOGIN) {
        put_number(key, BACKEND);
        put_number(key + 4, 1);
        fake_put(&pk, 'S', "server_version\00015.0", 20);
        fake_put(&pk, 'K', key, sizeof(key));
        fake_put(&pk, 'Z', &ready, 1);
    }
    return fake_send(fk, fd, pk.bytes, pk.len);
}

/* One statement: its text, closed by a NUL. Ends with what wants an answer. */
static bool hear_statement(int fd, char *text, size_t size)
{
    char head[5], body[HEAR_MAX];

    text[0] = '\0';
    for (;;) {
        uint32_t len;

        if (!hear(fd, head, sizeof(head)))
            return false;
        len = get_number((uint8_t *)head + 1) - 4;
        if (len > sizeof(body) || !hear(fd, body, len))
            return false;
        if (head[0] == 'Q')
            snprintf(text, size, "%.*s", (int)len, body);
        if (head[0] == 'P')
            snprintf(text, size, "%.*s", (int)(len - strlen(body) - 1),
                     body + strlen(body) + 1);
        if (head[0] == 'Q' || head[0] == 'S')
            return true;
    }
}

static fake_point point_of(const char *text)
{
    if (strstr(text, "pg_backend_pid"))
        return FAKE_AT_GREETING;
    if (strncmp(text, "LISTEN", 6) == 0)
        return FAKE_AT_LISTEN;
    return FAKE_AT_STEP;
}

static bool answer(fake *fk, int fd, const char *text)
{
    char version[16];
    const char *const cells[CELLS] = {"4711", "0", "read committed", version};
    static const uint8_t ready = 'I';
    fake_packet pk = {.len = 0};

    snprintf(version, sizeof(version), "%d", DIBS__PG_VERSION);
    if (point_of(text) == FAKE_AT_GREETING)
        put_row(&pk, cells, CELLS);
    fake_put(&pk, 'C', "SET", 4);
    fake_put(&pk, 'Z', &ready, 1);
    return fake_send(fk, fd, pk.bytes, pk.len);
}

static void serve(fake *fk, int fd)
{
    char text[1024];

    if (!greet(fk, fd))
        return;
    while (fk->point != FAKE_AT_LOGIN) {
        if (!hear_statement(fd, text, sizeof(text)))
            return;
        if (point_of(text) == fk->point && strncmp(text, "SET ", 4) != 0)
            break;
        if (!answer(fk, fd, text))
            return;
    }
    atomic_fetch_add(&fk->harmed, 1);
    fk->harm(fk, fd);
}

static void *serve_main(void *arg)
{
    fake *fk = arg;

    while (!atomic_load(&fk->over)) {
        int fd = accept(fk->listener, NULL, NULL);

        if (fd < 0)
            continue;
        atomic_store(&fk->fd, fd);
        serve(fk, fd);
        atomic_store(&fk->fd, -1);
        close(fd);
    }
    return NULL;
}

bool fake_start(fake *fk)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);

    atomic_init(&fk->fd, -1);
    atomic_init(&fk->over, false);
    atomic_init(&fk->harmed, 0);
    fk->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fk->listener < 0 ||
        bind(fk->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(fk->listener, 16) != 0 ||
        getsockname(fk->listener, (struct sockaddr *)&at, &len) != 0)
        return false;
    fk->port = ntohs(at.sin_port);
    return pthread_create(&fk->thread, NULL, serve_main, fk) == 0;
}

void fake_stop(fake *fk)
{
    int fd;

    atomic_store(&fk->over, true);
    shutdown(fk->listener, SHUT_RDWR);
    fd = atomic_load(&fk->fd);
    if (fd >= 0)
        shutdown(fd, SHUT_RDWR);
    pthread_join(fk->thread, NULL);
    close(fk->listener);
}

void fake_url(const fake *fk, char out[FAKE_URL])
{
    snprintf(out, FAKE_URL,
             "postgres://dibs@127.0.0.1:%d/postgres?sslmode=disable", fk->port);
}
