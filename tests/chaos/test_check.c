/* test_check.c - the checker finds what it is there to find, says it so that it can
 * be read, and finds nothing else. */
/* SPDX-License-Identifier: MIT */
#include "tale.h"

#include <dibs/types.h>
#include <stdlib.h>
#include <string.h>

enum { MUTEX = 0, STICKY = 2, READ_WRITE = 4, SEMAPHORE = 6 };

/* A hold of worker 0 or 1, asked for 5 ms before it was had. */
static record *held(tale *tl, uint32_t worker, uint32_t key, uint64_t fence,
                    int64_t from_ms, int64_t to_ms)
{
    record rec = {.invoked_ns = (from_ms - 5) * MS,
                  .returned_ns = from_ms * MS,
                  .from_ns = from_ms * MS,
                  .looked_ns = from_ms * MS,
                  .valid_ns = to_ms * MS,
                  .released_ns = to_ms * MS,
                  .fence = fence,
                  .key = key,
                  .exclusive = key != SEMAPHORE};

    snprintf(rec.owner, sizeof(rec.owner), "%u-%llu", worker,
             (unsigned long long)fence);
    return add(tl, worker, rec);
}

static record *value_op(tale *tl, uint32_t worker, operation op, int64_t from,
                        int64_t to, uint64_t version)
{
    record *rec = add(tl, worker,
                      (record){.op = (uint8_t)op,
                               .invoked_ns = from * MS,
                               .returned_ns = to * MS,
                               .fence = version});

    if (op != OP_GET)
        rec->value = ((uint64_t)worker + 1) << 48 | UINT64_C(1) << 28 |
                     (uint64_t)(rec - tl->logs[worker]->records);
    return rec;
}

static record *read_of(tale *tl, uint32_t worker, int64_t from, int64_t to,
                       const record *write)
{
    record *rec = value_op(tl, worker, OP_GET, from, to, write->fence);

    rec->value = write->value;
    return rec;
}

static void
banked(tale *tl, uint64_t fence, bool write, uint64_t based_on, uint64_t value)
{
    unsigned at = atomic_load(&tl->bank->count);

    tl->bank->entries[at] = (bank_entry){.at_ns = (int64_t)at * MS,
                                         .fence = fence,
                                         .write = write,
                                         .based_on = based_on,
                                         .value = value,
                                         .accepted = true};
    atomic_store(&tl->bank->count, at + 1);
}

static void one_after_the_other_is_right(void **state)
{
    tale *tl = *state;
    record *rec;

    held(tl, 0, MUTEX, 1, 100, 200);
    held(tl, 1, MUTEX, 2, 200, 300);
    held(tl, 0, READ_WRITE, 1, 100, 200)->exclusive = false;
    held(tl, 1, READ_WRITE, 2, 150, 250)->exclusive = false;
    held(tl, 0, READ_WRITE, 3, 260, 270);
    held(tl, 0, SEMAPHORE, 1, 100, 200)->permits = 1;
    held(tl, 1, SEMAPHORE, 2, 110, 210)->permits = 2;
    held(tl, 0, SEMAPHORE, 3, 205, 300)->permits = 1;
    /* What was never returned from, or never relied on, is no hold. */
    rec = held(tl, 1, MUTEX, 9, 120, 190);
    rec->from_ns = 0;
    rec = held(tl, 1, MUTEX, 9, 120, 190);
    rec->returned_ns = rec->from_ns = rec->released_ns = 0;
    rec->status = DIBS_UNKNOWN;
    assert_good(tl);
}

static void a_claim_ends_with_what_ends_it_first(void **state)
{
    tale *tl = *state;
    record *rec;

    rec = held(tl, 0, MUTEX, 1, 100, 900); /* given back, */
    rec->released_ns = 150 * MS;
    rec = held(tl, 1, MUTEX, 2, 200, 900); /* told of the loss, */
    rec->told_ns = 250 * MS;
    rec = held(tl, 0, MUTEX, 3, 300, 900); /* found to be lost */
    rec->missed_ns = rec->told_ns = 350 * MS;
    held(tl, 1, MUTEX, 4, 400, 500);
    assert_good(tl);
}

