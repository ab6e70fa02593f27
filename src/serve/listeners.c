/* listeners.c - where the daemon listens. Main thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/listeners.h"
#include "base/fail.h"
#include "serve/address.h"
#include "serve/proxy.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_GIVEN = 3, ENTRY_MAX = 160 };

static const char unix_scheme[] = "unix:";

/* The next entry of "a,b"; false: there is none. */
static bool next_entry(const char **text, char out[ENTRY_MAX], bool *fits)
{
    size_t len;

    *text += strspn(*text, ", ");
    len = strcspn(*text, ", ");
    *fits = len < ENTRY_MAX;
    snprintf(out, ENTRY_MAX, "%.*s", *fits ? (int)len : 0, *text);
    *text += len;
    return len > 0;
}

static const char *path_of(const char *entry)
{
    const size_t skip = sizeof(unix_scheme) - 1;

    return strncmp(entry, unix_scheme, skip) == 0 ? entry + skip : NULL;
}

/* Whether tokens may travel to this address. */
static dibs_status
judge_place(const dibs__serve_opts *opts, const char *where, dibs_error *err)
{
    if (!opts->tls_cert && !opts->plaintext)
        return dibsx_fail(err, DIBS_REFUSED,
                          "cannot listen on %.60s: others could read the "
                          "tokens; give --tls-cert and --tls-key, listen on "
                          "127.0.0.1, or use a proxy with TLS and "
                          "--insecure-plaintext behind-proxy",
                          where);
    if (!opts->tokens)
        return dibsx_fail(err, DIBS_REFUSED,
                          "cannot listen on %.60s without a token file; make "
                          "one with dibs access add, and name it with --tokens",
                          where);
    if (!opts->tls_cert && (!opts->trusted_proxies || !*opts->trusted_proxies))
        return dibsx_fail(err, DIBS_REFUSED,
                          "cannot listen on %.60s without TLS: say which "
                          "proxies are before it with --trusted-proxies",
                          where);
    return DIBS_OK;
}

static dibs_status
judge_entry(const dibs__serve_opts *opts, const char *entry, dibs_error *err)
{
    const char *path = path_of(entry);
    dibs__serve_address at;
    dibs_status rc;

    if (path)
        return *path == '/'
                   ? DIBS_OK
                   : dibsx_fail(err, DIBS_REFUSED,
                                "cannot listen on '%.80s': write the whole "
                                "path, as in unix:/run/dibs/serve.sock",
                                entry);
    rc = dibs__serve_address_read(entry, &at, err);
    return rc != DIBS_OK || at.loopback ? rc : judge_place(opts, entry, err);
}

static dibs_status judge_metrics(const dibs__serve_opts *opts, dibs_error *err)
{
    dibs__serve_address at;
    dibs_status rc = DIBS_OK;

    if (!opts->metrics_listen || !*opts->metrics_listen)
        return DIBS_OK;
    rc = dibs__serve_address_read(opts->metrics_listen, &at, err);
    if (rc == DIBS_OK && !at.loopback && !opts->metrics_open)
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "cannot show metrics on %.60s: anybody there could "
                        "read the names of locks; listen on 127.0.0.1, or give "
                        "--metrics-open yes",
                        opts->metrics_listen);
    return rc;
}

static dibs__http_tls_files files_of(const dibs__serve_opts *opts)
{
    return (dibs__http_tls_files){.cert = opts->tls_cert,
                                  .key = opts->tls_key,
                                  .client_ca = opts->tls_client_ca};
}

static dibs_status
open_tls(const dibs__serve_opts *opts, dibs__http_tls **out, dibs_error *err)
{
    const dibs__http_tls_files files = files_of(opts);

    *out = NULL;
    if (!opts->tls_cert && (opts->tls_key || opts->tls_client_ca))
        return dibsx_fail(err, DIBS_REFUSED,
                          "--tls-key and --tls-client-ca are of no use without "
                          "--tls-cert");
    return opts->tls_cert ? dibs__http_tls_new(&files, out, err) : DIBS_OK;
}

