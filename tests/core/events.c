/* events.c - events through the public interface: append, readers, subscriptions; and
 * messages. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { FEW = 5, BURST = 300 };
#define BOUND_MS pace_ms(5000)

static uint64_t append(dibs_client *cl, const char *topic, const char *text)
{
    uint64_t position = 0;

    CHECK(DIBS_OK, dibs_events_append(cl, topic, text, strlen(text), NULL,
                                      &position, err));
    assert_true(position > 0);
    return position;
}

static dibs_reader *
reader_at(dibs_client *cl, const char *topic, const dibs_reader_opts *opts)
{
    dibs_reader *r = NULL;

    CHECK(DIBS_OK, dibs_reader_new(cl, topic, opts, &r, err));
    return r;
}

static void expect_event(dibs_reader *r, uint64_t position, const char *text)
{
    dibs_event ev;

    CHECK(DIBS_OK, dibs_reader_next(r, BOUND_MS, &ev, err));
    assert_int_equal(ev.kind, DIBS_EVENT);
    assert_int_equal(ev.position, position);
    assert_int_equal(ev.len, strlen(text));
    assert_memory_equal(ev.data, text, ev.len);
    assert_int_equal(dibs_reader_position(r), position);
}

static void expect_gap(dibs_reader *r, uint64_t from, uint64_t to)
{
    dibs_event ev;

    CHECK(DIBS_OK, dibs_reader_next(r, BOUND_MS, &ev, err));
    assert_int_equal(ev.kind, DIBS_EVENT_GAP);
    assert_int_equal(ev.from, from);
    assert_int_equal(ev.to, to);
}

static void expect_none(dibs_reader *r)
{
    dibs_event ev;

    CHECK(DIBS_TIMEOUT, dibs_reader_next(r, 0, &ev, err));
}

static void readers_start_where_they_are_told(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *topic = core_name();
    dibs_reader *end = reader_at(other, topic, NULL);
    uint64_t at[FEW];
    dibs_reader *r;

    (void)state;
    for (size_t i = 0; i < FEW; i++)
        at[i] = append(cl, topic, "x");
    expect_none(end);
    r = reader_at(other, topic, DIBS_READER_OPTS(.start = DIBS_FROM_START));
    for (size_t i = 0; i < FEW; i++)
        expect_event(r, at[i], "x");
    expect_none(r);
    dibs_reader_free(r);
    r = reader_at(other, topic,
                  DIBS_READER_OPTS(.start = DIBS_FROM_POSITION,
                                   .position = at[2]));
    expect_event(r, at[3], "x");
    dibs_reader_free(r);
    r = reader_at(other, topic,
                  DIBS_READER_OPTS(.start = DIBS_FROM_TIME,
                                   .wall_us = (int64_t)at[1]));
    expect_event(r, at[1], "x");
    dibs_reader_free(r);
    expect_event(end, append(cl, topic, "later"), "later");
    dibs_reader_free(end);
    dibs_close(cl);
    dibs_close(other);
}

static void trim_under_a_reader_is_a_gap(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_reader *r =
        reader_at(cl, topic, DIBS_READER_OPTS(.start = DIBS_FROM_START));
    dibs_topic_state at;
    uint64_t first, gone = 0, last = 0;

    (void)state;
    first = append(cl, topic, "1");
    expect_event(r, first, "1");
    for (size_t i = 0; i < FEW; i++)
        last = append(cl, topic, "x");
    CHECK(DIBS_OK, dibs_events_trim(cl, topic, last - 1, &gone, err));
    assert_int_equal(gone, FEW);
    CHECK(DIBS_OK, dibs_events_show(cl, topic, &at, err));
    assert_int_equal(at.first, last);
    assert_int_equal(at.count, 1);
    {
        dibs_event ev;

        CHECK(DIBS_OK, dibs_reader_next(r, BOUND_MS, &ev, err));
        assert_int_equal(ev.kind, DIBS_EVENT_GAP);
        assert_int_equal(ev.from, first);
        assert_true(ev.to > first && ev.to < last);
    }
    expect_event(r, last, "x");
    /* Nothing is left to show it: the bounds do. */
    first = last;
    last = append(cl, topic, "unread");
    CHECK(DIBS_OK, dibs_events_trim(cl, topic, UINT64_MAX, NULL, err));
    expect_gap(r, first, last);
    dibs_reader_free(r);
    dibs_close(cl);
}

