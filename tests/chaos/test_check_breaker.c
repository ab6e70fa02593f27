/* test_check_breaker.c - the checker finds what is wrong with breakers, and finds nothing
 * else. */
/* SPDX-License-Identifier: MIT */
#include "tale.h"

#include <dibs/types.h>

/* A call of worker 0 or 1 that passed. */
static record *called(tale *tl, uint32_t worker, bool probe, bool good,
                      int64_t from, int64_t to)
{
    tl->run.ttl_ms = 100;
    return add(tl, worker,
               (record){.op = OP_CALL,
                        .invoked_ns = from * MS,
                        .returned_ns = (from + 1) * MS,
                        .released_ns = to * MS,
                        .permits = probe,
                        .value = good});
}

static void refused(tale *tl, int64_t at)
{
    called(tl, 0, false, false, at, 0)->status = DIBS_BUSY;
}

static void probes_one_after_another_are_right(void **state)
{
    tale *tl = *state;

    for (int i = 0; i < THRESHOLD; i++)
        called(tl, 0, false, false, 100 + i, 110);
    refused(tl, 150);
    called(tl, 0, true, false, 200, 250);
    called(tl, 1, true, false, 200, 250);
    called(tl, 0, true, false, 250, 0); /* died: its permit is free later */
    called(tl, 1, true, true, 260, 300);
    called(tl, 0, true, true, 355, 360);
    called(tl, 1, true, true, 356, 360);
    /* Each is alone while the store is away. */
    fault(tl, "restart", NOBODY, 4000, 4100, LOSS_NONE);
    for (int i = 0; i < 4; i++)
        called(tl, 0, true, true, 4010, 4050);
    assert_good(tl);
}

static void too_many_probes_are_found(void **state)
{
    tale *tl = *state;

    called(tl, 0, true, true, 200, 250);
    called(tl, 1, true, true, 210, 250);
    called(tl, 1, true, true, 220, 250);
    assert_found(tl, BREAKER,
                 "VIOLATION: breaker: worker 1.1 began a probe at +0.221000 s "
                 "beside 2 others, and 2 are allowed");
}

static void a_refusal_without_a_reason_is_found(void **state)
{
    tale *tl = *state;

    for (int i = 0; i < THRESHOLD; i++)
        called(tl, 0, false, i == 0, 100 + i, 110);
    refused(tl, 150);
    assert_found(tl, BREAKER,
                 "worker 0.1 was refused at +0.151000 s, after 2 bad calls, "
                 "and 3 open it");
}

static void a_breaker_that_stays_open_is_found(void **state)
{
    tale *tl = *state;

    called(tl, 0, false, true, 100, 110);
    atomic_store(&tl->run.calm_ns, 1000 * MS);
    assert_found(tl, ALIVE, "breaker: no call passed after the last fault");
}

/* ... under that version, which is closed or open. */
static record *called_under(tale *tl, uint64_t version, uint64_t state,
                            bool good, int64_t from)
{
    record *rec = called(tl, 0, state == SEEN_OPEN, good, from, from + 10);

    rec->fence = version;
    rec->expected = state;
    return rec;
}

static void called_badly(tale *tl, uint64_t version, int count, int64_t from)
{
    for (int i = 0; i < count; i++)
        called_under(tl, version, SEEN_CLOSED, false, from);
}

static void probed_well(tale *tl, uint64_t version, int count, int64_t from)
{
    for (int i = 0; i < count; i++)
        called_under(tl, version, SEEN_OPEN, true, from + 20 * i);
}

/* Worker 1 replaces a version by one of that state, which takes 5 ms. */
static record *
changed(tale *tl, uint64_t from, uint64_t to, uint64_t state, int64_t at)
{
    return add(tl, 1,
               (record){.op = OP_CHANGE,
                        .invoked_ns = at * MS,
                        .returned_ns = (at + 5) * MS,
                        .expected = from,
                        .fence = to,
                        .value = state});
}

static void changes_that_have_a_reason_are_right(void **state)
{
    tale *tl = *state;

    called_badly(tl, 0, THRESHOLD, 100);
    changed(tl, 0, 5, SEEN_OPEN, 120);
    changed(tl, 0, 0, SEEN_OPEN, 121)->status = DIBS_STALE;
    called_under(tl, 5, SEEN_OPEN, false, 200);
    changed(tl, 5, 6, SEEN_OPEN, 220);
    probed_well(tl, 6, NEED, 300);
    changed(tl, 6, 7, SEEN_CLOSED, 400);
    /* Of two calls nobody knows what they began under. */
    called_badly(tl, 7, THRESHOLD - 2, 500);
    called_badly(tl, 0, 2, 500);
    for (unsigned i = 1; i <= 2; i++)
        tl->logs[0]->records[atomic_load(&tl->logs[0]->count) - i].expected =
            SEEN_NOTHING;
    /* It may have been made, and was: version 9. */
    changed(tl, 7, 0, SEEN_OPEN, 520)->status = DIBS_UNKNOWN;
    probed_well(tl, 9, NEED, 600);
    changed(tl, 9, 10, SEEN_CLOSED, 700);
    assert_good(tl);
}

