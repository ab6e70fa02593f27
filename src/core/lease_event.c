/* lease_event.c - what happened to leases, written and read; see lease_event.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "core/lease_event.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "dibs-view 1"

static const char *const kinds[] = {
    [DIBS_LEASE_ACQUIRED] = "acquired",
    [DIBS_LEASE_RELEASED] = "released",
    [DIBS_LEASE_LOST] = "lost",
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

void dibs__view_put_head(dibsx_buf *out, int64_t sent_ms, uint64_t dropped)
{
    dibsx_buf_printf(out, HEAD "\t%" PRId64 "\t%" PRIu64 "\n", sent_ms,
                     dropped);
}

void dibs__view_put_line(dibsx_buf *out, const dibs__lease_event *event)
{
    dibsx_buf_printf(out,
                     "%s\t%" PRIu64 "\t%s\t%" PRId64 "\t%" PRId64 "\t%s\t%s\n",
                     kinds[event->kind], event->fence,
                     dibs__mode_name(event->mode), event->span_ms, event->at_ms,
                     event->who, event->name);
}

/* Ends the text at the first `stop`, or at its own end; *at is behind it. */
static char *take_part(char **at, char stop)
{
    char *part = *at, *end = strchr(part, stop);

    if (end)
        *end = '\0';
    *at = end ? end + 1 : part + strlen(part);
    return part;
}

static bool read_number(const char *text, int64_t min, int64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoimax(text, &end, 10);
    return errno == 0 && *text && !*end && *out >= min;
}

static bool read_count(const char *text, uint64_t *out)
{
    char *end;

    errno = 0;
    *out = strtoumax(text, &end, 10);
    return errno == 0 && *text >= '0' && *text <= '9' && !*end;
}

bool dibs__view_read_head(char **at, int64_t *sent_ms, uint64_t *dropped)
{
    char *line = take_part(at, '\n');

    return strcmp(take_part(&line, '\t'), HEAD) == 0 &&
           read_number(take_part(&line, '\t'), 0, sent_ms) &&
           read_count(take_part(&line, '\t'), dropped);
}

static bool read_kind(const char *text, dibs_lease_event_kind *out)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(text, kinds[i]) == 0) {
            *out = (dibs_lease_event_kind)i;
            return true;
        }
    return false;
}

/* Every lease has a fence and a name. */
static bool read_parts(char *line, dibs__view_line *out)
{
    if (!read_kind(take_part(&line, '\t'), &out->kind) ||
        !read_count(take_part(&line, '\t'), &out->fence) || out->fence == 0)
        return false;
    out->mode = take_part(&line, '\t');
    if (!read_number(take_part(&line, '\t'), 0, &out->span_ms) ||
        !read_number(take_part(&line, '\t'), 0, &out->at_ms))
        return false;
    out->who = take_part(&line, '\t');
    out->name = take_part(&line, '\t');
    return *out->name != '\0';
}

bool dibs__view_read_line(char **at, dibs__view_line *out)
{
    while (**at)
        if (read_parts(take_part(at, '\n'), out))
            return true;
    return false;
}