dibs_status
dibs__serve_listeners_check(const dibs__serve_opts *opts, dibs_error *err)
{
    const char *text = opts->listen;
    char entry[ENTRY_MAX];
    dibs__serve_nets nets;
    dibs__http_tls *tls;
    bool fits = true;
    dibs_status rc = dibs__serve_nets_read(opts->trusted_proxies, &nets, err);
    size_t count = 0;

    while (rc == DIBS_OK && next_entry(&text, entry, &fits)) {
        count++;
        rc = fits ? judge_entry(opts, entry, err)
                  : dibsx_fail(err, DIBS_REFUSED,
                               "cannot listen on an address of more than %d "
                               "bytes",
                               ENTRY_MAX - 1);
    }
    /* One is for metrics. */
    if (rc == DIBS_OK && (count == 0 || count >= DIBS__HTTP_LISTENERS_MAX))
        rc = dibsx_fail(err, DIBS_REFUSED,
                        "--listen has %zu addresses; it takes 1 to %d", count,
                        DIBS__HTTP_LISTENERS_MAX - 1);
    if (rc == DIBS_OK)
        rc = judge_metrics(opts, err);
    if (rc == DIBS_OK)
        rc = open_tls(opts, &tls, err);
    if (rc == DIBS_OK)
        dibs__http_tls_free(tls);
    return rc;
}

/* -- Opening. */

static void say_listening(dibs__serve_log *log, const char *where,
                          const dibs__http_listener *at)
{
    static const char *const kinds[] = {[DIBS__SERVE_AT_PORT] = "api",
                                        [DIBS__SERVE_AT_SOCKET] = "socket",
                                        [DIBS__SERVE_AT_METRICS] = "metrics"};

    dibs__serve_say(log, DIBS_LOG_INFO, "listening",
                    DIBS__SERVE_FACTS({"port", NULL, dibs__http_port(at->fd)},
                                      {"at", where, 0},
                                      {"for", kinds[at->kind], 0},
                                      {"tls", at->tls ? "yes" : "no", 0},
                                      {"version", dibs_version(), 0}),
                    "listening on %s, port %d", where, dibs__http_port(at->fd));
}

static void add_listener(dibs__serve_listeners *ls, dibs__serve_log *log,
                         int fd, dibs__serve_at kind, const char *where)
{
    dibs__http_listener *at = &ls->items[ls->count++];

    *at = (dibs__http_listener){.fd = fd,
                                .kind = (int)kind,
                                .tls = kind == DIBS__SERVE_AT_PORT ? ls->tls
                                                                   : NULL};
    say_listening(log, where, at);
}

static dibs_status
open_entry(dibs__serve_listeners *ls, const dibs__serve_opts *opts,
           const char *entry, dibs__serve_at kind, dibs__serve_log *log,
           dibs_error *err)
{
    const char *path = path_of(entry);
    dibs__serve_address at;
    dibs_status rc;
    int fd = -1;

    if (path) {
        rc = dibs__http_listen_unix(path, opts->socket_mode, &fd, err);
        if (rc == DIBS_OK)
            snprintf(ls->paths[ls->count], sizeof(ls->paths[0]), "%s", path);
        kind = DIBS__SERVE_AT_SOCKET;
    } else {
        rc = dibs__serve_address_read(entry, &at, err);
        if (rc == DIBS_OK)
            rc = dibs__http_listen(at.host, at.port, &fd, err);
        if (rc == DIBS_OK && !at.loopback && kind == DIBS__SERVE_AT_PORT &&
            !ls->tls)
            dibs__serve_say(log, DIBS_LOG_WARN, "plaintext",
                            DIBS__SERVE_FACTS({"address", at.host, 0}),
                            "tokens travel in plain text to the proxy: only it "
                            "may reach %s",
                            at.host);
    }
    if (rc == DIBS_OK)
        add_listener(ls, log, fd, kind, entry);
    return rc;
}

/* -- Sockets of the service manager (LISTEN_FDS). */

/* How many there are for this process. */
static int count_given(void)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    long given;

    if (!pid || !count || strtol(pid, NULL, 10) != (long)getpid())
        return 0;
    given = strtol(count, NULL, 10);
    return given > 0 && given < DIBS__HTTP_LISTENERS_MAX ? (int)given : 0;
}

/* The name of the one with this number in LISTEN_FDNAMES is "metrics". */
static bool is_for_metrics(int number)
{
    const char *names = getenv("LISTEN_FDNAMES");

    for (; names && number > 0; number--) {
        names = strchr(names, ':');
        names = names ? names + 1 : NULL;
    }
    return names && strcspn(names, ":") == 7 &&
           strncmp(names, "metrics", 7) == 0;
}

static dibs_status not_given(int fd, const char *why, dibs_error *err)
{
    return dibsx_fail(err, DIBS_REFUSED,
                      "cannot use the socket %d of the service manager: %s; "
                      "look at ListenStream= of the socket unit",
                      fd, why);
}

