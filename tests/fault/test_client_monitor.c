/* test_client_monitor.c - the lock monitor on a store that fails, and with memory
 * that runs short: what was done stays done, what was counted is not lost, and
 * nobody is held up. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/alloc.h"

#include <pthread.h>

enum { ALLOCATIONS_MAX = 2000 };

typedef struct record {
    int count;
    uint64_t fence;
    char holder[128];
    char reason[128];
} record;

static bool note(const dibs_trail_entry *entry, void *arg)
{
    record *rd = arg;

    rd->count++;
    rd->fence = entry->fence;
    snprintf(rd->holder, sizeof(rd->holder), "%s", entry->holder);
    snprintf(rd->reason, sizeof(rd->reason), "%s", entry->reason);
    return true;
}

static void count_warning(dibs_log_level level, const char *event,
                          const char *message, void *arg)
{
    (void)message;
    if (level == DIBS_LOG_WARN && strcmp(event, "trail") == 0)
        ++*(int *)arg;
}

static void a_break_stands_though_it_is_not_written_down(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 20000));
    dibs_client *boss = NULL;
    uint32_t broken = 0;
    record rd = {0};
    int warnings = 0;

    CHECK(DIBS_OK,
          dibs_open(w->url,
                    DIBS_CLIENT_OPTS(.log = count_warning, .log_arg = &warnings,
                                     .log_level = DIBS_LOG_WARN),
                    &boss, err));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_fault(w, DIBS__STEP_APPEND, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lease_break(boss, "k", 0, "why", &broken, err));
    assert_int_equal(broken, 1);
    assert_int_equal(warnings, 1);
    world_heal(w);
    CHECK(DIBS_OK, dibs_trail_read(boss, 0, note, &rd, err));
    assert_int_equal(rd.count, 0);
    dibs_close(boss);
    dibs_lock_free(lock);
}

/* Without a look at the holders the trail still says what was done and why. */
static void a_break_is_written_down_without_its_holder(void **state)
{
    world *w = *state;
    dibs_lock *lock = world_lock(w->one, "k", DIBS_LOCK_OPTS(.ttl_ms = 20000));
    record rd = {0};
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    world_fault(w, DIBS__STEP_INSPECT, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lease_break(w->other, "k", fence, "why", NULL, err));
    world_heal(w);
    CHECK(DIBS_OK, dibs_trail_read(w->other, 0, note, &rd, err));
    assert_int_equal(rd.count, 1);
    assert_int_equal(rd.fence, fence);
    assert_string_equal(rd.holder, "");
    assert_string_equal(rd.reason, "why");
    dibs_lock_free(lock);
}

static void reading_says_when_the_store_is_away(void **state)
{
    world *w = *state;
    record rd = {0};

    world_fault(w, DIBS__STEP_READ, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_LIST, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_YIELD, DIBS__FAULT_DROP_BEFORE, -1);
    CHECK(DIBS_UNAVAIL, dibs_trail_read(w->one, 0, note, &rd, err));
    CHECK(DIBS_UNAVAIL, dibs_lease_break_stale(w->one, NULL, NULL, NULL, err));
    CHECK(DIBS_UNKNOWN, dibs_lease_yield(w->one, "k", 0, NULL, err));
}

static bool see_stale(const dibs_lease_info *info, void *arg)
{
    *(bool *)arg = info->holder_count == 1 && info->holders[0].stale;
    return true;
}

static void await_stale(dibs_client *cl, const char *name)
{
    bool stale = false;

    while (!stale) {
        dibs_status rc = dibs_lease_show(cl, name, see_stale, &stale, NULL);

        IN_TIME(rc != DIBS_NOTFOUND); /* It has ended. */
        assert_status(rc, DIBS_OK);
    }
}

