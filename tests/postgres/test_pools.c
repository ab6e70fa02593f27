/* test_pools.c - how many connections a process has: clients of one server share
 * them, and one who waits has one. Counted where they cost something, at the server.
 */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "pg_world.h"

#include <pthread.h>
#include <unistd.h>

enum { CLIENTS = 6, POOL = 2, LOOKS = 50 };

#define OURS "FROM pg_stat_activity WHERE application_name = 'dibs'"

static long long connections(void)
{
    return pg_number(&world_sv, "SELECT count(*) " OURS);
}

/* The server takes a moment to notice that one has gone. */
static void await_connections(long long count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));

    while (connections() != count) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(5);
    }
}

static void use(dibs_client *cl, const char *name)
{
    dibs_lock *lock = world_lock(cl, name, NULL);

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    dibs_lock_free(lock);
}

static dibs_client *client(const char *more, int64_t timeout_ms)
{
    char at[PG_URL_MAX], url[PG_URL_MAX + 32];

    pg_url(&world_sv, at);
    snprintf(url, sizeof(url), "%s%s", at, more);
    return world_client(url, timeout_ms);
}

typedef struct asker {
    dibs_client *cl;
    pthread_t thread;
} asker;

/* Stands in line for a row that another has locked. */
static void *ask(void *arg)
{
    asker *me = arg;
    dibs_lock *lock = world_lock(me->cl, "shared", NULL);
    dibs_status rc = dibs_lock_try(lock, NULL);

    (void)rc;
    dibs_lock_free(lock);
    return NULL;
}

/* The most that are seen, from when so many stand in line. */
static long long most_in_line(long long count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    long long most = 0;
    int looks = 0;

    while (looks < LOOKS) {
        long long seen = connections();

        most = seen > most ? seen : most;
        if (looks > 0 || pg_number(&world_sv, "SELECT count(*) " OURS
                                              " AND wait_event_type = "
                                              "'Lock'") >= count)
            looks++;
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(5);
    }
    return most;
}

static void clients_share_a_bound(void **state)
{
    PGconn *slow = pg_connect(&world_sv);
    asker askers[CLIENTS];
    long long most;

    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        askers[i] =
            (asker){.cl = client("?pool=2", pace_ms(2 * WORLD_BOUND_MS))};
    use(askers[0].cl, "shared");
    PQclear(PQexec(slow, "BEGIN; SELECT FROM dibs.roll WHERE name = 'shared' "
                         "FOR UPDATE"));
    assert_int_equal(PQtransactionStatus(slow), PQTRANS_INTRANS);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask,
                                        &askers[i]),
                         0);
    most = most_in_line(POOL);
    PQfinish(slow);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(askers[i].thread, NULL);
        dibs_close(askers[i].cl);
    }
    assert_int_equal(most, POOL);
    await_connections(0);
}

/* The highest of the bounds that clients ask for is the one. */
static void one_who_leaves_takes_nothing_along(void **state)
{
    dibs_client *first = client("?pool=1", WORLD_STEP_MS);
    dibs_client *second = client("", WORLD_STEP_MS);

    (void)state;
    use(first, "first");
    use(second, "second");
    assert_int_equal(connections(), 1);
    dibs_close(first);
    use(second, "second");
    assert_int_equal(connections(), 1);
    dibs_close(second);
    await_connections(0);
}

/* What libpq reads beside the URL may be another user. */
static void other_surroundings_are_not_shared(void **state)
{
    dibs_client *first = client("", WORLD_STEP_MS);
    dibs_client *second;

    (void)state;
    setenv("PGOPTIONS", "-c work_mem=1MB", 1);
    second = client("", WORLD_STEP_MS);
    unsetenv("PGOPTIONS");
    use(first, "first");
    use(second, "second");
    assert_int_equal(connections(), 2);
    dibs_close(first);
    dibs_close(second);
    await_connections(0);
}

/* The child cannot assert. It opens a client of its own, and keeps it until it is
 * told to end. */