static void two_writers_are_found(void **state)
{
    tale *tl = *state;

    held(tl, 0, MUTEX, 1, 100, 200);
    held(tl, 1, MUTEX, 2, 190, 300);
    assert_found(tl, EXCLUSION,
                 "VIOLATION: exclusion: key 0 (mutex): worker 0.1, fence 1, "
                 "asked for it at +0.095000 s and relied on it from +0.100000 "
                 "s to +0.200000 s; worker 1.1, fence 2, asked for it at "
                 "+0.185000 s and relied on it from +0.190000 s to +0.300000 "
                 "s: 10.000 ms at once");
}

/* It was killed, and another was granted it while it would have been valid. */
static void the_claims_of_the_dead_count(void **state)
{
    tale *tl = *state;

    held(tl, 0, MUTEX, 1, 100, 200)->released_ns = 0;
    held(tl, 1, MUTEX, 2, 190, 300);
    assert_found(tl, EXCLUSION, "10.000 ms at once");
}

static void a_reader_beside_a_writer_is_found(void **state)
{
    tale *tl = *state;

    held(tl, 0, READ_WRITE, 1, 100, 200)->exclusive = false;
    held(tl, 1, READ_WRITE, 2, 150, 250);
    assert_found(tl, EXCLUSION, "key 4 (read-write lock)");
}

static void too_many_permits_are_found(void **state)
{
    tale *tl = *state;

    held(tl, 0, SEMAPHORE, 1, 100, 200)->permits = 2;
    held(tl, 1, SEMAPHORE, 2, 150, 250)->permits = 2;
    assert_found(tl, EXCLUSION, "4 permits of 3 in use");
}

static void what_is_not_promised_is_counted(void **state)
{
    tale *tl = *state;

    snprintf(tl->run.topology, sizeof(tl->run.topology), "sentinel-async");
    fault(tl, "lossy", NOBODY, 0, 90, LOSS_WRITES);
    held(tl, 0, MUTEX, 1, 100, 200);
    held(tl, 1, MUTEX, 2, 190, 300);
    judge(tl);
    assert_int_equal(history_violations(&tl->hs), 0);
    assert_int_equal(history_counted(&tl->hs), 1);
    assert_non_null(strstr(tl->text, "not promised: exclusion"));
}

static void what_is_lost_decides_what_is_promised(void **state)
{
    (void)state;
    assert_int_equal(promised("sentinel-wait", LOSS_NONE, EXCLUSION), KEPT);
    assert_int_equal(promised("sentinel-wait", LOSS_WRITES, EXCLUSION), KEPT);
    assert_int_equal(promised("sentinel-wait", LOSS_SPLIT, EXCLUSION), COUNTED);
    assert_int_equal(promised("sentinel-async", LOSS_SPLIT, EXCLUSION),
                     COUNTED);
    assert_int_equal(promised("sentinel-async", LOSS_SPLIT, FENCE), KEPT);
    assert_int_equal(promised("sqlite", LOSS_SPLIT, VALUES_KEPT), KEPT);
}

static void without_a_loss_it_is_promised(void **state)
{
    tale *tl = *state;

    snprintf(tl->run.topology, sizeof(tl->run.topology), "sentinel-async");
    fault(tl, "flush", NOBODY, 0, 90, LOSS_NONE);
    held(tl, 0, MUTEX, 1, 100, 200);
    held(tl, 1, MUTEX, 2, 190, 300);
    assert_found(tl, EXCLUSION, "VIOLATION");
}