/* Two do not renew; the first is swept away. */
static void a_sweep_that_was_begun_is_not_denied(void **state)
{
    world *w = *state;
    const dibs_lock_opts *brief = DIBS_LOCK_OPTS(.ttl_ms = pace_ms(3000));
    dibs_lock *a = world_lock(w->one, "a", brief);
    dibs_lock *b = world_lock(w->one, "b", brief);
    dibs_error why = {0};
    uint32_t broken = 0;
    dibs_status rc;

    world_fault(w, DIBS__STEP_RENEW, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_OK, dibs_lock_try(a, err));
    CHECK(DIBS_OK, dibs_lock_try(b, err));
    await_stale(w->other, "a");
    await_stale(w->other, "b");
    world_fault(w, DIBS__STEP_REVOKE, DIBS__FAULT_NONE, 1);
    world_fault_then(w, DIBS__STEP_REVOKE, DIBS__FAULT_FAIL);
    rc = dibs_lease_break_stale(w->other, NULL, NULL, &broken, &why);
    IN_TIME(broken == 1);
    assert_status(rc, DIBS_UNKNOWN);
    assert_status(why.status, DIBS_UNKNOWN);
    dibs_lock_free(a);
    dibs_lock_free(b);
}

static dibs_client *open_sharing(world *w, int64_t timeout_ms)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK, dibs_open(w->url,
                             DIBS_CLIENT_OPTS(.share_stats = true,
                                              .timeout_ms = timeout_ms),
                             &cl, err));
    return cl;
}

static void turn(dibs_client *cl, const char *name)
{
    dibs_lock *lock = world_lock(cl, name, NULL);

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
}

static bool add_up(const dibs_name_stats *stats, void *arg)
{
    *(uint64_t *)arg += stats->acquired;
    return true;
}

static uint64_t shared(world *w)
{
    uint64_t sum = 0;

    CHECK(DIBS_OK, dibs_name_stats_shared(w->one, NULL, add_up, &sum, err));
    return sum;
}

/* Faults in the first round, a few seconds after something was counted, and in
 * the last one; the number is right in the end. What was done without an answer
 * is not done again. The answer that is lost is that of the last client to close:
 * of one that wrote beside others it could be that it was too late, and then
 * nothing was done. */
static void what_was_not_shared_is_shared_later(void **state)
{
    world *w = *state;
    dibs_client *clients[4];
    uint64_t sum;

    world_fault(w, DIBS__STEP_GET, DIBS__FAULT_DROP_BEFORE, 1);
    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_FAIL, 1);
    for (size_t i = 0; i < 4; i++) {
        clients[i] = open_sharing(w, 2000);
        turn(clients[i], "k");
        turn(clients[i], "l");
    }
    while (atomic_load(&w->times[DIBS__STEP_GET]) > 0 ||
           atomic_load(&w->times[DIBS__STEP_PUT]) > 0)
        world_sleep_ms(5);
    for (size_t i = 0; i < 4; i++) {
        turn(clients[i], "k");
        world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_DROP_AFTER, i == 3);
        dibs_close(clients[i]);
    }
    sum = shared(w);
    IN_TIME(sum >= 12);
    assert_int_equal(sum, 12);
}

/* A store that hangs costs one timeout, however much there is to share. */
static void closing_waits_once(void **state)
{
    world *w = *state;
    dibs_client *cl = open_sharing(w, pace_ms(300));
    dibsx_nsec began_at;

    for (int i = 0; i < 60; i++) {
        char name[16];

        snprintf(name, sizeof(name), "k%d", i);
        turn(cl, name);
    }
    world_delay(w, DIBS__STEP_GET, 60000);
    began_at = dibsx_now();
    dibs_close(cl);
    IN_TIME(world_ms_since(began_at) <= pace_ms(WORLD_BOUND_MS));
}

static void *wait_for_it(void *arg)
{
    (void)!dibs_lock_acquire(arg, NULL);
    return NULL;
}

