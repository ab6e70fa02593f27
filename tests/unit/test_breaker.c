/* test_breaker.c - answers about the permit of a probe, notices and ears, as a client of a
 * breaker takes them. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "coord/breaker_machine.h"
#include "store/topic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

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

/* The time to live of a breaker that recovers after so long. */
static const char *shown(int64_t recovery_ms, const char *text)
{
    static char out[64];

    snprintf(out, sizeof(out), "%lld %s",
             (long long)(recovery_ms + DIBS__BREAKER_KEEP_MS), text);
    return out;
}

static dibs__breaker_todo next_at(dibs__breaker *br, dibsx_nsec now)
{
    dibs__breaker_act act;

    return dibs__breaker_next(br, now, &act);
}

/* It listens, and has nothing to do. */
static void
listen_at(dibs__breaker *br, dibsx_nsec now, uint64_t version, const char *text)
{
    dibs__sums sums = {.version = version, .expires_ms = DIBS__BREAKER_KEEP_MS};

    snprintf(sums.state, sizeof(sums.state), "%s", text);
    assert_int_equal(next_at(br, now), DIBS__BREAKER_EAR);
    dibs__breaker_eared(br, now, now, DIBS_OK);
    assert_int_equal(next_at(br, now), DIBS__BREAKER_REPORT);
    dibs__breaker_metered(br, now, now, DIBS_OK, &sums);
    assert_int_equal(next_at(br, now), DIBS__BREAKER_SLEEP);
}

/* A client that hears what the store shows sends nothing. */
static void what_is_shown_is_believed_without_a_look(void **state)
{
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    listen_at(&br, START, 7, "open");
    dibs__breaker_shown(&br, 8, shown(0, "closed"), START);
    assert_true(dibs__breaker_passes(&br));
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
    dibs__breaker_shown(&br, 9, shown(5000, "open"), START);
    assert_false(dibs__breaker_passes(&br));
    assert_true(dibs__breaker_retry_ms(&br, START) >= 5000);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
    dibs__breaker_shown(&br, 10, "0 forced", START);
    assert_int_equal(dibs__breaker_retry_ms(&br, START), -1);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
    assert_null(dibs__breaker_check(&br, START));
}

/* An older version, and what no breaker has written, are not believed: it looks. The same
 * once more says nothing. */
static void what_is_old_or_strange_is_not_believed(void **state)
{
    static const char *const strange[] = {"",          "open",      "5 ",
                                          "-1 closed", "5 closed!", "x closed"};
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    listen_at(&br, START, 7, "open");
    dibs__breaker_shown(&br, 7, shown(0, "closed"), START);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
    dibs__breaker_shown(&br, 6, shown(0, "closed"), START);
    assert_false(dibs__breaker_passes(&br));
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        open_machine(&br);
        listen_at(&br, START, 7, "open");
        dibs__breaker_shown(&br, 8, strange[i], START);
        assert_int_equal(br.version, 7);
        assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
    }
}

/* A client that could not ask for long hears of a change: it asks again. */
static void what_is_shown_does_not_bring_the_store_back(void **state)
{
    const dibs__sums none = {.expires_ms = -1};
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    listen_at(&br, START, 7, "open");
    dibs__breaker_metered(&br, START, START, DIBS_UNAVAIL, &none);
    assert_true(br.away);
    dibs__breaker_shown(&br, 8, shown(0, "closed"), START);
    assert_false(dibs__breaker_passes(&br));
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
}

/* The notice came four seconds late. The store knows how much is left. */
static void a_late_notice_does_not_delay_the_recovery(void **state)
{
    const dibs__sums sums = {.version = 8,
                             .expires_ms = 1000 + DIBS__BREAKER_KEEP_MS,
                             .state = "open"};
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    listen_at(&br, START, 7, "open");
    dibs__breaker_shown(&br, 8, shown(5000, "open"), START);
    assert_true(dibs__breaker_retry_ms(&br, START) >= 5000);
    dibs__breaker_metered(&br, START, START, DIBS_OK, &sums);
    assert_true(dibs__breaker_retry_ms(&br, START) >= 1000);
    assert_true(dibs__breaker_retry_ms(&br, START) < 2000);
}

