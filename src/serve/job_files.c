/* job_files.c - see job_files.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/job_files.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "config/option_value.h"
#include <stdio.h>
#include <string.h>

const char **dibs__serve_split(const char *text, char **texts, size_t *count)
{
    size_t room = 2;
    const char **out;
    char *at, *rest = NULL;

    *count = 0;
    *texts = dibsx_strdup(text ? text : "");
    for (at = *texts; at && *at; at++)
        room += *at == ',';
    out = dibsx_zalloc_n(room, sizeof(*out));
    if (!out || !*texts) {
        dibsx_free(*texts);
        dibsx_free(out);
        *texts = NULL;
        return NULL;
    }
    for (at = strtok_r(*texts, ",", &rest); at;
         at = strtok_r(NULL, ",", &rest)) {
        at += strspn(at, " ");
        if (*at)
            out[(*count)++] = at;
    }
    return out;
}

typedef struct note_context {
    const char *path;
    dibs__serve_note_fn *note;
    void *arg;
    char first[400];
} note_context;

static void hear_note(void *arg, bool warning, size_t line, size_t column,
                      const char *message)
{
    note_context *ctx = arg;
    char text[sizeof(ctx->first)];

    (void)snprintf(text, sizeof(text), "%.160s:%zu:%zu: %.200s", ctx->path,
                   line, column, message);
    if (!warning && !ctx->first[0])
        memcpy(ctx->first, text, sizeof(text));
    if (ctx->note)
        ctx->note(ctx->arg, warning, text);
}

static dibs_status read_file(const char *path, dibs__serve_note_fn *note,
                             void *arg, dibs__job_file *out, dibs_error *err)
{
    note_context ctx = {.path = path, .note = note, .arg = arg};
    const dibs__job_sink sink = {hear_note, &ctx};
    char *text = NULL;
    size_t len = 0;
    dibs_status rc =
        dibs__read_file(path, DIBS__JOB_FILE_MAX, &text, &len, err);

    if (rc == DIBS_OK)
        rc = dibs__job_file_read(text, len, path, &sink, out, err);
    else
        (void)dibsx_fail(err, DIBS_REFUSED, "%s", err->message);
    if (rc == DIBS_INVALID && ctx.first[0])
        (void)dibsx_fail(err, DIBS_REFUSED, "%s", ctx.first);
    dibsx_free(text);
    return rc == DIBS_OK ? DIBS_OK : err->status;
}

/* A node serves one board. */
static dibs_status
check_board(const dibs__serve_job_files *jf, size_t i, dibs_error *err)
{
    if (strcmp(jf->files[i].board, jf->board) != 0)
        return dibsx_fail(err, DIBS_REFUSED,
                          "%s is for the board %s, and this daemon for %s; "
                          "start a daemon for each board",
                          jf->paths[i], jf->files[i].board, jf->board);
    return DIBS_OK;
}

dibs_status
dibs__serve_job_files_read(const char *paths, const char *board,
                           dibs__serve_note_fn *note, void *arg,
                           dibs__serve_job_files *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    size_t count;

    *out = (dibs__serve_job_files){.count = 0};
    if (board && !dibs__job_name_ok(board))
        return dibsx_fail(err, DIBS_REFUSED, "'%.60s' is no name of a board",
                          board);
    out->paths = dibs__serve_split(paths, &out->texts, &count);
    out->files = dibsx_zalloc_n(count + 1, sizeof(*out->files));
    out->list = dibsx_zalloc_n(count + 1, sizeof(*out->list));
    if (!out->paths || !out->files || !out->list)
        return dibsx_nomem(err, "the list of jobs files");
    if (count > DIBS__SERVE_JOB_FILES_MAX)
        return dibsx_fail(err, DIBS_REFUSED,
                          "there are more than %d jobs files",
                          DIBS__SERVE_JOB_FILES_MAX);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        out->count = i + 1;
        out->list[i] = &out->files[i];
        rc = read_file(out->paths[i], note, arg, &out->files[i], err);
        if (i == 0)
            (void)snprintf(out->board, sizeof(out->board), "%s",
                           board ? board : out->files[0].board);
        if (rc == DIBS_OK)
            rc = check_board(out, i, err);
    }
    if (count == 0)
        (void)snprintf(out->board, sizeof(out->board), "%s",
                       board ? board : "main");
    return rc;
}

void dibs__serve_job_files_fini(dibs__serve_job_files *jf)
{
    for (size_t i = 0; i < jf->count; i++)
        dibs__job_file_fini(&jf->files[i]);
    dibsx_free(jf->list);
    dibsx_free(jf->files);
    dibsx_free(jf->paths);
    dibsx_free(jf->texts);
    *jf = (dibs__serve_job_files){.count = 0};
}