static void a_fence_that_repeats_is_found(void **state)
{
    tale *tl = *state;

    snprintf(tl->run.topology, sizeof(tl->run.topology), "sentinel-async");
    fault(tl, "lossy", NOBODY, 0, 90, LOSS_WRITES);
    held(tl, 0, MUTEX, 7, 100, 200);
    held(tl, 1, MUTEX, 7, 203, 300); /* asked for while the other was on */
    held(tl, 1, MUTEX, 8, 400, 500);
    tl->logs[1]->records[0].invoked_ns = 99 * MS;
    assert_found(tl, FENCE, "a fence was given twice: worker 0.1, fence 7");
}

static void a_fence_that_falls_is_found(void **state)
{
    tale *tl = *state;

    held(tl, 0, MUTEX, 8, 100, 200);
    held(tl, 1, MUTEX, 7, 300, 400);
    assert_found(tl, FENCE, "a later fence is not higher: worker 0.1, fence 8");
}

static void a_sticky_lease_goes_on_under_its_fence(void **state)
{
    tale *tl = *state;

    held(tl, 0, STICKY, 8, 100, 200);
    held(tl, 0, STICKY, 8, 300, 400);
    held(tl, 1, STICKY, 9, 500, 600);
    assert_good(tl);
}

/* The store had lost it, and granted it to another meanwhile. */
static void a_sticky_lease_is_as_old_as_its_grant(void **state)
{
    tale *tl = *state;

    held(tl, 0, STICKY, 8, 100, 200);
    held(tl, 1, STICKY, 9, 250, 260);
    held(tl, 0, STICKY, 8, 300, 400);
    assert_good(tl);
}

static void the_bank_takes_equal_and_higher(void **state)
{
    tale *tl = *state;

    banked(tl, 5, false, 0, 0);
    banked(tl, 5, true, 0, 1);
    banked(tl, 7, false, 0, 1);
    banked(tl, 7, true, 1, 2);
    assert_good(tl);
}

static void an_older_fence_at_the_bank_is_found(void **state)
{
    tale *tl = *state;

    banked(tl, 7, false, 0, 0);
    banked(tl, 5, false, 0, 0);
    assert_found(tl, BANK,
                 "key 0: an older fence was accepted: worker 0 read at "
                 "+0.000000 s under fence 7");
}

static void a_write_that_is_lost_is_found(void **state)
{
    tale *tl = *state;

    banked(tl, 7, false, 0, 0);
    banked(tl, 7, true, 0, 1);
    banked(tl, 7, true, 0, 1);
    assert_found(tl, BANK, "a write was lost");
}

/* One waited from before the other asked, and was served after it. */
static void overtake(tale *tl)
{
    record *waited = held(tl, 0, MUTEX, 2, 300, 400);
    record *late = held(tl, 1, MUTEX, 1, 100, 200);

    waited->invoked_ns = 10 * MS;
    waited->queued_ns = 20 * MS;
    late->invoked_ns = 30 * MS;
}

static void who_overtakes_is_found(void **state)
{
    overtake(*state);
    assert_found(*state, ORDER,
                 "the first asked later and was served before: worker 1.1, "
                 "fence 1");
}

static void overtake_unrun(tale *tl, int64_t ms)
{
    overtake(tl);
    tl->run.ttl_ms = 200;
    add(tl, 0,
        (record){.op = OP_PAUSE,
                 .invoked_ns = 50 * MS,
                 .returned_ns = (50 + ms) * MS});
    assert_found(tl, ORDER, "worker 1.1");
}

/* It may have lost its place: the run is made again. */
static void who_was_not_run_for_a_ttl_may_be_overtaken(void **state)
{
    tale *tl = *state;

    overtake_unrun(tl, 200);
    assert_int_equal(tl->hs.late, 1);
}

static void who_was_not_run_for_less_is_not_overtaken(void **state)
{
    tale *tl = *state;

    overtake_unrun(tl, 199);
    assert_int_equal(tl->hs.late, 0);
}

static void who_was_stopped_may_be_overtaken(void **state)
{
    overtake(*state);
    fault(*state, "stop", 0, 50, 60, LOSS_NONE);
    assert_good(*state);
}

