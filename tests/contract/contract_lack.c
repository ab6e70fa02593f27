/* contract_lack.c - what is not asked of which store, and why: the one table of it.
 *
 * Tests that need one of these are skipped there. What a store says of itself and
 * what stands here must be the same, so that none comes to refuse more unseen. The
 * table for users is in docs/redis.md. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

typedef struct lack {
    const char *scheme;
    dibs__ability what;
    const char *skipped;
    const char *why;
} lack;

static const lack lacks[] = {
    {"memory", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "it has no replicas"},
    {"sqlite", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "it has no replicas"},
    {"fault", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "what is behind it has none"},
    {"postgres", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "the server's synchronous_commit decides that"},
    {"postgresql", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "the server's synchronous_commit decides that"},
    {"redis-cluster", DIBS__CAN_SET, "sets of names without a common tag",
     "a script has keys of one slot"},
    {"rediss-cluster", DIBS__CAN_SET, "sets of names without a common tag",
     "a script has keys of one slot"},
    {"redlock", DIBS__CAN_QUEUE, "places, order, priority",
     "each node would have an order of its own"},
    {"redlock", DIBS__CAN_SHARE, "readers",
     "two majorities may know different readers"},
    {"redlock", DIBS__CAN_COUNT, "several permits at a time, more than 64",
     "majorities do not count; each permit is a slot"},
    {"redlock", DIBS__CAN_CONVERT, "upgrade, downgrade, transfer",
     "part of the nodes might turn a lease and part not"},
    {"redlock", DIBS__CAN_RING, "sticky leases, yield, news of a break",
     "there is no doorbell that all nodes would notice"},
    {"redlock", DIBS__CAN_SET, "sets of names in one step",
     "nodes might grant different parts of a set"},
    {"redlock", DIBS__CAN_REPLICATE, "grants that replicas must have",
     "the majority is the durability"},
    {"redlock", DIBS__CAN_VALUE, "values", "there is no one order of changes"},
    {"redlock", DIBS__CAN_LOG, "logs", "there is no one order of entries"},
    {"redlock", DIBS__CAN_TOPIC, "topics", "no node knows when it is decided"},
    {"redlock", DIBS__CAN_RATE, "rate limits", "majorities do not count"},
    {"redlock", DIBS__CAN_MEET, "rosters",
     "majorities of seats do not agree on one decision"},
    {"redlock", DIBS__CAN_METER, "meters", "majorities do not count"},
    {"redlock", DIBS__CAN_ITEMS, "queues of items",
     "majorities of items do not agree on who has one"},
    {"redlock", DIBS__CAN_COMMIT, "commits and indexes",
     "there is no one order of changes"},
};

static const lack *find(const char *scheme, dibs__ability what)
{
    for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++)
        if (lacks[i].what == what && strcmp(lacks[i].scheme, scheme) == 0)
            return &lacks[i];
    return NULL;
}

static void what_is_refused_is_in_the_table(void **state)
{
    contract *t = *state;
    const char *scheme = t->st[0]->ops->scheme;

    /* That says what the store within says. */
    if (strcmp(scheme, "fault") == 0)
        skip();
    for (int i = 0; i < DIBS__ABILITIES; i++) {
        const char *why = dibs__store_cannot(t->st[0], (dibs__ability)i);
        const lack *known = find(scheme, (dibs__ability)i);

        if (!why != !known)
            fail_msg("ability %d: %s says \"%s\", the table \"%s\"", i, scheme,
                     why ? why : "", known ? known->why : "");
        if (known)
            print_message("  without %s: %s\n", known->skipped, known->why);
    }
}

/* A table of steps that lacks a new one is found here and not in use. Sets of names
 * have none where the store never can. */
static void every_step_has_a_function(void **state)
{
    contract *t = *state;
    const dibs__store_ops *ops = t->st[0]->ops;

#define HAS(table, step)                                                       \
    if (!ops->table->step && strcmp(#step, "acquire_all") != 0)                \
        fail_msg("%s has no " #step, ops->scheme);
#define HAS_LEASE(step, STEP)  HAS(lease, step)
#define HAS_VALUE(step, STEP)  HAS(value, step)
#define HAS_LOG(step, STEP)    HAS(log, step)
#define HAS_TOPIC(step, STEP)  HAS(topic, step)
#define HAS_ROSTER(step, STEP) HAS(roster, step)
#define HAS_RATE(step, STEP)   HAS(rate, step)
#define HAS_METER(step, STEP)  HAS(meter, step)
#define HAS_QUEUE(step, STEP)  HAS(queue, step)
#define HAS_ADMIN(step, STEP)  HAS(queue_admin, step)
#define HAS_COMMIT(step, STEP) HAS(commit, step)
    DIBS__LEASE_STEPS(HAS_LEASE)
    DIBS__VALUE_STEPS(HAS_VALUE)
    DIBS__LOG_STEPS(HAS_LOG)
    DIBS__TOPIC_STEPS(HAS_TOPIC)
    DIBS__RATE_STEPS(HAS_RATE)
    DIBS__ROSTER_STEPS(HAS_ROSTER)
    DIBS__METER_STEPS(HAS_METER)
    DIBS__QUEUE_STEPS(HAS_QUEUE)
    DIBS__QUEUE_ADMIN_STEPS(HAS_ADMIN)
    DIBS__COMMIT_STEPS(HAS_COMMIT)
}

int contract_lacks(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(every_step_has_a_function),
        CONTRACT_TEST(what_is_refused_is_in_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
