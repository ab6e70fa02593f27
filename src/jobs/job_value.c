/* job_value.c - one value of a jobs file, checked by the row of its key. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/job_value.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/text.h"
#include "jobs/definition.h"
#include "jobs/moment.h"
#include "jobs/pattern.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},   {"QUIT", SIGQUIT},
    {"KILL", SIGKILL}, {"ABRT", SIGABRT}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2},
};

enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

int dibs__signal_find(const char *name)
{
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < SIGNALS; i++)
        if (strcmp(signals[i].name, name) == 0)
            return signals[i].number;
    return 0;
}

const char *dibs__signal_name(int number)
{
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number)
            return signals[i].name;
    return NULL;
}

/* ---- numbers */

static bool parse_whole(const char *text, int64_t *out, char **end)
{
    long long value;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoll(text, end, 10);
    *out = value;
    return errno == 0;
}

static dibs_status
read_int(const dibs__key *row, const char *text, int64_t *out, dibs_error *err)
{
    int64_t value;
    char *end;

    if (!parse_whole(text, &value, &end) || *end)
        return dibsx_fail(err, DIBS_INVALID, "'%.40s' is not a whole number",
                          text);
    if (value < row->min || value > row->max)
        return dibsx_fail(err, DIBS_INVALID,
                          "%.40s is not between %lld and %lld", text,
                          (long long)row->min, (long long)row->max);
    *out = value;
    return DIBS_OK;
}

static dibs_status read_duration(const dibs__key *row, const char *text,
                                 int64_t *out, dibs_error *err)
{
    char min[32], max[32];
    int64_t value;

    if (!dibsx_duration_parse(text, &value))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is not a duration such as 500ms, 30s, 2m, "
                          "1h or 30d",
                          text);
    if (value >= row->min && value <= row->max) {
        *out = value;
        return DIBS_OK;
    }
    dibsx_duration_text(row->min, min, sizeof(min));
    dibsx_duration_text(row->max, max, sizeof(max));
    return dibsx_fail(err, DIBS_INVALID, "%.40s is not between %s and %s", text,
                      min, max);
}

static dibs_status
read_size(const dibs__key *row, const char *text, int64_t *out, dibs_error *err)
{
    int64_t value, unit = 1;
    char *end;

    if (!parse_whole(text, &value, &end))
        end = NULL;
    else if (*end == 'k' || *end == 'K')
        unit = 1024;
    else if (*end == 'm' || *end == 'M')
        unit = 1024 * 1024;
    if (!end || (unit > 1 ? end[1] : end[0]) != '\0')
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is not a size such as 512, 64k or 1m", text);
    if (value > row->max / unit || value * unit < row->min)
        return dibsx_fail(err, DIBS_INVALID,
                          "%.40s is not between %lld and %lld bytes", text,
                          (long long)row->min, (long long)row->max);
    *out = value * unit;
    return DIBS_OK;
}

static dibs_status read_percent(const dibs__key *row, const char *text,
                                int64_t *out, dibs_error *err)
{
    int64_t value;
    char *end;

    if (!parse_whole(text, &value, &end) || strcmp(end, "%") != 0 ||
        value < row->min || value > row->max)
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is not a part such as 20%%, up to %lld%%",
                          text, (long long)row->max);
    *out = value;
    return DIBS_OK;
}

static dibs_status read_signal(const char *text, int64_t *out, dibs_error *err)
{
    int number = dibs__signal_find(text);

    if (number == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is none of the signals TERM, INT, HUP, "
                          "QUIT, KILL, ABRT, USR1 and USR2",
                          text);
    *out = number;
    return DIBS_OK;
}

static dibs_status read_moment(const char *text, const dibs__zone *zone,
                               int64_t *out, dibs_error *err)
{
    if (!zone || !dibs__moment_parse(text, zone, out))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is no time; write 2026-11-15T02:00:00Z, or "
                          "2026-11-15 02:00 in the zone of the job",
                          text);
    return DIBS_OK;
}

/* ---- words */

static dibs_status read_flag(const char *text, bool *out, dibs_error *err)
{
    if (!dibsx_flag_read(text, out))
        return dibsx_fail(err, DIBS_INVALID,
                          "'%.40s' is not yes, no, true or false", text);
    return DIBS_OK;
}

static dibs_status read_choice(const dibs__key *row, const char *text,
                               uint32_t *out, dibs_error *err)
{
    int place = dibs__choice_find(row->choices, text);

    if (place < 0)
        return dibsx_fail(err, DIBS_INVALID, "'%.40s' is not one of %s", text,
                          row->choices);
    *out = (uint32_t)place;
    return DIBS_OK;
}

_Static_assert(sizeof(dibs__on_busy) == sizeof(uint32_t),
               "an enum has the size of a uint32_t");

static dibs_status
put_choice(const dibs__key *row, const char *text, void *at, dibs_error *err)
{
    uint32_t place = 0;
    dibs_status rc = read_choice(row, text, &place, err);

    if (rc == DIBS_OK)
        memcpy(at, &place, sizeof(place));
    return rc;
}

static dibs_status add_choice(const dibs__key *row, const char *text,
                              uint32_t *at, dibs_error *err)
{
    uint32_t place = 0;
    dibs_status rc = read_choice(row, text, &place, err);

    if (rc == DIBS_OK)
        *at |= UINT32_C(1) << place;
    return rc;
}

static dibs_status
add_code(const dibs__key *row, const char *text, uint64_t *at, dibs_error *err)
{
    int64_t code = 0;
    dibs_status rc = read_int(row, text, &code, err);

    if (rc == DIBS_OK)
        at[code / 64] |= UINT64_C(1) << (code % 64);
    return rc;
}

