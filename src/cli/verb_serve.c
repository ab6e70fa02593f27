/* verb_serve.c - `dibs serve`: the settings of the daemon. Main thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "cli/option_values.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/verbs.h"
#include "config/settings.h"
#include "serve/serve.h"

#include <stdlib.h>
#include <string.h>

static dibs__serve_access_log read_access(const dibs__command *cmd)
{
    const char *text = dibs__opt_text(cmd, "access-log");

    if (strcmp(text, "none") == 0 || dibs__opt_flag(cmd, "quiet"))
        return DIBS__SERVE_LOG_NONE;
    return strcmp(text, "errors") == 0 ? DIBS__SERVE_LOG_ERRORS
                                       : DIBS__SERVE_LOG_ALL;
}

static dibs__serve_engine_use read_engine(const dibs__command *cmd)
{
    const char *text = dibs__opt_text(cmd, "engine");

    if (strcmp(text, "off") == 0)
        return DIBS__SERVE_ENGINE_OFF;
    return strcmp(text, "on") == 0 ? DIBS__SERVE_ENGINE_ON
                                   : DIBS__SERVE_ENGINE_AUTO;
}

/* 0: the default of the server. */
static unsigned read_streams(const dibs__command *cmd)
{
    const int64_t most = dibs__opt_int(cmd, "streams-max");

    return most > 0 ? (unsigned)most : 0;
}

/* As dibs__serve_reread_fn: what the flags said, and what variables and files say now. */
static dibs_status
reread(const void *arg, dibs__serve_live *out, dibs_error *err)
{
    dibs__command *fresh = dibs__command_again(arg);
    const char *hosts;
    dibs_status rc;

    if (!fresh)
        return dibsx_nomem(err, "the settings");
    rc = dibs__command_configure(fresh, err);
    hosts = dibs__opt_text(fresh, "hosts");
    if (rc == DIBS_OK && hosts && !(out->hosts = dibsx_strdup(hosts)))
        rc = dibsx_nomem(err, "the names of this server");
    out->address_max = (unsigned)dibs__opt_int(fresh, "address-connections");
    out->handshake_rate = (unsigned)dibs__opt_int(fresh, "handshake-rate");
    out->token_rate = (unsigned)dibs__opt_int(fresh, "token-rate");
    out->log_level = dibs__cli_log_level(fresh);
    dibs__command_fini(fresh);
    dibsx_free(fresh);
    return rc;
}

