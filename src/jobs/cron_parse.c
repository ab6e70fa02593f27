/* cron_parse.c - reads cron expressions. Pure.
 *
 * The first mistake ends it. Its column counts characters of the whole text. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "jobs/calendar.h"
#include "jobs/cron.h"
#include "jobs/cron_fields.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#define NAME_LETTERS 3
#define MONTHS       "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC"
#define WEEKDAYS     "SUNMONTUEWEDTHUFRISAT"

enum { DIGITS_MAX = 4, EVERY_MAX_S = 366 * DIBS__DAY_S };

static const struct {
    const char *name;
    int low;
    int high;
    const char *words; /* three letters each, the first for `low` */
} fields[DIBS__CRON_FIELDS] = {
    [DIBS__CRON_SECOND] = {"second", 0, 59, ""},
    [DIBS__CRON_MINUTE] = {"minute", 0, 59, ""},
    [DIBS__CRON_HOUR] = {"hour", 0, 23, ""},
    [DIBS__CRON_DAY] = {"day of month", 1, 31, ""},
    [DIBS__CRON_MONTH] = {"month", 1, 12, MONTHS},
    [DIBS__CRON_WEEKDAY] = {"day of week", 0, 7, WEEKDAYS},
    [DIBS__CRON_YEAR] = {"year", DIBS__CRON_YEAR_MIN, DIBS__CRON_YEAR_MAX, ""},
};

/* A part of the text. */
typedef struct span {
    const char *at;
    size_t len;
} span;

typedef struct parser {
    const char *text;
    dibs__cron *cron;
    dibs__cron_field field; /* that is being read */
    int *column;
    dibs_error *err;
} parser;

static int column_of(const parser *ps, const char *at)
{
    int column = 1;

    for (const char *c = ps->text; c < at; c++)
        column += ((unsigned char)*c & 0xc0) != 0x80;
    return column;
}

/* dibsx_fail() at a place of the text. */
#define FAIL_AT(ps, at, ...)                                                   \
    (*(ps)->column = column_of((ps), (at)),                                    \
     dibsx_fail((ps)->err, DIBS_INVALID, __VA_ARGS__))

/* For %.*s: what was typed may be long. */
static int shown(span part)
{
    return part.len < 40 ? (int)part.len : 40;
}

static bool is_word(span part, const char *word)
{
    return part.len == strlen(word) &&
           strncasecmp(part.at, word, part.len) == 0;
}

static span cut_before(span part, const char *at)
{
    return (span){part.at, (size_t)(at - part.at)};
}

static span cut_after(span part, const char *at)
{
    return (span){at + 1, part.len - (size_t)(at + 1 - part.at)};
}

/* One to `max` digits and nothing else. */
static bool read_digits(span part, size_t max, int *out)
{
    if (part.len < 1 || part.len > max)
        return false;
    *out = 0;
    for (size_t i = 0; i < part.len; i++) {
        if (part.at[i] < '0' || part.at[i] > '9')
            return false;
        *out = *out * 10 + (part.at[i] - '0');
    }
    return true;
}

static bool read_name(dibs__cron_field field, span part, int *out)
{
    const char *words = fields[field].words;

    if (part.len != NAME_LETTERS)
        return false;
    for (int i = 0; words[0]; i++, words += NAME_LETTERS) {
        if (strncasecmp(words, part.at, NAME_LETTERS) == 0) {
            *out = fields[field].low + i;
            return true;
        }
    }
    return false;
}

/* A name or a number of the field. */
static dibs_status read_value(parser *ps, span part, int *out)
{
    int low = fields[ps->field].low, high = fields[ps->field].high;

    if (read_name(ps->field, part, out))
        return DIBS_OK;
    if (!read_digits(part, DIGITS_MAX, out))
        return FAIL_AT(ps, part.at, "'%.*s' is not a %s", shown(part), part.at,
                       fields[ps->field].name);
    if (*out < low || *out > high)
        return FAIL_AT(ps, part.at, "%s %d is not within %d to %d",
                       fields[ps->field].name, *out, low, high);
    if (ps->field == DIBS__CRON_WEEKDAY && ps->cron->has_seconds)
        ps->cron->day_numbers = true;
    return DIBS_OK;
}

