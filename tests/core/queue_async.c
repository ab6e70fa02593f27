/* queue_async.c - queues without blocking: callbacks on a thread of the client, and on the
 * program's own by descriptor and process. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <dibs/queue_admin.h>
#include <dibs/queue_async.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 40 };

/* What callbacks have seen. It outlives the test: a call that is under way when the test
 * fails writes there all the same. */
typedef struct seen {
    atomic_int calls;
    dibs_status rc;
    dibs_item *item;
    dibs_pushed pushed;
    pthread_t thread;
} seen;

static void note(seen *sn, dibs_status rc)
{
    sn->rc = rc;
    sn->thread = pthread_self();
    atomic_fetch_add(&sn->calls, 1);
}

static void see_item(dibs_queue *q, dibs_item *item, dibs_status rc,
                     const dibs_error *err, void *arg)
{
    seen *sn = arg;

    (void)q;
    assert_status(err->status, rc);
    assert_true((item != NULL) == (rc == DIBS_OK));
    sn->item = item;
    note(sn, rc);
}

static void
see_settled(dibs_item *item, dibs_status rc, const dibs_error *err, void *arg)
{
    seen *sn = arg;

    (void)err;
    sn->item = item;
    note(sn, rc);
}

static void see_pushed(dibs_queue *q, const dibs_pushed *pushed, dibs_status rc,
                       const dibs_error *err, void *arg)
{
    seen *sn = arg;

    (void)q;
    (void)err;
    sn->pushed = *pushed;
    note(sn, rc);
}

static bool is_called(void *arg)
{
    return atomic_load(&((seen *)arg)->calls) > 0;
}

static dibs_queue *open_queue(dibs_client *cl, const char *name)
{
    dibs_queue *q = NULL;

    CHECK(DIBS_OK, dibs_queue_new(cl, name, NULL, &q, err));
    return q;
}

static void push(dibs_queue *q, const char *text)
{
    CHECK(DIBS_OK, dibs_queue_push(q, text, strlen(text), NULL, NULL, err));
}

static dibs_queue_info look(dibs_client *cl, const char *name)
{
    dibs_queue_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_queue_stats(cl, name, &info, err));
    return info;
}

static uint64_t count_items(dibs_client *cl, const char *name)
{
    dibs_queue_info info = look(cl, name);

    return info.ready + info.out + info.later + info.dead;
}

static void a_push_reaches_a_callback(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    static seen got, pushed, acked;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &got, err));
    CHECK(DIBS_OK,
          dibs_queue_push_async(q, "one", 3, NULL, see_pushed, &pushed, err));
    core_until(is_called, &pushed);
    assert_status(pushed.rc, DIBS_OK);
    core_until(is_called, &got);
    assert_status(got.rc, DIBS_OK);
    assert_int_equal(dibs_item_id(got.item), pushed.pushed.id);
    assert_string_equal(dibs_item_data(got.item, NULL), "one");
    assert_status(dibs_item_check(got.item), DIBS_OK);
    assert_false(pthread_equal(got.thread, pthread_self()));
    CHECK(DIBS_OK, dibs_item_ack_async(got.item, see_settled, &acked, err));
    assert_status(dibs_item_check(got.item), DIBS_LOST);
    CHECK(DIBS_INVALID,
          dibs_item_ack_async(got.item, see_settled, &acked, err));
    core_until(is_called, &acked);
    assert_status(acked.rc, DIBS_OK);
    assert_ptr_equal(acked.item, got.item);
    assert_int_equal(count_items(cl, name), 0);
    dibs_item_free(got.item);
    dibs_queue_free(q);
    dibs_close(cl);
}

static bool note_result(const dibs_item_info *info, void *arg)
{
    snprintf(arg, 16, "%s", (const char *)info->data);
    return true;
}

static void an_item_is_extended_and_has_a_result(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    static seen extended, acked;
    int64_t limit_ms = pace_ms(3000);
    dibs_item *item = NULL;
    char result[16] = "";

    (void)state;
    CHECK(DIBS_OK,
          dibs_queue_set(cl, name,
                         DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_KEEP_DONE,
                                             .keep_done = 1),
                         err));
    push(q, "one");
    CHECK(DIBS_OK, dibs_queue_reserve(q, pace_ms(30000), &item, err));
    CHECK(DIBS_INVALID,
          dibs_item_extend_async(item, -1, see_settled, &extended, err));
    CHECK(DIBS_OK,
          dibs_item_extend_async(item, limit_ms, see_settled, &extended, err));
    core_until(is_called, &extended);
    assert_status(extended.rc, DIBS_OK);
    assert_ptr_equal(extended.item, item);
    IN_TIME(dibs_item_check(item) == DIBS_OK);
    assert_true(dibs_item_valid_ms(item) <= limit_ms);
    CHECK(DIBS_OK,
          dibs_item_ack_result_async(item, "42", see_settled, &acked, err));
    core_until(is_called, &acked);
    assert_status(acked.rc, DIBS_OK);
    CHECK(DIBS_OK, dibs_queue_peek(cl, name, DIBS_ITEM_DONE, 0, 1, note_result,
                                   result, err));
    assert_string_equal(result, "42");
    dibs_item_free(item);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* Nothing runs but in dibs_async_process(), and each item once. */
