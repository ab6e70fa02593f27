/* test_traits.c - handles whose options are equal share them, and no others do. */
/* SPDX-License-Identifier: MIT */
#include "core/client.h"
#include "core/lock/lock.h"

#include "unit.h"
#include <string.h>

static int open_client(void **state)
{
    dibs_client *cl = NULL;

    if (dibs_open("memory:traits", NULL, &cl, NULL) != DIBS_OK)
        return -1;
    *state = cl;
    return 0;
}

static int close_client(void **state)
{
    dibs_close(*state);
    return 0;
}

static dibs_lock *make_lock(dibs_client *cl, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;
    dibs_error err = {0};

    if (dibs_lock_new(cl, "a", opts, &lock, &err) != DIBS_OK)
        fail_msg("%s", err.message);
    return lock;
}

/* The options of `from`, where every byte between two members is `dirt`. */
static void soil_opts(dibs_lock_opts *out, const dibs_lock_opts *from, int dirt)
{
    memset(out, dirt, sizeof(*out));
    out->size = sizeof(*out);
    out->mode = from->mode;
    out->flags = from->flags;
    out->ttl_ms = from->ttl_ms;
    out->wait_ms = from->wait_ms;
    out->retries = from->retries;
    out->retry_delay_ms = from->retry_delay_ms;
    out->hold_min_ms = from->hold_min_ms;
    out->hold_max_ms = from->hold_max_ms;
    out->priority = from->priority;
    out->label = from->label;
    out->on_lost = NULL;
    out->on_lost_arg = NULL;
    out->permits = from->permits;
    out->capacity = from->capacity;
    out->lock_delay_ms = from->lock_delay_ms;
    out->progress_ms = from->progress_ms;
    out->identity = from->identity;
    out->meta = from->meta;
    out->on_yield = NULL;
    out->on_yield_arg = NULL;
    out->durability = from->durability;
    out->renew_every_ms = from->renew_every_ms;
}

/* The bytes that the caller does not set come from its stack. */
static void bytes_between_members_mean_nothing(void **state)
{
    dibs_client *cl = *state;
    const char *const meta[] = {"k=v", NULL};
    const dibs_lock_opts *same = DIBS_LOCK_OPTS(.ttl_ms = 5000, .retries = 2,
                                                .label = "l", .meta = meta);
    dibs_lock_opts dirty[2];
    dibs_lock *locks[3] = {make_lock(cl, same)};

    for (size_t i = 0; i < 2; i++) {
        soil_opts(&dirty[i], same, i == 0 ? 0x55 : 0xaa);
        locks[i + 1] = make_lock(cl, &dirty[i]);
        assert_ptr_equal(locks[i + 1]->traits, locks[0]->traits);
    }
    assert_memory_not_equal(&dirty[0], &dirty[1], sizeof(dirty[0]));
    assert_int_equal(locks[0]->traits->users, 3);
    for (size_t i = 0; i < 3; i++)
        dibs_lock_free(locks[i]);
}

/* The priority is the handle's own. */
static void a_priority_is_not_shared(void **state)
{
    dibs_client *cl = *state;
    dibs_lock *low = make_lock(cl, DIBS_LOCK_OPTS(.priority = 1));
    dibs_lock *high = make_lock(cl, DIBS_LOCK_OPTS(.priority = 2));

    assert_ptr_equal(low->traits, high->traits);
    assert_int_equal(low->priority, 1);
    assert_int_equal(high->priority, 2);
    dibs_lock_free(low);
    dibs_lock_free(high);
}

/* Each differs from every other in one member at least. */
static void options_that_differ_are_not_shared(void **state)
{
    const char *const meta[] = {"k=v", NULL};
    const dibs_lock_opts *const all[] = {
        DIBS_LOCK_OPTS(.ttl_ms = 9000),
        DIBS_LOCK_OPTS(.ttl_ms = 9001),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .mode = DIBS_SHARED),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .flags = DIBS_LOCK_BARGE),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .wait_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .retries = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .retry_delay_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .hold_min_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .hold_max_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .mode = DIBS_PERMITS, .capacity = 2),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .mode = DIBS_PERMITS, .capacity = 3),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .mode = DIBS_PERMITS, .capacity = 3,
                       .permits = 2),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .lock_delay_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .progress_ms = 1),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .renew_every_ms = 1000),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .label = "l"),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .meta = meta),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .identity = "i"),
        DIBS_LOCK_OPTS(.ttl_ms = 9000, .durability = "wait:1"),
    };
    dibs_lock *locks[COUNT_OF(all)];

    for (size_t i = 0; i < COUNT_OF(all); i++) {
        locks[i] = make_lock(*state, all[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(locks[i]->traits, locks[k]->traits);
    }
    for (size_t i = 0; i < COUNT_OF(all); i++)
        dibs_lock_free(locks[i]);
}

#define CLIENT_TEST(fn)                                                        \
    cmocka_unit_test_setup_teardown(fn, open_client, close_client)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(bytes_between_members_mean_nothing),
        CLIENT_TEST(a_priority_is_not_shared),
        CLIENT_TEST(options_that_differ_are_not_shared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
