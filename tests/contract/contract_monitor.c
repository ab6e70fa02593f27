/* contract_monitor.c - looking at leases, taking them away, looking the store
 * over. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <stdlib.h>

static dibs_status
take(contract *t, uint64_t fence, uint32_t *broken, dibs_error *err)
{
    return t->st[2]->ops->lease->revoke(t->st[2], t->name, fence,
                                        contract_soon(), broken, err);
}

static void an_unused_name_is_not_found(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    contract_view view;

    assert_int_equal(contract_look(t, t->name, &view), 0);
    assert_status(actor_try(&a), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_status(actor_leave(&a, true, 0), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 0);
}

static void a_holder_is_shown_as_it_asked(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    contract_view view;
    const dibs__entry *e = &view.entries[0];

    a.ask.mode = DIBS__PERMITS;
    a.ask.permits = 3;
    a.ask.capacity = 7;
    a.ask.priority = -4;
    a.ask.ttl_ms = 12345;
    a.ask.who = "büro-7:4711 nightly \"backup\" {x}";
    assert_status(actor_try(&a), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_string_equal(e->owner, a.owner);
    assert_true(e->holder && !e->claim && !e->left);
    assert_int_equal(e->mode, DIBS__PERMITS);
    assert_int_equal(e->permits, 3);
    assert_int_equal(e->capacity, 7);
    assert_int_equal(e->priority, -4);
    assert_int_equal(e->fence, a.ans.fence);
    assert_int_equal(e->ttl_ms, 12345);
    assert_true(e->age_ms >= 0 && e->age_ms < 10000);
    assert_true(e->left_ms > 0 && e->left_ms <= 12345);
    assert_string_equal(e->who, a.ask.who);
}

static void look_at_who(contract *t, const char *who, char out[DIBS__WHO_MAX])
{
    actor a = contract_actor(t, 0);
    contract_view view;

    a.ask.who = who;
    assert_status(actor_try(&a), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    memcpy(out, view.entries[0].who, DIBS__WHO_MAX);
    assert_status(actor_release(&a), DIBS_OK);
}

static void a_long_who_is_cut_to_fit(void **state)
{
    contract *t = *state;
    char who[DIBS__WHO_MAX + 80], seen[DIBS__WHO_MAX];

    memset(who, 'w', sizeof(who) - 1);
    who[sizeof(who) - 1] = '\0';
    look_at_who(t, who, seen);
    assert_true(strlen(seen) >= DIBS__WHO_PLAIN - 1);
    assert_memory_equal(seen, who, strlen(seen));
    who[20] = '\t'; /* metadata follows */
    look_at_who(t, who, seen);
    assert_int_equal(strlen(seen), DIBS__WHO_MAX - 1);
    assert_memory_equal(seen, who, DIBS__WHO_MAX - 1);
    who[DIBS__WHO_MAX - 1] = '\0';
    look_at_who(t, who, seen);
    assert_string_equal(seen, who);
}

static void metadata_is_shown_as_it_was_given(void **state)
{
    contract *t = *state;
    const char *who = "büro-7:4711/worker 3 nightly \"run\"\tjob=a b\t"
                      "path={x}:%s\\\tempty=\tlong="
                      "0123456789012345678901234567890123456789012345678901234";
    actor a = contract_actor(t, 0);
    actor b = contract_actor(t, 1);
    actor reader = contract_sharer(t, 2);
    contract_view view;

    a.ask.who = b.ask.who = reader.ask.who = who;
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(actor_queue(&b), DIBS_BUSY);
    assert_non_null(strstr(b.err.message, "büro-7:4711"));
    assert_null(strstr(b.err.message, "job=")); /* that is not for a message */
    assert_status(actor_queue(&reader), DIBS_BUSY);
    assert_int_equal(contract_look(t, t->name, &view), 3);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(view.entries[i].who, who);
    assert_status(actor_release(&a), DIBS_OK);
    actor_expect_claim(&b);
    assert_status(actor_release(&b), DIBS_OK);
    actor_expect_claim(&reader);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_string_equal(view.entries[0].who, who);
}

static void holders_come_first_then_waiters_as_they_are_served(void **state)
{
    contract *t = *state;
    actor readers[2], waiters[3];
    const size_t order[3] = {2, 0, 1};
    contract_view view;

    for (size_t i = 0; i < 2; i++) {
        readers[i] = contract_actor(t, i);
        readers[i].ask.mode = DIBS__SHARED;
        assert_status(actor_try(&readers[i]), DIBS_OK);
    }
    for (size_t i = 0; i < 3; i++) {
        waiters[i] = contract_actor(t, i);
        waiters[i].ask.priority = i == 2 ? 9 : 0;
        assert_status(actor_queue(&waiters[i]), DIBS_BUSY);
    }
    assert_int_equal(contract_look(t, t->name, &view), 5);
    for (size_t i = 0; i < 2; i++) {
        assert_true(view.entries[i].holder);
        assert_int_equal(view.entries[i].mode, DIBS__SHARED);
        assert_true(view.entries[i].fence > 0);
    }
    for (size_t i = 0; i < 3; i++) {
        const dibs__entry *e = &view.entries[2 + i];

        assert_string_equal(e->owner, waiters[order[i]].owner);
        assert_false(e->holder);
        assert_int_equal(e->fence, 0);
        assert_true(e->left_ms > 0 && e->left_ms <= DIBS__PLACE_MS);
        assert_true(e->age_ms >= 0);
    }
}

