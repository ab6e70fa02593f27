/* primary.c - the primary process: starts the workers, shows what they say, starts
 * those that die again, and stops them all, and the daemon beside them.
 *
 * One loop on the main thread; signals are blocked and read there. The store is
 * looked at by the watch's thread, which never holds the loop up. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "base/url.h"
#include "demo/child.h"
#include "demo/dashboard.h"
#include "demo/demo.h"
#include "demo/log.h"
#include "demo/spawn.h"
#include "demo/store_name.h"
#include "demo/sweep.h"
#include "demo/watch.h"
#include "http/server.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STOP_MS = 4000, /* then they are killed: five seconds are promised */
    FLUSH_MS = 500, /* for the last lines, when nobody reads them */
    LOOK_MS = 1000, /* the longest that a look at the store may take */
    LINE_MAX_BYTES = 8 * 1024
};

typedef struct primary {
    const dibs__demo_opts *opts;
    dibs__demo_log log;
    dibs__demo_line *line;
    dibs__demo_output output;
    dibs__demo_merge merge;
    dibs__demo_watch watch;
    dibs__demo_dashboard dashboard;
    dibs_client *cl;
    int signal_fd;
    int stop_signal;    /* 0 until it is to end */
    dibsx_nsec kill_at; /* when those that still run are killed */
    bool unclean;       /* a worker has died, and may have left a lock */
    dibs__demo_child children[DIBS__DEMO_WORKERS_MAX];
} primary;

static void put_line(void *arg, const char *line, size_t len)
{
    dibs__demo_merge_add(arg, line, len);
}

static void plan_restart(primary *pr, int id, const char *what, long pid)
{
    dibs__demo_child *child = &pr->children[id - 1];
    dibsx_nsec now = dibsx_now();
    int64_t pause_ms = dibs__demo_child_pause_ms(child, now);

    child->restart_at = dibsx_after_ms(now, pause_ms);
    dibs__demo_say(&pr->log, DIBS__DEMO_BAD, "worker_died",
                   DIBS__DEMO_FACTS({"id", NULL, id}, {"was_pid", NULL, pid},
                                    {"cause", what, 0},
                                    {"restart_ms", NULL, pause_ms}),
                   "Worker %d (PID: %ld) died: %s. Restarting in %lldms...", id,
                   pid, what, (long long)pause_ms);
}

static void start_worker(primary *pr, int id)
{
    dibs__demo_child *child = &pr->children[id - 1];
    dibs_error err = {0};

    child->started_at = dibsx_now();
    child->restart_at = DIBSX_NEVER;
    if (dibs__demo_spawn(pr->line, id, &child->pid, &child->fd, &err) !=
        DIBS_OK) {
        child->pid = 0;
        child->fd = -1;
        plan_restart(pr, id, err.message, 0);
        return;
    }
    (void)fcntl(child->fd, F_SETFL, O_NONBLOCK);
    if (child->failures)
        dibs__demo_say(&pr->log, DIBS__DEMO_PLAIN, "worker_restarted",
                       DIBS__DEMO_FACTS({"id", NULL, id},
                                        {"new_pid", NULL, child->pid}),
                       "Worker %d restarted (PID: %ld)", id, (long)child->pid);
}

static void start_due(primary *pr)
{
    for (int id = 1; id <= pr->opts->workers && !pr->stop_signal; id++) {
        if (pr->children[id - 1].restart_at <= dibsx_now())
            start_worker(pr, id);
    }
}

static void reap(primary *pr)
{
    char cause[128];

    dibs__demo_dashboard_reap(&pr->dashboard, pr->stop_signal != 0);
    for (int id = 1; id <= pr->opts->workers; id++) {
        dibs__demo_child *child = &pr->children[id - 1];
        pid_t pid = child->pid;
        int status;

        if (!pid || waitpid(pid, &status, WNOHANG) != pid)
            continue;
        dibs__demo_child_hear(child, &pr->merge);
        child->pid = 0;
        if (status != 0)
            pr->unclean = true;
        if (pr->stop_signal)
            continue;
        dibs__demo_child_cause(status, cause, sizeof(cause));
        plan_restart(pr, id, cause, pid);
    }
}

