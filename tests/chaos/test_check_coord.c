/* test_check_coord.c - the checker finds what is wrong with elections, latches,
 * limits and barriers, and finds nothing else. */
/* SPDX-License-Identifier: MIT */
#include "tale.h"

#include <dibs/elect.h>
#include <string.h>

/* ---- the election */

static void handed(tale *tl, uint32_t worker, uint64_t term, uint64_t how,
                   int64_t from, int64_t to)
{
    add(tl, worker,
        (record){.op = OP_HAND,
                 .invoked_ns = from * MS,
                 .returned_ns = to * MS,
                 .fence = term,
                 .value = how});
}

/* A term, gained and looked at from `from` on, and lost at `to`. */
static record *
term_of(tale *tl, uint32_t worker, uint64_t term, int64_t from, int64_t to)
{
    tl->run.stop_ms = 20;
    tl->run.workers = 2;
    return add(tl, worker,
               (record){.op = OP_LEAD,
                        .invoked_ns = from * MS,
                        .from_ns = from * MS,
                        .looked_ns = to * MS,
                        .told_ns = to * MS,
                        .missed_ns = to * MS,
                        .released_ns = to * MS,
                        .fence = term,
                        .value = 1,
                        .expected = 1,
                        .status = DIBS_LOST_RESIGNED});
}

/* ... which its program gave up. */
static record *
led(tale *tl, uint32_t worker, uint64_t term, int64_t from, int64_t to)
{
    handed(tl, worker, term, HAND_RESIGN, from, to + 1);
    return term_of(tl, worker, term, from, to);
}

static void
led_majority(tale *tl, uint32_t worker, uint64_t term, int64_t from, int64_t to)
{
    record *rec = led(tl, worker, term, from, to);

    rec[-1].key = rec->key = 1;
}

static void leaders_in_turn_are_right(void **state)
{
    tale *tl = *state;
    record *rec;

    led(tl, 0, 7, 100, 200);
    led(tl, 1, 8, 200, 300);
    /* It was killed, and stop_ms later another gained. */
    rec = led(tl, 0, 9, 300, 400);
    rec->told_ns = rec->missed_ns = rec->released_ns = 0;
    rec->expected = 0;
    led(tl, 1, 10, 420, 500);
    /* It was told, and never looked in time to lead. */
    rec = led(tl, 1, 12, 600, 610);
    rec->from_ns = rec->looked_ns = 0;
    assert_good(tl);
}

static void two_leaders_are_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200);
    led(tl, 1, 8, 190, 300);
    assert_found(tl, EXCLUSION,
                 "VIOLATION: exclusion: election: two led at once: worker 0.1, "
                 "term 7, led from +0.100000 s and could until +0.200000 s; "
                 "worker 1.1, term 8, led from +0.190000 s");
}

/* What counts its members is promised more. */
static void two_leaders_with_a_majority_are_found(void **state)
{
    tale *tl = *state;

    snprintf(tl->run.topology, sizeof(tl->run.topology), "sentinel-async");
    fault(tl, "cut", NOBODY, 50, 60, LOSS_SPLIT);
    led(tl, 0, 7, 100, 200);
    led(tl, 1, 8, 150, 300);
    led_majority(tl, 0, 9, 400, 500);
    led_majority(tl, 1, 10, 490, 600);
    judge(tl);
    assert_int_equal(tl->hs.breaches[EXCLUSION], 1);
    assert_int_equal(tl->hs.breaches[MAJORITY], 1);
    assert_int_equal(history_violations(&tl->hs), 1);
    assert_int_equal(history_counted(&tl->hs), 1);
}

static void a_lead_given_back_before_its_work_stopped_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200)->released_ns = 215 * MS;
    led(tl, 1, 8, 210, 300);
    assert_found(tl, EXCLUSION, "and could until +0.215000 s");
}

static void a_leader_is_announced_lost_in_time(void **state)
{
    tale *tl = *state;

    /* Another gains within stop_ms of a look, and the first was not told. */
    led(tl, 0, 7, 100, 200)->released_ns = 0;
    led(tl, 1, 8, 219, 300);
    assert_found(tl, EXCLUSION, "and could until +0.220000 s");
}

