/* test_sqlite_upgrade.c - files made by the version before: taken over in place,
 * by one of many that open them at once, with all that is in them. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <inttypes.h>
#include <pthread.h>

enum { CROWD = 30, THREADS = 8 };

#define PARTY_1                                                                \
    "owner, role, mode, permits, capacity, priority, seq, fence, claim, "      \
    "ttl_ms, since_us, until_us, bell, who"

static const char *const version_1 =
    "PRAGMA journal_mode = WAL; BEGIN;"
    "CREATE TABLE party(name TEXT NOT NULL, owner TEXT NOT NULL, "
    "role INTEGER NOT NULL, mode INTEGER NOT NULL, permits INTEGER NOT NULL, "
    "capacity INTEGER NOT NULL, priority INTEGER NOT NULL, "
    "seq INTEGER NOT NULL, fence INTEGER NOT NULL, claim INTEGER NOT NULL, "
    "ttl_ms INTEGER NOT NULL, since_us INTEGER NOT NULL, "
    "until_us INTEGER NOT NULL, bell TEXT NOT NULL, who TEXT NOT NULL, "
    "PRIMARY KEY(name, owner)) WITHOUT ROWID;"
    "INSERT INTO party VALUES('', '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '');"
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) "
    "WITHOUT ROWID;"
    "INSERT INTO meta VALUES('era', ''), ('swept', '');"
    "CREATE TABLE value(key TEXT PRIMARY KEY NOT NULL, data BLOB NOT NULL, "
    "version INTEGER NOT NULL, until_wall_us INTEGER);"
    "CREATE INDEX value_until ON value(until_wall_us) "
    "WHERE until_wall_us IS NOT NULL;"
    "INSERT INTO value VALUES('old', x'6b657074', 7, NULL);"
    "PRAGMA application_id = 1684628083;"
    "PRAGMA user_version = 1;"
    "COMMIT";

static int64_t schema_version(const world *w)
{
    return world_number(w->path, "PRAGMA user_version");
}

/* The era of this boot, as the version before wrote it. */
static void take_era(const world *w, const char *from)
{
    char era[128], sql[256];

    world_text(from, "SELECT value FROM meta WHERE key = 'era'", era,
               sizeof(era));
    snprintf(sql, sizeof(sql), "UPDATE meta SET value = '%s' WHERE key = 'era'",
             era);
    world_sql(w->path, sql);
}

/* A file of version 1 in which owner 1 holds "a" and owner 2 waits for it. */
static void make_version_1(world *w)
{
    char other[128], url[160], sql[700];
    int64_t now_us = dibsx_now() / 1000;

    snprintf(other, sizeof(other), "%s.other", w->path);
    snprintf(url, sizeof(url), "sqlite:%s", other);
    dibs__store_close(world_open_url(w, url));
    world_sql(w->path, version_1);
    take_era(w, other);
    snprintf(sql, sizeof(sql),
             "INSERT INTO party(name, " PARTY_1 ") VALUES"
             "('a', '%032x', 0, 0, 1, 0, 0, 1, 5000, 0, 600000, %" PRId64
             ", %" PRId64 ", '', 'here:1 old'),"
             "('a', '%032x', 1, 0, 1, 0, 0, 2, 0, 0, 600000, %" PRId64
             ", %" PRId64 ", '', 'here:2 old');"
             "UPDATE party SET fence = 5000 WHERE name = ''",
             1, now_us, now_us + 600000000, 2, now_us, now_us + 600000000);
    world_sql(w->path, sql);
    assert_int_equal(schema_version(w), 1);
}

/* Whether all that was there is there, and can be used. */
static void assert_taken_over(world *w)
{
    dibs__store *st = world_open(w);
    uint64_t position = 0;
    dibs__answer ans;

    assert_int_equal(schema_version(w), 9);
    assert_text(w, st, "old", "kept");
    assert_status(try_lock(w, st, "a", 3, NULL), DIBS_BUSY);
    assert_string_equal(w->err.message, "`a` is held by here:1 old");
    assert_status(unlock(w, st, "a", 1), DIBS_OK);
    assert_status(queue_lock(w, st, "a", 2, &ans), DIBS_OK);
    IN_TIME(ans.claim); /* It stands for seconds only. */
    assert_true(ans.fence > 5000);
    assert_status(st->ops->log->append(st,
                                       &(dibs__append){.topic = "t",
                                                       .data = "x",
                                                       .len = 1,
                                                       .keep = 10},
                                       soon(), &position, &w->err),
                  DIBS_OK);
    assert_true(position > ans.fence);
    dibs__store_close(st);
}