static void a_position_that_the_store_has_not_is_a_fork(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    uint64_t last = append(cl, topic, "1");
    dibs_reader *r = reader_at(cl, topic,
                               DIBS_READER_OPTS(.start = DIBS_FROM_POSITION,
                                                .position = last + 1000));
    dibs_event ev;

    (void)state;
    CHECK(DIBS_OK, dibs_reader_next(r, BOUND_MS, &ev, err));
    assert_int_equal(ev.kind, DIBS_EVENT_FORK);
    assert_int_equal(ev.from, last);
    assert_int_equal(ev.to, last + 1000);
    dibs_reader_free(r);
    dibs_close(cl);
}

typedef struct awaited {
    dibs_client *cl;
    const char *topic;
} awaited;

static void *append_burst(void *arg)
{
    awaited *a = arg;

    for (int i = 0; i < BURST; i++) {
        char text[16];

        snprintf(text, sizeof(text), "%d", i);
        (void)append(a->cl, a->topic, text);
    }
    return NULL;
}

static void a_reader_that_waits_gets_all(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    awaited a = {.cl = cl, .topic = core_name()};
    dibs_reader *r = reader_at(other, a.topic, NULL);
    pthread_t thread;

    (void)state;
    expect_none(r);
    assert_int_equal(pthread_create(&thread, NULL, append_burst, &a), 0);
    for (int i = 0; i < BURST; i++) {
        dibs_event ev;
        char text[16];

        snprintf(text, sizeof(text), "%d", i);
        CHECK(DIBS_OK, dibs_reader_next(r, BOUND_MS, &ev, err));
        assert_int_equal(ev.kind, DIBS_EVENT);
        assert_int_equal(ev.len, strlen(text));
        assert_memory_equal(ev.data, text, ev.len);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    dibs_reader_free(r);
    dibs_close(cl);
    dibs_close(other);
}

static void limits_are_kept(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_topic_state at;

    (void)state;
    for (int i = 0; i < 20; i++)
        CHECK(DIBS_OK, dibs_events_append(cl, topic, "0123456789", 10,
                                          DIBS_APPEND_OPTS(.keep_bytes = 50),
                                          NULL, err));
    CHECK(DIBS_OK, dibs_events_show(cl, topic, &at, err));
    assert_int_equal(at.count, 5);
    assert_int_equal(at.bytes, 50);
    dibs_close(cl);
}

static void odd_arguments_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_append_opts unset = {.keep = 1};
    dibs_reader_opts unset_too = {.position = 1};
    static char big[DIBS_EVENT_MAX + 1];
    dibs_reader *r = NULL;

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_events_append(cl, "dibs.trail", "x", 1, NULL, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_events_append(cl, "t", big, sizeof(big), NULL, NULL, err));
    CHECK(DIBS_INVALID, dibs_events_append(cl, "t", "x", 1, &unset, NULL, err));
    CHECK(DIBS_INVALID, dibs_events_append(cl, "", "x", 1, NULL, NULL, err));
    CHECK(DIBS_INVALID, dibs_reader_new(cl, "t", &unset_too, &r, err));
    /* It would be group "c" of topic "t/b" too. */
    CHECK(DIBS_INVALID,
          dibs_reader_new(cl, "t", DIBS_READER_OPTS(.group = "b/c"), &r, err));
    assert_null(r);
    dibs_close(cl);
}

typedef struct heard {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    size_t count;
    uint64_t first, last;
} heard;

static void on_event(const dibs_event *event, void *arg)
{
    heard *h = arg;

    pthread_mutex_lock(&h->mutex);
    if (h->count++ == 0)
        h->first = event->position;
    h->last = event->position;
    pthread_cond_signal(&h->cond);
    pthread_mutex_unlock(&h->mutex);
}

static bool has_heard(heard *h)
{
    bool any;

    pthread_mutex_lock(&h->mutex);
    any = h->count > 0;
    pthread_mutex_unlock(&h->mutex);
    return any;
}

static void every_subscription_gets_every_event(void **state)
{
    dibs_client *clients[] = {core_open(), core_open()};
    const char *topic = core_name();
    dibs_subscription *subs[2] = {NULL, NULL};
    heard h[2];
    uint64_t last = 0;

    (void)state;
    (void)append(clients[0], topic, "before");
    for (size_t i = 0; i < 2; i++) {
        h[i] = (heard){.mutex = PTHREAD_MUTEX_INITIALIZER,
                       .cond = PTHREAD_COND_INITIALIZER};
        CHECK(DIBS_OK, dibs_subscribe(clients[i], topic, NULL, on_event, &h[i],
                                      &subs[i], err));
    }
    for (size_t i = 0; i < FEW; i++)
        last = append(clients[i % 2], topic, "x");
    for (size_t i = 0; i < 2; i++) {
        pthread_mutex_lock(&h[i].mutex);
        while (h[i].last != last)
            pthread_cond_wait(&h[i].cond, &h[i].mutex);
        pthread_mutex_unlock(&h[i].mutex);
        dibs_unsubscribe(subs[i]);
        assert_int_equal(h[i].count, FEW);
    }
    dibs_close(clients[0]);
    dibs_close(clients[1]);
}

