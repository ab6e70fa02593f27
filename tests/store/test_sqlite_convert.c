/* test_sqlite_convert.c - the embedded store where it takes a set of names or none,
 * turns leases, and rings those who are wanted or asked to yield. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

enum { NAMES = 5, THREADS = 4, ROUNDS = 60, SET_MAX = 8 };

static dibs__ask ask_for(const char *name, const char *who_owns, uint32_t flags)
{
    return (dibs__ask){.name = name,
                       .owner = who_owns,
                       .permits = 1,
                       .flags = flags,
                       .ttl_ms = WORLD_TTL_MS,
                       .who = "here:1 test"};
}

/* Asks for the names in order, each for the same owner. */
static dibs_status
all_of(dibs__store *st, const char *who_owns, const char *const *names,
       size_t count, dibs__answer *answers, size_t *blocked, dibs_error *err)
{
    dibs__ask asks[SET_MAX];

    for (size_t i = 0; i < count; i++)
        asks[i] = ask_for(names[i], who_owns, 0);
    return st->ops->lease->acquire_all(st, asks, count, soon(), answers,
                                       blocked, err);
}

static dibs_status
tell_lock(world *w, dibs__store *st, const char *name, unsigned n)
{
    dibs__ask ask = ask_for(name, owner(n), DIBS__ASK_TELL);
    dibs__answer ans;

    return st->ops->lease->acquire(st, &ask, soon(), &ans, &w->err);
}

static void doorbell_of(world *w, dibs__store *st)
{
    int fd;

    assert_status(st->ops->doorbell_open(st, soon(), &fd, &w->err), DIBS_OK);
}

/* Exactly one notice of this kind, for the n-th owner. */
static uint64_t
assert_notified(dibs__store *st, dibs__notice_kind kind, unsigned n)
{
    dibs__notice notices[4];

    assert_int_equal(st->ops->doorbell_read(st, notices, 4), 1);
    assert_int_equal(notices[0].kind, kind);
    assert_string_equal(notices[0].owner, owner(n));
    return notices[0].fence;
}

static void assert_silent(dibs__store *st)
{
    dibs__notice notice;

    assert_int_equal(st->ops->doorbell_read(st, &notice, 1), 0);
}

static uint64_t watermark(dibs__store *st)
{
    return dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE)->watermark;
}

static void assert_all_or_none(world *w, dibs__store *st)
{
    static const char *const names[] = {"a", "b", "c"};
    dibs__answer answers[3], again[3];
    size_t blocked = 9;
    uint64_t before;

    assert_status(all_of(st, owner(1), names, 3, answers, &blocked, &w->err),
                  DIBS_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(answers[i].fence > (i ? answers[i - 1].fence : 0));
        assert_int_equal(answers[i].left_ms / 1000, WORLD_TTL_MS / 1000);
        assert_false(answers[i].claim);
    }
    assert_status(all_of(st, owner(1), names, 3, again, &blocked, &w->err),
                  DIBS_OK);
    assert_int_equal(again[2].fence, answers[2].fence);

    assert_status(unlock(w, st, "a", 1), DIBS_OK);
    assert_status(unlock(w, st, "b", 1), DIBS_OK);
    before = watermark(st);
    assert_status(all_of(st, owner(2), names, 3, answers, &blocked, &w->err),
                  DIBS_BUSY);
    assert_int_equal(blocked, 2);
    assert_int_equal(answers[0].fence, 0);
    assert_string_equal(w->err.message, "`c` is held by here:1 test");
    assert_int_equal(watermark(st), before);
    assert_status(try_lock(w, st, "a", 3, NULL), DIBS_OK);
    assert_status(all_of(st, owner(2), names, 3, answers, &blocked, &w->err),
                  DIBS_BUSY);
    assert_int_equal(blocked, 0);
    assert_status(try_lock(w, st, "b", 3, NULL), DIBS_OK);
}

static void a_set_is_taken_whole_or_not_at_all(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    assert_all_or_none(w, st);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name > ''"),
                     3);
    dibs__store_close(st);
    st = world_open_url(w, "memory:");
    assert_all_or_none(w, st);
    dibs__store_close(st);
}

static void a_set_says_why_it_was_not_taken(void **state)
{
    static const char *const names[] = {"a", "b"};
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__ask permits = ask_for("b", owner(9), 0);
    dibs__leave leave = {.name = "b", .unanswered = true};
    dibs__answer answers[2];
    size_t blocked = 9;

    permits.mode = DIBS__PERMITS;
    permits.capacity = 3;
    assert_status(st->ops->lease->acquire(st, &permits, soon(), answers,
                                          &w->err),
                  DIBS_OK);
    assert_status(all_of(st, owner(1), names, 2, answers, &blocked, &w->err),
                  DIBS_MISMATCH);
    assert_int_equal(blocked, 1);
    leave.owner = owner(2);
    assert_status(st->ops->lease->release(st, &leave, soon(), &w->err),
                  DIBS_LOST);
    assert_status(all_of(st, owner(2), names, 2, answers, &blocked, &w->err),
                  DIBS_LOST);
    assert_int_equal(blocked, 1);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name = 'a'"),
                     0);
    dibs__store_close(st);
}

