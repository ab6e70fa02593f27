/* settings.h - the one table of settings: options that a DIBS_* variable or a
 * configuration file can give.
 *
 * A row is a macro, for two tables have it: dibs__settings[], which the library
 * reads, and that of the command, which adds what help and command line need. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CONFIG_SETTINGS_H
#define DIBS_CONFIG_SETTINGS_H

#include "config/job_settings.h"
#include "config/option.h"
#include "config/serve_settings.h"

/* clang-format off */
#define DIBS__SETTING_URL                                                      \
    .library = true,                                                           \
    .name = "url", .env = "DIBS_URL", .key = "url", .type = DIBS__TEXT,        \
    .secret = true
#define DIBS__SETTING_PREFIX                                                   \
    .library = true,                                                           \
    .name = "prefix", .env = "DIBS_PREFIX", .key = "prefix",                   \
    .type = DIBS__TEXT
#define DIBS__SETTING_STORE_TIMEOUT                                            \
    .library = true,                                                           \
    .name = "store-timeout", .env = "DIBS_STORE_TIMEOUT",                      \
    .key = "store_timeout", .type = DIBS__DURATION,                            \
    .min = 1, .max = DIBS__MINUTES(10), .initial = "5s"
#define DIBS__SETTING_CONFIG                                                   \
    .library = true,                                                           \
    .name = "config", .env = "DIBS_CONFIG", .type = DIBS__TEXT
#define DIBS__SETTING_COLOR                                                    \
    .name = "color", .env = "DIBS_COLOR", .key = "color",                      \
    .type = DIBS__CHOICE, .choices = "auto|always|never", .initial = "auto"
#define DIBS__SETTING_LOG_LEVEL                                                \
    .name = "log-level", .env = "DIBS_LOG_LEVEL", .key = "log_level",          \
    .type = DIBS__CHOICE, .choices = "error|warn|info|debug|trace",            \
    .initial = "warn"
#define DIBS__SETTING_ENABLED                                                  \
    .name = "enabled", .env = "DIBS_ENABLED", .key = "enabled",                \
    .type = DIBS__FLAG, .initial = "yes"
#define DIBS__SETTING_WAIT                                                     \
    .name = "wait", .env = "DIBS_WAIT", .key = "wait",                         \
    .type = DIBS__DURATION, .max = DIBS__DAYS(366)
#define DIBS__SETTING_TTL                                                      \
    .library = true,                                                           \
    .name = "ttl", .env = "DIBS_TTL", .key = "ttl", .type = DIBS__DURATION,    \
    .min = 10, .max = DIBS__DAYS(1), .initial = "30s"
#define DIBS__SETTING_RENEW_EVERY                                              \
    .library = true,                                                           \
    .name = "renew-every", .env = "DIBS_RENEW_EVERY", .key = "renew_every",    \
    .type = DIBS__DURATION, .min = 10, .max = DIBS__DAYS(1) / 3
#define DIBS__SETTING_RETRIES                                                  \
    .name = "retries", .env = "DIBS_RETRIES", .key = "retries",                \
    .type = DIBS__INT, .max = 1000000, .initial = "0"
#define DIBS__SETTING_RETRY_DELAY                                              \
    .name = "retry-delay", .env = "DIBS_RETRY_DELAY", .key = "retry_delay",    \
    .type = DIBS__DURATION, .max = DIBS__DAYS(1), .initial = "100ms"
#define DIBS__SETTING_ON_UNAVAILABLE                                           \
    .name = "on-unavailable", .env = "DIBS_ON_UNAVAILABLE",                    \
    .key = "on_unavailable", .type = DIBS__CHOICE,                             \
    .choices = "fail|local|open", .initial = "fail"
#define DIBS__SETTING_DURABILITY                                               \
    .library = true,                                                           \
    .name = "durability", .env = "DIBS_DURABILITY", .key = "durability",       \
    .type = DIBS__REPLICAS
#define DIBS__SETTING_OWNER                                                    \
    .library = true,                                                           \
    .name = "owner", .env = "DIBS_OWNER", .key = "owner", .type = DIBS__TEXT
