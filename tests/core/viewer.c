/* viewer.c - leases as they come and go, through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "core.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A viewer is noticed within two seconds, and told a quarter of a second later. */
#define BOUND_MS pace_ms(20000)

enum { MANY = 300 };

static dibs_client *open_as(const char *prefix, bool shares)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK, dibs_open(core_url,
                             DIBS_CLIENT_OPTS(.prefix = prefix, .label = "desk",
                                              .share_events = shares),
                             &cl, err));
    return cl;
}

/* NULL: the store has no messages, which the test is over with. */
static dibs_viewer *view(dibs_client *cl)
{
    dibs_viewer *viewer = NULL;
    dibs_error err = {0};
    dibs_status rc = dibs_viewer_new(cl, &viewer, &err);

    if (rc != DIBS_UNSUPPORTED)
        assert_status(rc, DIBS_OK);
    return viewer;
}

static dibs_lease_event next(dibs_viewer *viewer)
{
    dibs_lease_event event;

    CHECK(DIBS_OK, dibs_viewer_next(viewer, BOUND_MS, &event, err));
    return event;
}

static uint64_t use(dibs_lock *lock)
{
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    fence = dibs_lock_fence(lock);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    return fence;
}

/* However short a lease is. */
static void a_viewer_is_told_of_every_lease(void **state)
{
    char prefix[80], name[] = "a name: \"*\" \xc3\xa4";
    dibs_client *cl, *eye;
    dibs_viewer *viewer;
    dibs_lease_event ev;
    dibs_lock *lock;
    uint64_t fence;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    cl = open_as(prefix, true);
    eye = open_as(prefix, false);
    viewer = view(eye);
    lock = core_lock(cl, name, NULL);
    fence = viewer ? use(lock) : 0;
    for (int end = 0; viewer && end < 2; end++) {
        ev = next(viewer);
        assert_int_equal(ev.kind,
                         end ? DIBS_LEASE_RELEASED : DIBS_LEASE_ACQUIRED);
        assert_string_equal(ev.name, name);
        assert_string_equal(ev.label, "desk");
        assert_string_equal(ev.mode, "exclusive");
        assert_int_equal(ev.pid, getpid());
        assert_int_equal(ev.fence, fence);
        assert_true(ev.span_ms >= 0 && ev.age_ms >= 0);
    }
    dibs_lock_free(lock);
    dibs_viewer_free(viewer);
    dibs_close(eye);
    dibs_close(cl);
}

/* The client that closes tells the end of its leases first. */
static void the_end_of_a_client_is_told(void **state)
{
    char prefix[80];
    dibs_client *cl, *eye;
    dibs_viewer *viewer;
    dibs_lock *lock;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    eye = open_as(prefix, false);
    viewer = view(eye);
    cl = open_as(prefix, true);
    lock = core_lock(cl, "short",
                     DIBS_LOCK_OPTS(.mode =
                                        viewer ? DIBS_SHARED : DIBS_EXCLUSIVE));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    dibs_close(cl);
    dibs_lock_free(lock);
    if (viewer) {
        assert_int_equal(next(viewer).kind, DIBS_LEASE_ACQUIRED);
        assert_int_equal(next(viewer).kind, DIBS_LEASE_RELEASED);
    }
    dibs_viewer_free(viewer);
    dibs_close(eye);
}

/* By another client, which is not asked. */
static void a_lease_that_is_broken_is_lost(void **state)
{
    char prefix[80];
    dibs_client *cl, *eye;
    dibs_viewer *viewer;
    dibs_lease_event ev;
    dibs_lock *lock;
    uint32_t broken;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    cl = open_as(prefix, true);
    eye = open_as(prefix, false);
    viewer = view(eye);
    lock = core_lock(cl, "held", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(5000)));
    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    if (viewer) {
        assert_int_equal(next(viewer).kind, DIBS_LEASE_ACQUIRED);
        CHECK(DIBS_OK, dibs_lease_break(eye, "held", 0, NULL, &broken, err));
        ev = next(viewer);
        assert_int_equal(ev.kind, DIBS_LEASE_LOST);
        assert_string_equal(ev.name, "held");
    }
    dibs_lock_free(lock);
    dibs_viewer_free(viewer);
    dibs_close(eye);
    dibs_close(cl);
}

/* What there is too much of is counted; the viewer knows how much it did not see. */
static void too_much_is_counted(void **state)
{
    char prefix[80];
    dibs_client *cl, *eye;
    dibs_viewer *viewer;
    dibs_lock *lock;
    uint64_t told = 0, missed = 0, uses = 0;
    dibsx_nsec end;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    cl = open_as(prefix, true);
    eye = open_as(prefix, false);
    viewer = view(eye);
    lock = core_lock(cl, "busy", NULL);
    for (; viewer && uses < MANY; uses++)
        (void)use(lock);
    end = dibsx_after_ms(dibsx_now(), BOUND_MS);
    /* What was dropped last is in the message of the next use. */
    while (told + missed < 2 * uses) {
        dibs_lease_event ev;
        dibs_error err = {0};
        dibs_status rc = dibs_viewer_next(viewer, pace_ms(1000), &ev, &err);

        if (rc == DIBS_TIMEOUT) {
            IN_TIME(dibsx_now() < end);
            (void)use(lock);
            uses++;
            continue;
        }
        assert_status(rc, DIBS_OK);
        IN_TIME(ev.kind != DIBS_LEASE_MISSED || ev.missed > 0);
        told += ev.kind != DIBS_LEASE_MISSED;
        missed += ev.missed;
    }
    assert_true(!viewer || told >= 128);
    assert_int_equal(told + missed, 2 * uses);
    dibs_lock_free(lock);
    dibs_viewer_free(viewer);
    dibs_close(eye);
    dibs_close(cl);
}