static void a_term_that_falls_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 8, 100, 200);
    led(tl, 1, 7, 300, 400);
    assert_found(tl, FENCE, "election: a later term is lower");
}

static void a_term_that_repeats_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200);
    led(tl, 1, 7, 300, 400);
    assert_found(tl, FENCE, "election: a term was given twice");
}

static void who_lost_what_it_never_gained_is_found(void **state)
{
    tale *tl = *state;
    record *rec = led(tl, 0, 7, 100, 200);

    rec->from_ns = rec->looked_ns = 0;
    rec->value = 0;
    assert_found(tl, TOLD,
                 "election: worker 0.1, term 7 of +0.100000 s: it lost a term "
                 "that it never gained");
}

static void who_gained_without_losing_is_found(void **state)
{
    tale *tl = *state;
    record *rec = led(tl, 0, 7, 100, 200);

    rec->told_ns = rec->missed_ns = rec->released_ns = 0;
    rec->expected = 0;
    led(tl, 0, 8, 300, 400);
    assert_found(tl, TOLD, "was never told that it had lost");
}

static void who_is_told_twice_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200)->expected = 2;
    assert_found(tl, TOLD, "was told twice");
}

static void who_leads_after_it_was_told_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200)->told_ns = 190 * MS;
    assert_found(tl, TOLD, "found itself leading after it was told");
}

static void who_leads_when_it_is_told_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200)->missed_ns = 0;
    assert_found(tl, TOLD, "found itself leading when it was told");
}

static void who_slept_and_led_on_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200);
    fault(tl, SUSPEND, 0, 120, 130, LOSS_NONE);
    assert_found(tl, TOLD, "led on after it had slept");
}

static void an_election_that_nobody_wins_is_found(void **state)
{
    tale *tl = *state;

    led(tl, 0, 7, 100, 200);
    atomic_store(&tl->run.calm_ns, 1000 * MS);
    assert_found(tl, ALIVE, "nobody led after the last fault");
}

/* After the last fault at one second, with a ttl of 500 ms; it ended at ten. */
static void calm_election(tale *tl)
{
    tl->run.ttl_ms = 500;
    atomic_store(&tl->run.calm_ns, 1000 * MS);
    atomic_store(&tl->run.ended_ns, 10000 * MS);
}

/* A worker asks for a permit, and the store takes so long. */
static void step(tale *tl, int64_t from, int64_t span)
{
    add(tl, 0,
        (record){.op = OP_PERMIT,
                 .invoked_ns = from * MS,
                 .returned_ns = (from + span) * MS});
}

static void leaders_after_the_last_fault_are_in_time(void **state)
{
    tale *tl = *state;
    record *rec;

    calm_election(tl);
    led(tl, 0, 7, 100, 900);
    led(tl, 1, 8, 1000 + 2500, 4000);
    /* A process was not run for a while. */
    add(tl, 1,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 4500 * MS,
                 .returned_ns = 5500 * MS});
    led(tl, 0, 9, 4000 + 3500, 7600);
    /* It leads to the end, and seldom looks. */
    rec = led(tl, 1, 10, 7700, 7710);
    rec->told_ns = rec->missed_ns = rec->released_ns = 0;
    rec->expected = 0;
    assert_good(tl);
}

static void a_leader_that_comes_late_is_found(void **state)
{
    tale *tl = *state;

    calm_election(tl);
    led(tl, 0, 7, 100, 900);
    led(tl, 1, 8, 1000 + 2501, 9000);
    assert_found(tl, ALIVE,
                 "VIOLATION: alive: election: nobody led for 2.501 s from "
                 "+1.000000 s on, after the last fault; 2.500 s are allowed");
    assert_int_equal(tl->hs.late, 1);
}

