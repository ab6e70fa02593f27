/* test_hostile.c - rows that were changed by hand, so that the server answers spans
 * and fences that cannot be: they are not believed, and its connections are given
 * up. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include "store/store.h"

#define OWNER "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OURS                                                                   \
    "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE "                \
    "application_name = 'dibs' AND query LIKE '%acquire%'"

enum { TTL_MS = 20000 };

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
}

static dibs_status acquire(dibs__store *st, dibs__answer *ans, dibs_error *err)
{
    const dibs__ask ask = {.name = "a",
                           .owner = OWNER,
                           .permits = 1,
                           .ttl_ms = TTL_MS,
                           .most_ms = TTL_MS,
                           .who = "host:1"};

    return st->ops->lease->acquire(st, &ask, soon(), ans, err);
}

static dibs_status renew(dibs__store *st, uint64_t fence, dibs_error *err)
{
    dibs__renewal item = {.name = "a",
                          .owner = OWNER,
                          .fence = fence,
                          .ttl_ms = TTL_MS};
    dibs_status rc = st->ops->lease->renew(st, &item, 1, soon(), err);

    return rc == DIBS_OK ? item.rc : rc;
}

static void refuses(dibs_status rc, const dibs_error *why)
{
    print_message("%s\n", why->message);
    assert_status(rc, DIBS_UNKNOWN);
}

static void a_lease_without_end_is_not_believed(void **state)
{
    char url[PG_URL_MAX];
    dibs__store *st = NULL;
    dibs_error why = {0};
    dibs__answer ans;
    long long before;
    uint64_t fence;

    (void)state;
    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    CHECK(DIBS_OK, acquire(st, &ans, err));
    fence = ans.fence;
    before = pg_number(&world_sv, OURS);
    assert_true(before > 0);
    assert_true(pg_tell(&world_sv, "UPDATE dibs.roll SET until_us = "
                                   "9000000000000000000 WHERE name = 'a'"));
    refuses(acquire(st, &ans, &why), &why);
    refuses(renew(st, fence, &why), &why);
    /* It is the answer that was refused, not the server. */
    assert_true(pg_tell(&world_sv,
                        "UPDATE dibs.roll SET until_us = (extract(epoch FROM "
                        "clock_timestamp()) * 1000000)::bigint + 9000000 "
                        "WHERE name = 'a'"));
    CHECK(DIBS_OK, acquire(st, &ans, err));
    assert_int_equal(ans.fence, fence);
    CHECK(DIBS_OK, renew(st, fence, err));
    assert_int_not_equal(pg_number(&world_sv, OURS), before);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_without_end_is_not_believed),
    };

    return cmocka_run_group_tests(tests, world_begin, world_end);
}
