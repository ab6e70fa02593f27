/* hub.c - events for everybody who listens. See hub.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/hub.h"
#include "base/alloc.h"
#include "base/json.h"
#include "http/lasting.h"
#include "http/sse.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include "serve/row.h"
#include <string.h>

enum { BEAT_MS = 10000, LIFE_MS = 12 * 3600 * 1000, EVENT_MAX = 60 * 1024 };

typedef struct listener {
    dibs__serve_hub *hub;
    dibs__http_exchange *ex; /* lives as long as the stream */
    dibs__ring_cursor cursor;
    dibsx_nsec until; /* a stream does not live for ever */
} listener;

dibs_status
dibs__hub_init(dibs__serve_hub *hub, const char *epoch, dibs__hub_wake_fn *wake,
               void *wake_arg, dibs_error *err)
{
    *hub = (dibs__serve_hub){.wake = wake, .wake_arg = wake_arg};
    pthread_mutex_init(&hub->mutex, NULL);
    return dibs__ring_init(&hub->ring, epoch, DIBS__RING_FRAMES,
                           DIBS__RING_BYTES, err);
}

void dibs__hub_fini(dibs__serve_hub *hub)
{
    if (!hub->wake)
        return;
    dibs__ring_fini(&hub->ring);
    pthread_mutex_destroy(&hub->mutex);
}

void dibs__hub_publish(dibs__serve_hub *hub, uint32_t topic, const char *event,
                       const char *name, const char *json, size_t len)
{
    pthread_mutex_lock(&hub->mutex);
    dibs__ring_add(&hub->ring, topic, event, name, json, len);
    pthread_mutex_unlock(&hub->mutex);
    hub->wake(hub->wake_arg);
}

void dibs__hub_gap(dibs__serve_hub *hub, uint32_t topic, const char *name)
{
    dibs__hub_publish(hub, topic, NULL, name, NULL, 0);
}

void dibs__hub_count_get(dibs__serve_hub *hub, size_t *streams, uint64_t *gaps)
{
    pthread_mutex_lock(&hub->mutex);
    *streams = hub->streams;
    *gaps = hub->gaps;
    pthread_mutex_unlock(&hub->mutex);
}

void dibs__hub_drain(dibs__serve_hub *hub)
{
    pthread_mutex_lock(&hub->mutex);
    hub->draining = true;
    pthread_mutex_unlock(&hub->mutex);
    hub->wake(hub->wake_arg);
}

bool dibs__hub_topics(const char *text, uint32_t *out)
{
    static const char *const names[] = {"locks", "feed", "series", "jobs",
                                        "runs"};
    const size_t count = sizeof(names) / sizeof(names[0]);

    *out = text && *text ? 0 : DIBS__HUB_ALL;
    while (text && *text) {
        size_t len = strcspn(text, ","), i = 0;

        while (i < count &&
               (strlen(names[i]) != len || strncmp(names[i], text, len) != 0))
            i++;
        if (i == count)
            return false;
        *out |= 1u << i;
        text += len + (text[len] == ',');
    }
    return *out != 0;
}

/* -- From the look. */

static bool
has_changed(const dibs_lease_info *before, const dibs_lease_info *now)
{
    char was[DIBS__SERVE_ETAG_MAX], is[DIBS__SERVE_ETAG_MAX];

    dibs__serve_row_etag(before, was);
    dibs__serve_row_etag(now, is);
    return !before || strcmp(was, is) != 0 ||
           before->holder_count != now->holder_count;
}

/* {"changed":[ROW],"removed":[]}, or the name among the removed. */
static void
publish_row(dibs__serve_hub *hub, const dibs_lease_info *row, bool removed)
{
    dibsx_buf text;
    dibsx_json js;

    dibsx_buf_init(&text, EVENT_MAX);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    dibsx_json_key(&js, "changed");
    dibsx_json_open(&js, '[');
    if (!removed) {
        dibsx_json_open(&js, '{');
        dibs__serve_row_json(&js, row, 0, DIBS__SERVE_PARTIES_MAX);
        dibsx_json_close(&js, '}');
    }
    dibsx_json_close(&js, ']');
    dibsx_json_key(&js, "removed");
    dibsx_json_open(&js, '[');
    if (removed)
        dibsx_json_text(&js, row->name);
    dibsx_json_close(&js, ']');
    dibsx_json_pair_text(&js, "seen", "look");
    dibsx_json_close(&js, '}');
    dibs__hub_publish(hub, DIBS__HUB_LOCKS, "locks", row->name,
                      dibsx_buf_text(&text), text.len);
    dibsx_buf_fini(&text);
}