static void a_breaker_that_opens_early_is_found(void **state)
{
    tale *tl = *state;

    called_badly(tl, 4, THRESHOLD, 50);
    called_badly(tl, 5, THRESHOLD - 1, 100);
    called_under(tl, 5, SEEN_CLOSED, true, 100);
    changed(tl, 5, 6, SEEN_OPEN, 120);
    assert_found(tl, BREAKER,
                 "VIOLATION: breaker: worker 1.1 asked for open in the place "
                 "of version 5 (closed) at +0.120000 s, after 2 bad calls, 0 "
                 "bad and 0 good probes of it; 3 bad calls open it, and 2 good "
                 "probes close it");
}

/* The last of them ended when the change was on its way. */
static void a_breaker_that_opens_before_its_reason_is_found(void **state)
{
    tale *tl = *state;

    called_badly(tl, 5, THRESHOLD - 1, 100);
    called_badly(tl, 5, 1, 111);
    changed(tl, 5, 6, SEEN_OPEN, 120);
    assert_found(tl, BREAKER, "after 2 bad calls");
}

static void bad_calls_of_an_open_breaker_do_not_open_it(void **state)
{
    tale *tl = *state;

    called_under(tl, 5, SEEN_OPEN, true, 90);
    for (int i = 0; i < THRESHOLD; i++) /* alone, without the store */
        called_under(tl, 5, SEEN_OPEN, false, 100)->permits = 0;
    changed(tl, 5, 6, SEEN_OPEN, 120);
    assert_found(tl, BREAKER, "of version 5 (open) at +0.120000 s");
}

static void bad_probes_of_another_version_do_not_open_it(void **state)
{
    tale *tl = *state;

    called_under(tl, 5, SEEN_OPEN, false, 100);
    changed(tl, 5, 6, SEEN_OPEN, 120);
    called_under(tl, 6, SEEN_OPEN, true, 200);
    changed(tl, 6, 7, SEEN_OPEN, 220);
    assert_found(tl, BREAKER, "of version 6 (open) at +0.220000 s");
}

static void a_breaker_that_closes_early_is_found(void **state)
{
    tale *tl = *state;

    probed_well(tl, 5, NEED, 100);
    probed_well(tl, 6, NEED - 1, 200);
    changed(tl, 6, 7, SEEN_CLOSED, 220);
    assert_found(tl, BREAKER,
                 "asked for closed in the place of version 6 (open) at "
                 "+0.220000 s, after 0 bad calls, 0 bad and 1 good probes");
}

static void probes_without_the_store_do_not_close_it(void **state)
{
    tale *tl = *state;

    called_under(tl, 6, SEEN_OPEN, true, 100);
    for (int i = 0; i < NEED; i++) {
        record *rec = called_under(tl, 6, SEEN_OPEN, true, 200);

        rec->permits = 0;
        rec->exclusive = true;
    }
    changed(tl, 6, 7, SEEN_CLOSED, 220);
    assert_found(tl, BREAKER, "0 bad and 1 good probes");
}

static void a_closed_breaker_that_closes_is_found(void **state)
{
    tale *tl = *state;

    probed_well(tl, 5, NEED, 100);
    changed(tl, 5, 6, SEEN_CLOSED, 150);
    changed(tl, 6, 7, SEEN_CLOSED, 200);
    assert_found(tl, BREAKER, "of version 6 (closed) at +0.200000 s");
}

static void a_version_that_falls_is_found(void **state)
{
    tale *tl = *state;

    called_badly(tl, 9, THRESHOLD, 100);
    changed(tl, 9, 8, SEEN_OPEN, 120);
    assert_found(tl, BREAKER,
                 "a version was replaced by one that is no higher: 9 by 8");
}

static void a_version_that_is_replaced_twice_is_found(void **state)
{
    tale *tl = *state;

    called_badly(tl, 5, THRESHOLD, 100);
    changed(tl, 5, 6, SEEN_OPEN, 120);
    changed(tl, 5, 7, SEEN_OPEN, 121);
    assert_found(tl, BREAKER, "a version was replaced twice: 5 by 6");
}

