/* test_quorum.c - five servers that must agree: who is granted what, under which
 * fence, what is left on the nodes, and what is refused. */
/* SPDX-License-Identifier: MIT */
#include "pace.h"
#include "proxy.h"
#include "quorum_world.h"
#include <dibs/elect.h>
#include <dibs/monitor.h>

#include <inttypes.h>
#include <unistd.h>

const char quorum_params[] = "longest_ttl=30s&node_timeout=5s";

/* The fence of the lock at a node; 0 when it does not have it. */
static uint64_t fence_at(quorum *q, size_t node, const char *name)
{
    char *text = quorum_field(q, node, name, "fence");
    uint64_t fence = text ? strtoull(text, NULL, 10) : 0;

    free(text);
    return fence;
}

static size_t with_fence(quorum *q, const char *name, uint64_t fence)
{
    size_t count = 0;

    for (size_t i = 0; i < q->fl.count; i++)
        count += fence_at(q, i, name) == fence;
    return count;
}

static dibs_lock *short_lock(dibs_client *cl, const char *name)
{
    return world_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 30000));
}

static void a_lock_is_on_all_nodes_under_one_fence(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    IN_TIME(with_fence(q, "a", dibs_lock_fence(lock)) == QUORUM_NODES);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    quorum_await_holding(q, "a", 0);
    dibs_lock_free(lock);
}

/* The nodes at which the full rule has run since the counts were reset: it reads the
 * whole lock. */
static size_t with_full_rule(quorum *q)
{
    size_t count = 0;

    for (size_t i = 0; i < q->fl.count; i++)
        count += server_info(&q->fl.nodes[i].sv, "commandstats",
                             "cmdstat_hgetall") > 0;
    return count;
}

/* Acquires and releases a name that has become known as free. */
static void take_again(quorum *q, dibs_lock *lock)
{
    for (size_t i = 0; i < q->fl.count; i++)
        assert_true(
            server_tell(&q->fl.nodes[i].sv, "CONFIG", "RESETSTAT", NULL));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    IN_TIME(with_fence(q, "a", dibs_lock_fence(lock)) == QUORUM_NODES);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    quorum_await_holding(q, "a", 0);
}

/* The first time a client looks closely, later it thinks that the name is free. */
static void a_free_name_is_granted_the_short_way(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");

    take_again(q, lock);
    assert_int_equal(with_full_rule(q), QUORUM_NODES);
    take_again(q, lock);
    IN_TIME(with_full_rule(q) == 0);
    dibs_lock_free(lock);
}

/* How many nodes are noted to flush every write. */
static size_t noted_durable(quorum *q)
{
    size_t count = 0;

    for (size_t i = 0; i < q->fl.count; i++) {
        char *noted = server_ask(&q->fl.nodes[i].sv, "HGET", "dibs:node",
                                 "durable", NULL);

        assert_non_null(noted);
        count += strcmp(noted, "1") == 0;
        free(noted);
    }
    return count;
}

static void set_everywhere(quorum *q, const char *setting, const char *value)
{
    for (size_t i = 0; i < q->fl.count; i++)
        assert_true(server_tell(&q->fl.nodes[i].sv, "CONFIG", "SET", setting,
                                value, NULL));
}

static void nodes_that_put_flushes_off_are_not_durable(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a"), *next;
    dibs_client *late;

    take_again(q, lock);
    assert_int_equal(noted_durable(q), QUORUM_NODES);
    set_everywhere(q, "no-appendfsync-on-rewrite", "yes");
    late = world_client(q->url, 2000);
    next = short_lock(late, "a");
    take_again(q, next);
    assert_int_equal(noted_durable(q), 0);
    dibs_lock_free(lock);
    dibs_lock_free(next);
    dibs_close(late);
}

/* A client that has seen them before goes on to vote the short way. */
static void a_run_that_was_not_durable_stays_so(void **state)
{
    quorum *q = *state;
    dibs_lock *early = short_lock(q->one, "a"), *late;
    dibs_client *other;

    take_again(q, early);
    set_everywhere(q, "appendfsync", "everysec");
    other = world_client(q->url, 2000);
    late = short_lock(other, "a");
    take_again(q, late);
    assert_int_equal(noted_durable(q), 0);
    set_everywhere(q, "appendfsync", "always");
    for (int i = 0; i < 2; i++) {
        take_again(q, early);
        assert_int_equal(noted_durable(q), 0);
    }
    IN_TIME(with_full_rule(q) == 0);
    dibs_lock_free(early);
    dibs_lock_free(late);
    dibs_close(other);
}

