/* server.c - starting and stopping a server, and its loop.
 *
 * Owns the loop thread, the pool, the connections and the listening socket. start,
 * wake and stop run on the caller's thread, the rest on the loop's. */
/* SPDX-License-Identifier: MIT */
#include "http/server.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/thread.h"
#include "http/inside.h"
#include "http/later.h"
#include "http/request.h"
#include "http/stream.h"
#include "http/wire.h"
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, ACCEPTS_MAX = 16, ACCEPT_PAUSE_MS = 100 };

static void fill_defaults(dibs__http_opts *opts)
{
    if (!opts->connections_max)
        opts->connections_max = 256;
    if (!opts->streams_max)
        opts->streams_max = (opts->connections_max + 1) / 2;
    if (!opts->threads_max)
        opts->threads_max = 32;
    if (!opts->head_max)
        opts->head_max = 16 * 1024;
    if (!opts->body_max)
        opts->body_max = 64 * 1024;
    if (!opts->receive_ms)
        opts->receive_ms = 10000;
    if (!opts->send_ms)
        opts->send_ms = 10000;
}

/* Has epoll look at a descriptor that belongs to no connection. */
static bool watch(dibs__http_server *server, int fd, int how, void *what)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

    return epoll_ctl(server->epoll_fd, how, fd, &ev) == 0;
}

/* Whether to accept, which depends on how many are connected. */
static void set_listening(dibs__http_server *server, bool on)
{
    for (size_t i = 0; i < server->door_count; i++) {
        dibs__http_door *door = &server->doors[i];

        if (on != door->open && door->at.fd >= 0 &&
            watch(server, door->at.fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL,
                  door))
            door->open = on;
    }
}

/* Only some at a time: since a crowd makes room for the next, clients that connect
 * faster than they are accepted would keep the loop from all others. */
static void accept_some(dibs__http_server *server, const dibs__http_door *door)
{
    for (int tries = 0; tries < ACCEPTS_MAX &&
                        server->link_count < server->opts.connections_max;
         tries++) {
        int fd = accept4(door->at.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd >= 0 && door->at.tls && dibs__http_is_hasty(server, fd)) {
            close(fd);
            continue;
        }
        if (fd >= 0) {
            dibs__http_crowd_relieve(server);
            dibs__http_link_open(server, &door->at, fd);
            continue;
        }
        /* Without descriptors or memory it would fail again at once. */
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
            errno == ENOMEM)
            server->listen_at = dibsx_after_ms(dibsx_now(), ACCEPT_PAUSE_MS);
        else if (errno == ECONNABORTED || errno == EINTR)
            continue;
        return;
    }
}

static dibs__http_door *door_of(dibs__http_server *server, const void *what)
{
    for (size_t i = 0; i < server->door_count; i++) {
        if (what == &server->doors[i])
            return &server->doors[i];
    }
    return NULL;
}

static dibsx_nsec sooner(dibsx_nsec a_at, dibsx_nsec b_at)
{
    return a_at < b_at ? a_at : b_at;
}

/* Waits for something to do, and does it. */
static void turn(dibs__http_server *server, dibsx_nsec until)
{
    struct epoll_event events[EVENTS_MAX];
    const dibsx_heap_node *due = dibsx_heap_first(&server->dues);
    int64_t wait_ms;
    int count;

    if (server->listen_at <= dibsx_now())
        server->listen_at = DIBSX_NEVER;
    set_listening(server,
                  server->listen_at == DIBSX_NEVER &&
                      server->link_count < server->opts.connections_max);
    until = sooner(until, server->listen_at);
    if (due)
        until = sooner(until, due->at);
    wait_ms = dibsx_wait_ms(until, dibsx_now());
    count = epoll_wait(server->epoll_fd, events, EVENTS_MAX,
                       wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr && !door_of(server, events[i].data.ptr))
            dibs__http_link_serve(events[i].data.ptr);
    }
    /* Afterwards, since it may close connections that had an event too. */
    for (int i = 0; i < count; i++) {
        const dibs__http_door *door = door_of(server, events[i].data.ptr);

        if (door)
            accept_some(server, door);
    }
    atomic_store(&server->connections, server->link_count);
    atomic_store(&server->streams, server->stream_count);
}