static void a_loop_needs_no_thread(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    struct pollfd pfd = {.fd = dibs_async_fd(cl), .events = POLLIN};
    static seen got[MANY], acked[MANY];
    size_t left = MANY;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &got[i], err));
    for (size_t i = 0; i < MANY; i++)
        push(q, "x");
    while (left > 0) {
        IN_TIME(poll(&pfd, 1, (int)pace_ms(30000)) == 1);
        for (size_t i = 0; i < MANY; i++)
            assert_int_equal(atomic_load(&acked[i].calls),
                             acked[i].item != NULL);
        (void)dibs_async_process(cl);
        for (size_t i = 0; i < MANY; i++) {
            if (!got[i].item || acked[i].thread)
                continue;
            acked[i].thread = pthread_self();
            CHECK(DIBS_OK, dibs_item_ack_async(got[i].item, see_settled,
                                               &acked[i], err));
        }
        left = 0;
        for (size_t i = 0; i < MANY; i++)
            left += !is_called(&acked[i]);
    }
    for (size_t i = 0; i < MANY; i++) {
        assert_status(got[i].rc, DIBS_OK);
        assert_status(acked[i].rc, DIBS_OK);
        assert_int_equal(atomic_load(&got[i].calls), 1);
        assert_true(pthread_equal(got[i].thread, pthread_self()));
        for (size_t j = 0; j < i; j++)
            assert_true(dibs_item_fence(got[i].item) !=
                        dibs_item_fence(got[j].item));
    }
    for (size_t i = 0; i < MANY; i++)
        dibs_item_free(got[i].item);
    assert_int_equal(count_items(cl, name), 0);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void a_wait_ends(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name());
    static seen none, late, ended, after;

    (void)state;
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, 0, see_item, &none, err));
    core_until(is_called, &none);
    assert_status(none.rc, DIBS_BUSY);
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &ended, err));
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, 20, see_item, &late, err));
    core_until(is_called, &late);
    assert_status(late.rc, DIBS_TIMEOUT);
    assert_false(is_called(&ended));
    dibs_queue_cancel(q);
    core_until(is_called, &ended);
    assert_status(ended.rc, DIBS_CANCELLED);
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &after, err));
    core_until(is_called, &after);
    assert_status(after.rc, DIBS_CANCELLED);
    dibs_queue_free(q);
    dibs_close(cl);
}

/* With a loop that does not turn, so that the callbacks are still to be run. */
static void a_freed_queue_calls_nobody(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name), *later = open_queue(other, name);
    static seen got, waits, pushed;
    dibs_item *item = NULL;

    (void)state;
    assert_true(dibs_async_fd(cl) >= 0);
    push(later, "one");
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &got, err));
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &waits, err));
    CHECK(DIBS_OK,
          dibs_queue_push_async(q, "two", 3, NULL, see_pushed, &pushed, err));
    dibs_queue_free(q);
    (void)dibs_async_process(cl);
    assert_int_equal(atomic_load(&got.calls) + atomic_load(&waits.calls) +
                         atomic_load(&pushed.calls),
                     0);
    CHECK(DIBS_OK, dibs_queue_reserve(later, pace_ms(30000), &item, err));
    assert_string_equal(dibs_item_data(item, NULL), "one");
    CHECK(DIBS_OK, dibs_item_ack(item, err));
    dibs_item_free(item);
    dibs_queue_free(later);
    dibs_close(other);
    dibs_close(cl);
}

