/* spawn.c - starting a worker or the daemon: this program again.
 *
 * Owns the words of the command line. Runs on the primary's main thread; between
 * fork and exec only what is safe there is called, for the primary has threads. */
/* SPDX-License-Identifier: MIT */
#include "demo/spawn.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum {
    WORDS_MAX = 32,
    ENV_MAX = 4096,
    TEXT_MAX = 4096,
    URLS_MAX = 2,
    GIVEN_FD = 3 /* where a daemon looks for a socket that it is given */
};

/* A URL, which may have a password in it: the environment of a process can be read
 * in /proc, by debuggers and by what it starts. It is written to a pipe, which is
 * empty when the worker has read it. */
typedef struct hand_over {
    const char *url; /* borrowed */
    char variable
        [64]; /* "NAME=file:/proc/self/fd/N", rewritten for each worker */
    const char *name;
    int fd; /* where the worker reads it */
} hand_over;

struct dibs__demo_line {
    char *argv[WORDS_MAX];
    size_t argc;
    char id[16]; /* one of the words, rewritten for each worker */
    char *env[ENV_MAX];
    size_t env_count;
    size_t env_owned; /* the first ones are ours, the rest is inherited */
    hand_over urls[URLS_MAX];
    size_t url_count;
    int listen_fd; /* of a daemon; -1: of a worker */
    int tokens_fd;
    char listen_pid[32]; /* "LISTEN_PID=N", written by the child */
    bool failed;
};

static void
add_word(dibs__demo_line *line, const char *option, const char *value)
{
    char *words[] = {dibsx_strdup(option), dibsx_strdup(value)};

    for (size_t i = 0; i < 2; i++) {
        line->failed = line->failed || !words[i];
        line->argv[line->argc++] = words[i];
    }
}

static void
add_number(dibs__demo_line *line, const char *option, int64_t number)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64, number);
    add_word(line, option, text);
}

static void add_ms(dibs__demo_line *line, const char *option, int64_t span_ms)
{
    char text[32];

    snprintf(text, sizeof(text), "%" PRId64 "ms", span_ms);
    add_word(line, option, text);
}

static void add_words(dibs__demo_line *line, const dibs__demo_opts *opts)
{
    add_word(line, "dibs", "demo");
    add_number(line, "--workers", opts->workers);
    add_number(line, "--http-port", opts->port);
    add_number(line, "--operations", opts->operations);
    add_ms(line, "--duration", opts->duration_ms);
    add_ms(line, "--every", opts->every_ms);
    add_ms(line, "--ttl", opts->ttl_ms);
    add_ms(line, "--wait", opts->wait_ms);
    add_ms(line, "--store-timeout", opts->timeout_ms);
    add_word(line, "--log-format", opts->json ? "json" : "text");
    add_word(line, "--color", opts->colour ? "always" : "never");
    if (opts->prefix)
        add_word(line, "--prefix", opts->prefix);
    line->argv[line->argc++] = dibsx_strdup("--worker");
    line->failed = line->failed || !line->argv[line->argc - 1];
    line->argv[line->argc] = line->id;
}

/* A daemon that only shows what is there; its log says when it is ready. */
static void add_daemon_words(dibs__demo_line *line, const dibs__demo_opts *opts)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", line->tokens_fd);
    add_word(line, "dibs", "serve");
    add_word(line, "--tokens", path);
    add_word(line, "--engine", "off");
    add_word(line, "--access-log", "none");
    add_word(line, "--log-format", "text");
    add_word(line, "--drain-within", "1s");
    add_ms(line, "--store-timeout", opts->timeout_ms);
    if (opts->prefix)
        add_word(line, "--prefix", opts->prefix);
}

static void
add_variable(dibs__demo_line *line, const char *name, const char *value)
{
    dibsx_buf text;

    if (!value)
        return;
    dibsx_buf_init(&text, TEXT_MAX);
    dibsx_buf_printf(&text, "%s=%s", name, value);
    line->env[line->env_count] = dibsx_buf_take(&text);
    line->failed = line->failed || !line->env[line->env_count];
    line->env_count++;
    dibsx_buf_fini(&text);
}

/* Settings of the surroundings have been heeded already, but for the passwords
 * that the library looks for itself. A service manager speaks to the primary alone. */
static bool is_setting(const char *variable)
{
    static const char *const settings[] = {"DIBS_",          "NUM_WORKERS=",
                                           "HTTP_PORT=",     "LISTEN_",
                                           "NOTIFY_SOCKET=", "WATCHDOG_"};
    static const char passwords[] = "DIBS_REDIS_";

    if (strncmp(variable, passwords, strlen(passwords)) == 0)
        return false;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strncmp(variable, settings[i], strlen(settings[i])) == 0)
            return true;
    }
    return false;
}

static void add_url(dibs__demo_line *line, const char *name, const char *url)
{
    hand_over *ho = &line->urls[line->url_count];

    if (!url || !*url)
        return;
    *ho = (hand_over){.url = url, .name = name, .fd = -1};
    line->env[line->env_count++] = ho->variable;
    line->url_count++;
}

static void add_environment(dibs__demo_line *line, const dibs__demo_opts *opts)
{
    add_variable(line, "DIBS_CONFIG", "/dev/null");
    if (line->listen_fd >= 0)
        add_variable(line, "LISTEN_FDS", "1");
    line->env_owned = line->env_count;
    if (line->listen_fd >= 0)
        line->env[line->env_count++] = line->listen_pid;
    add_url(line, "DIBS_URL", opts->url);
    add_url(line, "DIBS_DATA_URL", opts->data_url);
    for (char **at = environ; *at && line->env_count < ENV_MAX - 1; at++) {
        if (!is_setting(*at))
            line->env[line->env_count++] = *at;
    }
}

