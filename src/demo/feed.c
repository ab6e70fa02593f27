/* feed.c - the latest events of a worker, and the streams that follow them.
 *
 * Owns the frames, which are under the mutex, and a cursor per stream, which is the
 * loop's of the HTTP server. A wake is sent with the mutex held: it takes the server's
 * own, and nothing of the server holds that while it calls this. */
/* SPDX-License-Identifier: MIT */
#include "demo/feed.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include "http/lasting.h"
#include "http/sse.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME_MAX = 16 * 1024, BEAT_MS = 10000 };

typedef struct cursor {
    dibs__demo_feed *feed;
    uint64_t next; /* the number of the event to be sent next */
    bool greeted;  /* the client knows how to come back */
    bool reset;    /* it asked for events after one that is not ours */
} cursor;

dibs_status dibs__demo_feed_init(dibs__demo_feed *feed, dibs_error *err)
{
    unsigned char drawn[4];

    *feed = (dibs__demo_feed){.next = 1};
    if (!dibsx_random(drawn, sizeof(drawn)))
        return dibsx_fail(err, DIBS_INTERNAL,
                          "cannot draw a random number: the kernel gives none");
    dibsx_hex(drawn, sizeof(drawn), feed->epoch);
    pthread_mutex_init(&feed->mutex, NULL);
    return DIBS_OK;
}

void dibs__demo_feed_fini(dibs__demo_feed *feed)
{
    for (size_t i = 0; i < DIBS__DEMO_FEED_MAX; i++)
        dibsx_free(feed->frames[i]);
    pthread_mutex_destroy(&feed->mutex);
}

/* Without memory there is no frame, and streams skip the event. */
void dibs__demo_feed_add(dibs__demo_feed *feed, const char *json, size_t len)
{
    char id[40], **place;
    dibsx_buf frame;

    dibsx_buf_init(&frame, FRAME_MAX);
    pthread_mutex_lock(&feed->mutex);
    snprintf(id, sizeof(id), "%s-%" PRIu64, feed->epoch, feed->next);
    dibs__http_sse_put(&frame, id, NULL, json, len);
    place = &feed->frames[feed->next++ % DIBS__DEMO_FEED_MAX];
    dibsx_free(*place);
    *place = dibsx_buf_take(&frame);
    if (feed->server)
        dibs__http_wake(feed->server);
    pthread_mutex_unlock(&feed->mutex);
    dibsx_buf_fini(&frame);
}

void dibs__demo_feed_serve(dibs__demo_feed *feed, dibs__http_server *server)
{
    pthread_mutex_lock(&feed->mutex);
    feed->server = server;
    /* Events may have come after the first streams and before this. */
    if (server)
        dibs__http_wake(server);
    pthread_mutex_unlock(&feed->mutex);
}

/* Locks: feed->mutex. */
static uint64_t oldest_of(const dibs__demo_feed *feed)
{
    return feed->next > DIBS__DEMO_FEED_MAX ? feed->next - DIBS__DEMO_FEED_MAX
                                            : 1;
}

static void greet(cursor *cu, dibsx_buf *out)
{
    if (cu->greeted)
        return;
    cu->greeted = true;
    dibsx_buf_puts(out, "retry: 2000\n\n");
    if (cu->reset)
        dibs__http_sse_put(out, NULL, "reset", "{}", 2);
}

/* Locks: feed->mutex. */
static void skip_missed(cursor *cu, dibsx_buf *out)
{
    const uint64_t oldest = oldest_of(cu->feed);
    char data[48];
    int len;

    if (cu->next >= oldest)
        return;
    len = snprintf(data, sizeof(data), "{\"missed\":%" PRIu64 "}",
                   oldest - cu->next);
    dibs__http_sse_put(out, NULL, "gap", data, (size_t)len);
    cu->next = oldest;
}

static bool pull_events(void *arg, dibsx_buf *out)
{
    cursor *cu = arg;
    dibs__demo_feed *feed = cu->feed;
    bool room = true;

    greet(cu, out);
    pthread_mutex_lock(&feed->mutex);
    skip_missed(cu, out);
    while (room && cu->next < feed->next) {
        const char *frame = feed->frames[cu->next % DIBS__DEMO_FEED_MAX];
        size_t len = frame ? strlen(frame) : 0;

        room = out->len + len <= DIBS__HTTP_PULL_MAX;
        if (room && frame)
            dibsx_buf_add(out, frame, len);
        cu->next += room;
    }
    pthread_mutex_unlock(&feed->mutex);
    return true;
}

/* Where to begin: after the event that the client has seen last, if it is of this
 * epoch. Locks: feed->mutex. */
static void place_cursor(cursor *cu, const char *last_id)
{
    const dibs__demo_feed *feed = cu->feed;
    const size_t len = strlen(feed->epoch);
    char *end;
    uint64_t seen;

    cu->next = oldest_of(feed);
    if (!last_id)
        return;
    cu->reset = true;
    if (strncmp(last_id, feed->epoch, len) != 0 || last_id[len] != '-' ||
        last_id[len + 1] < '0' || last_id[len + 1] > '9')
        return;
    seen = strtoull(last_id + len + 1, &end, 10);
    if (*end || seen >= feed->next)
        return;
    cu->next = seen + 1;
    cu->reset = false;
}

void dibs__demo_feed_answer(dibs__demo_feed *feed, dibs__http_exchange *ex)
{
    cursor *cu = dibsx_zalloc(sizeof(*cu));

    if (!cu) {
        dibs__http_refuse(ex, 503, "There is no memory for another stream.");
        return;
    }
    cu->feed = feed;
    pthread_mutex_lock(&feed->mutex);
    place_cursor(cu, dibs__http_header(ex, "Last-Event-ID"));
    pthread_mutex_unlock(&feed->mutex);
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_events,
                                                  .gone = dibsx_free,
                                                  .arg = cu,
                                                  .idle_ms = BEAT_MS,
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}
