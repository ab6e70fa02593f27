/* http_world.c - see http_world.h. */
/* SPDX-License-Identifier: MIT */
#include "http_world.h"
#include "http/lasting.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

/* For tests of something else than limits of time: no machine is so slow. */
enum { UNLIMITED_MS = 10 * PATIENCE_MS };

static void get_quick(dibs__http_exchange *ex)
{
    dibsx_json_pair_text(dibs__http_answer(ex, 200), "kind", "quick");
}

static void get_params(dibs__http_exchange *ex)
{
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "a", dibs__http_param(ex, "a"));
    dibsx_json_pair_text(js, "b", dibs__http_param(ex, "b"));
    dibsx_json_pair_text(js, "q", dibs__http_query(ex, "q"));
    dibsx_json_pair_text(js, "h", dibs__http_header(ex, "X-Test"));
}

static void post_json(dibs__http_exchange *ex)
{
    http_world *wd = dibs__http_arg(ex);
    const dibsx_json_node *root;
    size_t len;

    pthread_mutex_lock(&wd->mutex);
    wd->posts++;
    pthread_mutex_unlock(&wd->mutex);
    if (!dibs__http_body_json(ex, &root))
        return;
    (void)dibs__http_body(ex, &len);
    dibs__http_set(ex, "X-Length", len ? "some" : "none");
    dibsx_json_pair_int(dibs__http_answer(ex, 200), "n",
                        root ? dibsx_json_get(root, "n")->integer : -1);
}

static void get_wait(dibs__http_exchange *ex)
{
    http_world *wd = dibs__http_arg(ex);

    pthread_mutex_lock(&wd->mutex);
    wd->inside++;
    pthread_cond_broadcast(&wd->cond);
    while (!wd->let_go)
        pthread_cond_wait(&wd->cond, &wd->mutex);
    pthread_mutex_unlock(&wd->mutex);
    dibsx_json_pair_bool(dibs__http_answer(ex, 200), "waited", true);
}

static void get_nothing(dibs__http_exchange *ex)
{
    (void)ex;
}

static void get_big(dibs__http_exchange *ex)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    char text[1024];

    memset(text, 'x', sizeof(text));
    dibsx_json_key(js, "list");
    dibsx_json_open(js, '[');
    for (int i = 0; i < 8 * 1024; i++)
        dibsx_json_bytes(js, text, sizeof(text));
    dibsx_json_close(js, ']');
}

static void get_bytes(dibs__http_exchange *ex)
{
    dibs__http_answer_bytes(ex, 200, "text/plain; charset=utf-8",
                            "plain\0bytes", 11, NULL);
}

/* Bytes to be freed stand behind the world that counts them. */
typedef struct owned {
    http_world *wd;
    char text[16];
} owned;

static void free_owned(void *bytes)
{
    owned *ow = (owned *)((char *)bytes - offsetof(owned, text));

    pthread_mutex_lock(&ow->wd->mutex);
    ow->wd->freed++;
    pthread_mutex_unlock(&ow->wd->mutex);
    free(ow);
}

static void get_owned(dibs__http_exchange *ex)
{
    owned *ow = malloc(sizeof(*ow));

    *ow = (owned){dibs__http_arg(ex), "owned"};
    dibs__http_answer_bytes(ex, 200, "text/plain", ow->text, 5, free_owned);
}

static void get_tagged(dibs__http_exchange *ex)
{
    if (!dibs__http_not_modified(ex, "\"v1\""))
        get_bytes(ex);
}

typedef struct cursor {
    http_world *wd;
    unsigned told;
} cursor;

/* Returns how long the next one may be silent. */
static int64_t change_open(http_world *wd, int by)
{
    int64_t idle_ms;

    pthread_mutex_lock(&wd->mutex);
    wd->open += by;
    idle_ms = wd->idle_ms;
    pthread_cond_broadcast(&wd->cond);
    pthread_mutex_unlock(&wd->mutex);
    return idle_ms;
}

static void end_stream(void *arg)
{
    cursor *cu = arg;

    (void)change_open(cu->wd, -1);
    free(cu);
}

static bool pull_ticks(void *arg, dibsx_buf *out)
{
    cursor *cu = arg;
    bool over;

    pthread_mutex_lock(&cu->wd->mutex);
    while (cu->told < cu->wd->ticks && out->len + 32 < DIBS__HTTP_PULL_MAX)
        dibsx_buf_printf(out, "tick %u\n", ++cu->told);
    over = cu->wd->over && cu->told == cu->wd->ticks;
    pthread_mutex_unlock(&cu->wd->mutex);
    return !over;
}

static bool pull_flood(void *arg, dibsx_buf *out)
{
    cursor *cu = arg;

    while (out->len + 32 < DIBS__HTTP_PULL_MAX)
        dibsx_buf_puts(out, "more and more\n");
    pthread_mutex_lock(&cu->wd->mutex);
    cu->wd->pulled += out->len;
    pthread_mutex_unlock(&cu->wd->mutex);
    return true;
}

