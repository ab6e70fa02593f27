/* stats.c - statistics per name: this client's own, and those that clients share
 * through the store. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* What is said of one name, and where it stands among all. */
typedef struct sight {
    const char *name;
    dibs_client *cl;
    dibs_name_stats stats;
    size_t place; /* from 1; 0: it is not there */
    size_t count;
} sight;

static bool see(const dibs_name_stats *stats, void *arg)
{
    sight *st = arg;

    st->count++;
    assert_int_equal(stats->size, sizeof(*stats));
    if (strcmp(stats->name, st->name) == 0) {
        st->stats = *stats;
        st->place = st->count;
    }
    return true;
}

static sight own(dibs_client *cl, const char *name)
{
    sight st = {.name = name};

    CHECK(DIBS_OK, dibs_name_stats_own(cl, see, &st, err));
    return st;
}

static void check_spans(const dibs_spans *spans, uint64_t count)
{
    assert_int_equal(spans->count, count);
    assert_true(spans->p50_us <= spans->p95_us);
    assert_true(spans->p95_us <= spans->p99_us);
    assert_true(spans->p99_us <= spans->max_us);
}

static void turns(dibs_client *cl, const char *name, int count)
{
    dibs_lock *lock = core_lock(cl, name, NULL);

    for (int i = 0; i < count; i++) {
        CHECK(DIBS_OK, dibs_lock_try(lock, err));
        CHECK(DIBS_OK, dibs_lock_release(lock, err));
    }
    dibs_lock_free(lock);
}

static void what_became_of_each_acquire_is_counted(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    char name[64];
    dibs_lock *theirs;
    sight st;

    (void)state;
    snprintf(name, sizeof(name), "%s", core_name());
    assert_int_equal(own(cl, name).place, 0);
    turns(cl, name, 5);
    theirs = core_lock(other, name, NULL);
    st = own(cl, name);
    assert_int_equal(st.stats.attempts, 5);
    assert_int_equal(st.stats.acquired, 5);
    assert_int_equal(st.stats.released, 5);
    assert_int_equal(st.stats.contended, 0);
    check_spans(&st.stats.wait, 5);
    check_spans(&st.stats.hold, 5);

    CHECK(DIBS_OK, dibs_lock_try(theirs, err));
    {
        dibs_lock *ours =
            core_lock(cl, name, DIBS_LOCK_OPTS(.wait_ms = pace_ms(60)));

        CHECK(DIBS_BUSY, dibs_lock_try(ours, err));
        CHECK(DIBS_TIMEOUT, dibs_lock_acquire(ours, err));
        dibs_lock_free(ours);
    }
    st = own(cl, name);
    assert_int_equal(st.stats.attempts, 7);
    assert_int_equal(st.stats.acquired, 5);
    assert_int_equal(st.stats.busy, 2);
    assert_int_equal(st.stats.failed, 0);
    assert_int_equal(st.stats.contended, 2);
    assert_int_equal(own(other, name).stats.acquired, 1);
    dibs_lock_free(theirs);
    dibs_close(other);
    dibs_close(cl);
}

static void *wait_for_it(void *arg)
{
    CHECK(DIBS_OK, dibs_lock_acquire(arg, err));
    return NULL;
}

static bool is_attempted(void *arg)
{
    sight *st = arg;

    *st = (sight){.name = st->name, .cl = st->cl};
    CHECK(DIBS_OK, dibs_name_stats_own(st->cl, see, st, err));
    return st->stats.attempts == 1;
}

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

static bool is_waited_for(void *arg)
{
    sight *st = arg;
    size_t waiting = 0;

    return dibs_lease_show(st->cl, st->name, count_waiters, &waiting, NULL) ==
               DIBS_OK &&
           waiting == 1;
}

static void who_waits_is_an_attempt_and_then_contended(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    sight st = {.name = core_name(), .cl = cl};
    dibs_lock *theirs = core_lock(other, st.name, NULL);
    dibs_lock *ours = core_lock(cl, st.name, DIBS_LOCK_OPTS(.wait_ms = 20000));
    pthread_t thread;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(theirs, err));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_it, ours), 0);
    core_until(is_attempted, &st);
    assert_int_equal(st.stats.acquired, 0);
    core_until(is_waited_for, &st);
    CHECK(DIBS_OK, dibs_lock_release(theirs, err));
    pthread_join(thread, NULL);
    CHECK(DIBS_OK, dibs_lock_release(ours, err));
    st = own(cl, st.name);
    assert_int_equal(st.stats.attempts, 1);
    assert_int_equal(st.stats.acquired, 1);
    assert_int_equal(st.stats.contended, 1);
    assert_true(st.stats.wait.max_us > 0);
    dibs_lock_free(ours);
    dibs_lock_free(theirs);
    dibs_close(other);
    dibs_close(cl);
}

static void a_loss_is_counted(void **state)
{
    dibs_client *cl = core_open();
    const char *name = core_name();
    dibs_lock *lock =
        core_lock(cl, name,
                  DIBS_LOCK_OPTS(.ttl_ms = 300, .flags = DIBS_LOCK_NO_RENEW));
    sight st;

    (void)state;
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    do {
        poll(NULL, 0, 1);
        st = own(cl, name);
    } while (st.stats.lost == 0 && st.stats.released == 0);
    assert_int_equal(st.stats.lost, 1);
    assert_in_range(st.stats.hold.max_us, 50000, 60000000);
    dibs_lock_free(lock);
    assert_int_equal(own(cl, name).stats.lost, 1);
    assert_int_equal(own(cl, name).stats.released, 0);
    dibs_close(cl);
}

