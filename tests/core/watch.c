/* watch.c - watches of values through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 100 };

static dibs_watch *watch_key(dibs_client *cl, const char *key)
{
    dibs_watch *watch = NULL;

    CHECK(DIBS_OK, dibs_state_watch(cl, key, &watch, err));
    return watch;
}

static void set(dibs_client *cl, const char *key, const char *text)
{
    CHECK(DIBS_OK, dibs_state_set(cl, key, text, strlen(text), 0, NULL, err));
}

/* The next change has this text; NULL: the value is gone. */
static dibs_change expect_text(dibs_watch *watch, const char *text)
{
    dibs_change ch;

    CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(30000), &ch, err));
    if (text)
        assert_string_equal(ch.value.data, text);
    else
        assert_null(ch.value.data);
    assert_int_equal(ch.value.version == 0, text == NULL);
    dibs_value_free(&ch.value);
    return ch;
}

static void what_is_there_comes_first(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    dibs_watch *watch;
    dibs_change ch;

    (void)state;
    set(cl, key, "here");
    watch = watch_key(cl, key);
    ch = expect_text(watch, "here");
    assert_false(ch.merged);
    assert_false(ch.back);
    CHECK(DIBS_TIMEOUT, dibs_watch_next(watch, 0, &ch, err));
    dibs_watch_free(watch);
    watch = watch_key(cl, "nowhere-at-all");
    (void)expect_text(watch, NULL);
    dibs_watch_free(watch);
    dibs_close(cl);
}

/* Only a tell of the store shows that there was no other change. */
static void a_change_is_told(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    const char *key = core_name();
    dibs_watch *watch = watch_key(cl, key);
    int64_t sum;

    (void)state;
    set(other, key, "1");
    (void)expect_text(watch, "1");
    CHECK(DIBS_OK, dibs_state_add(other, key, 1, &sum, err));
    IN_TIME(!expect_text(watch, "2").merged);
    set(other, key, "3");
    IN_TIME(!expect_text(watch, "3").merged);
    set(other, key, "4");
    set(other, key, "5");
    CHECK(DIBS_OK, dibs_state_delete(other, key, DIBS_VERSION_ANY, err));
    assert_true(expect_text(watch, NULL).merged);
    dibs_watch_free(watch);
    dibs_close(cl);
    dibs_close(other);
}

static void an_expiry_is_a_change(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    dibs_watch *watch = watch_key(cl, key);
    int64_t ttl_ms = pace_ms(300);
    dibs_change ch;

    (void)state;
    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, ttl_ms, NULL, err));
    CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(30000), &ch, err));
    IN_TIME(ch.value.data != NULL);
    assert_string_equal(ch.value.data, "x");
    dibs_value_free(&ch.value);
    (void)expect_text(watch, NULL);
    dibs_watch_free(watch);
    dibs_close(cl);
}

static void *write_many(void *arg)
{
    dibs_client *cl = core_open();
    char text[16];

    for (int i = 1; i <= MANY; i++) {
        snprintf(text, sizeof(text), "%d", i);
        set(cl, arg, text);
    }
    dibs_close(cl);
    return NULL;
}

/* However many are merged. */
static void the_last_value_arrives(void **state)
{
    dibs_client *cl = core_open();
    char key[64];
    dibs_watch *watch;
    uint64_t version = 0;
    pthread_t thread;
    long last = 0;

    (void)state;
    snprintf(key, sizeof(key), "%s", core_name());
    watch = watch_key(cl, key);
    (void)expect_text(watch, NULL);
    assert_int_equal(pthread_create(&thread, NULL, write_many, key), 0);
    while (last < MANY) {
        dibs_change ch;
        long number;

        CHECK(DIBS_OK, dibs_watch_next(watch, pace_ms(30000), &ch, err));
        number = strtol(ch.value.data, NULL, 10);
        assert_true(number > last);
        assert_true(ch.value.version > version);
        if (number > last + 1)
            assert_true(ch.merged);
        last = number;
        version = ch.value.version;
        dibs_value_free(&ch.value);
    }
    pthread_join(thread, NULL);
    dibs_watch_free(watch);
    dibs_close(cl);
}

/* The end of one watch does not take the topic from the other. */
static void two_watches_of_a_key(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    dibs_watch *one = watch_key(cl, key), *other = watch_key(cl, key);

    (void)state;
    set(cl, key, "a");
    (void)expect_text(one, "a");
    (void)expect_text(other, "a");
    dibs_watch_free(one);
    set(cl, key, "b");
    IN_TIME(!expect_text(other, "b").merged);
    dibs_watch_free(other);
    dibs_close(cl);
}

static void the_prefix_is_part_of_the_key(void **state)
{
    dibs_client *cl = NULL, *bare = core_open();
    const char *prefix = core_name();
    char full[80];
    dibs_watch *watch;

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    snprintf(full, sizeof(full), "%s/w", prefix);
    watch = watch_key(cl, "/w");
    (void)expect_text(watch, NULL);
    set(bare, full, "x");
    (void)expect_text(watch, "x");
    dibs_watch_free(watch);
    dibs_close(cl);
    dibs_close(bare);
}

typedef struct waiter {
    dibs_watch *watch;
    dibs_status rc;
} waiter;

static void *await_change(void *arg)
{
    waiter *wt = arg;
    dibs_change ch;

    wt->rc = dibs_watch_next(wt->watch, -1, &ch, NULL);
    dibs_value_free(&ch.value);
    return NULL;
}

