/* test_advisory.c - ?advisory=1: whoever holds the advisory lock that
 * DistributedLock.Postgres takes for a name excludes dibs, and dibs excludes them. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include <pthread.h>

/* Names of every form, and their keys; tests/unit/test_postgres_advisory_key.c has how
 * these come about. */
static const struct {
    const char *name, *key;
} forms[] = {
    {"a", "-1023410177, -1"},
    {"123456789", "1657379654, -1382303630"},
    {"7fffffffffffffff", "9223372036854775807::bigint"},
    {"00000001,00000002", "1, 2"},
    {"workflow:retry-scheduler", "6410998801009759982::bigint"},
};

enum { FORMS = sizeof(forms) / sizeof(forms[0]) };

static PGconn *other; /* a program that knows nothing of dibs */

static int begin(void **state)
{
    if (world_begin(state) != 0)
        return -1;
    other = pg_connect(&world_sv);
    return other ? 0 : -1;
}

static int end(void **state)
{
    PQfinish(other);
    return world_end(state);
}

/* Whether the other program is told "true". */
static bool tells(const char *function, const char *key)
{
    char sql[256];
    PGresult *result;
    bool yes;

    snprintf(sql, sizeof(sql), "SELECT pg_%s(%s)", function, key);
    result = PQexec(other, sql);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    yes = strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return yes;
}

static dibs_client *open_advised(void)
{
    char url[PG_URL_MAX];

    snprintf(url, sizeof(url),
             "postgres://dibs@127.0.0.1:%d/postgres?advisory=1", world_sv.port);
    return world_client(url, WORLD_STEP_MS);
}

static void those_who_lock_so_exclude_us(void **state)
{
    dibs_client *cl = open_advised();

    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        dibs_lock *lock = world_lock(cl, forms[i].name, NULL);

        assert_true(tells("try_advisory_lock", forms[i].key));
        CHECK(DIBS_BUSY, dibs_lock_try(lock, err));
        assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM "
                                              "dibs.lease"),
                         0);
        assert_true(tells("advisory_unlock", forms[i].key));
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
    }
    dibs_close(cl);
}

static void they_are_excluded_by_us(void **state)
{
    dibs_client *cl = open_advised();

    (void)state;
    for (size_t i = 0; i < FORMS; i++) {
        dibs_lock *lock = world_lock(cl, forms[i].name, NULL);

        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        assert_false(tells("try_advisory_lock", forms[i].key));
        assert_false(tells("try_advisory_xact_lock", forms[i].key));
        assert_false(tells("try_advisory_lock_shared", forms[i].key));
        CHECK(DIBS_OK, dibs_lock_renew(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        assert_true(tells("try_advisory_lock", forms[i].key));
        assert_true(tells("advisory_unlock", forms[i].key));
        dibs_lock_free(lock);
    }
    dibs_close(cl);
}

static void readers_share_it(void **state)
{
    dibs_client *cl = open_advised();
    dibs_lock *lock = world_lock(cl, "a", DIBS_LOCK_OPTS(.mode = DIBS_SHARED));

    (void)state;
    assert_true(tells("try_advisory_lock_shared", forms[0].key));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(tells("advisory_unlock_shared", forms[0].key));
    assert_false(tells("try_advisory_lock", forms[0].key));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void *acquire(void *arg)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(arg, &err);

    if (pace_explains(rc))
        MISSED("the wait: %s", err.message);
    if (rc != DIBS_OK)
        fprintf(stderr, "the wait: %s\n", err.message);
    return rc == DIBS_OK ? arg : NULL;
}

static void whoever_waits_gets_it_in_the_end(void **state)
{
    dibs_client *cl = open_advised();
    dibs_lock *lock =
        world_lock(cl, "a", DIBS_LOCK_OPTS(.wait_ms = PG_BOUND_MS));
    pthread_t thread;
    void *got;

    (void)state;
    assert_true(tells("try_advisory_lock", forms[0].key));
    assert_int_equal(pthread_create(&thread, NULL, acquire, lock), 0);
    while (pg_number(&world_sv, "SELECT count(*) FROM dibs.lease") != 1)
        world_sleep_ms(5);
    assert_true(tells("advisory_unlock", forms[0].key));
    pthread_join(thread, &got);
    assert_ptr_equal(got, lock);
    assert_false(tells("try_advisory_lock", forms[0].key));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* A lease that is handed on comes with the advisory lock. */
static void what_is_handed_on_is_both(void **state)
{
    dibs_client *one = open_advised(), *two = open_advised();
    dibs_lock *held = world_lock(one, "a", NULL);
    dibs_lock *wanted =
        world_lock(two, "a", DIBS_LOCK_OPTS(.wait_ms = PG_BOUND_MS));

    (void)state;
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        void *got;

        CHECK(DIBS_OK, dibs_lock_try(held, err));
        assert_int_equal(pthread_create(&thread, NULL, acquire, wanted), 0);
        while (pg_number(&world_sv, "SELECT count(*) FROM dibs.lease "
                                    "WHERE role = 'waiter'") != 1)
            world_sleep_ms(5);
        CHECK(DIBS_OK, dibs_lock_release(held, err));
        pthread_join(thread, &got);
        assert_ptr_equal(got, wanted);
        assert_false(tells("try_advisory_lock", forms[0].key));
        CHECK(DIBS_OK, dibs_lock_release(wanted, err));
    }
    dibs_lock_free(wanted);
    dibs_lock_free(held);
    dibs_close(two);
    dibs_close(one);
}

static bool is_lost(const dibs_lock *lock)
{
    return dibs_lock_check(lock) != DIBS_OK;
}

/* The other program is, as long as the lease has not ended. */
static void expect_excluded(const dibs_lock *lock)
{
    bool got = tells("try_advisory_lock", forms[0].key);

    IN_TIME(!got || !is_lost(lock));
    assert_false(got);
}

/* With its session the advisory lock is gone, and the lease is said to be lost:
 * by the next renewal, which is due after a third of the ttl. */
static void with_the_session_the_lease_is_lost(void **state)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    dibs_client *cl = open_advised();
    dibs_lock *lock = world_lock(cl, "a", DIBS_LOCK_OPTS(.ttl_ms = 1500));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(pg_tell(&world_sv, "SELECT pg_terminate_backend(pid) FROM "
                                   "pg_locks WHERE locktype = 'advisory'"));
    while (!is_lost(lock)) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(5);
    }
    (void)dibs_lock_release(lock, NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_false(tells("try_advisory_lock", forms[0].key));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* A lease that was broken takes its advisory lock along. */
static void with_the_lease_the_advisory_lock_is_gone(void **state)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    dibs_client *cl = open_advised();
    dibs_lock *lock = world_lock(cl, "a", DIBS_LOCK_OPTS(.ttl_ms = 1500));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(pg_tell(&world_sv, "SELECT dibs.take('a', 0)"));
    while (!tells("try_advisory_lock", forms[0].key)) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(5);
    }
    assert_true(tells("advisory_unlock", forms[0].key));
    /* The step that learned of it may be on its way back. */
    while (!is_lost(lock)) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(5);
    }
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The lease ended by itself. What is asked of it later is not needed to free the
 * advisory lock. */
