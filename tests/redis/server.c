/* server.c - see server.h. */
/* SPDX-License-Identifier: MIT */
#include "server.h"

#include "ask.h"
#include "certs.h"
#include "hosting.h"
#include "pace.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A server that does not answer after this long does not come up. */
enum { START_MS = 20000, TRIES = 20 };

enum { ENV_MAX = 256 };

/* The command line of a server, as pointers into itself. */
typedef struct line {
    const char *words[SERVER_ARGS_MAX + 48];
    size_t count;
    char port[16], tls_port[16], cert[64], key[64];
    const char *env[ENV_MAX + 3]; /* for it */
    char preload[PATH_MAX], clock[PATH_MAX];
} line;

static void add(line *ln, const char *option, const char *value)
{
    ln->words[ln->count++] = option;
    ln->words[ln->count++] = value;
}

static void add_tls(line *ln, const server *sv)
{
    snprintf(ln->tls_port, sizeof(ln->tls_port), "%d", sv->tls_port);
    snprintf(ln->cert, sizeof(ln->cert), "%s.pem", sv->cert);
    snprintf(ln->key, sizeof(ln->key), "%s.key", sv->cert);
    add(ln, "--tls-port", ln->tls_port);
    add(ln, "--tls-cert-file", ln->cert);
    add(ln, "--tls-key-file", ln->key);
    add(ln, "--tls-ca-cert-file", "ca.pem");
}

static void add_data(line *ln, const server *sv)
{
    add(ln, "--save", "");
    add(ln, "--appendonly", sv->aof ? "yes" : "no");
    /* With "everysec" a write is put off while a slow flush is under way, and a
     * server that is killed then has forgotten what it had answered. */
    add(ln, "--appendfsync", "always");
}

/* The environment, with the server's clock. */
static void add_env(line *ln, const server *sv)
{
    size_t count = 0;

    for (; environ[count] && count < ENV_MAX; count++)
        ln->env[count] = environ[count];
    if (sv->clock_path) {
        snprintf(ln->preload, sizeof(ln->preload), "LD_PRELOAD=%s",
                 hosting_preload(CLOCK_SHIM_LIBRARY));
        snprintf(ln->clock, sizeof(ln->clock), "CLOCK_SHIM=%s", sv->clock_path);
        ln->env[count++] = ln->preload;
        ln->env[count++] = ln->clock;
    }
    ln->env[count] = NULL;
}

static void write_line(line *ln, const server *sv)
{
    *ln = (line){.count = 0};
    ln->words[ln->count++] = "redis-server";
    if (sv->sentinel)
        add(ln, "sentinel.conf", "--sentinel");
    snprintf(ln->port, sizeof(ln->port), "%d", sv->port);
    add(ln, "--port", ln->port);
    add(ln, "--bind", sv->host);
    if (strncmp(sv->host, "127.", 4) != 0) { /* in a network of our own */
        add(ln, "--protected-mode", "no");
        add(ln, "--bind-source-addr", sv->host);
    }
    add(ln, "--unixsocket", sv->socket);
    add(ln, "--logfile", "redis.log");
    add(ln, "--daemonize", "no");
    if (!sv->sentinel)
        add_data(ln, sv);
    if (sv->cert[0])
        add_tls(ln, sv);
    for (size_t i = 0; sv->args[i]; i++)
        ln->words[ln->count++] = sv->args[i];
    ln->words[ln->count] = NULL;
    add_env(ln, sv);
}

/* In the child, where only what is safe after a fork may be called. */
static void become_server(const server *sv, const line *ln)
{
    int null_fd = open("/dev/null", O_RDWR);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (chdir(sv->dir) != 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0)
        _exit(126);
    execvpe(ln->words[0], (char *const *)(uintptr_t)ln->words,
            (char *const *)(uintptr_t)ln->env);
    _exit(127);
}

static bool answers(const server *sv)
{
    char *reply = server_ask(sv, "PING", NULL);
    bool ok = reply &&
              (strcmp(reply, "PONG") == 0 || strncmp(reply, "-NOAUTH", 7) == 0);

    free(reply);
    return ok;
}

/* Whether it came up. */
static bool launch(server *sv)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(START_MS));
    line ln;

    write_line(&ln, sv);
    unlink(sv->socket);
    sv->pid = fork();
    if (sv->pid == 0)
        become_server(sv, &ln);
    while (sv->pid > 0 && !hosting_has_ended(&sv->pid)) {
        if (answers(sv))
            return true;
        if (dibsx_now() > end)
            server_kill(sv);
        poll(NULL, 0, 2);
    }
    sv->pid = 0;
    return false;
}