/* Of ten steps each may have taken as long as the longest of others. */
static void a_slow_store_has_a_leader_later(void **state)
{
    tale *tl = *state;

    calm_election(tl);
    led(tl, 0, 7, 100, 900);
    step(tl, 1500, 120);
    led(tl, 1, 8, 1000 + 2500 + 1201, 9000);
    assert_found(tl, ALIVE,
                 "nobody led for 3.701 s from +1.000000 s on, after "
                 "the last fault; 3.700 s are allowed");
}

/* One that died before may have been granted the lease. */
static void a_lead_of_the_dead_takes_longer(void **state)
{
    tale *tl = *state;

    calm_election(tl);
    led(tl, 0, 7, 100, 1500);
    fault(tl, "kill", 1, 600, 601, LOSS_NONE);
    led(tl, 1, 8, 1500 + 5500, 9000);
    assert_good(tl);
}

static void a_lead_that_ends_for_good_is_found(void **state)
{
    tale *tl = *state;

    calm_election(tl);
    led(tl, 0, 7, 100, 7400);
    assert_found(tl, ALIVE, "nobody led for 2.600 s from +7.400000 s on");
}

/* Members count after their ttl, and two heartbeats. */
static void a_late_majority_is_found(void **state)
{
    tale *tl = *state;

    calm_election(tl);
    tl->run.ttl_ms = 300;
    led(tl, 0, 7, 100, 9900);
    led_majority(tl, 0, 8, 1000 + 2800, 3900);
    led_majority(tl, 1, 9, 3900 + 2801, 9000);
    assert_found(tl, ALIVE, "nobody led for 2.801 s from +3.900000 s on");
}

static record *
lost_for(tale *tl, uint32_t worker, uint64_t term, int64_t from, int32_t why)
{
    record *rec = term_of(tl, worker, term, from, from + 500);

    tl->run.ttl_ms = 500;
    rec->status = why;
    return rec;
}

static void terms_that_end_for_a_reason_are_right(void **state)
{
    tale *tl = *state;

    /* A fault on the leader, on the store, and none, but it was not run. */
    fault(tl, "files", 0, 900, 1000, LOSS_NONE);
    lost_for(tl, 0, 7, 1000, DIBS_LOST_EXPIRED);
    fault(tl, "restart", NOBODY, 2000, 2100, LOSS_NONE);
    lost_for(tl, 1, 8, 5000, DIBS_LOST_TAKEN);
    add(tl, 1,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 9000 * MS,
                 .returned_ns = 9100 * MS});
    lost_for(tl, 1, 9, 9100, DIBS_LOST_EXPIRED);
    /* The store was slow for another. */
    step(tl, 11100, 167);
    lost_for(tl, 1, 10, 11000, DIBS_LOST_EXPIRED);
    step(tl, 12400, 84);
    lost_for(tl, 1, 11, 12000, DIBS_LOST_FEW);
    /* Another process was not run, but for no fault on it. */
    add(tl, 0,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 13000 * MS,
                 .returned_ns = 13060 * MS});
    lost_for(tl, 1, 12, 13000, DIBS_LOST_EXPIRED);
    /* A fault on a member. */
    fault(tl, "kill", 0, 14000, 14001, LOSS_NONE);
    lost_for(tl, 1, 13, 15000, DIBS_LOST_FEW);
    /* Another had handed the lead on, and died. */
    handed(tl, 0, 13, HAND_ON, 14800, 14900);
    lost_for(tl, 1, 14, 20000, DIBS_LOST_RESIGNED);
    /* All leave. */
    atomic_store(&tl->run.ended_ns, 25000 * MS);
    lost_for(tl, 1, 15, 25000, DIBS_LOST_FEW);
    assert_good(tl);
}

static void a_term_that_expires_for_nothing_is_found(void **state)
{
    tale *tl = *state;

    /* On another, and over long ago. */
    fault(tl, "stop", 1, 1000, 1400, LOSS_NONE);
    fault(tl, "files", 0, 900, 999, LOSS_NONE);
    add(tl, 0,
        (record){.op = OP_HOLD,
                 .waited = true, /* for others */
                 .status = DIBS_TIMEOUT,
                 .invoked_ns = 1000 * MS,
                 .returned_ns = 1500 * MS});
    step(tl, 1100, 166);
    add(tl, 1, /* stopped */
        (record){.op = OP_PAUSE,
                 .invoked_ns = 1000 * MS,
                 .returned_ns = 1401 * MS});
    lost_for(tl, 0, 7, 1000, DIBS_LOST_EXPIRED);
    assert_found(tl, ALIVE,
                 "VIOLATION: alive: election: worker 0.1 lost term 7 at "
                 "+1.500000 s (EXPIRED), and nothing had happened");
    assert_int_equal(tl->hs.late, 1);
}