static dibs_status
take_given(dibs__serve_listeners *ls, const dibs__serve_opts *opts, int number,
           dibs__serve_log *log, dibs_error *err)
{
    const int fd = FIRST_GIVEN + number;
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(at), size = sizeof(int);
    dibs__serve_at kind =
        is_for_metrics(number) ? DIBS__SERVE_AT_METRICS : DIBS__SERVE_AT_PORT;
    char host[64] = "", where[96];
    dibs_status rc = DIBS_OK;
    int listens = 0;

    if (getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
        !listens)
        return not_given(fd, "it does not listen", err);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (at.ss_family == AF_UNIX) {
        if (kind == DIBS__SERVE_AT_PORT)
            kind = DIBS__SERVE_AT_SOCKET;
    } else {
        (void)getnameinfo((struct sockaddr *)&at, len, host, sizeof(host), NULL,
                          0, NI_NUMERICHOST);
        if (!dibs__serve_is_loopback(host)) {
            if (kind == DIBS__SERVE_AT_PORT)
                rc = judge_place(opts, host, err);
            else if (!opts->metrics_open)
                rc = not_given(fd,
                               "metrics elsewhere than on loopback need "
                               "--metrics-open yes",
                               err);
        }
    }
    snprintf(where, sizeof(where), "socket %d %s", fd, host);
    if (rc == DIBS_OK)
        add_listener(ls, log, fd, kind, where);
    return rc;
}

dibs_status dibs__serve_listeners_open(dibs__serve_listeners *ls,
                                       const dibs__serve_opts *opts,
                                       dibs__serve_log *log, dibs_error *err)
{
    const int given = count_given();
    const char *text = opts->listen;
    char entry[ENTRY_MAX];
    bool fits;
    dibs_status rc = open_tls(opts, &ls->tls, err);

    for (int i = 0; rc == DIBS_OK && i < given; i++)
        rc = take_given(ls, opts, i, log, err);
    while (rc == DIBS_OK && given == 0 && next_entry(&text, entry, &fits))
        rc = open_entry(ls, opts, entry, DIBS__SERVE_AT_PORT, log, err);
    if (rc == DIBS_OK && opts->metrics_listen && *opts->metrics_listen)
        rc = open_entry(ls, opts, opts->metrics_listen, DIBS__SERVE_AT_METRICS,
                        log, err);
    /* Commands that the daemon starts have no part in them. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return rc;
}

static bool write_url(const dibs__http_listener *at, char *out, size_t size)
{
    struct sockaddr_storage here = {.ss_family = AF_UNSPEC};
    socklen_t len = sizeof(here);
    char host[64], port[8];
    bool v6;

    if (getsockname(at->fd, (struct sockaddr *)&here, &len) != 0 ||
        getnameinfo((struct sockaddr *)&here, len, host, sizeof(host), port,
                    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        return false;
    v6 = here.ss_family == AF_INET6;
    return snprintf(out, size, "http%s://%s%s%s:%s", at->tls ? "s" : "",
                    v6 ? "[" : "", host, v6 ? "]" : "", port) < (int)size;
}

bool dibs__serve_listeners_url(const dibs__serve_listeners *ls, char *out,
                               size_t size)
{
    for (size_t i = 0; i < ls->count; i++) {
        if (ls->items[i].kind == (int)DIBS__SERVE_AT_PORT)
            return write_url(&ls->items[i], out, size);
    }
    return false;
}

void dibs__serve_listeners_taken(dibs__serve_listeners *ls)
{
    ls->count = 0;
}

dibs_status
dibs__serve_listeners_reload(dibs__serve_listeners *ls,
                             const dibs__serve_opts *opts, dibs_error *err)
{
    const dibs__http_tls_files files = files_of(opts);

    return ls->tls ? dibs__http_tls_reload(ls->tls, &files, err) : DIBS_OK;
}

void dibs__serve_listeners_unlink(dibs__serve_listeners *ls)
{
    for (size_t i = 0; i < DIBS__HTTP_LISTENERS_MAX; i++) {
        if (ls->paths[i][0])
            (void)unlink(ls->paths[i]);
        ls->paths[i][0] = '\0';
    }
}

void dibs__serve_listeners_fini(dibs__serve_listeners *ls)
{
    dibs__serve_listeners_unlink(ls);
    for (size_t i = 0; i < ls->count; i++)
        close(ls->items[i].fd);
    dibs__http_tls_free(ls->tls);
}
