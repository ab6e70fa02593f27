/* ring.h - the latest events of a daemon, for all streams at once. Pure.
 *
 * Each event is formatted once, as the frame that streams send. A stream is a cursor
 * and a filter: it has no queue that could grow. A stream that falls out of the ring
 * gets one `gap` with the number of events that it may have missed, and goes on.
 *
 * The id of an event is EPOCH-NUMBER. Numbers of another epoch mean nothing here: a
 * stream that resumes after one gets `reset`, and its client fetches the lists anew.
 *
 *   (R1) At most `frames_max` frames of at most `bytes_max` bytes are kept; the oldest
 *        go first.
 *   (R2) A cursor gets every event that matches its filter, once and in order, except
 *        for those that a gap or a reset before them stands for.
 *   (R3) A cursor that is read to the end has an id, known to the client, after which
 *        no event that matches was left out.
 *
 * One thread at a time. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_RING_H
#define DIBS_SERVE_RING_H

#include "base/buf.h"
#include <dibs/types.h>

enum {
    DIBS__RING_FRAMES = 8192,
    DIBS__RING_BYTES = 4 * 1024 * 1024,
    DIBS__RING_GREETING_MAX = 256, /* frames before the first event of a read */
    DIBS__RING_FRAME_MAX = 64 * 1024 - DIBS__RING_GREETING_MAX,
    DIBS__RING_EPOCH = 8,
    DIBS__RING_ID_MAX = DIBS__RING_EPOCH + 1 + 20,
    DIBS__RING_PREFIX_MAX = 255
};

typedef struct dibs__ring_frame {
    char *bytes; /* NULL: it could not be kept, and is a gap */
    size_t len;
    uint32_t topic; /* one bit */
    char *name;     /* of the lock or the like; NULL: of many */
} dibs__ring_frame;

typedef struct dibs__ring {
    char epoch[DIBS__RING_EPOCH + 1];
    size_t frames_max, bytes_max;
    dibs__ring_frame *frames; /* event N at N modulo frames_max */
    uint64_t first, next;     /* numbers that are kept; the first is 1 */
    size_t bytes;
} dibs__ring;

typedef struct dibs__ring_cursor {
    uint64_t next;
    uint32_t topics;
    char prefix[DIBS__RING_PREFIX_MAX + 1];
    bool greeted, reset;
    uint64_t told; /* the number of the last id that the client knows */
    uint64_t gaps; /* that it got */
} dibs__ring_cursor;

/* `epoch` has DIBS__RING_EPOCH digits. End with dibs__ring_fini(). */
DIBS_MUST_CHECK dibs_status dibs__ring_init(dibs__ring *ring, const char *epoch,
                                            size_t frames_max, size_t bytes_max,
                                            dibs_error *err);
void dibs__ring_fini(dibs__ring *ring);

/* Adds an event: its topic, and the name that it is about, NULL for many. An event
 * that is too long, or for which there is no memory, becomes a gap, as does one
 * without data. */
void dibs__ring_add(dibs__ring *ring, uint32_t topic, const char *event,
                    const char *name, const char *data, size_t len);

/* Places a cursor. `since` is an id, "begin" or "end"; NULL: the end. An id that is
 * not of this epoch, or of the future, is a reset. */
void dibs__ring_place(const dibs__ring *ring, dibs__ring_cursor *cu,
                      uint32_t topics, const char *prefix, const char *since);

/* Appends what the cursor has not had, up to `max` bytes in all, which the longest frame
 * and the greeting fit into. */
void dibs__ring_read(const dibs__ring *ring, dibs__ring_cursor *cu,
                     dibsx_buf *out, size_t max);

/* Calls `each` with the data of the latest events of these topics, newest first; `name`
 * is whose, NULL: anybody's. An event of several lines has its first one only. */
typedef void dibs__ring_each_fn(void *arg, const char *data, size_t len);
void dibs__ring_latest(const dibs__ring *ring, uint32_t topics,
                       const char *name, size_t limit, dibs__ring_each_fn *each,
                       void *arg);

/* Events that the cursor has not looked at. */
uint64_t dibs__ring_behind(const dibs__ring *ring, const dibs__ring_cursor *cu);

#endif