static void a_term_that_is_taken_for_nothing_is_found(void **state)
{
    tale *tl = *state;

    fault(tl, "restart", NOBODY, 1000, 1100, LOSS_NONE);
    lost_for(tl, 0, 7, 4200, DIBS_LOST_TAKEN);
    assert_found(tl, ALIVE, "(TAKEN), and nothing had happened");
}

static void too_few_members_for_nothing_are_found(void **state)
{
    tale *tl = *state;

    fault(tl, "kill", 1, 1000, 1001, LOSS_NONE);
    step(tl, 2200, 83);
    lost_for(tl, 0, 7, 2100, DIBS_LOST_FEW);
    assert_found(tl, ALIVE, "(FEW), and nothing had happened");
}

/* Nobody asked it to. */
static void a_resignation_of_its_own_is_found(void **state)
{
    tale *tl = *state;

    handed(tl, 1, 6, HAND_RESIGN, 6400, 6499);
    handed(tl, 1, 6, HAND_ON, 100, 200);
    lost_for(tl, 0, 7, 6500, DIBS_LOST_RESIGNED);
    assert_found(tl, ALIVE, "(RESIGNED), and nothing had happened");
    assert_int_equal(tl->hs.late, 0);
}

/* ---- latches and the limit */

static record *counted(tale *tl, uint64_t id, int64_t from, uint64_t left)
{
    return add(tl, id % 2,
               (record){.op = OP_COUNT,
                        .invoked_ns = from * MS,
                        .returned_ns = (from + 5) * MS,
                        .value = id,
                        .expected = left});
}

/* All ids but one. */
static void nearly_open(tale *tl)
{
    for (uint64_t id = 1; id < LATCH_COUNT; id++)
        counted(tl, id, (int64_t)id * 10, LATCH_COUNT - id);
}

static void a_latch_that_opens_with_its_last_is_right(void **state)
{
    tale *tl = *state;

    nearly_open(tl);
    counted(tl, 3, 200, 1); /* again */
    add(tl, 0,
        (record){.op = OP_WAIT,
                 .status = DIBS_TIMEOUT,
                 .invoked_ns = 210 * MS,
                 .returned_ns = 220 * MS});
    /* No answer: it may have counted, or not. */
    counted(tl, 50, 230, 0)->status = DIBS_UNKNOWN;
    counted(tl, 51, 240, 0);
    counted(tl, 52, 250, 0);
    assert_good(tl);
}

static void a_latch_that_opens_early_is_found(void **state)
{
    tale *tl = *state;

    nearly_open(tl);
    counted(tl, 3, 200, 0); /* counted again */
    assert_found(tl, LATCH,
                 "VIOLATION: latch: latch 0 of 12 ids: worker 1.1 found 0 "
                 "missing from +0.200000 s to +0.205000 s, when 11 had begun "
                 "to count");
}

static void a_count_that_is_forgotten_is_found(void **state)
{
    tale *tl = *state;

    nearly_open(tl);
    counted(tl, 50, 200, 1);
    assert_found(tl, VALUES_KEPT, "found 1 missing from +0.200000 s");
}

static void a_latch_that_closes_again_is_found(void **state)
{
    tale *tl = *state;

    nearly_open(tl);
    counted(tl, 50, 190, 0)->status = DIBS_UNKNOWN;
    add(tl, 0,
        (record){.op = OP_WAIT,
                 .invoked_ns = 200 * MS,
                 .returned_ns = 210 * MS});
    add(tl, 0,
        (record){.op = OP_WAIT,
                 .status = DIBS_TIMEOUT,
                 .invoked_ns = 220 * MS,
                 .returned_ns = 230 * MS});
    assert_found(tl, VALUES_KEPT, "found 1 missing from +0.220000 s");
}