/* What was acked and pushed before the close is done. */
static void a_close_ends_all_calls(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    static seen waits, acked, pushed;
    dibs_item *item = NULL;

    (void)state;
    assert_true(dibs_async_fd(cl) >= 0);
    push(q, "one");
    CHECK(DIBS_OK, dibs_queue_reserve(q, pace_ms(30000), &item, err));
    CHECK(DIBS_OK, dibs_item_ack_async(item, see_settled, &acked, err));
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, see_item, &waits, err));
    CHECK(DIBS_OK, dibs_queue_push_async(q, "two", 3,
                                         DIBS_PUSH_OPTS(.delay_ms = 3600000),
                                         see_pushed, &pushed, err));
    dibs_close(cl);
    assert_status(waits.rc, DIBS_CANCELLED);
    assert_status(acked.rc, DIBS_OK);
    assert_status(pushed.rc, DIBS_OK);
    assert_int_equal(atomic_load(&waits.calls) + atomic_load(&acked.calls) +
                         atomic_load(&pushed.calls),
                     3);
    dibs_item_free(item);
    dibs_queue_free(q);
    assert_int_equal(look(other, name).later, 1);
    assert_int_equal(count_items(other, name), 1);
    dibs_close(other);
}

/* The callback frees item and queue. */
static void free_both(dibs_queue *q, dibs_item *item, dibs_status rc,
                      const dibs_error *err, void *arg)
{
    (void)err;
    dibs_item_free(item);
    dibs_queue_free(q);
    note(arg, rc);
}

static void a_callback_may_free_the_queue(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    static seen sn;

    (void)state;
    push(q, "one");
    CHECK(DIBS_OK, dibs_queue_reserve_async(q, -1, free_both, &sn, err));
    core_until(is_called, &sn);
    assert_status(sn.rc, DIBS_OK);
    assert_int_equal(count_items(cl, name), 1);
    dibs_close(cl);
}

static void a_nack_and_a_death_are_told(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_queue *q = open_queue(cl, name);
    static seen nacked, dead;
    dibs_item *item = NULL;

    (void)state;
    push(q, "one");
    CHECK(DIBS_OK, dibs_queue_reserve(q, pace_ms(30000), &item, err));
    CHECK(DIBS_OK,
          dibs_item_nack_async(item, 0, "again", see_settled, &nacked, err));
    /* The settlement goes on without the item. */
    dibs_item_free(item);
    core_until(is_called, &nacked);
    assert_status(nacked.rc, DIBS_OK);
    CHECK(DIBS_OK, dibs_queue_reserve(q, pace_ms(30000), &item, err));
    assert_int_equal(dibs_item_attempt(item), 2);
    CHECK(DIBS_OK,
          dibs_item_dead_async(item, "enough", see_settled, &dead, err));
    core_until(is_called, &dead);
    assert_status(dead.rc, DIBS_OK);
    dibs_item_free(item);
    assert_int_equal(look(cl, name).dead, 1);
    dibs_queue_free(q);
    dibs_close(cl);
}

static void malformed_calls_start_nothing(void **state)
{
    dibs_client *cl = core_open();
    dibs_queue *q = open_queue(cl, core_name());
    static seen sn;

    (void)state;
    CHECK(DIBS_INVALID, dibs_queue_reserve_async(q, 0, NULL, NULL, err));
    CHECK(DIBS_INVALID, dibs_queue_reserve_async(NULL, 0, see_item, &sn, err));
    CHECK(DIBS_INVALID, dibs_item_ack_async(NULL, see_settled, &sn, err));
    CHECK(DIBS_INVALID,
          dibs_item_nack_async(NULL, -1, NULL, see_settled, &sn, err));
    CHECK(DIBS_INVALID,
          dibs_queue_push_async(q, "x", 1, NULL, NULL, NULL, err));
    CHECK(DIBS_INVALID,
          dibs_queue_push_async(q, "x", 1, DIBS_PUSH_OPTS(.wait_ms = 1),
                                see_pushed, &sn, err));
    CHECK(DIBS_INVALID, dibs_queue_push_async(q, "x", DIBS_ITEM_MAX + 1, NULL,
                                              see_pushed, &sn, err));
    dibs_queue_free(q);
    dibs_close(cl);
    assert_int_equal(atomic_load(&sn.calls), 0);
}

int core_queue_async_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_push_reaches_a_callback),
        cmocka_unit_test(an_item_is_extended_and_has_a_result),
        cmocka_unit_test(a_loop_needs_no_thread),
        cmocka_unit_test(a_wait_ends),
        cmocka_unit_test(a_freed_queue_calls_nobody),
        cmocka_unit_test(a_close_ends_all_calls),
        cmocka_unit_test(a_callback_may_free_the_queue),
        cmocka_unit_test(a_nack_and_a_death_are_told),
        cmocka_unit_test(malformed_calls_start_nothing),
    };

    return cmocka_run_group_tests_name("queues without blocking", tests, NULL,
                                       NULL);
}
