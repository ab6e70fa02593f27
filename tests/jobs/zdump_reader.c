/* zdump_reader.c - compares what `zdump -v` prints on standard input with our zones.
 *
 *     zdump -v -c FROM,TO ZONE... | zdump_reader FROM,TO COUNT
 *
 * Every line's offset must be ours; shifts must be ours, and ours must be among them. */
/* SPDX-License-Identifier: MIT */
#include "jobs/calendar.h"
#include "jobs/zone.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults;
static long shifts_seen;

typedef struct line {
    char zone[80];
    int64_t at;
    int32_t offset_s;
} line;

/* What is known of the zone that is being read. */
typedef struct reading {
    dibs__zone *zone;
    char name[80];
    int64_t from;
    int64_t to;
    int64_t at; /* the next shift of ours has to be after this */
    line last;
} reading;

static bool parse_line(const char *text, line *out)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char month[4];
    const char *found, *offset = strstr(text, "gmtoff=");
    int day, hour, minute, second, year;

    if (!offset || sscanf(text, "%79s %*3s %3s %d %d:%d:%d %d UT", out->zone,
                          month, &day, &hour, &minute, &second, &year) != 7)
        return false;
    found = strstr(months, month);
    if (!found || year < 1)
        return false;
    out->at =
        dibs__day_of(year, (int)(found - months) / 3 + 1, day) * DIBS__DAY_S +
        (hour * 60 + minute) * 60 + second;
    out->offset_s = (int32_t)strtol(offset + 7, NULL, 10);
    return true;
}

static void report_fault(const char *zone, int64_t at, const char *text)
{
    printf("%s at %" PRId64 ": %s\n", zone, at, text);
    faults++;
}

/* Ours up to a moment, at which zdump has its next one, or nothing more. */
static void skip_to(reading *rd, int64_t at)
{
    dibs__segment seg;

    dibs__zone_find(rd->zone, rd->at, &seg);
    while (seg.end < at) {
        report_fault(rd->name, seg.end, "a shift that zdump does not have");
        dibs__zone_find(rd->zone, seg.end, &seg);
    }
    rd->at = at;
}

static void end_zone(reading *rd)
{
    if (rd->zone)
        skip_to(rd, rd->to);
    dibs__zone_free(rd->zone);
    rd->zone = NULL;
}

static bool begin_zone(reading *rd, const char *name)
{
    dibs_error err = {0};

    end_zone(rd);
    snprintf(rd->name, sizeof(rd->name), "%s", name);
    if (dibs__zone_open(name, &rd->zone, &err) != DIBS_OK) {
        report_fault(name, 0, err.message);
        return false;
    }
    rd->at = rd->from;
    rd->last = (line){.at = INT64_MIN};
    return true;
}

static void compare_line(reading *rd, const line *ln)
{
    dibs__segment seg;

    dibs__zone_find(rd->zone, ln->at, &seg);
    if (seg.offset_s != ln->offset_s)
        report_fault(ln->zone, ln->at, "another offset");
    if (ln->at == rd->last.at + 1 && ln->offset_s != rd->last.offset_s &&
        ln->at >= rd->from) {
        shifts_seen++;
        skip_to(rd, ln->at);
        if (seg.begin != ln->at || seg.before_s != rd->last.offset_s)
            report_fault(ln->zone, ln->at, "a shift that we do not have");
    }
    rd->last = *ln;
}

int main(int argc, char **argv)
{
    reading rd = {0};
    char text[512];
    int zones = 0, from, to;

    if (argc != 3 || sscanf(argv[1], "%d,%d", &from, &to) != 2)
        return 64;
    rd.from = dibs__day_of(from, 1, 1) * DIBS__DAY_S;
    rd.to = dibs__day_of(to, 1, 1) * DIBS__DAY_S;
    while (fgets(text, sizeof(text), stdin)) {
        line ln;

        if (strncmp(text, rd.name, strlen(rd.name)) != 0 || !rd.zone ||
            text[strlen(rd.name)] != ' ') {
            if (sscanf(text, "%79s", ln.zone) != 1)
                continue;
            zones++;
            if (!begin_zone(&rd, ln.zone))
                return 1;
        }
        if (parse_line(text, &ln))
            compare_line(&rd, &ln);
    }
    end_zone(&rd);
    printf("%d zones, %ld shifts, %d faults\n", zones, shifts_seen, faults);
    if (zones != (int)strtol(argv[2], NULL, 10) || shifts_seen == 0)
        return 1;
    return faults ? 1 : 0;
}
