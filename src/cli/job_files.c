/* job_files.c - jobs files of the command line: read, checked, and reported on. */
/* SPDX-License-Identifier: MIT */
#include "cli/job_files.h"

#include "base/alloc.h"
#include "cli/options.h"
#include "cli/text_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For lack of memory a note is lost, but not its mistake. */
static void keep_note(void *arg, bool warning, size_t line, size_t column,
                      const char *message)
{
    dibs__read_jobs *read = arg;
    dibs__job_note *notes = dibsx_realloc_n(read->notes, read->note_count + 1,
                                            sizeof(*read->notes));
    char *copy = dibsx_strdup(message);

    if (notes)
        read->notes = notes;
    if (notes && copy)
        notes[read->note_count++] =
            (dibs__job_note){warning, line, column, copy};
    else
        dibsx_free(copy);
}

static bool is_after(const dibs__job_note *one, const dibs__job_note *two)
{
    return one->line > two->line ||
           (one->line == two->line && one->column > two->column);
}

/* In the order of the file. There are few, and notes of one place keep their order. */
static void sort_notes(dibs__read_jobs *read)
{
    for (size_t i = 1; i < read->note_count; i++) {
        const dibs__job_note note = read->notes[i];
        size_t at = i;

        for (; at > 0 && is_after(&read->notes[at - 1], &note); at--)
            read->notes[at] = read->notes[at - 1];
        read->notes[at] = note;
    }
}

static int
read_file(const dibs__command *cmd, const char *path, dibs__read_jobs *out)
{
    const dibs__job_sink sink = {keep_note, out};
    dibs_error err = {0};
    dibsx_buf text;
    dibs_status rc;
    int code;

    out->path = dibs__text_name(path);
    dibsx_buf_init(&text, DIBS__JOB_FILE_MAX);
    code = dibs__text_read(cmd, path, &text);
    if (!code) {
        rc = dibs__job_file_read(dibsx_buf_text(&text), text.len, path, &sink,
                                 &out->file, &err);
        out->mistakes = out->file.mistakes;
        sort_notes(out);
        if (rc != DIBS_OK && !(rc == DIBS_INVALID && out->mistakes > 0))
            code = dibs__cli_fail(cmd, &err);
    }
    dibsx_buf_fini(&text);
    return code;
}

/* ---- names that are in two files */

/* A job, a set or a lock of a board. */
typedef struct claim {
    const char *board;
    const char *name;
    dibs__read_jobs *file;
} claim;

static int compare_claims(const void *a, const void *b)
{
    const claim *one = a, *two = b;
    int order = strcmp(one->board, two->board);

    if (order == 0)
        order = strcmp(one->name, two->name);
    if (order == 0)
        order = one->file < two->file ? -1 : one->file > two->file;
    return order;
}

/* Reports names that two files have; of locks it is a warning, and those within one
 * file are known already. */
static void compare_files(claim *claims, size_t count, const char *noun)
{
    bool lock = strcmp(noun, "lock") == 0;
    char message[400];

    qsort(claims, count, sizeof(*claims), compare_claims);
    for (size_t i = 1; i < count; i++) {
        const claim *one = &claims[i - 1], *two = &claims[i];

        if (strcmp(one->board, two->board) != 0 ||
            strcmp(one->name, two->name) != 0 ||
            (lock && one->file == two->file))
            continue;
        (void)snprintf(message, sizeof(message),
                       "the %s '%.100s' is in %.200s too; %s", noun, two->name,
                       one->file->path,
                       lock ? "only one of these jobs runs at a time"
                            : "rename one of them");
        if (lock || ++two->file->mistakes <= DIBS__JOB_NOTES_MAX)
            keep_note(two->file, lock, 0, 0, message);
    }
}

static size_t claim_jobs(dibs__read_jobs *files, size_t count, claim *out)
{
    size_t claims = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < files[i].file.count; j++)
            out[claims++] =
                (claim){files[i].file.board, files[i].file.entries[j].job->name,
                        &files[i]};
    return claims;
}

