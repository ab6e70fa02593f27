/* queue_admin.c - an operator's calls on queues. Items come and go by the steps of the
 * store. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include "core/client.h"
#include "core/names.h"
#include "store/queue.h"
#include <stdio.h>
#include <string.h>

enum { LANE_MS = 60000 };

/* A queue with one lane that pushes and one that reserves. */
typedef struct world {
    dibs_client *cl;
    const char *name;
    uint64_t pushes, asks, stamp;
    dibs__token tokens[DIBS__QUEUE_BATCH];
    size_t token_count;
} world;

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(30000));
}

static uint64_t lane_of(const world *w)
{
    return (uint64_t)(uintptr_t)w & (((uint64_t)1 << 52) - 1);
}

static world open_world(void)
{
    return (world){.cl = core_open(), .name = core_name()};
}

static void push_items(world *w, dibs__push_item *items, size_t count)
{
    dibs__push push = {.queue = w->name,
                       .lane = lane_of(w),
                       .number = ++w->pushes,
                       .items = items,
                       .count = count};

    for (size_t i = 0; i < count; i++) {
        items[i].to = items[i].to ? items[i].to : "";
        items[i].dedup = items[i].dedup ? items[i].dedup : "";
    }
    CHECK(DIBS_OK, w->cl->st->ops->queue->push(w->cl->st, &push, soon(), err));
}

static void push_many(world *w, size_t count)
{
    static dibs__push_item items[DIBS__QUEUE_BATCH];

    while (count > 0) {
        size_t part = count < DIBS__QUEUE_BATCH ? count : DIBS__QUEUE_BATCH;

        memset(items, 0, sizeof(items));
        for (size_t i = 0; i < part; i++) {
            items[i].data = "item";
            items[i].len = 4;
        }
        push_items(w, items, part);
        count -= part;
    }
}

static void note_delivery(const dibs__delivery *delivery, void *arg)
{
    world *w = arg;

    w->tokens[w->token_count++] = delivery->token;
}

static void ask(world *w, uint32_t want, dibs__settlement *settle, size_t count)
{
    dibs__reserve ask = {.queue = w->name,
                         .lane = lane_of(w) + 1,
                         .number = ++w->asks,
                         .seen = w->stamp,
                         .span_ms = pace_ms(LANE_MS),
                         .want = want,
                         .as = "",
                         .settle = settle,
                         .settle_count = count};

    CHECK(DIBS_OK, w->cl->st->ops->queue->reserve(w->cl->st, &ask, soon(),
                                                  note_delivery, w, err));
    w->stamp = ask.stamp;
    for (size_t i = 0; i < count; i++)
        assert_status(settle[i].rc, DIBS_OK);
}

static void take_items(world *w, uint32_t want)
{
    if (w->asks == 0)
        ask(w, 0, NULL, 0);
    w->token_count = 0;
    ask(w, want, NULL, 0);
    assert_int_equal(w->token_count, want);
}

/* Takes so many items, and gives them up. */
static void kill_items(world *w, uint32_t count)
{
    dibs__settlement settle[8] = {{.rc = DIBS_OK}};

    take_items(w, count);
    for (uint32_t i = 0; i < count; i++)
        settle[i] = (dibs__settlement){.verb = DIBS__ITEM_DEAD,
                                       .token = w->tokens[i],
                                       .reason = "no such address"};
    ask(w, 0, settle, count);
}

static void close_world(world *w)
{
    if (w->asks > 0)
        CHECK(DIBS_OK,
              w->cl->st->ops->queue->leave(w->cl->st, w->name, lane_of(w) + 1,
                                           soon(), err));
    CHECK(DIBS_OK, dibs_queue_purge(w->cl, w->name,
                                    DIBS_ITEM_READY | DIBS_ITEM_LATER |
                                        DIBS_ITEM_OUT | DIBS_ITEM_DEAD,
                                    NULL, err));
    dibs_close(w->cl);
}