static void set_bit(parser *ps, int n)
{
    dibs__cron *cron = ps->cron;

    switch (ps->field) {
    case DIBS__CRON_SECOND:
        cron->seconds |= (uint64_t)1 << n;
        break;
    case DIBS__CRON_MINUTE:
        cron->minutes |= (uint64_t)1 << n;
        break;
    case DIBS__CRON_HOUR:
        cron->hours |= 1u << n;
        break;
    case DIBS__CRON_DAY:
        cron->days |= 1u << n;
        break;
    case DIBS__CRON_MONTH:
        cron->months |= 1u << n;
        break;
    case DIBS__CRON_WEEKDAY:
        cron->weekdays = (uint8_t)(cron->weekdays | 1u << n % 7);
        break;
    default:
        n -= DIBS__CRON_YEAR_MIN;
        cron->years[n / 64] |= (uint64_t)1 << n % 64;
    }
}

/* Sets first, first + step, ... up to last, round the end of the field if need be. */
static dibs_status
set_range(parser *ps, const char *at, int first, int last, int step)
{
    int size = fields[ps->field].high - fields[ps->field].low + 1;

    if (ps->field == DIBS__CRON_WEEKDAY) {
        /* 7 ends a range as the Sunday after 6; elsewhere it is 0. */
        size = 7;
        if (last != 7) {
            first %= 7;
            last %= 7;
        }
    }
    if (first > last && ps->field == DIBS__CRON_YEAR)
        return FAIL_AT(ps, at, "the range goes backwards");
    if (first > last)
        last += size;
    for (int n = first; n <= last; n += step)
        set_bit(ps, n > fields[ps->field].high ? n - size : n);
    return DIBS_OK;
}

static dibs_status read_step(parser *ps, span part, int *step)
{
    int longest = fields[ps->field].high - fields[ps->field].low;

    if (!read_digits(part, DIGITS_MAX, step) || *step == 0)
        return FAIL_AT(ps, part.at, "'%.*s' is not a step", shown(part),
                       part.at);
    if (*step > longest && ps->field != DIBS__CRON_YEAR)
        return FAIL_AT(ps, part.at,
                       "a step of %d is longer than the %s; '@every' has no "
                       "such bound",
                       *step, fields[ps->field].name);
    return DIBS_OK;
}

static bool is_star(span part)
{
    return part.len == 1 && (part.at[0] == '*' || part.at[0] == '?');
}

/* The ends of an item without its step. */
static dibs_status
read_ends(parser *ps, span body, bool stepped, int *first, int *last)
{
    bool weekday = ps->field == DIBS__CRON_WEEKDAY;
    const char *dash = memchr(body.at, '-', body.len);
    dibs_status rc;

    *first = fields[ps->field].low;
    *last = weekday ? 6 : fields[ps->field].high;
    if (is_star(body)) {
        if (body.at[0] == '?' && !weekday && ps->field != DIBS__CRON_DAY)
            return FAIL_AT(ps, body.at, "? is for the two day fields");
        return DIBS_OK;
    }
    if (dash) {
        rc = read_value(ps, cut_before(body, dash), first);
        return rc != DIBS_OK ? rc : read_value(ps, cut_after(body, dash), last);
    }
    rc = read_value(ps, body, first);
    if (rc == DIBS_OK && (!stepped || (weekday && *first == 7)))
        *last = *first;
    return rc;
}

static dibs_status read_range(parser *ps, span item)
{
    const char *slash = memchr(item.at, '/', item.len);
    span body = slash ? cut_before(item, slash) : item;
    int first, last, step = 1;
    dibs_status rc = DIBS_OK;

    if (slash)
        rc = read_step(ps, cut_after(item, slash), &step);
    if (rc == DIBS_OK)
        rc = read_ends(ps, body, slash != NULL, &first, &last);
    return rc == DIBS_OK ? set_range(ps, item.at, first, last, step) : rc;
}

/* L, LW, L-3 and 15W. *taken: it was one of these. */
static dibs_status read_day_form(parser *ps, span item, bool *taken)
{
    dibs__cron *cron = ps->cron;
    char last = item.at[item.len - 1];
    dibs_status rc = DIBS_OK;
    int n;

    *taken = true;
    if (is_word(item, "L")) {
        cron->last_days |= 1u;
    } else if (is_word(item, "LW") || is_word(item, "WL")) {
        cron->near_last = true;
    } else if (item.len > 2 && strncasecmp(item.at, "L-", 2) == 0 &&
               read_digits((span){item.at + 2, item.len - 2}, 2, &n)) {
        if (n < 1 || n > 30)
            return FAIL_AT(ps, item.at, "L-%d: 1 to 30 days before the last",
                           n);
        cron->last_days |= 1u << n;
    } else if ((last == 'W' || last == 'w') &&
               read_digits((span){item.at, item.len - 1}, 2, &n)) {
        rc = read_value(ps, (span){item.at, item.len - 1}, &n);
        if (rc == DIBS_OK)
            cron->near_days |= 1u << n;
    } else {
        *taken = false;
    }
    return rc;
}

