/* route_overview.c - what a first page shows: counts, the most wanted locks, what needs
 * attention, and the jobs that are due next; and the history of one lock. Threads of the server. */
/* SPDX-License-Identifier: MIT */
#include "serve/ask.h"
#include "serve/attention.h"
#include "serve/daemon.h"
#include "serve/job_row.h"
#include "serve/routes.h"
#include "serve/row.h"
#include <stdio.h>
#include <string.h>

enum { CONTENDED_MAX = 10, NEXT_MAX = 10, LOOK_WAIT_MS = 1000 };

void dibs__serve_get_history(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    int64_t limit = DIBS__SERVE_HOLDS_SHOWN;

    if (!name ||
        !dibs__serve_ask_query(ex, "limit", 1, DIBS__SERVE_HOLDS_SHOWN, &limit))
        return;
    dibs__serve_history_json(&sv->history, name, (size_t)limit,
                             dibs__http_answer(ex, 200));
}

static void put_counts(dibsx_json *js, const dibs__serve_picture *picture)
{
    uint64_t held = 0, waited = 0, waiters = 0, stale = 0, semaphores = 0;

    for (size_t i = 0; picture && i < picture->count; i++) {
        const dibs_lease_info *row = picture->rows[i];

        held += row->holder_count > 0;
        waited += row->waiter_count > 0;
        waiters += row->waiter_count;
        stale += dibs__serve_row_is_stale(row);
        semaphores += row->capacity > 0;
    }
    dibsx_json_key(js, "counts");
    dibsx_json_open(js, '{');
    dibsx_json_pair_uint(js, "names", picture ? picture->count : 0);
    dibsx_json_pair_uint(js, "held", held);
    dibsx_json_pair_uint(js, "wanted", waited);
    dibsx_json_pair_uint(js, "waiters", waiters);
    dibsx_json_pair_uint(js, "stale", stale);
    dibsx_json_pair_uint(js, "semaphores", semaphores);
    dibsx_json_close(js, '}');
}

/* The rows with most waiters, the most first: an insertion into a short list. */
static void put_contended(dibsx_json *js, const dibs__serve_picture *picture,
                          int64_t since_ms)
{
    const dibs_lease_info *top[CONTENDED_MAX + 1] = {NULL};
    size_t count = 0;

    for (size_t i = 0; picture && i < picture->count; i++) {
        const dibs_lease_info *row = picture->rows[i];
        size_t at = count;

        if (row->waiter_count == 0)
            continue;
        for (; at > 0 && top[at - 1]->waiter_count < row->waiter_count; at--)
            top[at] = top[at - 1];
        top[at] = row;
        count += count < CONTENDED_MAX;
    }
    dibsx_json_key(js, "contended");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++) {
        dibsx_json_open(js, '{');
        dibs__serve_row_json(js, top[i], since_ms, DIBS__SERVE_PARTIES_MAX);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

static void put_notice(dibsx_json *js, const char *kind, const char *name,
                       const char *detail)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "kind", kind);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_text(js, "detail", detail);
    dibsx_json_close(js, '}');
}

static void put_attention(dibsx_json *js, const dibs__serve_picture *picture)
{
    char detail[80], span[32];
    dibs__attention at = {.count = 0};

    if (picture)
        dibs__attention_find(&at, picture);
    dibsx_json_key(js, "attention");
    dibsx_json_open(js, '[');
    if (!picture || picture->rc != DIBS_OK)
        put_notice(js, "store", NULL,
                   picture ? picture->err.message
                           : "the store has not answered yet");
    for (size_t i = 0; i < at.count; i++) {
        const dibs__notice *notice = &at.notices[i];

        dibsx_duration_text(notice->waited_ms, span, sizeof(span));
        snprintf(detail, sizeof(detail), "a client has waited for %s", span);
        put_notice(js, notice->stale ? "stale" : "long-wait", notice->row->name,
                   notice->stale ? notice->stale : detail);
    }
    dibsx_json_close(js, ']');
    dibsx_json_pair_uint(js, "attention_total", at.total);
}

/* The jobs that are due next, the first first. */
static size_t find_next(const dibs__board_picture *board,
                        const dibs__board_row *top[NEXT_MAX + 1])
{
    size_t count = 0;

    for (size_t i = 0; i < board->count; i++) {
        const dibs__board_row *row = &board->rows[i];
        size_t at = count;

        if (!row->state.next_s || row->state.paused)
            continue;
        for (; at > 0 && top[at - 1]->state.next_s > row->state.next_s; at--)
            top[at] = top[at - 1];
        top[at] = row;
        count += count < NEXT_MAX;
    }
    return count;
}

/* A store without commits has no jobs. */
static void put_next(dibsx_json *js, dibs__serve *sv)
{
    dibs__board_picture *board =
        dibs__board_look_take(&sv->board_look, LOOK_WAIT_MS);
    const dibs__board_row *top[NEXT_MAX + 1] = {NULL};
    const size_t count =
        board && board->rc == DIBS_OK ? find_next(board, top) : 0;

    dibsx_json_key(js, "next");
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < count; i++) {
        const int64_t due_us = top[i]->state.next_s * 1000000;

        dibsx_json_open(js, '{');
        dibsx_json_pair_text(js, "job", top[i]->state.job);
        dibs__json_at(js, "at", due_us);
        dibsx_json_pair_int(js, "in_ms",
                            due_us > board->now_us
                                ? (due_us - board->now_us) / 1000
                                : 0);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
    dibs__board_picture_drop(board);
}

void dibs__serve_get_overview(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__serve_picture *picture =
        dibs__serve_look_take(&sv->look, LOOK_WAIT_MS);
    const int64_t since_ms =
        picture ? (dibsx_now() - picture->seen_at) / DIBSX_MS : 0;
    dibsx_json *js = dibs__http_answer(ex, 200);

    put_counts(js, picture);
    put_contended(js, picture, since_ms);
    put_attention(js, picture);
    put_next(js, sv);
    dibsx_json_key(js, "store");
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "url", dibs_url(sv->cl));
    dibsx_json_pair_bool(js, "up", picture && picture->rc == DIBS_OK);
    dibsx_json_pair_int(js, "look_us", picture ? picture->took_us : 0);
    dibsx_json_close(js, '}');
    dibsx_json_pair_int(js, "as_of_ms", since_ms);
    dibsx_json_pair_bool(js, "complete", picture && picture->complete);
    dibs__serve_picture_drop(picture);
}
