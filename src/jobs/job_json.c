/* job_json.c - a definition as the store keeps it: canonical JSON, known by its hash.
 *
 * Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_json.h"

#include "base/json.h"
#include "base/sha256.h"
#include "jobs/job_value.h"
#include "jobs/moment.h"
#include <stdio.h>
#include <string.h>

enum { VALUE_MAX = 2 * DIBS__JOB_JSON_MAX };

static void
write_keys(dibsx_json *js, const dibs__keys *keys, const void *base);
static void write_steps(dibsx_json *js, const dibs__job *job);

/* The longest unit that leaves no rest. */
static void write_span(dibsx_json *js, int64_t span_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
    char text[40];
    size_t i = 0;

    while (span_ms % units[i].ms != 0)
        i++;
    if (span_ms == 0)
        i = 3;
    (void)snprintf(text, sizeof(text), "%lld%s",
                   (long long)(span_ms / units[i].ms), units[i].name);
    dibsx_json_text(js, text);
}

static void write_size(dibsx_json *js, int64_t bytes)
{
    char text[40];
    bool whole = bytes > 0 && bytes % 1024 == 0;

    (void)snprintf(text, sizeof(text), "%lld%s",
                   (long long)(whole ? bytes / 1024 : bytes), whole ? "k" : "");
    dibsx_json_text(js, text);
}

static void write_moment(dibsx_json *js, int64_t at_s)
{
    char text[DIBS__MOMENT_SIZE], instant[DIBS__MOMENT_SIZE + 1];

    dibs__moment_text(at_s, text);
    (void)snprintf(instant, sizeof(instant), "%sZ", text);
    dibsx_json_text(js, instant);
}

static void write_number(dibsx_json *js, dibs__key_type type, int64_t number)
{
    char text[40];

    switch (type) {
    case DIBS__KEY_DURATION:
        write_span(js, number);
        break;
    case DIBS__KEY_SIZE:
        write_size(js, number);
        break;
    case DIBS__KEY_MOMENT:
        write_moment(js, number);
        break;
    case DIBS__KEY_PERCENT:
        (void)snprintf(text, sizeof(text), "%lld%%", (long long)number);
        dibsx_json_text(js, text);
        break;
    case DIBS__KEY_SIGNAL:
        dibsx_json_text(js, dibs__signal_name((int)number));
        break;
    default:
        dibsx_json_int(js, number);
    }
}

static void write_choice(dibsx_json *js, const char *choices, int place)
{
    size_t len = 0;
    const char *word = dibs__choice_at(choices, place, &len);

    if (word)
        dibsx_json_bytes(js, word, len);
    else
        dibsx_json_null(js);
}

static void write_choices(dibsx_json *js, const char *choices, uint32_t bits)
{
    dibsx_json_open(js, '[');
    for (int i = 0; i < 32; i++)
        if (bits >> i & 1)
            write_choice(js, choices, i);
    dibsx_json_close(js, ']');
}

static void write_codes(dibsx_json *js, const uint64_t *codes)
{
    dibsx_json_open(js, '[');
    for (int i = 0; i < 64 * DIBS__JOB_CODES_WORDS; i++)
        if (codes[i / 64] >> (i % 64) & 1)
            dibsx_json_int(js, i);
    dibsx_json_close(js, ']');
}

static void write_texts(dibsx_json *js, const dibs__texts *texts)
{
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < texts->count; i++)
        dibsx_json_text(js, texts->at[i]);
    dibsx_json_close(js, ']');
}

static void write_pairs(dibsx_json *js, const dibs__pairs *pairs)
{
    dibsx_json_open(js, '{');
    for (size_t i = 0; i < pairs->count; i++)
        dibsx_json_pair_text(js, pairs->at[i].name, pairs->at[i].value);
    dibsx_json_close(js, '}');
}

static void write_schedules(dibsx_json *js, const dibs__schedules *schedules)
{
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < schedules->count; i++)
        dibsx_json_text(js, schedules->at[i].text);
    dibsx_json_close(js, ']');
}

static void write_params(dibsx_json *js, const dibs__param_list *params)
{
    dibsx_json_open(js, '{');
    for (size_t i = 0; i < params->count; i++) {
        dibsx_json_key(js, params->at[i].name);
        dibsx_json_open(js, '{');
        write_keys(js, &dibs__param_keys, &params->at[i]);
        dibsx_json_close(js, '}');
    }
    dibsx_json_close(js, '}');
}

