/* routes.c - the table of routes. openapi.json says the same to others. */
/* SPDX-License-Identifier: MIT */
#include "serve/routes.h"
#include "serve/token.h"
#include <dibs/state.h>

#define ANYBODY .need = DIBS__SERVE_NOBODY
#define READ    .need = DIBS__SERVE_READ
#define OPERATE .need = DIBS__SERVE_OPERATE
#define ADMIN   .need = DIBS__SERVE_ADMIN
#define QUICK   .quick = true

const dibs__http_route dibs__serve_routes[] = {
    {"GET", "/livez", dibs__serve_get_livez, QUICK, ANYBODY},
    {"GET", "/readyz", dibs__serve_get_readyz, QUICK, ANYBODY},
    {"GET", "/healthz", dibs__serve_get_healthz, ANYBODY},
    {"GET", "/version", dibs__serve_get_version, QUICK, ANYBODY},
    {"GET", "/openapi.json", dibs__serve_get_openapi, QUICK, ANYBODY},
    {"GET", "/problems", dibs__serve_get_problems, QUICK, ANYBODY},
    {"GET", "/", dibs__serve_get_page, QUICK, ANYBODY},
    {"GET", "/icon.svg", dibs__serve_get_icon, QUICK, ANYBODY},
    {"GET", "/css/{file}", dibs__serve_get_css, QUICK, ANYBODY},
    {"GET", "/js/{file}", dibs__serve_get_js, QUICK, ANYBODY},
    {"GET", "/js/pages/{file}", dibs__serve_get_js_page, QUICK, ANYBODY},
    {"GET", "/vendor/{file}", dibs__serve_get_vendor, QUICK, ANYBODY},
    {"GET", "/metrics", dibs__serve_get_metrics, READ},
    {"GET", "/v1/whoami", dibs__serve_get_whoami, QUICK, READ},
    {"GET", "/v1/tokens", dibs__serve_get_tokens, QUICK, ADMIN},
    {"GET", "/admin/locks/{name}", dibs__serve_get_admin_lock, READ},
    {"DELETE", "/admin/locks/{name}", dibs__serve_delete_admin_lock, ADMIN},
    {"GET", "/v1/overview", dibs__serve_get_overview, READ},
    {"GET", "/v1/feed", dibs__serve_get_feed, READ},
    {"GET", "/v1/series", dibs__serve_get_series, READ},
    {"GET", "/v1/locks", dibs__serve_get_locks, READ},
    {"POST", "/v1/locks/break-stale", dibs__serve_post_break_stale, ADMIN},
    {"GET", "/v1/locks/{name}", dibs__serve_get_lock, READ},
    {"GET", "/v1/locks/{name}/history", dibs__serve_get_history, READ},
    {"POST", "/v1/locks/{name}/yield", dibs__serve_post_yield, OPERATE},
    {"POST", "/v1/locks/{name}/break", dibs__serve_post_break, ADMIN},
    {"GET", "/v1/waits", dibs__serve_get_waits, READ},
    {"GET", "/v1/stats", dibs__serve_get_stats, READ},
    {"GET", "/v1/audit", dibs__serve_get_audit, READ},
    {"POST", "/v1/leases/{name}", dibs__serve_post_lease, OPERATE},
    {"POST", "/v1/leases/{name}/renew", dibs__serve_post_renew, OPERATE},
    {"POST", "/v1/leases/{name}/release", dibs__serve_post_release, OPERATE},
    {"POST", "/v1/leases/{name}/check", dibs__serve_post_check, OPERATE},
    {"GET", "/v1/state", dibs__serve_get_values, READ},
    {"GET", "/v1/state/{key}", dibs__serve_get_value, READ},
    {"PUT", "/v1/state/{key}", dibs__serve_put_value, OPERATE,
     .body_max = DIBS_VALUE_MAX},
    {"DELETE", "/v1/state/{key}", dibs__serve_delete_value, OPERATE},
    {"POST", "/v1/state/{key}/add", dibs__serve_post_value_add, OPERATE},
    {"GET", "/v1/events", dibs__serve_get_events, QUICK, READ},
    {"POST", "/v1/sessions", dibs__serve_post_sessions, OPERATE},
    {"GET", "/v1/sessions/{session}", dibs__serve_get_session, QUICK, OPERATE},
    {"DELETE", "/v1/sessions/{session}", dibs__serve_delete_session, QUICK,
     OPERATE},
    {"POST", "/v1/sessions/{session}/beat", dibs__serve_post_beat, QUICK,
     OPERATE},
    {"GET", "/v1/sessions/{session}/stream", dibs__serve_get_stream, QUICK,
     OPERATE},
    {"PUT", "/v1/sessions/{session}/leases/{id}", dibs__serve_put_lease, QUICK,
     OPERATE},
    {"GET", "/v1/sessions/{session}/leases/{id}", dibs__serve_get_lease, QUICK,
     OPERATE},
    {"DELETE", "/v1/sessions/{session}/leases/{id}", dibs__serve_delete_lease,
     QUICK, OPERATE},
};

const size_t dibs__serve_route_count =
    sizeof(dibs__serve_routes) / sizeof(dibs__serve_routes[0]);
