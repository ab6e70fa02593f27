/* feed.c - what happened to locks, and numbers over time. The threads of the look and of
 * the viewer. */
/* SPDX-License-Identifier: MIT */
#include "serve/feed.h"
#include "base/json.h"
#include "serve/change.h"
#include "serve/daemon.h"
#include "serve/row.h"

enum { EVENT_MAX = 8 * 1024, WAITS_MAX = DIBS__SERIES_WAITS_MAX };

dibs_status dibs__serve_charts_init(dibs__serve_charts *charts, dibs_error *err)
{
    pthread_mutex_init(&charts->mutex, NULL);
    return dibs__series_init(&charts->series, err);
}

void dibs__serve_charts_fini(dibs__serve_charts *charts)
{
    if (!charts->series.fine.points)
        return;
    dibs__series_fini(&charts->series);
    pthread_mutex_destroy(&charts->mutex);
}

/* The changes of one picture while they are gathered. */
typedef struct gathering {
    dibs__serve_hub *hub;
    dibs__serve_told *told;
    char at[40];
    bool first; /* there was no picture before: nothing is news */
    dibs__series_sample sample;
    int64_t waits_ms[WAITS_MAX];
} gathering;

static void put_spans(dibsx_json *js, const dibs__serve_change *change)
{
    switch (change->kind) {
    case DIBS__SERVE_ACQUIRED:
        dibsx_json_pair_int(js, "waited_ms",
                            change->waited_ms > 0 ? change->waited_ms : 0);
        break;
    case DIBS__SERVE_RELEASED:
    case DIBS__SERVE_EXPIRED:
        dibsx_json_pair_int(js, "held_ms", change->party->age_ms);
        break;
    case DIBS__SERVE_QUEUED:
        dibsx_json_pair_uint(js, "place", change->place);
        break;
    case DIBS__SERVE_GAVE_UP:
        dibsx_json_pair_int(js, "waited_ms", change->party->age_ms);
        break;
    }
}

/* The party of an event, as both sources have it. */
typedef struct actor {
    const char *host, *identity, *label, *mode;
    int64_t pid;
    uint64_t fence; /* 0: it waits */
} actor;

static void begin_event(dibsx_json *js, const char *at, const char *kind,
                        const char *name, const actor *who)
{
    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "at", at);
    dibsx_json_pair_text(js, "kind", kind);
    dibsx_json_pair_text(js, "name", name);
    dibsx_json_pair_text(js, "host", who->host);
    dibsx_json_pair_int(js, "pid", who->pid);
    dibsx_json_pair_text(js, "identity", who->identity);
    dibsx_json_pair_text(js, "label", who->label);
    dibsx_json_pair_text(js, "mode", who->mode);
    if (who->fence)
        dibsx_json_pair_uint(js, "fence", who->fence);
}

static void end_event(dibs__serve_hub *hub, dibsx_json *js, const char *name,
                      const char *seen)
{
    dibsx_json_pair_text(js, "seen", seen);
    dibsx_json_close(js, '}');
    dibs__hub_publish(hub, DIBS__HUB_FEED, "feed", name,
                      dibsx_buf_text(js->out), js->out->len);
}

static void
publish_change(const gathering *ga, const dibs__serve_change *change)
{
    const dibs_party *party = change->party;
    const actor who = {party->host, party->identity, party->label,
                       party->mode, party->pid,      party->fence};
    dibsx_buf text;
    dibsx_json js;

    dibsx_buf_init(&text, EVENT_MAX);
    dibsx_json_init(&js, &text);
    begin_event(&js, ga->at, dibs__serve_change_text(change->kind),
                change->row->name, &who);
    put_spans(&js, change);
    end_event(ga->hub, &js, change->row->name, "look");
    dibsx_buf_fini(&text);
}

static const char *told_text(dibs_lease_event_kind kind)
{
    switch (kind) {
    case DIBS_LEASE_ACQUIRED:
        return "acquired";
    case DIBS_LEASE_RELEASED:
        return "released";
    case DIBS_LEASE_LOST:
    case DIBS_LEASE_MISSED:
        break;
    }
    return "lost";
}

void dibs__serve_feed_told(void *arg, const dibs_lease_event *event)
{
    dibs__serve *sv = arg;
    const actor who = {event->host, event->identity, event->label,
                       event->mode, event->pid,      event->fence};
    char at[40];
    dibsx_buf text;
    dibsx_json js;

    if (!dibs__told_event(&sv->told, event))
        return;
    dibsx_wall_text(dibsx_wall_us() - 1000 * event->age_ms, at, sizeof(at));
    dibsx_buf_init(&text, EVENT_MAX);
    dibsx_json_init(&js, &text);
    begin_event(&js, at, told_text(event->kind), event->name, &who);
    dibsx_json_pair_int(&js,
                        event->kind == DIBS_LEASE_ACQUIRED ? "waited_ms"
                                                           : "held_ms",
                        event->span_ms);
    end_event(&sv->hub, &js, event->name, "client");
    dibsx_buf_fini(&text);
}

/* A wait that the look has not seen was shorter than its step: it counts as none. */
static void count_wait(gathering *ga, int64_t waited_ms)
{
    if (ga->sample.wait_count < WAITS_MAX)
        ga->waits_ms[ga->sample.wait_count++] = waited_ms > 0 ? waited_ms : 0;
}

