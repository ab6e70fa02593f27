/* test_tls.c - TLS that is as it should be, and TLS that is not: bad certificates,
 * or none where there should be one. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

static int begin(void **state)
{
    (void)state;
    return pg_start_tls(&world_sv, "server") ? 0 : -1;
}

/* Whether it can be opened and used, in time, with a word about it if not. */
static dibs_status try_url(const char *url, dibs_error *why)
{
    dibsx_nsec from_at = dibsx_now();
    dibs_client *cl = NULL;
    dibs_status rc =
        dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = WORLD_STEP_MS), &cl, why);

    assert_true(world_ms_since(from_at) <= WORLD_STEP_MS + WORLD_SLACK_MS);
    if (rc == DIBS_OK) {
        dibs_lock *lock = world_lock(cl, "k", NULL);

        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
        dibs_lock_free(lock);
        dibs_close(cl);
    } else {
        assert_null(cl);
        assert_true(strlen(why->message) > 10);
        print_message("%s: %s\n", dibs_status_name(rc), why->message);
    }
    return rc;
}

static void a_good_certificate_is_accepted(void **state)
{
    dibs_error why = {0};
    char url[PG_URL_MAX];

    (void)state;
    pg_tls_url(&world_sv, "localhost", url);
    assert_int_equal(try_url(url, &why), DIBS_OK);
    pg_tls_url(&world_sv, "127.0.0.1", url);
    assert_int_equal(try_url(url, &why), DIBS_OK);
}

static void bad_certificates_are_denied(void **state)
{
    static const char *const bad[] = {"expired", "wrong_host", "wrong_ca",
                                      "self_signed"};
    char url[PG_URL_MAX];

    (void)state;
    pg_tls_url(&world_sv, "localhost", url);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dibs_error why = {0};

        pg_kill(&world_sv);
        snprintf(world_sv.cert, sizeof(world_sv.cert), "%s", bad[i]);
        assert_true(pg_restart(&world_sv));
        assert_int_equal(try_url(url, &why), DIBS_DENIED);
    }
}

static void tls_is_not_given_up_for_nothing(void **state)
{
    dibs_error why = {0};
    char url[PG_URL_MAX];

    (void)state;
    pg_tls_url(&world_sv, "localhost", url);
    pg_kill(&world_sv);
    world_sv.cert[0] = '\0';
    assert_true(pg_restart(&world_sv));
    assert_int_equal(try_url(url, &why), DIBS_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_certificate_is_accepted),
        cmocka_unit_test(bad_certificates_are_denied),
        cmocka_unit_test(tls_is_not_given_up_for_nothing),
    };

    return cmocka_run_group_tests_name("postgres tls", tests, begin, world_end);
}
