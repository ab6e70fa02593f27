/* test_cron_random.c - random expressions beside a search that looks at every minute,
 * and what holds for any of them.
 *
 * The search knows the sets that an expression was made from, not our parser, and the
 * clocks of libc, not our zones. SEED=N makes other expressions. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/cron.h"
#include "seed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum {
    CASES = 16, /* for each change of a clock */
    GRAIN_S = 60,
    PAST = 25 * 60,
    MINUTES = 3 * 24 * 60
};

/* Zones, each with a moment shortly before its clocks change. */
static const struct {
    const char *name;
    int64_t near[2];
} zones[] = {
    {"Europe/Berlin", {1806195600, 1824944400}},
    {"America/New_York", {1805007600, 1825567200}},
    {"Australia/Lord_Howe", {1806764400, 1822491000}},
    {"America/Santiago", {1806807600, 1820116800}},
    {"Antarctica/Troll", {1806195600, 1824944400}},
    {"Europe/Dublin", {1806195600, 1824944400}},
    {"Pacific/Apia", {1325239200, 1301752800}},
    {"Asia/Kolkata", {1806195600, 1824944400}},
};

/* An expression, and the sets it stands for. */
typedef struct made {
    char text[256];
    bool minute[60];
    bool hour[24];
    bool day[32];
    bool month[13];
    bool weekday[7];
    bool either;
    bool all_hours;
    bool star;
} made;

static uint64_t state_of_dice;

static unsigned draw(unsigned below)
{
    state_of_dice ^= state_of_dice << 13;
    state_of_dice ^= state_of_dice >> 7;
    state_of_dice ^= state_of_dice << 17;
    return (unsigned)(state_of_dice >> 33) % below;
}

/* Appends an item and sets what it stands for. */
static void make_item(made *md, bool *set, int low, int high)
{
    char *end = md->text + strlen(md->text);
    size_t room = sizeof(md->text) - strlen(md->text);
    int size = high - low + 1;
    int first = low + (int)draw((unsigned)size);
    int span = (int)draw((unsigned)size / 2 + 1);
    int last = low + (first - low + span) % size;
    int step = 1 + (int)draw(size > 8 ? 8 : 3);

    switch (draw(4)) {
    case 0:
        snprintf(end, room, "%d", first);
        span = 0;
        break;
    case 1:
        snprintf(end, room, "%d-%d", first, last);
        step = 1;
        break;
    case 2:
        snprintf(end, room, "%d-%d/%d", first, last, step);
        break;
    default:
        snprintf(end, room, "%d/%d", first, step);
        span = high - first;
    }
    for (int i = 0; i <= span; i += step)
        set[low + (first - low + i) % size] = true;
}

/* A field; true: it begins with a star. */
static bool make_field(made *md, bool *set, int low, int high, unsigned stars)
{
    size_t len = strlen(md->text);
    int step;

    if (len > 0)
        snprintf(md->text + len, sizeof(md->text) - len, " ");
    len = strlen(md->text);
    if (draw(10) < stars) {
        step = draw(2) ? 1 : 2 + (int)draw(5);
        if (high - low < 7)
            step = 1 + (int)draw(3);
        if (step == 1)
            snprintf(md->text + len, sizeof(md->text) - len, "*");
        else
            snprintf(md->text + len, sizeof(md->text) - len, "*/%d", step);
        for (int n = low; n <= high; n += step)
            set[n] = true;
        return true;
    }
    for (unsigned more = 1 + draw(2); more > 0; more--) {
        make_item(md, set, low, high);
        len = strlen(md->text);
        if (more > 1)
            snprintf(md->text + len, sizeof(md->text) - len, ",");
    }
    return false;
}

static void make_cron(made *md)
{
    bool any_day, any_weekday;

    memset(md, 0, sizeof(*md));
    md->star = make_field(md, md->minute, 0, 59, 4);
    (void)make_field(md, md->hour, 0, 23, 4);
    any_day = make_field(md, md->day, 1, 31, 7);
    (void)make_field(md, md->month, 1, 12, 9);
    any_weekday = make_field(md, md->weekday, 0, 6, 7);
    md->either = !any_day && !any_weekday;
    md->all_hours = true;
    for (int i = 0; i < 24; i++)
        md->all_hours = md->all_hours && md->hour[i];
}

static bool matches(const made *md, const struct tm *tm)
{
    bool day = md->day[tm->tm_mday], weekday = md->weekday[tm->tm_wday];

    return md->minute[tm->tm_min] && md->hour[tm->tm_hour] &&
           md->month[tm->tm_mon + 1] &&
           (md->either ? day || weekday : day && weekday);
}

/* The clocks of a zone around a change, as libc tells them: a day of the past, and the
 * days that are compared. */