/* It began to listen after a look: what changed in between was told to nobody. */
static void a_look_follows_an_ear(void **state)
{
    dibs__breaker br;
    dibsx_nsec later = START + 2 * DIBS__EAR_MS * DIBSX_MS;

    (void)state;
    open_machine(&br);
    listen_at(&br, START, 7, "open");
    /* After a cut too. */
    dibs__breaker_missed(&br, START);
    listen_at(&br, START, 7, "open");
    /* And after an ear that came too late to go on with the one before. */
    assert_int_equal(next_at(&br, later), DIBS__BREAKER_REPORT);
    assert_int_equal(next_at(&br, later), DIBS__BREAKER_EAR);
    dibs__breaker_eared(&br, later, later, DIBS_OK);
    assert_int_equal(next_at(&br, later), DIBS__BREAKER_REPORT);
}

/* The ear may have been answered before the cut. */
static void a_cut_during_an_ear_leads_to_another(void **state)
{
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_EAR);
    dibs__breaker_missed(&br, START);
    dibs__breaker_eared(&br, START, START, DIBS_OK);
    listen_at(&br, START, 7, "open");
}

/* The answer may be of the time before the change, or before the cut. */
static void a_notice_during_a_look_leads_to_another(void **state)
{
    const dibs__sums old = {.version = 7,
                            .expires_ms = DIBS__BREAKER_KEEP_MS,
                            .state = "open"};
    dibs__breaker br;

    (void)state;
    for (int cut = 0; cut < 2; cut++) {
        open_machine(&br);
        listen_at(&br, START, 7, "open");
        dibs__breaker_told(&br, 9, START);
        assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
        if (cut)
            dibs__breaker_missed(&br, START);
        else
            dibs__breaker_told(&br, 8, START);
        dibs__breaker_metered(&br, START, START, DIBS_OK, &old);
        if (cut) {
            assert_int_equal(next_at(&br, START), DIBS__BREAKER_EAR);
            dibs__breaker_eared(&br, START, START, DIBS_OK);
        }
        assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
    }
    /* An answer that has the change is enough. */
    open_machine(&br);
    listen_at(&br, START, 6, "open");
    dibs__breaker_told(&br, 7, START);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
    dibs__breaker_told(&br, 7, START);
    dibs__breaker_metered(&br, START, START, DIBS_OK, &old);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
}

static dibs__breaker_pass probe_at(dibs__breaker *br, dibsx_nsec now)
{
    dibs__breaker_pass pass;

    assert_int_equal(dibs__breaker_enter(br, now, &pass), DIBS__ENTER_ASK);
    assert_int_equal(dibs__breaker_answered(br, &pass, now, DIBS_OK,
                                            now + DIBSX_SEC, 0),
                     DIBS__ENTER_PASS);
    return pass;
}

/* The second of two probes ends before the report of the first is answered. */
static void a_probe_that_ends_during_a_report_is_reported_at_once(void **state)
{
    const dibs__sums one = {.version = 7,
                            .expires_ms = DIBS__BREAKER_KEEP_MS,
                            .good = 1,
                            .state = "open"};
    dibsx_nsec now = START + DIBSX_SEC;
    dibs__breaker_pass first, second;
    dibs__breaker_act act;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    br.rules.probes = br.rules.need = 2;
    listen_at(&br, START, 7, "open");
    first = probe_at(&br, now);
    second = probe_at(&br, now);
    dibs__breaker_left(&br, &first, true, false, now);
    assert_int_equal(next_at(&br, now), DIBS__BREAKER_REPORT);
    dibs__breaker_left(&br, &second, true, false, now);
    dibs__breaker_metered(&br, now, now, DIBS_OK, &one);
    assert_int_equal(dibs__breaker_next(&br, now, &act), DIBS__BREAKER_REPORT);
    assert_int_equal(act.report.good, 1);
    dibs__breaker_metered(&br, now, now, DIBS_OK, &one);
    assert_int_not_equal(next_at(&br, now), DIBS__BREAKER_REPORT);
}

