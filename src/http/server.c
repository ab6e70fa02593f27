/* server.c - starting and stopping a server, and its loop.
 *
 * Owns the loop thread, the pool, the daemon of libmicrohttpd and the listening
 * socket. start and stop run on the caller's thread, the rest on the loop's. */
/* SPDX-License-Identifier: MIT */
#include "http/server.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/thread.h"
#include "http/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void fill_defaults(dibs__http_opts *opts)
{
    if (!opts->connections_max)
        opts->connections_max = 256;
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

static int64_t soonest(int64_t a_ms, int64_t b_ms)
{
    if (a_ms < 0 || b_ms < 0)
        return a_ms < 0 ? b_ms : a_ms;
    return a_ms < b_ms ? a_ms : b_ms;
}

/* Waits for something to do. After a connection was closed, libmicrohttpd must be
 * run once more: only then does it listen again, if there were too many. */
static void rest(dibs__http_server *server, dibsx_nsec until)
{
    struct pollfd fds[] = {{.fd = server->daemon_fd, .events = POLLIN},
                           {.fd = server->wake_fd, .events = POLLIN}};
    const dibsx_heap_node *due = dibsx_heap_first(&server->dues);
    dibsx_nsec now = dibsx_now();
    int64_t wait_ms = dibsx_wait_ms(until, now);
    MHD_UNSIGNED_LONG_LONG theirs;

    if (due)
        wait_ms = soonest(wait_ms, dibsx_wait_ms(due->at, now));
    if (dibs__mhd.MHD_get_timeout(server->daemon, &theirs) == MHD_YES)
        wait_ms = soonest(wait_ms, theirs < INT_MAX ? (int64_t)theirs : -1);
    if (server->again)
        wait_ms = 0;
    server->again = false;
    (void)poll(fds, 2, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
}

/* Sends on its way what the pool has answered. */
static void collect(dibs__http_server *server)
{
    dibs__http_job *job, *next;
    eventfd_t count;

    (void)eventfd_read(server->wake_fd, &count);
    pthread_mutex_lock(&server->mutex);
    job = server->done;
    server->done = NULL;
    pthread_mutex_unlock(&server->mutex);
    for (; job; job = next) {
        dibs__http_exchange *ex = (dibs__http_exchange *)job;

        next = job->next;
        ex->phase = DIBS__HTTP_ANSWERED;
        dibs__mhd.MHD_resume_connection(ex->conn);
    }
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

static void refuse_new(dibs__http_server *server)
{
    MHD_socket fd = dibs__mhd.MHD_quiesce_daemon(server->daemon);

    server->stopping = true;
    if (fd != MHD_INVALID_SOCKET)
        close(fd);
}

static void *loop_main(void *arg)
{
    dibs__http_server *server = arg;
    dibsx_nsec until = DIBSX_NEVER;

    while (!server->stopping ||
           (server->under_way > 0 && dibsx_now() < until)) {
        rest(server, until);
        collect(server);
        (void)dibs__mhd.MHD_run(server->daemon);
        dibs__http_links_cut(server, dibsx_now());
        if (!server->stopping) {
            until = stop_until(server);
            if (until != DIBSX_NEVER)
                refuse_new(server);
        }
    }
    dibs__http_pool_fini(&server->pool);
    /* No connection may be suspended when the daemon ends. */
    collect(server);
    (void)dibs__mhd.MHD_run(server->daemon);
    dibs__mhd.MHD_stop_daemon(server->daemon);
    return NULL;
}

/* Escapes are decoded where the path is split. */
static size_t leave_escapes(void *cls, struct MHD_Connection *conn, char *text)
{
    (void)cls;
    (void)conn;
    return strlen(text);
}

static dibs_status start_daemon(dibs__http_server *server, dibs_error *err)
{
    const dibs__http_opts *opts = &server->opts;
    const union MHD_DaemonInfo *info;

    server->daemon = dibs__mhd.MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
        dibs__http_on_request, server, MHD_OPTION_LISTEN_SOCKET, opts->fd,
        MHD_OPTION_CONNECTION_LIMIT, opts->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, opts->head_max,
        MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_NOTIFY_COMPLETED,
        dibs__http_on_done, server, MHD_OPTION_NOTIFY_CONNECTION,
        dibs__http_on_link, server, MHD_OPTION_URI_LOG_CALLBACK,
        dibs__http_on_line, server, MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes,
        NULL, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
    if (!server->daemon)
        return dibsx_fail(err, DIBS_INTERNAL, "cannot start the HTTP server");
    info =
        dibs__mhd.MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->daemon_fd = info ? info->epoll_fd : -1;
    return DIBS_OK;
}

static void server_free(dibs__http_server *server)
{
    dibs__http_pool_fini(&server->pool);
    dibsx_heap_fini(&server->dues);
    if (server->wake_fd >= 0)
        close(server->wake_fd);
    pthread_mutex_destroy(&server->mutex);
    dibsx_free(server);
}

static dibs_status bring_up(dibs__http_server *server, dibs_error *err)
{
    dibs_status rc;
    int failed;

    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_fd < 0)
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                             "cannot start the HTTP server: %s",
                             strerror(errno));
    if (!dibs__http_pool_init(&server->pool, server->opts.threads_max,
                              dibs__http_work))
        return dibsx_fail(err, DIBS_NOMEM, "no memory for the HTTP server");
    rc = start_daemon(server, err);
    if (rc != DIBS_OK)
        return rc;
    failed = dibsx_thread_start(&server->thread, loop_main, server);
    if (failed) {
        (void)dibs__mhd.MHD_quiesce_daemon(server->daemon);
        dibs__mhd.MHD_stop_daemon(server->daemon);
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(failed),
                             "cannot start the HTTP server: %s",
                             strerror(failed));
    }
    return DIBS_OK;
}

dibs_status dibs__http_start(const dibs__http_opts *opts,
                             dibs__http_server **out, dibs_error *err)
{
    dibs__http_server *server = NULL;
    dibs_status rc = dibs__mhd_load(err);

    *out = NULL;
    if (rc == DIBS_OK) {
        server = dibsx_zalloc(sizeof(*server));
        if (!server)
            rc = dibsx_fail(err, DIBS_NOMEM, "no memory for the HTTP server");
    }
    if (rc == DIBS_OK) {
        server->opts = *opts;
        server->wake_fd = -1;
        fill_defaults(&server->opts);
        pthread_mutex_init(&server->mutex, NULL);
        rc = bring_up(server, err);
    }
    if (rc == DIBS_OK) {
        *out = server;
        return DIBS_OK;
    }
    if (server)
        server_free(server);
    /* A daemon that could not be started may have closed it. */
    if (fcntl(opts->fd, F_GETFD) >= 0)
        close(opts->fd);
    return rc;
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
