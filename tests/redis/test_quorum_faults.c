/* test_quorum_faults.c - five servers of which some are stopped, cut off, killed,
 * come back with nothing, or have their clocks set. */
/* SPDX-License-Identifier: MIT */
#include "proxy.h"
#include "quorum_world.h"

#include <inttypes.h>
#include <time.h>

const char quorum_params[] = "longest_ttl=2s";

enum { TTL_MS = 2000, NODE_LIMIT_MS = TTL_MS / 10, SAMPLES = 200 };

static dibs_lock *short_lock(dibs_client *cl, const char *name)
{
    return world_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = TTL_MS));
}

static int by_size(const void *a, const void *b)
{
    const int64_t *one = a, *two = b;

    return *one < *two ? -1 : *one > *two;
}

/* Takes and gives back many times. No speed is asserted, but what it is is told:
 * `make chaos` looks at it. On a busy machine a node may miss its time for a
 * release; with two others gone its lease is in the way until it ends. */
static void take_many(dibs_client *cl, const char *what)
{
    dibs_lock *lock = short_lock(cl, "many");
    int64_t took_us[SAMPLES];
    uint64_t last = 0;
    dibs_status rc;

    for (size_t i = 0; i < SAMPLES; i++) {
        dibsx_nsec from_at = dibsx_now();

        CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
        took_us[i] = (dibsx_now() - from_at) / 1000;
        assert_true(dibs_lock_fence(lock) > last);
        last = dibs_lock_fence(lock);
        rc = dibs_lock_release(lock, NULL);
        IN_TIME(rc != DIBS_LOST && rc != DIBS_UNAVAIL);
        assert_true(rc == DIBS_OK || rc == DIBS_UNKNOWN);
    }
    dibs_lock_free(lock);
    qsort(took_us, SAMPLES, sizeof(took_us[0]), by_size);
    print_message("acquire with %s: p50 %" PRId64 " us, p99 %" PRId64
                  " us, worst %" PRId64 " us; a node may take %d ms\n",
                  what, took_us[SAMPLES / 2], took_us[SAMPLES * 99 / 100],
                  took_us[SAMPLES - 1], NODE_LIMIT_MS);
}

/* With three of five gone nothing is granted, and who holds is told in time. */
static void expect_nothing(quorum *q, dibs_lock *held, loss *lost)
{
    dibs_lock *lock = short_lock(q->other, "other");
    dibsx_nsec from_at = dibsx_now();
    dibs_error why = {0};
    dibs_status rc = dibs_lock_try(lock, &why);

    print_message("%s after %" PRId64 " ms: %s\n", dibs_status_name(rc),
                  world_ms_since(from_at), why.message);
    assert_true(rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN);
    assert_true(why.retriable);
    await_loss(lost, TTL_MS + WORLD_LATE_MS);
    assert_int_equal(dibs_lock_state_get(held), DIBS_LOCK_LOST);
    dibs_lock_free(lock);
}

static dibs_lock *held_lock(quorum *q, loss *lost)
{
    dibs_lock *lock = world_lock_told(q->one, "held", TTL_MS, lost);

    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    return lock;
}

static void stopped_nodes(void **state)
{
    quorum *q = *state;
    static loss lost;
    dibs_lock *held = held_lock(q, &lost);

    take_many(q->other, "all nodes");
    server_pause(&q->fl.nodes[0].sv);
    take_many(q->other, "one node stopped");
    server_pause(&q->fl.nodes[3].sv);
    take_many(q->other, "two nodes stopped");
    world_await_renewal(q->one);
    IN_TIME(atomic_load(&lost.count) == 0);
    server_pause(&q->fl.nodes[4].sv);
    expect_nothing(q, held, &lost);
    for (size_t i = 0; i < QUORUM_NODES; i++)
        server_resume(&q->fl.nodes[i].sv);
    quorum_await_ready(q->other);
    dibs_lock_free(held);
    /* What they had in their buffers when they went on ends by itself. */
    quorum_await_holding(q, "many", 0);
    quorum_await_holding(q, "held", 0);
}