static int running(const primary *pr)
{
    int count = 0;

    for (int i = 0; i < pr->opts->workers; i++)
        count += pr->children[i].pid != 0;
    return count;
}

static void signal_all(const primary *pr, int number)
{
    for (int i = 0; i < pr->opts->workers; i++) {
        if (pr->children[i].pid)
            kill(pr->children[i].pid, number);
    }
    if (pr->dashboard.pid)
        kill(pr->dashboard.pid, number);
}

/* The first signal asks the workers to stop, another one does not wait. */
static void stop(primary *pr, int number)
{
    if (pr->stop_signal) {
        pr->kill_at = dibsx_now();
        return;
    }
    pr->stop_signal = number;
    pr->kill_at = dibsx_after_ms(dibsx_now(), STOP_MS);
    dibs__demo_say(&pr->log, DIBS__DEMO_PLAIN, "stopping",
                   DIBS__DEMO_FACTS({"signal", NULL, number}),
                   "Received SIG%s. Stopping %d workers...",
                   sigabbrev_np(number), running(pr));
    signal_all(pr, SIGTERM);
}

static void take_signals(primary *pr)
{
    struct signalfd_siginfo info;

    while (read(pr->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(pr);
        else
            stop(pr, (int)info.ssi_signo);
    }
}

/* As much as fits into a line of the terminal, or it could not be taken back. */
static void show_status(primary *pr)
{
    char text[DIBS__DEMO_STATUS_MAX], line[DIBS__DEMO_STATUS_MAX];
    struct winsize size = {.ws_col = 0};
    size_t at = 0, columns = 0;

    dibs__demo_watch_take(&pr->watch, text);
    if (ioctl(pr->output.fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        size.ws_col = 80;
    while (text[at] && columns + 3 < size.ws_col) {
        at++;
        while (((unsigned char)text[at] & 0xC0) == 0x80)
            at++;
        columns++;
    }
    text[at] = '\0';
    snprintf(line, sizeof(line), "%s %.480s %s",
             pr->opts->colour ? "\033[7m" : "", text,
             pr->opts->colour ? "\033[0m" : "");
    dibs__demo_output_status(&pr->output, line);
}

static int64_t rest_ms(const primary *pr)
{
    dibsx_nsec until = dibs__demo_merge_due(&pr->merge);
    int64_t span_ms;

    if (pr->stop_signal && pr->kill_at < until)
        until = pr->kill_at;
    for (int i = 0; i < pr->opts->workers && !pr->stop_signal; i++) {
        if (pr->children[i].restart_at < until)
            until = pr->children[i].restart_at;
    }
    span_ms = dibsx_wait_ms(until, dibsx_now());
    return span_ms > INT_MAX ? INT_MAX : span_ms;
}

/* Writes what waits. If the reader of a pipe has gone, the demonstration ends as
 * other programs do: nobody would see it any more. If a terminal has gone, a
 * SIGHUP says so. */
static void see_output(primary *pr, short revents)
{
    if (revents == POLLOUT)
        dibs__demo_output_write(&pr->output);
    else if (revents)
        pr->output.broken = true;
    if (revents & POLLERR && !(revents & POLLHUP) && !pr->stop_signal)
        stop(pr, SIGPIPE);
}

/* Waits for something to happen, and sees to it. While what was said is not read
 * by anyone, no more of it is taken, save at the end. */
static void turn(primary *pr)
{
    struct pollfd fds[4 + DIBS__DEMO_WORKERS_MAX];
    bool hear = dibs__demo_output_room(&pr->output) || pr->stop_signal;
    nfds_t count = 4 + (nfds_t)pr->opts->workers;

    fds[0] = (struct pollfd){.fd = pr->signal_fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = pr->watch.fd, .events = POLLIN};
    fds[2] = (struct pollfd){.fd = pr->output.broken ? -1 : pr->output.fd,
                             .events = dibs__demo_output_pending(&pr->output)
                                           ? POLLOUT
                                           : 0};
    fds[3] = (struct pollfd){.fd = pr->dashboard.fd, .events = POLLIN};
    for (int i = 0; i < pr->opts->workers; i++)
        fds[4 + i] = (struct pollfd){.fd = hear ? pr->children[i].fd : -1,
                                     .events = POLLIN};
    if (poll(fds, count, (int)rest_ms(pr)) <= 0)
        return;
    for (int i = 0; i < pr->opts->workers; i++) {
        if (fds[4 + i].revents)
            dibs__demo_child_hear(&pr->children[i], &pr->merge);
    }
    if (fds[3].revents)
        dibs__demo_dashboard_hear(&pr->dashboard);
    if (fds[0].revents)
        take_signals(pr);
    if (fds[1].revents)
        show_status(pr);
    see_output(pr, fds[2].revents);
}

static void flush(primary *pr)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), FLUSH_MS);
    struct pollfd out = {.fd = pr->output.fd, .events = POLLOUT};
    int64_t left_ms;

    dibs__demo_merge_flush(&pr->merge);
    dibs__demo_output_status(&pr->output, "");
    while (dibs__demo_output_pending(&pr->output) &&
           (left_ms = dibsx_wait_ms(until, dibsx_now())) > 0) {
        if (poll(&out, 1, (int)left_ms) > 0)
            dibs__demo_output_write(&pr->output);
    }
}

