/* test_http_stream.c - answers of bytes, and streams: in order, to slow clients, to
 * clients that go away, too many, and at the end. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "http/chunks.h"
#include "http/lasting.h"
#include "http_world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOST      "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* No client of these tests may cost more than this while it does not read. */
enum { CLIENT_MAX = 1024 * 1024, LONG_MS = 60000 };

/* A client that follows a stream. */
typedef struct follower {
    int fd;
    reply head;
    dibs__http_chunks chunks;
    bool ended; /* as it should */
    size_t len;
    char text[REPLY_MAX];
} follower;

static void follow(const http_world *wd, const char *request, follower *fl)
{
    memset(&fl->chunks, 0, sizeof(fl->chunks));
    fl->ended = false;
    fl->len = 0;
    fl->text[0] = '\0';
    fl->fd = client_open(wd);
    client_send(fl->fd, request);
    client_read(fl->fd, &fl->head);
    assert_int_equal(fl->head.status, 200);
}

/* Reads some more; false when the connection is closed. */
static bool follow_on(follower *fl)
{
    char raw[4096];
    const char *at = raw, *data;
    size_t len = client_read_some(fl->fd, raw, sizeof(raw)), data_len;

    if (len == 0)
        return false;
    while (!fl->ended) {
        switch (
            dibs__http_chunks_take(&fl->chunks, &at, &len, &data, &data_len)) {
        case DIBS__HTTP_CHUNKS_DATA:
            assert_true(fl->len + data_len < sizeof(fl->text));
            memcpy(fl->text + fl->len, data, data_len);
            fl->len += data_len;
            fl->text[fl->len] = '\0';
            break;
        case DIBS__HTTP_CHUNKS_END:
            fl->ended = true;
            break;
        case DIBS__HTTP_CHUNKS_MORE:
            return true;
        case DIBS__HTTP_CHUNKS_BAD:
            fail_msg("not in chunks: %.200s", at);
        }
    }
    return true;
}

static void await_text(follower *fl, const char *text)
{
    while (!strstr(fl->text, text)) {
        if (!follow_on(fl))
            fail_msg("closed without '%s': %s", text, fl->text);
    }
}

static void await_end(follower *fl)
{
    while (!fl->ended) {
        if (!follow_on(fl))
            fail_msg("closed without an end: %s", fl->text);
    }
}

static void check_header(const reply *rp, const char *name, const char *value)
{
    char got[256];

    if (!reply_header(rp, name, got, sizeof(got)))
        assert_null(value);
    else if (!value || strcmp(got, value) != 0)
        fail_msg("%s: %s", name, got);
}

static void test_bytes(void **state)
{
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    ask(&wd, GET("/bytes"), &rp);
    assert_int_equal(rp.status, 200);
    assert_int_equal(rp.len, 11);
    assert_memory_equal(rp.body, "plain\0bytes", 11);
    check_header(&rp, "Content-Type", "text/plain; charset=utf-8");
    check_header(&rp, "Cache-Control", "no-store");
    ask(&wd, "HEAD /bytes HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", &rp);
    assert_int_equal(rp.len, 0);
    check_header(&rp, "Content-Length", "11");
    check_header(&rp, "Content-Type", "text/plain; charset=utf-8");
    world_stop(&wd, 1000);
}

static void test_bytes_are_freed_once(void **state)
{
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    for (int i = 0; i < 3; i++) {
        client_send(fd, GET("/owned"));
        client_read(fd, &rp);
        assert_string_equal(rp.body, "owned");
    }
    client_send(fd,
                "HEAD /owned HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    client_read(fd, &rp);
    check_header(&rp, "Content-Length", "5");
    close(fd);
    world_stop(&wd, 1000);
    assert_int_equal(wd.freed, 4);
}

static void test_what_the_client_has_already(void **state)
{
    static const struct {
        const char *match;
        int status;
    } cases[] = {{"\"v1\"", 304},
                 {"W/\"v1\"", 304},
                 {"*", 304},
                 {"\"v0\", \"v1\"", 304},
                 {"\"v0\"", 200},
                 {"\"v1", 200},
                 {"v1", 200},
                 {"\"v1\"x", 200},
                 {"\"v0\",,,", 200},
                 {"W/", 200},
                 {"\"v0\"\r\nif-none-match: \"v1\"", 304}};
    char request[256];
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        snprintf(request, sizeof(request),
                 "GET /tagged HTTP/1.1\r\n" HOST "If-None-Match: %s\r\n\r\n",
                 cases[i].match);
        client_send(fd, request);
        client_read(fd, &rp);
        if (rp.status != cases[i].status)
            fail_msg("%s: %d", cases[i].match, rp.status);
        assert_int_equal(rp.len, rp.status == 304 ? 0 : 11);
        check_header(&rp, "ETag", "\"v1\"");
        check_header(&rp, "Cache-Control", "no-cache");
    }
    close(fd);
    world_stop(&wd, 1000);
}

