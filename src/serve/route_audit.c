/* route_audit.c - the trail of revocations, newest first. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <string.h>

enum { LIMIT_MAX = 1000 };

/* The latest entries that fit: a ring of their JSON objects. */
typedef struct trail {
    const char *who, *action, *name;
    dibsx_buf *items;
    size_t limit;
    size_t count; /* that fitted, also those that were pushed out */
} trail;

static bool is_wanted(const char *wanted, const char *text)
{
    return !wanted || strcmp(wanted, text) == 0;
}

static void put_entry(dibsx_buf *out, const dibs_trail_entry *entry,
                      const dibs__change_cause *cause)
{
    char at[40];
    dibsx_json js;

    dibsx_wall_text(entry->wall_us, at, sizeof(at));
    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_uint(&js, "position", entry->position);
    dibsx_json_pair_text(&js, "at", at);
    dibsx_json_pair_text(&js, "action", entry->action);
    dibsx_json_pair_text(&js, "name", entry->name);
    dibsx_json_pair_uint(&js, "fence", entry->fence);
    dibsx_json_pair_text(&js, "who", cause->who);
    dibsx_json_pair_text(&js, "from", cause->from);
    dibsx_json_pair_text(&js, "request", cause->request);
    dibsx_json_pair_text(&js, "reason", cause->reason);
    dibsx_json_pair_text(&js, "role", cause->role);
    dibsx_json_pair_text(&js, "route", cause->route);
    dibsx_json_pair_text(&js, "result", cause->result);
    dibsx_json_pair_text(&js, "by", entry->by);
    dibsx_json_pair_text(&js, "holder", entry->holder);
    dibsx_json_close(&js, '}');
}

static bool add_entry(const dibs_trail_entry *entry, void *arg)
{
    trail *tr = arg;
    char text[DIBS__CHANGE_CAUSE_MAX];
    dibs__change_cause cause;
    dibsx_buf *item;

    snprintf(text, sizeof(text), "%s", entry->reason);
    dibs__change_read(text, &cause);
    if (!is_wanted(tr->who, cause.who) ||
        !is_wanted(tr->action, entry->action) ||
        !is_wanted(tr->name, entry->name))
        return true;
    item = &tr->items[tr->count++ % tr->limit];
    dibsx_buf_reset(item);
    put_entry(item, entry, &cause);
    return true;
}

static void answer_trail(dibs__http_exchange *ex, const trail *tr)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    const size_t shown = tr->count < tr->limit ? tr->count : tr->limit;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < shown; i++) {
        const dibsx_buf *item = &tr->items[(tr->count - 1 - i) % tr->limit];

        dibsx_buf_printf(js->out, "%s%s", i ? "," : "", dibsx_buf_text(item));
    }
    js->comma = false;
    dibsx_json_close(js, ']');
    dibsx_json_pair_uint(js, "total", tr->count);
}

void dibs__serve_get_audit(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    trail tr = {.who = dibs__http_query(ex, "who"),
                .action = dibs__http_query(ex, "action"),
                .name = dibs__http_query(ex, "name")};
    int64_t limit = 100, since = 0;
    dibs_error err = {0};

    if (!dibs__serve_ask_query(ex, "limit", 1, LIMIT_MAX, &limit) ||
        !dibs__serve_ask_query(ex, "since", 0, INT64_MAX, &since))
        return;
    tr.limit = (size_t)limit;
    tr.items = dibsx_zalloc_n(tr.limit, sizeof(*tr.items));
    if (!tr.items) {
        dibs__http_refuse(ex, 503, "There is no memory for the trail");
        return;
    }
    for (size_t i = 0; i < tr.limit; i++)
        dibsx_buf_init(&tr.items[i], 8192);
    if (dibs_trail_read(sv->data, (uint64_t)since, add_entry, &tr, &err) ==
        DIBS_OK)
        answer_trail(ex, &tr);
    else
        (void)dibs__serve_fail(ex, &err);
    for (size_t i = 0; i < tr.limit; i++)
        dibsx_buf_fini(&tr.items[i]);
    dibsx_free(tr.items);
}