static bool ignore_lease(const dibs_lease_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return true;
}

/* Reads through a client until each of these nodes has answered it. */
static void read_from(quorum *q, dibs_client *cl, size_t nodes)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
    size_t answered = 0;

    while (answered < nodes) {
        if (dibsx_now() >= end)
            MISSED("%zu of %zu nodes were read from", answered, nodes);
        (void)!dibs_lease_list(cl, NULL, ignore_lease, NULL, NULL);
        answered = 0;
        for (size_t i = 0; i < nodes; i++)
            answered += server_info(&q->fl.nodes[i].sv, "commandstats",
                                    "cmdstat_scan") > 0;
    }
}

/* A connection through a proxy may outlive the run of the server: there the server
 * itself is asked each time. */
static void the_short_way_is_for_direct_connections(void **state)
{
    quorum *q = *state;
    static proxy between[2];
    char url[FLEET_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;

    for (size_t i = 0; i < 2; i++)
        assert_true(proxy_start(&between[i], q->fl.nodes[i].sv.port));
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d?%s",
             between[0].port, between[1].port, q->fl.nodes[2].sv.port,
             q->fl.nodes[3].sv.port, q->fl.nodes[4].sv.port, quorum_params);
    cl = world_client(url, 2000);
    /* One that is reached late has the lease with its first renewal. */
    read_from(q, cl, QUORUM_NODES);
    lock = short_lock(cl, "a");
    take_again(q, lock);
    take_again(q, lock);
    IN_TIME(with_full_rule(q) == 2);
    dibs_lock_free(lock);
    dibs_close(cl);
    for (size_t i = 0; i < 2; i++)
        proxy_stop(&between[i]);
}

/* Three of five lose a lease, and keep their note of the run that the client has
 * learned from them. It is connected to them anew, by a reading, which asks for no
 * run: on that connection the short way is not for it. */