static void another_that_was_stopped_is_no_excuse(void **state)
{
    overtake(*state);
    fault(*state, "stop", 1, 50, 60, LOSS_NONE);
    assert_found(*state, ORDER, "worker 1.1");
}

static void who_asked_before_the_place_was_given_is_right(void **state)
{
    tale *tl = *state;

    overtake(tl);
    tl->logs[1]->records[0].invoked_ns = 15 * MS;
    assert_good(tl);
}

static void values_in_order_are_right(void **state)
{
    tale *tl = *state;
    record *first, *second, *unsure;

    value_op(tl, 1, OP_GET, 1, 2, 0)->status = DIBS_NOTFOUND;
    first = value_op(tl, 0, OP_SET, 10, 20, 5);
    read_of(tl, 1, 15, 30, first);
    second = value_op(tl, 0, OP_CAS, 40, 50, 8);
    second->expected = 5;
    value_op(tl, 1, OP_CAS, 60, 70, 8)->status = DIBS_STALE;
    read_of(tl, 1, 45, 55, second);
    /* One that was not answered, and was seen later; one that never was. */
    unsure = value_op(tl, 0, OP_SET, 80, 0, 0);
    unsure->fence = 12;
    read_of(tl, 1, 100, 110, unsure);
    unsure->fence = 0;
    value_op(tl, 0, OP_SET, 120, 130, 0)->status = DIBS_UNKNOWN;
    /* Refused, and nobody saw it. */
    value_op(tl, 0, OP_SET, 140, 150, 0)->status = DIBS_UNAVAIL;
    assert_good(tl);
}

static void a_value_that_goes_back_is_found(void **state)
{
    tale *tl = *state;
    record *first = value_op(tl, 0, OP_SET, 10, 20, 5);
    record *second = value_op(tl, 0, OP_SET, 30, 40, 8);

    read_of(tl, 1, 50, 60, second);
    read_of(tl, 1, 70, 80, first);
    assert_found(tl, VALUES_KEPT,
                 "value 0: went back: worker 0.1 set version 8 between "
                 "+0.030000 s and +0.040000 s; worker 1.1 read version 5 "
                 "between +0.070000 s and +0.080000 s");
}

static void a_lost_update_is_found(void **state)
{
    tale *tl = *state;

    value_op(tl, 0, OP_SET, 10, 20, 5);
    value_op(tl, 0, OP_CAS, 30, 60, 6)->expected = 5;
    value_op(tl, 1, OP_CAS, 30, 60, 7)->expected = 5;
    assert_found(tl, VALUES_KEPT, "another write came between");
}

static void two_writes_at_one_version_are_found(void **state)
{
    tale *tl = *state;

    value_op(tl, 0, OP_SET, 10, 60, 5);
    value_op(tl, 1, OP_SET, 10, 60, 5);
    assert_found(tl, VALUES_KEPT, "two writes at one version");
}

static void a_refused_write_that_is_seen_is_found(void **state)
{
    tale *tl = *state;
    record *refused = value_op(tl, 0, OP_SET, 10, 20, 5);

    refused->status = DIBS_UNAVAIL;
    read_of(tl, 1, 30, 40, refused);
    assert_found(tl, VALUES_KEPT, "a write that was refused was seen");
}

static void what_nobody_wrote_is_found(void **state)
{
    tale *tl = *state;

    value_op(tl, 1, OP_GET, 30, 40, 5)->value = 77;
    assert_found(tl, VALUES_KEPT, "what nobody wrote");
}

static void what_is_seen_before_it_is_written_is_found(void **state)
{
    tale *tl = *state;
    record *unsure = value_op(tl, 0, OP_SET, 80, 0, 5);

    read_of(tl, 1, 30, 40, unsure);
    judge(tl);
    assert_true(history_violations(&tl->hs) > 0);
    assert_non_null(strstr(tl->text, "seen before it was written"));
}