static void a_version_in_two_states_is_found(void **state)
{
    tale *tl = *state;

    called_badly(tl, 5, THRESHOLD, 100);
    changed(tl, 5, 6, SEEN_OPEN, 120);
    called_under(tl, 6, SEEN_CLOSED, true, 200);
    assert_found(tl, BREAKER,
                 "version 6 (closed): worker 0.1 found it in another state "
                 "than it was made at +0.201000 s");
}

static void a_client_that_goes_back_is_found(void **state)
{
    tale *tl = *state;

    called_under(tl, 6, SEEN_CLOSED, true, 100);
    called_under(tl, 5, SEEN_CLOSED, true, 200);
    assert_found(tl, BREAKER, "worker 0.1 went back to that version");
}

static void a_probe_of_a_closed_breaker_is_found(void **state)
{
    tale *tl = *state;

    called_under(tl, 6, SEEN_CLOSED, true, 100)->permits = 1;
    assert_found(tl, BREAKER, "worker 0.1 made a probe of it");
}

/* Asked for at `from`, answered 1 ms later, and given back at `to`; 0: never. */
static record *permit(tale *tl, uint32_t worker, int64_t from, int64_t to)
{
    tl->run.ttl_ms = 100;
    return add(tl, worker,
               (record){.op = OP_PERMIT,
                        .invoked_ns = from * MS,
                        .returned_ns = (from + 1) * MS,
                        .released_ns = to * MS});
}

static void no_permit(tale *tl, int64_t at)
{
    permit(tl, 0, at, 0)->status = DIBS_BUSY;
}

static void permits_in_use_are_refused(void **state)
{
    tale *tl = *state;

    permit(tl, 0, 1000, 1050);
    permit(tl, 1, 1010, 0); /* its prober died */
    no_permit(tl, 1049);
    permit(tl, 0, 1050, 1090);
    no_permit(tl, 1080);
    permit(tl, 0, 1091, 1150);
    no_permit(tl, 1100);
    /* One without an answer, and one whose prober died meanwhile. */
    permit(tl, 0, 2000, 0)->status = DIBS_UNKNOWN;
    permit(tl, 1, 2000, 0)->returned_ns = 0;
    no_permit(tl, 2090);
    /* The clock of the store goes back. */
    fault(tl, "back", NOBODY, 5000, 5100, LOSS_NONE);
    no_permit(tl, 5150);
    assert_good(tl);
}

/* Of its two permits one is lost. */
static void a_permit_that_a_dead_prober_keeps_is_found(void **state)
{
    tale *tl = *state;

    permit(tl, 1, 1000, 0);
    permit(tl, 0, 1080, 1150);
    no_permit(tl, 1104);
    assert_found(tl, BREAKER,
                 "VIOLATION: breaker: worker 0.1 was refused a permit at "
                 "+1.105000 s, when 1 of 2 could be in use");
}

static void a_permit_that_was_given_back_is_free(void **state)
{
    tale *tl = *state;

    permit(tl, 1, 1000, 1020);
    permit(tl, 0, 1000, 1050);
    no_permit(tl, 1021);
    assert_found(tl, BREAKER, "when 1 of 2 could be in use");
}

static void a_permit_that_was_refused_is_free(void **state)
{
    tale *tl = *state;

    permit(tl, 1, 1000, 0)->status = DIBS_UNAVAIL;
    permit(tl, 0, 1000, 1050);
    no_permit(tl, 1021);
    assert_found(tl, BREAKER, "when 1 of 2 could be in use");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TALE(probes_one_after_another_are_right),
        TALE(too_many_probes_are_found),
        TALE(a_refusal_without_a_reason_is_found),
        TALE(a_breaker_that_stays_open_is_found),
        TALE(changes_that_have_a_reason_are_right),
        TALE(a_breaker_that_opens_early_is_found),
        TALE(a_breaker_that_opens_before_its_reason_is_found),
        TALE(bad_calls_of_an_open_breaker_do_not_open_it),
        TALE(bad_probes_of_another_version_do_not_open_it),
        TALE(a_breaker_that_closes_early_is_found),
        TALE(probes_without_the_store_do_not_close_it),
        TALE(a_closed_breaker_that_closes_is_found),
        TALE(a_version_that_falls_is_found),
        TALE(a_version_that_is_replaced_twice_is_found),
        TALE(a_version_in_two_states_is_found),
        TALE(a_client_that_goes_back_is_found),
        TALE(a_probe_of_a_closed_breaker_is_found),
        TALE(permits_in_use_are_refused),
        TALE(a_permit_that_a_dead_prober_keeps_is_found),
        TALE(a_permit_that_was_given_back_is_free),
        TALE(a_permit_that_was_refused_is_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