/* With a thread of the pool that begins it, or without. */
static void test_a_stream_as_it_comes(void **state)
{
    static const char *const requests[] = {GET("/ticks"), GET("/slow-ticks")};
    static follower fl;
    http_world wd;
    reply rp;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        world_start(&wd, (dibs__http_opts){0});
        follow(&wd, requests[i], &fl);
        check_header(&fl.head, "Content-Type", "text/event-stream");
        check_header(&fl.head, "Transfer-Encoding", "chunked");
        check_header(&fl.head, "Content-Length", NULL);
        check_header(&fl.head, "Cache-Control", "no-store, no-transform");
        check_header(&fl.head, "X-Accel-Buffering", "no");
        world_tick(&wd, 1);
        await_text(&fl, "tick 1\n");
        world_tick(&wd, 2);
        await_text(&fl, "tick 3\n");
        world_tick(&wd, 1);
        world_end(&wd);
        await_end(&fl);
        assert_string_equal(fl.text, "tick 1\ntick 2\ntick 3\ntick 4\n");
        world_await_open(&wd, 0);
        /* The connection is good for more. */
        client_send(fl.fd, GET("/quick"));
        client_read(fl.fd, &rp);
        assert_int_equal(rp.status, 200);
        close(fl.fd);
        world_stop(&wd, 1000);
    }
}

static void test_a_long_stream(void **state)
{
    static follower fl;
    http_world wd;
    unsigned at = 1;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    world_tick(&wd, 50000);
    world_end(&wd);
    follow(&wd, GET("/ticks"), &fl);
    while (!fl.ended) {
        char expected[32], *line = fl.text;

        assert_true(follow_on(&fl));
        while (strchr(line, '\n')) {
            int len = snprintf(expected, sizeof(expected), "tick %u\n", at++);

            assert_memory_equal(line, expected, (size_t)len);
            line += len;
        }
        fl.len = strlen(line);
        memmove(fl.text, line, fl.len + 1);
    }
    assert_int_equal(at, 50001);
    close(fl.fd);
    world_stop(&wd, 1000);
}

/* HTTP/1.0 has no chunks: the end of the stream is that of the connection. */
static void test_old_clients(void **state)
{
    char text[64];
    http_world wd;
    size_t len = 0, got;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    fd = client_open(&wd);
    client_send(fd, "GET /ticks HTTP/1.0\r\n\r\n");
    client_read(fd, &rp);
    check_header(&rp, "Transfer-Encoding", NULL);
    check_header(&rp, "Connection", "close");
    world_tick(&wd, 2);
    world_end(&wd);
    while ((got = client_read_some(fd, text + len, sizeof(text) - 1 - len)))
        len += got;
    text[len] = '\0';
    assert_string_equal(text, "tick 1\ntick 2\n");
    close(fd);
    world_stop(&wd, 1000);
}

static void test_head_of_a_stream(void **state)
{
    http_world wd;
    reply rp;
    int fd;

    (void)state;
    world_start(&wd, (dibs__http_opts){.streams_max = 1});
    world_tick(&wd, 5);
    fd = client_open(&wd);
    for (int i = 0; i < 3; i++) {
        client_send(fd, "HEAD /ticks HTTP/1.1\r\n" HOST "\r\n");
        client_read(fd, &rp);
        assert_int_equal(rp.status, 200);
        check_header(&rp, "Content-Type", "text/event-stream");
    }
    client_send(fd, GET("/quick"));
    client_read(fd, &rp);
    assert_string_equal(rp.body, "{\"kind\":\"quick\"}\n");
    world_await_open(&wd, 0);
    close(fd);
    world_stop(&wd, 1000);
}

