/* test_queues.c - queues on a server: what plain requests cost, what is left of a queue that
 * is over, the alarm, a server without memory, and one that is busy. */
/* SPDX-License-Identifier: MIT */
#include "redis_world.h"

#include "ask.h"
#include "base/rand.h"
#include "store/store.h"
#include <pthread.h>
#include <unistd.h>

enum { SPAN_MS = 600000, ROUNDS = 40, KINDS = 8 };

#define Q "dibs:queue:{q}"

typedef struct crew {
    dibs__store *st;
    dibs__reserve ask;
    dibs__settlement ack;
    dibs__token got; /* the last delivery */
    size_t count;    /* of the last answer */
    dibs__push_item item;
    dibs__push push;
    dibs_error err;
} crew;

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), 30000);
}

static uint64_t draw_lane(void)
{
    uint64_t bits;

    assert_true(dibsx_random(&bits, sizeof(bits)));
    return (bits >> 11) | 1;
}

static void note_delivery(const dibs__delivery *delivery, void *arg)
{
    crew *cw = arg;

    assert_true(delivery->len > 0); /* nobody pushed an empty one */
    cw->got = delivery->token;
    cw->count++;
}

/* Does what `ack` says if `settle`, and takes up to `want`. */
static dibs_status ask(crew *cw, bool settle, uint32_t want, bool wait)
{
    cw->ask.settle = &cw->ack;
    cw->ask.settle_count = settle;
    cw->ask.want = want;
    cw->ask.wait = wait;
    cw->ask.seen = cw->ask.stamp;
    cw->ask.number++;
    cw->count = 0;
    return cw->st->ops->queue->reserve(cw->st, &cw->ask, soon(), note_delivery,
                                       cw, &cw->err);
}

/* The same, with an ack of the last delivery. */
static dibs_status reserve(crew *cw, bool ack, uint32_t want, bool wait)
{
    cw->ack = (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = cw->got};
    return ask(cw, ack, want, wait);
}

static dibs_status push(crew *cw)
{
    cw->push.items = &cw->item;
    cw->push.number++;
    return cw->st->ops->queue->push(cw->st, &cw->push, soon(), &cw->err);
}

static void crew_init(crew *cw, const world *w)
{
    memset(cw, 0, sizeof(*cw));
    cw->ask = (dibs__reserve){.queue = "q",
                              .lane = draw_lane(),
                              .span_ms = SPAN_MS,
                              .as = ""};
    cw->item =
        (dibs__push_item){.data = "data", .len = 4, .to = "", .dedup = ""};
    cw->push = (dibs__push){.queue = "q",
                            .lane = draw_lane(),
                            .number = 0,
                            .count = 1};
    CHECK(DIBS_OK, dibs__store_open(w->url, soon(), &cw->st, err));
}

static int64_t ask_number(const server *sv, const char *command,
                          const char *key, const char *field)
{
    char *text = server_ask(sv, command, key, field, NULL);
    int64_t number;

    assert_non_null(text);
    number = strtoll(text, NULL, 10);
    free(text);
    return number;
}

/* The commands by which scripts were run, since the last CONFIG RESETSTAT. */
static int64_t count_scripts(const server *sv)
{
    char *text = server_ask(sv, "INFO", "commandstats", NULL);
    const char *at = text ? strstr(text, "cmdstat_evalsha:calls=") : NULL;
    int64_t calls = at ? strtoll(strchr(at, '=') + 1, NULL, 10) : 0;

    free(text);
    return calls;
}

/* One command for each, also where a push hands over to a lane that waits. */
static void a_plain_request_is_one_command(void **state)
{
    world *w = *state;
    crew cw;

    crew_init(&cw, w);
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    assert_status(reserve(&cw, true, 1, true), DIBS_OK);
    assert_true(server_tell(&w->sv, "CONFIG", "RESETSTAT", NULL));
    for (int i = 0; i < ROUNDS; i++) {
        assert_status(push(&cw), DIBS_OK);
        assert_status(reserve(&cw, false, 1, false), DIBS_OK);
        assert_int_equal(cw.count, 1);
        assert_status(reserve(&cw, true, 1, true), DIBS_OK);
        assert_int_equal(cw.count, 0);
    }
    IN_TIME(count_scripts(&w->sv) == 3 * ROUNDS); /* a minute sends one on */
    dibs__store_close(cw.st);
}

