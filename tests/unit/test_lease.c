/* test_lease.c - the lease machine, rule by rule, with a clock of its own. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/slack.h"
#include "unit.h"

#include <string.h>

#define OWNER "0123456789abcdef0123456789abcdef"
#define T0    (1000 * DIBSX_SEC)
#define MS(n) ((n)*DIBSX_MS)

enum { TTL_MS = 10000, DRIFT_MS = TTL_MS / 100 + 2 };

static void begin(dibs__lease *ls, dibs__terms terms)
{
    dibs__lease_begin(ls, OWNER, &terms);
}

static dibs__lease asking_since(dibsx_nsec at)
{
    dibs__lease ls = {0};

    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS});
    dibs__lease_asked(&ls, at);
    return ls;
}

static void answer(dibs__lease *ls, dibs_status rc, uint64_t fence,
                   int64_t left_ms, bool queued, dibsx_nsec now)
{
    dibs__answer ans = {.fence = fence, .left_ms = left_ms, .queued = queued};

    dibs__lease_answered(ls, rc, &ans, now);
}

static dibs__lease held_since(dibsx_nsec at)
{
    dibs__lease ls = asking_since(at);

    answer(&ls, DIBS_OK, 7, TTL_MS, false, at + MS(1));
    return ls;
}

static dibs__lease queued_since(dibsx_nsec at, uint64_t watermark)
{
    dibs__lease ls = asking_since(at);

    answer(&ls, DIBS_BUSY, watermark, 5000, true, at + MS(1));
    return ls;
}

static void validity_counts_from_before_the_send(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0 + MS(400));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_int_equal(ls.valid_until, T0 + MS(TTL_MS - DRIFT_MS));
}

/* What a store says is left, if it says what cannot be. */
static const int64_t odd_spans[] = {INT64_MIN, -5, TTL_MS + 1,
                                    1000 * (int64_t)TTL_MS, INT64_MAX};

static void validity_is_not_beyond_what_was_asked_for(void **state)
{
    dibsx_nsec most = T0 + MS(TTL_MS - DRIFT_MS);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(odd_spans); i++) {
        dibs__lease ls = asking_since(T0);

        answer(&ls, DIBS_OK, 7, odd_spans[i], false, T0 + MS(1));
        assert_true(ls.valid_until <= most);
        assert_int_equal(dibs__lease_valid(&ls, T0 + MS(1)), odd_spans[i] > 0);
        assert_false(dibs__lease_valid(&ls, most));

        ls = held_since(T0);
        dibs__lease_renewing(&ls);
        dibs__lease_renewed(&ls, T0 + MS(5), DIBS_OK, odd_spans[i], T0 + MS(9));
        assert_in_range(ls.valid_until, most, most + MS(5));

        ls = held_since(T0);
        assert_true(dibs__lease_converting(&ls));
        dibs__lease_converted(&ls, T0 + MS(5), DIBS_OK,
                              &(dibs__answer){.fence = 8,
                                              .left_ms = odd_spans[i]},
                              T0 + MS(9));
        assert_in_range(ls.valid_until, most, most + MS(5));
    }
}

/* Nor is what was handed on, or taken over from another process. */
static void what_is_handed_on_is_not_believed_for_longer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(odd_spans); i++) {
        dibs__answer claim = {.fence = 7,
                              .left_ms = odd_spans[i],
                              .claim = true};
        dibs__lease ls = asking_since(T0);

        dibs__lease_answered(&ls, DIBS_OK, &claim, T0 + MS(1));
        assert_true(ls.valid_until <= T0 + MS(DIBS__CLAIM_MS));

        ls = (dibs__lease){0};
        begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .delay_ms = 2000});
        dibs__lease_adopted(&ls, OWNER, 7, T0, odd_spans[i], T0 + MS(1));
        assert_true(ls.valid_until <= T0 + MS(TTL_MS - DRIFT_MS));
    }
}

static void without_a_fence_nothing_is_held(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    answer(&ls, DIBS_OK, 0, TTL_MS, false, T0 + MS(1));
    assert_false(dibs__lease_valid(&ls, T0 + MS(1)));
    ls = held_since(T0);
    assert_true(dibs__lease_converting(&ls));
    dibs__lease_converted(&ls, T0 + MS(5), DIBS_OK,
                          &(dibs__answer){.fence = 0, .left_ms = TTL_MS},
                          T0 + MS(9));
    assert_int_equal(ls.fence, 7);
}