static void test_signs_of_life(void **state)
{
    static follower fl;
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    world_set_idle(&wd, 20);
    follow(&wd, GET("/ticks"), &fl);
    await_text(&fl, ": beat\n\n: beat\n\n");
    world_tick(&wd, 1);
    await_text(&fl, "tick 1\n");
    await_text(&fl, "tick 1\n: beat\n\n");
    close(fl.fd);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

/* A wake that has nothing for a stream does not put off its sign of life. */
static void test_wakes_for_others(void **state)
{
    static follower fl;
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    world_set_idle(&wd, 100);
    follow(&wd, GET("/ticks"), &fl);
    for (int i = 0; !strstr(fl.text, ": beat\n\n"); i++) {
        char byte;

        IN_TIME(i < 3000);
        world_tick(&wd, 0);
        usleep(10000);
        if (recv(fl.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1)
            assert_true(follow_on(&fl));
    }
    close(fl.fd);
    world_stop(&wd, 1000);
}

/* Before anything is sent to it, and while something is. */
static void test_a_client_that_goes_away(void **state)
{
    static follower fl;
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/ticks"), &fl);
    world_await_open(&wd, 1);
    close(fl.fd);
    world_await_open(&wd, 0);
    follow(&wd, GET("/ticks"), &fl);
    assert_int_equal(shutdown(fl.fd, SHUT_WR), 0);
    world_await_open(&wd, 0);
    close(fl.fd);
    follow(&wd, GET("/flood"), &fl);
    assert_true(follow_on(&fl));
    close(fl.fd);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

static void test_a_client_that_does_not_read(void **state)
{
    const int small = 4096;
    http_world wd;
    int fds[8];
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.send_ms = 300});
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = client_open(&wd);
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small,
                                    sizeof(small)),
                         0);
        client_send(fds[i], GET("/flood"));
    }
    ask(&wd, GET("/quick"), &rp);
    assert_int_equal(rp.status, 200);
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        client_read(fds[i], &rp);
        assert_int_equal(rp.status, 200);
    }
    world_await_open(&wd, 0);
    if (wd.pulled > COUNT_OF(fds) * CLIENT_MAX)
        fail_msg("%zu bytes for those who do not read", wd.pulled);
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        close(fds[i]);
    world_stop(&wd, 1000);
}

/* One that reads all it can is not alone. */
static void test_a_client_that_reads_without_end(void **state)
{
    static follower fl;
    http_world wd;
    size_t read = 0;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/flood"), &fl);
    for (int i = 0; i < 50; i++) {
        int fd = client_open(&wd);

        client_send(fd, GET("/quick"));
        assert_true(follow_on(&fl));
        read += fl.len;
        fl.len = 0;
        client_read(fd, &rp);
        assert_int_equal(rp.status, 200);
        close(fd);
    }
    assert_true(read > 0);
    close(fl.fd);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

static void test_a_client_that_talks_on(void **state)
{
    static follower fl;
    char text[4096];
    http_world wd;

    (void)state;
    memset(text, 'x', sizeof(text));
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/ticks"), &fl);
    for (int i = 0; i < 16; i++)
        client_send_bytes(fl.fd, text, sizeof(text));
    world_await_open(&wd, 0);
    close(fl.fd);
    world_stop(&wd, 1000);
}

/* It ends without its last chunk, so that the client knows that something is missing. */
static void test_a_portion_that_does_not_fit(void **state)
{
    http_world wd;
    follower fl;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/surge"), &fl);
    world_await_open(&wd, 1);
    world_tick(&wd, 1);
    while (follow_on(&fl)) {
    }
    assert_false(fl.ended);
    assert_int_equal(fl.len, 0);
    close(fl.fd);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

static void test_parts_of_what_is_long(void **state)
{
    dibsx_buf from, out;

    (void)state;
    dibsx_buf_init(&from, 3 * DIBS__HTTP_PULL_MAX);
    dibsx_buf_init(&out, DIBS__HTTP_PULL_MAX);
    while (from.len < DIBS__HTTP_PULL_MAX)
        dibsx_buf_puts(&from, "1234567\n");
    assert_false(dibs__http_pull_part(&from, &out));
    assert_int_equal(out.len, DIBS__HTTP_PULL_MAX);
    assert_int_equal(from.len, 0);
    dibsx_buf_reset(&out);
    while (from.len < DIBS__HTTP_PULL_MAX)
        dibsx_buf_puts(&from, "1234567\n");
    dibsx_buf_puts(&from, "rest");
    dibsx_buf_puts(&out, "four");
    assert_true(dibs__http_pull_part(&from, &out));
    assert_true(dibsx_buf_ok(&out));
    assert_int_equal(out.len, DIBS__HTTP_PULL_MAX);
    assert_string_equal(dibsx_buf_text(&from), "567\nrest");
    dibsx_buf_reset(&out);
    assert_false(dibs__http_pull_part(&from, &out));
    assert_string_equal(dibsx_buf_text(&out), "567\nrest");
    assert_int_equal(from.len, 0);
    dibsx_buf_fini(&from);
    dibsx_buf_fini(&out);
}

static void test_too_many(void **state)
{
    static follower one, two;
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.streams_max = 2});
    follow(&wd, GET("/ticks"), &one);
    follow(&wd, GET("/slow-ticks"), &two);
    for (int i = 0; i < 2; i++) {
        ask(&wd, i ? GET("/ticks") : GET("/slow-ticks"), &rp);
        assert_int_equal(rp.status, 503);
        check_header(&rp, "Retry-After", "5");
        check_header(&rp, "Content-Type", "application/json");
        assert_string_equal(rp.body,
                            "{\"status\":503,\"message\":\"2 streams are open, "
                            "and no more are allowed; close one, or try again "
                            "later.\"}\n");
    }
    ask(&wd, GET("/quick"), &rp);
    assert_int_equal(rp.status, 200);
    world_await_open(&wd, 2);
    close(one.fd);
    world_await_open(&wd, 1);
    follow(&wd, GET("/ticks"), &one);
    world_tick(&wd, 1);
    await_text(&one, "tick 1\n");
    await_text(&two, "tick 1\n");
    close(one.fd);
    close(two.fd);
    world_stop(&wd, 1000);
}