static bool see_lease(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

static bool see_circle(const dibs_wait_link *links, size_t count, void *arg)
{
    assert_true(count == 1 && strcmp(links[0].holds, "k") == 0);
    ++*(int *)arg;
    return true;
}

static bool see_stats(const dibs_name_stats *stats, void *arg)
{
    assert_true(stats->name && stats->size == sizeof(*stats));
    ++*(int *)arg;
    return true;
}

typedef dibs_status scenario(world *w, dibs_error *err);

static dibs_status look_for_deadlocks(world *w, dibs_error *err)
{
    int count = 0;
    dibs_status rc = dibs_deadlocks(w->one, NULL, see_circle, &count, err);

    IN_TIME(rc != DIBS_OK || count > 0); /* A waiter that does not ask goes. */
    assert_true(rc != DIBS_OK || count == 1);
    return rc;
}

static dibs_status sweep(world *w, dibs_error *err)
{
    return dibs_lease_break_stale(w->one, NULL, NULL, NULL, err);
}

static dibs_status look_at_own(world *w, dibs_error *err)
{
    int count = 0;
    dibs_status rc = dibs_name_stats_own(w->one, see_stats, &count, err);

    assert_true(rc != DIBS_OK || count > 0);
    return rc;
}

static dibs_status look_at_shared(world *w, dibs_error *err)
{
    int count = 0;
    dibs_status rc =
        dibs_name_stats_shared(w->one, NULL, see_stats, &count, err);

    assert_true(rc != DIBS_OK || count == 1);
    return rc;
}

static dibs_status break_and_read(world *w, dibs_error *err)
{
    record rd = {0};
    dibs_status rc = dibs_lease_break(w->one, "b", 0, "why", NULL, err);

    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    if (rc == DIBS_OK)
        rc = dibs_trail_read(w->one, 0, note, &rd, err);
    return rc;
}

static void fail_each_allocation(world *w, scenario *run)
{
    unsigned long n;
    bool failed = true;

    for (n = 1; failed && n <= ALLOCATIONS_MAX; n++) {
        dibs_lock *lock =
            world_lock(w->other, "b", DIBS_LOCK_OPTS(.ttl_ms = 20000));
        dibs_error err = {0};
        dibs_status rc;

        assert_status(dibs_lock_try(lock, &err), DIBS_OK);
        dibsx_alloc_fail_at(n);
        rc = run(w, &err);
        failed = dibsx_alloc_count() >= n;
        dibsx_alloc_fail_at(0);
        if (rc != DIBS_OK && (rc != DIBS_NOMEM || !failed))
            FAIL_OF(rc, "allocation %lu: status %d: %s", n, (int)rc,
                    err.message);
        if (rc == DIBS_NOMEM)
            assert_status(err.status, DIBS_NOMEM);
        dibs_lock_free(lock);
    }
    assert_false(failed);
}

/* A holder that waits for itself through another client, and something shared. */
static void memory_runs_short(void **state)
{
    world *w = *state;
    dibs_lock *has =
        world_lock(w->one, "k",
                   DIBS_LOCK_OPTS(.identity = "x", .ttl_ms = 20000));
    dibs_lock *wants =
        world_lock(w->other, "k",
                   DIBS_LOCK_OPTS(.identity = "x", .wait_ms = -1));
    dibs_client *cl = open_sharing(w, 2000);
    size_t waiters = 0;
    pthread_t thread;

    turn(cl, "s");
    dibs_close(cl);
    CHECK(DIBS_OK, dibs_lock_try(has, err));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, wants), 0);
    while (waiters == 0)
        CHECK(DIBS_OK, dibs_lease_show(w->one, "k", see_lease, &waiters, err));
    fail_each_allocation(w, look_for_deadlocks);
    fail_each_allocation(w, sweep);
    fail_each_allocation(w, look_at_own);
    fail_each_allocation(w, look_at_shared);
    fail_each_allocation(w, break_and_read);
    dibs_lock_cancel(wants);
    pthread_join(thread, NULL);
    dibs_lock_free(wants);
    dibs_lock_free(has);
}

typedef struct parts {
    dibs_part_result lock, state, leader;
    dibs_status failed; /* the status of the part that failed */
} parts;

