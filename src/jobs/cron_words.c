/* cron_words.c - a cron expression in words. Pure. */
/* SPDX-License-Identifier: MIT */
#include "jobs/calendar.h"
#include "jobs/cron.h"
#include "jobs/cron_fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLOCKS_MAX = 6,     /* so many times of day are listed one by one */
    PROGRESSION_MIN = 4 /* so many numbers in equal steps are not */
};

static const char *const month_names[] = {"",          "January", "February",
                                          "March",     "April",   "May",
                                          "June",      "July",    "August",
                                          "September", "October", "November",
                                          "December"};
static const char *const weekday_names[] = {"Sunday",    "Monday",   "Tuesday",
                                            "Wednesday", "Thursday", "Friday",
                                            "Saturday"};
static const char *const nth_names[] = {"",      "first",  "second",
                                        "third", "fourth", "fifth"};

/* Numbers of a field. */
typedef struct set {
    int low;
    int high;
    bool wraps; /* after the highest comes the lowest */
    const char *const *names;
    bool has[DIBS__CRON_YEARS];
} set;

/* Phrases with ", " between them, and a word before the last. */
typedef struct list {
    dibsx_buf *out;
    const char *word; /* "and" */
    size_t left;      /* to come */
    size_t done;
} list;

static void begin_phrase(list *ls)
{
    if (ls->done > 0 && ls->left == 1)
        dibsx_buf_printf(ls->out, " %s ", ls->word);
    else if (ls->done > 0)
        dibsx_buf_puts(ls->out, ", ");
    ls->done++;
    ls->left--;
}

static void
fill_set(set *st, uint64_t bits, int low, int high, const char *const *names)
{
    *st = (set){.low = low, .high = high, .wraps = true, .names = names};
    for (int n = low; n <= high; n++)
        st->has[n - low] = bits >> n & 1;
}

static int count_set(const set *st)
{
    int count = 0;

    for (int i = 0; i <= st->high - st->low; i++)
        count += st->has[i];
    return count;
}

static bool has_all(const set *st)
{
    return count_set(st) == st->high - st->low + 1;
}

static void put_number(dibsx_buf *out, const set *st, int i)
{
    if (st->names)
        dibsx_buf_puts(out, st->names[st->low + i]);
    else
        dibsx_buf_printf(out, "%d", st->low + i);
}

/* The step of a set in equal steps, which is not 1; 0: it is none. */
static int find_step(const set *st, int *first, int *last)
{
    int step = 0;

    *first = *last = -1;
    if (count_set(st) < PROGRESSION_MIN)
        return 0;
    for (int i = 0; i <= st->high - st->low; i++) {
        if (!st->has[i])
            continue;
        if (*first < 0)
            *first = i;
        else if (step == 0)
            step = i - *last;
        else if (i - *last != step)
            return 0;
        *last = i;
    }
    return step > 1 ? step : 0;
}

/* A run of numbers without a gap, of three at least, is one phrase. */
static int count_run(const set *st, int begin)
{
    int size = st->high - st->low + 1, run = 1;

    while (run < size && st->has[(begin + run) % size] &&
           (st->wraps || begin + run < size))
        run++;
    return run;
}

/* Where to begin, so that a run round the end is one. */
static int find_begin(const set *st)
{
    int size = st->high - st->low + 1, begin = 0;

    if (!st->wraps || has_all(st))
        return 0;
    while (st->has[begin] && st->has[(begin + size - 1) % size])
        begin = (begin + size - 1) % size;
    return begin;
}

/* Calls put_number for each phrase, or counts them. */
static size_t walk_set(const set *st, list *ls)
{
    int size = st->high - st->low + 1, begin = find_begin(st);
    size_t count = 0;

    for (int k = 0; k < size;) {
        int i = (begin + k) % size;
        int run = st->has[i] ? count_run(st, i) : 1;

        if (k + run > size)
            run = size - k;
        if (run < 3)
            run = 1;
        count += st->has[i];
        if (st->has[i] && ls) {
            begin_phrase(ls);
            put_number(ls->out, st, i);
            if (run > 1) {
                dibsx_buf_puts(ls->out, " to ");
                put_number(ls->out, st, (i + run - 1) % size);
            }
        }
        k += run;
    }
    return count;
}

