/* route_latches.c - latches: a list, one, counting down and closing again. Threads of
 * the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/noun_json.h"
#include "serve/page.h"
#include "serve/problem.h"
#include "serve/routes.h"

void dibs__serve_get_latches(dibs__http_exchange *ex)
{
    dibs__serve_answer_catalog(ex, DIBS__CATALOG_LATCHES, "open closed");
}

void dibs__serve_get_latch(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_latch_state state;
    dibs_error err = {0};
    dibsx_json *js;

    if (!name)
        return;
    if (dibs_latch_show(sv->data, name, &state, &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    if (dibs__serve_known_etag(ex, "%llu-%u",
                               (unsigned long long)state.generation,
                               state.left))
        return;
    js = dibs__http_answer(ex, 200);
    dibsx_json_pair_text(js, "name", name);
    dibs__noun_latch(js, &state);
}

/* An id counts once, so that the request can be sent again. */
void dibs__serve_post_count_down(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *id = NULL;
    const dibsx_json_node *body;
    int64_t count = 0, generation = 0;
    dibs_latch_state at;
    dibs_error err = {0};

    if (!name || !dibs__serve_ask_body(ex, "count id generation", &body) ||
        !dibs__serve_ask_int(ex, body, "count", 1, DIBS_LATCH_MAX, &count) ||
        !dibs__serve_ask_int(ex, body, "generation", 1, INT64_MAX,
                             &generation) ||
        !dibs__serve_ask_text(ex, body, "id", DIBS_NAME_MAX, &id))
        return;
    if (count == 0 || !id) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "the body must have \"count\", which the "
                                 "latch waits for, and \"id\", which counts "
                                 "once");
        return;
    }
    if (dibs_latch_count_down_in(sv->data, name, (uint32_t)count,
                                 (uint64_t)generation, id, &at,
                                 &err) != DIBS_OK) {
        (void)dibs__serve_fail(ex, &err);
        return;
    }
    dibsx_json_pair_uint(dibs__http_answer(ex, 200), "left", at.left);
}

void dibs__serve_post_latch_reset(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    const dibsx_json_node *body;
    dibs_error err = {0};
    dibs_status rc;

    if (!name || !dibs__serve_ask_change(ex, "reason", &body, &reason))
        return;
    if (!dibs__serve_audit_begin(ex, "latch-reset", name, reason))
        return;
    rc = dibs_latch_reset(sv->data, name, &err);
    dibs__serve_audit_end(ex, "latch-reset", name, reason, rc);
    if (rc == DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        (void)dibs__serve_fail(ex, &err);
}