dibs_status dibs__demo_line_new(const dibs__demo_opts *opts,
                                dibs__demo_line **out, dibs_error *err)
{
    dibs__demo_line *line = dibsx_zalloc(sizeof(*line));

    *out = line;
    if (line) {
        line->listen_fd = -1;
        add_words(line, opts);
        add_environment(line, opts);
    }
    if (line && !line->failed)
        return DIBS_OK;
    dibs__demo_line_free(line);
    *out = NULL;
    return dibsx_nomem(err, "the workers");
}

dibs_status dibs__demo_daemon_line_new(const dibs__demo_opts *opts,
                                       int listen_fd, int tokens_fd,
                                       dibs__demo_line **out, dibs_error *err)
{
    dibs__demo_line *line = dibsx_zalloc(sizeof(*line));

    *out = line;
    if (line) {
        line->listen_fd = listen_fd;
        line->tokens_fd = tokens_fd;
        add_daemon_words(line, opts);
        add_environment(line, opts);
    }
    if (line && !line->failed)
        return DIBS_OK;
    dibs__demo_line_free(line);
    *out = NULL;
    return dibsx_nomem(err, "the daemon");
}

void dibs__demo_line_free(dibs__demo_line *line)
{
    if (!line)
        return;
    for (size_t i = 0; i < line->argc; i++)
        dibsx_free(line->argv[i]);
    for (size_t i = 0; i < line->env_owned; i++)
        dibsx_free(line->env[i]);
    dibsx_free(line);
}

static void close_urls(dibs__demo_line *line)
{
    for (size_t i = 0; i < line->url_count; i++) {
        if (line->urls[i].fd >= 0)
            close(line->urls[i].fd);
        line->urls[i].fd = -1;
    }
}

/* A pipe takes a URL whole, so that nobody waits for anybody. */
static bool write_urls(dibs__demo_line *line)
{
    for (size_t i = 0; i < line->url_count; i++) {
        hand_over *ho = &line->urls[i];
        size_t len = strlen(ho->url);
        int ends[2];
        bool whole;

        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
            return false;
        ho->fd = fcntl(ends[0], F_DUPFD_CLOEXEC, DIBS__DEMO_FREE_FD);
        close(ends[0]);
        whole = ho->fd >= 0 && write(ends[1], ho->url, len) == (ssize_t)len;
        close(ends[1]);
        snprintf(ho->variable, sizeof(ho->variable), "%s=file:/proc/self/fd/%d",
                 ho->name, ho->fd);
        if (!whole)
            return false;
    }
    return true;
}

/* Writes "LISTEN_PID=N"; snprintf() may not be called between fork and exec. */
static void write_listen_pid(char *out, pid_t pid)
{
    static const char name[] = "LISTEN_PID=";
    char digits[24], *at = digits;

    memcpy(out, name, sizeof(name) - 1);
    out += sizeof(name) - 1;
    for (long rest = (long)pid; rest > 0; rest /= 10)
        *at++ = (char)('0' + rest % 10);
    while (at > digits)
        *out++ = *--at;
    *out = '\0';
}

/* A daemon has a group of its own, or a ^C would reach it twice. */
static bool become_daemon(dibs__demo_line *line)
{
    write_listen_pid(line->listen_pid, getpid());
    return setpgid(0, 0) == 0 && dup2(STDOUT_FILENO, STDERR_FILENO) >= 0 &&
           fcntl(line->tokens_fd, F_SETFD, 0) == 0 &&
           dup2(line->listen_fd, GIVEN_FD) >= 0 &&
           fcntl(GIVEN_FD, F_SETFD, 0) == 0;
}

_Noreturn static void become(dibs__demo_line *line, pid_t primary, int fd)
{
    sigset_t none;

    sigemptyset(&none);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (size_t i = 0; i < line->url_count; i++)
        (void)fcntl(line->urls[i].fd, F_SETFD, 0);
    if (getppid() == primary && dup2(fd, STDOUT_FILENO) >= 0 &&
        (line->listen_fd < 0 || become_daemon(line))) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve("/proc/self/exe", line->argv, line->env);
    }
    _exit(127);
}

/* 0, or the number of the error. */
static int start(dibs__demo_line *line, pid_t *pid, int *fd)
{
    pid_t primary = getpid();
    int ends[2] = {-1, -1}, number;

    *pid = -1;
    if (write_urls(line) && pipe2(ends, O_CLOEXEC) == 0)
        *pid = fork();
    if (*pid == 0)
        become(line, primary, ends[1]);
    number = errno;
    close_urls(line);
    if (ends[1] >= 0)
        close(ends[1]);
    *fd = ends[0];
    if (*pid > 0)
        return 0;
    if (ends[0] >= 0)
        close(ends[0]);
    *fd = -1;
    return number;
}

dibs_status dibs__demo_spawn(dibs__demo_line *line, int id, pid_t *pid, int *fd,
                             dibs_error *err)
{
    int number;

    snprintf(line->id, sizeof(line->id), "%d", id);
    number = start(line, pid, fd);
    if (number == 0)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot start worker %d: %s", id, strerror(number));
}

dibs_status dibs__demo_spawn_daemon(dibs__demo_line *line, pid_t *pid, int *fd,
                                    dibs_error *err)
{
    int number = start(line, pid, fd);

    if (number == 0)
        return DIBS_OK;
    return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(number),
                         "cannot start dibs serve: %s", strerror(number));
}