/* A queue that nobody uses any more goes, whichever way it became empty. */
static void an_empty_queue_expires(void **state)
{
    static const char *const all[] = {Q "~meta", Q "~from", Q "~was",
                                      Q "~wait", Q "~ids",  Q "~idend"};
    world *w = *state;
    crew cw;

    crew_init(&cw, w);
    cw.item.dedup = "window";
    cw.item.dedup_ms = SPAN_MS;
    assert_status(push(&cw), DIBS_OK);
    cw.item.dedup = "";
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    assert_int_equal(ask_number(&w->sv, "PTTL", Q "~meta", NULL), -1);
    assert_status(reserve(&cw, true, 1, false), DIBS_OK);
    assert_status(reserve(&cw, true, 1, true), DIBS_OK);
    assert_int_equal(cw.count, 0);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        assert_true(ask_number(&w->sv, "PTTL", all[i], NULL) != -1);
    assert_true(ask_number(&w->sv, "PTTL", Q "~meta", NULL) > SPAN_MS);
    /* It is kept as soon as it has an item again. */
    assert_status(push(&cw), DIBS_OK);
    assert_int_equal(ask_number(&w->sv, "PTTL", Q "~meta", NULL), -1);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, true, 0, false), DIBS_OK);
    CHECK(DIBS_OK,
          cw.st->ops->queue->leave(cw.st, "q", cw.ask.lane, soon(), err));
    CHECK(DIBS_OK, cw.st->ops->queue_admin->remove(cw.st, "q", soon(), err));
    for (size_t i = 3; i < sizeof(all) / sizeof(all[0]); i++)
        assert_int_equal(ask_number(&w->sv, "PTTL", all[i], NULL), -2);
    dibs__store_close(cw.st);
}

/* The worker that moved the limit of the last item acks it and dies. */
static void a_moved_limit_stays_no_longer_than_its_queue(void **state)
{
    world *w = *state;
    crew cw;

    crew_init(&cw, w);
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    cw.ack = (dibs__settlement){.verb = DIBS__ITEM_EXTEND,
                                .token = cw.got,
                                .ms = SPAN_MS};
    assert_status(ask(&cw, true, 0, false), DIBS_OK);
    assert_int_equal(ask_number(&w->sv, "ZCARD", Q "~limit", NULL), 1);
    assert_status(reserve(&cw, true, 0, false), DIBS_OK);
    assert_true(ask_number(&w->sv, "PTTL", Q "~meta", NULL) > SPAN_MS);
    assert_true(ask_number(&w->sv, "PTTL", Q "~limit", NULL) != -1);
    dibs__store_close(cw.st);
}

/* The head of a queue that nobody uses goes after a day, a window when it is over. */
static void a_window_outlasts_the_head(void **state)
{
    world *w = *state;
    crew cw;

    crew_init(&cw, w);
    cw.item.dedup = "window";
    cw.item.dedup_ms = SPAN_MS;
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    assert_status(reserve(&cw, true, 0, false), DIBS_OK);
    CHECK(DIBS_OK,
          cw.st->ops->queue->leave(cw.st, "q", cw.ask.lane, soon(), err));
    assert_true(server_tell(&w->sv, "DEL", Q "~meta", NULL));
    for (int i = 0; i < 2; i++) {
        crew other;

        crew_init(&other, w);
        other.item = cw.item;
        assert_status(push(&other), DIBS_OK);
        assert_true(other.item.duplicate);
        dibs__store_close(other.st);
        usleep(2000);
    }
    assert_in_range(ask_number(&w->sv, "PTTL", Q "~ids", NULL), 1, SPAN_MS);
    dibs__store_close(cw.st);
}