static dibs_status
check_text(const dibs__key *row, const char *text, dibs_error *err)
{
    size_t len = strlen(text);

    if (row->min > 0 && len == 0)
        return dibsx_fail(err, DIBS_INVALID, "the text is empty");
    if (row->max > 0 && len > (size_t)row->max)
        return dibsx_fail(err, DIBS_INVALID,
                          "the text is longer than %lld bytes",
                          (long long)row->max);
    switch (row->type) {
    case DIBS__KEY_NAME:
        if (!dibs__job_name_ok(text))
            return dibsx_fail(err, DIBS_INVALID,
                              "'%.40s' is no name; a name has letters, digits "
                              "and . _ -, and at most %d bytes",
                              text, DIBS__JOB_NAME_MAX);
        return DIBS_OK;
    case DIBS__KEY_PATH:
        if (text[0] != '/')
            return dibsx_fail(err, DIBS_INVALID,
                              "'%.40s' is no path that begins with /", text);
        return DIBS_OK;
    case DIBS__KEY_PATTERN:
        return dibs__pattern_check(text, err);
    default:
        return DIBS_OK;
    }
}

static dibs_status
read_text(const dibs__key *row, const char *text,
          const dibs__value_context *ctx, const char **out, dibs_error *err)
{
    dibs_status rc = check_text(row, text, err);

    if (rc != DIBS_OK)
        return rc;
    *out = dibs__arena_text(ctx->arena, text);
    return *out ? DIBS_OK : dibsx_nomem(err, "the definition of a job");
}

dibs_status
dibs__key_read(const dibs__key *row, const char *text,
               const dibs__value_context *ctx, void *base, dibs_error *err)
{
    void *at = dibs__key_place(row, base);

    switch (row->type) {
    case DIBS__KEY_FLAG:
        return read_flag(text, at, err);
    case DIBS__KEY_INT:
        return read_int(row, text, at, err);
    case DIBS__KEY_DURATION:
        return read_duration(row, text, at, err);
    case DIBS__KEY_SIZE:
        return read_size(row, text, at, err);
    case DIBS__KEY_PERCENT:
        return read_percent(row, text, at, err);
    case DIBS__KEY_SIGNAL:
        return read_signal(text, at, err);
    case DIBS__KEY_MOMENT:
        return read_moment(text, ctx->zone, at, err);
    case DIBS__KEY_CHOICE:
        return put_choice(row, text, at, err);
    case DIBS__KEY_CHOICES:
        return add_choice(row, text, at, err);
    case DIBS__KEY_CODES:
        return add_code(row, text, at, err);
    case DIBS__KEY_TEXT:
    case DIBS__KEY_NAME:
    case DIBS__KEY_PATH:
    case DIBS__KEY_ZONE:
    case DIBS__KEY_PATTERN:
        return read_text(row, text, ctx, at, err);
    default:
        return dibsx_fail(err, DIBS_INVALID, "'%.40s' is not expected here",
                          text);
    }
}

/* ---- defaults */

static size_t value_size(dibs__key_type type)
{
    switch (type) {
    case DIBS__KEY_FLAG:
        return sizeof(bool);
    case DIBS__KEY_CHOICE:
    case DIBS__KEY_CHOICES:
        return sizeof(uint32_t);
    case DIBS__KEY_CODES:
        return DIBS__JOB_CODES_WORDS * sizeof(uint64_t);
    case DIBS__KEY_WORDS:
    case DIBS__KEY_NAMES:
        return sizeof(dibs__texts);
    case DIBS__KEY_ENV:
    case DIBS__KEY_WITH:
        return sizeof(dibs__pairs);
    case DIBS__KEY_SCHEDULES:
        return sizeof(dibs__schedules);
    case DIBS__KEY_PARAMS:
        return sizeof(dibs__param_list);
    case DIBS__KEY_GROUP:
    case DIBS__KEY_STEPS:
        return 0;
    case DIBS__KEY_TEXT:
    case DIBS__KEY_NAME:
    case DIBS__KEY_PATH:
    case DIBS__KEY_ZONE:
    case DIBS__KEY_PATTERN:
        return sizeof(const char *);
    default:
        return sizeof(int64_t);
    }
}

static bool is_number(dibs__key_type type)
{
    return type >= DIBS__KEY_INT && type <= DIBS__KEY_MOMENT;
}

/* The default of `choices` has several words, which read as they stand in the row. */
static void
put_initial(const dibs__key *row, const dibs__value_context *ctx, void *base)
{
    char word[40];
    const char *at;
    size_t len;

    for (int i = 0; (at = dibs__choice_at(row->initial, i, &len)); i++) {
        memcpy(word, at, len);
        word[len] = '\0';
        /* It fails for lack of memory alone, which the arena keeps in mind. */
        if (dibs__key_read(row, word, ctx, base, NULL) != DIBS_OK)
            return;
    }
}

void dibs__key_reset(const dibs__key *row, const dibs__value_context *ctx,
                     void *base)
{
    void *at = dibs__key_place(row, base);
    const int64_t none = DIBS__JOB_NONE;

    if (row->type == DIBS__KEY_GROUP) {
        dibs__keys_reset(row->group, ctx, at);
        return;
    }
    memset(at, 0, value_size(row->type));
    if (is_number(row->type))
        memcpy(at, &none, sizeof(none));
    if (row->initial)
        put_initial(row, ctx, base);
}

void dibs__keys_reset(const dibs__keys *keys, const dibs__value_context *ctx,
                      void *base)
{
    for (size_t i = 0; i < keys->count; i++)
        dibs__key_reset(&keys->rows[i], ctx, base);
}
