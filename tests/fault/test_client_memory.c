/* test_client_memory.c - every public call with the n-th allocation failing, for
 * every n until none fails: the call says so, leaks nothing (the address
 * sanitizer looks) and leaves the store usable. */
/* SPDX-License-Identifier: MIT */
#include "fault_world.h"

#include "base/alloc.h"

#include <pthread.h>

/* No call makes more allocations than this. */
enum { ALLOCATIONS_MAX = 2000 };

/* One use of the library. DIBS_OK, or the status that ended it. */
typedef dibs_status scenario(world *w, dibs_error *err);

static void expect_usable(world *w)
{
    dibs_lock *lock = world_lock(w->other, "after", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    CHECK(DIBS_OK, dibs_state_set(w->other, "after", "x", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_delete(w->other, "after", DIBS_VERSION_ANY, err));
}

static void fail_each_allocation(world *w, scenario *run)
{
    unsigned long n;
    bool failed = true;

    for (n = 1; failed && n <= ALLOCATIONS_MAX; n++) {
        dibs_error err = {0};
        dibs_status rc;

        dibsx_alloc_fail_at(n);
        rc = run(w, &err);
        failed = dibsx_alloc_count() >= n;
        dibsx_alloc_fail_at(0);
        if (rc != DIBS_OK && (rc != DIBS_NOMEM || !failed))
            FAIL_OF(rc, "allocation %lu: status %d: %s", n, (int)rc,
                    err.message);
        if (rc == DIBS_NOMEM)
            assert_status(err.status, DIBS_NOMEM);
        expect_usable(w);
    }
    assert_false(failed);
}

static dibs_status open_and_close(world *w, dibs_error *err)
{
    dibs_client *cl = NULL;
    dibs_status rc =
        dibs_open(w->url, DIBS_CLIENT_OPTS(.prefix = "p:", .label = "l"), &cl,
                  err);

    assert_int_equal(rc == DIBS_OK, cl != NULL);
    dibs_close(cl);
    return rc;
}

static void opening(void **state)
{
    fail_each_allocation(*state, open_and_close);
}

/* Makes, acquires, looks at, renews and releases a lock. */
static dibs_status use_lock(dibs_client *cl, const char *name, dibs_error *err)
{
    dibs_lock *lock = NULL;
    dibs_status rc =
        dibs_lock_new(cl, name, DIBS_LOCK_OPTS(.wait_ms = 2000), &lock, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs_lock_acquire(lock, err);
    if (rc == DIBS_OK) {
        assert_true(dibs_lock_fence(lock) > 0);
        (void)dibs_lock_lost_fd(lock);
        rc = dibs_lock_renew(lock, err);
    }
    if (rc == DIBS_OK)
        rc = dibs_lock_release(lock, err);
    dibs_lock_free(lock);
    return rc;
}

static dibs_status lock_on_a_new_client(world *w, dibs_error *err)
{
    dibs_client *cl = NULL;
    dibs_status rc = dibs_open(w->url, NULL, &cl, err);

    if (rc == DIBS_OK)
        rc = use_lock(cl, "k", err);
    dibs_close(cl);
    return rc;
}

static void locking(void **state)
{
    fail_each_allocation(*state, lock_on_a_new_client);
}

static dibs_status lock_on_an_old_client(world *w, dibs_error *err)
{
    return use_lock(w->one, "k", err);
}

static void locking_again(void **state)
{
    fail_each_allocation(*state, lock_on_an_old_client);
}

typedef struct holder {
    dibs_lock *lock;
    dibs_client *waits; /* the client whose wait it ends */
    atomic_bool over;   /* ... or that has given up */
} holder;

static void *release_when_waited_for(void *arg)
{
    holder *hd = arg;
    dibs_stats stats = {.size = sizeof(stats)};
    dibs_error err = {0};

    do {
        world_sleep_ms(1);
        dibs_stats_get(hd->waits, &stats);
    } while (stats.waiting == 0 && !atomic_load(&hd->over));
    (void)dibs_lock_release(hd->lock, &err);
    return NULL;
}

/* A waiter is handed the lease by another client's release. */
static dibs_status wait_for_another(world *w, dibs_error *err)
{
    holder hd = {.waits = w->one};
    pthread_t thread;
    dibs_status rc =
        dibs_lock_new(w->other, "k", DIBS_LOCK_OPTS(.ttl_ms = 2000), &hd.lock,
                      err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs_lock_acquire(hd.lock, err);
    if (rc == DIBS_OK) {
        assert_int_equal(pthread_create(&thread, NULL, release_when_waited_for,
                                        &hd),
                         0);
        rc = use_lock(w->one, "k", err);
        atomic_store(&hd.over, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    dibs_lock_free(hd.lock);
    return rc;
}

static void waiting(void **state)
{
    fail_each_allocation(*state, wait_for_another);
}

typedef struct outcome {
    atomic_bool known;
    dibs_status rc;
    dibs_error *err;
} outcome;

static void
ended(dibs_lock *lock, dibs_status rc, const dibs_error *err, void *arg)
{
    outcome *out = arg;

    (void)lock;
    out->rc = rc;
    if (rc != DIBS_OK)
        *out->err = *err;
    atomic_store(&out->known, true);
}

static dibs_status await(outcome *out)
{
    while (!atomic_load(&out->known))
        world_sleep_ms(1);
    return out->rc;
}

static dibs_status lock_async(world *w, dibs_error *err)
{
    outcome got = {.err = err}, gone = {.err = err};
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    dibs_status rc = dibs_open(w->url, NULL, &cl, err);

    if (rc == DIBS_OK)
        rc =
            dibs_lock_new(cl, "k", DIBS_LOCK_OPTS(.wait_ms = 2000), &lock, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_acquire_async(lock, ended, &got, err);
    if (rc == DIBS_OK)
        rc = await(&got);
    if (rc == DIBS_OK)
        rc = dibs_lock_release_async(lock, ended, &gone, err);
    if (rc == DIBS_OK)
        rc = await(&gone);
    dibs_lock_free(lock);
    dibs_close(cl);
    return rc;
}

static void locking_without_blocking(void **state)
{
    fail_each_allocation(*state, lock_async);
}

static dibs_status leave_and_adopt(world *w, dibs_error *err)
{
    dibs_lock *left = NULL, *taken = NULL;
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    dibs_status rc = dibs_lock_new(w->one, "k", NULL, &left, err);

    if (rc == DIBS_OK)
        rc = dibs_lock_new(w->other, "k", NULL, &taken, err);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(left, err);
    if (rc == DIBS_OK) {
        dibs_lock_owner(left, owner);
        fence = dibs_lock_fence(left);
        dibs_lock_leave(left);
        rc = dibs_lock_adopt(taken, owner, fence, err);
        if (rc == DIBS_NOMEM) /* It stands until its ttl; not for the next. */
            assert_status(dibs_lock_adopt(taken, owner, fence, err), DIBS_OK);
        assert_status(dibs_lock_release(taken, NULL), DIBS_OK);
    }
    dibs_lock_free(left);
    dibs_lock_free(taken);
    return rc;
}

static void adopting(void **state)
{
    fail_each_allocation(*state, leave_and_adopt);
}

static void count_run(dibs_lock *lock, void *arg)
{
    int *runs = arg;

    assert_true(dibs_lock_fence(lock) > 0);
    ++*runs;
}

static dibs_status with_lock(world *w, dibs_error *err)
{
    int runs = 0;
    dibs_status rc = dibs_with_lock(w->one, "k", NULL, count_run, &runs, err);

    if (!pace_explains(rc)) /* The lease may have ended meanwhile. */
        assert_int_equal(runs, rc == DIBS_OK);
    return rc;
}

static void executing_with_lock(void **state)
{
    fail_each_allocation(*state, with_lock);
}

/* Without memory the block does not run; there is no status to see. */
static dibs_status scoped(world *w, dibs_error *err)
{
    int runs = 0;

    (void)err;
    DIBS_WITH_LOCK(w->one, "k", .ttl_ms = 5000)
    {
        assert_true(dibs_lock_fence(dibs_held) > 0);
        runs++;
    }
    assert_true(runs <= 1);
    return DIBS_OK;
}

static void executing_in_a_scope(void **state)
{
    fail_each_allocation(*state, scoped);
}

static bool any_item(const dibs_state_item *item, void *arg)
{
    (void)arg;
    return item->len > 0;
}

static dibs_status use_state(world *w, dibs_error *err)
{
    dibs_value value = {0};
    uint64_t version = 0;
    int64_t sum = 0;
    dibs_status rc = dibs_state_set(w->one, "v", "41", 2, 0, &version, err);

    if (rc == DIBS_OK)
        rc =
            dibs_state_cas(w->one, "v", version, "42", 2, 60000, &version, err);
    if (rc == DIBS_OK)
        rc = dibs_state_add(w->one, "v", 1, &sum, err);
    if (rc == DIBS_OK)
        rc = dibs_state_get(w->one, "v", &value, err);
    if (rc == DIBS_OK) {
        assert_string_equal(value.data, "43");
        rc = dibs_state_list(w->one, "v", any_item, NULL, err);
    }
    if (rc == DIBS_OK)
        rc = dibs_state_delete(w->one, "v", DIBS_VERSION_ANY, err);
    dibs_value_free(&value);
    return rc;
}

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    ++*(int *)arg;
    return true;
}

/* Commits twice, so that one is refused with what it found, and reads all of it. */
static dibs_status use_commits(world *w, dibs_error *err)
{
    dibs_commit_change changes[] = {
        {.verb = DIBS_COMMIT_PUT, .name = "{b}v", .data = "x", .len = 1},
        {.verb = DIBS_COMMIT_ENTER, .name = "{b}i", .member = "m", .at = 1}};
    dibs_commit_check check = {.key = "{b}v", .version = 1};
    dibs_commit commits[] = {{.changes = changes, .change_count = 2},
                             {.checks = &check, .check_count = 1}};
    dibs_index_look look = {.index = "{b}i", .up_to = 9, .limit = 9};
    const char *const keys[] = {"{b}v", "{b}v"};
    dibs_value values[2];
    int entries = 0;
    dibs_status rc = dibs_state_commit(w->one, commits, 2, err);

    assert_int_equal(commits[1].rc == DIBS_STALE, rc == DIBS_STALE);
    dibs_commit_free(commits, 2);
    if (rc != DIBS_STALE)
        return rc;
    rc = dibs_state_get_many(w->one, keys, 2, values, err);
    for (size_t i = 0; i < 2; i++)
        dibs_value_free(&values[i]);
    if (rc == DIBS_OK)
        rc = dibs_index_first(w->one, &look, 1, NULL, count_entry, &entries,
                              err);
    if (rc == DIBS_OK)
        assert_int_equal(entries, 1);
    return rc;
}

static void using_commits(void **state)
{
    fail_each_allocation(*state, use_commits);
}

static void using_state(void **state)
{
    fail_each_allocation(*state, use_state);
}

static bool any_lease(const dibs_lease_info *info, void *arg)
{
    (void)arg;
    return info->holder_count > 0;
}

static void any_finding(const dibs_finding *finding, void *arg)
{
    (void)finding;
    (void)arg;
}

static dibs_status monitor(world *w, dibs_error *err)
{
    dibs_status rc = dibs_lease_list(w->one, "", any_lease, NULL, err);
    uint32_t broken;

    if (rc == DIBS_OK)
        rc = dibs_lease_show(w->one, "held", any_lease, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_audit(w->one, any_finding, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_ping(w->one, NULL, err);
    if (rc == DIBS_OK) {
        rc = dibs_lease_break(w->one, "held", 1, "test", &broken, err);
        rc = rc == DIBS_STALE ? DIBS_OK : rc;
    }
    return rc;
}

static void monitoring(void **state)
{
    world *w = *state;
    dibs_lock *held = world_lock(w->other, "held", NULL);

    CHECK(DIBS_OK, dibs_lock_acquire(held, err));
    fail_each_allocation(w, monitor);
    CHECK(DIBS_OK, dibs_lock_release(held, err));
    dibs_lock_free(held);
}

static bool
any_breaker(const char *name, const dibs_breaker_info *info, void *arg)
{
    (void)name;
    (void)info;
    (void)arg;
    return true;
}

/* A breaker that cannot ask the store goes on alone, so that few of these fail. */
static dibs_status use_breaker(world *w, dibs_error *err)
{
    dibs_breaker *br = NULL;
    dibs_breaker_info info;
    dibs_pass pass;
    dibs_status rc =
        dibs_breaker_new(w->one, "guarded",
                         DIBS_BREAKER_OPTS(.threshold = 2, .recovery_ms = 1),
                         &br, err);

    if (rc != DIBS_OK)
        return rc;
    for (int i = 0; i < 4; i++)
        if (dibs_breaker_enter(br, &pass, NULL) == DIBS_OK)
            dibs_breaker_leave(br, &pass, i > 1);
    rc = dibs_breaker_get(br, &info, err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_force(br, DIBS_BREAKER_CLOSED, err);
    if (rc == DIBS_OK)
        rc = dibs_breaker_list(w->one, "guarded", any_breaker, NULL, err);
    dibs_breaker_free(br);
    return rc;
}

static void breaking(void **state)
{
    fail_each_allocation(*state, use_breaker);
}

/* The item is acked in the end: with a new attempt where memory was short. */
static dibs_status use_a_queue(world *w, dibs_error *err)
{
    dibs_client *cl = NULL;
    dibs_queue *q = NULL;
    dibs_item *item = NULL;
    dibs_status rc = dibs_open(w->url, NULL, &cl, err);

    if (rc == DIBS_OK)
        rc = dibs_queue_new(cl, "q", DIBS_QUEUE_OPTS(.prefetch = 1), &q, err);
    if (rc == DIBS_OK)
        rc = dibs_queue_push(q, "x", 1, NULL, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_queue_reserve(q, 2000, &item, err);
    if (rc == DIBS_OK)
        rc = dibs_item_nack(item, 0, "again", err);
    dibs_item_free(item);
    if (rc == DIBS_OK)
        rc = dibs_queue_reserve(q, 2000, &item, err);
    if (rc == DIBS_OK) {
        rc = dibs_item_ack(item, err);
        dibs_item_free(item);
    }
    dibs_queue_free(q);
    dibs_close(cl);
    return rc;
}

static void queues(void **state)
{
    fail_each_allocation(*state, use_a_queue);
}

/* The campaign goes on without memory, so that the wait has time for another try. */
static dibs_status use_election(world *w, dibs_error *err)
{
    dibs_election *el = NULL;
    dibs_leader leader;
    dibs_status rc =
        dibs_election_new(w->one, "leads",
                          DIBS_ELECTION_OPTS(.member = "m", .minimum_nodes = 1,
                                             .flags = DIBS_ELECTION_QUICK),
                          &el, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs_election_wait(el, WORLD_BOUND_MS, err);
    if (rc == DIBS_OK) {
        assert_true(dibs_election_term(el) > 0);
        rc = dibs_leader_get(w->one, "leads", &leader, err);
    }
    if (rc == DIBS_OK)
        assert_string_equal(leader.member, "m");
    if (rc == DIBS_OK)
        rc = dibs_election_resign(el, err);
    dibs_election_free(el);
    return rc;
}

static void elections(void **state)
{
    fail_each_allocation(*state, use_election);
}

static bool any_member(const dibs_member_info *info, void *arg)
{
    (void)arg;
    return info->fence > 0;
}

static bool any_group(const dibs_group_info *info, void *arg)
{
    (void)arg;
    return info->members > 0;
}

static dibs_status use_group(world *w, dibs_error *err)
{
    dibs_member *member = NULL;
    dibs_status rc =
        dibs_member_join(w->one, "group",
                         DIBS_MEMBER_OPTS(.flags = DIBS_MEMBER_QUICK), &member,
                         err);

    assert_int_equal(rc == DIBS_OK, member != NULL);
    if (rc == DIBS_OK)
        rc = dibs_member_recount(member, err);
    if (rc == DIBS_OK)
        rc = dibs_members_list(w->one, "group", any_member, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_group_list(w->one, "group", any_group, NULL, err);
    dibs_member_leave(member);
    return rc;
}

static void groups(void **state)
{
    fail_each_allocation(*state, use_group);
}

static bool
any_barrier(const char *name, const dibs_barrier_state *at, void *arg)
{
    (void)at;
    (void)arg;
    return *name;
}

static dibs_status use_barrier(world *w, dibs_error *err)
{
    dibs_barrier *barrier = NULL;
    dibs_barrier_state at;
    dibs_status rc =
        dibs_barrier_new(w->one, "meet",
                         DIBS_BARRIER_OPTS(.parties = 1,
                                           .wait_ms = WORLD_BOUND_MS),
                         &barrier, err);

    assert_int_equal(rc == DIBS_OK, barrier != NULL);
    if (rc == DIBS_OK)
        rc = dibs_barrier_wait(barrier, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_barrier_show(w->one, "meet", &at, NULL, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_barrier_list(w->one, "meet", any_barrier, NULL, err);
    dibs_barrier_free(barrier);
    return rc;
}

static void barriers(void **state)
{
    fail_each_allocation(*state, use_barrier);
}

static bool any_latch(const char *name, const dibs_latch_state *at, void *arg)
{
    (void)at;
    (void)arg;
    return *name;
}

static dibs_status use_latch(world *w, dibs_error *err)
{
    dibs_latch_state at;
    uint32_t left;
    dibs_status rc =
        dibs_latch_count_down(w->one, "latch", 1, "id", &left, err);

    if (rc == DIBS_OK)
        rc = dibs_latch_wait(w->one, "latch", 1, WORLD_BOUND_MS, err);
    if (rc == DIBS_OK)
        rc = dibs_latch_show(w->one, "latch", &at, err);
    if (rc == DIBS_OK)
        rc = dibs_latch_list(w->one, "latch", any_latch, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_latch_reset(w->one, "latch", err);
    return rc;
}

static void latches(void **state)
{
    fail_each_allocation(*state, use_latch);
}

static bool any_limit(const dibs_limit_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return true;
}

static dibs_status use_limit(world *w, dibs_error *err)
{
    dibs_limit *limit = NULL;
    dibs_status rc =
        dibs_limit_new(w->one, "limit",
                       DIBS_LIMIT_OPTS(.count = 100000, .wait_ms = 1000),
                       &limit, err);

    assert_int_equal(rc == DIBS_OK, limit != NULL);
    if (rc == DIBS_OK)
        rc = dibs_limit_take(limit, 1, err);
    if (rc == DIBS_OK)
        rc = dibs_limit_list(w->one, "limit", any_limit, NULL, err);
    dibs_limit_free(limit);
    return rc;
}

static void limits(void **state)
{
    fail_each_allocation(*state, use_limit);
}

static dibs_status use_watch(world *w, dibs_error *err)
{
    dibs_watch *watch = NULL;
    dibs_change change = {0};
    dibs_status rc = dibs_state_set(w->one, "seen", "x", 1, 0, NULL, err);

    if (rc == DIBS_OK)
        rc = dibs_state_watch(w->one, "seen", &watch, err);
    if (rc == DIBS_OK)
        rc = dibs_watch_next(watch, WORLD_BOUND_MS, &change, err);
    dibs_value_free(&change.value);
    dibs_watch_free(watch);
    return rc;
}

static void watches(void **state)
{
    fail_each_allocation(*state, use_watch);
}

static dibs_status read_topic(world *w, const char *group, dibs_error *err)
{
    dibs_reader *reader = NULL;
    dibs_event event;
    dibs_status rc =
        dibs_events_append(w->one, "topic", "x", 1, NULL, NULL, err);

    if (rc == DIBS_OK)
        rc = dibs_reader_new(w->one, "topic",
                             DIBS_READER_OPTS(.start = DIBS_FROM_START,
                                              .group = group),
                             &reader, err);
    if (rc == DIBS_OK)
        rc = dibs_reader_next(reader, WORLD_BOUND_MS, &event, err);
    if (rc == DIBS_OK && group)
        rc = dibs_reader_commit(reader, err);
    dibs_reader_free(reader);
    return rc;
}

static dibs_status use_reader(world *w, dibs_error *err)
{
    return read_topic(w, NULL, err);
}

static void readers(void **state)
{
    fail_each_allocation(*state, use_reader);
}

static dibs_status use_group_reader(world *w, dibs_error *err)
{
    return read_topic(w, "g", err);
}

static void readers_of_a_group(void **state)
{
    fail_each_allocation(*state, use_group_reader);
}

static void pass_event(const dibs_event *event, void *arg)
{
    (void)event;
    (void)arg;
}

static bool any_topic(const char *topic, const dibs_topic_state *at, void *arg)
{
    (void)at;
    (void)arg;
    return *topic;
}

static dibs_status use_subscription(world *w, dibs_error *err)
{
    dibs_subscription *sub = NULL;
    dibs_topic_state at;
    dibs_status rc =
        dibs_subscribe(w->one, "topic", NULL, pass_event, NULL, &sub, err);

    assert_int_equal(rc == DIBS_OK, sub != NULL);
    dibs_unsubscribe(sub);
    if (rc == DIBS_OK)
        rc = dibs_events_show(w->one, "topic", &at, err);
    if (rc == DIBS_OK)
        rc = dibs_events_list(w->one, "topic", any_topic, NULL, err);
    if (rc == DIBS_OK)
        rc = dibs_events_trim(w->one, "topic", UINT64_MAX, NULL, err);
    return rc;
}

static void subscriptions(void **state)
{
    fail_each_allocation(*state, use_subscription);
}

/* A message for which there was no memory is reported as missed. */
static dibs_status use_listener(world *w, dibs_error *err)
{
    dibs_listener *listener = NULL;
    dibs_message message;
    dibs_status rc = dibs_listener_new(w->one, "news", &listener, err);

    assert_int_equal(rc == DIBS_OK, listener != NULL);
    if (rc == DIBS_OK)
        rc = dibs_message_send(w->one, "news", "x", 1, err);
    if (rc == DIBS_OK)
        rc = dibs_listener_next(listener, WORLD_BOUND_MS, &message, err);
    if (rc == DIBS_OK)
        assert_int_equal(message.len, !message.missed);
    dibs_listener_free(listener);
    return rc;
}

static void listeners(void **state)
{
    fail_each_allocation(*state, use_listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(opening),
        WORLD_TEST(locking),
        WORLD_TEST(locking_again),
        WORLD_TEST(waiting),
        WORLD_TEST(locking_without_blocking),
        WORLD_TEST(adopting),
        WORLD_TEST(executing_with_lock),
        WORLD_TEST(executing_in_a_scope),
        WORLD_TEST(using_state),
        WORLD_TEST(using_commits),
        WORLD_TEST(monitoring),
        WORLD_TEST(breaking),
        WORLD_TEST(queues),
        WORLD_TEST(elections),
        WORLD_TEST(groups),
        WORLD_TEST(barriers),
        WORLD_TEST(latches),
        WORLD_TEST(limits),
        WORLD_TEST(watches),
        WORLD_TEST(readers),
        WORLD_TEST(readers_of_a_group),
        WORLD_TEST(subscriptions),
        WORLD_TEST(listeners),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
