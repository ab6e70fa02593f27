/* route_limits.c - rate limits: a list, and taking tokens. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <dibs/limit.h>

#define NUMBER_MAX (INT64_C(1) << 40)

void dibs__serve_get_limits(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_LIMITS, "");
}

/* False: it was refused. */
static bool read_limit(dibs__http_exchange *ex, const dibsx_json_node *body,
                       dibs_limit_opts *opts, int64_t *n)
{
    if (!dibs__serve_ask_int(ex, body, "count", 1, NUMBER_MAX, &opts->count) ||
        !dibs__serve_ask_int(ex, body, "period_ms", 1, INT64_C(31622400000),
                             &opts->period_ms) ||
        !dibs__serve_ask_int(ex, body, "burst", 1, NUMBER_MAX, &opts->burst) ||
        !dibs__serve_ask_int(ex, body, "n", 1, NUMBER_MAX, n))
        return false;
    if (opts->count > 0)
        return true;
    dibsx_json_pair_text(dibs__serve_refuse(ex, 400, "invalid",
                                            "count is missing: how many "
                                            "tokens there are in a period"),
                         "pointer", "/count");
    return false;
}

static void answer_taken(dibs__http_exchange *ex, dibs_limit *limit,
                         dibs_status rc, const dibs_error *err)
{
    dibsx_json *js;

    if (rc == DIBS_OK) {
        js = dibs__http_answer(ex, 200);
        dibsx_json_pair_int(js, "remaining", dibs_limit_remaining(limit));
        return;
    }
    js = dibs__serve_fail(ex, err);
    if (rc == DIBS_BUSY)
        dibsx_json_pair_int(js, "retry_ms", dibs_limit_retry_ms(limit));
}

/* Does not wait: a client waits for retry_ms itself. */
void dibs__serve_post_take(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_limit_opts opts = {.size = sizeof(opts)};
    const dibsx_json_node *body;
    dibs_limit *limit = NULL;
    dibs_error err = {0};
    int64_t n = 1;

    if (!name || !dibs__serve_ask_body(ex, "n count period_ms burst", &body) ||
        !read_limit(ex, body, &opts, &n))
        return;
    if (dibs_limit_new(sv->data, name, &opts, &limit, &err) != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
    else
        answer_taken(ex, limit, dibs_limit_take(limit, n, &err), &err);
    dibs_limit_free(limit);
}