typedef struct window {
    const char *name;
    dibs__zone *zone;
    int64_t from; /* the first minute that is compared */
    int64_t local[PAST + MINUTES];
    struct tm tm[PAST + MINUTES];
} window;

static void open_window(window *win, const char *name, int64_t near)
{
    win->name = name;
    win->from = near - 86400 - (int64_t)draw(24) * 3600;
    setenv("TZ", name, 1);
    tzset();
    CHECK(DIBS_OK, dibs__zone_open(name, &win->zone, err));
    for (int i = 0; i < PAST + MINUTES; i++) {
        time_t at = win->from + (int64_t)(i - PAST) * GRAIN_S;

        localtime_r(&at, &win->tm[i]);
        win->local[i] = at + win->tm[i].tm_gmtoff;
    }
}

static bool local_matches(const made *md, int64_t local)
{
    time_t moment = local;
    struct tm tm;

    gmtime_r(&moment, &tm);
    return matches(md, &tm);
}

/* The rules as they are defined, with a look at all that was before. */
static bool is_tick(const made *md, const window *win, int i)
{
    int64_t local = win->local[i];

    if (!md->all_hours) {
        for (int64_t l = win->local[i - 1] + GRAIN_S; l < local; l += GRAIN_S) {
            if (local_matches(md, l))
                return true;
        }
    }
    if (!matches(md, &win->tm[i]))
        return false;
    if (md->all_hours || md->star)
        return true;
    for (int k = i - PAST; k < i; k++) {
        if (win->local[k] == local)
            return false;
    }
    return true;
}

static void
compare_ticks(const made *md, const dibs__cron *cron, const window *win)
{
    dibs__tick next, prev;
    int64_t after = win->from - 1;
    bool some = dibs__cron_next(cron, win->zone, after, &next);

    for (int i = PAST; i < PAST + MINUTES; i++) {
        int64_t at = win->from + (int64_t)(i - PAST) * GRAIN_S;
        bool ours = some && next.at == at;

        if (is_tick(md, win, i) != ours)
            fail_msg("%s in %s at %lld: %s tick", md->text, win->name,
                     (long long)at, ours ? "not a" : "a");
        if (!ours)
            continue;
        if (!dibs__cron_prev(cron, win->zone, next.at + 1, &prev) ||
            prev.at != next.at)
            fail_msg("%s in %s at %lld: not found backwards", md->text,
                     win->name, (long long)at);
        assert_true(!dibs__cron_prev(cron, win->zone, next.at, &prev) ||
                    prev.at <= after);
        after = next.at;
        some = dibs__cron_next(cron, win->zone, after, &next);
        assert_true(!some || next.at > after);
    }
}

static void ticks_are_those_of_a_search_by_minutes(void **state)
{
    static window win;

    (void)state;
    for (int i = 0; i < 2 * (int)COUNT_OF(zones); i++) {
        open_window(&win, zones[i / 2].name, zones[i / 2].near[i % 2]);
        for (int k = 0; k < CASES; k++) {
            dibs__cron cron;
            made md;
            int column;

            do /* but those that never fire */
                make_cron(&md);
            while (dibs__cron_parse(md.text, &cron, &column, NULL) != DIBS_OK);
            compare_ticks(&md, &cron, &win);
        }
        dibs__zone_free(win.zone);
    }
}

/* Over all years: next and prev tell the same ticks, in order. */
static void next_and_prev_are_each_others_inverse(void **state)
{
    (void)state;
    for (int i = 0; i < 20 * CASES; i++) {
        int64_t after = (int64_t)draw(2000000000) * 3 + draw(1000);
        dibs__zone *zone = NULL;
        dibs__cron cron;
        dibs__tick one, two, back;
        made md;
        int column;

        CHECK(DIBS_OK, dibs__zone_open(zones[(size_t)i % COUNT_OF(zones)].name,
                                       &zone, err));
        make_cron(&md);
        if (dibs__cron_parse(md.text, &cron, &column, NULL) == DIBS_OK &&
            dibs__cron_next(&cron, zone, after, &one) &&
            dibs__cron_next(&cron, zone, one.at, &two)) {
            assert_true(one.at > after && two.at > one.at);
            assert_true(dibs__cron_prev(&cron, zone, two.at, &back));
            assert_memory_equal(&back, &one, sizeof(one));
            assert_true(dibs__cron_next(&cron, zone, one.at - 1, &back));
            assert_int_equal(back.at, one.at);
            assert_true(!dibs__cron_prev(&cron, zone, one.at, &back) ||
                        back.at <= after);
        }
        dibs__zone_free(zone);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_those_of_a_search_by_minutes),
        cmocka_unit_test(next_and_prev_are_each_others_inverse),
    };

    setenv("TZDIR", JOBS_ZONES, 1);
    state_of_dice = seed_of_run() * 0x9e3779b97f4a7c15u;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