/* ---- rows */

static bool any_set(const dibs__keys *keys, const void *base);

/* A value that is not set is left out. A lock is there when it has a key, a wait when it waits
 * for something. */
static bool is_set(const dibs__key *row, const void *base)
{
    const void *at = dibs__key_value(row, base);
    const char *text;
    int64_t number;

    switch (row->type) {
    case DIBS__KEY_FLAG:
    case DIBS__KEY_CHOICE:
    case DIBS__KEY_CHOICES:
    case DIBS__KEY_CODES:
        return true;
    case DIBS__KEY_TEXT:
    case DIBS__KEY_NAME:
    case DIBS__KEY_PATH:
    case DIBS__KEY_ZONE:
    case DIBS__KEY_PATTERN:
        memcpy(&text, at, sizeof(text));
        return text != NULL;
    case DIBS__KEY_WORDS:
    case DIBS__KEY_NAMES:
        return ((const dibs__texts *)at)->count > 0;
    case DIBS__KEY_ENV:
    case DIBS__KEY_WITH:
        return ((const dibs__pairs *)at)->count > 0;
    case DIBS__KEY_SCHEDULES:
        return ((const dibs__schedules *)at)->count > 0;
    case DIBS__KEY_PARAMS:
        return ((const dibs__param_list *)at)->count > 0;
    case DIBS__KEY_GROUP:
        if (strcmp(row->name, "lock") == 0)
            return ((const dibs__job_lock *)at)->key != NULL;
        if (strcmp(row->name, "wait") == 0)
            return ((const dibs__step_wait *)at)->bookmark ||
                   ((const dibs__step_wait *)at)->batch;
        return any_set(row->group, at);
    case DIBS__KEY_STEPS:
        return ((const dibs__job *)base)->has_steps;
    default:
        memcpy(&number, at, sizeof(number));
        return number != DIBS__JOB_NONE;
    }
}

static bool any_set(const dibs__keys *keys, const void *base)
{
    for (size_t i = 0; i < keys->count; i++)
        if (is_set(&keys->rows[i], base))
            return true;
    return false;
}

static void write_words(dibsx_json *js, const dibs__key *row, const void *at)
{
    const char *text;
    uint32_t place;

    switch (row->type) {
    case DIBS__KEY_FLAG:
        dibsx_json_bool(js, *(const bool *)at);
        break;
    case DIBS__KEY_CHOICE:
        memcpy(&place, at, sizeof(place));
        write_choice(js, row->choices, (int)place);
        break;
    case DIBS__KEY_CHOICES:
        write_choices(js, row->choices, *(const uint32_t *)at);
        break;
    default:
        memcpy(&text, at, sizeof(text));
        dibsx_json_text(js, text);
    }
}

static void write_value(dibsx_json *js, const dibs__key *row, const void *base)
{
    const void *at = dibs__key_value(row, base);

    if (!is_set(row, base)) {
        dibsx_json_null(js);
        return;
    }
    switch (row->type) {
    case DIBS__KEY_INT:
    case DIBS__KEY_DURATION:
    case DIBS__KEY_SIZE:
    case DIBS__KEY_PERCENT:
    case DIBS__KEY_SIGNAL:
    case DIBS__KEY_MOMENT:
        write_number(js, row->type, *(const int64_t *)at);
        break;
    case DIBS__KEY_CODES:
        write_codes(js, at);
        break;
    case DIBS__KEY_WORDS:
    case DIBS__KEY_NAMES:
        write_texts(js, at);
        break;
    case DIBS__KEY_ENV:
    case DIBS__KEY_WITH:
        write_pairs(js, at);
        break;
    case DIBS__KEY_SCHEDULES:
        write_schedules(js, at);
        break;
    case DIBS__KEY_PARAMS:
        write_params(js, at);
        break;
    case DIBS__KEY_GROUP:
        dibsx_json_open(js, '{');
        write_keys(js, row->group, at);
        dibsx_json_close(js, '}');
        break;
    case DIBS__KEY_STEPS:
        write_steps(js, base);
        break;
    default:
        write_words(js, row, at);
    }
}

