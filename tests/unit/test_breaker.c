/* test_breaker.c - answers about the permit of a probe, as a client of a breaker takes
 * them. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "coord/breaker_machine.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define START (1000 * DIBSX_SEC)

/* Open for all, and recovered. */
static void open_machine(dibs__breaker *br)
{
    static const dibs__breaker_rules rules = {.threshold = 1,
                                              .min_calls = 10,
                                              .sampling_ms = 1000,
                                              .recovery_ms = 1,
                                              .probe_ttl_ms = 10000,
                                              .probes = 1,
                                              .need = 1,
                                              .min_clients = 1};
    const dibs__sums sums = {.version = 7,
                             .expires_ms = DIBS__BREAKER_KEEP_MS,
                             .state = "open"};

    dibs__breaker_init(br, &rules, true, 1);
    dibs__breaker_metered(br, START, START, DIBS_STALE, &sums);
    assert_false(dibs__breaker_passes(br));
}

static dibs__enter_todo ask(dibs__breaker *br, dibs_status rc)
{
    dibsx_nsec now = START + DIBSX_SEC;
    dibs__breaker_pass pass;

    assert_int_equal(dibs__breaker_enter(br, now, &pass), DIBS__ENTER_ASK);
    return dibs__breaker_answered(br, &pass, now, rc, now + DIBSX_SEC, 0);
}

/* Somebody put the value for ever, or the server says so. */
static void a_value_that_never_expires_is_open_for_ever(void **state)
{
    const dibs__sums sums = {.version = 8,
                             .expires_ms = INT64_MAX,
                             .state = "open"};
    dibs__breaker_pass pass;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    dibs__breaker_metered(&br, START, START, DIBS_STALE, &sums);
    assert_int_equal(dibs__breaker_enter(&br, START + DIBSX_SEC, &pass),
                     DIBS__ENTER_REFUSED);
}

static void a_store_that_forbids_permits_is_not_away(void **state)
{
    static const dibs_status refusals[] = {DIBS_DENIED, DIBS_UNSUPPORTED,
                                           DIBS_MISMATCH, DIBS_BUSY};

    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        dibs__breaker br;

        open_machine(&br);
        assert_int_equal(ask(&br, refusals[i]), DIBS__ENTER_REFUSED);
        assert_false(br.away);
    }
}

static void without_an_answer_the_client_probes_alone(void **state)
{
    static const dibs_status failures[] = {DIBS_UNAVAIL, DIBS_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        dibs__breaker_pass pass;
        dibs__breaker br;

        open_machine(&br);
        assert_int_equal(ask(&br, failures[i]), DIBS__ENTER_LOOK);
        assert_true(br.away);
        assert_int_equal(dibs__breaker_enter(&br, START + 2 * DIBSX_SEC, &pass),
                         DIBS__ENTER_PASS);
        assert_true(dibs__breaker_permit_of(&br, pass.permit)->own);
    }
}

/* A request that got lost is given up long after another was answered. */
static void an_older_failure_does_not_hide_the_store(void **state)
{
    const dibs__sums none = {.expires_ms = -1};
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    dibs__breaker_metered(&br, START - 1, START + DIBSX_SEC, DIBS_UNKNOWN,
                          &none);
    assert_false(br.away);
    dibs__breaker_metered(&br, START + 1, START + DIBSX_SEC, DIBS_UNKNOWN,
                          &none);
    assert_true(br.away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_never_expires_is_open_for_ever),
        cmocka_unit_test(a_store_that_forbids_permits_is_not_away),
        cmocka_unit_test(without_an_answer_the_client_probes_alone),
        cmocka_unit_test(an_older_failure_does_not_hide_the_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
