/* test_client_listener.c - listeners on a store that fails: what was lost is reported, and
 * nothing is lost after the report. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include <stdio.h>
#include <string.h>

enum { FEW = 3, FLOOD = 5000 };

static dibs_listener *listen_to(world *w)
{
    dibs_listener *listener = NULL;

    CHECK(DIBS_OK, dibs_listener_new(w->one, "t", &listener, err));
    return listener;
}

static void send_text(world *w, const char *text)
{
    CHECK(DIBS_OK, dibs_message_send(w->other, "t", text, strlen(text), err));
}

static void expect_text(dibs_listener *listener, const char *text)
{
    dibs_message got;

    CHECK(DIBS_OK, dibs_listener_next(listener, WORLD_BOUND_MS, &got, err));
    assert_false(got.missed);
    assert_int_equal(got.len, strlen(text));
    assert_memory_equal(got.data, text, got.len);
}

static void expect_missed(dibs_listener *listener)
{
    dibs_message got;

    CHECK(DIBS_OK, dibs_listener_next(listener, WORLD_BOUND_MS, &got, err));
    assert_true(got.missed);
    assert_null(got.data);
}

static void lost_notices_are_reported_once(void **state)
{
    world *w = *state;
    dibs_listener *listener = listen_to(w);

    send_text(w, "1");
    expect_text(listener, "1");
    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, 1);
    send_text(w, "2");
    expect_missed(listener);
    send_text(w, "3");
    expect_text(listener, "3");
    dibs_listener_free(listener);
}

/* A report before that would be too early: more could be lost. */
static void a_loss_is_reported_when_it_listens_again(void **state)
{
    world *w = *state;
    dibs_listener *listener = listen_to(w);
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    dibs_error why = {0};
    dibs_message got;
    dibs_status rc;

    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, 1);
    world_fault(w, DIBS__STEP_EAR, DIBS__FAULT_FAIL, -1);
    send_text(w, "1");
    while ((rc = dibs_listener_next(listener, 10, &got, &why)) == DIBS_TIMEOUT)
        IN_TIME(dibsx_now() < until);
    assert_status(rc, DIBS_UNAVAIL);
    world_heal(w);
    expect_missed(listener);
    dibs_listener_free(listener);
}

/* More than pipe and inbox have room for. */
static void a_full_inbox_is_reported_behind_what_it_has(void **state)
{
    world *w = *state;
    dibs_listener *listener = listen_to(w);
    dibs_message got = {0};
    int count = 0;

    for (int i = 0; i < FLOOD; i++)
        send_text(w, "x");
    while (!got.missed) {
        CHECK(DIBS_OK, dibs_listener_next(listener, WORLD_BOUND_MS, &got, err));
        count += !got.missed;
    }
    assert_in_range(count, 1, FLOOD - 1);
    /* What was under way comes before it, and may fill the pipe again: then it is among
     * what was lost. */
    while (got.missed || got.len == 1) {
        if (got.missed)
            send_text(w, "after");
        CHECK(DIBS_OK, dibs_listener_next(listener, WORLD_BOUND_MS, &got, err));
    }
    assert_int_equal(got.len, 5);
    dibs_listener_free(listener);
}

/* A message whose answer was lost is not sent again. */
static void a_message_is_sent_once(void **state)
{
    world *w = *state;
    dibs_listener *listener = NULL;
    dibs_message got;

    CHECK(DIBS_OK, dibs_listener_new(w->other, "t", &listener, err));
    world_fault(w, DIBS__STEP_SAY, DIBS__FAULT_DROP_AFTER, 1);
    CHECK(DIBS_UNKNOWN, dibs_message_send(w->one, "t", "once", 4, err));
    expect_text(listener, "once");
    world_fault(w, DIBS__STEP_SAY, DIBS__FAULT_FAIL, 1);
    CHECK(DIBS_UNAVAIL, dibs_message_send(w->one, "t", "never", 5, err));
    CHECK(DIBS_TIMEOUT, dibs_listener_next(listener, 0, &got, err));
    dibs_listener_free(listener);
}

static void every_listener_of_a_client_gets_it(void **state)
{
    world *w = *state;
    dibs_listener *all[FEW];

    for (int i = 0; i < FEW; i++)
        all[i] = listen_to(w);
    send_text(w, "1");
    for (int i = 0; i < FEW; i++)
        expect_text(all[i], "1");
    dibs_listener_free(all[0]);
    send_text(w, "2");
    for (int i = 1; i < FEW; i++)
        expect_text(all[i], "2");
    for (int i = 1; i < FEW; i++)
        dibs_listener_free(all[i]);
}

static void cancel_listener(void *arg)
{
    dibs_listener_cancel(arg);
}

/* A call that had something to return leaves the cancel to the next one. */
static void a_cancel_of_a_listener_is_not_swallowed(void **state)
{
    world *w = *state;
    dibs_listener *listener = listen_to(w);
    dibs_message got;

    world_fault(w, DIBS__STEP_BELL, DIBS__FAULT_DROP_AFTER, 1);
    world_during(w, DIBS__STEP_EAR, cancel_listener, listener);
    send_text(w, "1");
    expect_missed(listener);
    assert_int_equal(dibs_listener_next(listener, 0, &got, NULL),
                     DIBS_CANCELLED);
    CHECK(DIBS_TIMEOUT, dibs_listener_next(listener, 0, &got, err));
    dibs_listener_free(listener);
}

typedef struct cancelling {
    world *w;
    dibs_reader *reader;
} cancelling;

static void cancel_reader(void *arg)
{
    dibs_reader_cancel(((cancelling *)arg)->reader);
}

/* The read after it finds the gap. */
static void cancel_at_read(void *arg)
{
    world_during(((cancelling *)arg)->w, DIBS__STEP_READ, cancel_reader, arg);
}

static void a_cancel_of_a_reader_is_not_swallowed(void **state)
{
    world *w = *state;
    dibs_reader *reader = NULL;
    cancelling during;
    dibs_event got;

    CHECK(DIBS_OK, dibs_events_append(w->other, "t", "1", 1, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_reader_new(w->one, "t",
                                   DIBS_READER_OPTS(.start = DIBS_FROM_START),
                                   &reader, err));
    CHECK(DIBS_OK, dibs_reader_next(reader, WORLD_BOUND_MS, &got, err));
    CHECK(DIBS_OK, dibs_events_append(w->other, "t", "2", 1, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_events_trim(w->other, "t", UINT64_MAX, NULL, err));
    during = (cancelling){.w = w, .reader = reader};
    world_during(w, DIBS__STEP_BOUNDS, cancel_at_read, &during);
    CHECK(DIBS_OK, dibs_reader_next(reader, WORLD_BOUND_MS, &got, err));
    assert_int_equal(got.kind, DIBS_EVENT_GAP);
    assert_int_equal(dibs_reader_next(reader, 0, &got, NULL), DIBS_CANCELLED);
    CHECK(DIBS_TIMEOUT, dibs_reader_next(reader, 0, &got, err));
    dibs_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(lost_notices_are_reported_once),
        WORLD_TEST(a_loss_is_reported_when_it_listens_again),
        WORLD_TEST(a_full_inbox_is_reported_behind_what_it_has),
        WORLD_TEST(a_message_is_sent_once),
        WORLD_TEST(every_listener_of_a_client_gets_it),
        WORLD_TEST(a_cancel_of_a_listener_is_not_swallowed),
        WORLD_TEST(a_cancel_of_a_reader_is_not_swallowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