static void a_run_is_known_on_the_connection_it_was_learned_on(void **state)
{
    quorum *q = *state;
    dibs_lock *next = short_lock(q->one, "a");
    dibs_lock *held = world_lock(q->other, "a",
                                 DIBS_LOCK_OPTS(.ttl_ms = 30000,
                                                .flags = DIBS_LOCK_NO_RENEW));
    dibs_error why = {0};
    dibs_status rc;

    take_again(q, next);
    take_again(q, next);
    IN_TIME(with_full_rule(q) == 0);
    CHECK(DIBS_OK, dibs_lock_try(held, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    for (size_t i = 0; i < 3; i++)
        quorum_restart_noted(q, i);
    read_from(q, q->one, 3);
    rc = dibs_lock_try(next, &why);
    IN_TIME(dibs_lock_check(held) == DIBS_OK);
    assert_int_not_equal(rc, DIBS_OK);
    print_message("%s\n", why.message);
    assert_int_equal(quorum_holding(q, "a"), 2);
    dibs_lock_free(held);
    dibs_lock_free(next);
}

/* One node has given a higher fence to others: that is the one. */
static void the_highest_fence_is_written_back(void **state)
{
    quorum *q = *state;
    dibs_lock *first = short_lock(q->one, "a");
    dibs_lock *next = short_lock(q->other, "a");
    char ahead[32];
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_try(first, err));
    fence = dibs_lock_fence(first) + 400000;
    CHECK(DIBS_OK, dibs_lock_release(first, err));
    quorum_await_holding(q, "a", 0);
    /* Four of five, so that every majority has one that says so. */
    for (size_t i = 0; i < 4; i++) {
        snprintf(ahead, sizeof(ahead), "%" PRIu64, fence + i);
        assert_true(
            server_tell(&q->fl.nodes[i].sv, "SET", "dibs:fence", ahead, NULL));
    }
    CHECK(DIBS_OK, dibs_lock_try(next, err));
    assert_true(dibs_lock_fence(next) > fence);
    assert_true(with_fence(q, "a", dibs_lock_fence(next)) >= 3);
    CHECK(DIBS_OK, dibs_lock_release(next, err));
    dibs_lock_free(first);
    dibs_lock_free(next);
}

/* One whose fences are far ahead of its clock does not vote, so that it does not
 * stand in the way of the others. */
static void a_node_far_ahead_is_left_out(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");
    uint64_t ahead;
    char text[32];

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    ahead = dibs_lock_fence(lock) + UINT64_C(3600000000);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    quorum_await_holding(q, "a", 0);
    snprintf(text, sizeof(text), "%" PRIu64, ahead);
    for (size_t i = 0; i < 2; i++)
        assert_true(
            server_tell(&q->fl.nodes[i].sv, "SET", "dibs:fence", text, NULL));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(dibs_lock_fence(lock) < ahead);
    quorum_await_holding(q, "a", 3);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

static void fences_rise_over_clients_and_nodes(void **state)
{
    quorum *q = *state;
    dibs_lock *locks[] = {short_lock(q->one, "a"), short_lock(q->other, "a")};
    uint64_t last = 0;

    for (int i = 0; i < 200; i++) {
        CHECK(DIBS_OK, world_try_until(locks[i % 2], WORLD_BOUND_MS));
        assert_true(dibs_lock_fence(locks[i % 2]) > last);
        last = dibs_lock_fence(locks[i % 2]);
        CHECK(DIBS_OK, dibs_lock_release(locks[i % 2], err));
    }
    dibs_lock_free(locks[0]);
    dibs_lock_free(locks[1]);
}

/* Takes a name at some nodes alone, as another quorum or a mistake would. */
static void hold_at(quorum *q, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        char url[SERVER_URL_MAX];
        dibs_client *cl;
        dibs_lock *lock;

        server_url(&q->fl.nodes[i].sv, url);
        cl = world_client(url, 2000);
        lock = world_lock(cl, name, DIBS_LOCK_OPTS(.ttl_ms = 20000));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        dibs_lock_leave(lock);
        dibs_lock_free(lock);
        dibs_close(cl);
    }
}

static void a_minority_that_is_held_does_not_matter(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");

    hold_at(q, 2, "a");
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    quorum_await_holding(q, "a", 2);
    dibs_lock_free(lock);
}

/* Nothing can be held in a minority: what two nodes granted is given back. */
static void what_a_minority_granted_is_given_back(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");
    dibs_error why = {0};

    hold_at(q, 3, "a");
    CHECK(DIBS_BUSY, dibs_lock_try(lock, &why));
    print_message("%s\n", why.message);
    assert_non_null(strstr(why.message, "3 of 5"));
    quorum_await_holding(q, "a", 3);
    dibs_lock_free(lock);
}

/* Two and two, with one away. */
static void an_even_split_is_a_clear_refusal(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = short_lock(q->one, "a");
    dibs_error why = {0};

    hold_at(q, 2, "a");
    server_kill(&q->fl.nodes[4].sv);
    CHECK(DIBS_BUSY, dibs_lock_try(lock, &why));
    print_message("%s\n", why.message);
    quorum_await_holding(q, "a", 2);
    dibs_lock_free(lock);
}

static void waiting_is_asking_again(void **state)
{
    quorum *q = *state;
    dibs_lock *held = short_lock(q->one, "a");
    dibs_lock *waits =
        world_lock(q->other, "a",
                   DIBS_LOCK_OPTS(.ttl_ms = 30000, .wait_ms = pace_ms(400)));
    dibs_error why = {0};
    dibs_status rc;

    CHECK(DIBS_OK, dibs_lock_try(held, err));
    /* The last ask before the end may be too late for an answer. */
    rc = dibs_lock_acquire(waits, &why);
    assert_true(rc == DIBS_TIMEOUT || rc == DIBS_UNKNOWN);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    CHECK(DIBS_OK, dibs_lock_acquire(waits, err));
    CHECK(DIBS_OK, dibs_lock_release(waits, err));
    dibs_lock_free(held);
    dibs_lock_free(waits);
}

static void a_broken_lease_stays_broken(void **state)
{
    quorum *q = *state;
    loss lost = {0};
    dibs_lock *lock = world_lock_told(q->one, "a", 3000, &lost);
    uint32_t broken = 0;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    CHECK(DIBS_OK, dibs_lease_break(q->other, "a", dibs_lock_fence(lock), NULL,
                                    &broken, err));
    assert_int_equal(broken, 1);
    await_loss(&lost, WORLD_BOUND_MS);
    quorum_await_holding(q, "a", 0);
    dibs_lock_free(lock);
}

static void refuses(quorum *q, dibs_lock_opts *opts)
{
    dibs_lock *lock;
    dibs_error why = {0};

    opts->size = sizeof(*opts);
    opts->ttl_ms = opts->ttl_ms ? opts->ttl_ms : 1000;
    lock = world_lock(q->one, "a", opts);
    CHECK(DIBS_UNSUPPORTED, dibs_lock_try(lock, &why));
    print_message("%s\n", why.message);
    assert_true(strlen(why.message) > 40);
    dibs_lock_free(lock);
}

static void what_a_majority_cannot_do_is_explained(void **state)
{
    quorum *q = *state;
    dibs_value value;

    refuses(q, &(dibs_lock_opts){.mode = DIBS_SHARED});
    refuses(q, &(dibs_lock_opts){.mode = DIBS_PERMITS,
                                 .capacity = 3,
                                 .permits = 2});
    refuses(q, &(dibs_lock_opts){.mode = DIBS_PERMITS, .capacity = 65});
    refuses(q, &(dibs_lock_opts){.durability = "wait:1"});
    refuses(q, &(dibs_lock_opts){.flags = DIBS_LOCK_STICKY});
    refuses(q, &(dibs_lock_opts){.priority = 1});
    CHECK(DIBS_UNSUPPORTED, dibs_state_get(q->one, "x", &value, err));
    assert_int_equal(quorum_holding(q, "a"), 0);
}

/* Each client has its own: nothing is asked of the nodes. */
static void a_breaker_is_for_each_client_alone(void **state)
{
    quorum *q = *state;
    const dibs_breaker_opts *opts =
        DIBS_BREAKER_OPTS(.threshold = 2, .recovery_ms = 1);
    dibs_breaker *br = NULL, *other = NULL;
    dibs_breaker_info info;
    dibs_pass pass;

    CHECK(DIBS_OK, dibs_breaker_new(q->one, "pay", opts, &br, err));
    CHECK(DIBS_OK, dibs_breaker_new(q->other, "pay", opts, &other, err));
    for (int i = 0; i < 2; i++) {
        CHECK(DIBS_OK, dibs_breaker_enter(br, &pass, err));
        dibs_breaker_leave(br, &pass, false);
    }
    CHECK(DIBS_OK, dibs_breaker_get(br, &info, err));
    assert_true(info.alone);
    assert_int_not_equal(info.state, DIBS_BREAKER_CLOSED);
    CHECK(DIBS_OK, dibs_breaker_enter(other, &pass, err));
    dibs_breaker_leave(other, &pass, true);
    while (dibs_breaker_enter(br, &pass, NULL) != DIBS_OK)
        usleep(1000);
    dibs_breaker_leave(br, &pass, true);
    CHECK(DIBS_OK, dibs_breaker_get(br, &info, err));
    assert_int_equal(info.state, DIBS_BREAKER_CLOSED);
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_FORCED, err));
    CHECK(DIBS_BUSY, dibs_breaker_enter(br, &pass, err));
    CHECK(DIBS_OK, dibs_breaker_force(br, DIBS_BREAKER_CLOSED, err));
    CHECK(DIBS_OK, dibs_breaker_enter(br, &pass, err));
    dibs_breaker_free(br);
    dibs_breaker_free(other);
}