/* Three letters or one digit, as before # and L. */
static bool is_day_name(span part)
{
    int n;

    if (part.len != NAME_LETTERS)
        return read_digits(part, 1, &n);
    for (size_t i = 0; i < part.len; i++) {
        char c = (char)(part.at[i] | 0x20);

        if (c < 'a' || c > 'z')
            return false;
    }
    return true;
}

/* FRI#2, FRI#L and FRIL. *taken: it was one of these. */
static dibs_status read_weekday_form(parser *ps, span item, bool *taken)
{
    const char *mark = memchr(item.at, '#', item.len);
    char last = item.at[item.len - 1];
    bool is_last = last == 'L' || last == 'l';
    span name = cut_before(item, mark ? mark : item.at + item.len - 1);
    dibs_status rc;
    int day;

    *taken = is_word(item, "L");
    if (*taken)
        return FAIL_AT(ps, item.at,
                       "L alone means different days elsewhere; write SAT or "
                       "SUN, or FRIL for the last Friday");
    *taken = is_day_name(name) &&
             (mark ? mark + 2 == item.at + item.len &&
                         (is_last || (last >= '0' && last <= '9'))
                   : is_last);
    if (!*taken)
        return DIBS_OK;
    rc = read_value(ps, name, &day);
    if (rc != DIBS_OK)
        return rc;
    if (is_last) {
        ps->cron->last_weekdays =
            (uint8_t)(ps->cron->last_weekdays | 1u << day % 7);
        return DIBS_OK;
    }
    if (last < '1' || last > '5')
        return FAIL_AT(ps, item.at,
                       "a month has the first to the fifth of a weekday");
    ps->cron->nth[last - '0'] =
        (uint8_t)(ps->cron->nth[last - '0'] | 1u << day % 7);
    return DIBS_OK;
}

static dibs_status read_item(parser *ps, span item)
{
    dibs_status rc = DIBS_OK;
    bool taken = false;

    if (item.len == 0)
        return FAIL_AT(ps, item.at, "there is an empty item in the %s",
                       fields[ps->field].name);
    if (ps->field == DIBS__CRON_DAY)
        rc = read_day_form(ps, item, &taken);
    else if (ps->field == DIBS__CRON_WEEKDAY)
        rc = read_weekday_form(ps, item, &taken);
    return rc != DIBS_OK || taken ? rc : read_range(ps, item);
}

static dibs_status read_field(parser *ps, span part)
{
    for (;;) {
        const char *comma = memchr(part.at, ',', part.len);
        dibs_status rc = read_item(ps, comma ? cut_before(part, comma) : part);

        if (rc != DIBS_OK || !comma)
            return rc;
        part = cut_after(part, comma);
    }
}

/* Splits at spaces and tabs; the number of words, of which `max` are kept. */
static size_t split_words(const char *text, span *out, size_t max)
{
    size_t count = 0;

    for (text += strspn(text, " \t"); *text; text += strspn(text, " \t")) {
        size_t len = strcspn(text, " \t");

        if (count < max)
            out[count] = (span){text, len};
        count++;
        text += len;
    }
    return count;
}

static bool is_year(span part)
{
    int year;
    size_t digits = 0;

    while (digits < part.len && part.at[digits] >= '0' &&
           part.at[digits] <= '9')
        digits++;
    return read_digits((span){part.at, digits}, 4, &year) && year >= 1900 &&
           year < 2200;
}