/* Pushes one item of each kind, and takes some: each key has something. */
static void fill_queue(crew *cw)
{
    static const dibs__push_item kinds[KINDS] = {
        {.data = "plain", .len = 5, .to = "", .dedup = ""},
        {.data = "plain", .len = 5, .to = "", .dedup = ""},
        {.data = "first", .len = 5, .to = "", .dedup = "", .priority = 1},
        {.data = "ranked", .len = 6, .to = "", .dedup = "", .priority = 1},
        {.data = "known", .len = 5, .to = "", .dedup = "id", .dedup_ms = 1},
        {.data = "brief", .len = 5, .to = "", .dedup = "", .delay_ms = 1},
        {.data = "later", .len = 5, .to = "", .dedup = "", .delay_ms = 30000},
        {.data = "own", .len = 3, .to = "w", .dedup = ""},
    };

    assert_status(reserve(cw, false, 0, false), DIBS_OK);
    for (size_t i = 0; i < KINDS; i++) {
        cw->item = kinds[i];
        assert_status(push(cw), DIBS_OK);
    }
    cw->ask.limit_ms = 1;
    assert_status(reserve(cw, false, 2, false), DIBS_OK);
    cw->ask.limit_ms = 0;
    assert_int_equal(cw->count, 2);
    assert_status(reserve(cw, false, 2, false), DIBS_OK);
    assert_int_equal(cw->count, 2);
}

/* The counts are right again: an operator gets rid of the queue. */
static void end_queue(const crew *cw)
{
    const dibs__queue_admin_ops *ops = cw->st->ops->queue_admin;
    size_t purged;

    CHECK(DIBS_OK,
          cw->st->ops->queue->leave(cw->st, "q", cw->ask.lane, soon(), err));
    CHECK(DIBS_OK, ops->purge(cw->st, "q",
                              DIBS__PLACE_READY | DIBS__PLACE_LATER |
                                  DIBS__PLACE_OUT | DIBS__PLACE_DEAD,
                              100, soon(), &purged, err));
    CHECK(DIBS_OK, ops->remove(cw->st, "q", soon(), err));
}

/* Takes and acks until nothing is left: how many. The one that was pushed last is among
 * them. */
static int take_all_ready(crew *cw, const char *key)
{
    bool found = false;
    int got = -1;

    do {
        dibs_status rc = reserve(cw, cw->count > 0, 1, false);

        if (rc != DIBS_OK)
            FAIL_OF(rc, "without %s: %s", key, cw->err.message);
        found = found || cw->got.id == cw->item.id;
        got++;
    } while (cw->count > 0);
    if (!found)
        fail_msg("without %s an item is not delivered", key);
    return got;
}

/* A key was evicted or deleted by hand: what it had is gone, and the rest goes on. */
static void a_queue_that_lost_a_key_goes_on(void **state)
{
    static const char *const keys[] = {Q,          Q "~meta",  Q "~out",
                                       Q "~wait",  Q "~kept",  Q "~next",
                                       Q "~own",   Q "~later", Q "~dead",
                                       Q "~ids",   Q "~idend", Q "~load",
                                       Q "~limit", Q "~from"};
    world *w = *state;

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        crew cw, other;
        dibs_status rc;
        int got;

        assert_true(server_tell(&w->sv, "FLUSHALL", NULL));
        crew_init(&cw, w);
        cw.ask.as = "w";
        fill_queue(&cw);
        (void)server_tell(&w->sv, "DEL", keys[i], NULL);
        usleep(2000); /* what is due by now is looked at */
        crew_init(&other, w);
        rc = push(&other);
        if (rc != DIBS_OK)
            FAIL_OF(rc, "without %s: %s", keys[i], other.err.message);
        assert_status(reserve(&other, false, 0, false), DIBS_OK);
        got = take_all_ready(&other, keys[i]);
        /* Without its head, all but one that is delayed are ready again. */
        if (strcmp(keys[i], Q "~meta") == 0)
            assert_int_equal(got, KINDS);
        CHECK(DIBS_OK,
              cw.st->ops->queue->leave(cw.st, "q", cw.ask.lane, soon(), err));
        end_queue(&other);
        dibs__store_close(other.st);
        dibs__store_close(cw.st);
    }
}

/* The item is lost that has a dedup id, and others are there. The id is free, but for a
 * window that it has. */