/* So many calls of one token, each this long after the one before. */
static void took(tale *tl, int64_t from, unsigned calls, int64_t gap_ms)
{
    for (unsigned i = 0; i < calls; i++)
        add(tl, i % 2,
            (record){.op = OP_TAKE,
                     .invoked_ns = (from + i * gap_ms) * MS,
                     .returned_ns = (from + i * gap_ms + 1) * MS,
                     .value = 1});
}

static void a_burst_and_then_the_rate_is_right(void **state)
{
    tale *tl = *state;

    took(tl, 100, LIMIT_BURST, 0);
    took(tl, 100 + 1000 / LIMIT_RATE, 15, 1000 / LIMIT_RATE);
    took(tl, 500, LIMIT_BURST, 0); /* refused */
    for (unsigned i = 0; i < 2; i++)
        for (unsigned k = atomic_load(&tl->logs[i]->count) - LIMIT_BURST / 2;
             k < atomic_load(&tl->logs[i]->count); k++)
            tl->logs[i]->records[k].status = DIBS_BUSY;
    assert_good(tl);
}

static void more_than_the_rate_is_found(void **state)
{
    tale *tl = *state;

    took(tl, 100, LIMIT_BURST + 2, 0);
    assert_found(tl, LIMIT,
                 "VIOLATION: limit: 11 tokens in 1.000 ms, of 50 each second "
                 "and a burst of 10");
}

static void a_fault_on_the_store_is_worth_a_burst(void **state)
{
    tale *tl = *state;

    took(tl, 100, LIMIT_BURST, 0);
    fault(tl, "crash", NOBODY, 102, 104, LOSS_NONE);
    took(tl, 105, LIMIT_BURST, 0);
    assert_good(tl);
}

/* ---- the barrier */

/* A wait of worker 0 or 1; of another life of it, if it is to count as another. */
static record *
met(tale *tl, uint32_t worker, uint64_t gen, int64_t from, int64_t to)
{
    return add(tl, worker,
               (record){.op = OP_MEET,
                        .invoked_ns = from * MS,
                        .returned_ns = to * MS,
                        .fence = gen});
}

/* Worker 1 was there, and its answer was lost on the way, or it died. */
static void met_unheard(tale *tl, int64_t from)
{
    met(tl, 1, 0, from, 0)->returned_ns = 0;
}

static void parties_that_meet_are_right(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 140, 145);
    met_unheard(tl, 120);
    met(tl, 0, 7, 200, 300);
    met(tl, 1, 7, 210, 300);
    /* It was stopped, and its seat has ended since. */
    met(tl, 1, 0, 220, 900)->status = DIBS_LOST;
    met(tl, 0, 0, 1000, 1100)->status = DIBS_BROKEN;
    met(tl, 1, 0, 1050, 1100)->status = DIBS_TIMEOUT;
    /* It counts until its seat has ended. */
    met(tl, 1, 0, 1200, 1210)->status = DIBS_UNKNOWN;
    met(tl, 0, 9, 1220, 1300);
    met(tl, 1, 9, 1220, 1300);
    assert_good(tl);
}

static void who_passes_alone_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 0, 120, 160)->status = DIBS_BROKEN;
    met_unheard(tl, 130);
    assert_found(tl, BARRIER,
                 "VIOLATION: barrier: generation 5 of 3 parties: fewer had "
                 "come: worker 0.1, from +0.100000 s to +0.150000 s");
}

/* Its call ended in a time-out, and counted all the same. */
static void a_time_out_that_counts_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 130, 150);
    met(tl, 1, 0, 120, 125)->status = DIBS_TIMEOUT;
    assert_found(tl, BARRIER, "fewer had come");
}

static void who_leaves_before_the_last_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 160, 170);
    met_unheard(tl, 120);
    assert_found(tl, BARRIER, "the first left before the last had come");
}