static void put_set(dibsx_buf *out, const set *st, const char *word)
{
    int first, last, step = find_step(st, &first, &last);
    list ls = {.out = out, .word = word};

    if (step > 0 && !st->names) {
        put_number(out, st, first);
        dibsx_buf_puts(out, " to ");
        put_number(out, st, last);
        dibsx_buf_printf(out, " in steps of %d", step);
        return;
    }
    ls.left = walk_set(st, NULL);
    (void)walk_set(st, &ls);
}

/* "minute 5", "minutes 0 and 30", "every minute"; the first phrase of all also says
 * "at", or "every 15 minutes". True: it begins with every. */
static bool
put_unit(dibsx_buf *out, uint64_t bits, int high, const char *unit, bool leads)
{
    int first, last, step;
    set st;

    fill_set(&st, bits, 0, high, NULL);
    step = find_step(&st, &first, &last);
    if (has_all(&st)) {
        dibsx_buf_printf(out, "every %s", unit);
        return true;
    }
    if (leads && step > 0 && first == 0 && last + step == high + 1) {
        dibsx_buf_printf(out, "every %d %ss", step, unit);
        return true;
    }
    dibsx_buf_printf(out, "%s%s%s ", leads ? "at " : "", unit,
                     count_set(&st) > 1 ? "s" : "");
    put_set(out, &st, "and");
    return false;
}

static void put_clocks(const dibs__cron *cron, dibsx_buf *out, size_t count)
{
    list ls = {.out = out, .word = "and", .left = count};

    dibsx_buf_puts(out, "at ");
    for (int s = 0; s < DIBS__DAY_S; s++) {
        if (!(cron->hours >> (s / 3600) & 1)) {
            s += 3599; /* the rest of the hour: a list of jobs has many */
            continue;
        }
        if (!(cron->minutes >> (s / 60 % 60) & 1)) {
            s += 59;
            continue;
        }
        if (!(cron->seconds >> (s % 60) & 1))
            continue;
        begin_phrase(&ls);
        dibsx_buf_printf(out, "%02d:%02d", s / 3600, s / 60 % 60);
        if (cron->seconds != 1)
            dibsx_buf_printf(out, ":%02d", s % 60);
    }
}

/* The time of day. True: it is a list of times. */
static bool put_time(const dibs__cron *cron, dibsx_buf *out)
{
    const uint64_t all_minutes = ((uint64_t)1 << 60) - 1;
    size_t count = (size_t)__builtin_popcountll(cron->seconds) *
                   (size_t)__builtin_popcountll(cron->minutes) *
                   (size_t)__builtin_popcount(cron->hours);
    bool every = false, leads = true;

    if (count <= CLOCKS_MAX) {
        put_clocks(cron, out, count);
        return true;
    }
    if (cron->seconds != 1) {
        every = put_unit(out, cron->seconds, 59, "second", true);
        leads = false;
    }
    if (leads || cron->minutes != all_minutes ||
        (!every && cron->minutes == all_minutes)) {
        dibsx_buf_puts(out, leads ? "" : " of ");
        every = put_unit(out, cron->minutes, 59, "minute", leads);
    }
    if (!cron->all_hours || !every) {
        dibsx_buf_puts(out, " of ");
        (void)put_unit(out, cron->hours, 23, "hour", false);
    }
    return false;
}

static void put_days(dibsx_buf *out, const dibs__cron *cron)
{
    list ls = {.out = out, .word = "and"};
    set st;

    fill_set(&st, cron->days, 1, 31, NULL);
    ls.left = (size_t)(cron->days != 0) + cron->near_last +
              (size_t)__builtin_popcount(cron->last_days) +
              (size_t)__builtin_popcount(cron->near_days);
    if (cron->days) {
        begin_phrase(&ls);
        dibsx_buf_puts(out, count_set(&st) > 1 ? "days " : "day ");
        put_set(out, &st, "and");
    }
    for (int n = 1; n <= 31; n++) {
        if (!(cron->near_days >> n & 1))
            continue;
        begin_phrase(&ls);
        dibsx_buf_printf(out, "the workday nearest to day %d", n);
    }
    for (int n = 30; n >= 0; n--) {
        if (!(cron->last_days >> n & 1))
            continue;
        begin_phrase(&ls);
        if (n == 0)
            dibsx_buf_puts(out, "the last day");
        else if (n == 1)
            dibsx_buf_puts(out, "the day before the last");
        else
            dibsx_buf_printf(out, "the day %d days before the last", n);
    }
    if (cron->near_last) {
        begin_phrase(&ls);
        dibsx_buf_puts(out, "the last workday");
    }
    dibsx_buf_puts(out, " of the month");
}