static void test_an_answer_that_is_dropped(void **state)
{
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.streams_max = 1});
    for (int i = 0; i < 2; i++) {
        ask(&wd, GET("/other-mind"), &rp);
        assert_int_equal(rp.status, 409);
        check_header(&rp, "Content-Type", "application/json");
        assert_string_equal(
            rp.body,
            "{\"status\":409,\"message\":\"On second thoughts, no\"}\n");
    }
    world_stop(&wd, 1000);
    assert_int_equal(wd.open, 0);
    assert_int_equal(wd.freed, 2);
}

static void *stop_main(void *arg)
{
    world_stop(arg, LONG_MS);
    return NULL;
}

/* Those that have nothing to send are ended, and what they have is sent first. */
static void test_stop_with_streams(void **state)
{
    static follower parked, quiet, busy;
    dibsx_nsec began_at;
    pthread_t thread;
    http_world wd;
    reply rp;
    int old;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/ticks"), &parked);
    world_tick(&wd, 1);
    await_text(&parked, "tick 1\n");
    follow(&wd, GET("/slow-ticks"), &quiet);
    await_text(&quiet, "tick 1\n");
    old = client_open(&wd);
    client_send(old, "GET /ticks HTTP/1.0\r\n\r\n");
    client_read(old, &rp);
    follow(&wd, GET("/flood"), &busy);
    pthread_mutex_lock(&wd.mutex);
    wd.ticks++; /* and no wake */
    pthread_mutex_unlock(&wd.mutex);
    began_at = dibsx_now();
    assert_int_equal(pthread_create(&thread, NULL, stop_main, &wd), 0);
    while (!busy.ended) {
        assert_true(follow_on(&busy));
        busy.len = 0;
    }
    await_end(&parked);
    await_end(&quiet);
    assert_string_equal(parked.text, "tick 1\ntick 2\n");
    assert_string_equal(quiet.text, "tick 1\ntick 2\n");
    while (client_read_some(old, rp.body, sizeof(rp.body)) > 0)
        continue;
    pthread_join(thread, NULL);
    IN_TIME(dibsx_now() - began_at < LONG_MS / 2 * DIBSX_MS);
    assert_int_equal(wd.open, 0);
    close(parked.fd);
    close(quiet.fd);
    close(busy.fd);
    close(old);
}

static void *stop_soon_main(void *arg)
{
    world_stop(arg, 1);
    return NULL;
}

/* A function that still runs may have news for them, be it for longer than the stop
 * waits. */
