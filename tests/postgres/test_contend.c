/* test_contend.c - many processes want one name, and some are killed all the time,
 * in whatever they do: while the server is up, somebody gets it.
 *
 *   test_postgres_contend [CONTENDERS SECONDS]
 *
 * Each notes in memory that all share when it was granted the name. */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "pg_world.h"
#include "store/store.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TTL_MS = 4000, HOLD_MS = 2, STEP_MS = 2000, KILL_EVERY_MS = 1000 };
enum { MANY_MAX = 256 };

#define OURS "FROM pg_stat_activity WHERE application_name = 'dibs'"

typedef struct rush {
    atomic_bool over;
    atomic_int wrong;
    atomic_int late; /* holders that did not run until their lease had ended */
    atomic_int turns;
    _Atomic(uint64_t) last_fence;
    _Atomic(dibsx_nsec) last_at; /* granted */
    _Atomic(dibsx_nsec) gap;     /* between two grants, at most */
} rush;

static int many = 16;
static int seconds = 6;

static rush *rush_map(int fd)
{
    rush *all =
        mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return all == MAP_FAILED ? NULL : all;
}

static void note_gap(rush *all, dibsx_nsec gap)
{
    dibsx_nsec most = atomic_load(&all->gap);

    while (gap > most && !atomic_compare_exchange_weak(&all->gap, &most, gap))
        ;
}

static void take_turn(rush *all, dibs_lock *lock)
{
    dibsx_nsec now = dibsx_now();
    uint64_t fence = dibs_lock_fence(lock);

    note_gap(all, now - atomic_exchange(&all->last_at, now));
    if (fence <= atomic_exchange(&all->last_fence, fence))
        atomic_fetch_add(dibs_lock_check(lock) == DIBS_OK ? &all->wrong
                                                          : &all->late,
                         1);
    atomic_fetch_add(&all->turns, 1);
    world_sleep_ms(HOLD_MS);
}

/* Wants it again and again. */
static int contend(char **words)
{
    rush *all = rush_map((int)strtol(words[1], NULL, 10));
    dibs_client *cl = NULL;
    dibs_lock *lock;

    while (dibs_open(words[0], DIBS_CLIENT_OPTS(.timeout_ms = STEP_MS), &cl,
                     NULL) != DIBS_OK)
        world_sleep_ms(20);
    lock = world_lock(cl, "contended",
                      DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = 600000));
    while (!atomic_load(&all->over))
        if (dibs_lock_acquire(lock, NULL) == DIBS_OK) {
            take_turn(all, lock);
            (void)dibs_lock_release(lock, NULL);
        }
    dibs_lock_free(lock);
    dibs_close(cl);
    return 0;
}

/* Ends one after the other, and has another take its place. */
static long long
kill_some(rush *all, pid_t *pids, const char *url, const char *fd)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), seconds * 1000);
    long long connections = 0;
    unsigned next = 0;

    while (dibsx_now() < end) {
        long long count = pg_number(&world_sv, "SELECT count(*) " OURS);

        connections = count > connections ? count : connections;
        world_sleep_ms(KILL_EVERY_MS);
        next = (next * 31 + 7) % (unsigned)many;
        kill(pids[next], SIGKILL);
        waitpid(pids[next], NULL, 0);
        pids[next] = child_start("contend", url, fd, NULL);
        assert_true(pids[next] > 0);
    }
    note_gap(all, dibsx_now() - atomic_load(&all->last_at));
    return connections;
}