static void
put_weekdays(dibsx_buf *out, const dibs__cron *cron, const char *word)
{
    list ls = {.out = out, .word = word};
    set st;

    fill_set(&st, cron->weekdays, 0, 6, weekday_names);
    ls.left =
        walk_set(&st, NULL) + (size_t)__builtin_popcount(cron->last_weekdays);
    for (int n = 1; n <= 5; n++)
        ls.left += (size_t)__builtin_popcount(cron->nth[n]);
    (void)walk_set(&st, &ls);
    for (int n = 1; n <= 6; n++) {
        uint8_t days = n == 6 ? cron->last_weekdays : cron->nth[n];

        for (int weekday = 0; weekday < 7; weekday++) {
            if (!(days >> weekday & 1))
                continue;
            begin_phrase(&ls);
            dibsx_buf_printf(out, "the %s %s of the month",
                             n == 6 ? "last" : nth_names[n],
                             weekday_names[weekday]);
        }
    }
}

/* The days; nothing if all count. */
static bool put_date(const dibs__cron *cron, dibsx_buf *out)
{
    bool any_day = cron->days == 0xfffffffe;
    bool any_weekday = cron->weekdays == 0x7f;

    if (cron->either ? any_day || any_weekday : any_day && any_weekday)
        return false;
    dibsx_buf_puts(out, " on ");
    if (cron->either || !any_day)
        put_days(out, cron);
    if (cron->either || (!any_day && !any_weekday))
        dibsx_buf_puts(out, cron->either ? ", and on " : " if that is ");
    if (cron->either || !any_weekday)
        put_weekdays(out, cron, cron->either || any_day ? "and" : "or");
    return true;
}

static void put_months(const dibs__cron *cron, dibsx_buf *out)
{
    set st;

    fill_set(&st, cron->months, 1, 12, month_names);
    if (!has_all(&st)) {
        dibsx_buf_puts(out, " in ");
        put_set(out, &st, "and");
    }
    if (!cron->has_years)
        return;
    st = (set){.low = DIBS__CRON_YEAR_MIN, .high = DIBS__CRON_YEAR_MAX};
    for (int year = st.low; year <= st.high; year++)
        st.has[year - st.low] = dibs__cron_has_year(cron, year);
    if (has_all(&st))
        return;
    dibsx_buf_printf(out, ", in the year%s ", count_set(&st) > 1 ? "s" : "");
    put_set(out, &st, "and");
}

static void put_every(const dibs__cron *cron, dibsx_buf *out)
{
    static const char units[] = "dhms";
    static const int64_t size_s[] = {DIBS__DAY_S, 3600, 60, 1};
    int64_t left = cron->every_s;

    dibsx_buf_puts(out, "every ");
    for (size_t i = 0; i < sizeof(units) - 1; i++) {
        if (left >= size_s[i])
            dibsx_buf_printf(out, "%" PRId64 "%c", left / size_s[i], units[i]);
        left %= size_s[i];
    }
}

void dibs__cron_words(const dibs__cron *cron, dibsx_buf *out)
{
    bool clocks;

    if (cron->every_s) {
        put_every(cron, out);
        return;
    }
    clocks = put_time(cron, out);
    if (!put_date(cron, out) && clocks)
        dibsx_buf_puts(out, " every day");
    put_months(cron, out);
}

const char *dibs__cron_shift_words(const dibs__cron *cron)
{
    if (cron->every_s)
        return "It counts real time: changes of the clocks do not matter.";
    if (cron->all_hours)
        return "It follows real time when clocks change: nothing is made up "
               "for a gap, and a repeated hour runs twice.";
    if (cron->star)
        return "When clocks change, times in a gap run once, at its end; a "
               "repeated hour runs twice.";
    return "When clocks change, times in a gap run once, at its end; a "
           "repeated time runs the first time only.";
}