static void the_most_contended_is_first(void **state)
{
    dibs_client *cl = core_open();
    dibs_client *other = core_open();
    char quiet[64], busy[64];
    dibs_lock *theirs, *ours;

    (void)state;
    snprintf(quiet, sizeof(quiet), "%s", core_name());
    snprintf(busy, sizeof(busy), "%s", core_name());
    turns(cl, quiet, 20);
    theirs = core_lock(other, busy, NULL);
    ours = core_lock(cl, busy, NULL);
    CHECK(DIBS_OK, dibs_lock_try(theirs, err));
    CHECK(DIBS_BUSY, dibs_lock_try(ours, err));
    turns(cl, quiet, 1);
    assert_int_equal(own(cl, busy).place, 1);
    assert_int_equal(own(cl, quiet).place, 2);
    dibs_lock_free(ours);
    dibs_lock_free(theirs);
    dibs_close(other);
    dibs_close(cl);
}

static dibs_client *open_sharing(const char *prefix)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(core_url,
                    DIBS_CLIENT_OPTS(.prefix = prefix, .share_stats = true),
                    &cl, err));
    return cl;
}

static bool count_item(const dibs_state_item *item, void *arg)
{
    assert_non_null(strstr(item->key, "dibs.stats/"));
    ++*(size_t *)arg;
    return true;
}

static void clients_add_up_what_they_share(void **state)
{
    char prefix[80];
    dibs_client *reader = NULL;
    sight st = {.name = "n"}, none = {.name = "n"};
    size_t hidden = 0, shown = 0;

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    CHECK(DIBS_OK, dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix),
                             &reader, err));
    for (int i = 1; i <= 3; i++) {
        dibs_client *cl = open_sharing(prefix);

        turns(cl, "n", i);
        turns(cl, "other", 1);
        dibs_close(cl);
    }
    /* What a client does not share is its own. */
    turns(reader, "n", 7);
    CHECK(DIBS_OK, dibs_name_stats_shared(reader, NULL, see, &st, err));
    assert_int_equal(st.count, 2);
    assert_int_equal(st.stats.attempts, 6);
    assert_int_equal(st.stats.acquired, 6);
    assert_int_equal(st.stats.released, 6);
    check_spans(&st.stats.wait, 6);
    check_spans(&st.stats.hold, 6);
    CHECK(DIBS_OK, dibs_name_stats_shared(reader, "o", see, &none, err));
    assert_int_equal(none.count, 1);
    assert_int_equal(none.place, 0);
    CHECK(DIBS_INVALID, dibs_name_stats_shared(reader, "\n", see, &st, err));

    /* They are values, but not the program's. */
    CHECK(DIBS_OK, dibs_state_list(reader, NULL, count_item, &hidden, err));
    assert_int_equal(hidden, 0);
    CHECK(DIBS_OK,
          dibs_state_list(reader, "dibs.stats/", count_item, &shown, err));
    assert_int_equal(shown, 2);
    dibs_close(reader);
}

/* Two at the same time do not overwrite each other. */
enum { CLIENTS = 4, TURNS = 25 };

static void *share_some(void *arg)
{
    dibs_client *cl = open_sharing(arg);

    for (int i = 0; i < TURNS; i++) {
        dibs_lock *lock = core_lock(cl, "n", DIBS_LOCK_OPTS(.wait_ms = 20000));

        CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
        dibs_lock_free(lock);
    }
    dibs_close(cl);
    return NULL;
}

static void nothing_is_lost_between_them(void **state)
{
    dibs_client *reader;
    pthread_t threads[CLIENTS];
    sight st = {.name = "n"};
    char prefix[80];

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    reader = open_sharing(prefix);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, share_some, prefix),
                         0);
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_join(threads[i], NULL);
    CHECK(DIBS_OK, dibs_name_stats_shared(reader, "", see, &st, err));
    assert_int_equal(st.stats.acquired, CLIENTS * TURNS);
    assert_int_equal(st.stats.released, CLIENTS * TURNS);
    assert_int_equal(st.stats.wait.count, CLIENTS * TURNS);
    dibs_close(reader);
}

static bool is_shared(void *arg)
{
    sight *st = arg;

    CHECK(DIBS_OK, dibs_name_stats_shared(st->cl, NULL, see, st, err));
    return st->place > 0;
}

static void they_are_shared_while_the_client_is_open(void **state)
{
    sight st = {.name = "n"};
    char prefix[80];

    (void)state;
    snprintf(prefix, sizeof(prefix), "%s:", core_name());
    st.cl = open_sharing(prefix);
    turns(st.cl, "n", 2);
    core_until(is_shared, &st);
    assert_int_equal(st.stats.acquired, 2);
    dibs_close(st.cl);
}

int core_stats_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_became_of_each_acquire_is_counted),
        cmocka_unit_test(who_waits_is_an_attempt_and_then_contended),
        cmocka_unit_test(a_loss_is_counted),
        cmocka_unit_test(the_most_contended_is_first),
        cmocka_unit_test(clients_add_up_what_they_share),
        cmocka_unit_test(nothing_is_lost_between_them),
        cmocka_unit_test(they_are_shared_while_the_client_is_open),
    };

    return cmocka_run_group_tests_name("stats", tests, NULL, NULL);
}