static void a_lost_item_blocks_no_dedup_id(void **state)
{
    world *w = *state;
    crew cw;

    crew_init(&cw, w);
    assert_status(push(&cw), DIBS_OK);
    cw.item.dedup = "order";
    assert_status(push(&cw), DIBS_OK);
    assert_status(push(&cw), DIBS_OK);
    assert_true(cw.item.duplicate);
    cw.item.dedup = "windowed";
    cw.item.dedup_ms = SPAN_MS;
    assert_status(push(&cw), DIBS_OK);
    assert_true(server_tell(&w->sv, "DEL", Q "~kept", NULL));
    assert_status(push(&cw), DIBS_OK);
    assert_true(cw.item.duplicate);
    cw.item.dedup = "order";
    cw.item.dedup_ms = 0;
    assert_status(push(&cw), DIBS_OK);
    assert_false(cw.item.duplicate);
    assert_status(push(&cw), DIBS_OK);
    assert_true(cw.item.duplicate);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, KINDS, false), DIBS_OK);
    assert_int_equal(cw.count, 2);
    dibs__store_close(cw.st);
}

/* The server has lost the first items of the list, and has the one behind them. */
static void lost_items_hide_no_others(void **state)
{
    static const char *const ids[] = {"a", "b", "c"};
    enum { IDS = sizeof(ids) / sizeof(ids[0]) };
    world *w = *state;

    for (uint32_t form = 0; form < 4; form++) {
        crew cw;

        assert_true(server_tell(&w->sv, "FLUSHALL", NULL));
        crew_init(&cw, w);
        for (size_t i = 0; i < IDS; i++) {
            cw.item.dedup = ids[i];
            assert_status(push(&cw), DIBS_OK);
        }
        cw.item.dedup = "";
        assert_status(push(&cw), DIBS_OK);
        assert_status(reserve(&cw, false, 0, false), DIBS_OK);
        assert_true(server_tell(&w->sv, "DEL", Q "~kept", NULL));
        assert_status(reserve(&cw, false, 1 + form / 2, form % 2), DIBS_OK);
        assert_int_equal(cw.count, 1);
        assert_true(cw.got.id == cw.item.id);
        assert_int_equal(ask_number(&w->sv, "HGET", Q "~meta", "dropped"), IDS);
        assert_int_equal(ask_number(&w->sv, "HGET", Q "~meta", "items"), 1);
        assert_int_equal(ask_number(&w->sv, "HGET", Q "~meta", "delivered"), 1);
        assert_int_equal(ask_number(&w->sv, "EXISTS", Q "~wait", NULL), 0);
        dibs__store_close(cw.st);
    }
}

/* The server goes back to what it had before an ack that it answered, as a failover may: the
 * lane knows more and ends, all that it had comes back, and the fences rise. */
static void a_lost_tail_leaves_nothing_stuck(void **state)
{
    static const char *const keys[] = {Q "~meta", Q "~out", Q "~from"};
    world *w = *state;
    crew cw, other;
    dibs__token acked;

    crew_init(&cw, w);
    assert_status(push(&cw), DIBS_OK);
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_status(reserve(&cw, false, 2, false), DIBS_OK);
    assert_int_equal(cw.count, 2);
    acked = cw.got;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_true(
            server_tell(&w->sv, "COPY", keys[i], keys[i], "DB", "1", NULL));
    assert_status(reserve(&cw, true, 0, false), DIBS_OK);
    assert_status(cw.ack.rc, DIBS_OK);
    assert_true(server_tell(&w->sv, "SWAPDB", "0", "1", NULL));
    assert_status(reserve(&cw, false, 1, false), DIBS_LOST);
    crew_init(&other, w);
    assert_status(reserve(&other, false, 0, false), DIBS_OK);
    assert_status(reserve(&other, false, 2, false), DIBS_OK);
    assert_int_equal(other.count, 2);
    assert_true(other.got.id == acked.id);
    assert_true(other.got.fence > acked.fence);
    assert_int_equal(other.got.attempt, 2);
    assert_true(server_tell(&w->sv, "FLUSHALL", NULL));
    dibs__store_close(other.st);
    dibs__store_close(cw.st);
}

/* At most the span from now on: the clock of the server is ours. */
static void assert_alarm(const world *w, int64_t span_ms)
{
    int64_t alarm_us = ask_number(&w->sv, "HGET", Q "~meta", "alarm");

    assert_true(alarm_us <= dibsx_wall_us() + span_ms * 1000);
}

