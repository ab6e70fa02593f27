/* session_stream.c - the stream of a session.
 *
 * A stream has no queue: each lease has the stage that the stream has told, and a pull
 * tells what is different. An open stream alone proves nothing: it keeps its session
 * (keep "stream") only while the kernel of the client acknowledges what was sent: a beat
 * counts when all is that was sent before it, up to the beat before at least. Something
 * newer is always on its way to a busy client.
 *
 * The belief of the client does not depend on it: beats say until which moment
 * of the daemon's clock a lease is kept.
 *
 * Loop thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/session_stream.h"
#include "base/alloc.h"
#include "http/lasting.h"
#include "http/sse.h"
#include "serve/gate.h"
#include "serve/problem.h"
#include <stdio.h>
#include <string.h>

enum { EVENT_MAX = 32 * 1024, ROOM_MAX = 48 * 1024, RETRY_MS = 1000 };

/* A lease in a beat: its id, a moment, and what is between them. */
enum { BEAT_PART_MAX = DIBS__SESSION_ID_MAX + 32 };

typedef struct stream {
    dibs__serve_sessions *table;
    dibs__http_exchange *ex; /* lives as long as the stream */
    char session[DIBS__SESSION_ID_SIZE];
    char caller[DIBS__SERVE_WHO_MAX];
    uint64_t number; /* 0: it has not begun */
    uint64_t mark; /* was sent; acknowledged, it shows that the client lives */
    bool marking;  /* the mark was used: the next is set once all is sent */
    bool owed;     /* a beat is to count, and waits for the mark */
} stream;

/* One event, whose JSON object is open. */
typedef struct event {
    dibsx_buf buf;
    dibsx_json js;
} event;

static dibsx_json *open_event(event *ev)
{
    dibsx_buf_init(&ev->buf, EVENT_MAX);
    dibsx_json_init(&ev->js, &ev->buf);
    dibsx_json_open(&ev->js, '{');
    return &ev->js;
}

/* A part of an event would be no JSON: without memory for it the stream ends, and begins
 * anew. */
static void close_event(event *ev, const char *name, dibsx_buf *out)
{
    dibsx_json_close(&ev->js, '}');
    out->failed = out->failed || !dibsx_buf_ok(&ev->buf);
    dibs__http_sse_put(out, NULL, name, dibsx_buf_text(&ev->buf), ev->buf.len);
    dibsx_buf_fini(&ev->buf);
}

static const char *name_of(const dibs__serve_lease *le)
{
    switch (le->machine.stage) {
    case DIBS__STAGE_HELD:
        return "granted";
    case DIBS__STAGE_LOST:
        return "lost";
    case DIBS__STAGE_FREED:
        if (le->machine.removed || le->machine.why == DIBS_OK)
            return NULL;
        return le->machine.why == DIBS_LOST ? "lost" : "refused";
    case DIBS__STAGE_WAITING:
        break;
    }
    return NULL;
}

/* Tells what is new of a lease. Locks: mutex. */
static void tell_lease(dibs__serve_lease *le, dibsx_nsec now, dibsx_buf *out)
{
    const char *name;
    event ev;

    (void)dibs__session_refresh(le);
    name = name_of(le);
    if (le->told != (int)le->machine.stage && name) {
        dibsx_json *js = open_event(&ev);

        dibsx_json_pair_text(js, "id", le->machine.id);
        dibsx_json_pair_int(js, "clock_ms", now / DIBSX_MS);
        dibs__session_write_lease(js, le, now, true);
        close_event(&ev, name, out);
    }
    le->told = (int)le->machine.stage;
    if (le->yield && !le->told_yield && le->machine.stage == DIBS__STAGE_HELD) {
        dibsx_json_pair_text(open_event(&ev), "id", le->machine.id);
        close_event(&ev, "yield", out);
        le->told_yield = true;
    }
}

/* As many leases as an event has room for, of those that this beat has not told. False: there
 * are more. Locks: mutex. */
static bool tell_beat(dibs__serve_session *se, dibsx_nsec now, dibsx_buf *out)
{
    event ev;
    dibsx_json *js = open_event(&ev);
    bool all = true;

    dibsx_json_pair_text(js, "epoch", se->table->epoch);
    dibsx_json_pair_int(js, "clock_ms", now / DIBSX_MS);
    dibsx_json_key(js, "until_clock_ms");
    dibsx_json_open(js, '{');
    for (dibs__session_lease *at = se->machine.leases.first; at && !at->over;
         at = at->next) {
        dibs__serve_lease *le = (dibs__serve_lease *)at;

        if (at->stage != DIBS__STAGE_HELD || le->told_beat == se->beat)
            continue;
        all = ev.buf.len + BEAT_PART_MAX <= EVENT_MAX;
        if (!all)
            break;
        le->told_beat = se->beat;
        dibsx_json_pair_int(js, at->id,
                            dibs__session_told_until(&se->machine, now,
                                                     dibs_lock_valid_ms(
                                                         le->lock)) /
                                DIBSX_MS);
    }
    dibsx_json_close(js, '}');
    close_event(&ev, "beat", out);
    return all;
}