static int serve(const dibs__command *cmd)
{
    const dibs__serve_opts opts = {
        .reread = reread,
        .reread_arg = cmd,
        .url = dibs__cli_url(cmd),
        .data_url = dibs__opt_text(cmd, "data-url"),
        .prefix = dibs__opt_text(cmd, "prefix"),
        .timeout_ms = dibs__opt_ms(cmd, "store-timeout"),
        .share_stats = dibs__opt_flag(cmd, "share-stats"),
        .log_level = dibs__cli_log_level(cmd),
        .listen = dibs__opt_text(cmd, "listen"),
        .socket_mode =
            (unsigned)strtoul(dibs__opt_text(cmd, "socket-mode"), NULL, 8),
        .tls_cert = dibs__opt_text(cmd, "tls-cert"),
        .tls_key = dibs__opt_text(cmd, "tls-key"),
        .tls_client_ca = dibs__opt_text(cmd, "tls-client-ca"),
        .metrics_listen = dibs__opt_text(cmd, "metrics-listen"),
        .metrics_open = strcmp(dibs__opt_text(cmd, "metrics-open"), "yes") == 0,
        .metrics_classes = dibs__opt_text(cmd, "metrics-classes"),
        .trusted_proxies = dibs__opt_text(cmd, "trusted-proxies"),
        .address_max = (unsigned)dibs__opt_int(cmd, "address-connections"),
        .handshake_rate = (unsigned)dibs__opt_int(cmd, "handshake-rate"),
        .token_rate = (unsigned)dibs__opt_int(cmd, "token-rate"),
        .base_path = dibs__opt_text(cmd, "base-path"),
        .hosts = dibs__opt_text(cmd, "hosts"),
        .tokens = dibs__opt_text(cmd, "tokens"),
        .plaintext = strcmp(dibs__opt_text(cmd, "insecure-plaintext"),
                            "behind-proxy") == 0,
        .json = strcmp(dibs__opt_text(cmd, "log-format"), "json") == 0,
        .access = read_access(cmd),
        .connections_max = (unsigned)dibs__opt_int(cmd, "connections-max"),
        .streams_max = read_streams(cmd),
        .sessions_max = (unsigned)dibs__opt_int(cmd, "sessions-max"),
        .session_leases = (unsigned)dibs__opt_int(cmd, "session-leases"),
        .ready_needs_store =
            strcmp(dibs__opt_text(cmd, "ready-needs-store"), "yes") == 0,
        .look_every_ms = dibs__opt_ms(cmd, "look-every"),
        .start_wait_ms = dibs__opt_ms(cmd, "start-wait"),
        .drain_delay_ms = dibs__opt_ms(cmd, "drain-delay"),
        .drain_ms = dibs__opt_ms(cmd, "drain-within"),
        .jobs = dibs__opt_text(cmd, "jobs"),
        .engine = read_engine(cmd),
        .board = dibs__opt_text(cmd, "board"),
        .labels = dibs__opt_text(cmd, "labels"),
        .slots = (unsigned)dibs__opt_int(cmd, "slots"),
        .node_ttl_ms = dibs__opt_ms(cmd, "ttl"),
        .sweep_prefix = dibs__opt_text(cmd, "sweep-prefix"),
        .retry_every_ms = dibs__opt_ms(cmd, "retry-every"),
        .timeout_every_ms = dibs__opt_ms(cmd, "timeout-every"),
        .resume_every_ms = dibs__opt_ms(cmd, "resume-every"),
        .cleanup_every_ms = dibs__opt_ms(cmd, "cleanup-every"),
    };
    dibs_error err = {0};
    dibs_status rc;

    if (dibs__opt_flag(cmd, "check"))
        rc = dibs__serve_check(&opts, &err);
    else
        rc = dibs__serve_run(&opts, &err);
    return rc == DIBS_OK ? 0 : dibs__cli_fail(cmd, &err);
}

