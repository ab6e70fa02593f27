/* lease_event.h - what happened to leases, as a message to viewers has it. Pure.
 *
 *     dibs-view 1 TAB sent_ms TAB dropped
 *     kind TAB fence TAB mode TAB span_ms TAB at_ms TAB who TAB name
 *
 * One line for each event. sent_ms and at_ms are on the monotonic clock of the sender, so
 * that their difference is what they say. `dropped` counts events that were not
 * sent since the message before. A reader passes over lines that it cannot read. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LEASE_EVENT_H
#define DIBS_CORE_LEASE_EVENT_H

#include "base/buf.h"
#include "core/who.h"
#include <dibs/viewer.h>

/* After the client's prefix: the topic of the messages, and the value that is there while
 * there are viewers, with the time that it lasts. */
#define DIBS__VIEW_TOPIC  "dibs.leases"
#define DIBS__VIEWERS_KEY "dibs.viewers"
enum { DIBS__VIEWERS_TTL_MS = 10000 };

/* The longest head, and the longest line. */
enum { DIBS__VIEW_HEAD_MAX = 64, DIBS__VIEW_LINE_MAX = 448 };

typedef struct dibs__lease_event {
    dibs_lease_event_kind kind; /* not DIBS_LEASE_MISSED */
    dibs__mode mode;
    uint64_t fence;
    int64_t span_ms;
    int64_t at_ms;
    char who[DIBS__WHO_PLAIN];
    char name[DIBS_NAME_MAX + 1];
} dibs__lease_event;

void dibs__view_put_head(dibsx_buf *out, int64_t sent_ms, uint64_t dropped);
void dibs__view_put_line(dibsx_buf *out, const dibs__lease_event *event);

/* A line as it was read; the texts are borrowed from the message. */
typedef struct dibs__view_line {
    dibs_lease_event_kind kind;
    uint64_t fence;
    int64_t span_ms;
    int64_t at_ms;
    char *mode, *who, *name;
} dibs__view_line;

/* Both write NUL into the text, which ends with one, and move *at on. The head: false when
 * the message is not of this kind. The line: false when there is none left. */
bool dibs__view_read_head(char **at, int64_t *sent_ms, uint64_t *dropped);
bool dibs__view_read_line(char **at, dibs__view_line *out);

#endif