/* The hand-off to a waiter that a refused set would have made was not, so nobody
 * hears of it; it is made by the next step. */
static void a_set_that_is_not_taken_grants_nothing(void **state)
{
    static const char *const names[] = {"a", "b"};
    world *w = *state;
    dibs__store *st = world_open(w), *waiter = world_open(w);
    dibs__answer answers[2];
    size_t blocked = 9;

    doorbell_of(w, waiter);
    assert_status(try_lock(w, st, "b", 1, NULL), DIBS_OK);
    assert_status(queue_lock(w, waiter, "b", 2, NULL), DIBS_BUSY);
    world_sql(w->path,
              "UPDATE party SET until_us = 1 WHERE name = 'b' AND role = 0");
    assert_status(all_of(st, owner(3), names, 2, answers, &blocked, &w->err),
                  DIBS_BUSY);
    assert_int_equal(blocked, 1);
    assert_silent(waiter);
    assert_status(try_lock(w, st, "b", 3, NULL), DIBS_BUSY);
    assert_true(assert_notified(waiter, DIBS__NOTICE_GRANTED, 2) > 0);
    dibs__store_close(st);
    dibs__store_close(waiter);
}

static void who_keeps_others_out_is_told(void **state)
{
    static const char *const names[] = {"a", "b"};
    world *w = *state;
    dibs__store *holder = world_open(w), *st = world_open(w);
    dibs__answer answers[2];
    dibs__leave leave = {.name = "b"};
    size_t blocked = 9;

    doorbell_of(w, holder);
    assert_status(tell_lock(w, holder, "b", 1), DIBS_OK);
    assert_status(try_lock(w, st, "b", 2, NULL), DIBS_BUSY);
    assert_true(assert_notified(holder, DIBS__NOTICE_WANTED, 1) > 0);
    assert_status(queue_lock(w, st, "b", 3, NULL), DIBS_BUSY);
    assert_true(assert_notified(holder, DIBS__NOTICE_WANTED, 1) > 0);

    /* By a set too, although nothing is left of it. */
    assert_status(all_of(st, owner(4), names, 2, answers, &blocked, &w->err),
                  DIBS_BUSY);
    assert_true(assert_notified(holder, DIBS__NOTICE_WANTED, 1) > 0);
    assert_status(try_lock(w, st, "a", 5, NULL), DIBS_OK);
    assert_silent(holder);

    /* Whoever did not ask for it is not told. */
    leave.owner = owner(1);
    assert_status(holder->ops->lease->release(holder, &leave, soon(), &w->err),
                  DIBS_OK);
    assert_status(try_lock(w, holder, "c", 6, NULL), DIBS_OK);
    assert_status(try_lock(w, st, "c", 7, NULL), DIBS_BUSY);
    assert_silent(holder);
    dibs__store_close(holder);
    dibs__store_close(st);
}

static dibs_status
convert_to(world *w, dibs__store *st, uint64_t fence, dibs__mode mode,
           const char *to_owner, dibs__answer *ans)
{
    char from[DIBS_OWNER_SIZE];
    dibs__conversion turn = {.name = "a",
                             .owner = from,
                             .fence = fence,
                             .mode = mode,
                             .to_owner = to_owner,
                             .ttl_ms = 20000};

    snprintf(from, sizeof(from), "%032x", 1);
    return st->ops->lease->convert(st, &turn, soon(), ans, &w->err);
}

static void a_converted_lease_is_stored_as_such(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__renewal item = {.name = "a", .ttl_ms = 1000};
    dibs__answer ans, turned;

    doorbell_of(w, st);
    assert_status(try_lock(w, st, "a", 1, &ans), DIBS_OK);
    assert_status(convert_to(w, st, ans.fence, DIBS__SHARED, owner(1), &turned),
                  DIBS_OK);
    assert_int_equal(turned.fence, ans.fence);
    assert_true(turned.left_ms > 10000);
    assert_status(convert_to(w, st, ans.fence, DIBS__EXCLUSIVE, owner(2),
                             &turned),
                  DIBS_OK);
    assert_true(turned.fence > ans.fence);
    assert_status(convert_to(w, st, ans.fence, DIBS__PERMITS, owner(1),
                             &turned),
                  DIBS_LOST);
    dibs__store_close(st);

    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name = 'a' AND bell = ''"),
                     1);
    st = world_open(w);
    doorbell_of(w, st);
    assert_status(unlock(w, st, "a", 1), DIBS_LOST);
    item.owner = owner(2);
    item.fence = (uint64_t)world_number(w->path, "SELECT fence FROM party "
                                                 "WHERE name = 'a'");
    assert_status(st->ops->lease->renew(st, &item, 1, soon(), &w->err),
                  DIBS_OK);
    assert_status(item.rc, DIBS_OK);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name = 'a' AND bell > ''"),
                     1);
    assert_status(unlock(w, st, "a", 2), DIBS_OK);
    dibs__store_close(st);
}

static dibs_status
yield_a(world *w, dibs__store *st, uint64_t fence, uint32_t *asked)
{
    return st->ops->lease->yield(st, "a", fence, soon(), asked, &w->err);
}