static void run(primary *pr)
{
    dibs__demo_say(&pr->log, DIBS__DEMO_PLAIN, "primary_started",
                   DIBS__DEMO_FACTS({"url", dibs_url(pr->cl), 0}),
                   "Primary process %ld is running", (long)getpid());
    dibs__demo_say(&pr->log, DIBS__DEMO_PLAIN, "workers_starting",
                   DIBS__DEMO_FACTS({"workers", NULL, pr->opts->workers}),
                   "Starting %d worker processes...", pr->opts->workers);
    if (!pr->log.json)
        put_line(&pr->merge, "\n", 1);
    dibs__demo_dashboard_start(&pr->dashboard, pr->opts);
    while (!pr->stop_signal || running(pr) > 0 || pr->dashboard.pid) {
        start_due(pr);
        if (pr->stop_signal && dibsx_now() >= pr->kill_at) {
            signal_all(pr, SIGKILL);
            pr->kill_at = DIBSX_NEVER;
        }
        turn(pr);
        dibs__demo_merge_pass(&pr->merge, dibsx_now());
    }
    dibs__demo_watch_stop(&pr->watch);
    if (pr->unclean)
        dibs__demo_sweep(pr->cl, &pr->log);
    dibs__demo_say(&pr->log, DIBS__DEMO_PLAIN, "primary_stopped", NULL,
                   "All workers have stopped");
    flush(pr);
}

static dibs_status open_signals(primary *pr, dibs_error *err)
{
    sigset_t served, blocked;

    sigemptyset(&served);
    sigaddset(&served, SIGINT);
    sigaddset(&served, SIGTERM);
    sigaddset(&served, SIGHUP);
    sigaddset(&served, SIGCHLD);
    blocked = served;
    sigaddset(&blocked, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    /* Inherited as ignored, it would take the status of workers away. */
    signal(SIGCHLD, SIG_DFL);
    pr->signal_fd = signalfd(-1, &served, SFD_CLOEXEC | SFD_NONBLOCK);
    if (pr->signal_fd >= 0)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                         "cannot open a signalfd: %s", strerror(errno));
}

