/* test_rows.c - what the tables hold after the steps: who has left leaves nothing,
 * and a name that was crowded is as quick as any other again. */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "pg_world.h"

#include "store/store.h"

#include <poll.h>
#include <pthread.h>

#define ONE   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static dibsx_nsec soon(void)
{
    return dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
}

static dibs__store *open_store(void)
{
    char url[PG_URL_MAX];
    dibs__store *st = NULL;

    pg_url(&world_sv, url);
    CHECK(DIBS_OK, dibs__store_open(url, soon(), &st, err));
    return st;
}

static dibs_status
ask(dibs__store *st, const char *owner, dibs__mode mode, bool queue)
{
    dibs__ask what = {.name = "k",
                      .owner = owner,
                      .mode = mode,
                      .permits = 1,
                      .capacity = mode == DIBS__PERMITS ? 2 : 0,
                      .flags = queue ? DIBS__ASK_QUEUE : 0,
                      .ttl_ms = 60000,
                      .who = "host:1"};
    dibs__answer ans;

    return st->ops->lease->acquire(st, &what, soon(), &ans, NULL);
}

static void leave(dibs__store *st, const char *owner)
{
    const dibs__leave how = {.name = "k", .owner = owner};

    CHECK(DIBS_OK, st->ops->lease->release(st, &how, soon(), err));
}

/* The short way is there for names whose row says that nobody else has a part. */
static void assert_plain(void)
{
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.roll "
                                          "WHERE crowded"),
                     0);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.party"),
                     0);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.tomb"), 0);
}

static void wait_in_line(dibs__store *st)
{
    assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.roll "
                                          "WHERE crowded"),
                     1);
    leave(st, ONE);
    leave(st, OTHER);
}

/* The one who stays has the name by its row alone again. */
static void give_up_the_wait(dibs__store *st)
{
    assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, false), DIBS_BUSY);
    assert_plain();
    leave(st, ONE);
}

static void share(dibs__store *st)
{
    assert_status(ask(st, ONE, DIBS__SHARED, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__SHARED, false), DIBS_OK);
    leave(st, ONE);
    leave(st, OTHER);
}

static void use_permits(dibs__store *st)
{
    assert_status(ask(st, ONE, DIBS__PERMITS, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__PERMITS, false), DIBS_OK);
    leave(st, ONE);
    leave(st, OTHER);
}

static void a_name_that_was_crowded_is_plain_again(void **state)
{
    static void (*const crowds[])(dibs__store * st) = {wait_in_line,
                                                       give_up_the_wait, share,
                                                       use_permits};
    dibs__store *st = open_store();

    (void)state;
    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++) {
        crowds[i](st);
        assert_plain();
        assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
        assert_plain();
        leave(st, ONE);
        assert_plain();
    }
    dibs__store_close(st);
}

/* The time of all on the name is over, but for that of one. */
static void let_die_but(const char *owner)
{
    char sql[160];

    snprintf(sql, sizeof(sql),
             "UPDATE dibs.party SET until_us = 1 WHERE owner <> '%s'", owner);
    assert_true(pg_tell(&world_sv, sql));
    assert_true(pg_tell(&world_sv, "UPDATE dibs.tomb SET until_us = 1"));
}

enum { DEAD = 20 };

