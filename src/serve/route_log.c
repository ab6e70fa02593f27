/* route_log.c - the level of the log, while the daemon runs: a trace of every event in
 * the life of its leases, for as long as it is needed. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <string.h>

enum { FOR_MS_MAX = 24 * 3600 * 1000 };

void dibs__serve_get_log_level(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    int64_t left_ms;
    const dibs_log_level level = dibs__serve_log_get(&sv->log, &left_ms);
    dibsx_json *js = dibs__http_answer(ex, 200);

    dibsx_json_pair_text(js, "level", dibs__serve_level_text(level));
    if (left_ms >= 0)
        dibsx_json_pair_int(js, "left_ms", left_ms);
}

/* The entry of the trail comes after it, and may be missing: a store that is away is what
 * a trace is for. */
void dibs__serve_post_log_level(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *reason, *text = NULL;
    const dibsx_json_node *body;
    dibs_log_level level = DIBS_LOG_ERROR;
    int64_t for_ms = -1;
    bool usual;

    if (!dibs__serve_ask_change(ex, "level for_ms reason", &body, &reason) ||
        !dibs__serve_ask_text(ex, body, "level", 16, &text) ||
        !dibs__serve_ask_int(ex, body, "for_ms", 1, FOR_MS_MAX, &for_ms))
        return;
    usual = text && strcmp(text, "usual") == 0;
    if (!text || (!usual && !dibs__serve_level_read(text, &level))) {
        (void)
            dibs__serve_refuse(ex, 400, "invalid",
                               "\"level\" is error, warn, info, debug, trace, "
                               "or usual for that of the settings");
        return;
    }
    dibs__serve_log_set(&sv->log, usual ? NULL : &level, for_ms);
    dibs__serve_audit_note(ex, "log-level", text, 0, reason, DIBS_OK);
    dibs__serve_get_log_level(ex);
}