/* Without a picture before there is nothing to compare: a listener fetches the list
 * after it has begun to listen. */
void dibs__hub_seen(void *arg, const dibs__serve_picture *before,
                    const dibs__serve_picture *now)
{
    dibs__serve_hub *hub = arg;

    if (!before || !now || now->rc != DIBS_OK)
        return;
    for (size_t i = 0; i < now->count; i++) {
        const dibs_lease_info *was =
            dibs__serve_picture_find(before, now->rows[i]->name);

        if (has_changed(was, now->rows[i]))
            publish_row(hub, now->rows[i], false);
    }
    for (size_t i = 0; i < before->count; i++)
        if (dibs__serve_picture_covers(now, before->rows[i]->name) &&
            !dibs__serve_picture_find(now, before->rows[i]->name))
            publish_row(hub, before->rows[i], true);
}

/* -- Streams. */

static void put_goaway(dibsx_buf *out)
{
    static const char text[] = "{\"retry_ms\":1000}";

    dibs__http_sse_put(out, NULL, "goaway", text, sizeof(text) - 1);
}

/* A frame that no pull has room for would stop its streams. */
_Static_assert(DIBS__RING_FRAME_MAX + DIBS__RING_GREETING_MAX <=
                   DIBS__HTTP_PULL_MAX,
               "each frame fits");

/* As dibs__http_pull_fn. */
static bool pull_events(void *arg, dibsx_buf *out)
{
    listener *li = arg;
    dibs__serve_hub *hub = li->hub;
    uint64_t gaps = li->cursor.gaps;
    bool over = !dibs__serve_gate_still(li->ex) || dibsx_now() >= li->until;

    pthread_mutex_lock(&hub->mutex);
    over = over || hub->draining;
    if (!over)
        dibs__ring_read(&hub->ring, &li->cursor, out, DIBS__HTTP_PULL_MAX);
    hub->gaps += li->cursor.gaps - gaps;
    pthread_mutex_unlock(&hub->mutex);
    if (over)
        put_goaway(out);
    return !over;
}

static void count_streams(dibs__serve_hub *hub, bool more)
{
    bool some;

    pthread_mutex_lock(&hub->mutex);
    hub->streams += more ? 1 : (size_t)-1;
    some = hub->streams > 0;
    pthread_mutex_unlock(&hub->mutex);
    if (hub->look)
        dibs__serve_look_always(hub->look, some);
    if (hub->viewer)
        dibs__serve_viewer_want(hub->viewer, some);
}

static void end_listener(void *arg)
{
    listener *li = arg;

    count_streams(li->hub, false);
    dibsx_free(li);
}

static void answer_stream(dibs__serve_hub *hub, dibs__http_exchange *ex)
{
    const char *prefix = dibs__http_query(ex, "prefix");
    const char *since = dibs__http_header(ex, "Last-Event-ID");
    listener *li;
    uint32_t topics;

    if (!dibs__hub_topics(dibs__http_query(ex, "topics"), &topics)) {
        (void)dibs__serve_refuse(
            ex, 400, "invalid",
            "the topics are locks, feed, series, jobs and runs; leave "
            "\"topics\" out for all");
        return;
    }
    if (prefix && strlen(prefix) > DIBS__RING_PREFIX_MAX) {
        (void)dibs__serve_refuse(ex, 400, "invalid",
                                 "the prefix is longer than %d bytes",
                                 DIBS__RING_PREFIX_MAX);
        return;
    }
    li = dibsx_zalloc(sizeof(*li));
    if (!li) {
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    li->hub = hub;
    li->ex = ex;
    li->until = dibsx_after_ms(dibsx_now(), LIFE_MS);
    pthread_mutex_lock(&hub->mutex);
    dibs__ring_place(&hub->ring, &li->cursor, topics, prefix,
                     since ? since : dibs__http_query(ex, "since"));
    pthread_mutex_unlock(&hub->mutex);
    count_streams(hub, true);
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_events,
                                                  .gone = end_listener,
                                                  .arg = li,
                                                  .idle_ms = BEAT_MS,
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}

void dibs__serve_get_events(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);

    answer_stream(&sv->hub, ex);
}
