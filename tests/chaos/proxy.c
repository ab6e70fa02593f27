/* proxy.c - see proxy.h. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int connect_to(int port)
{
    struct sockaddr_in at = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void end_by_reset(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static void drop(proxy *px, proxy_pair *pair)
{
    if (atomic_load(&px->reset))
        end_by_reset(pair->client);
    close(pair->client);
    close(pair->server);
    free(pair->up.bytes);
    free(pair->down.bytes);
    *pair = (proxy_pair){.client = -1, .server = -1};
}

static proxy_pair *find_room(proxy *px)
{
    for (int i = 0; i < PROXY_PAIRS; i++)
        if (px->pairs[i].client < 0)
            return &px->pairs[i];
    return NULL;
}

static void welcome(proxy *px)
{
    int one = 1;
    int client = accept4(px->listener, NULL, NULL, SOCK_CLOEXEC);
    proxy_pair *pair = find_room(px);
    int server = client >= 0 && pair && atomic_load(&px->mode) != PROXY_DROP
                     ? connect_to(px->server_port)
                     : -1;

    if (server < 0) {
        if (client >= 0)
            close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *pair = (proxy_pair){.client = client, .server = server};
    pair->up.bytes = malloc(PROXY_CHUNK);
    pair->down.bytes = malloc(PROXY_CHUNK);
    if (!pair->up.bytes || !pair->down.bytes)
        drop(px, pair);
}

/* What of an answer goes on; less than `len` when this is where it is cut. */
static size_t let_through(proxy *px, size_t len)
{
    long cut_after = atomic_load(&px->cut_after);
    long passed = atomic_load(&px->passed);
    size_t room;

    if (cut_after < 0)
        return len;
    room = cut_after > passed ? (size_t)(cut_after - passed) : 0;
    return room < len ? room : len;
}

static int64_t due_at(proxy *px, size_t len, bool answer)
{
    long rate = atomic_load(&px->rate);
    int64_t wait_ns = rate > 0 ? (int64_t)len * 1000000000 / rate : 0;
    int jitter_ms = atomic_load(&px->jitter_ms);

    if (answer)
        wait_ns += atomic_load(&px->delay_ms) * INT64_C(1000000);
    if (answer && jitter_ms > 0) {
        px->random ^= px->random << 13;
        px->random ^= px->random >> 7;
        px->random ^= px->random << 17;
        wait_ns += (int64_t)(px->random % (uint64_t)jitter_ms) * 1000000;
    }
    return wait_ns > 0 ? now_ns() + wait_ns : 0;
}

