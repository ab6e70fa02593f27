/* page.c - answers with a part of a catalog, in the form of all lists. Threads of the
 * server. */
/* SPDX-License-Identifier: MIT */
#include "serve/page.h"
#include "base/text.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/list.h"
#include "serve/problem.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_MS = 5000 };

/* The part that a request asks for. */
typedef struct part {
    const char *prefix, *q, *state;
    dibs__serve_list list; /* its cursor and its limit */
} part;

/* False: it was refused. */
static bool read_part(dibs__http_exchange *ex, const char *states, part *pt)
{
    const char *after = dibs__serve_ask_word(ex, "after");
    int64_t limit = 100;

    *pt = (part){.prefix = dibs__serve_ask_word(ex, "prefix"),
                 .q = dibs__serve_ask_word(ex, "q"),
                 .state = dibs__serve_ask_word(ex, "state")};
    if (!dibs__serve_ask_query(ex, "limit", 1, DIBS__SERVE_LIMIT_MAX, &limit))
        return false;
    pt->list.limit = (size_t)limit;
    if (*pt->state && !dibsx_has_word(states, pt->state, strlen(pt->state))) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "There is no such ?state=%s%s",
                                 *states ? ": it is one of " : " here", states);
        return false;
    }
    if (*after && !dibs__serve_list_after(&pt->list, after)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "There is no such ?after: it is the text of "
                                 "\"next\" of the last answer");
        return false;
    }
    return true;
}

static bool fits_part(const part *pt, const dibs__catalog_row *row)
{
    return strncmp(row->name, pt->prefix, strlen(pt->prefix)) == 0 &&
           (!*pt->q || strstr(row->name, pt->q)) &&
           (!*pt->state || strcmp(row->state, pt->state) == 0);
}

static void put_row(dibsx_json *js, const dibs__catalog_row *row)
{
    dibsx_json_open(js, '{');
    dibsx_buf_puts(js->out, row->json);
    js->comma = true;
    dibsx_json_close(js, '}');
}

static void
answer_part(dibs__http_exchange *ex, const dibs__catalog_page *page, part *pt)
{
    dibsx_json *js = dibs__http_answer(ex, 200);
    const dibs__catalog_row *last = NULL;
    char cursor[DIBS__SERVE_CURSOR_MAX] = "";
    size_t total = 0, shown = 0;
    bool more = false;

    dibsx_json_key(js, "items");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < page->count; i++) {
        const dibs__catalog_row *row = &page->rows[i];

        if (!fits_part(pt, row))
            continue;
        total++;
        if (pt->list.begun && strcmp(row->name, pt->list.after_name) <= 0)
            continue;
        more = shown == pt->list.limit;
        if (more)
            continue;
        shown++;
        last = row;
        put_row(js, row);
    }
    dibsx_json_close(js, ']');
    if (more)
        dibs__serve_list_cursor(&pt->list,
                                &(dibs_lease_info){.name = last->name}, cursor);
    dibsx_json_pair_text(js, "next", more ? cursor : NULL);
    dibs__serve_link_next(ex, more ? cursor : NULL);
    dibsx_json_pair_uint(js, "total", total);
    dibsx_json_pair_text(js, "total_is", page->complete ? "exact" : "at_least");
    dibsx_json_pair_int(js, "as_of_ms",
                        (dibsx_now() - page->seen_at) / DIBSX_MS);
    dibsx_json_pair_bool(js, "complete", page->complete);
}

void dibs__serve_answer_page(dibs__http_exchange *ex,
                             const dibs__catalog_page *page, const char *states)
{
    part pt;

    if (read_part(ex, states, &pt))
        answer_part(ex, page, &pt);
}

void dibs__serve_answer_catalog(dibs__http_exchange *ex,
                                dibs__catalog_kind kind, const char *states)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__catalog_page *page;
    part pt;

    if (!read_part(ex, states, &pt))
        return;
    page = dibs__catalog_take(&sv->catalog, kind, WAIT_MS);
    if (!page)
        (void)dibs__serve_refuse(ex, 503, "unavail",
                                 "The store has not answered yet");
    else if (page->rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &page->err);
    else
        answer_part(ex, page, &pt);
    dibs__catalog_drop(page);
}

bool dibs__serve_known_etag(dibs__http_exchange *ex, const char *format, ...)
{
    char text[320], etag[sizeof(text) + 2];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    snprintf(etag, sizeof(etag), "\"%s\"", text);
    return dibs__http_not_modified(ex, etag);
}