/* A claim has its own time: its first renewal is early, and would look late. */
static void slack_is_what_is_left_of_the_ttl(void **state)
{
    dibs__answer claim = {.fence = 7, .left_ms = 3000, .claim = true};
    dibs__lease ls = held_since(T0);

    (void)state;
    assert_int_equal(dibs__slack_permille(&ls, ls.valid_until - MS(TTL_MS / 4)),
                     250);
    assert_int_equal(dibs__slack_permille(&ls, ls.valid_until), -1);
    assert_int_equal(dibs__slack_permille(&ls, T0 - MS(TTL_MS)), 1000);
    ls = asking_since(T0);
    dibs__lease_answered(&ls, DIBS_OK, &claim, T0 + MS(1));
    assert_int_equal(dibs__slack_permille(&ls, T0 + MS(2)), -1);
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3), DIBS_OK, TTL_MS, T0 + MS(4));
    assert_true(dibs__slack_permille(&ls, T0 + MS(4)) > 900);
}

static void a_notice_may_need_to_be_confirmed(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .confirm = true});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_BUSY, 50, 5000, true, T0 + MS(1));
    assert_true(dibs__lease_noticed(&ls, 51, T0 + MS(2)));
    assert_int_equal(ls.state, DIBS__LEASE_QUEUED);
    /* The ask that follows is what the notice was for: it is no reason for one
     * more, whatever the store says of its fences. */
    dibs__lease_asked(&ls, T0 + MS(3));
    answer(&ls, DIBS_BUSY, 40, 5000, true, T0 + MS(4));
    assert_int_equal(ls.state, DIBS__LEASE_QUEUED);
    assert_true(ls.noticed_fence <= ls.watermark);
    dibs__lease_asked(&ls, T0 + MS(5));
    answer(&ls, DIBS_OK, 52, TTL_MS, false, T0 + MS(6));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
}

static void an_answer_that_comes_too_late_is_not_believed(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0 + MS(TTL_MS));
    assert_int_equal(ls.state, DIBS__LEASE_ASKING);
    assert_false(dibs__lease_valid(&ls, T0 + MS(TTL_MS)));
}

/* Rule 1: a doorbell counts only above the watermark of the queued answer. */
static void rule_1_a_stale_notice_is_ignored(void **state)
{
    dibs__lease ls = queued_since(T0, 50);

    (void)state;
    assert_false(dibs__lease_noticed(&ls, 50, T0 + MS(2)));
    assert_false(dibs__lease_noticed(&ls, 49, T0 + MS(2)));
    assert_int_equal(ls.state, DIBS__LEASE_QUEUED);
    assert_true(dibs__lease_noticed(&ls, 51, T0 + MS(3)));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_int_equal(ls.fence, 51);
}

static void a_notice_counts_from_the_ask_that_was_answered(void **state)
{
    dibs__lease ls = queued_since(T0, 50);
    int64_t drift_ms = DIBS__CLAIM_MS / 100 + 2;

    (void)state;
    assert_true(dibs__lease_noticed(&ls, 60, T0 + MS(900)));
    assert_int_equal(ls.valid_until, T0 + MS(DIBS__CLAIM_MS - drift_ms));
    assert_int_equal(ls.renew_at,
                     T0 + MS(900) + MS(DIBS__CLAIM_MS - drift_ms - 900) / 3);
    assert_int_equal(dibs__lease_due(&ls, ls.renew_at), DIBS__LEASE_RENEW);
}

static dibs__lease claimed(dibs__terms terms, int64_t left_ms)
{
    dibs__lease ls = {0};
    dibs__answer claim = {.fence = 9, .left_ms = left_ms, .claim = true};

    begin(&ls, terms);
    dibs__lease_asked(&ls, T0);
    dibs__lease_answered(&ls, DIBS_OK, &claim, T0);
    return ls;
}