static void killed_nodes(void **state)
{
    quorum *q = *state;
    static loss lost;
    dibs_lock *held = held_lock(q, &lost);

    server_kill(&q->fl.nodes[1].sv);
    take_many(q->other, "one node killed");
    server_kill(&q->fl.nodes[2].sv);
    take_many(q->other, "two nodes killed");
    world_await_renewal(q->one);
    IN_TIME(atomic_load(&lost.count) == 0);
    server_kill(&q->fl.nodes[3].sv);
    expect_nothing(q, held, &lost);
    dibs_lock_free(held);
}

/* A lease goes on where there is no memory for another. */
static void full_nodes_renew(void **state)
{
    quorum *q = *state;
    static loss lost;
    dibs_lock *held = held_lock(q, &lost), *fresh = short_lock(q->other, "n");

    for (size_t i = 0; i < QUORUM_NODES; i++)
        assert_true(server_tell(&q->fl.nodes[i].sv, "CONFIG", "SET",
                                "maxmemory", "1", NULL));
    assert_int_not_equal(dibs_lock_try(fresh, NULL), DIBS_OK);
    for (int i = 0; i < 3; i++)
        world_await_renewal(q->one);
    IN_TIME(atomic_load(&lost.count) == 0);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    dibs_lock_free(held);
    dibs_lock_free(fresh);
}

/* Nodes behind a hole: connections stay, answers do not come. */
static void nodes_cut_off(void **state)
{
    quorum *q = *state;
    static proxy holes[2];
    char url[FLEET_URL_MAX];
    dibs_client *cl;

    for (size_t i = 0; i < 2; i++)
        assert_true(proxy_start(&holes[i], q->fl.nodes[i].sv.port));
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d?longest_ttl=2s",
             holes[0].port, holes[1].port, q->fl.nodes[2].sv.port,
             q->fl.nodes[3].sv.port, q->fl.nodes[4].sv.port);
    cl = world_client(url, 2000);
    take_many(cl, "no node cut off");
    proxy_swallow(&holes[0], true);
    take_many(cl, "one node cut off");
    proxy_swallow(&holes[1], true);
    take_many(cl, "two nodes cut off");
    dibs_close(cl);
    for (size_t i = 0; i < 2; i++)
        proxy_stop(&holes[i]);
}

static bool ignore_lease(const dibs_lease_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return true;
}

/* Three of five nodes have many keys and answer late. The list is given up as a whole: a
 * node that went on with it could not vote meanwhile. */
static void a_list_that_is_given_up_ends_at_the_nodes(void **state)
{
    enum { DELAY_MS = 400, KEYS = 20000, PAGES = KEYS / 500 };
    static const char fill[] =
        "for i = 1, ARGV[1] do redis.call('SET', 'other:' .. i, '1') end "
        "return 'OK'";
    quorum *q = *state;
    static proxy slow[3];
    char url[FLEET_URL_MAX], keys[16];
    dibs_client *cl;

    snprintf(keys, sizeof(keys), "%d", KEYS);
    for (size_t i = 0; i < 3; i++) {
        assert_true(
            server_tell(&q->fl.nodes[i].sv, "EVAL", fill, "0", keys, NULL));
        assert_true(proxy_start(&slow[i], q->fl.nodes[i].sv.port));
    }
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d?longest_ttl=2s",
             slow[0].port, slow[1].port, slow[2].port, q->fl.nodes[3].sv.port,
             q->fl.nodes[4].sv.port);
    cl = world_client(url, 5000);
    quorum_await_ready(cl);
    for (size_t i = 0; i < 3; i++)
        proxy_slow(&slow[i], DELAY_MS, 0, 0);
    assert_int_not_equal(dibs_lease_list(cl, NULL, ignore_lease, NULL, NULL),
                         DIBS_OK);
    for (size_t i = 0; i < 3; i++)
        proxy_slow(&slow[i], 0, 0, 0);
    quorum_await_ready(cl);
    dibs_close(cl); /* Nothing is under way any more. */
    for (size_t i = 0; i < 3; i++) {
        proxy_stop(&slow[i]);
        assert_true(server_info(&q->fl.nodes[i].sv, "commandstats",
                                "cmdstat_scan") < PAGES / 2);
    }
}