/* A name that always has somebody has no more rows than for those. */
static void the_dead_leave_no_rows(void **state)
{
    dibs__store *st = open_store();

    (void)state;
    assert_status(ask(st, ONE, DIBS__SHARED, false), DIBS_OK);
    for (unsigned i = 0; i < DEAD; i++) {
        char name[DIBS_OWNER_SIZE];
        dibs__leave gone = {.name = "k", .owner = name, .unanswered = true};

        snprintf(name, sizeof(name), "%032x", 3 * i + 1);
        assert_status(ask(st, name, DIBS__SHARED, false), DIBS_OK);
        snprintf(name, sizeof(name), "%032x", 3 * i + 2);
        CHECK(DIBS_LOST, st->ops->lease->release(st, &gone, soon(), err));
    }
    for (unsigned i = 0; i < DEAD; i++) {
        char name[DIBS_OWNER_SIZE];

        snprintf(name, sizeof(name), "%032x", 3 * i + 3);
        assert_status(ask(st, name, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    }
    /* A place stands for seconds only. */
    IN_TIME(pg_number(&world_sv, "SELECT count(*) FROM dibs.party") ==
            2 * DEAD + 1);
    let_die_but(ONE);
    assert_status(ask(st, OTHER, DIBS__SHARED, false), DIBS_OK);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.party"),
                     2);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.tomb"), 0);
    leave(st, ONE);
    leave(st, OTHER);
    assert_plain();
    dibs__store_close(st);
}

/* One in a few of those who write sweeps. */
static void values_that_have_expired_are_swept(void **state)
{
    dibs__store *st = open_store();
    dibs__put put = {.key = "alive", .data = "x", .len = 1};
    uint64_t version;

    (void)state;
    put.expected = DIBS_VERSION_ANY;
    assert_true(pg_tell(&world_sv, "INSERT INTO dibs.value SELECT 'dead-' || "
                                   "i, i, 1, 'x' FROM generate_series(1, 100) "
                                   "AS i"));
    for (int i = 0; i < 500 && pg_number(&world_sv, "SELECT count(*) FROM "
                                                    "dibs.value") > 1;
         i++)
        CHECK(DIBS_OK, st->ops->value->put(st, &put, soon(), &version, err));
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.value "
                                          "WHERE key = 'alive'"),
                     1);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM dibs.value"),
                     1);
    dibs__store_close(st);
}

static bool has_notice(dibs__store *st, int fd, dibs__notice *notice)
{
    struct pollfd bell = {.fd = fd, .events = POLLIN};

    return poll(&bell, 1, PG_BOUND_MS) == 1 &&
           st->ops->doorbell_read(st, notice, 1) == 1;
}

/* A notice that was sent while no thread listened is lost. The listener learns so,
 * and listens again. */
static void a_doorbell_that_was_cut_off_is_told(void **state)
{
    dibs__store *st = open_store();
    dibs__notice notice = {.kind = DIBS__NOTICE_GRANTED};
    int fd = -1;

    (void)state;
    CHECK(DIBS_OK, st->ops->doorbell_open(st, soon(), &fd, err));
    assert_int_equal(pg_number(&world_sv,
                               "SELECT count(pg_terminate_backend(pid)) FROM "
                               "pg_stat_activity WHERE query LIKE 'LISTEN%'"),
                     1);
    IN_TIME(has_notice(st, fd, &notice));
    assert_int_equal(notice.kind, DIBS__NOTICE_MISSED);
    assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    leave(st, ONE);
    IN_TIME(has_notice(st, fd, &notice));
    assert_int_equal(notice.kind, DIBS__NOTICE_GRANTED);
    assert_string_equal(notice.owner, OTHER);
    leave(st, OTHER);
    dibs__store_close(st);
}

/* A long answer goes through a gate, behind which a connection cannot be watched. */
static void a_long_answer_leaves_the_doorbell(void **state)
{
    static const char bytes[100000];
    dibs__store *st = open_store();
    dibs__put put = {.key = "long",
                     .data = bytes,
                     .len = sizeof(bytes),
                     .expected = DIBS_VERSION_ANY};
    dibs__notice notice = {.kind = DIBS__NOTICE_GRANTED};
    dibs_value value;
    char sql[128];
    uint64_t version;
    int fd = -1;

    (void)state;
    CHECK(DIBS_OK, st->ops->doorbell_open(st, soon(), &fd, err));
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM pg_stat_activity WHERE pid = %lld",
             pg_number(&world_sv, "SELECT pid FROM pg_stat_activity WHERE "
                                  "query LIKE 'LISTEN%'"));
    CHECK(DIBS_OK, st->ops->value->put(st, &put, soon(), &version, err));
    for (int i = 0; i < 3; i++) {
        CHECK(DIBS_OK, st->ops->value->get(st, "long", soon(), &value, err));
        assert_int_equal(value.len, sizeof(bytes));
        dibs_value_free(&value);
    }
    assert_int_equal(pg_number(&world_sv, sql), 1);
    assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    leave(st, ONE);
    IN_TIME(has_notice(st, fd, &notice));
    assert_int_equal(notice.kind, DIBS__NOTICE_GRANTED);
    leave(st, OTHER);
    dibs__store_close(st);
}