/* A lease that is released before that has cost no renewal. */
static void a_claim_is_renewed_after_a_third_of_it(void **state)
{
    dibs__lease ls = claimed((dibs__terms){.ttl_ms = TTL_MS}, DIBS__CLAIM_MS);

    (void)state;
    assert_int_equal(ls.renew_at, T0 + (ls.valid_until - T0) / 3);
    assert_int_equal(dibs__lease_due(&ls, ls.renew_at - 1),
                     DIBS__LEASE_NOTHING);
    assert_int_equal(dibs__lease_due(&ls, ls.renew_at), DIBS__LEASE_RENEW);

    /* As often as the program wants renewals. */
    ls = claimed((dibs__terms){.ttl_ms = TTL_MS, .renew_every_ms = 100},
                 DIBS__CLAIM_MS);
    assert_int_equal(ls.renew_at, T0 + MS(100));

    /* At once, if little is left, or if a sticky holder must learn who waits. */
    ls = claimed((dibs__terms){.ttl_ms = TTL_MS}, DIBS__CLAIM_MS / 2);
    assert_int_equal(ls.renew_at, T0);
    ls = claimed((dibs__terms){.ttl_ms = TTL_MS, .prompt = true},
                 DIBS__CLAIM_MS);
    assert_int_equal(ls.renew_at, T0);
}

static void a_notice_with_little_left_is_confirmed_first(void **state)
{
    dibs__lease ls = queued_since(T0, 50);

    (void)state;
    assert_true(dibs__lease_noticed(&ls, 60, T0 + MS(2600)));
    assert_int_equal(ls.state, DIBS__LEASE_QUEUED);
}

/* Rule 2: only an ask whose queued answer has arrived counts. */
static void rule_2_a_notice_before_the_answer_waits_for_it(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    assert_false(dibs__lease_noticed(&ls, 60, T0 + MS(1)));
    assert_int_equal(ls.state, DIBS__LEASE_ASKING);
    answer(&ls, DIBS_BUSY, 59, 100, true, T0 + MS(2));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_int_equal(ls.fence, 60);
}

static void rule_2_an_early_notice_below_the_watermark_is_dropped(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    assert_false(dibs__lease_noticed(&ls, 60, T0 + MS(1)));
    answer(&ls, DIBS_BUSY, 60, 100, true, T0 + MS(2));
    assert_int_equal(ls.state, DIBS__LEASE_QUEUED);
}

/* Rule 3: leaving with something unanswered asks for a tombstone. */
static void rule_3_leaving_unanswered_sets_a_tombstone(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    assert_true(dibs__lease_leave(&ls));

    ls = asking_since(T0);
    answer(&ls, DIBS_UNKNOWN, 0, 0, false, T0 + MS(500));
    dibs__lease_asked(&ls, T0 + MS(500));
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0 + MS(501));
    assert_true(dibs__lease_leave(&ls));

    ls = held_since(T0);
    dibs__lease_renewing(&ls);
    assert_true(dibs__lease_leave(&ls));
}

static void rule_3_the_common_release_pays_nothing(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    assert_false(dibs__lease_leave(&ls));

    ls = asking_since(T0);
    answer(&ls, DIBS_UNAVAIL, 0, 0, false, T0 + MS(1));
    assert_false(dibs__lease_leave(&ls));
}

/* Rule 4: "already yours" counts its remaining time from that request. */
static void rule_4_already_yours_counts_what_is_left(void **state)
{
    dibs__lease ls = asking_since(T0);

    (void)state;
    answer(&ls, DIBS_UNKNOWN, 0, 0, false, T0 + MS(400));
    dibs__lease_asked(&ls, T0 + MS(500));
    answer(&ls, DIBS_OK, 9, 1000, false, T0 + MS(501));
    assert_int_equal(ls.valid_until, T0 + MS(500 + 1000 - 12));
}

/* Rule 5 on this side: validity never moves back. */
static void rule_5_a_renewal_never_shortens(void **state)
{
    dibs__lease ls = held_since(T0);
    dibsx_nsec before = ls.valid_until;

    (void)state;
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(10), DIBS_OK, 5, T0 + MS(11));
    assert_int_equal(ls.valid_until, before);
}