static void restart_empty(fleet_node *nd)
{
    server_kill(&nd->sv);
    assert_true(fleet_restart(nd, true));
}

/* As a machine whose clock is wrong until the network has put it right. */
static void restart_behind(fleet_node *nd)
{
    enum { BEHIND_MS = 3600000 };

    fleet_set_clock(nd, -BEHIND_MS);
    restart_empty(nd);
    fleet_set_clock(nd, 0);
    /* The server looks at its clock some times a second. */
    while (server_info(&nd->sv, "server", "uptime_in_seconds") <
           BEHIND_MS / 1000)
        world_sleep_ms(1);
}

static void flush(fleet_node *nd)
{
    assert_true(server_tell(&nd->sv, "FLUSHALL", NULL));
}

/* Three of five lose all they had, while a lease still stands: they do not vote until
 * it cannot any more, and then give no lower fence. The client that asks has not seen
 * them before. */
static void expect_to_sit_out(quorum *q, void (*empty)(fleet_node *nd))
{
    dibs_lock *held = world_lock(q->one, "a",
                                 DIBS_LOCK_OPTS(.ttl_ms = TTL_MS,
                                                .flags = DIBS_LOCK_NO_RENEW));
    dibs_client *cl;
    dibs_lock *next;
    uint64_t fence;
    dibsx_nsec until;
    dibs_error why = {0};
    dibs_status rc;

    CHECK(DIBS_OK, world_try_until(held, WORLD_BOUND_MS));
    fence = dibs_lock_fence(held);
    until = end_of(held);
    quorum_await_holding(q, "a", QUORUM_NODES);
    for (size_t i = 0; i < 3; i++)
        empty(&q->fl.nodes[i]);
    IN_TIME(quorum_holding(q, "a") == 2);
    cl = world_client(q->url, 2000);
    next = short_lock(cl, "a");
    rc = dibs_lock_try(next, &why);
    IN_TIME(rc != DIBS_OK || dibsx_now() < until);
    assert_int_not_equal(rc, DIBS_OK);
    print_message("%s\n", why.message);
    CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
    assert_true(dibsx_now() >= until);
    assert_true(dibs_lock_fence(next) > fence);
    CHECK(DIBS_OK, dibs_lock_release(next, err));
    dibs_lock_free(held);
    dibs_lock_free(next);
    dibs_close(cl);
}

static void emptied_nodes_sit_out(void **state)
{
    expect_to_sit_out(*state, restart_empty);
}

static void emptied_nodes_sit_out_whatever_their_uptime(void **state)
{
    expect_to_sit_out(*state, restart_behind);
}

/* However long they have been up: no restart tells that they forgot. */
static void flushed_nodes_sit_out(void **state)
{
    quorum *q = *state;

    for (size_t i = 0; i < 3; i++)
        while (server_info(&q->fl.nodes[i].sv, "server", "uptime_in_seconds") <=
               TTL_MS / 1000)
            world_sleep_ms(10);
    expect_to_sit_out(q, flush);
}

/* Three of five lose a lease, and keep their note of an earlier run, which the client
 * that asks has learned from them as well: the new run must not pass for that one. */
static void
expect_late_grants_sat_out(quorum *q, void (*lose)(quorum *q, size_t node))
{
    dibs_lock *next = short_lock(q->one, "a");
    dibs_lock *held = world_lock(q->other, "a",
                                 DIBS_LOCK_OPTS(.ttl_ms = TTL_MS,
                                                .flags = DIBS_LOCK_NO_RENEW));
    dibsx_nsec until;
    uint64_t fence;

    /* The second time is the short way. */
    for (int i = 0; i < 2; i++) {
        CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
        quorum_await_holding(q, "a", QUORUM_NODES);
        CHECK(DIBS_OK, dibs_lock_release(next, err));
        quorum_await_holding(q, "a", 0);
    }
    for (size_t i = 0; i < 3; i++)
        assert_true(server_tell(&q->fl.nodes[i].sv, "SAVE", NULL));
    CHECK(DIBS_OK, world_try_until(held, WORLD_BOUND_MS));
    fence = dibs_lock_fence(held);
    until = end_of(held);
    quorum_await_holding(q, "a", QUORUM_NODES);
    for (size_t i = 0; i < 3; i++)
        lose(q, i);
    CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
    assert_true(dibsx_now() >= until);
    assert_true(dibs_lock_fence(next) > fence);
    CHECK(DIBS_OK, dibs_lock_release(next, err));
    dibs_lock_free(held);
    dibs_lock_free(next);
}