static void age_counts_from_the_grant(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    dibsx_nsec granted_at;
    contract_view view;

    assert_status(actor_try(&a), DIBS_OK);
    granted_at = dibsx_now();
    contract_sleep_until(dibsx_after_ms(granted_at, 100));
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_true(view.entries[0].age_ms >= 100 - CONTRACT_DRIFT_MS);
    assert_true(view.entries[0].left_ms > 15000);
}

enum { LISTED = 8 };

typedef struct listing {
    contract *t;
    char names[LISTED][DIBS_NAME_MAX + 1];
    size_t entries[LISTED];
    size_t count;
    size_t stop_after;
} listing;

static bool
collect(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    listing *seen = arg;
    contract_view view;

    assert_true(seen->count < LISTED);
    assert_true(entries[0].holder);
    snprintf(seen->names[seen->count], sizeof(seen->names[0]), "%s", name);
    seen->entries[seen->count++] = count;
    /* The store is not locked: it may be used in here. */
    assert_int_equal(contract_look(seen->t, name, &view), count);
    return seen->count != seen->stop_after;
}

static void list(contract *t, const char *begins, listing *seen)
{
    dibs_error err = {0};

    assert_status(t->st[0]->ops->lease->list(t->st[0], begins, contract_soon(),
                                             collect, seen, &err),
                  DIBS_OK);
}

static void names_are_listed_in_order_by_how_they_begin(void **state)
{
    contract *t = *state;
    const char *last[] = {"z", "%d", "a b", "{t}", "名前", "A", "_"};
    const char *sorted[] = {"%d", "A", "_", "a b", "z", "{t}", "名前"};
    listing seen = {.t = t}, few = {.t = t, .stop_after = 2};
    char name[96], begins[80];

    for (size_t i = 0; i < 7; i++) {
        actor a = contract_actor(t, 0);
        actor waiter = contract_actor(t, 1);

        snprintf(name, sizeof(name), "%s/%s", t->name, last[i]);
        a.ask.name = waiter.ask.name = name;
        assert_status(actor_try(&a), DIBS_OK);
        if (i == 0)
            assert_status(actor_queue(&waiter), DIBS_BUSY);
    }
    snprintf(begins, sizeof(begins), "%s/", t->name);
    list(t, begins, &seen);
    assert_int_equal(seen.count, 7);
    for (size_t i = 0; i < 7; i++) {
        snprintf(name, sizeof(name), "%s/%s", t->name, sorted[i]);
        assert_string_equal(seen.names[i], name);
        assert_int_equal(seen.entries[i], i == 4 ? 2 : 1);
    }
    list(t, begins, &few);
    assert_int_equal(few.count, 2);
}

static void a_beginning_is_plain_text_not_a_pattern(void **state)
{
    contract *t = *state;
    const char *wild[] = {"%", "_", "*", "?", "[a-z]"};
    actor a = contract_actor(t, 0);
    listing all = {.t = t};

    assert_status(actor_try(&a), DIBS_OK);
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        listing seen = {.t = t};
        char begins[80];

        snprintf(begins, sizeof(begins), "%.*s%s", (int)strlen(t->name) - 1,
                 t->name, wild[i]);
        list(t, begins, &seen);
        assert_int_equal(seen.count, 0);
    }
    list(t, t->name, &all);
    assert_int_equal(all.count, 1);
}

static void break_ends_the_lease_with_the_fence(void **state)
{
    contract *t = *state;
    actor one = contract_actor(t, 0);
    actor two = contract_actor(t, 1);
    uint64_t notified = 0;
    uint32_t broken = 0;

    one.ask.mode = two.ask.mode = DIBS__SHARED;
    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(take(t, one.ans.fence, &broken, &one.err), DIBS_OK);
    assert_int_equal(broken, 1);
    IN_TIME(actor_notified(&one, DIBS__NOTICE_BROKEN, &notified));
    assert_int_equal(notified, one.ans.fence);
    assert_status(actor_renew(&one, 60000, NULL), DIBS_LOST);
    assert_status(actor_release(&one), DIBS_LOST);
    assert_status(actor_renew(&two, 60000, NULL), DIBS_OK);
    assert_false(actor_hears(&two, DIBS__NOTICE_BROKEN));
}