/* A waiter may ask again after the step that serves it has read the clock, and believes in
 * the claim for as long as in its place. */
static void a_claim_lasts_as_long_as_the_place(void **state)
{
    dibs__store *st = open_store();
    char sql[160];

    (void)state;
    assert_status(ask(st, ONE, DIBS__EXCLUSIVE, false), DIBS_OK);
    assert_status(ask(st, OTHER, DIBS__EXCLUSIVE, true), DIBS_BUSY);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM dibs.party WHERE claim AND until_us >= %lld",
             pg_number(&world_sv, "SELECT until_us FROM dibs.party WHERE role "
                                  "= 'waiter'"));
    assert_true(pg_tell(&world_sv, "SELECT dibs.give('k', p.slot, false, "
                                   "dibs.now_us() - 1000000) FROM dibs.party "
                                   "AS p WHERE p.role = 'waiter'"));
    assert_int_equal(pg_number(&world_sv, sql), 1);
    leave(st, OTHER);
    leave(st, ONE);
    dibs__store_close(st);
}

/* Connections that came to nothing, and some on which an answer did not come. */
static void failures_leave_no_descriptors(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl = NULL, *none = NULL;
    int before;

    (void)state;
    snprintf(url, sizeof(url), "postgres://dibs@127.0.0.1:%d/nowhere",
             world_sv.port);
    assert_int_not_equal(dibs_open(url, NULL, &none, NULL), DIBS_OK);
    before = open_fds();
    for (int i = 0; i < 10; i++)
        assert_int_not_equal(dibs_open(url, NULL, &none, NULL), DIBS_OK);
    assert_int_equal(open_fds(), before);
    pg_url(&world_sv, url);
    cl = world_client(url, pace_ms(300));
    for (int i = 0; i < 5; i++) {
        pg_pause(&world_sv);
        assert_int_not_equal(dibs_ping(cl, NULL, NULL), DIBS_OK);
        pg_resume(&world_sv);
    }
    dibs_close(cl);
    assert_int_equal(open_fds(), before);
}

enum { WORKERS = 4, ROUNDS = 40 };

static void *take_turns(void *arg)
{
    dibs_lock *lock = arg;

    for (int i = 0; i < ROUNDS; i++)
        if (dibs_lock_acquire(lock, NULL) != DIBS_OK ||
            dibs_lock_release(lock, NULL) != DIBS_OK)
            return NULL;
    return arg;
}

static long long rolled_back(void)
{
    return pg_number(&world_sv, "SELECT xact_rollback FROM pg_stat_database "
                                "WHERE datname = 'postgres'");
}

/* Waits until nobody is connected: the server counts what they did when they go. */
static void await_gone(void)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);

    while (pg_number(&world_sv, "SELECT count(*) FROM pg_stat_activity WHERE "
                                "application_name = 'dibs'") != 0) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(10);
    }
}

/* Where the database has transactions look at an old state, those that meet are
 * ended by the server, and begun anew. Steps are made for another kind. */