/* It needs no lock of the database: another may be writing. */
static void holders_are_asked_to_yield(void **state)
{
    world *w = *state;
    dibs__store *holder = world_open(w), *st = world_open(w);
    sqlite3 *db = NULL;
    dibs__answer ans;
    uint32_t asked = 9;

    doorbell_of(w, holder);
    assert_status(yield_a(w, st, 0, &asked), DIBS_NOTFOUND);
    assert_int_equal(asked, 0);
    assert_status(try_lock(w, holder, "a", 1, &ans), DIBS_OK);
    assert_int_equal(dibs__sql.open_v2(w->path, &db, SQLITE_OPEN_READWRITE,
                                       NULL),
                     SQLITE_OK);
    assert_int_equal(dibs__sql.exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_status(yield_a(w, st, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 1);
    assert_int_equal(assert_notified(holder, DIBS__NOTICE_YIELD, 1), ans.fence);
    assert_status(yield_a(w, st, ans.fence, &asked), DIBS_OK);
    assert_int_equal(assert_notified(holder, DIBS__NOTICE_YIELD, 1), ans.fence);
    assert_status(yield_a(w, st, ans.fence + 1, &asked), DIBS_STALE);
    assert_silent(holder);
    assert_int_equal(dibs__sql.close(db), SQLITE_OK);

    /* Without a doorbell nobody is asked. */
    assert_status(unlock(w, holder, "a", 1), DIBS_OK);
    assert_status(try_lock(w, st, "a", 2, NULL), DIBS_OK);
    assert_status(yield_a(w, holder, 0, &asked), DIBS_OK);
    assert_int_equal(asked, 0);
    dibs__store_close(holder);
    dibs__store_close(st);
}

typedef struct taker {
    dibs__store *st;
    atomic_int *inside; /* how many hold each name */
    unsigned number;
    unsigned taken;
    bool wrong;
} taker;

/* Whether it is; a store that did not answer in time is lateness. */
static bool is_status(dibs_status rc, dibs_status wanted)
{
    if (rc != wanted && pace_explains(rc))
        MISSED("a step is %s", dibs_status_name(rc));
    return rc == wanted;
}

static void hold_set(taker *tk, const char *mine, const char *const *names,
                     const unsigned *at)
{
    for (int i = 0; i < 3; i++)
        tk->wrong |= atomic_fetch_add(&tk->inside[at[i]], 1) != 0;
    for (int i = 0; i < 3; i++) {
        dibs__leave leave = {.name = names[i], .owner = mine};
        dibs_error err;

        atomic_fetch_sub(&tk->inside[at[i]], 1);
        tk->wrong |= !is_status(tk->st->ops->lease->release(tk->st, &leave,
                                                            soon(), &err),
                                DIBS_OK);
    }
    tk->taken++;
}

static void *take_sets(void *arg)
{
    static const char *const all[NAMES] = {"a", "b", "c", "d", "e"};
    taker *tk = arg;
    dibs__answer answers[3];
    dibs_error err;
    size_t blocked;

    for (unsigned round = 0; round < ROUNDS || tk->taken == 0; round++) {
        unsigned first = (tk->number * 2 + round) % NAMES;
        unsigned step = 1 + (tk->number + round) % (NAMES - 1);
        unsigned at[3] = {first, (first + step) % NAMES,
                          (first + 2 * step) % NAMES};
        const char *names[3] = {all[at[0]], all[at[1]], all[at[2]]};
        char mine[DIBS_OWNER_SIZE];
        dibs_status rc;

        snprintf(mine, sizeof(mine), "%016x%016x", tk->number + 1, round);
        rc = all_of(tk->st, mine, names, 3, answers, &blocked, &err);
        if (rc == DIBS_OK)
            hold_set(tk, mine, names, at);
        else
            tk->wrong |= !is_status(rc, DIBS_BUSY);
    }
    return NULL;
}

/* Sets that overlap, in every order: none waits, so none can wait for ever, and
 * no name is ever in two of them. */
static void sets_exclude_each_other(void **state)
{
    world *w = *state;
    pthread_t threads[THREADS];
    taker takers[THREADS] = {0};
    atomic_int inside[NAMES];

    for (int i = 0; i < NAMES; i++)
        atomic_init(&inside[i], 0);
    for (unsigned i = 0; i < THREADS; i++) {
        takers[i].st = world_open(w);
        takers[i].inside = inside;
        takers[i].number = i;
        assert_int_equal(pthread_create(&threads[i], NULL, take_sets,
                                        &takers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_false(takers[i].wrong);
        assert_true(takers[i].taken > 0);
        dibs__store_close(takers[i].st);
    }
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name > ''"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_set_is_taken_whole_or_not_at_all),
        WORLD_TEST(a_set_says_why_it_was_not_taken),
        WORLD_TEST(a_set_that_is_not_taken_grants_nothing),
        WORLD_TEST(who_keeps_others_out_is_told),
        WORLD_TEST(a_converted_lease_is_stored_as_such),
        WORLD_TEST(holders_are_asked_to_yield),
        WORLD_TEST(sets_exclude_each_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