static int64_t beat_ms(const dibs__serve_session *se)
{
    return se->machine.ttl_ms / DIBS__SESSION_BEATS_PER_TTL;
}

/* Each mark is good for one beat, so that a client that has gone soon has none. In a
 * pull all that was given before is sent. Locks: mutex. */
static void count_beat(stream *st, dibs__serve_session *se, dibsx_nsec now)
{
    if (st->marking)
        st->mark = dibs__http_sent(st->ex);
    st->marking = false;
    if (!st->owed || !dibs__http_acked(st->ex, st->mark))
        return;
    st->owed = false;
    st->marking = true;
    (void)dibs__session_beaten(se, now);
}

/* A beat is due. Locks: mutex. */
static void tell_due(dibs__serve_session *se, dibsx_nsec now, dibsx_buf *out)
{
    if (!tell_beat(se, now, out))
        return; /* the next pull goes on */
    se->beat++;
    se->beat_at = dibsx_after_ms(now, beat_ms(se));
}

static void tell_end(dibsx_buf *out, const char *name, int64_t retry_ms)
{
    event ev;
    dibsx_json *js = open_event(&ev);

    if (retry_ms > 0)
        dibsx_json_pair_int(js, "retry_ms", retry_ms);
    close_event(&ev, name, out);
}

/* Locks: mutex. */
static void tell_news(stream *st, dibs__serve_session *se, dibsx_buf *out)
{
    const dibs__session_leases *leases = &se->machine.leases;
    /* A lease whose time is over goes behind this one meanwhile. */
    const dibs__session_lease *last = leases->last;
    dibsx_nsec now = dibsx_now();
    /* The server asks a little before the moment, or a little after it. */
    const bool due = dibsx_after_ms(now, beat_ms(se) / 10) >= se->beat_at;

    for (dibs__session_lease *at = leases->first, *next;
         at && out->len < ROOM_MAX - EVENT_MAX; at = next) {
        next = at == last ? NULL : at->next;
        tell_lease((dibs__serve_lease *)at, now, out);
    }
    st->owed = st->owed || due;
    if (se->stream)
        count_beat(st, se, now);
    if (due)
        tell_due(se, now, out);
}

/* The stream begins, and replaces the one before: not when it was asked for, as it may
 * have been refused meanwhile, or its head alone be wanted. Locks: mutex. */
static void begin_stream(stream *st, dibs__serve_session *se)
{
    st->number = se->stream_number = ++se->table->streams;
    for (dibs__session_lease *at = se->machine.leases.first; at;
         at = at->next) {
        ((dibs__serve_lease *)at)->told = -1;
        ((dibs__serve_lease *)at)->told_yield = false;
    }
    se->beat++;
    se->beat_at = 0;
}

static bool pull_news(void *arg, dibsx_buf *out)
{
    stream *st = arg;
    dibs__serve_session *se;
    bool allowed = dibs__serve_gate_still(st->ex), goes_on = false;

    pthread_mutex_lock(&st->table->mutex);
    se = dibs__session_get(st->table, st->session, st->caller);
    if (se && !st->number)
        begin_stream(st, se);
    if (st->table->draining || !allowed)
        tell_end(out, "goaway", RETRY_MS);
    else if (!se)
        tell_end(out, "ended", 0);
    else if (se->stream_number != st->number)
        tell_end(out, "replaced", 0);
    else
        goes_on = true;
    if (goes_on)
        tell_news(st, se, out);
    pthread_mutex_unlock(&st->table->mutex);
    return goes_on;
}

/* A proxy acknowledges what its client does not. */
static bool came_by_proxy(const dibs__http_exchange *ex)
{
    return dibs__http_header(ex, "Forwarded") ||
           dibs__http_header(ex, "X-Forwarded-For") ||
           dibs__http_header(ex, "Via");
}

void dibs__session_stream_answer(dibs__serve_session *se,
                                 dibs__http_exchange *ex)
{
    stream *st;

    if (se->stream && came_by_proxy(ex)) {
        (void)dibs__serve_refuse(
            ex, 400, "keep",
            "a stream through a proxy shows that the proxy lives, not the "
            "client; make the session with \"keep\":\"heartbeat\"");
        return;
    }
    st = dibsx_zalloc(sizeof(*st));
    if (!st) {
        (void)dibs__serve_refuse(ex, 503, "nomem", "there is no memory left");
        return;
    }
    st->table = se->table;
    st->ex = ex;
    memcpy(st->session, se->id, sizeof(st->session));
    snprintf(st->caller, sizeof(st->caller), "%s", se->caller);
    dibs__http_answer_stream(ex,
                             &(dibs__http_stream){.type = DIBS__HTTP_SSE_TYPE,
                                                  .pull = pull_news,
                                                  .gone = dibsx_free,
                                                  .arg = st,
                                                  .idle_ms = beat_ms(se),
                                                  .idle = DIBS__HTTP_SSE_BEAT});
}