static void write_row(dibsx_json *js, const dibs__key *row, const void *base)
{
    dibsx_json_key(js, row->name);
    write_value(js, row, base);
}

static void write_keys(dibsx_json *js, const dibs__keys *keys, const void *base)
{
    for (size_t i = 0; i < keys->count; i++)
        if (is_set(&keys->rows[i], base))
            write_row(js, &keys->rows[i], base);
}

/* ---- steps */

/* Whether two structs have the same value, as it is written. */
static bool same_value(const dibs__key *row, const void *a, const void *b)
{
    dibsx_buf texts[2];
    const void *bases[] = {a, b};
    bool same;

    for (size_t i = 0; i < 2; i++) {
        dibsx_json js;

        dibsx_buf_init(&texts[i], VALUE_MAX);
        dibsx_json_init(&js, &texts[i]);
        write_value(&js, row, bases[i]);
    }
    same = dibsx_buf_ok(&texts[0]) && dibsx_buf_ok(&texts[1]) &&
           strcmp(dibsx_buf_text(&texts[0]), dibsx_buf_text(&texts[1])) == 0;
    dibsx_buf_fini(&texts[0]);
    dibsx_buf_fini(&texts[1]);
    return same;
}

/* A list of rows that is merged with others by name. */
typedef struct row_list {
    const dibs__keys *keys;
    const void *base;
    const void *against; /* only what differs from this; NULL: what is set */
    size_t next;
} row_list;

static bool is_written(const row_list *list, const dibs__key *row)
{
    return list->against ? !same_value(row, list->base, list->against)
                         : is_set(row, list->base);
}

/* Two lists and the name, all in order. */
static void write_merged(dibsx_json *js, row_list lists[2], const char *name)
{
    bool named = false;

    for (;;) {
        row_list *from = NULL;
        const dibs__key *row = NULL;

        for (size_t i = 0; i < 2; i++) {
            const dibs__key *at = &lists[i].keys->rows[lists[i].next];

            if (lists[i].next < lists[i].keys->count &&
                (!row || strcmp(at->name, row->name) < 0)) {
                row = at;
                from = &lists[i];
            }
        }
        if (!named && (!row || strcmp("name", row->name) < 0)) {
            dibsx_json_pair_text(js, "name", name);
            named = true;
        }
        if (!row)
            return;
        if (is_written(from, row))
            write_row(js, row, from->base);
        from->next++;
    }
}

static void write_step(dibsx_json *js, const dibs__job *job,
                       const dibs__step *step, const dibs__step *blank)
{
    dibs__work base = job->work;
    row_list lists[] = {
        {.keys = &dibs__step_keys, .base = step, .against = blank},
        {.keys = &dibs__work_keys, .base = &step->work, .against = &base}};

    base.run = (dibs__texts){0};
    base.shell = base.call = NULL;
    dibsx_json_open(js, '{');
    write_merged(js, lists, step->name);
    dibsx_json_close(js, '}');
}

/* In the order of the file, for records of runs count by it. */
static void write_steps(dibsx_json *js, const dibs__job *job)
{
    const dibs__value_context ctx = {NULL, NULL};
    dibs__step blank = {0};

    dibs__keys_reset(&dibs__step_keys, &ctx, &blank);
    dibsx_json_open(js, '[');
    for (size_t i = 0; i < job->step_count; i++)
        write_step(js, job, &job->steps[i], &blank);
    dibsx_json_close(js, ']');
}

void dibs__job_json(const dibs__job *job, dibsx_buf *out)
{
    row_list lists[] = {{.keys = &dibs__job_keys, .base = job},
                        {.keys = &dibs__work_keys, .base = &job->work}};
    dibsx_json js;

    dibsx_json_init(&js, out);
    dibsx_json_open(&js, '{');
    write_merged(&js, lists, job->name);
    dibsx_json_close(&js, '}');
}

void dibs__job_hash(const void *text, size_t len, char out[DIBS__JOB_HASH_SIZE])
{
    char sum[DIBSX_SHA256_TEXT];

    dibsx_sha256(text, len, sum);
    memcpy(out, sum, DIBS__JOB_HASH_SIZE - 1);
    out[DIBS__JOB_HASH_SIZE - 1] = '\0';
}
