/* route_breakers.c - circuit breakers: a list, one, reports of calls, and setting them by
 * hand. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"

#define DAY_MS INT64_C(86400000)

void dibs__serve_get_breakers(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_BREAKERS,
                               "closed open half-open forced");
}

static void answer_breaker(dibs__http_exchange *ex, const char *name,
                           const dibs_breaker_info *info)
{
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "name", name);
    dibs__noun_breaker(js, info);
}

/* One that nobody has used is closed. */
void dibs__serve_get_breaker(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_breaker *breaker = NULL;
    dibs_breaker_info info;
    dibs_error err = {0};
    dibs_status rc;

    if (!name)
        return;
    rc = dibs_breaker_new(sv->data, name, DIBS_BREAKER_OPTS(), &breaker, &err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_get(breaker, &info, &err);
    if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    else if (!dibs__serve_known_etag(ex, "v%llu-%s-%lld-%lld-%lld",
                                     (unsigned long long)info.version,
                                     dibs_breaker_state_name(info.state),
                                     (long long)info.good, (long long)info.bad,
                                     (long long)info.slow))
        answer_breaker(ex, name, &info);
    dibs_breaker_free(breaker);
}

/* False: it was refused. */
static bool read_options(dibs__http_exchange *ex, const dibsx_json_node *body,
                         dibs_breaker_opts *opts)
{
    return dibs__serve_ask_int(ex, body, "threshold", 1, 1000000,
                               &opts->threshold) &&
           dibs__serve_ask_int(ex, body, "rate_percent", 1, 100,
                               &opts->rate_percent) &&
           dibs__serve_ask_int(ex, body, "min_calls", 1, 1000000,
                               &opts->min_calls) &&
           dibs__serve_ask_int(ex, body, "sampling_ms", 1, DAY_MS,
                               &opts->sampling_ms) &&
           dibs__serve_ask_int(ex, body, "recovery_ms", 1, DAY_MS,
                               &opts->recovery_ms) &&
           dibs__serve_ask_int(ex, body, "slow_ms", 1, DAY_MS,
                               &opts->slow_ms) &&
           dibs__serve_ask_int(ex, body, "slow_percent", 1, 100,
                               &opts->slow_percent);
}

/* The call has been made: it counts if the breaker lets calls pass. */
static void report_call(dibs__http_exchange *ex, dibs_breaker *breaker,
                        const char *name, bool good, int64_t took_ms)
{
    dibs_breaker_info info;
    dibs_error err = {0};
    dibs_pass pass;
    dibs_status rc = dibs_breaker_enter(breaker, &pass, &err);

    if (rc == DIBS_OK) {
        dibs_breaker_leave_after(breaker, &pass, good, took_ms);
        rc = dibs_breaker_get(breaker, &info, &err);
    }
    if (rc == DIBS_OK) {
        answer_breaker(ex, name, &info);
    } else {
        const int64_t retry_ms = dibs_breaker_retry_ms(breaker);
        dibsx_json *js = dibs__serve_fail(ex, &err);

        if (rc == DIBS_BUSY && retry_ms >= 0)
            dibsx_json_pair_int(js, "retry_ms", retry_ms);
    }
}

void dibs__serve_post_report(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_breaker_opts opts = {.size = sizeof(opts)};
    dibs__serve_breaker *at = NULL;
    const dibsx_json_node *body;
    int64_t took_ms = 0;
    bool good = true;
    dibs_error err = {0};

    if (!name ||
        !dibs__serve_ask_body(ex,
                              "good took_ms threshold rate_percent min_calls "
                              "sampling_ms recovery_ms slow_ms slow_percent",
                              &body) ||
        !dibs__serve_ask_bool(ex, body, "good", &good) ||
        !dibs__serve_ask_int(ex, body, "took_ms", 0, DAY_MS, &took_ms) ||
        !read_options(ex, body, &opts))
        return;
    if (!dibsx_json_get(body, "good")) {
        dibsx_json_pair_text(dibs__serve_refuse(ex, 400, "invalid",
                                                "good is missing: whether the "
                                                "call went well"),
                             "pointer", "/good");
        return;
    }
    if (dibs__breakers_take(&sv->breakers, name, &opts, &at, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    dibs__catalog_learn(&sv->catalog, DIBS__CATALOG_BREAKERS, name);
    report_call(ex, at->breaker, name, good, took_ms);
    dibs__breakers_give(&sv->breakers, at);
}

/* Sets the state for all clients. */
static void
set_state(dibs__http_exchange *ex, const char *action, dibs_breaker_state state)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    dibs_breaker *breaker = NULL;
    const dibsx_json_node *body;
    dibs_error err = {0};
    dibs_status rc;

    if (!name || !dibs__serve_ask_change(ex, "reason", &body, &reason))
        return;
    if (!dibs__serve_audit_begin(ex, action, name, reason))
        return;
    rc = dibs_breaker_new(sv->data, name, DIBS_BREAKER_OPTS(), &breaker, &err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_force(breaker, state, &err);
    dibs_breaker_free(breaker);
    dibs__serve_audit_end(ex, action, name, reason, rc);
    if (rc == DIBS_OK) {
        dibs__catalog_learn(&sv->catalog, DIBS__CATALOG_BREAKERS, name);
        dibs__http_answer_none(ex, 204);
    } else {
        (void)dibs__serve_fail(ex, &err);
    }
}

/* Open until somebody resets it. */
void dibs__serve_post_trip(dibs__http_exchange *ex)
{
    set_state(ex, "breaker-trip", DIBS_BREAKER_FORCED);
}

void dibs__serve_post_breaker_reset(dibs__http_exchange *ex)
{
    set_state(ex, "breaker-reset", DIBS_BREAKER_CLOSED);
}
