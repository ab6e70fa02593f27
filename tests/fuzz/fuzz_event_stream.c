/* fuzz_event_stream.c - streams of events as a browser reads them, and the ids with which it
 * comes back.
 *
 * The input is a list of steps, 0xFF between them: an event is added, a stream begins
 * after an id, it is read. Whatever the data are, the reader finds each event that it
 * wants once, in order and as it was given, unless a gap or a reset stands for it. */
/* SPDX-License-Identifier: MIT */
#include "fuzz.h"
#include "http/lasting.h"
#include "serve/ring.h"
#include "serve/run_output.h"
#include <stdbool.h>
#include <stdio.h>

enum { LOCKS = 1, JOBS = 2, FRAMES = 8, STEPS_MAX = 64, DATA_MAX = 64 * 1024 };

static const char epoch[] = "0a1b2c3d";

/* An event that was added; number N at N - 1. */
typedef struct added {
    uint32_t topic;
    char *data; /* as a reader has it: its lines end with a line feed */
    size_t len;
} added;

typedef struct reader {
    const added *all;
    uint64_t last; /* the number of the last id */
    uint64_t seen; /* all up to this one that are wanted came, or a gap did */
    uint32_t topics;
    bool gap, reset, placed;
    char event[16];
    char *data;
    size_t len, lines;
} reader;

static void note_field(reader *rd, const char *field, size_t name_len,
                       const char *value, size_t len)
{
    if (name_len == 4 && memcmp(field, "data", 4) == 0) {
        REQUIRE(rd->len + len + 1 < DATA_MAX);
        if (rd->lines++)
            rd->data[rd->len++] = '\n';
        memcpy(rd->data + rd->len, value, len);
        rd->len += len;
    } else if (name_len == 5 && memcmp(field, "event", 5) == 0) {
        REQUIRE(len < sizeof(rd->event));
        memcpy(rd->event, value, len);
        rd->event[len] = '\0';
    } else if (name_len == 2 && memcmp(field, "id", 2) == 0) {
        char text[DIBS__RING_ID_MAX + 1], again[DIBS__RING_ID_MAX + 1];
        unsigned long long number;

        REQUIRE(len < sizeof(text));
        memcpy(text, value, len);
        text[len] = '\0';
        REQUIRE(sscanf(text, "0a1b2c3d-%llu", &number) == 1);
        snprintf(again, sizeof(again), "%s-%llu", epoch, number);
        REQUIRE(strcmp(text, again) == 0);
        rd->last = number;
    } else {
        REQUIRE(name_len == 5 && memcmp(field, "retry", 5) == 0);
    }
}

static void take_event(reader *rd)
{
    const added *it = &rd->all[rd->last - 1];

    REQUIRE(rd->last > rd->seen);
    for (uint64_t i = rd->seen + 1; !rd->gap && i < rd->last; i++)
        REQUIRE(!(rd->all[i - 1].topic & rd->topics));
    REQUIRE(it->topic & rd->topics);
    REQUIRE(strcmp(rd->event, it->topic == LOCKS ? "locks" : "jobs") == 0);
    REQUIRE(rd->len == it->len && memcmp(rd->data, it->data, it->len) == 0);
    rd->seen = rd->last;
    rd->gap = false;
}

/* At an empty line. */
static void dispatch(reader *rd)
{
    if (rd->lines == 0 && !rd->placed) {
        /* The greeting tells the place before the first event. */
        rd->placed = rd->last != UINT64_MAX;
        rd->seen = rd->last;
    } else if (rd->lines == 0) {
        REQUIRE(rd->last >= rd->seen);
    } else if (strcmp(rd->event, "gap") == 0) {
        rd->gap = true;
    } else if (strcmp(rd->event, "reset") == 0) {
        REQUIRE(!rd->placed);
    } else {
        take_event(rd);
    }
    rd->event[0] = '\0';
    rd->len = rd->lines = 0;
}

/* Reads a part of the stream by the rules of text/event-stream. */
static void read_stream(reader *rd, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t end = at, colon, value;

        while (end < len && text[end] != '\n' && text[end] != '\r')
            end++;
        REQUIRE(end < len && text[end] == '\n'); /* whole lines, of one kind */
        for (colon = at; colon < end && text[colon] != ':';)
            colon++;
        value =
            colon + 1 < end && text[colon + 1] == ' ' ? colon + 2 : colon + 1;
        if (at == end)
            dispatch(rd);
        else if (colon > at)
            note_field(rd, text + at, colon - at,
                       text + (value < end ? value : end),
                       value < end ? end - value : 0);
        at = end + 1;
    }
    REQUIRE(rd->lines == 0);
}

