/* test_pooler.c - through pgbouncer in transaction mode, where a session lasts no
 * longer than a statement: it is noticed and said, waits are polled, and nothing is
 * left behind in the sessions of the server. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include <pthread.h>

static int begin(void **state)
{
    (void)state;
    if (!pg_start(&world_sv))
        return -1;
    world_sv.sessions = 1;
    return pg_start_bouncer(&world_sv) ? 0 : -1;
}

/* What the log said of the doorbell. */
typedef struct heard {
    atomic_int bells;
    char last[256];
} heard;

static void
hear(dibs_log_level level, const char *event, const char *message, void *arg)
{
    heard *hd = arg;

    if (level != DIBS_LOG_WARN || strcmp(event, "bell") != 0)
        return;
    snprintf(hd->last, sizeof(hd->last), "%s", message);
    atomic_fetch_add(&hd->bells, 1);
}

static dibs_client *open_pooled(heard *hd)
{
    dibs_client *cl = NULL;
    char url[PG_URL_MAX];

    pg_pooled_url(&world_sv, url);
    CHECK(DIBS_OK,
          dibs_open(url,
                    DIBS_CLIENT_OPTS(.timeout_ms = WORLD_STEP_MS, .log = hear,
                                     .log_arg = hd, .log_level = DIBS_LOG_WARN),
                    &cl, err));
    return cl;
}

static void *wait_for_it(void *arg)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(arg, &err);

    if (pace_explains(rc))
        MISSED("the wait: %s", err.message);
    if (rc != DIBS_OK)
        fprintf(stderr, "the wait: %s\n", err.message);
    return rc == DIBS_OK ? arg : NULL;
}

static void waits_are_polled_and_said_to_be(void **state)
{
    heard hd = {.last = ""}, quiet = {.last = ""};
    dibs_client *holder = open_pooled(&quiet), *waiter = open_pooled(&hd);
    dibs_lock *held = world_lock(holder, "polled", NULL);
    dibs_lock *wanted =
        world_lock(waiter, "polled", DIBS_LOCK_OPTS(.wait_ms = PG_BOUND_MS));
    void *got;

    (void)state;
    for (int i = 0; i < 3; i++) {
        pthread_t thread;

        CHECK(DIBS_OK, dibs_lock_try(held, err));
        assert_int_equal(pthread_create(&thread, NULL, wait_for_it, wanted), 0);
        while (pg_number(&world_sv, "SELECT count(*) FROM dibs.lease "
                                    "WHERE role = 'waiter'") != 1)
            world_sleep_ms(5);
        CHECK(DIBS_OK, dibs_lock_release(held, err));
        pthread_join(thread, &got);
        assert_ptr_equal(got, wanted);
        CHECK(DIBS_OK, dibs_lock_release(wanted, err));
    }
    assert_int_equal(atomic_load(&hd.bells), 1);
    assert_non_null(strstr(hd.last, "pooler"));
    assert_int_equal(atomic_load(&quiet.bells), 0);
    dibs_lock_free(wanted);
    dibs_lock_free(held);
    dibs_close(waiter);
    dibs_close(holder);
}

static void note_pooler(const dibs_finding *finding, void *arg)
{
    if (strcmp(finding->subject, "pooler") == 0)
        *(dibs_severity *)arg = finding->severity;
}

static void the_doctor_says_so(void **state)
{
    heard hd = {.last = ""};
    dibs_client *cl = open_pooled(&hd);
    dibs_severity severity = DIBS_DANGER;
    char url[PG_URL_MAX];

    (void)state;
    CHECK(DIBS_OK, dibs_audit(cl, note_pooler, &severity, err));
    assert_int_equal(severity, DIBS_CAUTION);
    dibs_close(cl);
    pg_bouncer_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    CHECK(DIBS_OK, dibs_audit(cl, note_pooler, &severity, err));
    assert_int_equal(severity, DIBS_FINE);
    dibs_close(cl);
    severity = DIBS_DANGER;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    CHECK(DIBS_OK, dibs_audit(cl, note_pooler, &severity, err));
    assert_int_equal(severity, DIBS_DANGER); /* nothing was said */
    dibs_close(cl);
}