static record *lost(tale *tl, int64_t told_ms)
{
    record *rec = held(tl, 0, MUTEX, 1, 100, 200);

    rec->missed_ns = 210 * MS;
    rec->told_ns = told_ms * MS;
    rec->released_ns = 5000 * MS;
    return rec;
}

static void who_is_told_in_time_is_right(void **state)
{
    lost(*state, 212);
    assert_good(*state);
}

static void who_is_told_late_is_found(void **state)
{
    lost(*state, 3500);
    assert_found(*state, TOLD,
                 "key 0 (mutex): worker 0.1, fence 1, asked for it at "
                 "+0.095000 s and relied on it from +0.100000 s to +0.200000 "
                 "s, and was told of its loss 3290.000 ms late");
}

static void who_is_never_told_is_found(void **state)
{
    lost(*state, 0);
    assert_found(*state, TOLD, "was never told of its loss");
}

static void who_was_stopped_is_told_later(void **state)
{
    fault(*state, "stop", 0, 150, 3490, LOSS_NONE);
    lost(*state, 3500);
    assert_good(*state);
}

static void who_slept_and_looked_once_is_right(void **state)
{
    tale *tl = *state;
    record *rec = held(tl, 0, MUTEX, 1, 100, 200);

    rec->missed_ns = rec->told_ns = 160 * MS;
    rec->looked_ns = 140 * MS;
    fault(tl, SUSPEND, 0, 150, 155, LOSS_NONE);
    fault(tl, SUSPEND, 1, 120, 125, LOSS_NONE);
    held(tl, 0, MUTEX, 2, 300, 400);
    assert_good(tl);
}

static void who_slept_and_went_on_is_found(void **state)
{
    tale *tl = *state;

    held(tl, 0, MUTEX, 1, 100, 200)->looked_ns = 157 * MS;
    fault(tl, SUSPEND, NOBODY, 150, 155, LOSS_NONE);
    assert_found(tl, TOLD, "and found it valid 2.000 ms after its sleep");
}

static void a_name_that_nobody_gets_is_found(void **state)
{
    tale *tl = *state;
    record *rec = held(tl, 0, MUTEX, 1, 100, 200);

    atomic_store(&tl->run.calm_ns, 1000 * MS);
    atomic_store(&tl->run.ended_ns, 4000 * MS);
    rec = held(tl, 1, MUTEX, 2, 3000, 3010);
    rec->from_ns = rec->released_ns = 0;
    rec->status = DIBS_TIMEOUT;
    assert_found(tl, ALIVE,
                 "key 0 (mutex): granted to nobody in the 3.0 s after the "
                 "last fault");
}

static void a_name_that_somebody_gets_is_right(void **state)
{
    tale *tl = *state;

    atomic_store(&tl->run.calm_ns, 1000 * MS);
    atomic_store(&tl->run.ended_ns, 4000 * MS);
    held(tl, 0, MUTEX, 1, 100, 200);
    held(tl, 0, MUTEX, 2, 1100, 1200);
    assert_good(tl);
}

static void a_call_that_hangs_is_found(void **state)
{
    held(*state, 0, MUTEX, 1, 60000, 60100)->invoked_ns = MS;
    assert_found(*state, ALIVE,
                 "worker 0.1: a call of +0.001000 s took 59.999 s");
}

static void what_is_left_behind_is_found(void **state)
{
    tale *tl = *state;

    atomic_store(&tl->run.left, 2);
    assert_found(tl, ALIVE, "2 names were in use after all had gone");
}

static record *denied(tale *tl)
{
    record *rec = held(tl, 0, MUTEX, 1, 100, 200);

    tl->run.patient = true;
    rec->from_ns = rec->released_ns = 0;
    rec->waited = true;
    rec->status = DIBS_UNAVAIL;
    return rec;
}