/* Whatever comes to end first, by whichever script. */
static void the_alarm_is_a_lower_bound(void **state)
{
    world *w = *state;
    crew cw, brief;

    crew_init(&cw, w);
    assert_status(push(&cw), DIBS_OK);
    assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_alarm(w, SPAN_MS);
    cw.ask.span_ms = SPAN_MS - 10000; /* a lane that is shortened */
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_alarm(w, SPAN_MS - 10000);
    cw.item.dedup = "window";
    cw.item.dedup_ms = SPAN_MS - 20000;
    assert_status(push(&cw), DIBS_OK);
    assert_alarm(w, SPAN_MS - 20000);
    cw.ask.limit_ms = SPAN_MS - 30000;
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    assert_int_equal(cw.count, 1);
    assert_alarm(w, SPAN_MS - 30000);
    cw.item.dedup = "";
    cw.item.delay_ms = SPAN_MS - 40000;
    assert_status(push(&cw), DIBS_OK);
    assert_alarm(w, SPAN_MS - 40000);
    cw.ask.limit_ms = 0;
    cw.ask.settle_count = 0;
    assert_status(reserve(&cw, true, 0, false), DIBS_OK);
    assert_alarm(w, SPAN_MS - 40000);
    /* A step that ends a lane computes it anew. */
    brief = cw;
    brief.ask = (dibs__reserve){.queue = "q",
                                .lane = draw_lane(),
                                .span_ms = 1,
                                .as = ""};
    assert_status(reserve(&brief, false, 0, false), DIBS_OK);
    while (ask_number(&w->sv, "HGET", Q "~meta", "lanes") > 1)
        assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_alarm(w, SPAN_MS - 40000);
    dibs__store_close(cw.st);
}

static void at_maxmemory_only_push_is_refused(void **state)
{
    world *w = *state;
    dibs__tend tend;
    crew cw;

    crew_init(&cw, w);
    for (int i = 0; i < 4; i++)
        assert_status(push(&cw), DIBS_OK);
    assert_status(reserve(&cw, false, 0, false), DIBS_OK);
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "1", NULL));
    assert_status(push(&cw), DIBS_UNAVAIL);
    cw.push.number--;
    cw.item.priority = 1;
    assert_status(push(&cw), DIBS_UNAVAIL);
    cw.push.number--;
    assert_status(reserve(&cw, false, 1, false), DIBS_OK);
    assert_status(reserve(&cw, true, 1, false), DIBS_OK);
    cw.ask.limit_ms = SPAN_MS; /* the long way */
    assert_status(reserve(&cw, true, 2, false), DIBS_OK);
    assert_int_equal(cw.count, 2);
    assert_status(reserve(&cw, false, 1, true), DIBS_OK);
    tend = (dibs__tend){.queue = "q",
                        .lane = cw.ask.lane,
                        .span_ms = 2 * (int64_t)SPAN_MS};
    CHECK(DIBS_OK, cw.st->ops->queue->tend(cw.st, &tend, 1, soon(), err));
    assert_status(tend.rc, DIBS_OK);
    CHECK(DIBS_OK,
          cw.st->ops->queue->leave(cw.st, "q", cw.ask.lane, soon(), err));
    assert_true(server_tell(&w->sv, "CONFIG", "SET", "maxmemory", "0", NULL));
    assert_status(push(&cw), DIBS_OK);
    dibs__store_close(cw.st);
}

/* ---- a server that is busy */

typedef struct taker {
    dibs_queue *queue;
    dibs_status rc;
} taker;

static void *take_one(void *arg)
{
    taker *tk = arg;
    dibs_item *item = NULL;
    dibs_error err = {0};

    tk->rc = dibs_queue_reserve(tk->queue, WORLD_BOUND_MS, &item, &err);
    if (tk->rc != DIBS_OK)
        fprintf(stderr, "reserve: %s\n", err.message);
    dibs_item_free(item);
    return NULL;
}

static bool is_busy(const server *sv)
{
    char *reply = server_ask(sv, "GET", "x", NULL);
    bool busy = reply && strncmp(reply, "-BUSY", 5) == 0;

    free(reply);
    return busy;
}