/* On ports that were free a moment ago; on others when they are not any more. */
static bool start(server *sv, const char *const *args)
{
    size_t count = 0;

    while (args && args[count] && count < SERVER_ARGS_MAX) {
        sv->args[count] = args[count];
        count++;
    }
    for (int i = 0; i < TRIES; i++) {
        sv->port = hosting_free_port();
        if (sv->cert[0])
            sv->tls_port = hosting_free_port();
        if (launch(sv))
            return true;
    }
    hosting_show_log(sv->dir, "redis.log");
    server_stop(sv);
    return false;
}

static bool make_dir(server *sv)
{
    *sv = (server){.pid = 0};
    if (!hosting_folder("redis", sv->dir, sizeof(sv->dir)))
        return false;
    snprintf(sv->socket, sizeof(sv->socket), "%s/socket", sv->dir);
    snprintf(sv->host, sizeof(sv->host), "127.0.0.1");
    return true;
}

bool server_start_at(server *sv, const server_place *at, bool durable,
                     const char *const *args)
{
    if (!make_dir(sv))
        return false;
    sv->aof = durable;
    if (at->host)
        snprintf(sv->host, sizeof(sv->host), "%s", at->host);
    sv->clock_path = at->clock_path;
    return start(sv, args);
}

bool server_start(server *sv, const char *const *args)
{
    if (!make_dir(sv))
        return false;
    sv->aof = true;
    return start(sv, args);
}

bool server_start_forgetful(server *sv, const char *const *args)
{
    return make_dir(sv) && start(sv, args);
}

bool server_start_tls(server *sv, const char *cert)
{
    if (!make_dir(sv))
        return false;
    if (!certs_make(sv->dir)) {
        server_stop(sv);
        return false;
    }
    sv->aof = true;
    snprintf(sv->cert, sizeof(sv->cert), "%s", cert);
    return start(sv, NULL);
}

bool server_start_sentinel(server *sv, const char *host, const char *lines)
{
    char path[sizeof(sv->dir) + 16];
    FILE *file;
    bool written;

    if (!make_dir(sv))
        return false;
    snprintf(path, sizeof(path), "%s/sentinel.conf", sv->dir);
    file = fopen(path, "w");
    written = file && fputs(lines, file) >= 0;
    if (file && fclose(file) != 0)
        written = false;
    if (!written) {
        server_stop(sv);
        return false;
    }
    sv->sentinel = true;
    if (host)
        snprintf(sv->host, sizeof(sv->host), "%s", host);
    return start(sv, NULL);
}

void server_forget(const server *sv)
{
    char path[sizeof(sv->dir) + 32];

    snprintf(path, sizeof(path), "%s/appendonlydir", sv->dir);
    hosting_remove(path);
}

/* The file to which it has appended last; "": none. */
static void find_appended(const server *sv, char path[PATH_MAX])
{
    char pattern[sizeof(sv->dir) + 32];
    struct stat about, newest = {0};
    glob_t found = {0};

    path[0] = '\0';
    snprintf(pattern, sizeof(pattern), "%s/appendonlydir/*.incr.aof", sv->dir);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (stat(found.gl_pathv[i], &about) == 0 &&
                about.st_mtime >= newest.st_mtime) {
                newest = about;
                snprintf(path, PATH_MAX, "%s", found.gl_pathv[i]);
            }
    globfree(&found);
}

/* The end of the last transaction that ends before there; 0: none does. A server that
 * finds half a transaction at the end appends to it, and runs both at the next start. */
static size_t find_end(const char *bytes, size_t before)
{
    static const char exec[] = "*1\r\n$4\r\nEXEC\r\n";
    size_t len = sizeof(exec) - 1;

    while (before >= len && memcmp(bytes + before - len, exec, len) != 0)
        before--;
    return before >= len ? before : 0;
}

bool server_lose(const server *sv, size_t bytes)
{
    char path[PATH_MAX];
    struct stat about = {0};
    size_t size, end = 0;
    char *kept = MAP_FAILED;
    int fd;

    find_appended(sv, path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0)
        kept = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    size = (size_t)about.st_size;
    if (kept != MAP_FAILED) {
        end = find_end(kept, size - (bytes < size / 8 ? bytes : size / 8));
        munmap(kept, size);
    }
    if (end > 0 && ftruncate(fd, (off_t)end) != 0)
        end = 0;
    if (fd >= 0)
        close(fd);
    return end > 0;
}

void server_stop(server *sv)
{
    server_kill(sv);
    if (sv->dir[0])
        hosting_remove(sv->dir);
    sv->dir[0] = '\0';
}