static dibs_queue_info look_at(const world *w)
{
    dibs_queue_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_queue_stats(w->cl, w->name, &info, err));
    return info;
}

/* What a look has shown. */
typedef struct listing {
    char text[256]; /* the data of each, with a comma */
    uint64_t last;
    size_t count, stop_after;
    bool rising;
    dibs_item_info first; /* its texts are gone */
    char dedup[16], to[16], reason[32];
} listing;

static bool note_item(const dibs_item_info *info, void *arg)
{
    listing *ls = arg;
    size_t len = strlen(ls->text);

    if (ls->count++ == 0) {
        ls->first = *info;
        snprintf(ls->dedup, sizeof(ls->dedup), "%s", info->dedup_id);
        snprintf(ls->to, sizeof(ls->to), "%s", info->to);
        snprintf(ls->reason, sizeof(ls->reason), "%s", info->reason);
    }
    ls->rising = ls->rising && info->id > ls->last;
    ls->last = info->id;
    snprintf(ls->text + len, sizeof(ls->text) - len, "%.*s,", (int)info->len,
             (const char *)info->data);
    return ls->count != ls->stop_after;
}

static listing
peek(const world *w, dibs_item_place place, size_t skip, size_t max)
{
    listing ls = {.rising = true};

    CHECK(DIBS_OK, dibs_queue_peek(w->cl, w->name, place, skip, max, note_item,
                                   &ls, err));
    return ls;
}

static void a_look_shows_every_place(void **state)
{
    world w = open_world();
    dibs__push_item items[] = {
        {.data = "one", .len = 3, .dedup = "order-1"},
        {.data = "two", .len = 3, .delay_ms = 3600000},
        {.data = "urgent", .len = 6, .priority = 5},
        {.data = "four", .len = 4, .to = "w1"},
    };
    listing ls = {.stop_after = 1};
    dibs_queue_info info;

    (void)state;
    push_items(&w, items, COUNT_OF(items));
    info = look_at(&w);
    assert_int_equal(info.ready, 3);
    assert_int_equal(info.later, 1);
    assert_int_equal(info.pushed, 4);
    assert_int_equal(info.settings.tries, 16);
    assert_string_equal(peek(&w, DIBS_ITEM_READY, 0, 2).text, "urgent,one,");
    assert_string_equal(peek(&w, DIBS_ITEM_READY, 1, 9).text, "one,four,");
    assert_string_equal(peek(&w, DIBS_ITEM_READY, 1, 9).dedup, "order-1");
    assert_string_equal(peek(&w, DIBS_ITEM_READY, 2, 9).to, "w1");
    assert_string_equal(peek(&w, DIBS_ITEM_LATER, 0, 9).text, "two,");
    assert_true(peek(&w, DIBS_ITEM_LATER, 0, 9).first.due_ms > 0);
    take_items(&w, 1);
    assert_string_equal(peek(&w, DIBS_ITEM_OUT, 0, 9).text, "urgent,");
    assert_int_equal(peek(&w, DIBS_ITEM_OUT, 0, 9).first.attempts, 1);
    assert_true(peek(&w, DIBS_ITEM_OUT, 0, 9).first.fence == w.tokens[0].fence);
    CHECK(DIBS_OK, dibs_queue_peek(w.cl, w.name, DIBS_ITEM_READY, 0, 9,
                                   note_item, &ls, err));
    assert_int_equal(ls.count, 1);
    close_world(&w);
}

enum { TEXT_SIZE = 256 };

static void add_text(char *text, const char *more)
{
    size_t len = strlen(text);

    snprintf(text + len, TEXT_SIZE - len, "%.100s;", more);
}

static bool note_headers(const dibs_item_info *info, void *arg)
{
    for (size_t i = 0; info->headers[i]; i++)
        add_text(arg, info->headers[i]);
    assert_int_equal(info->len, 5);
    add_text(arg, info->data);
    return true;
}

