/* test_lists.c - lists of locks, values, queues and limits on a server that has many keys: each
 * request has the time of one, and the whole has as long as the server answers. */
/* SPDX-License-Identifier: MIT */
#include "pace.h"
#include "proxy.h"
#include "redis_world.h"

enum { NAMES = 40, OTHERS = 5000, LIMIT_MS = 900 };
enum { CROWDED = 5, READERS = 130 };

/* Locks, values and queues, among keys of others that a search has to pass. */
static const char make_keys[] =
    "for i = 1, ARGV[1] do local name = string.format('n-%03d', i) "
    "redis.call('HSET', name, 'owner', string.format('%032x', i), 'fence', "
    "'1', 'who', 'host:1 -') "
    "redis.call('PEXPIRE', name, '600000') end "
    "for i = 1, ARGV[2] do redis.call('SET', 'other:' .. i, '1') end "
    "return 'OK'";

static void make_names(world *w)
{
    char names[16], others[16];

    snprintf(names, sizeof(names), "%d", NAMES);
    snprintf(others, sizeof(others), "%d", OTHERS);
    assert_true(
        server_tell(&w->sv, "EVAL", make_keys, "0", names, others, NULL));
    for (int i = 0; i < NAMES; i++) {
        char name[16];

        snprintf(name, sizeof(name), "n-%03d", i);
        CHECK(DIBS_OK, dibs_state_set(w->one, name, "x", 1, 0, NULL, err));
        CHECK(DIBS_OK, dibs_queue_pause(w->one, name, err));
    }
}

static bool count_lock(const dibs_lease_info *info, void *arg)
{
    assert_int_equal(info->holder_count, 1);
    ++*(size_t *)arg;
    return true;
}

static bool count_value(const dibs_state_item *item, void *arg)
{
    assert_int_equal(item->len, 1);
    ++*(size_t *)arg;
    return true;
}

static bool count_queue(const char *queue, void *arg)
{
    assert_int_equal(strncmp(queue, "n-", 2), 0);
    ++*(size_t *)arg;
    return true;
}

static dibs_status list_locks(dibs_client *cl, size_t *count, dibs_error *err)
{
    return dibs_lease_list(cl, "n-", count_lock, count, err);
}

static dibs_status list_values(dibs_client *cl, size_t *count, dibs_error *err)
{
    return dibs_state_list(cl, "n-", count_value, count, err);
}

static dibs_status list_queues(dibs_client *cl, size_t *count, dibs_error *err)
{
    return dibs_queue_list(cl, "n-", count_queue, count, err);
}

/* The first list brings the scripts to the server. In the second one every answer is late
 * by a third of the time that a request has. */
static void
expect_whole_list(world *w,
                  dibs_status (*list)(dibs_client *, size_t *, dibs_error *))
{
    const int limit_ms = (int)pace_ms(LIMIT_MS);
    size_t count = 0;
    dibsx_nsec start;
    dibs_client *cl;
    char url[64];
    static proxy px;

    make_names(w);
    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    cl = world_client(url, limit_ms);
    CHECK(DIBS_OK, list(cl, &count, err));
    assert_int_equal(count, NAMES);
    proxy_slow(&px, limit_ms / 3, 0, 0);
    count = 0;
    start = dibsx_now();
    CHECK(DIBS_OK, list(cl, &count, err));
    assert_int_equal(count, NAMES);
    assert_true(dibsx_now() - start > limit_ms * DIBSX_MS);
    proxy_slow(&px, 0, 0, 0);
    dibs_close(cl);
    proxy_stop(&px);
}

static void a_list_of_locks_has_as_long_as_it_takes(void **state)
{
    expect_whole_list(*state, list_locks);
}

static void a_list_of_values_has_as_long_as_it_takes(void **state)
{
    expect_whole_list(*state, list_values);
}

static void a_list_of_queues_has_as_long_as_it_takes(void **state)
{
    expect_whole_list(*state, list_queues);
}

static bool count_readers(const dibs_lease_info *info, void *arg)
{
    char name[16];

    snprintf(name, sizeof(name), "c-%zu", *(size_t *)arg);
    assert_string_equal(info->name, name);
    assert_int_equal(info->holder_count, READERS);
    ++*(size_t *)arg;
    return true;
}