static void somebody_of_many_gets_it(void **state)
{
    char url[PG_URL_MAX], fd_word[16];
    int fd = memfd_create("rush", 0);
    pid_t pids[MANY_MAX];
    long long connections;
    rush *all;

    (void)state;
    assert_int_equal(ftruncate(fd, sizeof(rush)), 0);
    all = rush_map(fd);
    assert_non_null(all);
    pg_url(&world_sv, url);
    for (int i = 0; i < many; i++) {
        pids[i] = child_start("contend", url, child_fd(fd, fd_word), NULL);
        assert_true(pids[i] > 0);
    }
    while (atomic_load(&all->turns) < many)
        world_sleep_ms(10);
    atomic_store(&all->gap, 0);
    connections = kill_some(all, pids, url, fd_word);
    print_message("%d contenders: %d turns, %lld connections, no grant for "
                  "%lld ms at most\n",
                  many, atomic_load(&all->turns), connections,
                  (long long)(atomic_load(&all->gap) / DIBSX_MS));
    for (int i = 0; i < many; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < many; i++)
        waitpid(pids[i], NULL, 0);
    assert_int_equal(atomic_load(&all->wrong), 0);
    IN_TIME(atomic_load(&all->late) == 0);
    /* One for each, and a second for those of whom two steps have met. The
     * server may be late to notice that a client was killed. */
    IN_TIME(connections <= many * 9 / 4);
    IN_TIME(atomic_load(&all->gap) <= pace_ms(TTL_MS + 1000) * DIBSX_MS);
    munmap(all, sizeof(*all));
    close(fd);
}

/* Locks the row of a name, as one who is slow would; end it with PQfinish(). */
static PGconn *lock_row(const char *name)
{
    PGconn *slow = pg_connect(&world_sv);
    char sql[128];

    assert_non_null(slow);
    snprintf(sql, sizeof(sql),
             "BEGIN; SELECT FROM dibs.roll WHERE name = '%s' FOR UPDATE", name);
    PQclear(PQexec(slow, sql));
    assert_int_equal(PQtransactionStatus(slow), PQTRANS_INTRANS);
    return slow;
}

static dibsx_nsec in_bound(void)
{
    return dibsx_after_ms(dibsx_now(), pace_ms(2000));
}

static void await_in_line(long long count, int64_t bound_ms)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), bound_ms);

    while (pg_number(&world_sv, "SELECT count(*) " OURS
                                " AND wait_event_type = 'Lock'") != count) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(5);
    }
}

/* Makes a name known: only then is there a row to lock. */
static void make_name(dibs_client *cl, const char *name)
{
    dibs_lock *lock = world_lock(cl, name, NULL);

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

/* The server does not go on to wait when nobody waits for it any more, and the
 * caller knows that nothing was done. */
static void a_step_leaves_the_line_with_its_deadline(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;
    PGconn *slow;
    dibs_status rc;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, pace_ms(1000));
    make_name(cl, "line");
    lock = world_lock(cl, "line", NULL);
    slow = lock_row("line");
    rc = dibs_lock_try(lock, NULL);
    await_in_line(0, pace_ms(1000));
    assert_int_equal(dibs_lock_fence(lock), 0);
    IN_TIME(rc == DIBS_UNAVAIL);
    PQfinish(slow);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* One who waits and asks again does not stand in line with those who change
 * something: it is answered while the row is locked. */
static void a_place_is_kept_without_the_line(void **state)
{
    dibs__ask holder = {.name = "place",
                        .owner = "00000000000000000000000000000001",
                        .permits = 1,
                        .ttl_ms = 60000,
                        .who = "host:1"};
    dibs__ask waiter = holder;
    dibs__store *st = NULL;
    char url[PG_URL_MAX];
    dibs__answer ans;
    PGconn *slow;

    (void)state;
    waiter.owner = "00000000000000000000000000000002";
    waiter.flags = DIBS__ASK_QUEUE;
    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs__store_open(url, in_bound(), &st, err));
    CHECK(DIBS_OK, st->ops->lease->acquire(st, &holder, in_bound(), &ans, err));
    CHECK(DIBS_BUSY,
          st->ops->lease->acquire(st, &waiter, in_bound(), &ans, err));
    slow = lock_row("place");
    CHECK(DIBS_BUSY,
          st->ops->lease->acquire(st, &waiter, in_bound(), &ans, err));
    assert_true(ans.queued);
    assert_int_equal(ans.ahead, 0);
    assert_true(ans.left_ms > 0 && ans.left_ms <= 60000);
    PQfinish(slow);
    dibs__store_close(st);
}