static void what_is_in_it_stays(void **state)
{
    world *w = *state;

    make_version_1(w);
    assert_taken_over(w);
}

/* What the columns of all tables are, in one text. */
static void columns_of(const char *path, char *out, size_t size)
{
    world_text(path,
               "SELECT group_concat(m.name || '.' || c.cid || c.name || c.type "
               "|| c.\"notnull\" || ifnull(c.dflt_value, '-') || c.pk, ' ') "
               "FROM (SELECT name FROM sqlite_master WHERE type = 'table' "
               "ORDER BY name) AS m, pragma_table_info(m.name) AS c",
               out, size);
}

static void its_tables_are_those_of_a_fresh_file(void **state)
{
    char fresh[128], made[8192], upgraded[8192];
    world *w = *state;

    make_version_1(w);
    dibs__store_close(world_open(w));
    columns_of(w->path, upgraded, sizeof(upgraded));
    snprintf(fresh, sizeof(fresh), "%s.other", w->path);
    columns_of(fresh, made, sizeof(made));
    assert_non_null(strstr(made, "log."));
    assert_string_equal(upgraded, made);
}

/* A file of this version becomes one of another by what `sql` takes away. */
static void expect_upgrade(world *w, const char *sql)
{
    char fresh[128], made[8192], upgraded[8192];

    make_version_1(w);
    dibs__store_close(world_open(w));
    world_sql(w->path, sql);
    assert_taken_over(w);
    columns_of(w->path, upgraded, sizeof(upgraded));
    snprintf(fresh, sizeof(fresh), "%s.other", w->path);
    columns_of(fresh, made, sizeof(made));
    assert_non_null(strstr(made, "ear."));
    assert_non_null(strstr(made, "seat."));
    assert_non_null(strstr(made, "meter."));
    assert_non_null(strstr(made, "item."));
    assert_non_null(strstr(made, "entry."));
    assert_string_equal(upgraded, made);
}

#define DROP_9                                                                 \
    "DROP TABLE done; ALTER TABLE queue DROP COLUMN keep_done; "               \
    "ALTER TABLE queue DROP COLUMN done; "
#define DROP_8 DROP_9 "DROP TABLE entry; DROP TABLE ordered; "
#define DROP_7                                                                 \
    DROP_8                                                                     \
    "ALTER TABLE log DROP COLUMN prior; ALTER TABLE log DROP COLUMN total; "   \
    "ALTER TABLE log DROP COLUMN nth; DROP TABLE writer; "                     \
    "DROP TABLE queue; DROP TABLE item; DROP TABLE lane; DROP TABLE pusher; "  \
    "DROP TABLE dedup; DROP TABLE dead; "
#define DROP_6 DROP_7 "DROP TABLE meter; "
#define DROP_5 DROP_6 "DROP TABLE roster; DROP TABLE seat; "
#define DROP_4 DROP_5 "DROP TABLE rate; "
#define DROP_3 DROP_4 "DROP TABLE ear; "

static void version_2_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_3 "PRAGMA user_version = 2");
}

static void version_3_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_4 "PRAGMA user_version = 3");
}

static void version_4_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_5 "PRAGMA user_version = 4");
}

static void version_5_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_6 "PRAGMA user_version = 5");
}

static void version_6_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_7 "PRAGMA user_version = 6");
}

static void version_7_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_8 "PRAGMA user_version = 7");
}

static void version_8_is_upgraded_too(void **state)
{
    expect_upgrade(*state, DROP_9 "PRAGMA user_version = 8");
}

static int crowd_child(world *w, int gate, unsigned n)
{
    dibs__store *st = NULL;
    uint64_t position;
    char byte;

    if (read(gate, &byte, 1) != 0)
        return 2;
    if (dibs__store_open(w->url, soon(), &st, &w->err) != DIBS_OK ||
        try_lock(w, st, owner(n), n, NULL) != DIBS_OK ||
        st->ops->log->append(st,
                             &(dibs__append){.topic = "crowd",
                                             .data = "x",
                                             .len = 1,
                                             .keep = 1000},
                             soon(), &position, &w->err) != DIBS_OK) {
        fprintf(stderr, "child %u: %s\n", n, w->err.message);
        return pace_explains(w->err.status) ? PACE_MISSED : 1;
    }
    dibs__store_close(st);
    return 0;
}