static const dibs__option options[] = {
    {DIBS__SETTING_SERVE_LISTEN, .metavar = "ADDRESSES",
     .help = "Where to listen, with commas between: 127.0.0.1:3427, "
             "[::1]:3427, unix:/run/dibs/serve.sock. An address that other "
             "machines reach needs --tokens, and --tls-cert or a proxy with "
             "TLS before it. Sockets of the service manager (LISTEN_FDS) "
             "replace all of it."},
    {DIBS__SETTING_SERVE_SOCKET_MODE, .metavar = "MODE",
     .help = "The mode of a socket in the file system. Root and the user of "
             "the daemon may do all there without a token; others whom the "
             "mode lets in have the role operate."},
    {DIBS__SETTING_SERVE_TLS_CERT, .metavar = "FILE",
     .otherwise = "without TLS",
     .help = "The certificate of the daemon with its chain, in PEM. SIGHUP "
             "reads it again; connections that are open go on."},
    {DIBS__SETTING_SERVE_TLS_KEY, .metavar = "FILE",
     .otherwise = "in the file of the certificate",
     .help = "The key of the certificate, in PEM and without a passphrase."},
    {DIBS__SETTING_SERVE_TLS_CLIENT_CA, .metavar = "FILE",
     .otherwise = "clients show no certificate",
     .help = "The authority of client certificates, in PEM. A client with such "
             "a certificate needs no token: its common name is the name of "
             "one."},
    {DIBS__SETTING_SERVE_METRICS_LISTEN, .metavar = "ADDRESS:PORT",
     .otherwise = "nowhere",
     .help = "Where to show /metrics, /livez and /readyz without a token."},
    {DIBS__SETTING_SERVE_METRICS_OPEN, .metavar = "YES",
     .help = "Whether --metrics-listen may be an address that other machines "
             "reach."},
    {DIBS__SETTING_SERVE_METRICS_CLASSES, .metavar = "PATTERNS",
     .otherwise = "numbers and ids of a name become *",
     .help = "Classes of lock names for the label lock of metrics, with commas "
             "between, such as tenant:*:sync. A name counts for the first that "
             "it matches; * stands for any characters."},
    {DIBS__SETTING_SERVE_TRUSTED_PROXIES, .metavar = "NETWORKS",
     .otherwise = "none",
     .help = "Proxies whose Forwarded and X-Forwarded-For headers count, such "
             "as 10.0.0.0/8, with commas between. Their clients are in the log "
             "and in the audit trail."},
    {DIBS__SETTING_SERVE_ADDRESS_MAX, .metavar = "N",
     .help = "How many connections one address may have; more get 429. "
             "Loopback may have half of --connections-max; trusted proxies and "
             "sockets in the file system have no such limit."},
    {DIBS__SETTING_SERVE_HANDSHAKE_RATE, .metavar = "N",
     .help = "How many handshakes of TLS one address may begin in a second, "
             "and five times as many at once; more are closed. 0 is without "
             "limit, as it is for trusted proxies."},
    {DIBS__SETTING_SERVE_TOKEN_RATE, .metavar = "N",
     .help = "How many requests a second a token may make, and five times as "
             "many at once; more get 429. 0 is without limit. Sessions have "
             "limits of their own."},
    {DIBS__SETTING_SERVE_BASE_PATH, .metavar = "PATH",
     .help = "The path below which a proxy shows the daemon. The proxy may "
             "leave it in place or strip it."},
    {DIBS__SETTING_SERVE_HOSTS, .metavar = "NAMES",
     .otherwise = "localhost and the address alone",
     .help = "Host names that requests may ask for, with commas between. All "
             "others get 421, so that no foreign name can be made to lead "
             "here."},
    {DIBS__SETTING_SERVE_TOKENS, .metavar = "FILE",
     .verbs = "serve,access add,"
              "access ls,access rm",
     .otherwise = "serve.tokens in ~/.local/state/dibs (root: /var/lib/dibs), "
                  "whatever the store is; the first start makes it",
     .help = "The file of access tokens, which belongs to its user alone "
             "(mode 0600). dibs access writes it. If a file that is named "
             "here is missing, dibs serve does not start (exit code 78)."},
    {DIBS__SETTING_SERVE_PLAINTEXT, .metavar = "WHEN",
     .help = "behind-proxy listens without TLS on an address that other "
             "machines reach, since a proxy with TLS is before it."},
    {DIBS__SETTING_SERVE_LOG_FORMAT, .metavar = "FORMAT",
     .help = "Log lines of key=value, or as one JSON object each."},
    {DIBS__SETTING_SERVE_ACCESS_LOG, .metavar = "WHICH",
     .help = "The requests that the log has lines about: all, those that "
             "ended in an error, or none."},
    {DIBS__SETTING_SERVE_CONNECTIONS_MAX, .metavar = "N",
     .help = "How many connections there may be; more wait to be accepted."},
    {DIBS__SETTING_SERVE_STREAMS_MAX, .metavar = "N",
     .otherwise = "half of --connections-max",
     .help = "How many of the connections may be streams; more get 503."},
    {DIBS__SETTING_SERVE_SESSIONS_MAX, .metavar = "N",
     .help = "How many sessions there may be; more get 429. A token may have "
             "256 of them."},
    {DIBS__SETTING_SERVE_SESSION_LEASES, .metavar = "N",
     .help = "How many leases and waits a session may have; more get 429."},
    {DIBS__SETTING_SERVE_READY_NEEDS_STORE, .metavar = "YES",
     .help = "Whether /readyz is 503 while the store does not answer. Clients "
             "whose store is away then find no daemon behind a load balancer "
             "either."},
    {DIBS__SETTING_SERVE_LOOK_EVERY, .metavar = "DUR",
     .help = "How often the daemon lists the locks of the store, while "
             "anybody asks for them. All lists come from this one look."},
    {DIBS__SETTING_SERVE_START_WAIT, .metavar = "DUR",
     .help = "How long to wait for the store, and until the jobs files are "
             "loaded, before the daemon says that it is ready without them. A "
             "database of the embedded store has to open in this time."},
    {DIBS__SETTING_SERVE_DRAIN_DELAY, .metavar = "DUR",
     .help = "How long to go on answering after SIGTERM, no longer ready: time "
             "for a load balancer to look elsewhere."},
    {DIBS__SETTING_SERVE_DRAIN_WITHIN, .metavar = "DUR",
     .help = "How long requests under way may take after that, and commands "
             "of jobs may go on."},
    {DIBS__SETTING_SERVE_JOBS, .metavar = "FILES", .otherwise = "none",
     .help = "Jobs files, with commas between. The daemon loads them, as dibs "
             "work does, and executes their jobs. SIGHUP reads them again."},
    {DIBS__SETTING_SERVE_ENGINE, .metavar = "WHEN",
     .help = "Whether the daemon ticks and executes jobs: auto with --jobs "
             "only, on also without, off never."},
    {DIBS__SETTING_SERVE_BOARD, .metavar = "BOARD",
     .otherwise = "that of the jobs files, else main",
     .help = "The board whose jobs the daemon executes, and shows where a "
             "request names none."},
    {DIBS__SETTING_SERVE_LABELS, .metavar = "LABELS", .otherwise = "none",
     .help = "Execute also what asks for one of these labels (runs_on), with "
             "commas between."},
    {DIBS__SETTING_SERVE_SLOTS, .metavar = "N",
     .help = "Run so many commands of jobs at a time."},
    {.name = "check",
     .help = "Check the settings and the token file, and stop."},
};