void server_kill(server *sv)
{
    if (sv->pid <= 0)
        return;
    kill(sv->pid, SIGKILL);
    sv->paused = false;
    (void)hosting_await_end(sv->pid);
    sv->pid = 0;
}

void server_await_written(const server *sv)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(START_MS));

    while (sv->aof && dibsx_now() < end &&
           server_info(sv, "persistence", "aof_buffer_length") != 0)
        poll(NULL, 0, 2);
}

bool server_restart(server *sv)
{
    for (int i = 0; i < TRIES; i++)
        if (launch(sv))
            return true;
    hosting_show_log(sv->dir, "redis.log");
    return false;
}

void server_pause(server *sv)
{
    siginfo_t info;

    sv->paused = true;
    kill(sv->pid, SIGSTOP);
    /* Until it has stopped, not only been told to. */
    while (waitid(P_PID, (id_t)sv->pid, &info, WSTOPPED) < 0 && errno == EINTR)
        continue;
}

void server_resume(server *sv)
{
    kill(sv->pid, SIGCONT);
    sv->paused = false;
}

enum { WORDS_MAX = 24 };

static char *ask_words(const server *sv, const char *const *words)
{
    char *reply = NULL;
    asker as;

    if (!asker_open(&as, sv->socket))
        return NULL;
    if (asker_send(&as, words))
        reply = asker_read(&as);
    asker_close(&as);
    return reply;
}

/* The arguments up to a NULL. */
static void collect(va_list args, const char *words[WORDS_MAX + 1])
{
    size_t count = 0;

    while (count < WORDS_MAX &&
           (words[count] = va_arg(args, const char *)) != NULL)
        count++;
    words[count] = NULL;
}

char *server_ask(const server *sv, ...)
{
    const char *words[WORDS_MAX + 1];
    va_list args;

    va_start(args, sv);
    collect(args, words);
    va_end(args);
    return ask_words(sv, words);
}

bool server_tell(const server *sv, ...)
{
    const char *words[WORDS_MAX + 1];
    va_list args;
    char *reply;
    bool ok;

    va_start(args, sv);
    collect(args, words);
    va_end(args);
    reply = ask_words(sv, words);
    ok = reply && reply[0] != '-';
    free(reply);
    return ok;
}

long long server_info(const server *sv, const char *section, const char *field)
{
    char *text = server_ask(sv, "INFO", section, NULL);
    size_t len = strlen(field);
    const char *at = text;
    long long number = -1;

    while (at && !(strncmp(at, field, len) == 0 && at[len] == ':')) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (at) {
        at += len + 1;
        if (strncmp(at, "calls=", 6) == 0 || strncmp(at, "count=", 6) == 0)
            at += 6;
        number = strtoll(at, NULL, 10);
    }
    free(text);
    return number;
}

static long long count_refusals(const server *sv)
{
    long long count = server_info(sv, "errorstats", "errorstat_NOREPLICAS");

    return count < 0 ? 0 : count;
}

static void *refusal_main(void *arg)
{
    server_refusal *rf = arg;

    while (count_refusals(rf->sv) == rf->before)
        poll(NULL, 0, 2);
    (void)server_tell(rf->sv, "CONFIG", "SET", "min-replicas-to-write", "0",
                      NULL);
    return NULL;
}

bool server_refusal_begin(server_refusal *rf, const server *sv)
{
    *rf = (server_refusal){.sv = sv, .before = count_refusals(sv)};
    return server_tell(sv, "CONFIG", "SET", "min-replicas-to-write", "9",
                       NULL) &&
           pthread_create(&rf->thread, NULL, refusal_main, rf) == 0;
}

void server_refusal_end(server_refusal *rf)
{
    pthread_join(rf->thread, NULL);
}

bool server_is_master(const server *sv)
{
    char *role = sv->pid > 0 ? server_ask(sv, "ROLE", NULL) : NULL;
    bool is = role && strncmp(role, "master", 6) == 0;

    free(role);
    return is;
}

void server_url(const server *sv, char out[SERVER_URL_MAX])
{
    snprintf(out, SERVER_URL_MAX, "redis://%s:%d", sv->host, sv->port);
}

void server_unix_url(const server *sv, char out[SERVER_URL_MAX])
{
    snprintf(out, SERVER_URL_MAX, "redis+unix://%s", sv->socket);
}

void server_tls_url(const server *sv, const char *host,
                    char out[SERVER_URL_MAX])
{
    snprintf(out, SERVER_URL_MAX,
             "rediss://%s:%d?ca=%s/ca.pem&cert=%s/client.pem&key=%s/client.key",
             host, sv->tls_port, sv->dir, sv->dir, sv->dir);
}