static void many_processes_open_it_at_once(void **state)
{
    world *w = *state;
    pid_t children[CROWD];
    int gate[2];

    make_version_1(w);
    assert_int_equal(pipe(gate), 0);
    for (unsigned i = 0; i < CROWD; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            close(gate[1]);
            _exit(crowd_child(w, gate[0], 100 + i));
        }
    }
    close(gate[0]);
    close(gate[1]);
    for (unsigned i = 0; i < CROWD; i++)
        assert_int_equal(child_code(children[i]), 0);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM log"), CROWD);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM party WHERE "
                                           "name > '' AND tell = 0"),
                     CROWD + 2);
    assert_taken_over(w);
}

typedef struct opener {
    pthread_barrier_t *gate;
    const char *url;
    dibs__store *st;
    dibs_status rc;
    dibs_error err;
} opener;

static void *open_at_once(void *arg)
{
    opener *op = arg;

    pthread_barrier_wait(op->gate);
    op->rc = dibs__store_open(op->url, soon(), &op->st, &op->err);
    return NULL;
}

static void many_threads_open_it_at_once(void **state)
{
    world *w = *state;
    pthread_t threads[THREADS];
    opener openers[THREADS] = {0};
    pthread_barrier_t gate;

    make_version_1(w);
    assert_int_equal(pthread_barrier_init(&gate, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        openers[i].gate = &gate;
        openers[i].url = w->url;
        assert_int_equal(pthread_create(&threads[i], NULL, open_at_once,
                                        &openers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&gate);
    for (int i = 0; i < THREADS; i++) {
        if (openers[i].rc != DIBS_OK)
            FAIL_OF(openers[i].rc, "thread %d: %s", i, openers[i].err.message);
        dibs__store_close(openers[i].st);
    }
    assert_taken_over(w);
}

/* One that has the file open keeps to the version it knows: its statements name
 * their columns. */
static void who_has_it_open_goes_on(void **state)
{
    const char *put = "INSERT OR REPLACE INTO party(name, " PARTY_1
                      ") SELECT 'b', " PARTY_1 " FROM party WHERE name = 'a' "
                      "AND role = 0";
    world *w = *state;
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    dibs__store *st;

    make_version_1(w);
    assert_int_equal(dibs__sql.open_v2(w->path, &db, SQLITE_OPEN_READWRITE,
                                       NULL),
                     SQLITE_OK);
    assert_int_equal(dibs__sql.prepare_v3(db, put, -1, 0, &stmt, NULL),
                     SQLITE_OK);
    st = world_open(w);
    assert_int_equal(dibs__sql.step(stmt), SQLITE_DONE);
    dibs__sql.finalize(stmt);
    assert_int_equal(dibs__sql.close(db), SQLITE_OK);
    assert_status(try_lock(w, st, "b", 3, NULL), DIBS_BUSY);
    assert_status(unlock(w, st, "b", 1), DIBS_OK);
    dibs__store_close(st);
}

/* While another writes it cannot be taken over; then nothing has changed. */
static void it_is_all_or_nothing(void **state)
{
    world *w = *state;
    dibs__store *st = NULL;
    sqlite3 *db = NULL;

    make_version_1(w);
    assert_int_equal(dibs__sql.open_v2(w->path, &db, SQLITE_OPEN_READWRITE,
                                       NULL),
                     SQLITE_OK);
    assert_int_equal(dibs__sql.exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_status(dibs__store_open(w->url, dibsx_now() + 50 * DIBSX_MS, &st,
                                   &w->err),
                  DIBS_UNAVAIL);
    assert_int_equal(dibs__sql.close(db), SQLITE_OK);
    assert_int_equal(schema_version(w), 1);

    /* A table in the way fails it half-way. */
    world_sql(w->path, "CREATE TABLE log(x)");
    assert_status(world_refused(w, w->url), DIBS_INTERNAL);
    assert_int_equal(schema_version(w), 1);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM "
                                           "pragma_table_info('party') WHERE "
                                           "name = 'tell'"),
                     0);
    world_sql(w->path, "DROP TABLE log");
    assert_taken_over(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(what_is_in_it_stays),
        WORLD_TEST(its_tables_are_those_of_a_fresh_file),
        WORLD_TEST(version_2_is_upgraded_too),
        WORLD_TEST(version_3_is_upgraded_too),
        WORLD_TEST(version_4_is_upgraded_too),
        WORLD_TEST(version_5_is_upgraded_too),
        WORLD_TEST(version_6_is_upgraded_too),
        WORLD_TEST(version_7_is_upgraded_too),
        WORLD_TEST(version_8_is_upgraded_too),
        WORLD_TEST(many_processes_open_it_at_once),
        WORLD_TEST(many_threads_open_it_at_once),
        WORLD_TEST(who_has_it_open_goes_on),
        WORLD_TEST(it_is_all_or_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