/* A port in use would make its worker fail again and again; it is said once, here. */
static dibs_status check_ports(const dibs__demo_opts *opts, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    int fd;

    for (int id = 1; id <= opts->workers && rc == DIBS_OK; id++) {
        rc = dibs__http_listen("127.0.0.1", opts->port + id, &fd, err);
        if (rc == DIBS_OK)
            close(fd);
        else if (rc == DIBS_BUSY)
            rc = dibsx_fail(err, DIBS_BUSY,
                            "port %d is in use; workers need the ports %d to "
                            "%d: choose others with HTTP_PORT",
                            opts->port + id, opts->port + 1,
                            opts->port + opts->workers);
    }
    return rc;
}

/* With a short limit for each step, so that a look never holds up the end. */
static dibs_status try_store(primary *pr, dibs_error *err)
{
    const dibs__demo_opts *opts = pr->opts;
    dibs_client_opts client = {.size = sizeof(client),
                               .prefix = opts->prefix,
                               .timeout_ms = opts->timeout_ms < LOOK_MS
                                                 ? opts->timeout_ms
                                                 : LOOK_MS,
                               .label = "primary"};
    dibs_status rc = dibs_open(opts->url, &client, &pr->cl, err);

    if (rc == DIBS_OK)
        rc = dibs_ping(pr->cl, NULL, err);
    if (rc != DIBS_OK) {
        dibs_close(pr->cl);
        pr->cl = NULL;
    }
    return rc;
}

/* To answer for the first time the store has the whole limit that was asked for. A
 * refusal that comes at once is final. */
static dibs_status open_store(primary *pr, dibs_error *err)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), pr->opts->timeout_ms);
    dibsx_nsec began_at;
    dibs_status rc;

    do {
        began_at = dibsx_now();
        rc = try_store(pr, err);
    } while (rc != DIBS_OK && dibsx_now() < until &&
             dibsx_now() - began_at >= LOOK_MS / 2 * DIBSX_MS);
    return rc;
}

static dibs_status lead(const dibs__demo_opts *opts, dibs_error *err)
{
    primary pr = {.opts = opts, .signal_fd = -1};
    dibs_status rc;

    dibs__demo_output_init(&pr.output);
    dibs__demo_merge_init(&pr.merge, &pr.output);
    pr.log = (dibs__demo_log){.put = put_line,
                              .arg = &pr.merge,
                              .json = opts->json,
                              .colour = opts->colour};
    dibs__demo_dashboard_init(&pr.dashboard, &pr.log);
    pr.watch.fd = -1;
    for (int i = 0; i < opts->workers; i++) {
        pr.children[i].fd = -1;
        dibsx_buf_init(&pr.children[i].part, LINE_MAX_BYTES);
    }
    rc = open_signals(&pr, err);
    if (rc == DIBS_OK)
        rc = check_ports(opts, err);
    if (rc == DIBS_OK)
        rc = open_store(&pr, err);
    if (rc == DIBS_OK)
        rc = dibs__demo_line_new(opts, &pr.line, err);
    if (rc == DIBS_OK) {
        if (opts->status)
            dibs__demo_watch_start(&pr.watch, pr.cl, opts->port + 1);
        run(&pr);
    }
    for (int i = 0; i < opts->workers; i++)
        dibsx_buf_fini(&pr.children[i].part);
    dibs__demo_dashboard_fini(&pr.dashboard);
    dibs__demo_line_free(pr.line);
    dibs__demo_merge_fini(&pr.merge);
    dibs__demo_output_fini(&pr.output);
    dibs_close(pr.cl);
    if (pr.signal_fd >= 0)
        close(pr.signal_fd);
    return rc;
}

dibs_status dibs__demo_primary(const dibs__demo_opts *opts, dibs_error *err)
{
    dibs__demo_opts whole = *opts;
    dibsx_buf first;
    dibs_status rc;

    dibsx_buf_init(&first, DIBSX_URL_MAX);
    if (!whole.data_url && dibs__demo_first_server(whole.url, &first))
        whole.data_url = dibsx_buf_text(&first);
    rc = lead(&whole, err);
    dibsx_buf_fini(&first);
    return rc;
}