/* A client that does not share says nothing, and neither does one of another prefix. The
 * mark of viewers is nobody's value. */
static void others_are_not_seen(void **state)
{
    char prefix[80], beside[80];
    dibs_client *eye, *mute, *stranger, *cl;
    dibs_lock *locks[3];
    dibs_viewer *viewer;
    dibs_lease_event ev;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    snprintf(beside, sizeof(beside), "%s:", core_name());
    eye = open_as(prefix, false);
    viewer = view(eye);
    mute = open_as(prefix, false);
    stranger = open_as(beside, true);
    cl = open_as(prefix, true);
    locks[0] = core_lock(mute, "mute", NULL);
    locks[1] = core_lock(stranger, "stranger", NULL);
    locks[2] = core_lock(cl, "last", NULL);
    for (int i = 0; i < 3; i++)
        (void)use(locks[i]);
    if (viewer) {
        ev = next(viewer);
        assert_string_equal(ev.name, "last");
    }
    for (int i = 0; i < 3; i++)
        dibs_lock_free(locks[i]);
    dibs_viewer_free(viewer);
    dibs_close(cl);
    dibs_close(stranger);
    dibs_close(mute);
    dibs_close(eye);
}

/* A lease that is left lives on; an upgrade ends one and begins another. */
static void a_lease_that_is_left_goes_on(void **state)
{
    char prefix[80];
    dibs_client *cl, *eye;
    dibs_viewer *viewer;
    dibs_lease_event ev;
    dibs_lock *left, *raised = NULL;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    cl = open_as(prefix, true);
    eye = open_as(prefix, false);
    viewer = view(eye);
    left = core_lock(cl, "left", NULL);
    CHECK(DIBS_OK, dibs_lock_acquire(left, err));
    dibs_lock_leave(left);
    if (viewer) {
        raised = core_lock(cl, "raised", DIBS_LOCK_OPTS(.mode = DIBS_SHARED));
        CHECK(DIBS_OK, dibs_lock_acquire(raised, err));
        CHECK(DIBS_OK, dibs_lock_upgrade(raised, err));
        assert_string_equal(next(viewer).name, "left");
        assert_int_equal(next(viewer).kind, DIBS_LEASE_ACQUIRED);
        ev = next(viewer);
        assert_string_equal(ev.name, "raised");
        assert_int_equal(ev.kind, DIBS_LEASE_RELEASED);
        ev = next(viewer);
        assert_int_equal(ev.kind, DIBS_LEASE_ACQUIRED);
        assert_int_equal(ev.fence, dibs_lock_fence(raised));
    }
    dibs_lock_free(raised);
    dibs_lock_free(left);
    dibs_viewer_free(viewer);
    dibs_close(eye);
    dibs_close(cl);
}

/* A listener of the messages that is no viewer gets none. */
static void without_viewers_nothing_is_sent(void **state)
{
    char prefix[80];
    dibs_listener *ear = NULL;
    dibs_client *cl, *eye;
    dibs_message message;
    dibs_error failure = {0};
    dibs_lock *lock;
    dibs_status rc;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    eye = open_as(prefix, false);
    rc = dibs_listener_new(eye, "dibs.leases", &ear, &failure);
    cl = open_as(prefix, true);
    lock = core_lock(cl, "unseen", NULL);
    (void)use(lock);
    dibs_lock_free(lock);
    dibs_close(cl);
    if (rc != DIBS_UNSUPPORTED) {
        assert_status(rc, DIBS_OK);
        CHECK(DIBS_OK, dibs_message_send(eye, "dibs.leases", "last", 4, err));
        CHECK(DIBS_OK, dibs_listener_next(ear, BOUND_MS, &message, err));
        IN_TIME(!message.missed);
        assert_int_equal(message.len, 4);
        assert_memory_equal(message.data, "last", 4);
    }
    dibs_listener_free(ear);
    dibs_close(eye);
}

static bool count_value(const dibs_state_item *item, void *arg)
{
    (void)item;
    ++*(int *)arg;
    return true;
}

static void a_viewer_can_be_cancelled(void **state)
{
    char prefix[80];
    dibs_client *cl;
    dibs_viewer *viewer;
    dibs_lease_event ev;
    int values = 0;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    cl = open_as(prefix, false);
    viewer = view(cl);
    if (viewer) {
        CHECK(DIBS_TIMEOUT, dibs_viewer_next(viewer, 0, &ev, err));
        CHECK(DIBS_OK, dibs_state_list(cl, NULL, count_value, &values, err));
        assert_int_equal(values, 0);
        dibs_viewer_cancel(viewer);
        CHECK(DIBS_CANCELLED, dibs_viewer_next(viewer, -1, &ev, err));
    }
    CHECK(DIBS_INVALID, dibs_viewer_next(NULL, 0, &ev, err));
    dibs_viewer_free(viewer);
    dibs_viewer_free(NULL);
    dibs_close(cl);
}

int core_viewer_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_viewer_is_told_of_every_lease),
        cmocka_unit_test(the_end_of_a_client_is_told),
        cmocka_unit_test(a_lease_that_is_broken_is_lost),
        cmocka_unit_test(too_much_is_counted),
        cmocka_unit_test(others_are_not_seen),
        cmocka_unit_test(a_lease_that_is_left_goes_on),
        cmocka_unit_test(without_viewers_nothing_is_sent),
        cmocka_unit_test(a_viewer_can_be_cancelled),
    };

    return cmocka_run_group_tests_name("viewer", tests, NULL, NULL);
}