/* After the first tick more than a pull may append. */
static bool pull_surge(void *arg, dibsx_buf *out)
{
    static const char bytes[DIBS__HTTP_PULL_MAX + 1];
    cursor *cu = arg;
    bool ticked;

    pthread_mutex_lock(&cu->wd->mutex);
    ticked = cu->wd->ticks > 0;
    pthread_mutex_unlock(&cu->wd->mutex);
    if (ticked)
        dibsx_buf_add(out, bytes, sizeof(bytes));
    return true;
}

static void begin_stream(dibs__http_exchange *ex, dibs__http_pull_fn *pull)
{
    http_world *wd = dibs__http_arg(ex);
    cursor *cu = malloc(sizeof(*cu));

    *cu = (cursor){.wd = wd};
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = "text/event-stream",
                                                  .pull = pull,
                                                  .gone = end_stream,
                                                  .arg = cu,
                                                  .idle_ms = change_open(wd, 1),
                                                  .idle = ": beat\n\n"});
}

static void get_ticks(dibs__http_exchange *ex)
{
    begin_stream(ex, pull_ticks);
}

static void get_flood(dibs__http_exchange *ex)
{
    begin_stream(ex, pull_flood);
}

static void get_surge(dibs__http_exchange *ex)
{
    begin_stream(ex, pull_surge);
}

/* Answers with the first tick, or that there was none. */
static bool ask_later(dibs__http_exchange *ex, void *arg, bool over)
{
    const cursor *cu = arg;
    bool ticked;

    pthread_mutex_lock(&cu->wd->mutex);
    ticked = cu->wd->ticks > 0;
    pthread_mutex_unlock(&cu->wd->mutex);
    if (ticked || over)
        dibsx_json_pair_bool(dibs__http_answer(ex, 200), "ticked", ticked);
    return ticked || over;
}

static void get_later(dibs__http_exchange *ex)
{
    http_world *wd = dibs__http_arg(ex);
    const char *wait_ms = dibs__http_query(ex, "wait_ms");
    cursor *cu = malloc(sizeof(*cu));

    *cu = (cursor){.wd = wd};
    (void)change_open(wd, 1);
    dibs__http_answer_later(ex,
                            &(dibs__http_later){.ask = ask_later,
                                                .gone = end_stream,
                                                .arg = cu,
                                                .wait_ms =
                                                    strtol(wait_ms, NULL, 10)});
}

/* Begins three answers. */
static void get_other_mind(dibs__http_exchange *ex)
{
    get_ticks(ex);
    get_owned(ex);
    dibs__http_refuse(ex, 409, "On second thoughts, no");
}

static const dibs__http_route routes[] = {
    {"GET", "/bytes", get_bytes, .quick = true},
    {"GET", "/owned", get_owned, .quick = false},
    {"GET", "/tagged", get_tagged, .quick = true},
    {"GET", "/ticks", get_ticks, .quick = true},
    {"GET", "/slow-ticks", get_ticks, .quick = false},
    {"GET", "/later", get_later, .quick = true},
    {"GET", "/slow-later", get_later, .quick = false},
    {"GET", "/flood", get_flood, .quick = true},
    {"GET", "/surge", get_surge, .quick = true},
    {"GET", "/other-mind", get_other_mind, .quick = false},
    {"GET", "/quick", get_quick, .quick = true},
    {"GET", "/urgent", get_quick, .urgent = true},
    {"GET", "/params/{a}/{b}", get_params, .quick = false},
    {"POST", "/json", post_json, .quick = false},
    {"GET", "/wait", get_wait, .quick = false},
    {"GET", "/nothing", get_nothing, .quick = false},
    {"GET", "/big", get_big, .quick = false},
};

void world_start(http_world *wd, dibs__http_opts opts)
{
    dibs_error err = {0};

    *wd = (http_world){.server = NULL};
    pthread_mutex_init(&wd->mutex, NULL);
    pthread_cond_init(&wd->cond, NULL);
    opts.routes = routes;
    opts.route_count = COUNT_OF(routes);
    opts.arg = wd;
    if (!opts.receive_ms)
        opts.receive_ms = UNLIMITED_MS;
    if (!opts.send_ms)
        opts.send_ms = UNLIMITED_MS;
    if (dibs__http_listen("127.0.0.1", 0, &opts.fd, &err) != DIBS_OK)
        fail_msg("%s", err.message);
    wd->port = dibs__http_port(opts.fd);
    if (dibs__http_start(&opts, &wd->server, &err) != DIBS_OK)
        fail_msg("%s", err.message);
}

void world_stop(http_world *wd, int64_t grace_ms)
{
    dibs__http_stop(wd->server, grace_ms);
    pthread_cond_destroy(&wd->cond);
    pthread_mutex_destroy(&wd->mutex);
}

void world_await_inside(http_world *wd, int count)
{
    pthread_mutex_lock(&wd->mutex);
    while (wd->inside < count)
        pthread_cond_wait(&wd->cond, &wd->mutex);
    pthread_mutex_unlock(&wd->mutex);
}