enum { STORES = 3, THREADS = 8, ROUNDS = 15, CAPACITY = 3 };

typedef struct asker {
    dibs__store *st;
    char owner[DIBS_OWNER_SIZE];
    pthread_t thread;
} asker;

/* Takes turns, on a store that it shares with other threads; while it waits it asks
 * far more often than a client does. */
static void *take_turns(void *arg)
{
    asker *me = arg;
    const dibs__lease_ops *ops = me->st->ops->lease;
    dibs__ask ask = {.name = "batched",
                     .owner = me->owner,
                     .mode = DIBS__PERMITS,
                     .permits = 1,
                     .capacity = CAPACITY,
                     .ttl_ms = 60000,
                     .flags = DIBS__ASK_QUEUE,
                     .who = "host:1"};
    dibs__leave leave = {.name = ask.name, .owner = ask.owner};
    dibs__answer ans;
    dibs_status rc;

    for (int i = 0; i < ROUNDS; i++) {
        while (ops->acquire(me->st, &ask, in_bound(), &ans, NULL) != DIBS_OK)
            world_sleep_ms(1);
        rc = ops->release(me->st, &leave, in_bound(), NULL);
        (void)rc;
    }
    return NULL;
}

static void ask_all_at_once(dibs__store *stores[STORES])
{
    asker askers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        askers[i].st = stores[i % STORES];
        snprintf(askers[i].owner, DIBS_OWNER_SIZE, "%032d", i + 1);
        assert_int_equal(pthread_create(&askers[i].thread, NULL, take_turns,
                                        &askers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(askers[i].thread, NULL);
}

/* No transaction was ended to break a circle. The server adds up what its processes saw
 * when these end. */
static void expect_no_deadlock(dibs__store *stores[STORES])
{
    for (int i = 0; i < STORES; i++)
        dibs__store_close(stores[i]);
    while (pg_number(&world_sv, "SELECT count(*) " OURS) != 0)
        world_sleep_ms(5);
    assert_int_equal(pg_number(&world_sv,
                               "SELECT deadlocks FROM pg_stat_database WHERE "
                               "datname = current_database()"),
                     0);
}

static void open_stores(dibs__store *stores[STORES])
{
    char url[PG_URL_MAX];

    pg_url(&world_sv, url);
    for (int i = 0; i < STORES; i++)
        CHECK(DIBS_OK, dibs__store_open(url, in_bound(), &stores[i], err));
}

enum { COMMIT_THREADS = 6, COMMIT_ROUNDS = 25, COMMIT_NAMES = 4 };

typedef struct committer {
    dibs__store *st;
    int number;
    int done;
    pthread_t thread;
} committer;

/* Changes to all names, forwards or backwards. Some values come and go, some are
 * checked to be absent. */
static void
make_commit(const committer *me, int round, bool backwards, dibs__check *check,
            dibs__change *changes, dibs__commit *out)
{
    static const char *const keys[COMMIT_NAMES] = {"{c}a", "{c}b", "{c}c",
                                                   "{c}d"};
    static const char *const members[COMMIT_NAMES] = {"a", "b", "c", "d"};

    for (int i = 0; i < COMMIT_NAMES; i++) {
        int at = backwards ? COMMIT_NAMES - 1 - i : i;
        bool leaves = (at + round + me->number) % 2 == 0;

        changes[2 * i] = (dibs__change){.verb = leaves ? DIBS__CHANGE_DELETE
                                                       : DIBS__CHANGE_PUT,
                                        .key = keys[at],
                                        .data = "x",
                                        .len = 1};
        changes[2 * i + 1] = (dibs__change){.verb = leaves ? DIBS__CHANGE_LEAVE
                                                           : DIBS__CHANGE_ENTER,
                                            .key = keys[at / 2],
                                            .member = members[at],
                                            .uncounted = round % 8 != 0};
    }
    *check = (dibs__check){.key = keys[round % COMMIT_NAMES]};
    *out = (dibs__commit){.checks = check,
                          .check_count = round % 2 ? 1 : 0,
                          .changes = changes,
                          .change_count = 2 * COMMIT_NAMES};
}

/* Two in one step, or one alone. */
static void *commit_often(void *arg)
{
    committer *me = arg;

    for (int i = 0; i < COMMIT_ROUNDS; i++) {
        dibs__check checks[2];
        dibs__change changes[2][2 * COMMIT_NAMES];
        dibs__commit items[2];
        size_t count = i % 8 == 4 ? 2 : 1;

        make_commit(me, i, me->number % 2, &checks[0], changes[0], &items[0]);
        make_commit(me, i + 1, i % 2, &checks[1], changes[1], &items[1]);
        if (me->st->ops->commit->commit(me->st, items, count, in_bound(),
                                        NULL) == DIBS_OK)
            me->done++;
        dibs__commit_fini(items, count);
    }
    return NULL;
}

static void commits_never_wait_in_a_circle(void **state)
{
    committer all[COMMIT_THREADS];
    dibs__store *stores[STORES];

    (void)state;
    open_stores(stores);
    for (int i = 0; i < COMMIT_THREADS; i++) {
        all[i] = (committer){.st = stores[i % STORES], .number = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, commit_often,
                                        &all[i]),
                         0);
    }
    for (int i = 0; i < COMMIT_THREADS; i++)
        pthread_join(all[i].thread, NULL);
    expect_no_deadlock(stores);
    for (int i = 0; i < COMMIT_THREADS; i++)
        IN_TIME(all[i].done == COMMIT_ROUNDS);
}

/* Steps of several threads share a transaction, in which one that waits must not
 * keep what another needs. */
static void batches_on_one_name_never_wait_in_a_circle(void **state)
{
    dibs__store *stores[STORES];

    (void)state;
    open_stores(stores);
    ask_all_at_once(stores);
    expect_no_deadlock(stores);
}

/* Waits for a row that is locked, until it is killed. */
static int stand_in_line(char **words)
{
    dibs_client *cl = world_client(words[0], 60000);
    dibs_lock *lock = world_lock(cl, "killed", NULL);

    return dibs_lock_try(lock, NULL) == DIBS_OK ? 0 : 1;
}

static void a_killed_client_leaves_the_line(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    PGconn *slow;
    pid_t pid;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    make_name(cl, "killed");
    slow = lock_row("killed");
    pid = child_start("stand_in_line", url, NULL);
    assert_true(pid > 0);
    await_in_line(1, pace_ms(WORLD_BOUND_MS));
    kill(pid, SIGKILL);
    assert_int_equal(child_code(pid), 1000 + SIGKILL);
    await_in_line(0, pace_ms(2000));
    PQfinish(slow);
    dibs_close(cl);
}

/* A client that holds one lock and renews it does so on one connection. */
static void one_lock_takes_one_connection(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    dibs_lock *lock;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    lock = world_lock(cl, "one", DIBS_LOCK_OPTS(.ttl_ms = pace_ms(600)));
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    world_await_renewal(cl);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) " OURS), 1);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
}

int main(int argc, char **argv)
{
    static const child_part parts[] = {{"contend", contend},
                                       {"stand_in_line", stand_in_line},
                                       {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_lock_takes_one_connection),
        cmocka_unit_test(a_step_leaves_the_line_with_its_deadline),
        cmocka_unit_test(a_killed_client_leaves_the_line),
        cmocka_unit_test(a_place_is_kept_without_the_line),
        cmocka_unit_test(batches_on_one_name_never_wait_in_a_circle),
        cmocka_unit_test(commits_never_wait_in_a_circle),
        cmocka_unit_test(somebody_of_many_gets_it),
    };

    child_play(argc, argv, parts);
    if (argc == 3) {
        many = (int)strtol(argv[1], NULL, 10);
        seconds = (int)strtol(argv[2], NULL, 10);
    }
    if (many < 2 || many > MANY_MAX || seconds < 1)
        return 2;
    return cmocka_run_group_tests_name("postgres contend", tests, world_begin,
                                       world_end);
}