static void take_turns_by(const char *isolation)
{
    pthread_t threads[WORKERS];
    dibs_client *clients[WORKERS];
    dibs_lock *locks[WORKERS];
    char url[PG_URL_MAX], sql[128];
    long long before;
    void *done;

    snprintf(sql, sizeof(sql),
             "ALTER ROLE dibs SET default_transaction_isolation = '%s'",
             isolation);
    assert_true(pg_tell(&world_sv, sql));
    pg_url(&world_sv, url);
    before = rolled_back();
    for (int i = 0; i < WORKERS; i++) {
        clients[i] = world_client(url, PG_BOUND_MS);
        locks[i] = world_lock(clients[i], "turns",
                              DIBS_LOCK_OPTS(.wait_ms = PG_BOUND_MS));
        assert_int_equal(pthread_create(&threads[i], NULL, take_turns,
                                        locks[i]),
                         0);
    }
    for (int i = 0; i < WORKERS; i++) {
        assert_int_equal(pthread_join(threads[i], &done), 0);
        IN_TIME(done != NULL);
    }
    for (int i = 0; i < WORKERS; i++) {
        dibs_lock_free(locks[i]);
        dibs_close(clients[i]);
    }
    await_gone();
    assert_int_equal(rolled_back(), before);
    assert_true(pg_tell(&world_sv, "ALTER ROLE dibs RESET "
                                   "default_transaction_isolation"));
}

static void the_isolation_of_the_database_does_not_matter(void **state)
{
    (void)state;
    take_turns_by("serializable");
    take_turns_by("repeatable read");
}

/* Runs a statement, and another one in the middle of it. */
static void run_with(const char *at, const char *meanwhile, const char *sql)
{
    char all[1024];

    snprintf(all, sizeof(all),
             "CREATE FUNCTION dibs.meanwhile() RETURNS trigger LANGUAGE "
             "plpgsql AS $$ BEGIN %s; RETURN NULL; END $$; "
             "CREATE TRIGGER meanwhile %s FOR EACH STATEMENT EXECUTE FUNCTION "
             "dibs.meanwhile(); %s; DROP FUNCTION dibs.meanwhile CASCADE",
             meanwhile, at, sql);
    assert_true(pg_tell(&world_sv, all));
}

/* A setting outlasts the sweep of an idle queue, wherever in the sweep it is made, and
 * wherever in the making the sweep comes. */
static void a_sweep_takes_no_setting_along(void **state)
{
    static const char paused[] =
        "SELECT count(*) FROM dibs.queue WHERE name = 'idle' AND paused";

    (void)state;
    assert_true(
        pg_tell(&world_sv, "INSERT INTO dibs.queue(name) VALUES ('idle')"));
    run_with("BEFORE DELETE ON dibs.done",
             "UPDATE dibs.queue SET paused = true WHERE name = 'idle'",
             "SELECT dibs.sweep_idle('idle')");
    assert_int_equal(pg_number(&world_sv, paused), 1);
    assert_true(pg_tell(&world_sv, "UPDATE dibs.queue SET paused = false"));
    run_with("AFTER INSERT ON dibs.queue", "PERFORM dibs.sweep_idle('idle')",
             "SELECT dibs.queue_set('idle',1,true,false,0,0,0,0,0)");
    assert_int_equal(pg_number(&world_sv, paused), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_was_crowded_is_plain_again),
        cmocka_unit_test(the_dead_leave_no_rows),
        cmocka_unit_test(values_that_have_expired_are_swept),
        cmocka_unit_test(a_doorbell_that_was_cut_off_is_told),
        cmocka_unit_test(a_long_answer_leaves_the_doorbell),
        cmocka_unit_test(a_claim_lasts_as_long_as_the_place),
        cmocka_unit_test(failures_leave_no_descriptors),
        cmocka_unit_test(the_isolation_of_the_database_does_not_matter),
        cmocka_unit_test(a_sweep_takes_no_setting_along),
    };

    return cmocka_run_group_tests_name("postgres rows", tests, world_begin,
                                       world_end);
}