/* Its client may have told of a grant or of an end already. */
static bool is_news(const gathering *ga, const dibs__serve_change *change)
{
    switch (change->kind) {
    case DIBS__SERVE_ACQUIRED:
        return dibs__told_add(ga->told, change->row->name, change->party->fence,
                              false);
    case DIBS__SERVE_RELEASED:
    case DIBS__SERVE_EXPIRED:
        return dibs__told_add(ga->told, change->row->name, change->party->fence,
                              true);
    case DIBS__SERVE_QUEUED:
    case DIBS__SERVE_GAVE_UP:
        break;
    }
    return true;
}

/* As dibs__serve_change_fn. */
static void take_change(void *arg, const dibs__serve_change *change)
{
    gathering *ga = arg;
    int64_t *values = ga->sample.values;

    if (ga->first || !is_news(ga, change))
        return;
    publish_change(ga, change);
    values[DIBS__SERIES_GRANTED] += change->kind == DIBS__SERVE_ACQUIRED;
    values[DIBS__SERIES_ENDED] += change->kind == DIBS__SERVE_RELEASED ||
                                  change->kind == DIBS__SERVE_EXPIRED;
    values[DIBS__SERIES_EXPIRED] += change->kind == DIBS__SERVE_EXPIRED;
    if (change->kind == DIBS__SERVE_ACQUIRED)
        count_wait(ga, change->waited_ms);
}

/* Adds the events of clients since the last sample. */
static void count_told(gathering *ga)
{
    int64_t *values = ga->sample.values;
    dibs__told_counts counts;

    dibs__told_take(ga->told, &counts);
    values[DIBS__SERIES_GRANTED] += counts.granted;
    values[DIBS__SERIES_ENDED] += counts.ended;
    values[DIBS__SERIES_EXPIRED] += counts.lost;
    for (size_t i = 0; i < counts.wait_count; i++)
        count_wait(ga, counts.waits_ms[i]);
}

static void count_rows(int64_t *values, const dibs__serve_picture *picture)
{
    values[DIBS__SERIES_NAMES] = (int64_t)picture->count;
    values[DIBS__SERIES_HELD] = values[DIBS__SERIES_WAITING] = 0;
    values[DIBS__SERIES_LONGEST_WAIT] = 0;
    for (size_t i = 0; i < picture->count; i++) {
        const dibs_lease_info *row = picture->rows[i];
        const int64_t waited_ms = dibs__serve_row_waited_ms(row);

        values[DIBS__SERIES_HELD] += (int64_t)row->holder_count;
        values[DIBS__SERIES_WAITING] += (int64_t)row->waiter_count;
        if (waited_ms > values[DIBS__SERIES_LONGEST_WAIT])
            values[DIBS__SERIES_LONGEST_WAIT] = waited_ms;
    }
}

/* The numbers of the daemon itself. */
static void count_own(dibs__serve *sv, int64_t *values)
{
    const int64_t requests = (int64_t)dibs__serve_counts_sum(&sv->counts);
    dibs__sessions_count sessions;
    size_t streams;
    uint64_t gaps;

    dibs__sessions_count_get(&sv->sessions, &sessions);
    dibs__hub_count_get(&sv->hub, &streams, &gaps);
    values[DIBS__SERIES_REQUESTS] = requests - sv->charts.requests;
    sv->charts.requests = requests;
    values[DIBS__SERIES_SESSIONS] =
        (int64_t)(sessions.heartbeat + sessions.stream);
    values[DIBS__SERIES_LEASES] = (int64_t)sessions.leases;
    values[DIBS__SERIES_STREAMS] = (int64_t)streams;
}

static void publish_point(dibs__serve_hub *hub, const dibs__series_point *point)
{
    dibsx_buf text;
    dibsx_json js;

    dibsx_buf_init(&text, EVENT_MAX);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_int(&js, "step_s", DIBS__SERIES_STEP_S);
    dibs__series_point_json(&js, point, UINT32_MAX);
    dibsx_json_close(&js, '}');
    dibs__hub_publish(hub, DIBS__HUB_SERIES, "series", NULL,
                      dibsx_buf_text(&text), text.len);
    dibsx_buf_fini(&text);
}

static void add_sample(dibs__serve *sv, const dibs__series_sample *sample)
{
    const dibs__series_point *closed;
    dibs__series_point point;

    pthread_mutex_lock(&sv->charts.mutex);
    closed =
        dibs__series_add(&sv->charts.series, dibsx_wall_us() / 1000000, sample);
    if (closed)
        point = *closed;
    pthread_mutex_unlock(&sv->charts.mutex);
    if (closed)
        publish_point(&sv->hub, &point);
}

void dibs__serve_feed_seen(void *arg, const dibs__serve_picture *before,
                           const dibs__serve_picture *now)
{
    dibs__serve *sv = arg;
    gathering ga = {.hub = &sv->hub, .told = &sv->told, .first = !before};
    int64_t *values = ga.sample.values;

    for (size_t i = 0; i < DIBS__SERIES_SAMPLED; i++)
        values[i] = -1;
    values[DIBS__SERIES_UP] = now->rc == DIBS_OK;
    /* A picture of a store that did not answer repeats the one before. */
    if (now->rc == DIBS_OK) {
        values[DIBS__SERIES_GRANTED] = values[DIBS__SERIES_ENDED] = 0;
        values[DIBS__SERIES_EXPIRED] = 0;
        dibsx_wall_text(dibsx_wall_us(), ga.at, sizeof(ga.at));
        dibs__serve_compare(before, now, take_change, &ga);
        count_told(&ga);
        count_rows(values, now);
    }
    count_own(sv, values);
    ga.sample.waits_ms = ga.waits_ms;
    add_sample(sv, &ga.sample);
}