/* Rule 6: past its validity a lease is lost for good. */
static void rule_6_no_late_answer_revives(void **state)
{
    dibs__lease ls = held_since(T0);
    dibsx_nsec late = ls.valid_until;

    (void)state;
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(9000), DIBS_OK, TTL_MS, late);
    assert_int_equal(ls.state, DIBS__LEASE_LOST);
    dibs__lease_renewed(&ls, late, DIBS_OK, TTL_MS, late + 1);
    assert_int_equal(ls.state, DIBS__LEASE_LOST);
    assert_false(dibs__lease_valid(&ls, T0));
}

static void rule_6_a_look_is_enough_to_lose(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    assert_true(dibs__lease_valid(&ls, ls.valid_until - 1));
    assert_false(dibs__lease_valid(&ls, ls.valid_until));
    assert_int_equal(dibs__lease_due(&ls, ls.valid_until),
                     DIBS__LEASE_ANNOUNCE);
    assert_int_equal(dibs__lease_due(&ls, ls.valid_until), DIBS__LEASE_NOTHING);
    assert_int_equal(dibs__lease_next(&ls), DIBSX_NEVER);
}

/* Rule 7: belief ends before anything is sent; nothing renews afterwards. */
static void rule_7_nothing_renews_after_leaving(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    dibs__lease_renewing(&ls);
    (void)dibs__lease_leave(&ls);
    assert_false(dibs__lease_valid(&ls, T0 + MS(2)));
    assert_int_equal(ls.fence, 0);
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(9000)), DIBS__LEASE_NOTHING);
    dibs__lease_renewed(&ls, T0 + MS(1), DIBS_OK, TTL_MS, T0 + MS(3));
    assert_int_equal(ls.state, DIBS__LEASE_FREE);
}

static void renews_at_a_third_of_the_ttl(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    assert_int_equal(dibs__lease_next(&ls), T0 + MS(1 + TTL_MS / 3));
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(100)), DIBS__LEASE_NOTHING);
    assert_int_equal(dibs__lease_due(&ls, dibs__lease_next(&ls)),
                     DIBS__LEASE_RENEW);
    dibs__lease_renewing(&ls);
    assert_int_equal(dibs__lease_next(&ls), ls.valid_until);
    dibs__lease_renewed(&ls, T0 + MS(3334), DIBS_OK, TTL_MS, T0 + MS(3335));
    assert_int_equal(ls.valid_until, T0 + MS(3334 + TTL_MS - DRIFT_MS));
    assert_int_equal(dibs__lease_next(&ls), T0 + MS(3334 + TTL_MS / 3));
}

/* An ask that waited for a connection is answered late. */
static void a_late_grant_is_renewed_in_time(void **state)
{
    dibs__lease ls = asking_since(T0);
    dibsx_nsec now = T0 + MS(TTL_MS * 3 / 4);

    (void)state;
    answer(&ls, DIBS_OK, 7, TTL_MS, false, now);
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_in_range(dibs__lease_next(&ls), now,
                    ls.valid_until - (ls.valid_until - now) / 2);
    assert_int_equal(dibs__lease_due(&ls, dibs__lease_next(&ls)),
                     DIBS__LEASE_RENEW);

    ls = (dibs__lease){0};
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS});
    dibs__lease_adopted(&ls, OWNER, 7, T0, TTL_MS / 4, T0 + MS(1));
    assert_int_equal(dibs__lease_due(&ls, dibs__lease_next(&ls)),
                     DIBS__LEASE_RENEW);
}

static void renews_as_often_as_asked_but_never_later(void **state)
{
    static const struct {
        int64_t every_ms, hold_max_ms, after_ms;
    } cases[] = {
        {0, 0, TTL_MS / 3},          {1000, 0, 1000},
        {TTL_MS / 3, 0, TTL_MS / 3}, {TTL_MS / 2, 0, TTL_MS / 3},
        {1000, 1500, 500}, /* which is the ttl then */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        dibs__lease ls = {0};

        begin(&ls, (dibs__terms){.ttl_ms = TTL_MS,
                                 .hold_max_ms = cases[i].hold_max_ms,
                                 .renew_every_ms = cases[i].every_ms});
        dibs__lease_asked(&ls, T0);
        answer(&ls, DIBS_OK, 7, TTL_MS, false, T0 + MS(1));
        assert_int_equal(dibs__lease_next(&ls), T0 + MS(1 + cases[i].after_ms));
        dibs__lease_renewing(&ls);
        dibs__lease_renewed(&ls, T0 + MS(400), DIBS_OK, TTL_MS, T0 + MS(401));
        if (cases[i].hold_max_ms == 0)
            assert_int_equal(dibs__lease_next(&ls),
                             T0 + MS(400 + cases[i].after_ms));
    }
}