static void note_health(const dibs_health_part *part, void *arg)
{
    dibs_part_result *results = arg;

    if (strcmp(part->name, "lock") == 0)
        results[0] = part->result;
    else if (strcmp(part->name, "leader") == 0)
        results[1] = part->result;
    else if (part->result == DIBS_PART_SKIPPED && strlen(part->detail) > 40)
        results[2]++;
}

/* A part that a quorum lacks is no fault: it is skipped, with the reason. */
static void a_health_check_skips_what_it_lacks(void **state)
{
    quorum *q = *state;
    dibs_part_result results[3] = {DIBS_PART_FAILED, DIBS_PART_FAILED, 0};
    dibs_health health;

    CHECK(DIBS_OK,
          dibs_health_check(q->one,
                            DIBS_HEALTH_OPTS(.election = "e", .group = "g",
                                             .slow_ms = pace_ms(20000),
                                             .each = note_health,
                                             .arg = results),
                            &health, err));
    assert_int_equal(health, DIBS_DEGRADED);
    assert_int_equal(results[0], DIBS_PART_OK);
    assert_int_equal(results[1], DIBS_PART_MISSING);
    assert_int_equal(results[2], 2);
}

/* What cannot be handed on stays with its holder. */
static void a_transfer_is_refused_and_costs_nothing(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = world_lock(q->one, "a", DIBS_LOCK_OPTS(.ttl_ms = 5000));
    char token[DIBS_TOKEN_SIZE];

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_UNSUPPORTED, dibs_lock_transfer(lock, token, err));
    CHECK(DIBS_OK, dibs_lock_check(lock));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