static void a_call_that_counts_twice_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 0, 5, 110, 150);
    met(tl, 1, 5, 120, 150);
    assert_found(tl, BARRIER, "one passed twice");
}

static void one_too_many_is_found(void **state)
{
    tale *tl = *state;

    for (int i = 0; i < PARTIES + 1; i++)
        met(tl, (uint32_t)i % 2, 5, 100, 150);
    assert_found(tl, BARRIER, "more passed than it has");
}

static void a_generation_that_falls_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 7, 100, 150);
    met(tl, 1, 7, 100, 150);
    met_unheard(tl, 100);
    met(tl, 0, 5, 200, 250);
    met(tl, 1, 5, 200, 240);
    judge(tl);
    assert_int_equal(tl->hs.breaches[BARRIER], 2);
    assert_non_null(strstr(tl->text, "generation 5 was passed by worker"));
}

static void a_barrier_that_nobody_passes_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 100, 150);
    met_unheard(tl, 100);
    atomic_store(&tl->run.calm_ns, 1000 * MS);
    assert_found(tl, ALIVE, "barrier: nobody passed after the last fault");
}

static record *met_broken(tale *tl, uint32_t worker, int64_t from, int64_t to)
{
    record *rec = met(tl, worker, 0, from, to);

    rec->status = DIBS_BROKEN;
    return rec;
}

/* Its own calls are no reason, nor are those of others that went well. */
static void a_break_that_nothing_explains_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 1, 0, 100, 500)->status = DIBS_BUSY;
    met_broken(tl, 1, 4000, 4100);
    met_broken(tl, 1, 4050, 4100);
    judge(tl);
    assert_int_equal(tl->hs.breaches[BARRIER], 2);
    assert_int_equal(tl->hs.late, 2);
    assert_non_null(strstr(tl->text,
                           "VIOLATION: barrier: worker 1.1, from +4.000000 s "
                           "to +4.100000 s, was told that its generation "
                           "broke, and nothing had broken it"));
}

/* Worker 1 takes its own arrival back only. */
static void a_break_by_who_withdraws_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 1, 0, 1000, 1000 + MEET_MS)->status = DIBS_TIMEOUT;
    met_broken(tl, 0, 1050, 1000 + MEET_MS);
    assert_found(tl, BARRIER, "nothing had broken it");
}

/* A time-out breaks nothing before it is over. */
static void a_break_before_the_time_out_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 0, 1000, 1000 + MEET_MS)->status = DIBS_TIMEOUT;
    met_broken(tl, 1, 1050, 1000 + MEET_MS - 1);
    assert_found(tl, BARRIER, "nothing had broken it");
}

static void breaks_that_have_a_reason_are_right(void **state)
{
    tale *tl = *state;

    /* A time-out of one that breaks it. */
    met(tl, 0, 0, 1000, 1001 + MEET_MS)->status = DIBS_TIMEOUT;
    met_broken(tl, 1, 1050, 1002 + MEET_MS);
    /* The seat of a call without an answer ends. */
    met(tl, 0, 0, 5000, 5400)->status = DIBS_UNKNOWN;
    met_broken(tl, 1, 6000, 6390);
    met(tl, 0, 0, 10000, 10400)->status = DIBS_LOST;
    met_broken(tl, 1, 10000, 10390);
    /* A fault on another party, and on the store. */
    fault(tl, "stop", 0, 15000, 15100, LOSS_NONE);
    met_broken(tl, 1, 15200, 15300);
    fault(tl, "restart", NOBODY, 20000, 20100, LOSS_NONE);
    met_broken(tl, 1, 21000, 21300);
    /* All have gone. */
    atomic_store(&tl->run.ended_ns, 30000 * MS);
    met_broken(tl, 1, 29900, 30100);
    assert_good(tl);
}

/* It ended between two calls, and another took its place. */
static void a_break_by_who_dies_is_right(void **state)
{
    tale *tl = *state;

    tl->logs[1]->life = 2;
    tl->logs[1]->began_ns = 5000 * MS;
    met_broken(tl, 0, 5100, 5200);
    assert_good(tl);
}

