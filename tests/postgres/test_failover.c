/* test_failover.c - a failover to an asynchronous standby that has missed the
 * newest grants: fences rise all the same, and clients find the new primary. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

static pg_server standby;

static int begin(void **state)
{
    (void)state;
    return pg_start(&world_sv) && pg_start_standby(&standby, &world_sv) ? 0
                                                                        : -1;
}

static int end(void **state)
{
    pg_stop(&standby);
    return world_end(state);
}

static void await_replay(const char *name)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    char sql[128];

    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM dibs.roll WHERE name = '%s'", name);
    while (pg_number(&standby, sql) < 1) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(10);
    }
}

static void a_standby_is_no_store(void **state)
{
    char url[PG_URL_MAX];
    dibs_error why = {0};
    dibs_client *cl = NULL;

    (void)state;
    pg_url(&standby, url);
    CHECK(DIBS_UNAVAIL, dibs_open(url, NULL, &cl, &why));
    IN_TIME(strstr(why.message, "standby") != NULL);
}

static void fences_rise_over_a_failover_that_lost_grants(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock, *lost;
    uint64_t fence, lost_fence;

    (void)state;
    snprintf(url, sizeof(url),
             "postgres://dibs@127.0.0.1:%d,127.0.0.1:%d/postgres", standby.port,
             world_sv.port);
    cl = world_client(url, WORLD_STEP_MS);
    lock = world_lock(cl, "known", DIBS_LOCK_OPTS(.ttl_ms = 500));
    lost = world_lock(cl, "lost", DIBS_LOCK_OPTS(.ttl_ms = 500));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    await_replay("known");
    pg_kill(&standby);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lost, err));
    fence = dibs_lock_fence(lock);
    lost_fence = dibs_lock_fence(lost);
    pg_kill(&world_sv);
    assert_true(pg_restart(&standby));
    assert_true(pg_tell(&standby, "SELECT pg_promote()"));
    assert_int_equal(pg_number(&standby, "SELECT count(*) FROM dibs.roll "
                                         "WHERE name = 'lost'"),
                     0);
    (void)dibs_lock_release(lock, NULL);
    (void)dibs_lock_release(lost, NULL);
    CHECK(DIBS_OK, world_try_until(lock, PG_BOUND_MS));
    assert_true(dibs_lock_fence(lock) > fence);
    CHECK(DIBS_OK, world_try_until(lost, PG_BOUND_MS));
    assert_true(dibs_lock_fence(lost) > lost_fence);
    dibs_lock_free(lost);
    dibs_lock_free(lock);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standby_is_no_store),
        cmocka_unit_test(fences_rise_over_a_failover_that_lost_grants),
    };

    return cmocka_run_group_tests_name("postgres failover", tests, begin, end);
}
