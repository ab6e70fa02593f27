/* ring.c - the ring of ring.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/ring.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "http/sse.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After so many events that do not match, the client gets an id all the same. */
enum { SILENT_MAX = 256 };

dibs_status
dibs__ring_init(dibs__ring *ring, const char *epoch, size_t frames_max,
                size_t bytes_max, dibs_error *err)
{
    *ring = (dibs__ring){.frames_max = frames_max,
                         .bytes_max = bytes_max,
                         .first = 1,
                         .next = 1};
    snprintf(ring->epoch, sizeof(ring->epoch), "%s", epoch);
    ring->frames = dibsx_zalloc(frames_max * sizeof(*ring->frames));
    return ring->frames ? DIBS_OK : dibsx_nomem(err, "the ring of events");
}

static dibs__ring_frame *frame_of(const dibs__ring *ring, uint64_t number)
{
    return &ring->frames[number % ring->frames_max];
}

static void drop_first(dibs__ring *ring)
{
    dibs__ring_frame *frame = frame_of(ring, ring->first++);

    ring->bytes -= frame->len;
    dibsx_free(frame->bytes);
    dibsx_free(frame->name);
    *frame = (dibs__ring_frame){0};
}

void dibs__ring_fini(dibs__ring *ring)
{
    while (ring->frames && ring->first < ring->next)
        drop_first(ring);
    dibsx_free(ring->frames);
    ring->frames = NULL;
}

static void write_id(const dibs__ring *ring, uint64_t number,
                     char id[DIBS__RING_ID_MAX + 1])
{
    snprintf(id, DIBS__RING_ID_MAX + 1, "%s-%" PRIu64, ring->epoch, number);
}

static char *copy_name(const char *name, bool *failed)
{
    size_t size = name ? strlen(name) + 1 : 0;
    char *copy = name ? dibsx_zalloc(size) : NULL;

    if (copy)
        memcpy(copy, name, size);
    *failed = name && !copy;
    return copy;
}

void dibs__ring_add(dibs__ring *ring, uint32_t topic, const char *event,
                    const char *name, const char *data, size_t len)
{
    char id[DIBS__RING_ID_MAX + 1];
    dibs__ring_frame frame = {.topic = topic};
    dibsx_buf out;
    bool failed;

    dibsx_buf_init(&out, DIBS__RING_FRAME_MAX);
    write_id(ring, ring->next, id);
    if (data)
        dibs__http_sse_put(&out, id, event, data, len);
    frame.name = copy_name(name, &failed);
    frame.len = dibsx_buf_ok(&out) && !failed ? out.len : 0;
    frame.bytes = frame.len ? dibsx_buf_take(&out) : NULL;
    dibsx_buf_fini(&out);
    while (ring->first < ring->next &&
           (ring->next - ring->first >= ring->frames_max ||
            ring->bytes + frame.len > ring->bytes_max))
        drop_first(ring);
    ring->bytes += frame.len;
    *frame_of(ring, ring->next++) = frame;
}

/* The number of an id of this epoch that was given to an event, or 0. */
static uint64_t read_id(const dibs__ring *ring, const char *id)
{
    size_t len = strlen(ring->epoch);
    uint64_t number;
    char *end;

    if (strncmp(id, ring->epoch, len) != 0 || id[len] != '-' ||
        id[len + 1] < '0' || id[len + 1] > '9' || strlen(id) > len + 20)
        return 0;
    number = strtoull(id + len + 1, &end, 10);
    return !*end && number < ring->next ? number + 1 : 0;
}

void dibs__ring_place(const dibs__ring *ring, dibs__ring_cursor *cu,
                      uint32_t topics, const char *prefix, const char *since)
{
    *cu = (dibs__ring_cursor){.next = ring->next, .topics = topics};
    snprintf(cu->prefix, sizeof(cu->prefix), "%s", prefix ? prefix : "");
    if (since && strcmp(since, "begin") == 0) {
        cu->next = ring->first;
    } else if (since && strcmp(since, "end") != 0) {
        uint64_t number = read_id(ring, since);

        /* Number 0 is before the first event: an id that a stream of an empty ring
         * has. Events that have gone since are many, or unknown. */
        cu->reset = number == 0 || number < ring->first;
        cu->next = cu->reset ? ring->next : number;
    }
    cu->told = UINT64_MAX;
}

static void put_gap(dibs__ring_cursor *cu, uint64_t missed, dibsx_buf *out)
{
    char data[48];
    int len = snprintf(data, sizeof(data), "{\"missed\":%" PRIu64 "}", missed);

    dibs__http_sse_put(out, NULL, "gap", data, (size_t)len);
    cu->gaps++;
}

/* The client gets the id of the place that the cursor is at. */
static void
put_place(const dibs__ring *ring, dibs__ring_cursor *cu, dibsx_buf *out)
{
    char id[DIBS__RING_ID_MAX + 1];

    cu->told = cu->next - 1;
    write_id(ring, cu->told, id);
    dibsx_buf_printf(out, "id: %s\n\n", id);
}

static void
put_greeting(const dibs__ring *ring, dibs__ring_cursor *cu, dibsx_buf *out)
{
    if (cu->greeted)
        return;
    cu->greeted = true;
    dibsx_buf_puts(out, "retry: 2000\n\n");
    if (cu->reset)
        dibs__http_sse_put(out, NULL, "reset", "{}", 2);
    put_place(ring, cu, out);
}

static bool
is_wanted(const dibs__ring_cursor *cu, const dibs__ring_frame *frame)
{
    return (cu->topics & frame->topic) != 0 &&
           (!frame->name ||
            strncmp(frame->name, cu->prefix, strlen(cu->prefix)) == 0);
}

void dibs__ring_read(const dibs__ring *ring, dibs__ring_cursor *cu,
                     dibsx_buf *out, size_t max)
{
    put_greeting(ring, cu, out);
    if (cu->next < ring->first) {
        put_gap(cu, ring->first - cu->next, out);
        cu->next = ring->first;
    }
    while (cu->next < ring->next) {
        const dibs__ring_frame *frame = frame_of(ring, cu->next);

        if (is_wanted(cu, frame)) {
            if (out->len + frame->len + DIBS__RING_GREETING_MAX > max)
                return;
            if (frame->bytes)
                dibsx_buf_add(out, frame->bytes, frame->len);
            else
                put_gap(cu, 1, out);
            cu->told = frame->bytes ? cu->next : cu->told;
        }
        cu->next++;
    }
    if (cu->next - 1 - cu->told >= SILENT_MAX)
        put_place(ring, cu, out);
}

void dibs__ring_latest(const dibs__ring *ring, uint32_t topics,
                       const char *name, size_t limit, dibs__ring_each_fn *each,
                       void *arg)
{
    static const char key[] = "\ndata: ";

    for (uint64_t i = ring->next; i > ring->first && limit > 0; i--) {
        const dibs__ring_frame *frame = frame_of(ring, i - 1);
        const char *data;

        if (!(frame->topic & topics) || !frame->bytes ||
            (name && (!frame->name || strcmp(frame->name, name) != 0)))
            continue;
        data = memmem(frame->bytes, frame->len, key, sizeof(key) - 1);
        if (!data)
            continue;
        data += sizeof(key) - 1;
        each(arg, data,
             (size_t)((const char *)memchr(data, '\n',
                                           frame->len -
                                               (size_t)(data - frame->bytes)) -
                      data));
        limit--;
    }
}

uint64_t dibs__ring_behind(const dibs__ring *ring, const dibs__ring_cursor *cu)
{
    return ring->next - cu->next;
}
