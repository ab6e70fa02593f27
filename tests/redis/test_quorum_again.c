/* test_quorum_again.c - an owner that asks a quorum again for what it holds: nodes
 * that gave their vote late have a higher fence for it, and the lease keeps the one
 * that was told first. */
/* SPDX-License-Identifier: MIT */
#include "quorum_world.h"

#include "store/store.h"
#include <inttypes.h>

const char quorum_params[] = "longest_ttl=30s&node_timeout=5s";

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

enum { TTL_MS = 30000, LATE = 3 }; /* the nodes from LATE on vote late */

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), WORLD_BOUND_MS);
}

static dibs_status ask(dibs__store *st, dibs__answer *ans, dibs_error *err)
{
    const dibs__ask what = {.name = "a",
                            .owner = OWNER,
                            .permits = 1,
                            .ttl_ms = TTL_MS,
                            .who = "host:1"};

    return st->ops->lease->acquire(st, &what, soon(), ans, err);
}

static uint64_t fence_at(quorum *q, size_t node)
{
    char *text = quorum_field(q, node, "a", "fence");
    uint64_t fence = text ? strtoull(text, NULL, 10) : 0;

    free(text);
    return fence;
}

/* Has fences far above what is proposed given by the late nodes; their clocks are
 * not behind them. */
static void raise_late_nodes(quorum *q)
{
    char text[32];

    for (size_t i = LATE; i < QUORUM_NODES; i++) {
        snprintf(text, sizeof(text), "%" PRId64,
                 dibsx_wall_us() + 400000 + (int64_t)i);
        assert_true(
            server_tell(&q->fl.nodes[i].sv, "SET", "dibs:fence", text, NULL));
    }
}

/* Three nodes have granted it under one fence; then the others did, each under its
 * own. */
static uint64_t hold_with_late_votes(quorum *q, dibs__store *st)
{
    dibs__answer ans;

    raise_late_nodes(q);
    for (size_t i = LATE; i < QUORUM_NODES; i++)
        server_pause(&q->fl.nodes[i].sv);
    CHECK(DIBS_OK, ask(st, &ans, err));
    for (size_t i = LATE; i < QUORUM_NODES; i++)
        server_resume(&q->fl.nodes[i].sv);
    quorum_await_holding(q, "a", QUORUM_NODES);
    for (size_t i = 0; i < QUORUM_NODES; i++)
        if (i < LATE)
            assert_int_equal(fence_at(q, i), ans.fence);
        else
            assert_true(fence_at(q, i) > ans.fence);
    return ans.fence;
}

static dibs__store *open_store(quorum *q)
{
    dibs__store *st = NULL;
    dibs__answer ans;

    CHECK(DIBS_OK, dibs__store_open(q->url, soon(), &st, err));
    /* All nodes are known and connected to. */
    CHECK(DIBS_OK, ask(st, &ans, err));
    quorum_await_holding(q, "a", QUORUM_NODES);
    CHECK(DIBS_OK,
          st->ops->lease->release(st,
                                  &(dibs__leave){.name = "a", .owner = OWNER},
                                  soon(), err));
    quorum_await_holding(q, "a", 0);
    return st;
}

static void renews(dibs__store *st, uint64_t fence)
{
    dibs__renewal item = {.name = "a",
                          .owner = OWNER,
                          .fence = fence,
                          .ttl_ms = TTL_MS};

    CHECK(DIBS_OK, st->ops->lease->renew(st, &item, 1, soon(), err));
    CHECK(DIBS_OK, item.rc);
}

/* The nodes that were late answer first, and are no majority under any fence: the
 * others are waited for. */
static void a_lease_asked_for_again_has_its_fence(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);
    uint64_t fence = hold_with_late_votes(q, st);
    dibs__answer ans;

    for (int i = 0; i < 20; i++) {
        CHECK(DIBS_OK, ask(st, &ans, err));
        assert_int_equal(ans.fence, fence);
    }
    renews(st, fence);
    dibs__store_close(st);
}

/* A majority answers, in which the fence of the lease is not to be told from those
 * of late votes: none is written over the others, and the holder goes on. */
static void a_fence_in_doubt_is_not_written_over(void **state)
{
    quorum *q = *state;
    dibs__store *st = open_store(q);
    uint64_t fence = hold_with_late_votes(q, st);
    dibs_error why = {0};
    dibs__answer ans;

    for (size_t i = 0; i < 2; i++)
        server_pause(&q->fl.nodes[i].sv);
    assert_status(ask(st, &ans, &why), DIBS_UNKNOWN);
    print_message("%s\n", why.message);
    for (size_t i = 0; i < 2; i++)
        server_resume(&q->fl.nodes[i].sv);
    /* Unless the majority did not answer in time. */
    IN_TIME(strstr(why.message, "another fence") != NULL);
    assert_int_equal(fence_at(q, 2), fence);
    renews(st, fence);
    CHECK(DIBS_OK, ask(st, &ans, err));
    assert_int_equal(ans.fence, fence);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(a_lease_asked_for_again_has_its_fence),
        QUORUM_TEST(a_fence_in_doubt_is_not_written_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