static dibs_status read_fields(parser *ps, const char *text)
{
    dibs__cron *cron = ps->cron;
    span part[DIBS__CRON_FIELDS] = {{0}};
    size_t count = split_words(text, part, DIBS__CRON_FIELDS);
    size_t first = count == 5 ? DIBS__CRON_MINUTE : DIBS__CRON_SECOND;

    if (count < 5 || count > 7)
        return FAIL_AT(ps, ps->text,
                       "%zu fields; 5, 6 (seconds first) or 7 (year last) were "
                       "expected",
                       count);
    if (count == 6 && is_year(part[5]))
        return FAIL_AT(ps, part[5].at,
                       "a year needs seven fields, seconds first");
    cron->has_seconds = count > 5;
    cron->has_years = count == 7;
    for (size_t i = 0; i < count; i++) {
        dibs_status rc;

        ps->field = (dibs__cron_field)(first + i);
        rc = read_field(ps, part[i]);
        if (rc != DIBS_OK)
            return rc;
    }
    if (!cron->has_seconds)
        cron->seconds = 1;
    cron->either = !strchr("*?", part[DIBS__CRON_DAY - first].at[0]) &&
                   !strchr("*?", part[DIBS__CRON_WEEKDAY - first].at[0]);
    cron->all_hours = cron->hours == (1u << 24) - 1;
    cron->star = part[DIBS__CRON_MINUTE - first].at[0] == '*' ||
                 (cron->has_seconds && part[0].at[0] == '*');
    return DIBS_OK;
}

/* Reads "90m" and "1d12h30m15s": each unit once, in this order. */
static bool read_every(span part, int64_t *out_s)
{
    static const char units[] = "dhms";
    static const int64_t size_s[] = {DIBS__DAY_S, 3600, 60, 1};
    size_t unit = 0, at = 0;

    *out_s = 0;
    while (at < part.len) {
        int64_t number = 0;
        size_t begin = at;
        const char *found;

        for (; at < part.len && part.at[at] >= '0' && part.at[at] <= '9'; at++)
            number = number > EVERY_MAX_S ? number
                                          : number * 10 + (part.at[at] - '0');
        if (at == begin || at == part.len)
            return false;
        found = memchr(units + unit, part.at[at++], sizeof(units) - 1 - unit);
        if (!found)
            return false;
        unit = (size_t)(found - units);
        *out_s += number * size_s[unit++];
    }
    return part.len > 0;
}

static dibs_status read_alias(parser *ps, span name)
{
    static const struct {
        const char *name;
        const char *text;
    } aliases[] = {
        {"@yearly", "0 0 1 1 *"},  {"@annually", "0 0 1 1 *"},
        {"@monthly", "0 0 1 * *"}, {"@weekly", "0 0 * * 0"},
        {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };

    for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
        if (is_word(name, aliases[i].name))
            return read_fields(ps, aliases[i].text);
    }
    return FAIL_AT(ps, name.at,
                   "'%.*s' is not known; there are @yearly, @monthly, @weekly, "
                   "@daily, @hourly and @every 90m",
                   shown(name), name.at);
}

static dibs_status read_at(parser *ps)
{
    span part[2] = {{0}};
    size_t count = split_words(ps->text, part, 2);

    if (count != 2 || !is_word(part[0], "@every")) {
        if (count > 1)
            part[0].len = strlen(part[0].at);
        return read_alias(ps, part[0]);
    }
    if (!read_every(part[1], &ps->cron->every_s))
        return FAIL_AT(ps, part[1].at,
                       "'%.*s' is not a duration; write one like 1h30m",
                       shown(part[1]), part[1].at);
    if (ps->cron->every_s < 1 || ps->cron->every_s > EVERY_MAX_S)
        return FAIL_AT(ps, part[1].at,
                       "every 1s to 366d: '%.*s' is out of bounds",
                       shown(part[1]), part[1].at);
    return DIBS_OK;
}

dibs_status dibs__cron_parse(const char *text, dibs__cron *out, int *column,
                             dibs_error *err)
{
    parser ps = {.text = text, .cron = out, .column = column, .err = err};
    dibs_status rc;
    dibs__zone *utc = NULL;
    dibs__tick tick;

    *out = (dibs__cron){0};
    if (strnlen(text, DIBS__CRON_TEXT_MAX + 1) > DIBS__CRON_TEXT_MAX)
        return FAIL_AT(&ps, text, "the expression is longer than %d bytes",
                       DIBS__CRON_TEXT_MAX);
    if (text[strspn(text, " \t")] == '@')
        rc = read_at(&ps);
    else
        rc = read_fields(&ps, text);
    if (rc != DIBS_OK || out->every_s)
        return rc;
    rc = dibs__zone_open("UTC", &utc, err);
    if (rc != DIBS_OK)
        return rc;
    if (!dibs__cron_next(out, utc, -1, &tick))
        rc = FAIL_AT(&ps, text, "it never fires");
    dibs__zone_free(utc);
    return rc;
}