/* The pooler has a single session for all, which is looked at through it. */
static void nothing_is_left_in_the_session(void **state)
{
    heard hd = {.last = ""};
    dibs_client *cl = open_pooled(&hd);
    dibs_lock *lock = world_lock(cl, "plain", NULL);
    dibs_lock *readers =
        world_lock(cl, "readers", DIBS_LOCK_OPTS(.mode = DIBS_SHARED));

    (void)state;
    for (int i = 0; i < 10; i++) {
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_renew(lock, err));
        CHECK(DIBS_OK, dibs_lock_try(readers, err));
        CHECK(DIBS_OK, dibs_lock_release(readers, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    }
    assert_int_equal(
        pg_pooled_number(&world_sv,
                         "SELECT count(*) FROM pg_prepared_statements"),
        0);
    assert_int_equal(
        pg_pooled_number(&world_sv,
                         "SELECT count(*) FROM pg_settings WHERE source = "
                         "'session' AND name IN ('lock_timeout', "
                         "'enable_hashjoin', 'synchronous_commit', 'jit')"),
        0);
    assert_int_equal(
        pg_pooled_number(&world_sv,
                         "SELECT count(*) FROM pg_listening_channels()"),
        0);
    dibs_lock_free(readers);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Its sessions are gone; the pooler stays, and so do its clients. */
static void a_restart_behind_it_is_survived(void **state)
{
    heard hd = {.last = ""};
    dibs_client *cl = open_pooled(&hd);
    dibs_lock *lock = world_lock(cl, "kept", DIBS_LOCK_OPTS(.ttl_ms = 60000));
    dibs_lock *rival = world_lock(cl, "kept too", NULL);
    uint64_t fence;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    pg_kill(&world_sv);
    assert_true(pg_restart(&world_sv));
    CHECK(DIBS_OK, world_try_until(rival, PG_BOUND_MS));
    CHECK(DIBS_OK, dibs_lock_check(lock));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    assert_true(dibs_lock_fence(lock) > fence);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(rival, err));
    dibs_lock_free(rival);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* Advisory locks need a session. One that goes past the pooler will do. */
/* There the sessions are not ours to set up. */
static void another_isolation_is_refused(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl = NULL;
    dibs_error why = {0};

    (void)state;
    pg_bouncer_url(&world_sv, url);
    assert_true(pg_tell(&world_sv, "ALTER ROLE dibs SET "
                                   "default_transaction_isolation = "
                                   "'repeatable read'"));
    assert_true(pg_tell(&world_sv,
                        "SELECT pg_terminate_backend(pid, 5000) FROM "
                        "pg_stat_activity WHERE usename = 'dibs' AND pid <> "
                        "pg_backend_pid()"));
    CHECK(DIBS_REFUSED, dibs_open(url, NULL, &cl, &why));
    assert_non_null(strstr(why.message, "default_transaction_isolation"));
    assert_true(pg_tell(&world_sv, "ALTER ROLE dibs RESET "
                                   "default_transaction_isolation"));
    assert_true(pg_tell(&world_sv,
                        "SELECT pg_terminate_backend(pid, 5000) FROM "
                        "pg_stat_activity WHERE usename = 'dibs' AND pid <> "
                        "pg_backend_pid()"));
}

static void advisory_locks_are_refused(void **state)
{
    char url[PG_URL_MAX], advised[PG_URL_MAX + 16];
    dibs_error why = {0};
    dibs_client *cl = NULL;

    (void)state;
    pg_pooled_url(&world_sv, url);
    snprintf(advised, sizeof(advised), "%s?advisory=1", url);
    CHECK(DIBS_REFUSED, dibs_open(advised, NULL, &cl, &why));
    assert_non_null(strstr(why.message, "pooler"));
    pg_bouncer_url(&world_sv, url);
    snprintf(advised, sizeof(advised), "%s&advisory=1", url);
    cl = world_client(advised, WORLD_STEP_MS);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_polled_and_said_to_be),
        cmocka_unit_test(the_doctor_says_so),
        cmocka_unit_test(nothing_is_left_in_the_session),
        cmocka_unit_test(a_restart_behind_it_is_survived),
        cmocka_unit_test(advisory_locks_are_refused),
        cmocka_unit_test(another_isolation_is_refused),
    };

    return cmocka_run_group_tests_name("postgres pooler", tests, begin,
                                       world_end);
}
