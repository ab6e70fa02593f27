/* proxy.c - see proxy.h. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

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
    int one = 1;

    if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0) {
        close(fd);
        return -1;
    }
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void drop(proxy_pair *pair)
{
    close(pair->client);
    close(pair->server);
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
    int server = client >= 0 && pair ? connect_to(px->server_port) : -1;

    if (server < 0) {
        if (client >= 0)
            close(client);
        return;
    }
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *pair = (proxy_pair){.client = client, .server = server};
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static void forward_request(proxy_pair *pair)
{
    char bytes[4096];
    ssize_t got = recv(pair->client, bytes, sizeof(bytes), 0);

    if (got <= 0 || !send_all(pair->server, bytes, (size_t)got))
        drop(pair);
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

static void forward_answer(proxy *px, proxy_pair *pair)
{
    char bytes[4096];
    ssize_t got = recv(pair->server, bytes, sizeof(bytes), 0);
    size_t len = got > 0 ? let_through(px, (size_t)got) : 0;

    if (got <= 0) {
        drop(pair);
        return;
    }
    pair->spoilt = pair->spoilt || atomic_load(&px->swallow);
    if (pair->spoilt)
        return;
    if (atomic_load(&px->delay_ms) > 0)
        poll(NULL, 0, atomic_load(&px->delay_ms));
    atomic_fetch_add(&px->passed, (long)len);
    if (!send_all(pair->client, bytes, len)) {
        drop(pair);
    } else if (len < (size_t)got) {
        atomic_store(&px->cut_after, -1);
        atomic_fetch_add(&px->cuts, 1);
        drop(pair);
    }
}

/* Waits for something to do; the pairs' sockets come after the first two. */
static void watch(const proxy *px, struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = px->listener, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = px->wake_fd, .events = POLLIN};
    for (int i = 0; i < PROXY_PAIRS; i++) {
        fds[2 + 2 * i] =
            (struct pollfd){.fd = px->pairs[i].client, .events = POLLIN};
        fds[3 + 2 * i] =
            (struct pollfd){.fd = px->pairs[i].server, .events = POLLIN};
    }
    (void)poll(fds, 2 + 2 * PROXY_PAIRS, -1);
}

static void *proxy_main(void *arg)
{
    proxy *px = arg;
    struct pollfd fds[2 + 2 * PROXY_PAIRS];

    while (!atomic_load(&px->stopping)) {
        watch(px, fds);
        for (int i = 0; i < PROXY_PAIRS; i++) {
            proxy_pair *pair = &px->pairs[i];

            if (pair->server >= 0 && fds[3 + 2 * i].revents)
                forward_answer(px, pair);
            if (pair->client >= 0 && fds[2 + 2 * i].revents)
                forward_request(pair);
        }
        if (fds[0].revents)
            welcome(px);
    }
    return NULL;
}

static bool listen_on_loopback(proxy *px)
{
    struct sockaddr_in at = loopback(0);
    socklen_t len = sizeof(at);

    px->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (px->listener < 0 ||
        bind(px->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(px->listener, 64) != 0 ||
        getsockname(px->listener, (struct sockaddr *)&at, &len) != 0)
        return false;
    px->port = ntohs(at.sin_port);
    return true;
}

bool proxy_start(proxy *px, int server_port)
{
    *px = (proxy){.server_port = server_port, .listener = -1, .wake_fd = -1};
    for (int i = 0; i < PROXY_PAIRS; i++)
        px->pairs[i] = (proxy_pair){.client = -1, .server = -1};
    atomic_store(&px->cut_after, -1);
    px->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (px->wake_fd >= 0 && listen_on_loopback(px) &&
        pthread_create(&px->thread, NULL, proxy_main, px) == 0)
        return true;
    if (px->listener >= 0)
        close(px->listener);
    if (px->wake_fd >= 0)
        close(px->wake_fd);
    return false;
}

void proxy_stop(proxy *px)
{
    uint64_t one = 1;

    atomic_store(&px->stopping, true);
    while (write(px->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
    pthread_join(px->thread, NULL);
    for (int i = 0; i < PROXY_PAIRS; i++)
        if (px->pairs[i].client >= 0)
            drop(&px->pairs[i]);
    close(px->listener);
    close(px->wake_fd);
}

void proxy_arm(proxy *px, long bytes)
{
    atomic_store(&px->cut_after, -1);
    atomic_store(&px->passed, 0);
    atomic_store(&px->cut_after, bytes);
}

void proxy_swallow(proxy *px, bool on)
{
    atomic_store(&px->swallow, on);
}