static bool is_waited_for(void *arg)
{
    dibs_change ch;

    return dibs_watch_next(arg, 0, &ch, NULL) == DIBS_INVALID;
}

/* A thread waits for the watch, which has reported once. */
static void start_waiter(waiter *wt, dibs_client *cl, pthread_t *thread)
{
    wt->watch = watch_key(cl, core_name());
    (void)expect_text(wt->watch, NULL);
    assert_int_equal(pthread_create(thread, NULL, await_change, wt), 0);
    core_until(is_waited_for, wt->watch);
}

static void a_cancel_ends_the_wait(void **state)
{
    dibs_client *cl = core_open();
    pthread_t thread;
    waiter wt;

    (void)state;
    start_waiter(&wt, cl, &thread);
    dibs_watch_cancel(wt.watch);
    pthread_join(thread, NULL);
    assert_status(wt.rc, DIBS_CANCELLED);
    dibs_watch_free(wt.watch);
    dibs_close(cl);
}

static void closing_ends_the_wait(void **state)
{
    dibs_client *cl = core_open();
    dibs_change ch;
    pthread_t thread;
    waiter wt;

    (void)state;
    start_waiter(&wt, cl, &thread);
    dibs_close(cl);
    pthread_join(thread, NULL);
    assert_status(wt.rc, DIBS_CANCELLED);
    CHECK(DIBS_INVALID, dibs_watch_next(wt.watch, 0, &ch, err));
    dibs_watch_cancel(wt.watch);
    dibs_watch_free(wt.watch);
}

/* ---- bells */

static bool is_readable(int fd, int64_t wait_ms)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};

    return poll(&one, 1, (int)wait_ms) == 1;
}

static void ring(dibs_client *cl, const char *bell, uint64_t expected)
{
    dibs_commit_check check = {bell, expected};
    dibs_commit_change change = {.verb = DIBS_COMMIT_RING, .name = bell};
    dibs_commit commit = {.checks = &check,
                          .check_count = 1,
                          .changes = &change,
                          .change_count = 1};
    dibs_error err = {0};

    assert_status(dibs_state_commit(cl, &commit, 1, &err),
                  expected ? DIBS_STALE : DIBS_OK);
    dibs_commit_free(&commit, 1);
}

static void a_commit_rings_a_bell(void **state)
{
    dibs_client *cl = core_open(), *other = core_open();
    char name[64];
    dibs_bell *bell = NULL;
    dibs_value value;

    (void)state;
    (void)snprintf(name, sizeof(name), "{%.50s}bell", core_name());
    CHECK(DIBS_OK, dibs_bell_new(cl, name, &bell, err));
    CHECK(DIBS_OK, dibs_bell_listen(bell, err));
    while (dibs_bell_clear(bell))
        CHECK(DIBS_OK, dibs_bell_listen(bell, err));
    ring(other, name, 0);
    IN_TIME(is_readable(dibs_bell_fd(bell), pace_ms(30000)));
    assert_false(dibs_bell_clear(bell));
    assert_false(is_readable(dibs_bell_fd(bell), 0));
    /* A ring is no change, and a commit that is refused rings nothing: the next ring
     * is alone. */
    CHECK(DIBS_NOTFOUND, dibs_state_get(cl, name, &value, err));
    ring(other, name, 7);
    assert_false(is_readable(dibs_bell_fd(bell), 20));
    ring(cl, name, 0);
    IN_TIME(is_readable(dibs_bell_fd(bell), pace_ms(30000)));
    dibs_bell_free(bell);
    dibs_close(other);
    dibs_close(cl);
}

static void bad_bells_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_bell *bell = NULL;

    (void)state;
    CHECK(DIBS_INVALID, dibs_bell_new(cl, "", &bell, err));
    assert_null(bell);
    CHECK(DIBS_INVALID, dibs_bell_new(NULL, "k", &bell, err));
    CHECK(DIBS_INVALID, dibs_bell_listen(NULL, err));
    assert_int_equal(dibs_bell_fd(NULL), -1);
    assert_false(dibs_bell_clear(NULL));
    dibs_bell_free(NULL);
    CHECK(DIBS_OK, dibs_bell_new(cl, "k", &bell, err));
    dibs_close(cl);
    CHECK(DIBS_INVALID, dibs_bell_listen(bell, err));
    dibs_bell_free(bell);
}

static void bad_calls_are_refused(void **state)
{
    dibs_client *cl = core_open();
    dibs_watch *watch;
    dibs_change ch;

    (void)state;
    CHECK(DIBS_INVALID, dibs_state_watch(cl, "", &watch, err));
    assert_null(watch);
    CHECK(DIBS_INVALID, dibs_state_watch(NULL, "k", &watch, err));
    CHECK(DIBS_INVALID, dibs_watch_next(NULL, 0, &ch, err));
    dibs_watch_cancel(NULL);
    dibs_watch_free(NULL);
    dibs_close(cl);
}

int core_watch_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_comes_first),
        cmocka_unit_test(a_change_is_told),
        cmocka_unit_test(an_expiry_is_a_change),
        cmocka_unit_test(the_last_value_arrives),
        cmocka_unit_test(two_watches_of_a_key),
        cmocka_unit_test(the_prefix_is_part_of_the_key),
        cmocka_unit_test(a_cancel_ends_the_wait),
        cmocka_unit_test(closing_ends_the_wait),
        cmocka_unit_test(a_commit_rings_a_bell),
        cmocka_unit_test(bad_bells_are_refused),
        cmocka_unit_test(bad_calls_are_refused),
    };

    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