static void a_failed_renewal_makes_suspect_and_is_retried(void **state)
{
    dibs__lease ls = held_since(T0);
    dibsx_nsec before = ls.valid_until;

    (void)state;
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3334), DIBS_UNAVAIL, 0, T0 + MS(3335));
    assert_int_equal(ls.state, DIBS__LEASE_SUSPECT);
    assert_int_equal(ls.valid_until, before);
    assert_int_equal(dibs__lease_next(&ls), T0 + MS(3335 + 250));
    assert_false(ls.unanswered);
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3600), DIBS_UNKNOWN, 0, T0 + MS(3601));
    assert_true(ls.unanswered);
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3900), DIBS_OK, TTL_MS, T0 + MS(3901));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
}

static void a_refused_renewal_is_a_loss_at_once(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3334), DIBS_LOST, 0, T0 + MS(3335));
    assert_int_equal(ls.state, DIBS__LEASE_LOST);
    assert_int_equal(dibs__lease_next(&ls), 0);
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(3335)), DIBS__LEASE_ANNOUNCE);
}

static void a_hint_of_a_break_brings_the_renewal_forward(void **state)
{
    dibs__lease ls = held_since(T0);

    (void)state;
    dibs__lease_doubt(&ls, T0 + MS(5));
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(5)), DIBS__LEASE_RENEW);
}

static void hold_max_bounds_the_lease(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .hold_max_ms = 15000});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0);
    assert_int_equal(dibs__lease_renew_ms(&ls, T0 + MS(3000)), TTL_MS);
    assert_int_equal(dibs__lease_renew_ms(&ls, T0 + MS(9000)), 6000);
    ls.renew_at = T0 + MS(15000);
    assert_int_equal(dibs__lease_next(&ls), ls.valid_until);

    (void)dibs__lease_leave(&ls);
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .hold_max_ms = 2000});
    assert_int_equal(ls.terms.ttl_ms, 2000);
}

/* Also where the sum with the clock, or the number of nanoseconds, would not fit. */
static void a_hold_max_without_end_is_no_bound(void **state)
{
    static const int64_t spans[] = {INT64_MAX / DIBSX_MS,
                                    INT64_MAX / DIBSX_MS + 1, INT64_MAX};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(spans); i++) {
        dibs__lease ls = {0};

        begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .hold_max_ms = spans[i]});
        dibs__lease_asked(&ls, T0);
        answer(&ls, DIBS_OK, 7, TTL_MS, false, T0);
        assert_int_equal(dibs__lease_next(&ls), T0 + MS(TTL_MS / 3));
        assert_int_equal(dibs__lease_due(&ls, T0 + MS(TTL_MS / 3)),
                         DIBS__LEASE_RENEW);
        assert_int_equal(dibs__lease_renew_ms(&ls, T0 + MS(3000)), TTL_MS);
    }
}

static void the_lock_delay_is_asked_for_and_not_believed(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .delay_ms = 4000});
    assert_int_equal(dibs__lease_ask_ms(&ls), TTL_MS + 4000);
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, TTL_MS + 4000, false, T0);
    assert_true(ls.valid_until <= T0 + MS(TTL_MS - DRIFT_MS));
    assert_true(ls.valid_until > T0 + MS(TTL_MS - 2 * DRIFT_MS));
    assert_int_equal(dibs__lease_renew_ms(&ls, T0), TTL_MS + 4000);
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0 + MS(3000), DIBS_OK, TTL_MS + 4000,
                        T0 + MS(3001));
    assert_true(ls.valid_until <= T0 + MS(3000 + TTL_MS - DRIFT_MS));
}