#define DIBS__SETTING_SHARE_STATS                                              \
    .library = true,                                                           \
    .name = "share-stats", .env = "DIBS_SHARE_STATS", .key = "share_stats",    \
    .type = DIBS__FLAG, .initial = "no"
#define DIBS__SETTING_SHARE_EVENTS                                             \
    .library = true,                                                           \
    .name = "share-events", .env = "DIBS_SHARE_EVENTS", .key = "share_events", \
    .type = DIBS__FLAG, .initial = "no"
#define DIBS__SETTING_KILL_AFTER                                               \
    .name = "kill-after", .env = "DIBS_KILL_AFTER", .key = "kill_after",       \
    .type = DIBS__DURATION, .max = DIBS__DAYS(1), .initial = "5s"
#define DIBS__SETTING_DATA_URL                                                 \
    .name = "data-url", .env = "DIBS_DATA_URL", .key = "data_url",             \
    .type = DIBS__TEXT, .secret = true
/* clang-format on */

/* In the order of dibs__settings[]. */
typedef enum dibs__setting {
    DIBS__URL,
    DIBS__PREFIX,
    DIBS__STORE_TIMEOUT,
    DIBS__CONFIG,
    DIBS__COLOR,
    DIBS__LOG_LEVEL,
    DIBS__ENABLED,
    DIBS__WAIT,
    DIBS__TTL,
    DIBS__RENEW_EVERY,
    DIBS__RETRIES,
    DIBS__RETRY_DELAY,
    DIBS__ON_UNAVAILABLE,
    DIBS__DURABILITY,
    DIBS__OWNER,
    DIBS__SHARE_STATS,
    DIBS__SHARE_EVENTS,
    DIBS__KILL_AFTER,
    DIBS__JOBS_SWEEP_PREFIX,
    DIBS__JOBS_RETRY_EVERY,
    DIBS__JOBS_TIMEOUT_EVERY,
    DIBS__JOBS_RESUME_EVERY,
    DIBS__JOBS_CLEANUP_EVERY,
    DIBS__SERVE_LISTEN,
    DIBS__SERVE_SOCKET_MODE,
    DIBS__SERVE_TLS_CERT,
    DIBS__SERVE_TLS_KEY,
    DIBS__SERVE_TLS_CLIENT_CA,
    DIBS__SERVE_METRICS_LISTEN,
    DIBS__SERVE_METRICS_OPEN,
    DIBS__SERVE_METRICS_CLASSES,
    DIBS__SERVE_TRUSTED_PROXIES,
    DIBS__SERVE_ADDRESS_MAX,
    DIBS__SERVE_HANDSHAKE_RATE,
    DIBS__SERVE_TOKEN_RATE,
    DIBS__SERVE_BASE_PATH,
    DIBS__SERVE_HOSTS,
    DIBS__SERVE_TOKENS,
    DIBS__SERVE_PLAINTEXT,
    DIBS__SERVE_LOG_FORMAT,
    DIBS__SERVE_ACCESS_LOG,
    DIBS__SERVE_CONNECTIONS_MAX,
    DIBS__SERVE_STREAMS_MAX,
    DIBS__SERVE_SESSIONS_MAX,
    DIBS__SERVE_SESSION_LEASES,
    DIBS__SERVE_READY_NEEDS_STORE,
    DIBS__SERVE_LOOK_EVERY,
    DIBS__SERVE_START_WAIT,
    DIBS__SERVE_DRAIN_DELAY,
    DIBS__SERVE_DRAIN_WITHIN,
    DIBS__SERVE_JOBS,
    DIBS__SERVE_ENGINE,
    DIBS__SERVE_BOARD,
    DIBS__SERVE_LABELS,
    DIBS__SERVE_SLOTS,
    DIBS__DATA_URL,
    DIBS__SETTING_COUNT
} dibs__setting;

extern const dibs__option dibs__settings[DIBS__SETTING_COUNT];
/* As the row of a dibs__option_set. */
const dibs__option *dibs__setting_at(size_t i);

#endif
