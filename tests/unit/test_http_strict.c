/* test_http_strict.c - requests that two readers could take for different ones:
 * each gets one answer, 400, and the end of its connection, so that what follows
 * it is nobody's request. */
/* SPDX-License-Identifier: MIT */
#include "http_world.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOST    "Host: localhost\r\n"
#define JSON    "Content-Type: application/json\r\n"
#define POST    "POST /json HTTP/1.1\r\n" HOST JSON
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

/* What would be taken for a request by who sees an end before it. */
#define NEXT "POST /json HTTP/1.1\r\n" HOST "\r\n"

typedef struct sample {
    const char *bytes;
    size_t len;
} sample;

#define SAMPLE(text)                                                           \
    {                                                                          \
        text, sizeof(text) - 1                                                 \
    }

static const sample unclear[] = {
    /* Lengths. */
    SAMPLE(POST "Content-Length : 14\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length\t: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST " Content-Length: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length:\r\n 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: 8\r\n 0\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "X: y\r\n Content-Length: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST
           "Content-Length: 8\r\nContent-Length: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST
           "Content-Length: 8\r\ncontent-length: 0\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: 8, 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: +8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: 0x8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: 8 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "Content-Length: \r\n\r\n" NEXT),
    SAMPLE(POST "Content-Length: 18446744073709551624\r\n\r\n{\"n\": 1}" NEXT),
    /* Codings. */
    SAMPLE(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: identity\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: chunked\r\n"
                "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    SAMPLE(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
                "0\r\n\r\n" NEXT),
    SAMPLE(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\n\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.0\r\n" HOST JSON
           "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT),
    /* Ends of lines, and what may not be in one. */
    SAMPLE("POST /json HTTP/1.1\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\r\nHost: localhost\n\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\nHost: localhost\n\n" NEXT),
    SAMPLE(POST "X: y\nContent-Length: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "X: y\rContent-Length: 8\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE(POST "X: y\r\r\n\r\n" NEXT),
    SAMPLE(POST "X: y\0z\r\n\r\n" NEXT),
    SAMPLE(POST "X\0: y\r\n\r\n" NEXT),
    SAMPLE(POST "Content-Length: 8\0\r\n\r\n{\"n\": 1}" NEXT),
    SAMPLE("POST /json\0 HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE(POST "X: a\x01"
                "b\r\n\r\n" NEXT),
    SAMPLE(POST "no colon\r\n\r\n" NEXT),
    SAMPLE(POST ": no name\r\n\r\n" NEXT),
    SAMPLE(POST "a name: y\r\n\r\n" NEXT),
    /* The first line, and the host. */
    SAMPLE("POST  /json HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json  HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST\t/json HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1 \r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json http/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1x\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json\r\n" HOST "\r\n" NEXT),
    SAMPLE("PO(ST /json HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /js\x80on HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE(" POST /json HTTP/1.1\r\n" HOST "\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\r\n\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\r\n" HOST HOST "\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\r\n" HOST "Host: elsewhere\r\n\r\n" NEXT),
    SAMPLE("POST /json HTTP/1.1\r\nHost : localhost\r\n\r\n" NEXT),
    /* Chunks. */
    SAMPLE(CHUNKED "zz\r\n" NEXT),
    SAMPLE(CHUNKED "\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "0x0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "-1\r\n\r\n" NEXT),
    SAMPLE(CHUNKED " 0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "0 \r\n\r\n" NEXT),
    SAMPLE(CHUNKED "0\n\r\n" NEXT),
    SAMPLE(CHUNKED "0\r\n\n" NEXT),
    SAMPLE(CHUNKED "8\n{\"n\": 1}\r\n0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "8\r\n{\"n\": 1}\n0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "7\r\n{\"n\": 1}\r\n0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "8;\n\r\n{\"n\": 1}\r\n0\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "10000000000000000\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "000000000000000000\r\n\r\n" NEXT),
    SAMPLE(CHUNKED "0\r\nX: y\nZ: z\r\n\r\n" NEXT),
};

static void fail_at(const sample *at, const reply *rp, const char *what)
{
    char shown[256];
    size_t len = at->len < sizeof(shown) ? at->len : sizeof(shown);

    for (size_t i = 0; i < len; i++)
        shown[i] = at->bytes[i] < ' ' ? '.' : at->bytes[i];
    fail_msg("%s: %.*s: %d %s", what, (int)len, shown, rp->status, rp->body);
}

/* All at once, or cut in two at a place. */
static void expect_400(http_world *wd, const sample *at, size_t cut)
{
    int fd = client_open(wd);
    reply rp;

    client_send_bytes(fd, at->bytes, cut);
    client_send_bytes(fd, at->bytes + cut, at->len - cut);
    client_read(fd, &rp);
    if (rp.status != 400 || !strstr(rp.body, "{\"status\":400,"))
        fail_at(at, &rp, "not refused");
    if (!strstr(rp.head, "\r\nConnection: close\r\n") || !client_at_end(fd))
        fail_at(at, &rp, "not the end");
    close(fd);
}

static void what_is_unclear_is_refused(void **state)
{
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(unclear); i++) {
        expect_400(&wd, &unclear[i], unclear[i].len);
        expect_400(&wd, &unclear[i], i % unclear[i].len);
    }
    assert_int_equal(world_posts(&wd), 0);
    world_stop(&wd, 1000);
}

/* What comes before it has its answer. */
static void what_came_before_is_answered(void **state)
{
    static const char good[] = NEXT POST "Content-Length: 8\r\n\r\n{\"n\": 1}";
    char bytes[1024];
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(unclear); i++) {
        int fd = client_open(&wd);
        size_t len = sizeof(good) - 1;

        memcpy(bytes, good, len);
        memcpy(bytes + len, unclear[i].bytes, unclear[i].len);
        client_send_bytes(fd, bytes, len + unclear[i].len);
        for (int k = 0; k < 3; k++) {
            client_read(fd, &rp);
            if (rp.status != (k < 2 ? 200 : 400))
                fail_at(&unclear[i], &rp, "wrong answer");
        }
        assert_true(client_at_end(fd));
        close(fd);
    }
    assert_int_equal(world_posts(&wd), 2 * (int)COUNT_OF(unclear));
    world_stop(&wd, 1000);
}

/* Unusual, and clear all the same. */
static void what_is_clear_is_served(void **state)
{
    static const char *const clear[] = {
        POST "Content-Length:8\r\n\r\n{\"n\": 5}",
        POST "Content-Length: \t8 \t\r\n\r\n{\"n\": 5}",
        POST "content-LENGTH: 00008\r\n\r\n{\"n\": 5}",
        POST "Transfer-Encoding: Chunked\r\n\r\n"
             "3;ext=\"x\"\r\n{\"n\r\n0005\r\n\": 5}\r\n0\r\nTrailer: x\r\n\r\n",
        POST "X-Empty:\r\nX-High: \xC3\xA9\r\nContent-Length: 8\r\n\r\n"
             "{\"n\": 5}",
        "\r\n" POST "Content-Length: 8\r\n\r\n{\"n\": 5}",
        "POST http://localhost/json HTTP/1.1\r\n" HOST JSON
        "Content-Length: 8\r\n\r\n{\"n\": 5}",
        "POST /json HTTP/1.0\r\n" JSON "Content-Length: 8\r\n\r\n{\"n\": 5}",
        "POST /json HTTP/1.1\r\n" HOST
        "Content-Type: Application/JSON; charset=utf-8\r\n"
        "Content-Length: 8\r\n\r\n{\"n\": 5}",
    };
    http_world wd;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    for (size_t i = 0; i < COUNT_OF(clear); i++) {
        reply rp;

        ask(&wd, clear[i], &rp);
        if (rp.status != 200 || strcmp(rp.body, "{\"n\":5}\n") != 0)
            fail_msg("%s: %d %s", clear[i], rp.status, rp.body);
    }
    world_stop(&wd, 1000);
}

static void another_version_is_not_known(void **state)
{
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){0});
    ask(&wd, "GET /quick HTTP/2.0\r\n" HOST "\r\n", &rp);
    assert_int_equal(rp.status, 505);
    ask(&wd, "GET /quick HTTP/1.1\r\n" HOST "Expect: wonders\r\n\r\n", &rp);
    assert_int_equal(rp.status, 417);
    world_stop(&wd, 1000);
}

/* However many there are, somebody is told so. */
static void many_parts_of_a_query_get_an_answer(void **state)
{
    static const int counts[] = {33, 400, 3000};
    static char request[16 * 1024];
    http_world wd;
    reply rp;

    (void)state;
    world_start(&wd, (dibs__http_opts){.head_max = sizeof(request)});
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        size_t len = (size_t)snprintf(request, sizeof(request), "GET /quick?");

        for (int k = 0; k < counts[i]; k++)
            len +=
                (size_t)snprintf(request + len, sizeof(request) - len, "a=b&");
        snprintf(request + len, sizeof(request) - len,
                 " HTTP/1.1\r\n" HOST "\r\n");
        ask(&wd, request, &rp);
        assert_int_equal(rp.status, 400);
        assert_non_null(strstr(rp.body, "the query has too many parts"));
    }
    world_stop(&wd, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_unclear_is_refused),
        cmocka_unit_test(what_came_before_is_answered),
        cmocka_unit_test(what_is_clear_is_served),
        cmocka_unit_test(another_version_is_not_known),
        cmocka_unit_test(many_parts_of_a_query_get_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