static void without_a_tick_nothing_is_renewed(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .progress_ms = 3000});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0);
    assert_int_equal(dibs__lease_next(&ls), ls.valid_until);
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(9000)), DIBS__LEASE_NOTHING);
    dibs__lease_ticked(&ls, T0 + MS(9000));
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(9000)), DIBS__LEASE_RENEW);
    (void)dibs__lease_leave(&ls);

    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .progress_ms = 3000});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, TTL_MS, false, T0);
    assert_int_equal(dibs__lease_due(&ls, ls.valid_until),
                     DIBS__LEASE_ANNOUNCE);
}

static void a_conversion_waits_for_the_renewal_under_way(void **state)
{
    dibs__lease ls = held_since(T0);
    dibs__answer ans = {.fence = 9, .left_ms = TTL_MS};

    (void)state;
    dibs__lease_renewing(&ls);
    assert_false(dibs__lease_converting(&ls));
    dibs__lease_renewed(&ls, T0 + MS(3), DIBS_OK, TTL_MS, T0 + MS(4));
    assert_true(dibs__lease_converting(&ls));
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(9000)), DIBS__LEASE_NOTHING);
    dibs__lease_converted(&ls, T0 + MS(9000), DIBS_OK, &ans, T0 + MS(9001));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_int_equal(ls.fence, 9);
    assert_int_equal(ls.valid_until, T0 + MS(9000 + TTL_MS - DRIFT_MS));
}

/* Whatever the lease has become, the delay is for others to wait out. */
static void after_a_conversion_the_lock_delay_is_not_believed(void **state)
{
    const int64_t left_ms = TTL_MS + 4000;
    dibs__answer ans = {.fence = 9, .left_ms = left_ms};
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .delay_ms = 4000});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, left_ms, false, T0);
    assert_true(dibs__lease_converting(&ls));
    dibs__lease_converted(&ls, T0 + MS(3000), DIBS_OK, &ans, T0 + MS(3001));
    assert_int_equal(ls.fence, 9);
    assert_true(ls.valid_until > T0 + MS(TTL_MS));
    assert_true(ls.valid_until <= T0 + MS(3000 + TTL_MS - DRIFT_MS));
}

static void adopting_does_not_believe_in_the_lock_delay(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .delay_ms = 4000});
    dibs__lease_adopted(&ls, OWNER, 7, T0, TTL_MS + 4000, T0 + MS(1));
    assert_true(ls.valid_until <= T0 + MS(TTL_MS - DRIFT_MS));
    assert_true(ls.valid_until > T0 + MS(TTL_MS - 2 * DRIFT_MS));
}

static void a_conversion_that_fails_leaves_the_lease_as_it_was(void **state)
{
    static const dibs_status fails[] = {DIBS_BUSY, DIBS_UNAVAIL, DIBS_UNKNOWN};

    (void)state;
    for (size_t i = 0; i < sizeof(fails) / sizeof(*fails); i++) {
        dibs__lease ls = held_since(T0);
        dibs__answer ans = {.fence = 9, .left_ms = TTL_MS};

        assert_true(dibs__lease_converting(&ls));
        dibs__lease_converted(&ls, T0 + MS(5), fails[i], &ans, T0 + MS(6));
        assert_int_equal(ls.state, DIBS__LEASE_HELD);
        assert_int_equal(ls.fence, 7);
        assert_int_equal(ls.valid_until, T0 + MS(TTL_MS - DRIFT_MS));
        assert_int_equal(dibs__lease_leave(&ls), fails[i] == DIBS_UNKNOWN);
    }
}

static void a_conversion_answered_too_late_finds_it_lost(void **state)
{
    dibs__lease ls = held_since(T0);
    dibs__answer ans = {.fence = 9, .left_ms = TTL_MS};

    (void)state;
    assert_true(dibs__lease_converting(&ls));
    dibs__lease_converted(&ls, T0 + MS(5), DIBS_OK, &ans, T0 + MS(TTL_MS));
    assert_int_equal(ls.state, DIBS__LEASE_LOST);
    assert_int_equal(ls.fence, 7);

    ls = held_since(T0);
    assert_true(dibs__lease_converting(&ls));
    dibs__lease_converted(&ls, T0 + MS(5), DIBS_LOST, &ans, T0 + MS(6));
    assert_int_equal(ls.state, DIBS__LEASE_LOST);
}