static void add_event(dibs__ring *ring, added *it, uint32_t topic,
                      const char *data, size_t len)
{
    it->topic = topic;
    it->data = malloc(len + 1);
    REQUIRE(it->data);
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n' && i > 0 && data[i - 1] == '\r')
            continue;
        it->data[it->len++] = data[i] == '\r' ? '\n' : data[i];
    }
    dibs__ring_add(ring, topic, topic == LOCKS ? "locks" : "jobs", NULL, data,
                   len);
    REQUIRE(ring->bytes <= ring->bytes_max);
    REQUIRE(ring->next - ring->first <= ring->frames_max);
}

static void begin_stream(const dibs__ring *ring, dibs__ring_cursor *cu,
                         reader *rd, uint32_t topics, const char *since)
{
    char *data = rd->data;

    *rd = (reader){.all = rd->all,
                   .data = data,
                   .topics = topics,
                   .last = UINT64_MAX};
    dibs__ring_place(ring, cu, topics, NULL, since);
    REQUIRE(cu->next <= ring->next);
}

/* Reads until nothing is left: then nothing that is wanted was left out. */
static void read_all(const dibs__ring *ring, dibs__ring_cursor *cu, reader *rd)
{
    dibsx_buf out;

    do {
        uint64_t behind = dibs__ring_behind(ring, cu);

        dibsx_buf_init(&out, DIBS__HTTP_PULL_MAX);
        dibs__ring_read(ring, cu, &out, DIBS__HTTP_PULL_MAX);
        REQUIRE(dibsx_buf_ok(&out));
        if (out.len)
            read_stream(rd, out.data, out.len);
        dibsx_buf_fini(&out);
        REQUIRE(behind == 0 || dibs__ring_behind(ring, cu) < behind);
    } while (dibs__ring_behind(ring, cu) > 0);
    for (uint64_t i = rd->seen + 1; !rd->gap && i < ring->next; i++)
        REQUIRE(!(rd->all[i - 1].topic & rd->topics));
}

/* A place in the output of a run is one, or it is refused. */
static void resume_output(const char *text)
{
    static dibs__run_output ro;

    memset(&ro, 0, sizeof(ro));
    if (!dibs__output_resume(&ro, text))
        return;
    for (size_t i = 0; i < DIBS__JOB_STEPS_MAX; i++) {
        REQUIRE(ro.places[i].attempt <= 99999);
        REQUIRE(ro.places[i].bytes < UINT64_C(1000000000000));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    added all[STEPS_MAX] = {0};
    reader rd = {.all = all, .data = malloc(DATA_MAX)};
    dibs__ring_cursor cu;
    dibs__ring ring;

    REQUIRE(rd.data && dibs__ring_init(&ring, epoch, FRAMES,
                                       DIBS__RING_FRAME_MAX, NULL) == DIBS_OK);
    begin_stream(&ring, &cu, &rd, LOCKS | JOBS, NULL);
    for (int step = 0; step < STEPS_MAX && size > 0; step++) {
        const uint8_t *end = memchr(data, 0xFF, size);
        size_t len = end ? (size_t)(end - data) : size;
        char *text = fuzz_text(data + (len > 0), len - (len > 0));

        if (len && (data[0] == 'l' || data[0] == 'j'))
            add_event(&ring, &all[ring.next - 1], data[0] == 'l' ? LOCKS : JOBS,
                      (const char *)data + 1, len - 1);
        else if (len && (data[0] == 'L' || data[0] == 'J'))
            begin_stream(&ring, &cu, &rd, data[0] == 'L' ? LOCKS : JOBS, text);
        else if (len && data[0] == 'o')
            resume_output(text);
        else
            read_all(&ring, &cu, &rd);
        free(text);
        size -= end ? len + 1 : len;
        data += end ? len + 1 : len;
    }
    dibs__ring_fini(&ring);
    for (size_t i = 0; i < STEPS_MAX; i++)
        free(all[i].data);
    free(rd.data);
    return 0;
}