/* Without seats no member can be counted; an election without them works. */
static void an_election_that_counts_members_is_refused(void **state)
{
    quorum *q = *state;
    dibs_election *election;

    CHECK(DIBS_UNSUPPORTED,
          dibs_election_new(q->one, "a", DIBS_ELECTION_OPTS(.minimum_nodes = 2),
                            &election, err));
    assert_null(election);
    CHECK(DIBS_OK, dibs_election_new(q->one, "a", NULL, &election, err));
    CHECK(DIBS_OK, dibs_election_wait(election, pace_ms(20000), err));
    dibs_election_free(election);
}

static void a_ttl_beyond_the_longest_is_refused(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = world_lock(q->one, "a", DIBS_LOCK_OPTS(.ttl_ms = 30001));

    CHECK(DIBS_INVALID, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
}

static void expect_no_client(const char *url, dibs_status rc)
{
    dibs_client *cl = NULL;
    dibs_error why = {0};

    assert_status(dibs_open(url, NULL, &cl, &why), rc);
    print_message("%s: %s\n", url, why.message);
    assert_null(cl);
}

static void urls_that_are_no_quorum_are_refused(void **state)
{
    quorum *q = *state;
    int port = q->fl.nodes[0].sv.port;
    int other = q->fl.nodes[1].sv.port;
    char url[FLEET_URL_MAX];

    expect_no_client("redlock://a", DIBS_INVALID);
    expect_no_client("redlock://a,b", DIBS_INVALID);
    expect_no_client("redlock://a,b,c,d", DIBS_INVALID);
    expect_no_client("redlock://a,b,c,d,e,f,g,h,i,j,k", DIBS_INVALID);
    expect_no_client("redlock://a,b,A", DIBS_INVALID);
    expect_no_client("redlock://a,b,c?longest_ttl=5ms", DIBS_INVALID);
    expect_no_client("redlock://a,b,c?node_timeout=never", DIBS_INVALID);
    expect_no_client("redlock://a,b,c?colour=red", DIBS_INVALID);
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,localhost:%d,127.0.0.1:%d", port, port,
             other);
    expect_no_client(url, DIBS_REFUSED);
}

/* The same server twice is found by its run id also when it came up later: it
 * has one vote. */
