/* test_sqlite_fault.c - the embedded store under trouble: what each failure means,
 * deadlines while others hold the lock, and going on afterwards. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/error.h"
#include "store_world.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>

typedef struct expectation {
    int code;
    int sys;
    bool committing;
    dibs_status status;
    const char *origin;
} expectation;

static void every_code_has_its_meaning(void **state)
{
    static const expectation all[] = {
        {SQLITE_BUSY, 0, false, DIBS_UNAVAIL, "SQLITE_BUSY"},
        {SQLITE_BUSY_SNAPSHOT, 0, false, DIBS_UNAVAIL, "SQLITE_BUSY"},
        {SQLITE_BUSY, 0, true, DIBS_UNAVAIL, "SQLITE_BUSY"},
        {SQLITE_LOCKED, 0, false, DIBS_UNAVAIL, "SQLITE_LOCKED"},
        {SQLITE_PROTOCOL, 0, false, DIBS_UNAVAIL, "SQLITE_PROTOCOL"},
        {SQLITE_INTERRUPT, 0, false, DIBS_UNAVAIL, "SQLITE_INTERRUPT"},
        {SQLITE_INTERRUPT, 0, true, DIBS_UNKNOWN, "SQLITE_INTERRUPT"},
        {SQLITE_FULL, 0, false, DIBS_UNAVAIL, "SQLITE_FULL"},
        {SQLITE_FULL, 0, true, DIBS_UNAVAIL, "SQLITE_FULL"},
        {SQLITE_IOERR_WRITE, EIO, false, DIBS_UNAVAIL, "SQLITE_IOERR"},
        {SQLITE_IOERR_FSYNC, EIO, true, DIBS_UNKNOWN, "SQLITE_IOERR"},
        {SQLITE_IOERR_SHMSIZE, ENOSPC, false, DIBS_UNAVAIL, "SQLITE_FULL"},
        {SQLITE_IOERR_SHMSIZE, ENOSPC, true, DIBS_UNKNOWN, "SQLITE_IOERR"},
        {SQLITE_CANTOPEN, EACCES, false, DIBS_DENIED, "SQLITE_READONLY"},
        {SQLITE_CANTOPEN, EMFILE, false, DIBS_UNAVAIL, "SQLITE_CANTOPEN"},
        {SQLITE_READONLY_DBMOVED, 0, false, DIBS_DENIED, "SQLITE_READONLY"},
        {SQLITE_PERM, 0, false, DIBS_DENIED, "SQLITE_PERM"},
        {SQLITE_AUTH, 0, false, DIBS_DENIED, "SQLITE_AUTH"},
        {SQLITE_NOTADB, 0, false, DIBS_REFUSED, "SQLITE_NOTADB"},
        {SQLITE_CORRUPT_INDEX, 0, false, DIBS_REFUSED, "SQLITE_CORRUPT"},
        {SQLITE_NOMEM, 0, false, DIBS_NOMEM, "SQLITE_NOMEM"},
        {SQLITE_TOOBIG, 0, false, DIBS_INVALID, "SQLITE_TOOBIG"},
        {SQLITE_SCHEMA, 0, false, DIBS_INTERNAL, "SQLITE_SCHEMA"},
        {SQLITE_MISUSE, 0, false, DIBS_INTERNAL, "SQLITE_MISUSE"},
        {SQLITE_CONSTRAINT_PRIMARYKEY, 0, false, DIBS_INTERNAL,
         "SQLITE_CONSTRAINT"},
        {SQLITE_ERROR, 0, false, DIBS_INTERNAL, "SQLITE_ERROR"},
        {SQLITE_NOTICE, 0, false, DIBS_INTERNAL, "SQLITE"},
        {SQLITE_NOTICE, 0, true, DIBS_UNKNOWN, "SQLITE"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const dibs__sqlite_fault fault = {.code = all[i].code,
                                          .sys = all[i].sys,
                                          .committing = all[i].committing,
                                          .path = "/x.db"};
        dibs_error err = {0};

        assert_int_equal(dibs__sqlite_fail(&fault, &err), all[i].status);
        assert_int_equal(err.status, all[i].status);
        assert_string_equal(err.origin, all[i].origin);
        assert_non_null(strstr(err.message, "/x.db"));
        assert_int_equal(err.retriable, all[i].status == DIBS_UNAVAIL ||
                                            all[i].status == DIBS_UNKNOWN);
    }
}

/* A process that takes the write lock and keeps it until it is ended. */
typedef struct holder {
    pid_t pid;
    int out; /* closed to let it go */
} holder;