/* Its permit is released after the report. */
static void the_next_probe_waits_for_no_permit_of_its_own(void **state)
{
    const dibs__sums one = {.version = 7,
                            .expires_ms = DIBS__BREAKER_KEEP_MS,
                            .good = 1,
                            .state = "open"};
    dibsx_nsec now = START + DIBSX_SEC;
    dibsx_nsec soon = now + DIBS__BREAKER_SOON_MS * DIBSX_MS;
    dibs__breaker_pass pass;
    dibs__breaker_act act;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    br.rules.need = 3;
    listen_at(&br, START, 7, "open");
    pass = probe_at(&br, now);
    dibs__breaker_left(&br, &pass, true, false, now);
    assert_int_equal(dibs__breaker_enter(&br, now, &pass), DIBS__ENTER_REFUSED);
    assert_int_equal(dibs__breaker_retry_ms(&br, now), DIBS__BREAKER_SOON_MS);
    /* The store is slow, and knows of the permit alone. */
    assert_int_equal(dibs__breaker_enter(&br, soon, &pass), DIBS__ENTER_ASK);
    assert_int_equal(dibs__breaker_answered(&br, &pass, soon, DIBS_BUSY, 0,
                                            10000),
                     DIBS__ENTER_REFUSED);
    assert_int_equal(dibs__breaker_retry_ms(&br, soon), DIBS__BREAKER_SOON_MS);
    assert_int_equal(next_at(&br, soon), DIBS__BREAKER_REPORT);
    dibs__breaker_metered(&br, soon, soon, DIBS_OK, &one);
    assert_int_equal(dibs__breaker_next(&br, soon, &act),
                     DIBS__BREAKER_RELEASE);
    dibs__breaker_released(&br, act.permit.id, soon);
    pass = probe_at(&br, soon);
    /* After a bad one nobody asks until it has recovered. */
    br.rules.recovery_ms = 5000;
    dibs__breaker_left(&br, &pass, false, false, soon);
    dibs__breaker_released(&br, pass.permit, soon);
    assert_int_equal(dibs__breaker_retry_ms(&br, soon), 5000);
}

/* Both requests were under way; the answers came in the other order. */
static void a_permit_released_meanwhile_keeps_no_probe_waiting(void **state)
{
    dibsx_nsec now = START + DIBSX_SEC;
    dibs__breaker_pass first, second;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    br.rules.probes = br.rules.need = 2;
    first = probe_at(&br, now);
    assert_int_equal(dibs__breaker_enter(&br, now, &second), DIBS__ENTER_ASK);
    dibs__breaker_left(&br, &first, true, false, now);
    dibs__breaker_released(&br, first.permit, now);
    (void)dibs__breaker_answered(&br, &second, now, DIBS_BUSY, 0, 10000);
    assert_int_equal(dibs__breaker_retry_ms(&br, now), DIBS__BREAKER_SOON_MS);
}

/* It waits no longer than one that ends at another time. */
static void a_call_that_ends_during_a_report_is_reported_soon(void **state)
{
    const dibs__sums closed = {.version = 7,
                               .expires_ms = DIBS__BREAKER_KEEP_MS,
                               .state = "closed"};
    dibsx_nsec soon = START + DIBS__BREAKER_SOON_MS * DIBSX_MS;
    dibs__breaker_pass pass;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    br.rules.threshold = 9;
    dibs__breaker_metered(&br, START, START, DIBS_OK, &closed);
    listen_at(&br, START, 7, "closed");
    dibs__breaker_told(&br, 8, START);
    assert_int_equal(dibs__breaker_enter(&br, START, &pass), DIBS__ENTER_PASS);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_REPORT);
    dibs__breaker_left(&br, &pass, false, false, START);
    br.again = false;
    dibs__breaker_metered(&br, START, START, DIBS_OK, &closed);
    assert_int_equal(next_at(&br, START), DIBS__BREAKER_SLEEP);
    assert_int_equal(next_at(&br, soon), DIBS__BREAKER_REPORT);
}

static dibs__breaker_todo
next_after(dibs__breaker *br, const char *text, int64_t good, int64_t bad)
{
    dibs__sums sums = {.version = 7,
                       .expires_ms = DIBS__BREAKER_KEEP_MS,
                       .good = good,
                       .bad = bad,
                       .reporters = 1};

    snprintf(sums.state, sizeof(sums.state), "%s", text);
    br->ear_at = DIBSX_NEVER;
    dibs__breaker_metered(br, START, START, DIBS_OK, &sums);
    return next_at(br, START);
}

