/* serve_settings.h - settings of `dibs serve`: the rows below "serve:". */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_SERVE_SETTINGS_H
#define DIBS_CONFIG_SERVE_SETTINGS_H

/* clang-format off */
#define DIBS__SETTING_SERVE_LISTEN                                             \
    .name = "listen", .env = "DIBS_SERVE_LISTEN", .key = "serve.listen",       \
    .type = DIBS__TEXT, .initial = "127.0.0.1:3427"
#define DIBS__SETTING_SERVE_SOCKET_MODE                                        \
    .name = "socket-mode", .env = "DIBS_SERVE_SOCKET_MODE",                    \
    .key = "serve.socket_mode", .type = DIBS__CHOICE,                          \
    .choices = "0600|0660|0666", .initial = "0600"
#define DIBS__SETTING_SERVE_TLS_CERT                                           \
    .name = "tls-cert", .env = "DIBS_SERVE_TLS_CERT",                          \
    .key = "serve.tls_cert", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_TLS_KEY                                            \
    .name = "tls-key", .env = "DIBS_SERVE_TLS_KEY",                            \
    .key = "serve.tls_key", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_TLS_CLIENT_CA                                      \
    .name = "tls-client-ca", .env = "DIBS_SERVE_TLS_CLIENT_CA",                \
    .key = "serve.tls_client_ca", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_METRICS_LISTEN                                     \
    .name = "metrics-listen", .env = "DIBS_SERVE_METRICS_LISTEN",              \
    .key = "serve.metrics_listen", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_METRICS_OPEN                                       \
    .name = "metrics-open", .env = "DIBS_SERVE_METRICS_OPEN",                  \
    .key = "serve.metrics_open", .type = DIBS__CHOICE, .choices = "no|yes",    \
    .initial = "no"
#define DIBS__SETTING_SERVE_METRICS_CLASSES                                    \
    .name = "metrics-classes", .env = "DIBS_SERVE_METRICS_CLASSES",            \
    .key = "serve.metrics_classes", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_TRUSTED_PROXIES                                    \
    .name = "trusted-proxies", .env = "DIBS_SERVE_TRUSTED_PROXIES",            \
    .key = "serve.trusted_proxies", .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_ADDRESS_MAX                                        \
    .name = "address-connections", .env = "DIBS_SERVE_ADDRESS_CONNECTIONS",    \
    .key = "serve.address_connections", .type = DIBS__INT, .min = 1,           \
    .max = 65536, .initial = "64"
#define DIBS__SETTING_SERVE_HANDSHAKE_RATE                                     \
    .name = "handshake-rate", .env = "DIBS_SERVE_HANDSHAKE_RATE",              \
    .key = "serve.handshake_rate", .type = DIBS__INT, .min = 0,                \
    .max = 65536, .initial = "50"
#define DIBS__SETTING_SERVE_TOKEN_RATE                                         \
    .name = "token-rate", .env = "DIBS_SERVE_TOKEN_RATE",                      \
    .key = "serve.token_rate", .type = DIBS__INT, .min = 0, .max = 1000000,    \
    .initial = "200"
#define DIBS__SETTING_SERVE_BASE_PATH                                          \
    .name = "base-path", .env = "DIBS_SERVE_BASE_PATH",                        \
    .key = "serve.base_path", .type = DIBS__TEXT, .initial = "/"
#define DIBS__SETTING_SERVE_HOSTS                                              \
    .name = "hosts", .env = "DIBS_SERVE_HOSTS", .key = "serve.hosts",          \
    .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_TOKENS                                             \
    .name = "tokens", .env = "DIBS_SERVE_TOKENS", .key = "serve.tokens",       \
    .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_PLAINTEXT                                          \
    .name = "insecure-plaintext", .env = "DIBS_SERVE_INSECURE_PLAINTEXT",      \
    .key = "serve.insecure_plaintext", .type = DIBS__CHOICE,                   \
    .choices = "no|behind-proxy", .initial = "no"
#define DIBS__SETTING_SERVE_LOG_FORMAT                                         \
    .name = "log-format", .env = "DIBS_SERVE_LOG_FORMAT",                      \
    .key = "serve.log_format", .type = DIBS__CHOICE, .choices = "text|json",   \
    .initial = "text"