/* False when the connection is over. */
static bool take(proxy *px, proxy_pair *pair, bool answer)
{
    proxy_flow *flow = answer ? &pair->down : &pair->up;
    ssize_t got = recv(answer ? pair->server : pair->client, flow->bytes,
                       PROXY_CHUNK, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (got <= 0)
        return false;
    flow->len = (size_t)got;
    flow->sent = 0;
    flow->due_ns = due_at(px, flow->len, answer);
    if (!answer)
        return true;
    pair->spoilt = pair->spoilt || atomic_load(&px->mode) == PROXY_HALF_OPEN;
    if (pair->spoilt) {
        flow->len = 0;
        return true;
    }
    flow->len = let_through(px, flow->len);
    flow->cut = flow->len < (size_t)got;
    if (flow->cut)
        atomic_store(&px->cut_after, -1);
    atomic_fetch_add(&px->passed, (long)flow->len);
    return true;
}

/* False when the connection is over. */
static bool give(proxy *px, const proxy_pair *pair, proxy_flow *flow)
{
    int fd = flow == &pair->up ? pair->server : pair->client;

    while (flow->sent < flow->len) {
        ssize_t sent =
            send(fd, flow->bytes + flow->sent, flow->len - flow->sent,
                 MSG_NOSIGNAL | MSG_DONTWAIT);

        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (sent <= 0)
            return false;
        flow->sent += (size_t)sent;
    }
    flow->len = flow->sent = 0;
    if (flow->cut)
        atomic_fetch_add(&px->cuts, 1);
    return !flow->cut;
}

/* Whether there is something to take, or to give that is due. */
static bool is_pending(const proxy_flow *flow)
{
    return flow->len > 0 || flow->cut;
}

static bool move(proxy *px, proxy_pair *pair, bool answer, short readable)
{
    proxy_flow *flow = answer ? &pair->down : &pair->up;

    if (!is_pending(flow) && readable && !take(px, pair, answer))
        return false;
    if (is_pending(flow) && now_ns() >= flow->due_ns)
        return give(px, pair, flow);
    return true;
}

/* What to wait for at one end: to take from it, and to give to it what is due. */
static struct pollfd
watch_end(int fd, const proxy_flow *from, const proxy_flow *to, int64_t *due)
{
    struct pollfd pf = {.fd = fd};

    if (!is_pending(from))
        pf.events |= POLLIN;
    if (is_pending(to) && to->due_ns <= now_ns())
        pf.events |= POLLOUT;
    else if (is_pending(to) && to->due_ns < *due)
        *due = to->due_ns;
    return pf;
}

/* Waits for something to do; the pairs' sockets come after the first two. */
static void watch(const proxy *px, struct pollfd *fds)
{
    bool hole = atomic_load(&px->mode) == PROXY_HOLE;
    int64_t due = INT64_MAX;
    struct timespec span;

    fds[0] = (struct pollfd){.fd = px->listener, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = px->wake_fd, .events = POLLIN};
    for (int i = 0; i < PROXY_PAIRS; i++) {
        const proxy_pair *pair = &px->pairs[i];

        fds[2 + 2 * i] = fds[3 + 2 * i] = (struct pollfd){.fd = -1};
        if (pair->client < 0 || hole)
            continue;
        fds[2 + 2 * i] = watch_end(pair->client, &pair->up, &pair->down, &due);
        fds[3 + 2 * i] = watch_end(pair->server, &pair->down, &pair->up, &due);
    }
    if (due < INT64_MAX) {
        int64_t left = due - now_ns();

        left = left > 0 ? left : 0;
        span = (struct timespec){left / 1000000000, left % 1000000000};
    }
    (void)ppoll(fds, 2 + 2 * PROXY_PAIRS, due < INT64_MAX ? &span : NULL, NULL);
}

static void serve(proxy *px, const struct pollfd *fds)
{
    bool hole = atomic_load(&px->mode) == PROXY_HOLE;
    bool dropping = atomic_load(&px->mode) == PROXY_DROP;

    for (int i = 0; i < PROXY_PAIRS && !hole; i++) {
        proxy_pair *pair = &px->pairs[i];
        short at_client = fds[2 + 2 * i].revents;
        short at_server = fds[3 + 2 * i].revents;

        if (pair->client < 0)
            continue;
        if (dropping || (at_client & (POLLHUP | POLLERR)) ||
            !move(px, pair, true, at_server & (POLLIN | POLLHUP | POLLERR)) ||
            !move(px, pair, false, at_client & POLLIN))
            drop(px, pair);
    }
}

static void *proxy_main(void *arg)
{
    proxy *px = arg;
    struct pollfd fds[2 + 2 * PROXY_PAIRS];

    while (!atomic_load(&px->stopping)) {
        uint64_t rings;

        watch(px, fds);
        if (fds[1].revents)
            (void)!read(px->wake_fd, &rings, sizeof(rings));
        serve(px, fds);
        if (fds[0].revents)
            welcome(px);
    }
    return NULL;
}

static bool listen_on_loopback(proxy *px, int port)
{
    struct sockaddr_in at = loopback(port);
    socklen_t len = sizeof(at);
    int one = 1;

    px->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (px->listener >= 0)
        setsockopt(px->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (px->listener < 0 ||
        bind(px->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(px->listener, 64) != 0 ||
        getsockname(px->listener, (struct sockaddr *)&at, &len) != 0)
        return false;
    px->port = ntohs(at.sin_port);
    return true;
}

bool proxy_start_at(proxy *px, int port, int server_port)
{
    *px = (proxy){.server_port = server_port,
                  .listener = -1,
                  .wake_fd = -1,
                  .random = 88172645463325252u};
    for (int i = 0; i < PROXY_PAIRS; i++)
        px->pairs[i] = (proxy_pair){.client = -1, .server = -1};
    atomic_store(&px->cut_after, -1);
    px->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (px->wake_fd >= 0 && listen_on_loopback(px, port) &&
        pthread_create(&px->thread, NULL, proxy_main, px) == 0)
        return true;
    if (px->listener >= 0)
        close(px->listener);
    if (px->wake_fd >= 0)
        close(px->wake_fd);
    return false;
}

bool proxy_start(proxy *px, int server_port)
{
    return proxy_start_at(px, 0, server_port);
}

static void wake(const proxy *px)
{
    uint64_t one = 1;

    while (write(px->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}

void proxy_stop(proxy *px)
{
    atomic_store(&px->stopping, true);
    wake(px);
    pthread_join(px->thread, NULL);
    for (int i = 0; i < PROXY_PAIRS; i++)
        if (px->pairs[i].client >= 0)
            drop(px, &px->pairs[i]);
    close(px->listener);
    close(px->wake_fd);
}

void proxy_arm(proxy *px, long bytes)
{
    atomic_store(&px->cut_after, -1);
    atomic_store(&px->passed, 0);
    atomic_store(&px->cut_after, bytes);
}

void proxy_set_mode(proxy *px, proxy_mode mode)
{
    atomic_store(&px->mode, mode);
    wake(px);
}

void proxy_swallow(proxy *px, bool on)
{
    proxy_set_mode(px, on ? PROXY_HALF_OPEN : PROXY_PASS);
}

void proxy_slow(proxy *px, int delay_ms, int jitter_ms, long rate)
{
    atomic_store(&px->delay_ms, delay_ms);
    atomic_store(&px->jitter_ms, jitter_ms);
    atomic_store(&px->rate, rate);
}