static bool note_queue(const char *queue, void *arg)
{
    add_text(arg, queue);
    return true;
}

static bool note_one_queue(const char *queue, void *arg)
{
    (void)note_queue(queue, arg);
    return false;
}

static void headers_are_apart_from_data(void **state)
{
    static const char *const headers[] = {"a=1", "b=", NULL};
    char text[TEXT_SIZE] = "";
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *queue;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_new(cl, name, NULL, &queue, err));
    CHECK(DIBS_OK,
          dibs_queue_push(queue, "data", 5, DIBS_PUSH_OPTS(.headers = headers),
                          NULL, err));
    CHECK(DIBS_OK, dibs_queue_peek(cl, name, DIBS_ITEM_READY, 0, 9,
                                   note_headers, text, err));
    assert_string_equal(text, "a=1;b=;data;");
    dibs_queue_free(queue);
    CHECK(DIBS_OK, dibs_queue_purge(cl, name, DIBS_ITEM_READY, NULL, err));
    dibs_close(cl);
}

static void queues_are_listed(void **state)
{
    dibs_client *cl = core_open();
    char names[3][80], text[TEXT_SIZE] = "", expected[TEXT_SIZE];
    const char *name = core_name();

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(names[i], sizeof(names[i]), "%s-%d", name, i);
        CHECK(DIBS_OK, dibs_queue_pause(cl, names[i], err));
    }
    snprintf(expected, sizeof(expected), "%s;%s;%s;", names[0], names[1],
             names[2]);
    CHECK(DIBS_OK, dibs_queue_list(cl, name, note_queue, text, err));
    assert_string_equal(text, expected);
    text[0] = '\0';
    CHECK(DIBS_OK, dibs_queue_list(cl, name, note_one_queue, text, err));
    assert_int_equal(strlen(text), strlen(names[0]) + 1);
    for (int i = 0; i < 3; i++)
        CHECK(DIBS_OK, dibs_queue_remove(cl, names[i], err));
    dibs_close(cl);
}

/* Steps have bounds; the calls have none. */
static void long_queues_go_in_chunks(void **state)
{
    world w = open_world();
    uint64_t purged = 0;
    listing ls;

    (void)state;
    push_many(&w, DIBS__PURGE_MAX + 100);
    ls = peek(&w, DIBS_ITEM_READY, 10, 500);
    assert_int_equal(ls.count, 500);
    assert_true(ls.rising);
    take_items(&w, 2);
    CHECK(DIBS_OK,
          dibs_queue_purge(w.cl, w.name, DIBS_ITEM_READY | DIBS_ITEM_LATER,
                           &purged, err));
    assert_int_equal(purged, DIBS__PURGE_MAX + 98);
    assert_int_equal(look_at(&w).out, 2);
    assert_int_equal(look_at(&w).purged, DIBS__PURGE_MAX + 98);
    close_world(&w);
}

static void dead_letters_are_redriven(void **state)
{
    world w = open_world();
    uint64_t redriven = 7;
    listing dead;

    (void)state;
    push_many(&w, 5);
    kill_items(&w, 4);
    dead = peek(&w, DIBS_ITEM_DEAD, 0, 9);
    assert_int_equal(dead.count, 4);
    assert_string_equal(dead.reason, "no such address");
    assert_true(dead.first.dead_wall_us > 0);
    CHECK(DIBS_NOTFOUND,
          dibs_queue_redrive(w.cl, w.name, 12345, 0, &redriven, err));
    assert_int_equal(redriven, 0);
    CHECK(DIBS_OK,
          dibs_queue_redrive(w.cl, w.name, dead.last, 0, &redriven, err));
    assert_int_equal(redriven, 1);
    CHECK(DIBS_OK, dibs_queue_redrive(w.cl, w.name, 0, 1, &redriven, err));
    assert_int_equal(redriven, 1);
    assert_int_equal(look_at(&w).ready, 3);
    assert_int_equal(peek(&w, DIBS_ITEM_READY, 2, 1).first.attempts, 0);
    CHECK(DIBS_OK,
          dibs_queue_set(w.cl, w.name,
                         DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_CAP,
                                             .cap = 4),
                         err));
    CHECK(DIBS_FULL, dibs_queue_redrive(w.cl, w.name, 0, 0, &redriven, err));
    assert_int_equal(redriven, 1);
    assert_int_equal(look_at(&w).dead, 1);
    close_world(&w);
}