static void who_can_wait_and_is_denied_is_found(void **state)
{
    denied(*state);
    assert_found(*state, ALIVE,
                 "worker 0.1 could wait for 1.0 s, and was told UNAVAIL");
}

static void who_cannot_wait_may_be_denied(void **state)
{
    denied(*state)->waited = false;
    assert_good(*state);
}

/* So many in seconds: ctest says in how many. */
static void a_million_holds_are_looked_at(void **state)
{
    tale *tl = *state;
    record_log *logs[20];

    for (uint32_t i = 0; i < 20; i++) {
        logs[i] = calloc(1, sizeof(*logs[i]));
        assert_non_null(logs[i]);
        for (uint32_t k = 0; k < LOG_ROOM; k++) {
            int64_t turn = (int64_t)k * 20 + i;

            logs[i]->records[k] = (record){.invoked_ns = turn * 1000,
                                           .returned_ns = turn * 1000 + 900,
                                           .from_ns = turn * 1000 + 910,
                                           .valid_ns = turn * 1000 + 1900,
                                           .released_ns = turn * 1000 + 1000,
                                           .fence = (uint64_t)turn + 1,
                                           .key = k % KEYS,
                                           .exclusive = true};
        }
        atomic_store(&logs[i]->count, LOG_ROOM);
    }
    tl->hs = (history){.run = &tl->run};
    for (uint32_t i = 0; i < 20; i++)
        history_add(&tl->hs, logs[i]);
    history_check(&tl->hs);
    assert_int_equal(tl->hs.operations, 20 * LOG_ROOM);
    assert_int_equal(history_violations(&tl->hs), 0);
    for (uint32_t i = 0; i < 20; i++)
        free(logs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TALE(one_after_the_other_is_right),
        TALE(a_claim_ends_with_what_ends_it_first),
        TALE(two_writers_are_found),
        TALE(the_claims_of_the_dead_count),
        TALE(a_reader_beside_a_writer_is_found),
        TALE(too_many_permits_are_found),
        TALE(what_is_not_promised_is_counted),
        cmocka_unit_test(what_is_lost_decides_what_is_promised),
        TALE(without_a_loss_it_is_promised),
        TALE(a_fence_that_repeats_is_found),
        TALE(a_fence_that_falls_is_found),
        TALE(a_sticky_lease_goes_on_under_its_fence),
        TALE(a_sticky_lease_is_as_old_as_its_grant),
        TALE(the_bank_takes_equal_and_higher),
        TALE(an_older_fence_at_the_bank_is_found),
        TALE(a_write_that_is_lost_is_found),
        TALE(who_overtakes_is_found),
        TALE(who_was_not_run_for_a_ttl_may_be_overtaken),
        TALE(who_was_not_run_for_less_is_not_overtaken),
        TALE(who_was_stopped_may_be_overtaken),
        TALE(another_that_was_stopped_is_no_excuse),
        TALE(who_asked_before_the_place_was_given_is_right),
        TALE(values_in_order_are_right),
        TALE(a_value_that_goes_back_is_found),
        TALE(a_lost_update_is_found),
        TALE(two_writes_at_one_version_are_found),
        TALE(a_refused_write_that_is_seen_is_found),
        TALE(what_nobody_wrote_is_found),
        TALE(what_is_seen_before_it_is_written_is_found),
        TALE(who_is_told_in_time_is_right),
        TALE(who_is_told_late_is_found),
        TALE(who_is_never_told_is_found),
        TALE(who_was_stopped_is_told_later),
        TALE(who_slept_and_looked_once_is_right),
        TALE(who_slept_and_went_on_is_found),
        TALE(a_name_that_nobody_gets_is_found),
        TALE(a_name_that_somebody_gets_is_right),
        TALE(a_call_that_hangs_is_found),
        TALE(what_is_left_behind_is_found),
        TALE(who_can_wait_and_is_denied_is_found),
        TALE(who_cannot_wait_may_be_denied),
        TALE(a_million_holds_are_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