const dibs__option_rows dibs__options_serve =
    DIBS__OPTION_ROWS("serve", options);

const dibs__verb dibs__verb_serve = {
    .name = "serve",
    .summary = "run the HTTP daemon",
    .about =
        "Serves locks over HTTP with JSON, to programs in any language. GET "
        "/openapi.json describes all of it; GET / is a dashboard for browsers "
        "(docs/dashboard.md). With --jobs the daemon is also a "
        "node of the job engine, as dibs work is, with a lease of --ttl; "
        "several daemons share the work. A program makes a session and "
        "holds leases in it while it beats; docs/serve.md says for how long it "
        "may believe in them, and examples/sidecar has clients in shell, "
        "Python and Node. A daemon that is restarted loses none of these "
        "leases: the program takes them over at any daemon of the store.\n"
        "A request needs an access token: \"Authorization: Bearer TOKEN\". The "
        "probes, the files of the dashboard, /version, /openapi.json and "
        "/problems need none. The role of a token is read, operate or admin. "
        "dibs access makes tokens; SIGHUP reads the file again, and from the "
        "configuration files --hosts, --token-rate, --address-connections, "
        "--handshake-rate and --log-level. The first "
        "start without --tokens and without a file makes one admin token and "
        "says where it is; on a terminal it shows the address of the dashboard "
        "with it.\n"
        "GET /livez, /readyz and /healthz are for probes. The daemon tells a "
        "service manager when it is ready (Type=notify). SIGTERM drains: "
        "requests and commands under way end within --drain-within. A second "
        "SIGTERM ends "
        "it at once.\n",
    .examples = "On this machine:\n"
                "  dibs serve\n"
                "From another terminal:\n"
                "  curl http://127.0.0.1:3427/readyz\n"
                "  curl -H \"Authorization: Bearer $TOKEN\" "
                "http://127.0.0.1:3427/v1/locks/nightly\n"
                "With the jobs of two files:\n"
                "  dibs serve --jobs billing.yaml,reports.yaml\n"
                "Check the configuration before a restart:\n"
                "  dibs serve --check\n",
    .exits = "0 stopped by SIGINT or SIGTERM; with --check: in order\n"
             "75 the port is in use\n",
    .options = "share-stats,ttl",
    .run = serve,
};