static void settings_are_changed_one_by_one(void **state)
{
    world w = open_world();
    dibs_queue_info info = {.size = sizeof(info)};

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_queue_stats(w.cl, w.name, &info, err));
    CHECK(DIBS_NOTFOUND, dibs_queue_remove(w.cl, w.name, err));
    CHECK(DIBS_OK, dibs_queue_pause(w.cl, w.name, err));
    CHECK(DIBS_OK,
          dibs_queue_set(w.cl, w.name,
                         DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_TRIES |
                                                       DIBS_QUEUE_SET_SERIAL,
                                             .tries = 3, .serial = true,
                                             .cap = 9),
                         err));
    info = look_at(&w);
    assert_true(info.settings.paused && info.settings.serial);
    assert_int_equal(info.settings.tries, 3);
    assert_int_equal(info.settings.cap, DIBS__QUEUE_CAP);
    CHECK(DIBS_OK, dibs_queue_resume(w.cl, w.name, err));
    info = look_at(&w);
    assert_false(info.settings.paused);
    assert_int_equal(info.settings.tries, 3);
    push_many(&w, 1);
    CHECK(DIBS_BUSY, dibs_queue_remove(w.cl, w.name, err));
    CHECK(DIBS_OK, dibs_queue_purge(w.cl, w.name, DIBS_ITEM_READY, NULL, err));
    CHECK(DIBS_OK, dibs_queue_remove(w.cl, w.name, err));
    CHECK(DIBS_NOTFOUND, dibs_queue_stats(w.cl, w.name, &info, err));
    dibs_close(w.cl);
}

static void wrong_calls_change_nothing(void **state)
{
    world w = open_world();
    dibs_queue_info info = {.size = 0};
    listing ls = {.count = 0};

    (void)state;
    CHECK(DIBS_INVALID, dibs_queue_stats(w.cl, w.name, &info, err));
    CHECK(DIBS_INVALID, dibs_queue_set(w.cl, w.name, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_set(w.cl, w.name, DIBS_QUEUE_SETTINGS(0), err));
    CHECK(DIBS_INVALID, dibs_queue_pause(w.cl, "", err));
    CHECK(DIBS_INVALID, dibs_queue_purge(w.cl, w.name, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_queue_purge(w.cl, w.name, 64, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_peek(w.cl, w.name,
                          (dibs_item_place)(DIBS_ITEM_READY | DIBS_ITEM_OUT), 0,
                          1, note_item, &ls, err));
    CHECK(DIBS_NOTFOUND,
          dibs_queue_purge(w.cl, w.name, DIBS_ITEM_READY, NULL, err));
    CHECK(DIBS_NOTFOUND, dibs_queue_redrive(w.cl, w.name, 0, 0, NULL, err));
    CHECK(DIBS_NOTFOUND, dibs_queue_peek(w.cl, w.name, DIBS_ITEM_READY, 0, 1,
                                         note_item, &ls, err));
    dibs_close(w.cl);
}

int core_queue_admin_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_shows_every_place),
        cmocka_unit_test(headers_are_apart_from_data),
        cmocka_unit_test(queues_are_listed),
        cmocka_unit_test(long_queues_go_in_chunks),
        cmocka_unit_test(dead_letters_are_redriven),
        cmocka_unit_test(settings_are_changed_one_by_one),
        cmocka_unit_test(wrong_calls_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