/* The rules of those that make the calls may be others. */
static void one_that_only_looks_decides_nothing(void **state)
{
    dibs__breaker_pass pass;
    dibs__breaker br;

    (void)state;
    open_machine(&br);
    assert_int_not_equal(next_after(&br, "open", 1, 0), DIBS__BREAKER_PUT);
    (void)dibs__breaker_enter(&br, START, &pass);
    assert_int_equal(next_after(&br, "open", 1, 0), DIBS__BREAKER_PUT);
    open_machine(&br);
    assert_int_not_equal(next_after(&br, "closed", 0, 1), DIBS__BREAKER_PUT);
    /* Its first call does not pass by the word alone. */
    assert_false(dibs__breaker_enter_at_once(&br, &pass.gen));
    assert_int_equal(dibs__breaker_enter(&br, START, &pass), DIBS__ENTER_PASS);
    assert_true(dibs__breaker_enter_at_once(&br, &pass.gen));
    assert_true(dibs__breaker_good_at_once(&br, br.gen, 0));
    assert_true(dibs__breaker_pending(&br, START));
    assert_int_equal(next_after(&br, "closed", 1, 1), DIBS__BREAKER_PUT);
}

/* Learns at START that it is open, and recovers so much later. */
static void learn(dibs__breaker *br, uint64_t seed, int64_t left_ms)
{
    static const dibs__breaker_rules rules = {.threshold = 1,
                                              .sampling_ms = 1000,
                                              .recovery_ms = 30000,
                                              .probe_ttl_ms = 10000,
                                              .probes = 1,
                                              .need = 1,
                                              .min_clients = 1};
    const dibs__sums sums = {.version = 7,
                             .expires_ms = left_ms + DIBS__BREAKER_KEEP_MS,
                             .state = "open"};

    dibs__breaker_init(br, &rules, true, seed);
    dibs__breaker_metered(br, START, START, DIBS_STALE, &sums);
}

static void one_that_only_looks_says_when_it_recovers(void **state)
{
    dibs__breaker_pass pass;
    bool spread = false;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        dibs__breaker br;

        learn(&br, seed, 5000);
        assert_int_equal(dibs__breaker_recover_ms(&br, START), 5000);
        (void)dibs__breaker_enter(&br, START, &pass);
        spread |= dibs__breaker_recover_ms(&br, START) > 5100;
    }
    assert_true(spread);
}

/* One that has known it before waits for a moment of its own. */
static void one_that_learns_it_after_the_recovery_asks_at_once(void **state)
{
    dibsx_nsec later = START + 5 * DIBSX_SEC;
    dibs__breaker_pass pass;
    bool refused = false;

    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        dibs__breaker br;

        learn(&br, seed, -5000);
        assert_int_equal(dibs__breaker_enter(&br, START, &pass),
                         DIBS__ENTER_ASK);
        learn(&br, seed, 5000);
        refused |=
            dibs__breaker_enter(&br, later, &pass) == DIBS__ENTER_REFUSED;
    }
    assert_true(refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_that_never_expires_is_open_for_ever),
        cmocka_unit_test(a_store_that_forbids_permits_is_not_away),
        cmocka_unit_test(without_an_answer_the_client_probes_alone),
        cmocka_unit_test(an_older_failure_does_not_hide_the_store),
        cmocka_unit_test(what_is_shown_is_believed_without_a_look),
        cmocka_unit_test(what_is_old_or_strange_is_not_believed),
        cmocka_unit_test(what_is_shown_does_not_bring_the_store_back),
        cmocka_unit_test(a_late_notice_does_not_delay_the_recovery),
        cmocka_unit_test(a_look_follows_an_ear),
        cmocka_unit_test(a_cut_during_an_ear_leads_to_another),
        cmocka_unit_test(a_notice_during_a_look_leads_to_another),
        cmocka_unit_test(a_probe_that_ends_during_a_report_is_reported_at_once),
        cmocka_unit_test(a_call_that_ends_during_a_report_is_reported_soon),
        cmocka_unit_test(the_next_probe_waits_for_no_permit_of_its_own),
        cmocka_unit_test(a_permit_released_meanwhile_keeps_no_probe_waiting),
        cmocka_unit_test(one_that_only_looks_decides_nothing),
        cmocka_unit_test(one_that_only_looks_says_when_it_recovers),
        cmocka_unit_test(one_that_learns_it_after_the_recovery_asks_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