static int be_a_child(const char *url, int tell, int told)
{
    dibs_client *cl = NULL;
    dibs_lock *lock = NULL;
    char byte = 'x';
    dibs_status rc = dibs_open(url, NULL, &cl, NULL);

    if (rc == DIBS_OK)
        rc = dibs_lock_new(cl, "child", NULL, &lock, NULL);
    if (rc == DIBS_OK)
        rc = dibs_lock_try(lock, NULL);
    if (rc == DIBS_OK &&
        (write(tell, &byte, 1) != 1 || read(told, &byte, 1) != 1))
        return 1;
    if (rc == DIBS_OK)
        rc = dibs_lock_release(lock, NULL);
    dibs_lock_free(lock);
    dibs_close(cl);
    return rc == DIBS_OK ? 0 : pace_explains(rc) ? PACE_MISSED : 1;
}

static void a_child_has_a_pool_of_its_own(void **state)
{
    dibs_client *cl = client("", WORLD_STEP_MS);
    int up[2], down[2];
    bool told;
    char url[PG_URL_MAX];
    char byte = 'x';
    pid_t pid;

    (void)state;
    pg_url(&world_sv, url);
    use(cl, "parent");
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    pid = fork();
    if (pid == 0) {
        close(down[1]);
        _exit(be_a_child(url, up[1], down[0]));
    }
    assert_true(pid > 0);
    close(up[1]);
    told = read(up[0], &byte, 1) == 1;
    if (!told)
        assert_int_equal(child_code(pid), 0);
    assert_true(told);
    assert_int_equal(connections(), 2);
    use(cl, "parent");
    assert_int_equal(write(down[1], &byte, 1), 1);
    assert_int_equal(child_code(pid), 0);
    await_connections(1);
    use(cl, "parent");
    dibs_close(cl);
    close(up[0]);
    close(down[0]);
    close(down[1]);
    await_connections(0);
}

/* Waits until it gets the name. */
static int wait_for_it(char **words)
{
    dibs_client *cl = world_client(words[0], pace_ms(WORLD_STEP_MS));
    dibs_lock *lock =
        world_lock(cl, "waited",
                   DIBS_LOCK_OPTS(.wait_ms = pace_ms(WORLD_BOUND_MS)));

    CHECK(DIBS_OK, dibs_lock_acquire(lock, err));
    dibs_lock_free(lock);
    dibs_close(cl);
    return 0;
}

#define PLACE "SELECT until_us FROM dibs.party WHERE role = 'waiter'"

/* Waits until those who wait have asked so often. */
static void await_asks(int count)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), pace_ms(WORLD_BOUND_MS));
    long long last = pg_number(&world_sv, PLACE);

    while (count > 0) {
        long long until_us = pg_number(&world_sv, PLACE);

        count -= until_us != last;
        last = until_us;
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(5);
    }
}

static void one_who_waits_has_one_connection(void **state)
{
    dibs_client *cl = client("", WORLD_STEP_MS);
    dibs_lock *lock = world_lock(cl, "waited", NULL);
    char url[PG_URL_MAX];
    pid_t pid;

    (void)state;
    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    pid = child_start("wait_for_it", url, NULL);
    assert_true(pid > 0);
    world_await_waiters(cl, "waited", 1);
    await_asks(2);
    /* Another was made if two steps met, and goes when it is not needed. */
    await_connections(2);
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    assert_int_equal(child_code(pid), 0);
    dibs_lock_free(lock);
    dibs_close(cl);
    await_connections(0);
}

int main(int argc, char **argv)
{
    static const child_part parts[] = {{"wait_for_it", wait_for_it},
                                       {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clients_share_a_bound),
        cmocka_unit_test(one_who_leaves_takes_nothing_along),
        cmocka_unit_test(other_surroundings_are_not_shared),
        cmocka_unit_test(a_child_has_a_pool_of_its_own),
        cmocka_unit_test(one_who_waits_has_one_connection),
    };

    child_play(argc, argv, parts);
    return cmocka_run_group_tests_name("postgres pools", tests, world_begin,
                                       world_end);
}
