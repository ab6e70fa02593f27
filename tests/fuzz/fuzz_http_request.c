/* fuzz_http_request.c - bytes on a connection to the HTTP server: it answers or hangs
 * up, what it answers is HTTP, and it serves the next one. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "http/exchange.h"
#include "http/lasting.h"
#include "http/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* An answer that is not there by then does not come; and how long the server waits
 * for the rest of a request. */
enum { PATIENCE_MS = 8000, RECEIVE_MS = 20 };

static void get_params(dibs__http_exchange *ex)
{
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "name", dibs__http_param(ex, "name"));
    dibsx_json_pair_text(js, "q", dibs__http_query(ex, "q"));
    dibsx_json_pair_text(js, "h", dibs__http_header(ex, "X-Test"));
}

static void post_json(dibs__http_exchange *ex)
{
    const dibsx_json_node *root;

    if (dibs__http_body_json(ex, &root))
        dibsx_json_pair_bool(dibs__http_answer(ex, 200), "some", root != NULL);
}

static void get_bytes(dibs__http_exchange *ex)
{
    if (!dibs__http_not_modified(ex, "\"v1\""))
        dibs__http_answer_bytes(ex, 200, "text/plain", "bytes", 5, NULL);
}

static bool pull_some(void *arg, dibsx_buf *out)
{
    int *left = arg;

    dibsx_buf_puts(out, "more\n");
    return --*left > 0;
}

static void get_stream(dibs__http_exchange *ex)
{
    int *left = malloc(sizeof(*left));

    REQUIRE(left);
    *left = 3;
    dibs__http_answer_stream(ex, &(dibs__http_stream){.type = "text/plain",
                                                      .pull = pull_some,
                                                      .gone = free,
                                                      .arg = left});
}

static const dibs__http_route routes[] = {
    {"GET", "/locks/{name}", get_params, .quick = true},
    {"POST", "/json", post_json, .quick = true},
    {"GET", "/bytes", get_bytes, .quick = true},
    {"GET", "/stream", get_stream, .quick = true},
};

/* Serves until the process ends. */
static int port_of_server(void)
{
    static int port;
    dibs__http_server *server;
    int fd;

    if (port)
        return port;
    REQUIRE(dibs__http_listen("127.0.0.1", 0, &fd, NULL) == DIBS_OK);
    port = dibs__http_port(fd);
    REQUIRE(dibs__http_start(&(dibs__http_opts){.routes = routes,
                                                .route_count = 4,
                                                .fd = fd,
                                                .head_max = 2048,
                                                .body_max = 1024,
                                                .receive_ms = RECEIVE_MS,
                                                .send_ms = PATIENCE_MS / 4},
                             &server, NULL) == DIBS_OK);
    return port;
}

/* The fuzzer looks at the clock by a signal now and then. */
static void await(int fd, short events)
{
    struct pollfd ready = {.fd = fd, .events = events};
    int count;

    do
        count = poll(&ready, 1, PATIENCE_MS);
    while (count < 0 && errno == EINTR);
    REQUIRE(count == 1);
}

/* It may hang up at any time. */
static void send_all(int fd, const uint8_t *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = send(fd, data + at, size - at, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR)
            break;
        at += n > 0 ? (size_t)n : 0;
    }
    shutdown(fd, SHUT_WR);
}

static void check_answer(int fd)
{
    static const char begin[] = "HTTP/1.1 ";
    char bytes[4096];
    size_t heard = 0;
    ssize_t n;

    do {
        await(fd, POLLIN);
        n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        for (ssize_t i = 0; i < n && heard < sizeof(begin) - 1; i++, heard++)
            REQUIRE(bytes[i] == begin[heard]);
    } while (n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port_of_server()),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct linger gone = {.l_onoff = 1};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        REQUIRE(errno == EINTR);
        await(fd, POLLOUT);
    }
    send_all(fd, data, size);
    check_answer(fd);
    /* No port is to be kept for what might still come. */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &gone, sizeof(gone));
    close(fd);
    return 0;
}
