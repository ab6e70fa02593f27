/* daemon.c - the life of the daemon: start, ready, reload, drain, end.
 *
 *     STARTING --> READY --> DRAINING --> end
 *                  ^   | HUP: settings, tokens and certificate are read again
 *                  +---+
 *
 * The main thread runs it and reads all signals; requests run on the threads of the
 * server. */
/* SPDX-License-Identifier: MIT */
#include "serve/daemon.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "base/text.h"
#include "serve/notify.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/setup.h"
#include "serve/trace_parent.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    START_POLL_MS = 20,
    ANSWERS_MS = 1000,
    BODY_MAX = 64 * 1024,
    FILES_BESIDE = 128
};

/* Every answer says which life of which daemon it is from. */
static void stamp_answer(dibs__http_exchange *ex, const dibs__serve *sv)
{
    char clock[DIBSX_DIGITS_SIZE];

    (void)dibsx_digits((uint64_t)(dibsx_now() / DIBSX_MS), clock);
    dibs__http_set(ex, "Dibs-Epoch", sv->epoch);
    dibs__http_set(ex, "Dibs-Clock-Ms", clock);
}

/* As dibs__http_sent_fn. No query and no body: these may have secrets in them. */
static void note_answer(dibs__http_exchange *ex, int status)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__serve_caller *caller = dibs__http_note(ex);
    const char *route = dibs__http_route_path(ex);
    const char *trace = dibs__http_header(ex, "traceparent");

    if (!caller->peer[0])
        dibs__serve_client_of(ex, caller->peer);
    stamp_answer(ex, sv);
    dibs__serve_counts_add(&sv->counts, route, status, dibs__http_took_us(ex));
    if (caller->request_id[0])
        dibs__http_set(ex, "X-Request-Id", caller->request_id);
    if (sv->opts->access == DIBS__SERVE_LOG_NONE ||
        (sv->opts->access == DIBS__SERVE_LOG_ERRORS && status < 400))
        return;
    dibs__serve_log_access(
        &sv->log,
        DIBS__SERVE_FACTS(
            {"method", dibs__http_method(ex), 0},
            {"route", route ? route : "none", 0}, {"status", NULL, status},
            {"took_us", NULL, dibs__http_took_us(ex)},
            {"who", caller->name[0] ? caller->name : "-", 0},
            {"from", caller->peer, 0}, {"request", caller->request_id, 0},
            {dibs__trace_parent_ok(trace) ? "traceparent" : NULL, trace, 0}));
}

static dibs_status take_signals(dibs__serve *sv, dibs_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    sv->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (sv->signal_fd < 0)
        return dibsx_fail_at(err, DIBS_INTERNAL, dibsx_errno_name(errno),
                             "cannot open a signalfd: %s", strerror(errno));
    return DIBS_OK;
}

/* The first start on this machine makes a token; a file that was named must be
 * there. */
static dibs_status load_tokens(dibs__serve *sv, dibs_error *err)
{
    dibs__serve_tokens *tokens = NULL;
    char made[4096];
    dibs_status rc = dibs__serve_setup_load(sv->tokens_path, &tokens, err);

    if (rc == DIBS_NOTFOUND && sv->opts->tokens)
        rc = dibs__serve_setup_missing(sv->tokens_path, err);
    else if (rc == DIBS_NOTFOUND) {
        rc = dibs__serve_setup_first(sv->tokens_path, made, sizeof(made),
                                     sv->first_token, err);
        if (rc == DIBS_OK)
            dibs__serve_say(&sv->log, DIBS_LOG_INFO, "token_made",
                            DIBS__SERVE_FACTS({"path", made, 0}),
                            "made an admin token for the first start; it is in "
                            "%s",
                            made);
        if (rc == DIBS_OK)
            rc = dibs__serve_setup_load(sv->tokens_path, &tokens, err);
    }
    if (rc == DIBS_OK)
        dibs__serve_gate_set(&sv->gate, tokens);
    return rc;
}

/* The address that signs a browser in: only on a terminal, and not by the log, whose lines
 * are kept. */
static void show_first_token(dibs__serve *sv)
{
    char url[128];

    if (sv->first_token[0] && isatty(STDERR_FILENO) &&
        dibs__serve_listeners_url(&sv->listeners, url, sizeof(url)))
        (void)dprintf(STDERR_FILENO,
                      "dibs: the dashboard, signed in as admin: "
                      "%s%s/#token=%s\n",
                      url, sv->base, sv->first_token);
    explicit_bzero(sv->first_token, sizeof(sv->first_token));
}