/* Locks: server->mutex. Heads that are read from now on are for these hosts. */
static void take_hosts(dibs__http_server *server)
{
    if (!server->hosts[1])
        return;
    dibsx_free(server->hosts[0]);
    server->opts.hosts = server->hosts[0] = server->hosts[1];
    server->hosts[1] = NULL;
}

/* Sends on its way what the pool has answered, and what streams have. */
static void collect(dibs__http_server *server)
{
    dibs__http_job *job, *next;
    eventfd_t count;
    bool woken;

    (void)eventfd_read(server->wake_fd, &count);
    pthread_mutex_lock(&server->mutex);
    take_hosts(server);
    job = server->done;
    server->done = NULL;
    woken = server->woken;
    server->woken = false;
    pthread_mutex_unlock(&server->mutex);
    if (woken) {
        dibs__http_streams_wake(server);
        dibs__http_laters_ask(server, false);
    }
    for (; job; job = next) {
        dibs__http_exchange *ex = (dibs__http_exchange *)job;

        next = job->next;
        if (!dibs__http_later_begin(ex))
            dibs__http_send(ex);
        dibs__http_link_go_on(ex->link);
    }
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* When to be done with it all; DIBSX_NEVER unless a stop was asked for. */
static dibsx_nsec stop_until(dibs__http_server *server)
{
    bool stop;
    int64_t grace_ms;

    pthread_mutex_lock(&server->mutex);
    stop = server->stop;
    grace_ms = server->grace_ms;
    pthread_mutex_unlock(&server->mutex);
    return stop ? dibsx_after_ms(dibsx_now(), grace_ms) : DIBSX_NEVER;
}

static void close_doors(dibs__http_server *server)
{
    for (size_t i = 0; i < server->door_count; i++) {
        close_fd(server->doors[i].at.fd);
        server->doors[i].at.fd = -1;
    }
}

static void refuse_new(dibs__http_server *server)
{
    server->stopping = true;
    set_listening(server, false);
    close_doors(server);
}

/* Streams may tell of the requests that are under way, and end after them. */
static void end_streams(dibs__http_server *server)
{
    if (server->ending || server->under_way > server->stream_count)
        return;
    server->ending = true;
    dibs__http_streams_wake(server);
}

/* Requests that no function has begun change nothing. Functions that run have no other
 * end than their own. */
static void cancel_waiting(dibs__http_server *server)
{
    dibs__http_job *job = dibs__http_pool_close(&server->pool), *next;

    for (; job; job = next) {
        dibs__http_exchange *ex = (dibs__http_exchange *)job;

        next = job->next;
        dibs__http_refuse(ex, 503,
                          "The server is shutting down, and has not begun this "
                          "request");
        dibs__http_answer_now(ex);
        dibs__http_link_go_on(ex->link);
    }
}

static void *loop_main(void *arg)
{
    dibs__http_server *server = arg;
    dibsx_nsec until = DIBSX_NEVER;

    while (!server->stopping ||
           (server->under_way > 0 && dibsx_now() < until)) {
        turn(server, until);
        collect(server);
        dibsx_lag_answer(&server->lag);
        dibs__http_links_cut(server, dibsx_now());
        if (!server->stopping) {
            until = stop_until(server);
            if (until != DIBSX_NEVER) {
                refuse_new(server);
                dibs__http_laters_ask(server, true);
            }
        }
        if (server->stopping)
            end_streams(server);
    }
    cancel_waiting(server);
    dibs__http_pool_fini(&server->pool);
    /* Answers of the last functions, and the ends of streams, are sent as far as they
     * go at once. */
    collect(server);
    server->ending = true;
    dibs__http_streams_wake(server);
    while (server->links)
        dibs__http_link_close(server->links);
    return NULL;
}

static void server_free(dibs__http_server *server)
{
    dibs__http_pool_fini(&server->pool);
    dibsx_free(server->hosts[0]);
    dibsx_free(server->hosts[1]);
    dibsx_heap_fini(&server->dues);
    close_doors(server);
    close_fd(server->epoll_fd);
    close_fd(server->wake_fd);
    pthread_mutex_destroy(&server->mutex);
    dibsx_free(server);
}

static dibs_status cannot_start(int number, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot start the HTTP server: %s", strerror(number));
}

static dibs_status bring_up(dibs__http_server *server, dibs_error *err)
{
    int failed;

    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (server->wake_fd < 0 || server->epoll_fd < 0 ||
        !watch(server, server->wake_fd, EPOLL_CTL_ADD, NULL))
        return cannot_start(errno, err);
    if (!dibs__http_pool_init(&server->pool, server->opts.threads_max,
                              dibs__http_work))
        return dibsx_nomem(err, "the HTTP server");
    failed = dibsx_thread_start(&server->thread, loop_main, server);
    return failed ? cannot_start(failed, err) : DIBS_OK;
}

static void copy_doors(dibs__http_server *server)
{
    const dibs__http_opts *opts = &server->opts;

    assert(opts->listener_count <= DIBS__HTTP_LISTENERS_MAX);
    for (size_t i = 0; i < opts->listener_count; i++)
        server->doors[i].at = opts->listeners[i];
    server->door_count = opts->listener_count;
    if (opts->listener_count == 0)
        server->doors[server->door_count++].at.fd = opts->fd;
}

dibs_status dibs__http_start(const dibs__http_opts *opts,
                             dibs__http_server **out, dibs_error *err)
{
    dibs__http_server *server = dibsx_zalloc(sizeof(*server));
    dibs_status rc;

    *out = NULL;
    if (!server) {
        for (size_t i = 0; i < opts->listener_count; i++)
            close(opts->listeners[i].fd);
        if (opts->listener_count == 0)
            close(opts->fd);
        return dibsx_nomem(err, "the HTTP server");
    }
    server->opts = *opts;
    copy_doors(server);
    server->epoll_fd = server->wake_fd = -1;
    server->listen_at = DIBSX_NEVER;
    fill_defaults(&server->opts);
    pthread_mutex_init(&server->mutex, NULL);
    rc = bring_up(server, err);
    if (rc == DIBS_OK)
        *out = server;
    else
        server_free(server);
    return rc;
}

void dibs__http_wake(dibs__http_server *server)
{
    bool first;

    pthread_mutex_lock(&server->mutex);
    first = !server->woken;
    server->woken = true;
    pthread_mutex_unlock(&server->mutex);
    if (first)
        (void)eventfd_write(server->wake_fd, 1);
}

bool dibs__http_hosts_set(dibs__http_server *server, const char *hosts)
{
    char *copy = dibsx_strdup(hosts);

    if (!copy)
        return false;
    pthread_mutex_lock(&server->mutex);
    dibsx_free(server->hosts[1]);
    server->hosts[1] = copy;
    pthread_mutex_unlock(&server->mutex);
    (void)eventfd_write(server->wake_fd, 1);
    return true;
}

void dibs__http_load_get(dibs__http_server *server, dibs__http_load *out)
{
    *out = (dibs__http_load){.connections = atomic_load(&server->connections),
                             .streams = atomic_load(&server->streams),
                             .crowded = atomic_load(&server->crowded),
                             .hasty = atomic_load(&server->hasty),
                             .relieved = atomic_load(&server->relieved)};
}

dibsx_nsec dibs__http_lag(dibs__http_server *server, dibsx_nsec now)
{
    const dibsx_nsec lag = dibsx_lag_ask(&server->lag, now);

    (void)eventfd_write(server->wake_fd, 1);
    return lag;
}

void dibs__http_stop(dibs__http_server *server, int64_t grace_ms)
{
    if (!server)
        return;
    pthread_mutex_lock(&server->mutex);
    server->stop = true;
    server->grace_ms = grace_ms;
    pthread_mutex_unlock(&server->mutex);
    (void)eventfd_write(server->wake_fd, 1);
    pthread_join(server->thread, NULL);
    server_free(server);
}