static size_t claim_locks(dibs__read_jobs *files, size_t count, claim *out)
{
    size_t claims = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < files[i].file.count; j++) {
            const char *key = files[i].file.entries[j].job->lock.key;

            if (key)
                out[claims++] = (claim){files[i].file.board, key, &files[i]};
        }
    }
    return claims;
}

static int check_names(dibs__read_jobs *files, size_t count)
{
    size_t total = count;
    claim *claims;

    for (size_t i = 0; i < count; i++)
        total += files[i].file.count;
    claims = dibsx_zalloc_n(total + 1, sizeof(*claims));
    if (!claims)
        return dibs__cli_nomem("the list of jobs");
    for (size_t i = 0; i < count; i++)
        claims[i] = (claim){files[i].file.board, files[i].file.set, &files[i]};
    compare_files(claims, count, "set");
    compare_files(claims, claim_jobs(files, count, claims), "job");
    compare_files(claims, claim_locks(files, count, claims), "lock");
    dibsx_free(claims);
    return 0;
}

/* ---- all files */

int dibs__jobs_open(const dibs__command *cmd, dibs__read_jobs **out,
                    size_t *count)
{
    char *const *paths = dibs__operands(cmd);
    size_t total = (size_t)dibs__operand_count(cmd);
    int code = 0;

    *count = 0;
    *out = dibsx_zalloc_n(total + 1, sizeof(**out));
    if (!*out)
        return dibs__cli_nomem("the list of files");
    while (*count < total && !code) {
        code = read_file(cmd, paths[*count], &(*out)[*count]);
        ++*count;
    }
    if (!code)
        code = check_names(*out, *count);
    for (size_t i = 0; i < *count && !code; i++)
        if ((*out)[i].mistakes > 0)
            code = DIBS__EXIT_CONFIG;
    return code;
}

void dibs__jobs_close(dibs__read_jobs *files, size_t count)
{
    for (size_t i = 0; files && i < count; i++) {
        for (size_t j = 0; j < files[i].note_count; j++)
            dibsx_free(files[i].notes[j].message);
        dibsx_free(files[i].notes);
        dibs__job_file_fini(&files[i].file);
    }
    dibsx_free(files);
}

static void say_note(const char *path, const dibs__job_note *note)
{
    const char *mark = note->warning ? "warning: " : "";

    if (note->line > 0)
        dibs__cli_say("%s:%zu:%zu: %s%s", path, note->line, note->column, mark,
                      note->message);
    else
        dibs__cli_say("%s: %s%s", path, mark, note->message);
}

void dibs__jobs_say(const dibs__command *cmd, const dibs__read_jobs *files,
                    size_t count)
{
    if (dibs__opt_flag(cmd, "quiet"))
        return;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < files[i].note_count; j++)
            say_note(files[i].path, &files[i].notes[j]);
        if (files[i].mistakes > DIBS__JOB_NOTES_MAX)
            dibs__cli_say("%s has %zu mistakes in all; the first %d are shown",
                          files[i].path, files[i].mistakes,
                          DIBS__JOB_NOTES_MAX);
    }
}

static void notes_json(const dibs__read_jobs *file, dibsx_json *js,
                       const char *key, bool warning)
{
    dibsx_json_key(js, key);
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < file->note_count; i++) {
        const dibs__job_note *note = &file->notes[i];

        if (note->warning != warning)
            continue;
        dibsx_json_open(js, '{');
        if (note->line > 0) {
            dibsx_json_pair_uint(js, "line", note->line);
            dibsx_json_pair_uint(js, "column", note->column);
        }
        dibsx_json_pair_text(js, "message", note->message);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, ']');
}

void dibs__jobs_notes_json(const dibs__read_jobs *file, dibsx_json *js)
{
    dibsx_json_pair_uint(js, "mistake_count", file->mistakes);
    notes_json(file, js, "mistakes", false);
    notes_json(file, js, "warnings", true);
}

void dibs__jobs_origin(const char *path, char *out, size_t size)
{
    char host[64] = "", *whole = realpath(path, NULL);

    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(out, size, "%s:%s", host, whole ? whole : path);
    free(whole);
}