/* The number of a signal that has come within the time, or 0. */
static int await_signal(const dibs__serve *sv, int wait_ms)
{
    struct pollfd fd = {.fd = sv->signal_fd, .events = POLLIN};
    struct signalfd_siginfo info;

    if (poll(&fd, 1, wait_ms) != 1 ||
        read(sv->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    return (int)info.ssi_signo;
}

/* A store that others keep busy is tried again; an embedded one is opened here, those on
 * a network when they are first asked. */
static dibs_status
open_store(dibs__serve *sv, const char *url, const dibs_client_opts *client,
           dibs_client **out, dibs_error *err)
{
    const dibsx_nsec until =
        dibsx_after_ms(sv->started_at, sv->opts->start_wait_ms);
    bool said = false;
    int number = 0;

    for (;;) {
        const dibs_status rc = dibs_open(url, client, out, err);

        if (rc != DIBS_UNAVAIL || dibsx_now() >= until || number == SIGTERM ||
            number == SIGINT)
            return rc;
        if (!said)
            dibs__serve_say(&sv->log, DIBS_LOG_WARN, "store_not_open",
                            DIBS__SERVE_FACTS({"start_wait_ms", NULL,
                                               sv->opts->start_wait_ms}),
                            "the store cannot be opened yet: %s", err->message);
        said = true;
        number = await_signal(sv, START_POLL_MS);
    }
}

static dibs_status open_stores(dibs__serve *sv, dibs_error *err)
{
    const dibs__serve_opts *opts = sv->opts;
    const dibs_client_opts client = {.size = sizeof(client),
                                     .prefix = opts->prefix,
                                     .label = "serve",
                                     .timeout_ms = opts->timeout_ms,
                                     .log = dibs__serve_log_client,
                                     .log_arg = &sv->log,
                                     .log_level = opts->log_level,
                                     .share_stats = opts->share_stats,
                                     .share_events = true,
                                     .lazy = true};

    dibs_status rc = open_store(sv, opts->url, &client, &sv->cl, err);

    sv->data = sv->cl;
    if (rc == DIBS_OK && opts->data_url)
        rc = open_store(sv, opts->data_url, &client, &sv->data, err);
    if (rc == DIBS_OK)
        dibs__serve_log_settle(&sv->log, sv->cl, sv->data, opts->log_level);
    return rc;
}

/* Every connection is a descriptor; the store and the log need some more. */
static void allow_files(dibs__serve *sv)
{
    const rlim_t wanted = (rlim_t)sv->opts->connections_max + FILES_BESIDE;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < wanted)
        dibs__serve_say(&sv->log, DIBS_LOG_WARN, "few_files",
                        DIBS__SERVE_FACTS(
                            {"limit", NULL, (int64_t)limit.rlim_cur}),
                        "this process may open too few files for %u "
                        "connections; raise LimitNOFILE, or lower "
                        "--connections-max",
                        sv->opts->connections_max);
}

/* As dibs__http_crowd_fn. On loopback every program of the machine has one address. */
static unsigned share_of(const void *arg, const char *peer)
{
    const dibs__serve *sv = arg;

    if (strncmp(peer, "unix:", 5) == 0 ||
        dibs__serve_nets_have(&sv->proxies, peer))
        return 0;
    return dibs__serve_is_loopback(peer) ? sv->opts->connections_max / 2
                                         : atomic_load(&sv->address_max);
}

/* As dibs__http_haste_fn. */
static unsigned haste_of(const void *arg, const char *peer)
{
    const dibs__serve *sv = arg;

    return dibs__serve_nets_have(&sv->proxies, peer)
               ? 0
               : atomic_load(&sv->handshake_rate);
}

static dibs_status start_http(dibs__serve *sv, dibs_error *err)
{
    dibs__http_opts http = {.routes = dibs__serve_routes,
                            .route_count = dibs__serve_route_count,
                            .arg = sv,
                            .shape = dibs__serve_problem_shape,
                            .error_type = DIBS__SERVE_PROBLEM_TYPE,
                            .gate = dibs__serve_gate_pass,
                            .sent = note_answer,
                            .base_path = sv->base[0] ? sv->base : NULL,
                            .hosts = sv->opts->hosts ? sv->opts->hosts : "",
                            .listeners = sv->listeners.items,
                            .listener_count = sv->listeners.count,
                            .crowd = share_of,
                            .haste = haste_of,
                            .connections_max = sv->opts->connections_max,
                            .streams_max = sv->opts->streams_max,
                            .body_max = BODY_MAX};
    dibs_status rc = dibs__http_start(&http, &sv->http, err);

    dibs__serve_listeners_taken(&sv->listeners);
    return rc;
}

/* Any thread. */
static void ring_bell(void *arg)
{
    dibs__serve_bell *bell = arg;

    pthread_mutex_lock(&bell->mutex);
    if (bell->server)
        dibs__http_wake(bell->server);
    pthread_mutex_unlock(&bell->mutex);
}

/* As dibs__serve_seen_fn: answers that wait for a change may have one. */
static void wake_requests(void *arg, const dibs__serve_picture *before,
                          const dibs__serve_picture *now)
{
    dibs__serve *sv = arg;

    dibs__hub_seen(&sv->hub, before, now);
    dibs__serve_feed_seen(sv, before, now);
    ring_bell(&sv->bell);
}

static void hang_bell(dibs__serve_bell *bell, dibs__http_server *server)
{
    pthread_mutex_lock(&bell->mutex);
    bell->server = server;
    pthread_mutex_unlock(&bell->mutex);
    /* There may have been news before. */
    ring_bell(bell);
}

static dibs_status start_parts(dibs__serve *sv, dibs_error *err)
{
    dibs_status rc =
        dibs__hub_init(&sv->hub, sv->epoch, ring_bell, &sv->bell, err);

    sv->hub.look = &sv->look;
    if (rc == DIBS_OK)
        rc = dibs__serve_viewer_init(&sv->viewer, sv->opts, &sv->log,
                                     dibs__serve_feed_told, sv, err);
    sv->hub.viewer = &sv->viewer;
    if (rc == DIBS_OK)
        rc = dibs__sessions_init(&sv->sessions, sv->cl, sv->epoch, ring_bell,
                                 &sv->bell, err);
    sv->sessions.count_max = sv->opts->sessions_max;
    sv->sessions.leases_max = sv->opts->session_leases;
    if (rc == DIBS_OK)
        rc = dibs__bounds_init(&sv->bounds, &sv->sessions, sv->data, ring_bell,
                               &sv->bell, err);
    if (rc == DIBS_OK)
        rc = dibs__catalog_init(&sv->catalog, sv->data, sv->opts->look_every_ms,
                                ring_bell, &sv->bell, err);
    if (rc == DIBS_OK)
        rc = dibs__topics_init(&sv->topics, err);
    if (rc == DIBS_OK)
        rc = dibs__board_look_init(&sv->board_look, sv->data, sv->engine.board,
                                   &sv->hub, sv->opts->look_every_ms, err);
    if (rc == DIBS_OK)
        rc = dibs__tails_init(&sv->tails, ring_bell, &sv->bell, err);
    if (rc == DIBS_OK)
        dibs__breakers_init(&sv->breakers, sv->data);
    if (rc == DIBS_OK)
        rc =
            dibs__wrong_tokens_init(&sv->wrong_tokens, sv->data, &sv->log, err);
    return rc;
}

static dibs_status start(dibs__serve *sv, dibs_error *err)
{
    dibs_status rc =
        dibs__serve_setup_base(sv->opts, sv->base, sizeof(sv->base), err);

    if (rc == DIBS_OK)
        rc = dibs__serve_setup_check(sv->opts, err);
    if (rc == DIBS_OK)
        rc =
            dibs__serve_nets_read(sv->opts->trusted_proxies, &sv->proxies, err);
    if (rc == DIBS_OK)
        rc = dibs__engine_init(&sv->engine, sv->opts, &sv->log, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_setup_tokens(sv->opts, sv->tokens_path,
                                      sizeof(sv->tokens_path), err);
    if (rc == DIBS_OK)
        rc = take_signals(sv, err);
    if (rc == DIBS_OK)
        rc = load_tokens(sv, err);
    allow_files(sv);
    if (rc == DIBS_OK && !dibsx_random_hex(sv->epoch, sizeof(sv->epoch)))
        rc = dibsx_fail(err, DIBS_INTERNAL, "the kernel gives no randomness");
    if (rc == DIBS_OK)
        rc = open_stores(sv, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_look_init(&sv->look, sv->cl, sv->opts->look_every_ms,
                                   err);
    if (rc == DIBS_OK)
        rc =
            dibs__serve_listeners_open(&sv->listeners, sv->opts, &sv->log, err);
    if (rc == DIBS_OK)
        show_first_token(sv);
    dibs__serve_look_listen(&sv->look, dibs__serve_history_seen, &sv->history);
    dibs__serve_look_listen(&sv->look, wake_requests, sv);
    sv->pulse.cl = sv->cl;
    dibs__serve_look_listen(&sv->look, dibs__pulse_seen, &sv->pulse);
    sv->seat = (dibs__serve_seat){.cl = sv->data,
                                  .epoch = sv->epoch,
                                  .board = sv->engine.board,
                                  .engine = sv->engine.nodes != NULL,
                                  .ttl_ms = sv->opts->node_ttl_ms};
    dibs__serve_look_listen(&sv->look, dibs__seat_seen, &sv->seat);
    if (rc == DIBS_OK)
        rc = start_parts(sv, err);
    if (rc == DIBS_OK)
        rc = start_http(sv, err);
    if (rc == DIBS_OK)
        hang_bell(&sv->bell, sv->http);
    if (rc == DIBS_OK)
        rc = dibs__serve_look_start(&sv->look, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_viewer_start(&sv->viewer, err);
    if (rc == DIBS_OK)
        rc = dibs__board_look_start(&sv->board_look, err);
    if (rc == DIBS_OK)
        rc = dibs__engine_start(&sv->engine, sv->data, &sv->counts, err);
    return rc;
}

/* The settings as their files have them now. */
static void take_live(dibs__serve *sv, const dibs__serve_live *live)
{
    atomic_store(&sv->address_max, live->address_max);
    atomic_store(&sv->handshake_rate, live->handshake_rate);
    atomic_store(&sv->token_rate, live->token_rate);
    dibs__serve_log_settle(&sv->log, sv->cl, sv->data, live->log_level);
    if (!dibs__http_hosts_set(sv->http, live->hosts ? live->hosts : ""))
        dibs__serve_say(&sv->log, DIBS_LOG_ERROR, "hosts_unchanged", NULL,
                        "there is no memory for the names of this server; "
                        "they stay as they were");
}

/* One fault in a file, and everything stays as it is. At the start the service manager hears
 * nothing of it: the end of a reload would say that the daemon is ready. */
static void reload(dibs__serve *sv)
{
    const bool ready = atomic_load(&sv->phase) == DIBS__SERVE_READY;
    dibs__serve_tokens *tokens = NULL;
    dibs__serve_live live = {.hosts = NULL};
    dibs_error err = {0};

    if (ready)
        dibs__serve_notify_reloading();
    if (sv->opts->reread(sv->opts->reread_arg, &live, &err) == DIBS_OK &&
        dibs__serve_setup_load(sv->tokens_path, &tokens, &err) == DIBS_OK &&
        dibs__serve_listeners_check(sv->opts, &err) == DIBS_OK &&
        dibs__engine_reload(&sv->engine, &err) == DIBS_OK &&
        dibs__serve_listeners_reload(&sv->listeners, sv->opts, &err) ==
            DIBS_OK) {
        const int64_t count = (int64_t)tokens->count;

        dibs__serve_gate_set(&sv->gate, tokens);
        take_live(sv, &live);
        ring_bell(&sv->bell); /* streams of tokens that are gone end */
        dibs__serve_counts_reload(&sv->counts, true);
        dibs__serve_say(&sv->log, DIBS_LOG_INFO, "reloaded",
                        DIBS__SERVE_FACTS({"tokens", NULL, count}),
                        "read %s again", sv->tokens_path);
    } else {
        dibs__serve_counts_reload(&sv->counts, false);
        dibs__serve_say(&sv->log, DIBS_LOG_ERROR, "reload_failed", NULL,
                        "%s; settings, tokens, certificate and jobs stay as "
                        "they were",
                        err.message);
        dibsx_free(tokens);
    }
    dibsx_free(live.hosts);
    if (ready)
        dibs__serve_notify("READY=1");
}

/* Why the daemon is not ready yet; NULL: it is. */
static const char *missing_at_start(dibs__serve *sv)
{
    if (!dibs__serve_look_answered(&sv->look))
        return "the store has not answered yet";
    if (dibs__engine_phase_of(&sv->engine) == DIBS__ENGINE_LOADING)
        return "the jobs files are not loaded yet";
    return NULL;
}

/* The store need not be there: a client whose store is away needs its daemon most. */
static void become_ready(dibs__serve *sv)
{
    const char *missing = missing_at_start(sv);

    if (missing &&
        dibsx_now() < dibsx_after_ms(sv->started_at, sv->opts->start_wait_ms))
        return;
    atomic_store(&sv->phase, DIBS__SERVE_READY);
    dibs__serve_say(&sv->log, missing ? DIBS_LOG_WARN : DIBS_LOG_INFO, "ready",
                    DIBS__SERVE_FACTS({"store", dibs_url(sv->cl), 0}),
                    "ready%s%s", missing ? ", but " : "",
                    missing ? missing : "");
    dibs__serve_notify("READY=1\nSTATUS=serving");
}

bool dibs__serve_runs(dibs__serve *sv, dibs__http_server *http)
{
    const dibsx_nsec now = dibsx_now();
    const dibs__serve_vitals vitals = {
        .loop_ms = http ? dibs__http_lag(http, now) / DIBSX_MS : 0,
        .look_ms = dibs__serve_look_lag(&sv->look, now) / DIBSX_MS,
        .keeper_ms = dibs_keeper_lag_ms(sv->cl)};
    const char *stuck = dibs__vital_stuck(&vitals, sv->opts->timeout_ms);

    if (stuck)
        dibs__serve_say(&sv->log, DIBS_LOG_ERROR, "stuck",
                        DIBS__SERVE_FACTS({"part", stuck, 0}),
                        "the %s of the daemon stands still", stuck);
    return !stuck;
}

/* Until a signal asks for the end. */
static void live(dibs__serve *sv)
{
    const long watchdog_ms = dibs__serve_watchdog_ms();
    int number;

    do {
        bool starting = atomic_load(&sv->phase) == DIBS__SERVE_STARTING;

        number = await_signal(sv, starting      ? START_POLL_MS
                                  : watchdog_ms ? (int)watchdog_ms
                                                : -1);
        if (number == SIGHUP)
            reload(sv);
        if (starting && number != SIGTERM && number != SIGINT)
            become_ready(sv);
        /* Without it the service manager starts the daemon anew. */
        if (watchdog_ms && dibs__serve_runs(sv, sv->http))
            dibs__serve_notify("WATCHDOG=1");
    } while (number != SIGTERM && number != SIGINT);
}

/* From here on a second signal ends the process at once. */
static void let_signals_end(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* Answers go on for the delay, so that a balancer can look elsewhere meanwhile. */
static void drain_requests(dibs__serve *sv)
{
    const dibsx_nsec until =
        dibsx_after_ms(dibsx_now(), sv->opts->drain_delay_ms);
    int64_t left_ms;

    atomic_store(&sv->phase, DIBS__SERVE_DRAINING);
    dibs__serve_notify("STOPPING=1");
    dibs__serve_say(&sv->log, DIBS_LOG_INFO, "draining", NULL,
                    "no longer ready; requests under way have %lld ms",
                    (long long)(sv->opts->drain_delay_ms + sv->opts->drain_ms));
    dibs__engine_drain(&sv->engine);
    let_signals_end();
    while ((left_ms = dibsx_wait_ms(until, dibsx_now())) > 0)
        (void)poll(NULL, 0, (int)left_ms);
    sv->drain_until = dibsx_after_ms(dibsx_now(), sv->opts->drain_ms);
    /* A look at a store that hangs ends while leases are left and requests end, not
     * before or after. */
    dibs__life_tell(&sv->look.life);
    dibs__life_tell(&sv->board_look.life);
    /* Leases stay at the store, for a daemon that adopts them. */
    dibs__hub_drain(&sv->hub);
    dibs__tails_drain(&sv->tails);
    dibs__sessions_drain(&sv->sessions, sv->drain_until);
}

/* Requests have what is left of the drain, and waits that it has just ended a moment for
 * their answers. */
static int64_t grace_ms(const dibs__serve *sv)
{
    const int64_t left_ms = dibsx_wait_ms(sv->drain_until, dibsx_now());
    const int64_t least_ms =
        sv->opts->drain_ms < ANSWERS_MS ? sv->opts->drain_ms : ANSWERS_MS;

    return left_ms > least_ms ? left_ms : least_ms;
}

static void stop(dibs__serve *sv)
{
    hang_bell(&sv->bell, NULL);
    dibs__serve_listeners_unlink(&sv->listeners);
    dibs__http_stop(sv->http, grace_ms(sv));
    dibs__serve_look_stop(&sv->look);
    dibs__board_look_stop(&sv->board_look);
    dibs__serve_listeners_fini(&sv->listeners);
    dibs__serve_look_fini(&sv->look);
    dibs__serve_viewer_stop(&sv->viewer);
    dibs__serve_viewer_fini(&sv->viewer);
    dibs__catalog_fini(&sv->catalog);
    dibs__topics_fini(&sv->topics);
    dibs__bounds_fini(&sv->bounds);
    dibs__breakers_fini(&sv->breakers);
    dibs__sessions_fini(&sv->sessions);
    dibs__engine_fini(&sv->engine);
    dibs__seat_fini(&sv->seat);
    dibs__tails_fini(&sv->tails);
    dibs__board_look_fini(&sv->board_look);
    dibs__wrong_tokens_fini(&sv->wrong_tokens);
    if (sv->data != sv->cl)
        dibs_close(sv->data);
    dibs_close(sv->cl);
    dibs__hub_fini(&sv->hub);
    if (sv->signal_fd >= 0)
        close(sv->signal_fd);
    explicit_bzero(sv->first_token, sizeof(sv->first_token));
    dibs__serve_charts_fini(&sv->charts);
    dibs__told_fini(&sv->told);
    dibs__serve_history_fini(&sv->history);
    dibs__serve_counts_fini(&sv->counts);
    dibs__lock_sums_fini(&sv->lock_sums);
    dibs__noun_sums_fini(&sv->noun_sums);
    dibs__pulse_fini(&sv->pulse);
    dibs__serve_memo_fini(&sv->stats);
    dibs__serve_memo_fini(&sv->circles);
    dibs__serve_memo_fini(&sv->nodes);
    dibs__serve_health_fini(&sv->health);
    dibs__serve_gate_fini(&sv->gate);
}

dibs_status dibs__serve_run(const dibs__serve_opts *opts, dibs_error *err)
{
    dibs__serve *sv = dibsx_zalloc(sizeof(*sv));
    dibs_status rc;

    if (!sv)
        return dibsx_nomem(err, "the daemon");
    sv->opts = opts;
    atomic_init(&sv->address_max, opts->address_max);
    atomic_init(&sv->handshake_rate, opts->handshake_rate);
    atomic_init(&sv->token_rate, opts->token_rate);
    sv->signal_fd = -1;
    sv->started_at = dibsx_now();
    if (gethostname(sv->host, sizeof(sv->host) - 1) != 0)
        snprintf(sv->host, sizeof(sv->host), "localhost");
    dibs__serve_log_init(&sv->log, opts->json);
    dibs__serve_gate_init(&sv->gate);
    dibs__serve_health_init(&sv->health);
    dibs__serve_memo_init(&sv->circles);
    dibs__serve_memo_init(&sv->stats);
    dibs__serve_memo_init(&sv->nodes);
    dibs__serve_counts_init(&sv->counts);
    dibs__lock_sums_init(&sv->lock_sums, opts->metrics_classes);
    dibs__noun_sums_init(&sv->noun_sums);
    dibs__pulse_init(&sv->pulse);
    dibs__told_init(&sv->told);
    pthread_mutex_init(&sv->bell.mutex, NULL);
    rc = dibs__serve_history_init(&sv->history, err);
    if (rc == DIBS_OK)
        rc = dibs__serve_charts_init(&sv->charts, err);
    if (rc == DIBS_OK)
        rc = start(sv, err);
    if (rc == DIBS_OK) {
        live(sv);
        drain_requests(sv);
    }
    stop(sv);
    if (rc == DIBS_OK)
        dibs__serve_say(&sv->log, DIBS_LOG_INFO, "stopped", NULL, "stopped");
    dibs__serve_log_fini(&sv->log);
    pthread_mutex_destroy(&sv->bell.mutex);
    dibsx_free(sv);
    return rc;
}