static void hold(const char *path, int in, int ready)
{
    sqlite3 *db = NULL;
    char byte = 1;

    if (dibs__sql.open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) !=
            SQLITE_OK ||
        dibs__sql.exec(db, "BEGIN IMMEDIATE; UPDATE party SET who = 'x'", NULL,
                       NULL, NULL) != SQLITE_OK ||
        write(ready, &byte, 1) != 1 || read(in, &byte, 1) != 0)
        _exit(1);
    dibs__sql.close(db);
    _exit(0);
}

/* Before this process has the database open: locks do not survive a fork. */
static holder holder_start(const char *path)
{
    int ready[2], go[2];
    holder h;
    char byte;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    h.pid = fork();
    if (h.pid == 0) {
        close(go[1]);
        hold(path, go[0], ready[1]);
    }
    close(go[0]);
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    h.out = go[1];
    return h;
}

static int64_t ms_since(dibsx_nsec at)
{
    return (dibsx_now() - at) / DIBSX_MS;
}

static void a_deadline_holds_while_another_has_the_lock(void **state)
{
    enum { WAIT_MS = 120 };
    world *w = *state;
    dibs__renewal item = {.name = "a", .owner = "", .fence = 1, .ttl_ms = 1};
    dibs__answer ans;
    dibs__ask ask = {.name = "a",
                     .owner = "00000000000000000000000000000001",
                     .permits = 1,
                     .ttl_ms = 1000,
                     .who = "here:1"};
    dibs__store *st;
    dibsx_nsec began_at;
    holder h;

    dibs__store_close(world_open(w));
    h = holder_start(w->path);
    st = world_open(w); /* To read is free. */
    began_at = dibsx_now();
    assert_status(st->ops->lease->acquire(st, &ask,
                                          began_at + WAIT_MS * DIBSX_MS, &ans,
                                          &w->err),
                  DIBS_UNAVAIL);
    assert_true(ms_since(began_at) >= WAIT_MS);
    IN_TIME(ms_since(began_at) <= pace_ms(WAIT_MS + 1000));
    IN_TIME(strcmp(w->err.origin, "SQLITE_BUSY") == 0); /* It was begun. */
    assert_true(w->err.retriable);

    began_at = dibsx_now();
    assert_status(st->ops->lease->renew(st, &item, 1,
                                        began_at + WAIT_MS * DIBSX_MS, &w->err),
                  DIBS_UNAVAIL);
    assert_true(ms_since(began_at) >= WAIT_MS);
    IN_TIME(ms_since(began_at) <= pace_ms(WAIT_MS + 1000));

    close(h.out);
    assert_int_equal(child_code(h.pid), 0);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
}

static void a_writer_that_is_killed_keeps_nobody_out(void **state)
{
    world *w = *state;
    dibs__store *st;
    holder h;

    dibs__store_close(world_open(w));
    h = holder_start(w->path);
    st = world_open(w);
    assert_int_equal(kill(h.pid, SIGKILL), 0);
    assert_int_equal(child_code(h.pid), 1000 + SIGKILL);
    close(h.out);
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    assert_int_equal(world_number(w->path,
                                  "SELECT count(*) FROM party WHERE who = 'x'"),
                     0);
    dibs__store_close(st);
}

static void a_deadline_that_has_passed_does_nothing(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__leave leave = {.name = "a", .owner = owner(1)};
    int64_t sum;

    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    assert_status(st->ops->lease->release(st, &leave, dibsx_now() - 1, &w->err),
                  DIBS_UNAVAIL);
    assert_status(st->ops->value->add(st, "n", 1, dibsx_now() - 1, &sum,
                                      &w->err),
                  DIBS_UNAVAIL);
    assert_status(try_lock(w, st, "a", 2, NULL), DIBS_BUSY);
    assert_status(st->ops->value->add(st, "n", 1, soon(), &sum, &w->err),
                  DIBS_OK);
    assert_int_equal(sum, 1);
    dibs__store_close(st);
}

typedef struct late {
    dibs__store *st;
    dibs_status rc;
    int64_t took_ms;
} late;

static void *late_thread(void *arg)
{
    late *lt = arg;
    dibsx_nsec began_at = dibsx_now();
    int64_t wall_us;

    lt->rc = lt->st->ops->now(lt->st, began_at + 60 * DIBSX_MS, &wall_us, NULL);
    lt->took_ms = ms_since(began_at);
    return NULL;
}