static void by_hand_only_a_claim_is_renewed(void **state)
{
    dibs__lease ls = {0};
    dibs__answer claim = {.fence = 9, .left_ms = 3000, .claim = true};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS, .manual = true});
    dibs__lease_asked(&ls, T0);
    dibs__lease_answered(&ls, DIBS_OK, &claim, T0 + 1);
    assert_int_equal(dibs__lease_due(&ls, ls.renew_at), DIBS__LEASE_RENEW);
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, ls.renew_at + 1, DIBS_OK, TTL_MS, ls.renew_at + 2);
    assert_int_equal(dibs__lease_next(&ls), ls.valid_until);
    assert_int_equal(dibs__lease_due(&ls, T0 + MS(9000)), DIBS__LEASE_NOTHING);
}

/* The renewal of a lease of ten seconds is due after 3,333 ms; an eighth of that is
 * 416 ms. */
static void a_renewal_that_is_due_soon_goes_along(void **state)
{
    dibs__lease ls = held_since(T0);
    dibsx_nsec soon_at = ls.renew_at - MS(416);

    (void)state;
    assert_false(dibs__lease_due_soon(&ls, soon_at - MS(1)));
    assert_true(dibs__lease_due_soon(&ls, soon_at));
    assert_true(dibs__lease_due_soon(&ls, ls.renew_at));
    dibs__lease_renewing(&ls);
    assert_false(dibs__lease_due_soon(&ls, soon_at));
    dibs__lease_renewed(&ls, soon_at, DIBS_OK, TTL_MS, soon_at + MS(1));
    assert_int_equal(ls.valid_until, soon_at + MS(TTL_MS - DRIFT_MS));
    assert_int_equal(ls.renew_at, soon_at + MS(TTL_MS / 3));

    ls = (dibs__lease){0};
    begin(&ls, (dibs__terms){.ttl_ms = 3600 * 1000});
    dibs__lease_asked(&ls, T0);
    answer(&ls, DIBS_OK, 7, 3600 * 1000, false, T0);
    assert_false(dibs__lease_due_soon(&ls, ls.renew_at - MS(501)));
    assert_true(dibs__lease_due_soon(&ls, ls.renew_at - MS(500)));
}

static bool goes_along(dibs__lease *ls)
{
    return dibs__lease_due_soon(ls, ls->renew_at - 1);
}

/* Neither what would not be renewed at its time, nor a retry. */
static void some_renewals_do_not_go_along(void **state)
{
    dibs__lease ls = held_since(T0), was = ls;

    (void)state;
    assert_true(goes_along(&ls));
    ls.hold_until = ls.renew_at;
    assert_false(goes_along(&ls));
    ls = was;
    ls.tick_until = ls.renew_at;
    assert_false(goes_along(&ls));
    ls = was;
    assert_true(dibs__lease_converting(&ls));
    assert_false(goes_along(&ls));
    ls = was;
    ls.renew_at = DIBSX_NEVER; /* renewed by hand */
    assert_false(goes_along(&ls));
    ls = was;
    dibs__lease_renewing(&ls);
    dibs__lease_renewed(&ls, T0, DIBS_UNAVAIL, 0, T0 + MS(2));
    assert_false(goes_along(&ls));
    ls = was;
    assert_false(dibs__lease_due_soon(&ls, ls.valid_until));
    (void)dibs__lease_leave(&ls);
    assert_false(goes_along(&ls));
}

static void refusals_end_the_asking(void **state)
{
    static const dibs_status ends[] = {DIBS_BUSY, DIBS_LOST, DIBS_MISMATCH,
                                       DIBS_DENIED, DIBS_NOMEM};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        dibs__lease ls = asking_since(T0);
        answer(&ls, ends[i], 0, 0, false, T0 + MS(1));
        assert_int_equal(ls.state, DIBS__LEASE_FREE);
        assert_int_equal(dibs__lease_next(&ls), DIBSX_NEVER);
    }
}