static dibs_reader *
member_of(dibs_client *cl, const char *topic, const char *group)
{
    return reader_at(cl, topic,
                     DIBS_READER_OPTS(.start = DIBS_FROM_START, .group = group,
                                      .ttl_ms = pace_ms(10000)));
}

static void a_group_goes_on_where_it_was(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *topic = core_name();
    dibs_reader *one = member_of(cl, topic, "g");
    dibs_reader *two = member_of(other, topic, "g");
    dibs_reader *else_where = member_of(other, topic, "h");
    uint64_t at[FEW];
    dibs_event ev;

    (void)state;
    for (size_t i = 0; i < FEW; i++)
        at[i] = append(cl, topic, "x");
    expect_event(one, at[0], "x");
    expect_event(one, at[1], "x");
    CHECK(DIBS_TIMEOUT, dibs_reader_next(two, 0, &ev, err));
    expect_event(else_where, at[0], "x");
    /* What was not committed comes again. */
    CHECK(DIBS_OK, dibs_reader_commit(one, err));
    expect_event(one, at[2], "x");
    dibs_reader_free(one);
    expect_event(two, at[2], "x");
    expect_event(two, at[3], "x");
    expect_event(two, at[4], "x");
    expect_none(two); /* The wait keeps the position. */
    dibs_reader_free(two);
    one = member_of(cl, topic, "g");
    expect_none(one);
    dibs_reader_free(one);
    dibs_reader_free(else_where);
    dibs_close(cl);
    dibs_close(other);
}

static void a_displaced_reader_changes_nothing(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *topic = core_name();
    dibs_reader *one = member_of(cl, topic, "g");
    dibs_reader *two = member_of(other, topic, "g");
    uint64_t first = append(cl, topic, "1"), second = append(cl, topic, "2");
    char lock[128];
    dibs_event ev;

    (void)state;
    expect_event(one, first, "1");
    snprintf(lock, sizeof(lock), "events/%s/g", topic);
    CHECK(DIBS_OK, dibs_lease_break(cl, lock, 0, NULL, NULL, err));
    expect_event(two, first, "1");
    CHECK(DIBS_OK, dibs_reader_commit(two, err));
    expect_event(two, second, "2");
    CHECK(DIBS_LOST, dibs_reader_commit(one, err));
    CHECK(DIBS_TIMEOUT, dibs_reader_next(one, 0, &ev, err));
    dibs_reader_free(two);
    expect_event(one, second, "2");
    dibs_reader_free(one);
    dibs_close(cl);
    dibs_close(other);
}

/* Another has entered, and the lease of this one has not ended yet: as after a pause
 * within a commit. */
static void a_late_write_of_a_position_changes_nothing(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_reader *r = member_of(cl, topic, "g");
    uint64_t first = append(cl, topic, "1"), version;
    dibs_value value = {0};
    char name[128];

    (void)state;
    expect_event(r, first, "1");
    snprintf(name, sizeof(name), "events/%s/g", topic);
    CHECK(DIBS_OK, dibs_state_set(cl, name, "", 0, 0, &version, err));
    CHECK(DIBS_LOST, dibs_reader_commit(r, err));
    CHECK(DIBS_OK, dibs_state_get(cl, name, &value, err));
    assert_int_equal(value.version, version);
    dibs_value_free(&value);
    dibs_reader_free(r);
    dibs_close(cl);
}

static void trim_under_a_group_is_a_gap(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_reader *r = member_of(cl, topic, "g");
    uint64_t first = append(cl, topic, "1"), second, third;

    (void)state;
    expect_event(r, first, "1");
    CHECK(DIBS_OK, dibs_reader_commit(r, err));
    dibs_reader_free(r);
    second = append(cl, topic, "2");
    third = append(cl, topic, "3");
    CHECK(DIBS_OK, dibs_events_trim(cl, topic, second, NULL, err));
    r = member_of(cl, topic, "g");
    expect_gap(r, first, second);
    CHECK(DIBS_OK, dibs_reader_commit(r, err));
    dibs_reader_free(r);
    r = member_of(cl, topic, "g"); /* The gap was delivered, once. */
    expect_event(r, third, "3");
    dibs_reader_free(r);
    dibs_close(cl);
}