static void a_deadline_holds_against_threads_of_this_process(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    late lt = {.st = st};
    pthread_t thread;

    assert_status(dibs__sqlite_enter(cn, soon(), &w->err), DIBS_OK);
    assert_int_equal(pthread_create(&thread, NULL, late_thread, &lt), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dibs__sqlite_leave(cn);
    assert_status(lt.rc, DIBS_UNAVAIL);
    assert_true(lt.took_ms >= 60);
    IN_TIME(lt.took_ms <= 1000);
    dibs__store_close(st);
}

static void a_long_read_ends_at_its_deadline(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibsx_nsec began_at = dibsx_now();

    assert_status(dibs__sqlite_enter(cn, began_at + 50 * DIBSX_MS, &w->err),
                  DIBS_OK);
    assert_status(
        dibs__sqlite_exec(cn,
                          "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                          "i + 1 FROM n) SELECT count(*) FROM n",
                          &w->err),
        DIBS_UNAVAIL);
    dibs__sqlite_leave(cn);
    assert_string_equal(w->err.origin, "SQLITE_INTERRUPT");
    assert_true(ms_since(began_at) >= 50);
    IN_TIME(ms_since(began_at) <= pace_ms(1000));
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
}

/* A commit that is done must not be called undone because it was slow. */
static void a_commit_is_not_interrupted(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);

    assert_status(dibs__sqlite_enter(cn, soon(), &w->err), DIBS_OK);
    for (int i = 0; i < 10000; i++) {
        assert_status(dibs__sqlite_begin(cn, &w->err), DIBS_OK);
        cn->deadline = 0;
        assert_status(dibs__sqlite_end(cn, DIBS_OK, &w->err), DIBS_OK);
        cn->deadline = soon();
    }
    dibs__sqlite_leave(cn);
    dibs__store_close(st);
}

static void a_failed_step_leaves_the_connection_usable(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__answer ans;

    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    world_sql(w->path, "CREATE TRIGGER no BEFORE INSERT ON party BEGIN "
                       "SELECT RAISE(ABORT, 'not today'); END");
    for (int i = 0; i < 3; i++) {
        assert_status(try_lock(w, st, "b", 2, &ans), DIBS_INTERNAL);
        assert_string_equal(w->err.origin, "SQLITE_CONSTRAINT");
        assert_non_null(strstr(w->err.message, "not today"));
    }
    world_sql(w->path, "DROP TRIGGER no");
    assert_status(try_lock(w, st, "b", 2, NULL), DIBS_OK);
    assert_status(unlock(w, st, "a", 1), DIBS_OK);
    dibs__store_close(st);
}

/* A batch is renewed whole or not at all. */
static void a_renewal_that_fails_renews_nothing(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__answer a, b;
    dibs__renewal items[2] = {
        {.name = "a", .owner = "00000000000000000000000000000001"},
        {.name = "b", .owner = "00000000000000000000000000000001"},
    };

    assert_status(try_lock(w, st, "a", 1, &a), DIBS_OK);
    assert_status(try_lock(w, st, "b", 1, &b), DIBS_OK);
    items[0].fence = a.fence;
    items[1].fence = b.fence;
    items[0].ttl_ms = items[1].ttl_ms = 2 * WORLD_TTL_MS;
    world_sql(w->path,
              "CREATE TRIGGER no BEFORE INSERT ON party WHEN new.name = 'b' "
              "BEGIN SELECT RAISE(ABORT, 'not today'); END");
    assert_status(st->ops->lease->renew(st, items, 2, soon(), &w->err),
                  DIBS_INTERNAL);
    assert_int_equal(world_number(w->path, "SELECT max(until_us - since_us) "
                                           "FROM party WHERE name > ''"),
                     WORLD_TTL_MS * 1000);
    world_sql(w->path, "DROP TRIGGER no");
    assert_status(st->ops->lease->renew(st, items, 2, soon(), &w->err),
                  DIBS_OK);
    assert_status(items[0].rc, DIBS_OK);
    assert_status(items[1].rc, DIBS_OK);
    assert_true(items[1].left_ms > 50000);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(every_code_has_its_meaning),
        WORLD_TEST(a_deadline_holds_while_another_has_the_lock),
        WORLD_TEST(a_writer_that_is_killed_keeps_nobody_out),
        WORLD_TEST(a_deadline_that_has_passed_does_nothing),
        WORLD_TEST(a_deadline_holds_against_threads_of_this_process),
        WORLD_TEST(a_long_read_ends_at_its_deadline),
        WORLD_TEST(a_commit_is_not_interrupted),
        WORLD_TEST(a_failed_step_leaves_the_connection_usable),
        WORLD_TEST(a_renewal_that_fails_renews_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