static void nodes_that_lost_their_latest_grants_sit_out(void **state)
{
    expect_late_grants_sat_out(*state, quorum_restart_noted);
}

static void restart_from_snapshot(quorum *q, size_t node)
{
    server *sv = &q->fl.nodes[node].sv;

    server_kill(sv);
    sv->aof = false;
    assert_true(server_restart(sv));
}

/* Each grant was in their append-only files, but they were started without these. */
static void durable_nodes_that_begin_with_a_snapshot_sit_out(void **state)
{
    expect_late_grants_sat_out(*state, restart_from_snapshot);
}

static int64_t wall_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

/* What a node has noted of itself, by its clock; 0 before it was asked to vote. */
static int64_t noted_us(const server *sv, const char *field)
{
    char *text = server_ask(sv, "HGET", "dibs:node", field, NULL);
    int64_t number_us;

    assert_non_null(text);
    number_us = strtoll(text, NULL, 10);
    free(text);
    return number_us;
}

/* Asks all nodes to vote, whatever comes of it. */
static void ask_all(dibs_lock *lock)
{
    if (dibs_lock_try(lock, NULL) == DIBS_OK)
        (void)dibs_lock_release(lock, NULL);
}

/* A clock that is set back was ahead, and what it counted has ended too early: its
 * node does not vote until that must be over, whether the client that asks has seen
 * the jump or not. */
static void a_node_whose_clock_is_set_back_sits_out(void **state)
{
    enum { BACK_MS = 20000 };
    quorum *q = *state;
    server *sv = &q->fl.nodes[0].sv;
    dibs_lock *lock = short_lock(q->one, "a");
    int64_t seen_us, set_us;

    while (noted_us(sv, "seen") == 0)
        ask_all(lock);
    seen_us = noted_us(sv, "seen");
    fleet_set_clock(&q->fl.nodes[0], -BACK_MS);
    set_us = wall_us() - BACK_MS * 1000;
    while (noted_us(sv, "seen") >= seen_us)
        ask_all(lock);
    assert_true(noted_us(sv, "from") >= set_us + TTL_MS * 1000);
    dibs_lock_free(lock);
}

/* Tries until a majority says that it is held, whatever it says before. */
static void expect_busy(dibs_lock *lock, const dibs_lock *held)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    dibs_error why = {0};
    dibs_status rc;

    do {
        rc = dibs_lock_try(lock, &why);
        IN_TIME(rc != DIBS_OK || dibs_lock_check(held) == DIBS_OK);
        assert_int_not_equal(rc, DIBS_OK);
    } while (rc != DIBS_BUSY && dibsx_now() < end);
    CHECK(DIBS_BUSY, rc);
}

/* Nodes that write everything down go on where they were. */
static void restarted_nodes_remember(void **state)
{
    quorum *q = *state;
    dibs_lock *held = short_lock(q->one, "a");
    dibs_lock *next = short_lock(q->other, "a");

    CHECK(DIBS_OK, world_try_until(held, WORLD_BOUND_MS));
    quorum_await_holding(q, "a", QUORUM_NODES);
    for (size_t i = 0; i < QUORUM_NODES; i++) {
        server_kill(&q->fl.nodes[i].sv);
        assert_true(fleet_restart(&q->fl.nodes[i], false));
    }
    expect_busy(next, held);
    CHECK(DIBS_OK, dibs_lock_check(held));
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
    dibs_lock_free(held);
    dibs_lock_free(next);
}

/* A node that missed the acquire gets the lease at a renewal, so that others may
 * fail from then on. */