static void a_group_that_begins_at_the_end_keeps_it(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_reader_opts *opts =
        DIBS_READER_OPTS(.group = "g", .ttl_ms = pace_ms(3000));
    dibs_reader *r = reader_at(cl, topic, opts);
    uint64_t position;

    (void)state;
    expect_none(r);
    dibs_reader_free(r);
    position = append(cl, topic, "first");
    r = reader_at(cl, topic, opts);
    expect_event(r, position, "first");
    CHECK(DIBS_OK, dibs_reader_commit(r, err));
    dibs_reader_free(r);
    position = append(cl, topic, "between");
    r = reader_at(cl, topic, opts);
    expect_event(r, position, "between");
    dibs_reader_free(r);
    dibs_close(cl);
}

/* Nothing is kept: a listener gets what is sent after it was made. */
static void messages_reach_those_who_listen(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *topic = core_name();
    dibs_listener *listeners[2] = {NULL};
    dibs_message got;

    (void)state;
    CHECK(DIBS_OK, dibs_message_send(cl, topic, "before", 6, err));
    CHECK(DIBS_OK, dibs_listener_new(cl, topic, &listeners[0], err));
    CHECK(DIBS_OK, dibs_listener_new(other, topic, &listeners[1], err));
    (void)append(cl, topic, "an event");
    for (int i = 0; i < FEW; i++)
        CHECK(DIBS_OK, dibs_message_send(cl, topic, &i, sizeof(i), err));
    for (size_t n = 0; n < 2; n++) {
        for (int i = 0; i < FEW; i++) {
            CHECK(DIBS_OK,
                  dibs_listener_next(listeners[n], BOUND_MS, &got, err));
            assert_int_equal(got.len, sizeof(i));
            assert_memory_equal(got.data, &i, sizeof(i));
        }
        CHECK(DIBS_TIMEOUT, dibs_listener_next(listeners[n], 0, &got, err));
        dibs_listener_free(listeners[n]);
    }
    CHECK(DIBS_INVALID,
          dibs_message_send(cl, topic, "", DIBS_MESSAGE_MAX + 1, err));
    dibs_close(other);
    dibs_close(cl);
}

static void a_listener_can_be_cancelled(void **state)
{
    dibs_client *cl = core_open();
    dibs_listener *listener = NULL;
    dibs_message got;

    (void)state;
    CHECK(DIBS_OK, dibs_listener_new(cl, core_name(), &listener, err));
    dibs_listener_cancel(listener);
    CHECK(DIBS_CANCELLED, dibs_listener_next(listener, -1, &got, err));
    CHECK(DIBS_TIMEOUT, dibs_listener_next(listener, 0, &got, err));
    dibs_close(cl);
    CHECK(DIBS_INVALID, dibs_listener_next(listener, -1, &got, err));
    dibs_listener_free(listener);
}

/* Its turn may come later than the first event. */
static void a_subscription_of_a_new_group_has_all_from_now_on(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *topic = core_name();
    const dibs_reader_opts *opts =
        DIBS_READER_OPTS(.group = "g", .ttl_ms = pace_ms(3000));
    heard h = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    char name[DIBS_NAME_MAX + 1];
    dibs_subscription *sub = NULL;
    dibs_lock *turn = NULL;
    uint64_t last;

    (void)state;
    snprintf(name, sizeof(name), "events/%s/g", topic);
    (void)append(cl, topic, "before");
    CHECK(DIBS_OK, dibs_lock_new(other, name, NULL, &turn, err));
    CHECK(DIBS_OK, dibs_lock_acquire(turn, err));
    CHECK(DIBS_OK, dibs_subscribe(cl, topic, opts, on_event, &h, &sub, err));
    last = append(cl, topic, "after");
    CHECK(DIBS_OK, dibs_lock_release(turn, err));
    /* One that begins too late gets one of these first. */
    while (!has_heard(&h)) {
        (void)append(cl, topic, "later");
        poll(NULL, 0, 10);
    }
    dibs_unsubscribe(sub);
    assert_int_equal(h.first, last);
    dibs_lock_free(turn);
    dibs_close(other);
    dibs_close(cl);
}