static void break_of_all_serves_the_queue(void **state)
{
    contract *t = *state;
    actor one = contract_actor(t, 0);
    actor two = contract_actor(t, 1);
    actor writer = contract_actor(t, 2);
    uint64_t notified = 0;
    uint32_t broken = 0;

    one.ask.mode = two.ask.mode = DIBS__SHARED;
    assert_status(actor_try(&one), DIBS_OK);
    assert_status(actor_try(&two), DIBS_OK);
    assert_status(actor_queue(&writer), DIBS_BUSY);
    assert_status(take(t, 0, &broken, &one.err), DIBS_OK);
    assert_int_equal(broken, 2);
    actor_expect_claim(&writer);
    IN_TIME(actor_notified(&one, DIBS__NOTICE_BROKEN, &notified));
    IN_TIME(actor_notified(&two, DIBS__NOTICE_BROKEN, &notified));
    assert_int_equal(notified, two.ans.fence);
}

static void break_under_another_fence_changes_nothing(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    uint32_t broken = 0;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(take(t, a.ans.fence - 1, &broken, &a.err), DIBS_STALE);
    assert_status(a.err.status, DIBS_STALE);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
    assert_status(actor_release(&a), DIBS_OK);
    assert_status(take(t, 0, &broken, &a.err), DIBS_NOTFOUND);
    assert_status(take(t, a.ans.fence, &broken, &a.err), DIBS_NOTFOUND);
}

static void the_store_tells_the_time(void **state)
{
    contract *t = *state;
    const int64_t day_us = INT64_C(86400) * 1000000;
    int64_t one = 0, two = 0;
    dibs_error err = {0};

    assert_status(t->st[0]->ops->now(t->st[0], contract_soon(), &one, &err),
                  DIBS_OK);
    assert_status(t->st[1]->ops->now(t->st[1], contract_soon(), &two, &err),
                  DIBS_OK);
    assert_true(llabs(one - dibsx_wall_us()) < day_us);
    assert_true(llabs(two - one) < 60 * 1000000);
}

static void count_finding(const dibs_finding *finding, void *arg)
{
    size_t *count = arg;

    assert_true(finding->severity >= DIBS_FINE);
    assert_true(finding->severity <= DIBS_DANGER);
    assert_true(finding->subject && strlen(finding->subject) > 0);
    assert_true(finding->found && strlen(finding->found) > 0);
    if (finding->severity >= DIBS_CAUTION)
        assert_true(finding->advice && strlen(finding->advice) > 0);
    ++*count;
}

static void an_audit_has_findings_and_changes_nothing(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    contract_view view;
    dibs_error err = {0};
    size_t count = 0;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(t->st[1]->ops->audit(t->st[1], contract_soon(), count_finding,
                                       &count, &err),
                  DIBS_OK);
    assert_true(count > 0);
    assert_int_equal(contract_look(t, t->name, &view), 1);
    assert_status(actor_renew(&a, 20000, NULL), DIBS_OK);
}

static void a_past_deadline_tells_nothing(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    dibsx_nsec past = dibsx_now() - DIBSX_SEC, began_at = dibsx_now();
    listing seen = {.t = t};
    actor a = contract_actor(t, 0);
    int64_t store_wall_us;

    assert_status(actor_try(&a), DIBS_OK);
    assert_status(st->ops->lease->inspect(st, t->name, past, collect, &seen,
                                          &a.err),
                  DIBS_UNAVAIL);
    assert_status(st->ops->lease->list(st, t->name, past, collect, &seen,
                                       &a.err),
                  DIBS_UNAVAIL);
    assert_int_equal(seen.count, 0);
    assert_status(st->ops->now(st, past, &store_wall_us, &a.err), DIBS_UNAVAIL);
    IN_TIME(contract_ms_since(began_at) < pace_ms(1000));
}

int contract_monitor(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(an_unused_name_is_not_found),
        CONTRACT_TEST(a_holder_is_shown_as_it_asked),
        CONTRACT_TEST(a_long_who_is_cut_to_fit),
        CONTRACT_TEST(metadata_is_shown_as_it_was_given),
        CONTRACT_TEST(holders_come_first_then_waiters_as_they_are_served),
        CONTRACT_TEST(age_counts_from_the_grant),
        CONTRACT_TEST(names_are_listed_in_order_by_how_they_begin),
        CONTRACT_TEST(a_beginning_is_plain_text_not_a_pattern),
        CONTRACT_TEST(break_ends_the_lease_with_the_fence),
        CONTRACT_TEST(break_of_all_serves_the_queue),
        CONTRACT_TEST(break_under_another_fence_changes_nothing),
        CONTRACT_TEST(the_store_tells_the_time),
        CONTRACT_TEST(an_audit_has_findings_and_changes_nothing),
        CONTRACT_TEST(a_past_deadline_tells_nothing),
    };

    return cmocka_run_group_tests_name("monitor", tests, NULL, NULL);
}