static void note_part(const dibs_health_part *part, void *arg)
{
    parts *pt = arg;

    if (part->result == DIBS_PART_FAILED)
        pt->failed = part->status;
    if (strcmp(part->name, "lock") == 0)
        pt->lock = part->result;
    else if (strcmp(part->name, "state") == 0)
        pt->state = part->result;
    else
        pt->leader = part->result;
}

static dibs_health
examine(dibs_client *cl, int64_t slow_ms, dibs_status rc, parts *pt)
{
    dibs_health health = DIBS_HEALTHY;

    *pt = (parts){.failed = DIBS_OK};
    CHECK(rc, dibs_health_check(cl,
                                DIBS_HEALTH_OPTS(.election = "e",
                                                 .slow_ms = slow_ms,
                                                 .each = note_part, .arg = pt),
                                &health, err));
    return health;
}

/* The parts after the one that found it out do not wait as long once more. */
static void health_of_a_store_that_is_away(void **state)
{
    world *w = *state;
    dibs_client *open = NULL;
    parts pt;

    CHECK(DIBS_OK,
          dibs_open(w->url, DIBS_CLIENT_OPTS(.on_unavailable = DIBS_AWAY_OPEN),
                    &open, err));
    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_NOW, DIBS__FAULT_FAIL, -1);
    assert_int_equal(examine(open, 0, DIBS_UNAVAIL, &pt), DIBS_UNHEALTHY);
    assert_int_equal(pt.lock, DIBS_PART_FAILED);
    assert_int_equal(pt.state, DIBS_PART_SKIPPED);
    assert_int_equal(pt.leader, DIBS_PART_SKIPPED);
    assert_int_equal(world_seen(w, DIBS__STEP_PUT), 0);
    assert_int_equal(world_seen(w, DIBS__STEP_INSPECT), 0);
    world_heal(w);
    assert_int_equal(examine(open, pace_ms(20000), DIBS_OK, &pt),
                     DIBS_DEGRADED);
    assert_int_equal(pt.state, DIBS_PART_OK);
    assert_int_equal(pt.leader, DIBS_PART_MISSING);
    dibs_close(open);
}

/* A replica, or a server that lacks its own: changes are refused at once. */
static void a_store_that_only_reads_is_read(void **state)
{
    world *w = *state;
    parts pt;

    world_fault(w, DIBS__STEP_ACQUIRE, DIBS__FAULT_FAIL, -1);
    world_fault(w, DIBS__STEP_PUT, DIBS__FAULT_FAIL, -1);
    assert_int_equal(examine(w->one, 0, DIBS_UNAVAIL, &pt), DIBS_UNHEALTHY);
    assert_int_equal(pt.lock, DIBS_PART_FAILED);
    assert_int_equal(pt.state, DIBS_PART_FAILED);
    assert_int_equal(pt.leader, DIBS_PART_MISSING);
}

static void a_slow_store_is_degraded(void **state)
{
    world *w = *state;
    parts pt;

    world_delay(w, DIBS__STEP_GET, 30);
    examine(w->one, 25, DIBS_OK, &pt);
    assert_int_equal(pt.state, DIBS_PART_SLOW);
    assert_int_equal(examine(w->one, pace_ms(20000), DIBS_OK, &pt),
                     DIBS_DEGRADED);
    assert_int_equal(pt.state, DIBS_PART_OK);
}

static bool note_left(const dibs_lease_info *info, void *arg)
{
    *(int64_t *)arg = info->holders[0].left_ms;
    return true;
}

static bool note_expiry(const dibs_state_item *item, void *arg)
{
    *(int64_t *)arg = item->expires_ms;
    return true;
}