static void adopting_counts_from_its_renewal(void **state)
{
    dibs__lease ls = {0};

    (void)state;
    begin(&ls, (dibs__terms){.ttl_ms = TTL_MS});
    dibs__lease_adopted(&ls, OWNER, 12, T0, TTL_MS, T0 + MS(3));
    assert_int_equal(ls.state, DIBS__LEASE_HELD);
    assert_int_equal(ls.fence, 12);
    assert_int_equal(ls.valid_until, T0 + MS(TTL_MS - DRIFT_MS));
}

static void notices_for_nobody_change_nothing(void **state)
{
    dibs__lease ls = held_since(T0);
    dibs__lease free_one = {0};

    (void)state;
    assert_false(dibs__lease_noticed(&ls, 99, T0 + MS(2)));
    assert_int_equal(ls.fence, 7);
    assert_false(dibs__lease_noticed(&free_one, 99, T0));
    dibs__lease_doubt(&free_one, T0);
    assert_int_equal(dibs__lease_due(&free_one, T0), DIBS__LEASE_NOTHING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validity_counts_from_before_the_send),
        cmocka_unit_test(validity_is_not_beyond_what_was_asked_for),
        cmocka_unit_test(what_is_handed_on_is_not_believed_for_longer),
        cmocka_unit_test(without_a_fence_nothing_is_held),
        cmocka_unit_test(a_notice_may_need_to_be_confirmed),
        cmocka_unit_test(an_answer_that_comes_too_late_is_not_believed),
        cmocka_unit_test(rule_1_a_stale_notice_is_ignored),
        cmocka_unit_test(a_notice_counts_from_the_ask_that_was_answered),
        cmocka_unit_test(a_claim_is_renewed_after_a_third_of_it),
        cmocka_unit_test(a_notice_with_little_left_is_confirmed_first),
        cmocka_unit_test(rule_2_a_notice_before_the_answer_waits_for_it),
        cmocka_unit_test(rule_2_an_early_notice_below_the_watermark_is_dropped),
        cmocka_unit_test(rule_3_leaving_unanswered_sets_a_tombstone),
        cmocka_unit_test(rule_3_the_common_release_pays_nothing),
        cmocka_unit_test(rule_4_already_yours_counts_what_is_left),
        cmocka_unit_test(rule_5_a_renewal_never_shortens),
        cmocka_unit_test(rule_6_no_late_answer_revives),
        cmocka_unit_test(rule_6_a_look_is_enough_to_lose),
        cmocka_unit_test(rule_7_nothing_renews_after_leaving),
        cmocka_unit_test(renews_at_a_third_of_the_ttl),
        cmocka_unit_test(a_late_grant_is_renewed_in_time),
        cmocka_unit_test(renews_as_often_as_asked_but_never_later),
        cmocka_unit_test(a_failed_renewal_makes_suspect_and_is_retried),
        cmocka_unit_test(a_refused_renewal_is_a_loss_at_once),
        cmocka_unit_test(a_hint_of_a_break_brings_the_renewal_forward),
        cmocka_unit_test(hold_max_bounds_the_lease),
        cmocka_unit_test(a_hold_max_without_end_is_no_bound),
        cmocka_unit_test(the_lock_delay_is_asked_for_and_not_believed),
        cmocka_unit_test(without_a_tick_nothing_is_renewed),
        cmocka_unit_test(a_conversion_waits_for_the_renewal_under_way),
        cmocka_unit_test(after_a_conversion_the_lock_delay_is_not_believed),
        cmocka_unit_test(adopting_does_not_believe_in_the_lock_delay),
        cmocka_unit_test(a_conversion_that_fails_leaves_the_lease_as_it_was),
        cmocka_unit_test(a_conversion_answered_too_late_finds_it_lost),
        cmocka_unit_test(by_hand_only_a_claim_is_renewed),
        cmocka_unit_test(a_renewal_that_is_due_soon_goes_along),
        cmocka_unit_test(some_renewals_do_not_go_along),
        cmocka_unit_test(refusals_end_the_asking),
        cmocka_unit_test(adopting_counts_from_its_renewal),
        cmocka_unit_test(slack_is_what_is_left_of_the_ttl),
        cmocka_unit_test(notices_for_nobody_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