static void test_stop_after_the_last_news(void **state)
{
    static follower fl;
    pthread_t thread;
    http_world wd;
    int busy, late;
    reply rp;

    (void)state;
    for (int i = 0; i < 2; i++) {
        world_start(&wd, (dibs__http_opts){0});
        follow(&wd, GET("/ticks"), &fl);
        busy = client_open(&wd);
        client_send(busy, GET("/wait"));
        world_await_inside(&wd, 1);
        assert_int_equal(pthread_create(&thread, NULL,
                                        i ? stop_soon_main : stop_main, &wd),
                         0);
        while ((late = client_try(&wd)) >= 0)
            close(late);
        usleep(i ? 20000 : 0);
        pthread_mutex_lock(&wd.mutex);
        wd.ticks++;
        pthread_mutex_unlock(&wd.mutex);
        world_let_go(&wd);
        await_end(&fl);
        assert_string_equal(fl.text, "tick 1\n");
        client_read(busy, &rp);
        assert_int_equal(rp.status, 200);
        pthread_join(thread, NULL);
        close(fl.fd);
        close(busy);
    }
}

static void test_stop_without_patience(void **state)
{
    http_world wd;
    int fds[4];

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = client_open(&wd);
        client_send(fds[i], i % 2 ? GET("/flood") : GET("/ticks"));
    }
    world_await_open(&wd, COUNT_OF(fds));
    world_stop(&wd, 50);
    assert_int_equal(wd.open, 0);
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        close(fds[i]);
}

static void *tick_main(void *arg)
{
    http_world *wd = arg;
    bool over = false;

    while (!over) {
        world_tick(wd, 1);
        pthread_mutex_lock(&wd->mutex);
        over = wd->let_go;
        pthread_mutex_unlock(&wd->mutex);
        usleep(100);
    }
    return NULL;
}

/* Clients come and go while others tick. */
static void test_a_crowd(void **state)
{
    static follower fls[6];
    pthread_t threads[2];
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tick_main, &wd), 0);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < COUNT_OF(fls); i++)
            follow(&wd, i % 2 ? GET("/ticks") : GET("/slow-ticks"), &fls[i]);
        for (size_t i = 0; i < COUNT_OF(fls); i++) {
            await_text(&fls[i], "tick 2\n");
            assert_memory_equal(fls[i].text, "tick 1\ntick 2\n", 14);
            close(fls[i].fd);
        }
        pthread_mutex_lock(&wd.mutex);
        wd.ticks = 0; /* so that texts stay short */
        pthread_mutex_unlock(&wd.mutex);
    }
    world_let_go(&wd);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

static void *storm_main(void *arg)
{
    http_world *wd = arg;
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)wd->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    bool over = false;

    while (!over) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        (void)connect(fd, (const struct sockaddr *)&at, sizeof(at));
        close(fd);
        pthread_mutex_lock(&wd->mutex);
        over = wd->let_go;
        pthread_mutex_unlock(&wd->mutex);
    }
    return NULL;
}

/* Clients that connect faster than they are accepted keep nobody from the loop. */
static void test_a_storm(void **state)
{
    static follower fl;
    pthread_t threads[4];
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    follow(&wd, GET("/ticks"), &fl);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, storm_main, &wd), 0);
    for (int i = 1; i <= 5; i++) {
        char text[32];

        world_tick(&wd, 1);
        snprintf(text, sizeof(text), "tick %d\n", i);
        await_text(&fl, text);
    }
    world_let_go(&wd);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    close(fl.fd);
    world_await_open(&wd, 0);
    world_stop(&wd, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_are_freed_once),
        cmocka_unit_test(test_what_the_client_has_already),
        cmocka_unit_test(test_a_stream_as_it_comes),
        cmocka_unit_test(test_a_long_stream),
        cmocka_unit_test(test_old_clients),
        cmocka_unit_test(test_head_of_a_stream),
        cmocka_unit_test(test_signs_of_life),
        cmocka_unit_test(test_wakes_for_others),
        cmocka_unit_test(test_a_client_that_goes_away),
        cmocka_unit_test(test_a_client_that_does_not_read),
        cmocka_unit_test(test_a_client_that_reads_without_end),
        cmocka_unit_test(test_a_client_that_talks_on),
        cmocka_unit_test(test_a_portion_that_does_not_fit),
        cmocka_unit_test(test_parts_of_what_is_long),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_an_answer_that_is_dropped),
        cmocka_unit_test(test_stop_with_streams),
        cmocka_unit_test(test_stop_after_the_last_news),
        cmocka_unit_test(test_stop_without_patience),
        cmocka_unit_test(test_a_crowd),
        cmocka_unit_test(test_a_storm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