static void a_server_by_two_names_has_one_vote(void **state)
{
    quorum *q = *state;
    int port = q->fl.nodes[0].sv.port;
    char url[FLEET_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;
    dibs_error why = {0};

    server_pause(&q->fl.nodes[0].sv);
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,localhost:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d?longest_ttl=30s",
             port, port, q->fl.nodes[1].sv.port, q->fl.nodes[2].sv.port,
             q->fl.nodes[3].sv.port);
    cl = world_client(url, 2000);
    server_resume(&q->fl.nodes[0].sv);
    server_kill(&q->fl.nodes[1].sv);
    server_kill(&q->fl.nodes[2].sv);
    lock = short_lock(cl, "a");
    for (int i = 0; i < 50; i++)
        assert_int_not_equal(dibs_lock_try(lock, &why), DIBS_OK);
    print_message("%s\n", why.message);
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void expect_not_renewed(dibs_lock *lock)
{
    dibs_error why = {0};

    for (int i = 0; i < 3; i++)
        assert_int_not_equal(dibs_lock_renew(lock, &why), DIBS_OK);
    print_message("%s\n", why.message);
}

static dibs_lock *lock_by_hand(dibs_client *cl, const char *name)
{
    dibs_lock *lock = world_lock(cl, name,
                                 DIBS_LOCK_OPTS(.ttl_ms = 25000,
                                                .flags = DIBS_LOCK_NO_RENEW));

    CHECK(DIBS_OK, world_try_until(lock, WORLD_BOUND_MS));
    return lock;
}

/* Two of four servers are left, one of which is there twice. */
static void a_server_by_two_names_renews_once(void **state)
{
    quorum *q = *state;
    int port = q->fl.nodes[0].sv.port;
    char url[FLEET_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;

    server_pause(&q->fl.nodes[0].sv);
    snprintf(url, sizeof(url),
             "redlock://127.0.0.1:%d,localhost:%d,127.0.0.1:%d,127.0.0.1:%d,"
             "127.0.0.1:%d?longest_ttl=30s",
             port, port, q->fl.nodes[1].sv.port, q->fl.nodes[2].sv.port,
             q->fl.nodes[3].sv.port);
    cl = world_client(url, 2000);
    server_resume(&q->fl.nodes[0].sv);
    lock = lock_by_hand(cl, "a");
    quorum_await_holding(q, "a", 4);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    server_kill(&q->fl.nodes[1].sv);
    server_kill(&q->fl.nodes[2].sv);
    expect_not_renewed(lock);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The lease is there still, but when it ends there is anybody's guess. */
static void nodes_whose_clocks_jumped_renew_nothing(void **state)
{
    quorum *q = *state;
    dibs_lock *lock = lock_by_hand(q->one, "a");

    quorum_await_holding(q, "a", QUORUM_NODES);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    for (size_t i = 0; i < 2; i++)
        fleet_set_clock(&q->fl.nodes[i], 5000);
    CHECK(DIBS_OK, dibs_lock_renew(lock, err));
    fleet_set_clock(&q->fl.nodes[2], 5000);
    expect_not_renewed(lock);
    assert_int_equal(quorum_holding(q, "a"), QUORUM_NODES);
    dibs_lock_free(lock);
}

typedef struct findings {
    size_t count;
    size_t votes;
    dibs_severity worst;
} findings;

static void find(const dibs_finding *finding, void *arg)
{
    findings *fi = arg;

    fi->count++;
    fi->votes += strstr(finding->subject, " vote") != NULL;
    if (finding->severity > fi->worst)
        fi->worst = finding->severity;
}

static void the_audit_shows_each_node(void **state)
{
    quorum *q = *state;
    findings fi = {0};

    CHECK(DIBS_OK, dibs_audit(q->one, find, &fi, err));
    assert_int_equal(fi.votes, QUORUM_NODES);
    IN_TIME(fi.worst == DIBS_NOTE);
    server_kill(&q->fl.nodes[0].sv);
    fi = (findings){0};
    CHECK(DIBS_OK, dibs_audit(q->one, find, &fi, err));
    assert_int_equal(fi.votes, QUORUM_NODES);
    IN_TIME(fi.worst == DIBS_CAUTION);
    server_kill(&q->fl.nodes[1].sv);
    server_kill(&q->fl.nodes[2].sv);
    fi = (findings){0};
    CHECK(DIBS_OK, dibs_audit(q->one, find, &fi, err));
    IN_TIME(fi.worst == DIBS_DANGER);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(a_lock_is_on_all_nodes_under_one_fence),
        QUORUM_TEST(a_free_name_is_granted_the_short_way),
        QUORUM_TEST(nodes_that_put_flushes_off_are_not_durable),
        QUORUM_TEST(a_run_that_was_not_durable_stays_so),
        QUORUM_TEST(the_short_way_is_for_direct_connections),
        QUORUM_TEST_FORGETFUL(
            a_run_is_known_on_the_connection_it_was_learned_on),
        QUORUM_TEST(the_highest_fence_is_written_back),
        QUORUM_TEST(a_node_far_ahead_is_left_out),
        QUORUM_TEST(fences_rise_over_clients_and_nodes),
        QUORUM_TEST(a_minority_that_is_held_does_not_matter),
        QUORUM_TEST(what_a_minority_granted_is_given_back),
        QUORUM_TEST(an_even_split_is_a_clear_refusal),
        QUORUM_TEST(waiting_is_asking_again),
        QUORUM_TEST(a_broken_lease_stays_broken),
        QUORUM_TEST(what_a_majority_cannot_do_is_explained),
        QUORUM_TEST(a_breaker_is_for_each_client_alone),
        QUORUM_TEST(a_health_check_skips_what_it_lacks),
        QUORUM_TEST(a_transfer_is_refused_and_costs_nothing),
        QUORUM_TEST(an_election_that_counts_members_is_refused),
        QUORUM_TEST(a_ttl_beyond_the_longest_is_refused),
        QUORUM_TEST(urls_that_are_no_quorum_are_refused),
        QUORUM_TEST(a_server_by_two_names_has_one_vote),
        QUORUM_TEST(a_server_by_two_names_renews_once),
        QUORUM_TEST(nodes_whose_clocks_jumped_renew_nothing),
        QUORUM_TEST(the_audit_shows_each_node),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
