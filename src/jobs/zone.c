/* zone.c - opens a zone and finds its segments. */
/* SPDX-License-Identifier: MIT */
#include "jobs/zone.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "jobs/calendar.h"
#include "jobs/zone_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_FOLDER "/usr/share/zoneinfo"

enum {
    PATH_SIZE = 4096,
    YEAR_MIN = 1000,
    YEAR_MAX = 2400,
    WINDOW = 5 /* years of shifts around a moment */
};

struct dibs__zone {
    char name[DIBS__ZONE_NAME_MAX + 1];
    dibs__zone_data data;
};

static const char *zone_folder(void)
{
    const char *folder = getenv("TZDIR");

    return folder && folder[0] ? folder : USUAL_FOLDER;
}

/* Letters, digits, _ + - and / inside: no name leads out of the folder. */
static bool is_name(const char *name)
{
    size_t len = strnlen(name, DIBS__ZONE_NAME_MAX + 1);

    if (len < 1 || len > DIBS__ZONE_NAME_MAX || name[0] == '/' ||
        name[len - 1] == '/')
        return false;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_+-/") == len;
}

static dibs_status
fail_file(const char *name, const char *path, int number, dibs_error *err)
{
    if (number == ENOENT || number == ENOTDIR)
        return dibsx_fail_at(err, DIBS_NOTFOUND, dibsx_errno_name(number),
                             "the zone %s is not in %.80s; use a name like "
                             "Europe/Berlin, or install the package tzdata",
                             name, zone_folder());
    return dibsx_fail_at(err, number == EACCES ? DIBS_DENIED : DIBS_INVALID,
                         dibsx_errno_name(number),
                         "cannot read the zone file %.100s: %s", path,
                         strerror(number));
}