static void when_the_lease_runs_out_the_advisory_lock_is_free(void **state)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    dibs_client *cl = open_advised();
    dibs_lock *lock = world_lock(cl, "a",
                                 DIBS_LOCK_OPTS(.flags = DIBS_LOCK_NO_RENEW,
                                                .ttl_ms = pace_ms(200)));

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    expect_excluded(lock);
    while (!tells("try_advisory_lock", forms[0].key)) {
        IN_TIME(dibsx_now() < until);
        world_sleep_ms(5);
    }
    assert_true(is_lost(lock));
    CHECK(DIBS_LOST, dibs_lock_release(lock, err));
    assert_true(tells("advisory_unlock", forms[0].key));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    expect_excluded(lock);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The session has ended, and no other can be had: connections of before still serve.
 * What the store has granted by then is given back. */
static void without_a_session_no_lease_is_left(void **state)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    dibs_client *cl = open_advised();
    dibs_lock *lock = world_lock(cl, "a", NULL);
    dibs_error why = {0};
    dibs_status rc;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_true(pg_tell(&world_sv, "UPDATE dibs.meta SET version = version + "
                                   "1000"));
    assert_true(pg_tell(&world_sv,
                        "SELECT pg_terminate_backend(pid, 5000) FROM "
                        "pg_stat_activity WHERE query LIKE "
                        "'%pg_advisory_unlock%' AND pid <> "
                        "pg_backend_pid()"));
    /* The first to ask the session may be the one that learns of its end. */
    do
        rc = dibs_lock_try(lock, &why);
    while (rc == DIBS_UNKNOWN && dibsx_now() < until);
    print_message("%s: %s\n", dibs_status_name(rc), why.message);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.lease"),
                     0);
    assert_true(pg_tell(&world_sv, "UPDATE dibs.meta SET version = version - "
                                   "1000"));
    assert_status(rc, DIBS_REFUSED);
    assert_non_null(strstr(why.message, "advisory"));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

static void what_it_cannot_do_is_refused(void **state)
{
    dibs_client *cl = open_advised();
    dibs_lock *permits =
        world_lock(cl, "a",
                   DIBS_LOCK_OPTS(.mode = DIBS_PERMITS, .capacity = 3));

    (void)state;
    CHECK(DIBS_UNSUPPORTED, dibs_lock_try(permits, err));
    dibs_lock_free(permits);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_who_lock_so_exclude_us),
        cmocka_unit_test(they_are_excluded_by_us),
        cmocka_unit_test(readers_share_it),
        cmocka_unit_test(whoever_waits_gets_it_in_the_end),
        cmocka_unit_test(what_is_handed_on_is_both),
        cmocka_unit_test(with_the_session_the_lease_is_lost),
        cmocka_unit_test(with_the_lease_the_advisory_lock_is_gone),
        cmocka_unit_test(when_the_lease_runs_out_the_advisory_lock_is_free),
        cmocka_unit_test(without_a_session_no_lease_is_left),
        cmocka_unit_test(what_it_cannot_do_is_refused),
    };

    return cmocka_run_group_tests_name("postgres advisory", tests, begin, end);
}