static void missing_nodes_are_filled_in(void **state)
{
    quorum *q = *state;
    dibs_lock *held;
    char *who, *fence;

    server_kill(&q->fl.nodes[0].sv);
    server_kill(&q->fl.nodes[1].sv);
    held = short_lock(q->one, "a");
    CHECK(DIBS_OK, world_try_until(held, WORLD_BOUND_MS));
    quorum_await_holding(q, "a", 3);
    for (size_t i = 0; i < 2; i++)
        assert_true(fleet_restart(&q->fl.nodes[i], false));
    quorum_await_holding(q, "a", QUORUM_NODES);
    CHECK(DIBS_OK, dibs_lock_check(held));
    who = quorum_field(q, 0, "a", "who");
    fence = quorum_field(q, 0, "a", "fence");
    assert_true(strlen(who) > 3);
    assert_int_equal(strtoull(fence, NULL, 10), dibs_lock_fence(held));
    free(who);
    free(fence);
    server_kill(&q->fl.nodes[3].sv);
    server_kill(&q->fl.nodes[4].sv);
    world_await_renewal(q->one);
    CHECK(DIBS_OK, dibs_lock_check(held));
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    quorum_await_holding(q, "a", 0);
    dibs_lock_free(held);
}

static void a_clock_that_jumps_has_no_vote(void **state)
{
    static const int64_t jumps_ms[] = {60000, -3600000};
    quorum *q = *state;
    dibs_lock *held = short_lock(q->one, "a");
    dibs_lock *next = short_lock(q->other, "a");
    dibs_error why = {0};

    CHECK(DIBS_OK, world_try_until(held, WORLD_BOUND_MS));
    quorum_await_holding(q, "a", QUORUM_NODES);
    /* At the first the lease has ended; at the other it will not for an hour. */
    for (size_t i = 0; i < 2; i++)
        fleet_set_clock(&q->fl.nodes[i], jumps_ms[i]);
    expect_busy(next, held);
    world_await_renewal(q->one);
    while (atomic_load(&q->alarms) == 0)
        expect_busy(next, held);
    CHECK(DIBS_OK, dibs_lock_check(held));
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    CHECK(DIBS_OK, world_try_until(next, WORLD_BOUND_MS));
    CHECK(DIBS_OK, dibs_lock_release(next, err));
    /* A third is one too many. */
    fleet_set_clock(&q->fl.nodes[2], 60000);
    assert_int_not_equal(dibs_lock_try(next, &why), DIBS_OK);
    print_message("%s\n", why.message);
    dibs_lock_free(held);
    dibs_lock_free(next);
}

/* Who opens a client after the jump sees it all the same. */
static void a_wrong_clock_has_no_vote_from_the_start(void **state)
{
    quorum *q = *state;
    dibs_client *cl;
    dibs_lock *lock;
    dibs_error why = {0};

    for (size_t i = 0; i < 2; i++)
        fleet_set_clock(&q->fl.nodes[i], 5000);
    server_kill(&q->fl.nodes[4].sv);
    cl = world_client(q->url, 2000);
    lock = short_lock(cl, "a");
    assert_int_not_equal(dibs_lock_try(lock, &why), DIBS_OK);
    print_message("%s\n", why.message);
    assert_int_equal(quorum_holding(q, "a"), 0);
    dibs_lock_free(lock);
    dibs_close(cl);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(stopped_nodes),
        QUORUM_TEST(killed_nodes),
        QUORUM_TEST(full_nodes_renew),
        QUORUM_TEST(nodes_cut_off),
        QUORUM_TEST(a_list_that_is_given_up_ends_at_the_nodes),
        QUORUM_TEST_FORGETFUL(emptied_nodes_sit_out),
        QUORUM_TEST_FORGETFUL(emptied_nodes_sit_out_whatever_their_uptime),
        QUORUM_TEST_FORGETFUL(flushed_nodes_sit_out),
        QUORUM_TEST_FORGETFUL(nodes_that_lost_their_latest_grants_sit_out),
        QUORUM_TEST(durable_nodes_that_begin_with_a_snapshot_sit_out),
        QUORUM_TEST(a_node_whose_clock_is_set_back_sits_out),
        QUORUM_TEST(restarted_nodes_remember),
        QUORUM_TEST(missing_nodes_are_filled_in),
        QUORUM_TEST(a_clock_that_jumps_has_no_vote),
        QUORUM_TEST(a_wrong_clock_has_no_vote_from_the_start),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