static void a_break_that_is_told_late_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 0, 1000, 1400)->status = DIBS_TIMEOUT;
    met_broken(tl, 1, 1050, 1400 + 1001);
    assert_found(tl, ALIVE,
                 "barrier: worker 1.1 was told at +2.401000 s of a break "
                 "before +1.400000 s");
    assert_int_equal(tl->hs.late, 1);
}

static void who_leaves_late_is_found(void **state)
{
    tale *tl = *state;

    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 100, 150 + 1001);
    met_unheard(tl, 120);
    assert_found(tl, ALIVE,
                 "barrier: worker 1.1 left generation 5 1.001 s after the "
                 "first");
    assert_int_equal(tl->hs.late, 1);
}

/* The poll of a longer lease comes later, but never later than a second. */
static void who_asks_seldom_leaves_later(void **state)
{
    tale *tl = *state;

    tl->run.ttl_ms = 900;
    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 100, 150 + 1300);
    met_unheard(tl, 120);
    met(tl, 0, 6, 5000, 5050);
    met(tl, 1, 6, 5000, 5050 + 1301);
    met_unheard(tl, 5020);
    assert_found(tl, ALIVE, "left generation 6 1.301 s after the first");
}

/* Its process was stopped, was not run, or could not reach the store, which may be felt for
 * three seconds. What is left is in time. */
static void who_is_held_up_leaves_late(void **state)
{
    tale *tl = *state;

    fault(tl, "stop", 1, 140, 3000, LOSS_NONE);
    add(tl, 1,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 2900 * MS,
                 .returned_ns = 4000 * MS});
    fault(tl, "pause", NOBODY, 4500, 4600, LOSS_NONE);
    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 100, 4600 + 3000 + 500);
    met_unheard(tl, 120);
    assert_good(tl);
}

static void who_is_held_up_is_late_all_the_same(void **state)
{
    tale *tl = *state;

    fault(tl, "stop", 1, 140, 3000, LOSS_NONE);
    add(tl, 0,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 3000 * MS,
                 .returned_ns = 4000 * MS});
    met(tl, 0, 5, 100, 150);
    met(tl, 1, 5, 100, 4001);
    met_unheard(tl, 120);
    assert_found(tl, ALIVE, "left generation 5 1.001 s after the first");
}

static void who_hears_late_of_what_others_heard_is_found(void **state)
{
    tale *tl = *state;

    fault(tl, "stop", 0, 900, 1000, LOSS_NONE); /* broke it */
    met_broken(tl, 0, 1010, 1100)->fence = 7;
    met_broken(tl, 1, 1010, 1100 + 1001)->fence = 7;
    assert_found(tl, ALIVE, "worker 1.1 left generation 7 1.001 s after");
}

static void a_generation_that_opens_and_breaks_is_found(void **state)
{
    tale *tl = *state;

    fault(tl, "stop", 0, 900, 1000, LOSS_NONE);
    met(tl, 0, 7, 1010, 1100);
    met_unheard(tl, 1010);
    met_unheard(tl, 1010);
    met_broken(tl, 1, 1010, 1100)->fence = 7;
    assert_found(tl, BARRIER,
                 "VIOLATION: barrier: generation 7 opened for worker 0.1 and "
                 "broke for worker 1.1, at +1.100000 s");
}

/* Both have a seat and wait. Then worker 0 dies, and its seat ends 500 ms later. */
static record *died_beside(tale *tl, int64_t until)
{
    tl->run.ttl_ms = 500;
    met_unheard(tl, 1000);
    met(tl, 0, 5, 1000, 1100);
    met(tl, 1, 5, 1000, 1100);
    met(tl, 0, 0, 2000, 0)->returned_ns = 0;
    fault(tl, "kill", 0, 3000, 3010, LOSS_NONE);
    return met(tl, 1, 0, 2000, until);
}

static void the_end_of_a_seat_breaks_in_time(void **state)
{
    died_beside(*state, 3500 + 250 + 1000)->status = DIBS_BROKEN;
    assert_good(*state);
}