static void count_warning(dibs_log_level level, const char *event,
                          const char *text, void *arg)
{
    (void)text;
    if (level == DIBS_LOG_WARN && strcmp(event, "events") == 0)
        __atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

/* It got nothing, so nothing comes again. */
static void a_subscription_without_a_turn_ends_without_a_warning(void **state)
{
    dibs_client *cl = NULL, *other = core_open();
    const char *topic = core_name();
    dibs_reader *has_turn = member_of(other, topic, "g"), *waits;
    uint64_t first = append(other, topic, "1");
    heard h = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    dibs_subscription *sub = NULL;
    int warnings = 0;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.log = count_warning, .log_arg = &warnings,
                                     .log_level = DIBS_LOG_WARN),
                    &cl, err));
    expect_event(has_turn, first, "1");
    CHECK(DIBS_OK, dibs_subscribe(cl, topic, DIBS_READER_OPTS(.group = "g"),
                                  on_event, &h, &sub, err));
    dibs_unsubscribe(sub);
    IN_TIME(h.count == 0);
    assert_int_equal(warnings, 0);
    waits = member_of(cl, topic, "g");
    CHECK(DIBS_OK, dibs_reader_commit(waits, err));
    dibs_reader_free(waits);
    dibs_reader_free(has_turn);
    dibs_close(other);
    dibs_close(cl);
}

/* The group has a position, which a later subscription leaves as it is. */
static void a_subscription_goes_on_where_its_group_was(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    dibs_reader *reader = member_of(cl, topic, "g");
    heard h = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    dibs_subscription *sub = NULL;
    uint64_t one, two;

    (void)state;
    one = append(cl, topic, "1");
    two = append(cl, topic, "2");
    expect_event(reader, one, "1");
    CHECK(DIBS_OK, dibs_reader_commit(reader, err));
    dibs_reader_free(reader);
    CHECK(DIBS_OK, dibs_subscribe(cl, topic, DIBS_READER_OPTS(.group = "g"),
                                  on_event, &h, &sub, err));
    pthread_mutex_lock(&h.mutex);
    while (h.count == 0)
        pthread_cond_wait(&h.cond, &h.mutex);
    assert_int_equal(h.first, two);
    pthread_mutex_unlock(&h.mutex);
    dibs_unsubscribe(sub);
    dibs_close(cl);
}

static void a_close_ends_the_waits(void **state)
{
    dibs_client *cl = core_open();
    const char *topic = core_name();
    heard h = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    dibs_subscription *sub = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_subscribe(cl, topic, NULL, on_event, &h, &sub, err));
    dibs_close(cl);
    dibs_unsubscribe(sub);
}

static bool
count_topic(const char *topic, const dibs_topic_state *at, void *arg)
{
    assert_int_equal(at->count, 1);
    assert_int_equal(at->bytes, 1);
    assert_int_equal(at->first, at->last);
    assert_string_not_equal(topic, "");
    return ++*(int *)arg != 3;
}

/* More than a page of the store. */
static void topics_are_listed(void **state)
{
    enum { MANY = 251 };
    dibs_client *cl = core_open();
    char name[DIBS_NAME_MAX + 1], begins[64];
    int shown = 3;

    (void)state;
    snprintf(begins, sizeof(begins), "%.40s", core_name());
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%s-%d", begins, i);
        (void)append(cl, name, "x");
    }
    CHECK(DIBS_OK, dibs_events_list(cl, begins, count_topic, &shown, err));
    assert_int_equal(shown, MANY + 3);
    shown = 0;
    CHECK(DIBS_OK, dibs_events_list(cl, begins, count_topic, &shown, err));
    assert_int_equal(shown, 3);
    snprintf(name, sizeof(name), "%s-250", begins);
    shown = 3;
    CHECK(DIBS_OK, dibs_events_list(cl, name, count_topic, &shown, err));
    assert_int_equal(shown, 4);
    dibs_close(cl);
}

int core_events_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_start_where_they_are_told),
        cmocka_unit_test(trim_under_a_reader_is_a_gap),
        cmocka_unit_test(a_position_that_the_store_has_not_is_a_fork),
        cmocka_unit_test(a_reader_that_waits_gets_all),
        cmocka_unit_test(limits_are_kept),
        cmocka_unit_test(topics_are_listed),
        cmocka_unit_test(odd_arguments_are_refused),
        cmocka_unit_test(every_subscription_gets_every_event),
        cmocka_unit_test(a_group_goes_on_where_it_was),
        cmocka_unit_test(a_displaced_reader_changes_nothing),
        cmocka_unit_test(a_late_write_of_a_position_changes_nothing),
        cmocka_unit_test(trim_under_a_group_is_a_gap),
        cmocka_unit_test(a_group_that_begins_at_the_end_keeps_it),
        cmocka_unit_test(a_subscription_of_a_new_group_has_all_from_now_on),
        cmocka_unit_test(a_subscription_without_a_turn_ends_without_a_warning),
        cmocka_unit_test(a_subscription_goes_on_where_its_group_was),
        cmocka_unit_test(a_close_ends_the_waits),
        cmocka_unit_test(messages_reach_those_who_listen),
        cmocka_unit_test(a_listener_can_be_cancelled),
    };

    return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
