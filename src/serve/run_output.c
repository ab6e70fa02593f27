/* run_output.c - see run_output.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/run_output.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "http/sse.h"
#include "jobs/board_change.h"
#include "jobs/kept_output.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 4096, FRAME_ROOM = 8 * 1024 };

/* An output that was not captured is empty. */
static dibs_status read_piece(const dibs__board *board, const dibs__run *run,
                              const dibs__run_step *step, uint32_t attempt,
                              dibs__kept_output *out, dibs_error *err)
{
    dibs_status rc =
        dibs__kept_output_read(board, run, step, attempt, out, err);

    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

/* ---- frames */

static void
put_frame(dibsx_buf *out, int64_t at_us, const char *kind, const char *text,
          size_t len, const char *step, const char *id)
{
    char at[40];
    dibsx_buf data;
    dibsx_json js;

    dibsx_buf_init(&data, FRAME_ROOM * 8);
    dibsx_json_init(&js, &data);
    dibsx_wall_text(at_us, at, sizeof(at));
    dibsx_json_open(&js, '[');
    dibsx_json_text(&js, at_us > 0 ? at : NULL);
    dibsx_json_text(&js, kind);
    dibsx_json_bytes(&js, text, len);
    dibsx_json_text(&js, step);
    dibsx_json_close(&js, ']');
    dibs__http_sse_put(out, id, "line", dibsx_buf_text(&data), data.len);
    dibsx_buf_fini(&data);
}

static void
put_note(dibsx_buf *out, int64_t at_us, const char *step, const char *format,
         ...) __attribute__((format(printf, 4, 5)));

static void put_note(dibsx_buf *out, int64_t at_us, const char *step,
                     const char *format, ...)
{
    char text[320];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    put_frame(out, at_us, "sys", text, strlen(text), step, NULL);
}

/* How many bytes of a line that is too long make a frame: no character is cut, if the
 * bytes are UTF-8. */
static size_t cut_line(const char *from)
{
    size_t size = LINE_MAX_BYTES;

    while (size > LINE_MAX_BYTES - 3 &&
           ((unsigned char)from[size] & 0xc0) == 0x80)
        size--;
    return ((unsigned char)from[size] & 0xc0) == 0x80 ? LINE_MAX_BYTES : size;
}

/* The lines of some bytes. A last line without an end is left, unless `whole`. Returns
 * the bytes that were shown. */
static size_t put_lines(dibsx_buf *out, const char *bytes, size_t len,
                        const char *step, bool whole)
{
    size_t done = 0;

    while (done < len && out->len < DIBS__OUTPUT_FRAMES_MAX) {
        const char *from = bytes + done;
        const char *end = memchr(from, '\n', len - done);
        size_t size = end ? (size_t)(end - from) : len - done;

        if (!end && !whole && size <= LINE_MAX_BYTES)
            break;
        if (size > LINE_MAX_BYTES) {
            size = cut_line(from);
            end = NULL;
        }
        put_frame(out, 0, "out", from,
                  size > 0 && end && from[size - 1] == '\r' ? size - 1 : size,
                  step, NULL);
        done += size + (end != NULL);
    }
    return done;
}

/* Where the last lines of some bytes begin. */
static size_t skip_to_tail(const char *bytes, size_t len, size_t lines)
{
    size_t at = len;

    if (at > 0 && bytes[at - 1] == '\n')
        at--;
    while (at > 0 && (bytes[at - 1] != '\n' || --lines > 0))
        at--;
    return at;
}

/* At the beginning all but the tail is left out. */
static void
skip_old(const dibs__kept_output *p, dibs__output_place *place, size_t tail)
{
    const uint64_t tail_at = p->head_len + p->left_out;

    if (p->left_out)
        place->bytes = tail_at + skip_to_tail(p->tail, p->tail_len, tail);
    else
        place->bytes = skip_to_tail(p->head, p->head_len + p->tail_len, tail);
}

static void show_piece(dibsx_buf *out, const dibs__kept_output *p,
                       dibs__output_place *place, const char *step, bool whole)
{
    const uint64_t tail_at = p->head_len + p->left_out;

    if (!p->left_out) {
        /* Head and tail are one text as long as nothing is left out. */
        const size_t len = p->head_len + p->tail_len;

        if (place->bytes < len)
            place->bytes += put_lines(out, p->head + place->bytes,
                                      len - (size_t)place->bytes, step, whole);
        return;
    }
    if (place->bytes < p->head_len)
        place->bytes +=
            put_lines(out, p->head + place->bytes,
                      p->head_len - (size_t)place->bytes, step, true);
    if (place->bytes >= p->head_len && place->bytes < tail_at) {
        put_note(out, 0, step, "%" PRIu64 " bytes were left out",
                 tail_at - place->bytes);
        place->bytes = tail_at;
    }
    if (place->bytes >= tail_at && place->bytes < tail_at + p->tail_len)
        place->bytes +=
            put_lines(out, p->tail + (place->bytes - tail_at),
                      p->tail_len - (size_t)(place->bytes - tail_at), step,
                      whole);
}

static bool
is_whole(const dibs__kept_output *p, const dibs__output_place *place)
{
    return place->bytes >= p->head_len + p->left_out + p->tail_len;
}

static const char *reason_of(const dibs__run_step *step)
{
    return step->reason ? dibs__reason_name(step->reason) : "ok";
}

/* The attempt to show: one that was begun is shown to its end. */
static uint32_t attempt_to_show(const dibs__run_output *ro, size_t i,
                                const dibs__run_step *step)
{
    const dibs__output_place *place = &ro->places[i];

    if (ro->attempt)
        return ro->attempt;
    return place->attempt && !place->ended && place->attempt < step->attempt
               ? place->attempt
               : step->attempt;
}

/* *done: all of the attempt was shown, and nothing more of it will come. */
static dibs_status
show_attempt(dibs__run_output *ro, const dibs__run *run, size_t i,
             uint32_t attempt, dibsx_buf *out, bool *done, dibs_error *err)
{
    const dibs__run_step *step = &run->steps[i];
    dibs__output_place *place = &ro->places[i];
    const bool current = attempt == step->attempt;
    const bool ended = !current || (step->state != DIBS__STATE_RUNNING &&
                                    step->state != DIBS__STATE_CLAIMED);
    dibs_status rc;
    dibs__kept_output p;

    *done = attempt == 0 || (place->ended && place->attempt == attempt);
    if (*done)
        return DIBS_OK;
    rc = read_piece(&ro->board, run, step, attempt, &p, err);
    if (rc == DIBS_OK && place->attempt != attempt) {
        *place = (dibs__output_place){.attempt = attempt};
        if (ro->tail)
            skip_old(&p, place, ro->tail);
    }
    if (rc == DIBS_OK && !place->begun) {
        place->begun = true;
        if (place->bytes == 0 || ro->tail)
            put_note(out, current ? step->begun_us : 0, step->name,
                     "step %s, attempt %" PRIu32, step->name, attempt);
    }
    if (rc == DIBS_OK)
        show_piece(out, &p, place, step->name, ended);
    if (rc == DIBS_OK && ended && is_whole(&p, place)) {
        place->ended = *done = true;
        if (current)
            put_note(out, step->ended_us, step->name, "%s: %s, exit code %d",
                     step->name, reason_of(step), (int)step->exit_code);
    }
    dibs__kept_output_fini(&p);
    return rc;
}

/* *done: all of the step was shown, and nothing more will come. */
static dibs_status
show_step(dibs__run_output *ro, const dibs__run *run, size_t i, dibsx_buf *out,
          bool *done, dibs_error *err)
{
    const dibs__run_step *step = &run->steps[i];
    const uint32_t first = attempt_to_show(ro, i, step);
    dibs_status rc = show_attempt(ro, run, i, first, out, done, err);

    if (rc == DIBS_OK && *done && !ro->attempt && first != step->attempt)
        rc = show_attempt(ro, run, i, step->attempt, out, done, err);
    return rc;
}

/* The id of the frames so far: a place to resume from. */
static void
put_place(const dibs__run_output *ro, const dibs__run *run, dibsx_buf *out)
{
    dibsx_buf id;

    dibsx_buf_init(&id, 16 * 1024);
    for (size_t i = 0; i < run->step_count; i++)
        if (ro->places[i].attempt)
            dibsx_buf_printf(&id, "%s%zu:%" PRIu32 ":%" PRIu64 ":%d",
                             id.len ? "," : "", i, ro->places[i].attempt,
                             ro->places[i].bytes, ro->places[i].ended);
    if (id.len && dibsx_buf_ok(&id))
        dibs__http_sse_put(out, dibsx_buf_text(&id), "place", "{}", 2);
    dibsx_buf_fini(&id);
}

bool dibs__output_resume(dibs__run_output *ro, const char *text)
{
    /* sscanf() takes signs and blanks as well. */
    if (text[strspn(text, "0123456789:,")])
        return false;
    while (*text) {
        unsigned long long index, attempt, bytes, ended;
        int len = 0;

        if (sscanf(text, "%3llu:%5llu:%12llu:%1llu%n", &index, &attempt, &bytes,
                   &ended, &len) != 4 ||
            index >= DIBS__JOB_STEPS_MAX || (text[len] && text[len] != ','))
            return false;
        ro->places[index] = (dibs__output_place){.attempt = (uint32_t)attempt,
                                                 .bytes = bytes,
                                                 .begun = true,
                                                 .ended = ended == 1};
        text += len + (text[len] == ',');
        ro->tail = 0;
    }
    return true;
}

static bool is_wanted(const dibs__run_output *ro, const dibs__run_step *step)
{
    return !ro->step[0] || strcmp(ro->step, step->name) == 0;
}

static dibs_status
find_run(const dibs__run_output *ro, dibs__run *run, dibs_error *err)
{
    dibs_status rc = dibs__board_run(&ro->board, ro->run, run, err);
    bool found = !ro->step[0];

    for (size_t i = 0; rc == DIBS_OK && i < run->step_count; i++)
        found = found || is_wanted(ro, &run->steps[i]);
    if (rc == DIBS_OK && !found)
        rc = dibsx_fail(err, DIBS_NOTFOUND, "the run %s has no step %s",
                        ro->run, ro->step);
    return rc;
}

/* Its nodes write output sooner while they know that somebody waits for it. */
static void follow_run(dibs__run_output *ro)
{
    dibsx_nsec now = dibsx_now();

    if (now < ro->follow_at)
        return;
    ro->follow_at = dibsx_after_ms(now, DIBS__FOLLOW_MS / 3);
    (void)!dibs__board_follow(&ro->board, ro->run, NULL);
}

dibs_status dibs__output_frames(dibs__run_output *ro, dibsx_buf *out,
                                bool *over, dibs_error *err)
{
    const size_t before = out->len;
    dibs__run run;
    dibs_status rc = find_run(ro, &run, err);
    bool all = rc == DIBS_OK && dibs__state_final(run.state);

    for (size_t i = 0; rc == DIBS_OK && i < run.step_count; i++) {
        bool done = true;

        if (is_wanted(ro, &run.steps[i]))
            rc = show_step(ro, &run, i, out, &done, err);
        all = all && done;
    }
    if (rc == DIBS_OK && out->len > before)
        put_place(ro, &run, out);
    *over = rc == DIBS_OK && all;
    if (rc == DIBS_OK)
        ro->tail = 0;
    if (*over) {
        char end[128];
        int len = snprintf(end, sizeof(end), "{\"state\":\"%s\"}",
                           dibs__run_state_name(run.state));

        dibs__http_sse_put(out, NULL, "end", end, (size_t)len);
    } else if (rc == DIBS_OK) {
        follow_run(ro);
    }
    dibs__run_fini(&run);
    return rc;
}

/* ---- text */

dibs_status
dibs__output_text(const dibs__run_output *ro, dibsx_buf *out, dibs_error *err)
{
    dibs__run run;
    dibs_status rc = find_run(ro, &run, err);
    const bool heads = run.step_count > 1 && !ro->step[0];

    for (size_t i = 0; rc == DIBS_OK && i < run.step_count; i++) {
        const dibs__run_step *step = &run.steps[i];
        uint32_t attempt = ro->attempt ? ro->attempt : step->attempt;
        dibs__kept_output p;

        if (!is_wanted(ro, step) || attempt == 0)
            continue;
        rc = read_piece(&ro->board, &run, step, attempt, &p, err);
        if (rc == DIBS_OK && heads)
            dibsx_buf_printf(out, "== %s, attempt %" PRIu32 "\n", step->name,
                             attempt);
        if (rc == DIBS_OK) {
            dibsx_buf_add(out, p.head, p.head_len);
            if (p.left_out)
                dibsx_buf_printf(out, "\n[%" PRIu64 " bytes were left out]\n",
                                 p.left_out);
            dibsx_buf_add(out, p.tail, p.tail_len);
        }
        dibs__kept_output_fini(&p);
    }
    dibs__run_fini(&run);
    return rc;
}