void world_let_go(http_world *wd)
{
    pthread_mutex_lock(&wd->mutex);
    wd->let_go = true;
    pthread_cond_broadcast(&wd->cond);
    pthread_mutex_unlock(&wd->mutex);
}

bool world_count_in(dibs__http_exchange *ex)
{
    http_world *wd = dibs__http_arg(ex);

    pthread_mutex_lock(&wd->mutex);
    wd->asked++;
    pthread_cond_broadcast(&wd->cond);
    pthread_mutex_unlock(&wd->mutex);
    return true;
}

void world_await_asked(http_world *wd, int count)
{
    pthread_mutex_lock(&wd->mutex);
    while (wd->asked < count)
        pthread_cond_wait(&wd->cond, &wd->mutex);
    pthread_mutex_unlock(&wd->mutex);
}

void world_set_idle(http_world *wd, int64_t idle_ms)
{
    pthread_mutex_lock(&wd->mutex);
    wd->idle_ms = idle_ms;
    pthread_mutex_unlock(&wd->mutex);
}

void world_tick(http_world *wd, unsigned count)
{
    pthread_mutex_lock(&wd->mutex);
    wd->ticks += count;
    pthread_mutex_unlock(&wd->mutex);
    dibs__http_wake(wd->server);
}

void world_end(http_world *wd)
{
    pthread_mutex_lock(&wd->mutex);
    wd->over = true;
    pthread_mutex_unlock(&wd->mutex);
    dibs__http_wake(wd->server);
}

void world_await_open(http_world *wd, int count)
{
    pthread_mutex_lock(&wd->mutex);
    while (wd->open != count)
        pthread_cond_wait(&wd->cond, &wd->mutex);
    pthread_mutex_unlock(&wd->mutex);
}

int world_posts(http_world *wd)
{
    int posts;

    pthread_mutex_lock(&wd->mutex);
    posts = wd->posts;
    pthread_mutex_unlock(&wd->mutex);
    return posts;
}

int client_try(const http_world *wd)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)wd->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

int client_open(const http_world *wd)
{
    int fd = client_try(wd);

    assert_true(fd >= 0);
    return fd;
}

/* A server that has answered already may close before all is sent. */
void client_send_bytes(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLOUT};
        ssize_t put;

        assert_int_equal(poll(&ready, 1, PATIENCE_MS), 1);
        put = send(fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && (errno == EPIPE || errno == ECONNRESET))
            return;
        if (put < 0)
            continue;
        bytes += put;
        len -= (size_t)put;
    }
}

void client_send(int fd, const char *text)
{
    client_send_bytes(fd, text, strlen(text));
}

/* The end may be a reset. */
size_t client_read_some(int fd, char *out, size_t size)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ssize_t got;

    if (poll(&ready, 1, PATIENCE_MS) != 1)
        MISSED("nothing came for %d ms", PATIENCE_MS);
    got = recv(fd, out, size, 0);
    return got > 0 ? (size_t)got : 0;
}

static bool read_head(int fd, reply *rp)
{
    size_t len = 0;

    while (len < 4 || memcmp(rp->head + len - 4, "\r\n\r\n", 4) != 0) {
        assert_true(len + 1 < sizeof(rp->head));
        if (client_read_some(fd, rp->head + len, 1) == 0)
            return false;
        rp->head[++len] = '\0';
    }
    return true;
}

void client_read(int fd, reply *rp)
{
    char length[32];
    size_t wanted;

    rp->status = 0;
    rp->len = 0;
    rp->head[0] = rp->body[0] = '\0';
    if (!read_head(fd, rp))
        return;
    assert_int_equal(sscanf(rp->head, "HTTP/1.1 %d", &rp->status), 1);
    wanted = reply_header(rp, "Content-Length", length, sizeof(length))
                 ? strtoul(length, NULL, 10)
                 : 0;
    assert_true(wanted < REPLY_MAX);
    while (rp->len < wanted) {
        size_t got = client_read_some(fd, rp->body + rp->len, wanted - rp->len);

        if (got == 0)
            break; /* the answer to HEAD has no body */
        rp->len += got;
    }
    rp->body[rp->len] = '\0';
}

bool client_at_end(int fd)
{
    char byte;

    return client_read_some(fd, &byte, 1) == 0;
}

void ask(const http_world *wd, const char *request, reply *rp)
{
    int fd = client_open(wd);

    client_send(fd, request);
    client_read(fd, rp);
    close(fd);
}

bool reply_header(const reply *rp, const char *name, char *out, size_t size)
{
    size_t len = strlen(name);

    for (const char *at = strstr(rp->head, "\r\n"); at;
         at = strstr(at + 2, "\r\n")) {
        const char *line = at + 2;

        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *value = line + len + 1 + strspn(line + len + 1, " ");

            snprintf(out, size, "%.*s", (int)strcspn(value, "\r"), value);
            return true;
        }
    }
    return false;
}