static void a_seat_that_ends_unseen_is_found(void **state)
{
    died_beside(*state, 3500 + 250 + 1001)->status = DIBS_BROKEN;
    assert_found(*state, ALIVE,
                 "barrier: worker 0 died at +3.000000 s, and worker 1.1 waited "
                 "until +4.751000 s");
}

static void a_seat_that_never_ends_is_found(void **state)
{
    died_beside(*state, 6000)->status = DIBS_TIMEOUT;
    assert_found(*state, ALIVE, "worker 1.1 waited until +6.000000 s");
}

/* Nobody knows whether it had a seat: its call before gave up. */
static void the_end_of_who_may_have_no_seat_breaks_nothing(void **state)
{
    tale *tl = *state;

    met_unheard(tl, 1000);
    died_beside(tl, 6000)->status = DIBS_TIMEOUT;
    tl->logs[0]->records[0].status = DIBS_TIMEOUT;
    assert_good(tl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TALE(leaders_in_turn_are_right),
        TALE(two_leaders_are_found),
        TALE(two_leaders_with_a_majority_are_found),
        TALE(a_lead_given_back_before_its_work_stopped_is_found),
        TALE(a_leader_is_announced_lost_in_time),
        TALE(a_term_that_falls_is_found),
        TALE(a_term_that_repeats_is_found),
        TALE(who_lost_what_it_never_gained_is_found),
        TALE(who_gained_without_losing_is_found),
        TALE(who_is_told_twice_is_found),
        TALE(who_leads_after_it_was_told_is_found),
        TALE(who_leads_when_it_is_told_is_found),
        TALE(who_slept_and_led_on_is_found),
        TALE(an_election_that_nobody_wins_is_found),
        TALE(leaders_after_the_last_fault_are_in_time),
        TALE(a_leader_that_comes_late_is_found),
        TALE(a_slow_store_has_a_leader_later),
        TALE(a_lead_of_the_dead_takes_longer),
        TALE(a_lead_that_ends_for_good_is_found),
        TALE(a_late_majority_is_found),
        TALE(terms_that_end_for_a_reason_are_right),
        TALE(a_term_that_expires_for_nothing_is_found),
        TALE(a_term_that_is_taken_for_nothing_is_found),
        TALE(too_few_members_for_nothing_are_found),
        TALE(a_resignation_of_its_own_is_found),
        TALE(a_latch_that_opens_with_its_last_is_right),
        TALE(a_latch_that_opens_early_is_found),
        TALE(a_count_that_is_forgotten_is_found),
        TALE(a_latch_that_closes_again_is_found),
        TALE(a_burst_and_then_the_rate_is_right),
        TALE(more_than_the_rate_is_found),
        TALE(a_fault_on_the_store_is_worth_a_burst),
        TALE(parties_that_meet_are_right),
        TALE(who_passes_alone_is_found),
        TALE(a_time_out_that_counts_is_found),
        TALE(who_leaves_before_the_last_is_found),
        TALE(a_call_that_counts_twice_is_found),
        TALE(one_too_many_is_found),
        TALE(a_generation_that_falls_is_found),
        TALE(a_barrier_that_nobody_passes_is_found),
        TALE(a_break_that_nothing_explains_is_found),
        TALE(a_break_by_who_withdraws_is_found),
        TALE(a_break_before_the_time_out_is_found),
        TALE(breaks_that_have_a_reason_are_right),
        TALE(a_break_by_who_dies_is_right),
        TALE(a_break_that_is_told_late_is_found),
        TALE(who_leaves_late_is_found),
        TALE(who_asks_seldom_leaves_later),
        TALE(who_is_held_up_leaves_late),
        TALE(who_is_held_up_is_late_all_the_same),
        TALE(who_hears_late_of_what_others_heard_is_found),
        TALE(a_generation_that_opens_and_breaks_is_found),
        TALE(the_end_of_a_seat_breaks_in_time),
        TALE(a_seat_that_ends_unseen_is_found),
        TALE(a_seat_that_never_ends_is_found),
        TALE(the_end_of_who_may_have_no_seat_breaks_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