/* More than one answer has: the names after the first ones are asked for again. */
static void names_with_many_readers_are_all_listed(void **state)
{
    world *w = *state;
    dibs_lock *locks[CROWDED * READERS];
    size_t count = 0;

    for (size_t i = 0; i < CROWDED * READERS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "c-%zu", i / READERS);
        locks[i] =
            world_lock(w->one, name,
                       DIBS_LOCK_OPTS(.mode = DIBS_SHARED, .ttl_ms = 600000));
        CHECK(DIBS_OK, dibs_lock_acquire(locks[i], err));
    }
    CHECK(DIBS_OK, dibs_lease_list(w->one, "c-", count_readers, &count, err));
    assert_int_equal(count, CROWDED);
    for (size_t i = 0; i < CROWDED * READERS; i++)
        dibs_lock_free(locks[i]);
}

/* A server that does not answer is given up after the time of one request. */
static void a_list_ends_with_its_server(void **state)
{
    world *w = *state;
    size_t count = 0;
    dibs_client *cl;
    char url[64];
    static proxy px;

    make_names(w);
    assert_true(proxy_start(&px, w->sv.port));
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", px.port);
    cl = world_client(url, LIMIT_MS);
    CHECK(DIBS_OK, dibs_ping(cl, NULL, err));
    proxy_swallow(&px, true);
    assert_int_not_equal(list_locks(cl, &count, NULL), DIBS_OK);
    assert_int_equal(count, 0);
    dibs_close(cl);
    proxy_stop(&px);
}

static bool note_limit(const dibs_limit_info *info, void *arg)
{
    assert_string_equal(info->name, "whole");
    assert_int_equal(info->out, 3);
    ++*(size_t *)arg;
    return true;
}

static bool note_topic(const char *topic, const dibs_topic_state *at, void *arg)
{
    assert_string_equal(topic, "whole");
    assert_int_equal(at->count, 1);
    ++*(size_t *)arg;
    return true;
}

/* A key of another kind, and a stream to which nobody has appended. */
static void a_topic_that_is_no_log_is_passed_over(void **state)
{
    world *w = *state;
    size_t count = 0;

    assert_true(server_tell(&w->sv, "SET", "dibs:log:odd", "x", NULL));
    assert_true(server_tell(&w->sv, "XGROUP", "CREATE", "dibs:log:new", "g",
                            "0", "MKSTREAM", NULL));
    CHECK(DIBS_OK,
          dibs_events_append(w->one, "whole", "x", 1, NULL, NULL, err));
    CHECK(DIBS_OK, dibs_events_list(w->other, NULL, note_topic, &count, err));
    assert_int_equal(count, 1);
}

/* Keys that somebody else has written, or a part of. */
static void a_limit_that_no_draw_wrote_is_passed_over(void **state)
{
    world *w = *state;
    static const char *const odd[] = {
        "",
        "x",
        "9000000000000000 1 0 1",
        "9000000000000000 1 0 1 2 ",
        "9000000000000000 1 0 0 1",
        "9000000000000000 1 5 5 1",
        "9000000000000000 1 0 1 0",
        "-1 1 0 1 1",
        "99999999999999999999 1 0 1 1",
    };
    dibs_limit *limit = NULL;
    size_t count = 0;

    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        char key[32];

        snprintf(key, sizeof(key), "dibs:rate:odd-%zu", i);
        assert_true(server_tell(&w->sv, "SET", key, odd[i], NULL));
    }
    assert_true(
        server_tell(&w->sv, "HSET", "dibs:rate:hash", "tat", "1", NULL));
    CHECK(DIBS_OK,
          dibs_limit_new(w->one, "whole",
                         DIBS_LIMIT_OPTS(.count = 5, .period_ms = 86400000),
                         &limit, err));
    CHECK(DIBS_OK, dibs_limit_take(limit, 3, err));
    CHECK(DIBS_OK, dibs_limit_list(w->other, NULL, note_limit, &count, err));
    assert_int_equal(count, 1);
    dibs_limit_free(limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_list_of_locks_has_as_long_as_it_takes),
        WORLD_TEST(a_list_of_values_has_as_long_as_it_takes),
        WORLD_TEST(a_list_of_queues_has_as_long_as_it_takes),
        WORLD_TEST(names_with_many_readers_are_all_listed),
        WORLD_TEST(a_list_ends_with_its_server),
        WORLD_TEST(a_topic_that_is_no_log_is_passed_over),
        WORLD_TEST(a_limit_that_no_draw_wrote_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