/* A lock or a value that a failure leaves behind ends soon. */
static void a_failed_check_leaves_little(void **state)
{
    world *w = *state;
    int64_t left_ms = 0;
    parts pt;

    world_fault(w, DIBS__STEP_RELEASE, DIBS__FAULT_DROP_BEFORE, 1);
    assert_int_equal(examine(w->one, 0, DIBS_UNKNOWN, &pt), DIBS_UNHEALTHY);
    assert_int_equal(pt.lock, DIBS_PART_FAILED);
    CHECK(DIBS_OK,
          dibs_lease_list(w->other, "dibs.health/", note_left, &left_ms, err));
    IN_TIME(left_ms > 0);
    assert_true(left_ms <= DIBS_HEALTH_TTL_MS);
    left_ms = 0;
    world_fault(w, DIBS__STEP_DEL, DIBS__FAULT_DROP_BEFORE, 1);
    assert_int_equal(examine(w->one, 0, DIBS_UNKNOWN, &pt), DIBS_UNHEALTHY);
    assert_int_equal(pt.state, DIBS_PART_FAILED);
    CHECK(DIBS_OK, dibs_state_list(w->other, "dibs.health/", note_expiry,
                                   &left_ms, err));
    assert_int_not_equal(left_ms, -1);
    IN_TIME(left_ms > 0);
    assert_true(left_ms <= DIBS_HEALTH_TTL_MS);
}

typedef struct meddler {
    dibs_client *cl;
    bool leases; /* else values */
    atomic_bool done;
} meddler;

static bool break_lease(const dibs_lease_info *info, void *arg)
{
    meddler *m = arg;

    if (dibs_lease_break(m->cl, info->name, 0, NULL, NULL, NULL) == DIBS_OK)
        m->done = true;
    return false;
}

static bool delete_value(const dibs_state_item *item, void *arg)
{
    meddler *m = arg;

    if (dibs_state_delete(m->cl, item->key, DIBS_VERSION_ANY, NULL) == DIBS_OK)
        m->done = true;
    return false;
}

static void *meddle(void *arg)
{
    meddler *m = arg;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && !m->done) {
        if (m->leases)
            rc = dibs_lease_list(m->cl, "dibs.health/", break_lease, m, NULL);
        else
            rc = dibs_state_list(m->cl, "dibs.health/", delete_value, m, NULL);
    }
    return NULL;
}

/* A store that answers and loses what it was given is unfit. */
static void a_store_that_forgets_is_unfit(void **state)
{
    static const dibs__step steps[] = {DIBS__STEP_RELEASE, DIBS__STEP_GET};
    world *w = *state;

    for (size_t i = 0; i < 2; i++) {
        meddler m = {.cl = w->other, .leases = i == 0};
        pthread_t thread;
        parts pt = {.failed = DIBS_OK};
        dibs_error why = {0};
        dibs_status rc;

        world_heal(w);
        world_delay(w, steps[i], (int)pace_ms(50));
        assert_int_equal(pthread_create(&thread, NULL, meddle, &m), 0);
        rc = dibs_health_check(w->one,
                               DIBS_HEALTH_OPTS(.each = note_part, .arg = &pt),
                               NULL, &why);
        m.done = true;
        pthread_join(thread, NULL);
        IN_TIME(rc != DIBS_OK);
        assert_status(rc, DIBS_REFUSED);
        assert_int_equal(pt.failed, DIBS_REFUSED);
        assert_non_null(strstr(why.message, "lost"));
        assert_int_equal(i == 0 ? pt.lock : pt.state, DIBS_PART_FAILED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_break_stands_though_it_is_not_written_down),
        WORLD_TEST(a_break_is_written_down_without_its_holder),
        WORLD_TEST(reading_says_when_the_store_is_away),
        WORLD_TEST(a_sweep_that_was_begun_is_not_denied),
        WORLD_TEST(what_was_not_shared_is_shared_later),
        WORLD_TEST(closing_waits_once),
        WORLD_TEST(memory_runs_short),
        WORLD_TEST(health_of_a_store_that_is_away),
        WORLD_TEST(a_store_that_only_reads_is_read),
        WORLD_TEST(a_slow_store_is_degraded),
        WORLD_TEST(a_failed_check_leaves_little),
        WORLD_TEST(a_store_that_forgets_is_unfit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
