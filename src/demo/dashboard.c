/* dashboard.c - the daemon beside the workers, whose dashboard shows their lock.
 *
 * Owns the process and its log. Primary's main thread. */
/* SPDX-License-Identifier: MIT */
#include "demo/dashboard.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/sha256.h"
#include "demo/child.h"
#include "demo/spawn.h"
#include "http/server.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOG_LINE_MAX = 8 * 1024, READ_MAX = 4096 };

static const char host[] = "127.0.0.1";

void dibs__demo_dashboard_init(dibs__demo_dashboard *db,
                               const dibs__demo_log *log)
{
    *db = (dibs__demo_dashboard){.log = log, .fd = -1};
    dibsx_buf_init(&db->part, LOG_LINE_MAX);
}

void dibs__demo_dashboard_fini(dibs__demo_dashboard *db)
{
    if (db->fd >= 0)
        close(db->fd);
    db->fd = -1;
    dibsx_buf_fini(&db->part);
    explicit_bzero(db->token, sizeof(db->token));
}

/* A port in use is no reason to go without. */
static dibs_status
open_port(dibs__demo_dashboard *db, int wanted, int *fd, dibs_error *err)
{
    dibs_status rc = dibs__http_listen(host, wanted, fd, err);
    const bool busy = rc == DIBS_BUSY;

    if (busy)
        rc = dibs__http_listen(host, 0, fd, err);
    if (rc != DIBS_OK)
        return rc;
    db->port = dibs__http_port(*fd);
    if (busy)
        dibs__demo_say(db->log, DIBS__DEMO_PLAIN, "dashboard_moved",
                       DIBS__DEMO_FACTS({"port", NULL, db->port}),
                       "Port %d is in use; the dashboard takes port %d", wanted,
                       db->port);
    return DIBS_OK;
}

/* A file without a name, so that nothing is left of the token. It may read only. */
static dibs_status
make_token(char token[DIBS__DEMO_TOKEN_SIZE], int *fd, dibs_error *err)
{
    static const char prefix[] = "dibs_";
    char hash[DIBSX_SHA256_TEXT];

    *fd = -1;
    memcpy(token, prefix, sizeof(prefix));
    /* Digits and a NUL: the former are even in number. */
    if (!dibsx_random_hex(token + sizeof(prefix) - 1, 41))
        return dibsx_fail(err, DIBS_INTERNAL, "the kernel gives no randomness");
    dibsx_sha256(token, strlen(token), hash);
    *fd = memfd_create("dibs-tokens", MFD_CLOEXEC);
    if (*fd >= 0 && fchmod(*fd, S_IRUSR | S_IWUSR) == 0 &&
        dprintf(*fd, "demo read sha256:%s\n", hash) > 0)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                         "cannot make a token file: %s", strerror(errno));
}

static int move_up(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, DIBS__DEMO_FREE_FD);

    close(fd);
    return moved;
}

static dibs_status start_daemon(dibs__demo_dashboard *db,
                                const dibs__demo_opts *opts, dibs_error *err)
{
    dibs__demo_line *line = NULL;
    int listen_fd = -1, tokens_fd = -1;
    dibs_status rc = make_token(db->token, &tokens_fd, err);

    if (tokens_fd >= 0)
        tokens_fd = move_up(tokens_fd);
    if (rc == DIBS_OK)
        rc = open_port(db, opts->dashboard, &listen_fd, err);
    if (rc == DIBS_OK)
        rc = dibs__demo_daemon_line_new(opts, listen_fd, tokens_fd, &line, err);
    if (rc == DIBS_OK)
        rc = dibs__demo_spawn_daemon(line, &db->pid, &db->fd, err);
    if (rc != DIBS_OK)
        db->pid = 0;
    else
        (void)fcntl(db->fd, F_SETFL, O_NONBLOCK);
    dibs__demo_line_free(line);
    if (listen_fd >= 0)
        close(listen_fd);
    if (tokens_fd >= 0)
        close(tokens_fd);
    return rc;
}

static void say_none(const dibs__demo_dashboard *db, const char *why)
{
    dibs__demo_say(db->log, DIBS__DEMO_BAD, "dashboard_ended",
                   DIBS__DEMO_FACTS({"cause", why, 0}),
                   "There is no dashboard: %s. The workers go on", why);
}

void dibs__demo_dashboard_start(dibs__demo_dashboard *db,
                                const dibs__demo_opts *opts)
{
    dibs_error err = {0};

    if (opts->dashboard >= 0 && start_daemon(db, opts, &err) != DIBS_OK)
        say_none(db, err.message);
}

/* The fragment signs in: a browser sends it to nobody. */
static void say_ready(const dibs__demo_dashboard *db)
{
    char url[128];

    snprintf(url, sizeof(url), "http://%s:%d/#token=%s", host, db->port,
             db->token);
    dibs__demo_say(db->log, DIBS__DEMO_GOOD, "dashboard_ready",
                   DIBS__DEMO_FACTS({"url", url, 0},
                                    {"daemon_pid", NULL, db->pid}),
                   "Dashboard: %s", url);
}

static void take_line(dibs__demo_dashboard *db, const char *line)
{
    static const char failed[] = "dibs: ";

    if (strstr(line, " event=ready "))
        say_ready(db);
    else if (strncmp(line, failed, sizeof(failed) - 1) == 0 && !*db->why)
        snprintf(db->why, sizeof(db->why), "%s", line + sizeof(failed) - 1);
}

static void take_bytes(dibs__demo_dashboard *db, const char *bytes, size_t len)
{
    const char *end;

    while ((end = memchr(bytes, '\n', len))) {
        size_t whole = (size_t)(end - bytes);

        dibsx_buf_add(&db->part, bytes, whole);
        if (dibsx_buf_ok(&db->part))
            take_line(db, dibsx_buf_text(&db->part));
        dibsx_buf_reset(&db->part);
        bytes += whole + 1;
        len -= whole + 1;
    }
    dibsx_buf_add(&db->part, bytes, len);
}

void dibs__demo_dashboard_hear(dibs__demo_dashboard *db)
{
    char bytes[READ_MAX];
    ssize_t got;

    while (db->fd >= 0) {
        got = read(db->fd, bytes, sizeof(bytes));
        if (got > 0) {
            take_bytes(db, bytes, (size_t)got);
        } else if (got == 0) {
            close(db->fd);
            db->fd = -1;
        } else if (errno != EINTR) {
            break;
        }
    }
}

void dibs__demo_dashboard_reap(dibs__demo_dashboard *db, bool wanted)
{
    char cause[128];
    int status;

    if (!db->pid || waitpid(db->pid, &status, WNOHANG) != db->pid)
        return;
    dibs__demo_dashboard_hear(db);
    db->pid = 0;
    if (wanted)
        return;
    dibs__demo_child_cause(status, cause, sizeof(cause));
    say_none(db, *db->why ? db->why : cause);
}
