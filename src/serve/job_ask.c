/* job_ask.c - see job_ask.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/job_ask.h"
#include "jobs/moment.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <stdio.h>
#include <string.h>

enum { LOOK_WAIT_MS = 5000 };

bool dibs__serve_ask_board(dibs__http_exchange *ex, dibs__board *out)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__http_query(ex, "board");
    dibs_error err = {0};

    if (dibs__board_init(out, sv->data, name ? name : sv->engine.board, &err) ==
        DIBS_OK)
        return true;
    (void)dibs__serve_fail(ex, &err);
    return false;
}

dibs__board_picture *dibs__serve_take_board(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    dibs__board_picture *picture = NULL;
    dibs__board board;

    if (!dibs__serve_ask_board(ex, &board))
        return NULL;
    if (strcmp(board.name, sv->engine.board) == 0)
        picture = dibs__board_look_take(&sv->board_look, LOOK_WAIT_MS);
    else
        picture = dibs__board_picture_make(&board, NULL);
    if (!picture) {
        (void)dibs__serve_refuse(ex, 503, "unavail",
                                 "The store has not answered yet");
        dibs__http_set(ex, "Retry-After", "1");
    } else if (picture->rc != DIBS_OK) {
        (void)dibs__serve_fail(ex, &picture->err);
        dibs__board_picture_drop(picture);
        picture = NULL;
    }
    return picture;
}

bool dibs__serve_ask_moment(dibs__http_exchange *ex, const char *what,
                            const char *text, int64_t *out_s)
{
    dibs__zone *utc = NULL;
    bool good = true;

    if (!text)
        return true;
    if (dibs__zone_open("UTC", &utc, NULL) != DIBS_OK ||
        !dibs__moment_parse(text, utc, out_s)) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "%s must be a time such as "
                                 "2026-11-15T02:00:00Z",
                                 what);
        good = false;
    }
    dibs__zone_free(utc);
    return good;
}

void dibs__serve_who(dibs__http_exchange *ex, char out[DIBS__RUN_NOTE_SIZE])
{
    (void)snprintf(out, DIBS__RUN_NOTE_SIZE, "%.90s via serve",
                   dibs__serve_caller_of(ex)->name);
}

void dibs__serve_changed(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);

    dibs__board_look_again(&sv->board_look);
}

void dibs__serve_answer_run(dibs__http_exchange *ex, const dibs__board *board,
                            const char *id)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const bool own = strcmp(board->name, sv->engine.board) == 0;
    char where[2 * DIBS__SERVE_BASE_MAX + 2 * DIBS__RUN_ID_SIZE];

    (void)snprintf(where, sizeof(where), "%s/v1/runs/%s%s%s", sv->base, id,
                   own ? "" : "?board=", own ? "" : board->name);
    dibs__http_set(ex, "Location", where);
    dibsx_json_pair_text(dibs__http_answer(ex, 202), "id", id);
}