/* Reads at most `room` bytes; an errno number, or 0. */
static int read_bytes(int fd, unsigned char *bytes, size_t room, size_t *len)
{
    *len = 0;
    while (*len < room) {
        ssize_t n = read(fd, bytes + *len, room - *len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            return 0;
        *len += (size_t)n;
    }
    return 0;
}

static dibs_status load_open_file(dibs__zone *zone, const char *path, int fd,
                                  unsigned char *bytes, dibs_error *err)
{
    struct stat st;
    size_t len = 0;
    int number = fstat(fd, &st) == 0 ? 0 : errno;

    if (!number && !S_ISREG(st.st_mode))
        number = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    if (!number)
        number = read_bytes(fd, bytes, DIBS__ZONE_FILE_MAX + 1, &len);
    if (number)
        return fail_file(zone->name, path, number, err);
    if (len > DIBS__ZONE_FILE_MAX)
        return dibsx_fail(err, DIBS_INVALID,
                          "cannot use %.100s as a zone: it is larger than "
                          "64 KiB",
                          path);
    return dibs__zone_data_read(&zone->data, path, bytes, len, err);
}

static dibs_status
load_file(dibs__zone *zone, const char *path, dibs_error *err)
{
    /* A FIFO in place of the file does not block. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    unsigned char *bytes;
    dibs_status rc;

    if (fd < 0)
        return fail_file(zone->name, path, errno, err);
    bytes = dibsx_zalloc(DIBS__ZONE_FILE_MAX + 1);
    rc = bytes ? load_open_file(zone, path, fd, bytes, err)
               : dibsx_nomem(err, "the zone file");
    dibsx_free(bytes);
    close(fd);
    return rc;
}

static dibs_status new_zone(const char *name, dibs__zone **out, dibs_error *err)
{
    dibs__zone *zone;

    if (!is_name(name))
        return dibsx_fail(err, DIBS_INVALID,
                          "\"%.64s\" is no name of a zone; use one like "
                          "Europe/Berlin or UTC",
                          name);
    zone = dibsx_zalloc(sizeof(*zone));
    if (!zone)
        return dibsx_nomem(err, "the zone");
    (void)snprintf(zone->name, sizeof(zone->name), "%s", name);
    *out = zone;
    return DIBS_OK;
}

dibs_status dibs__zone_open(const char *name, dibs__zone **out, dibs_error *err)
{
    char path[PATH_SIZE];
    dibs__zone *zone = NULL;
    dibs_status rc = new_zone(name, &zone, err);

    if (!zone)
        return rc;
    if (strcmp(name, "UTC") != 0) {
        (void)snprintf(path, sizeof(path), "%s/%s", zone_folder(), name);
        rc = load_file(zone, path, err);
    }
    if (rc != DIBS_OK) {
        dibs__zone_free(zone);
        return rc;
    }
    *out = zone;
    return DIBS_OK;
}

dibs_status dibs__zone_read(const char *name, const void *bytes, size_t len,
                            dibs__zone **out, dibs_error *err)
{
    dibs__zone *zone = NULL;
    dibs_status rc = new_zone(name, &zone, err);

    if (!zone)
        return rc;
    rc = dibs__zone_data_read(&zone->data, name, bytes, len, err);
    if (rc != DIBS_OK) {
        dibs__zone_free(zone);
        return rc;
    }
    *out = zone;
    return DIBS_OK;
}

void dibs__zone_free(dibs__zone *zone)
{
    if (!zone)
        return;
    dibs__zone_data_fini(&zone->data);
    dibsx_free(zone);
}

const char *dibs__zone_name(const dibs__zone *zone)
{
    return zone->name;
}

/* The number of shifts at or before a moment. */
static size_t count_shifts(const dibs__zone_data *data, int64_t at)
{
    size_t low = 0, high = data->shift_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (data->shifts[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The shifts of the rule around a year, in order; times of day beyond a week can swap
 * those of neighbours. */
static void
gather_shifts(const dibs__rule *rule, int year, dibs__shift out[2 * WINDOW])
{
    for (int i = 0; i < WINDOW; i++)
        dibs__rule_year(rule, year - WINDOW / 2 + i, out + (ptrdiff_t)2 * i);
    for (int i = 1; i < 2 * WINDOW; i++) {
        dibs__shift shift = out[i];
        int j = i;

        for (; j > 0 && out[j - 1].at > shift.at; j--)
            out[j] = out[j - 1];
        out[j] = shift;
    }
}

static int year_of(int64_t at)
{
    dibs__date date;
    int64_t day = dibs__day_at(at);
    int64_t first = dibs__day_of(YEAR_MIN, 1, 1);
    int64_t last = dibs__day_of(YEAR_MAX, 1, 1);

    dibs__date_of(day < first ? first : day > last ? last : day, &date);
    return date.year;
}

/* Narrows the last segment of the file to what the rule makes of it. */
static void
follow_rule(const dibs__zone_data *data, int64_t at, dibs__segment *seg)
{
    dibs__shift shifts[2 * WINDOW];

    gather_shifts(&data->rule,
                  year_of(at > data->known_until ? at : data->known_until),
                  shifts);
    /* Far from the file, the window begins with a shift from the other offset. */
    if (shifts[0].at > data->known_until)
        seg->offset_s = shifts[0].offset_s == data->rule.standard_s
                            ? data->rule.summer_s
                            : data->rule.standard_s;
    for (int i = 0; i < 2 * WINDOW; i++) {
        bool same = i + 1 < 2 * WINDOW && shifts[i + 1].at == shifts[i].at;

        if (same || shifts[i].at <= data->known_until ||
            shifts[i].offset_s == seg->offset_s)
            continue;
        if (shifts[i].at > at) {
            seg->end = shifts[i].at;
            return;
        }
        seg->begin = shifts[i].at;
        seg->before_s = seg->offset_s;
        seg->offset_s = shifts[i].offset_s;
    }
}

void dibs__zone_find(const dibs__zone *zone, int64_t at, dibs__segment *out)
{
    const dibs__zone_data *data = &zone->data;
    size_t i = count_shifts(data, at);

    out->begin = i > 0 ? data->shifts[i - 1].at : INT64_MIN;
    out->end = i < data->shift_count ? data->shifts[i].at : INT64_MAX;
    out->offset_s = i > 0 ? data->shifts[i - 1].offset_s : data->first_s;
    out->before_s = i > 1 ? data->shifts[i - 2].offset_s : data->first_s;
    if (i == data->shift_count && data->rule.has_summer)
        follow_rule(data, at, out);
}

int32_t dibs__zone_offset(const dibs__zone *zone, int64_t at)
{
    dibs__segment seg;

    dibs__zone_find(zone, at, &seg);
    return seg.offset_s;
}

int64_t dibs__zone_moment(const dibs__zone *zone, int64_t local)
{
    /* Every offset is shorter than this. */
    const int64_t reach_s = (int64_t)2 * DIBS__DAY_S;
    dibs__segment seg;

    dibs__zone_find(zone, local - reach_s, &seg);
    while (seg.end < local + reach_s && local >= seg.end + seg.offset_s)
        dibs__zone_find(zone, seg.end, &seg);
    if (seg.begin > local - reach_s && local < seg.begin + seg.offset_s)
        return seg.begin;
    return local - seg.offset_s;
}

void dibs__tzdata_version(char out[DIBS__TZDATA_SIZE])
{
    static const char head[] = "# version ";
    char path[PATH_SIZE];
    char line[64] = "";
    FILE *file;

    out[0] = '\0';
    (void)snprintf(path, sizeof(path), "%s/tzdata.zi", zone_folder());
    file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(line, sizeof(line), file) &&
        strncmp(line, head, sizeof(head) - 1) == 0) {
        line[strcspn(line, "\r\n")] = '\0';
        (void)snprintf(out, DIBS__TZDATA_SIZE, "%.15s",
                       line + sizeof(head) - 1);
    }
    (void)fclose(file);
}