/* A script of another program blocks the server while an item becomes due, for longer than a
 * request may take. */
static void due_after_busy(void **state)
{
    static const char *const words[] = {"EVAL", "while true do end", "0", NULL};
    world *w = *state;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    dibs_queue *feeder = NULL;
    taker tk = {0};
    pthread_t thread;
    asker as;

    CHECK(DIBS_OK, dibs_queue_new(w->one, "due", NULL, &tk.queue, err));
    CHECK(DIBS_OK, dibs_queue_new(w->other, "due", NULL, &feeder, err));
    assert_true(
        server_tell(&w->sv, "CONFIG", "SET", "lua-time-limit", "20", NULL));
    CHECK(DIBS_OK, dibs_queue_push(feeder, "x", 1,
                                   DIBS_PUSH_OPTS(.delay_ms = 500), NULL, err));
    assert_int_equal(pthread_create(&thread, NULL, take_one, &tk), 0);
    assert_true(asker_open(&as, w->sv.socket));
    assert_true(asker_send(&as, words));
    while (!is_busy(&w->sv))
        IN_TIME(dibsx_now() < end);
    world_sleep_ms(1500);
    assert_true(is_busy(&w->sv));
    assert_true(server_tell(&w->sv, "SCRIPT", "KILL", NULL));
    assert_int_equal(pthread_join(thread, NULL), 0);
    CHECK(DIBS_OK, tk.rc);
    asker_close(&as);
    dibs_queue_free(feeder);
    dibs_queue_free(tk.queue);
}

typedef struct views {
    uint64_t ids[4];
    size_t count;
} views;

static bool note_view(const dibs__item_view *item, void *arg)
{
    views *vs = arg;

    vs->ids[vs->count++] = item->id;
    return vs->count < sizeof(vs->ids) / sizeof(vs->ids[0]);
}

static void a_look_goes_far_into_a_queue(void **state)
{
    enum { PARTS = 80, ALL = PARTS * DIBS__QUEUE_BATCH };
    world *w = *state;
    dibs__push_item items[DIBS__QUEUE_BATCH];
    views vs = {.count = 0};
    uint64_t low;
    crew cw;

    crew_init(&cw, w);
    cw.item.priority = 1;
    CHECK(DIBS_OK, push(&cw));
    cw.item.priority = -1;
    CHECK(DIBS_OK, push(&cw));
    low = cw.item.id;
    cw.item.priority = 0;
    for (size_t i = 0; i < DIBS__QUEUE_BATCH; i++)
        items[i] = cw.item;
    cw.push.items = items;
    cw.push.count = DIBS__QUEUE_BATCH;
    for (size_t i = 0; i < PARTS; i++) {
        cw.push.number++;
        CHECK(DIBS_OK,
              cw.st->ops->queue->push(cw.st, &cw.push, soon(), &cw.err));
    }
    CHECK(DIBS_OK,
          cw.st->ops->queue_admin->peek(cw.st, "q", DIBS__PLACE_READY, ALL - 1,
                                        10, soon(), note_view, &vs, &cw.err));
    assert_int_equal(vs.count, 3);
    assert_int_equal(vs.ids[0], items[DIBS__QUEUE_BATCH - 2].id);
    assert_int_equal(vs.ids[1], items[DIBS__QUEUE_BATCH - 1].id);
    assert_int_equal(vs.ids[2], low);
    dibs__store_close(cw.st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_plain_request_is_one_command),
        WORLD_TEST(an_empty_queue_expires),
        WORLD_TEST(a_window_outlasts_the_head),
        WORLD_TEST(a_moved_limit_stays_no_longer_than_its_queue),
        WORLD_TEST(a_queue_that_lost_a_key_goes_on),
        WORLD_TEST(a_lost_item_blocks_no_dedup_id),
        WORLD_TEST(lost_items_hide_no_others),
        WORLD_TEST(a_lost_tail_leaves_nothing_stuck),
        WORLD_TEST(the_alarm_is_a_lower_bound),
        WORLD_TEST(at_maxmemory_only_push_is_refused),
        WORLD_TEST(due_after_busy),
        WORLD_TEST(a_look_goes_far_into_a_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