#define DIBS__SETTING_SERVE_ACCESS_LOG                                         \
    .name = "access-log", .env = "DIBS_SERVE_ACCESS_LOG",                      \
    .key = "serve.access_log", .type = DIBS__CHOICE,                           \
    .choices = "all|errors|none", .initial = "all"
#define DIBS__SETTING_SERVE_CONNECTIONS_MAX                                    \
    .name = "connections-max", .env = "DIBS_SERVE_CONNECTIONS_MAX",            \
    .key = "serve.connections_max", .type = DIBS__INT, .min = 8,               \
    .max = 65536, .initial = "2048"
#define DIBS__SETTING_SERVE_STREAMS_MAX                                        \
    .name = "streams-max", .env = "DIBS_SERVE_STREAMS_MAX",                    \
    .key = "serve.streams_max", .type = DIBS__INT, .min = 1, .max = 65536
#define DIBS__SETTING_SERVE_SESSIONS_MAX                                       \
    .name = "sessions-max", .env = "DIBS_SERVE_SESSIONS_MAX",                  \
    .key = "serve.sessions_max", .type = DIBS__INT, .min = 1,                  \
    .max = 65536, .initial = "4096"
#define DIBS__SETTING_SERVE_SESSION_LEASES                                     \
    .name = "session-leases", .env = "DIBS_SERVE_SESSION_LEASES",              \
    .key = "serve.session_leases", .type = DIBS__INT, .min = 1,                \
    .max = 1024, .initial = "64"
#define DIBS__SETTING_SERVE_READY_NEEDS_STORE                                  \
    .name = "ready-needs-store", .env = "DIBS_SERVE_READY_NEEDS_STORE",        \
    .key = "serve.ready_needs_store", .type = DIBS__CHOICE,                    \
    .choices = "no|yes", .initial = "no"
#define DIBS__SETTING_SERVE_LOOK_EVERY                                         \
    .name = "look-every", .env = "DIBS_SERVE_LOOK_EVERY",                      \
    .key = "serve.look_every", .type = DIBS__DURATION, .min = 50,              \
    .max = DIBS__MINUTES(10), .initial = "1s"
#define DIBS__SETTING_SERVE_START_WAIT                                         \
    .name = "start-wait", .env = "DIBS_SERVE_START_WAIT",                      \
    .key = "serve.start_wait", .type = DIBS__DURATION,                         \
    .max = DIBS__MINUTES(60), .initial = "10s"
#define DIBS__SETTING_SERVE_DRAIN_DELAY                                        \
    .name = "drain-delay", .env = "DIBS_SERVE_DRAIN_DELAY",                    \
    .key = "serve.drain_delay", .type = DIBS__DURATION,                        \
    .max = DIBS__MINUTES(10), .initial = "0s"
#define DIBS__SETTING_SERVE_DRAIN_WITHIN                                       \
    .name = "drain-within", .env = "DIBS_SERVE_DRAIN_WITHIN",                  \
    .key = "serve.drain_within", .type = DIBS__DURATION,                       \
    .max = DIBS__MINUTES(10), .initial = "10s"
#define DIBS__SETTING_SERVE_JOBS                                               \
    .name = "jobs", .env = "DIBS_SERVE_JOBS", .key = "serve.jobs",             \
    .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_ENGINE                                             \
    .name = "engine", .env = "DIBS_SERVE_ENGINE", .key = "serve.engine",       \
    .type = DIBS__CHOICE, .choices = "auto|on|off", .initial = "auto"
#define DIBS__SETTING_SERVE_BOARD                                              \
    .name = "board", .env = "DIBS_SERVE_BOARD", .key = "serve.board",          \
    .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_LABELS                                             \
    .name = "labels", .env = "DIBS_SERVE_LABELS", .key = "serve.labels",       \
    .type = DIBS__TEXT
#define DIBS__SETTING_SERVE_SLOTS                                              \
    .name = "slots", .env = "DIBS_SERVE_SLOTS", .key = "serve.slots",          \
    .type = DIBS__INT, .min = 1, .max = 256, .initial = "4"
/* clang-format on */

#endif
