/* test_tls.c - TLS that is as it should be, and TLS that is not: bad certificates,
 * or none where there should be one. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

static int begin(void **state)
{
    (void)state;
    return pg_start_tls(&world_sv, "server") ? 0 : -1;
}

static void a_good_certificate_is_accepted(void **state)
{
    dibs_error why = {0};
    char url[PG_URL_MAX];

    (void)state;
    pg_tls_url(&world_sv, "localhost", url);
    assert_status(world_try_url(url, WORLD_STEP_MS, &why), DIBS_OK);
    pg_tls_url(&world_sv, "127.0.0.1", url);
    assert_status(world_try_url(url, WORLD_STEP_MS, &why), DIBS_OK);
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
        assert_status(world_try_url(url, WORLD_STEP_MS, &why), DIBS_DENIED);
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
    assert_status(world_try_url(url, WORLD_STEP_MS, &why), DIBS_REFUSED);
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
