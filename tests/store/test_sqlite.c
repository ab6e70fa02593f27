/* test_sqlite.c - what the embedded store promises beyond the contract: fences
 * that never fall, sharing in memory, durable values, bounded leftovers. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <inttypes.h>

static void a_fence_rises_over_reopen_and_deletion(void **state)
{
    world *w = *state;
    uint64_t last = 0;

    for (int i = 0; i < 5; i++) {
        dibs__store *st = world_open(w);
        dibs__answer ans;

        for (int j = 0; j < 3; j++) {
            assert_status(try_lock(w, st, "a", 1, &ans), DIBS_OK);
            assert_true(ans.fence > last);
            last = ans.fence;
            assert_status(unlock(w, st, "a", 1), DIBS_OK);
        }
        dibs__store_close(st);
        assert_int_equal(world_number(w->path, "SELECT count(*) FROM party "
                                               "WHERE name > ''"),
                         0);
    }
}

/* A watermark an hour ahead is what a clock set back by an hour looks like. */
static void a_fence_rises_with_the_clock_set_back(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs__answer ans;
    int64_t ahead = dibsx_wall_us() + INT64_C(3600000000);
    char sql[128];

    snprintf(sql, sizeof(sql),
             "UPDATE party SET fence = %" PRId64 " WHERE name = ''", ahead);
    world_sql(w->path, sql);
    assert_status(try_lock(w, st, "a", 1, &ans), DIBS_OK);
    assert_int_equal(ans.fence, ahead + 1);
    assert_int_equal(put_text(w, st, "k", "v"), ahead + 2);
    dibs__store_close(st);
    st = world_open(w);
    assert_status(try_lock(w, st, "b", 1, &ans), DIBS_OK);
    assert_int_equal(ans.fence, ahead + 3);
    dibs__store_close(st);
}

static void a_version_is_not_used_again_after_a_delete(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    uint64_t last = 0;

    for (int i = 0; i < 5; i++) {
        uint64_t version = put_text(w, st, "k", "v");

        assert_true(version > last);
        last = version;
        assert_status(st->ops->value->del(st, "k", version, soon(), &w->err),
                      DIBS_OK);
    }
    dibs__store_close(st);
}

/* PRAGMA synchronous of a connection: 1 is NORMAL, 2 is FULL. */
static int64_t synchronous(dibs__store *st, dibs__sqlite_role role)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, role);
    sqlite3_stmt *stmt = NULL;
    int64_t level;

    assert_status(dibs__sqlite_enter(cn, soon(), NULL), DIBS_OK);
    assert_int_equal(dibs__sql.prepare_v3(cn->db, "PRAGMA synchronous", -1, 0,
                                          &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(dibs__sql.step(stmt), SQLITE_ROW);
    level = dibs__sql.column_int64(stmt, 0);
    dibs__sql.finalize(stmt);
    dibs__sqlite_leave(cn);
    return level;
}

static void only_values_pay_for_the_disk(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    assert_int_equal(synchronous(st, DIBS__SQLITE_LEASE), 1);
    assert_int_equal(synchronous(st, DIBS__SQLITE_RENEW), 1);
    assert_int_equal(synchronous(st, DIBS__SQLITE_VALUE), 2);
    dibs__store_close(st);
}

static void memory_is_shared_by_name_only(void **state)
{
    world *w = *state;
    dibs__store *a = world_open_url(w, "memory:");
    dibs__store *b = world_open_url(w, "memory:");
    dibs__store *c = world_open_url(w, "memory:c");
    dibs__store *d = world_open_url(w, "memory:c");
    dibs__store *e = world_open_url(w, "memory:e");

    assert_status(try_lock(w, a, "x", 1, NULL), DIBS_OK);
    assert_status(try_lock(w, b, "x", 2, NULL), DIBS_OK);
    assert_status(try_lock(w, c, "x", 3, NULL), DIBS_OK);
    assert_status(try_lock(w, d, "x", 4, NULL), DIBS_BUSY);
    assert_status(try_lock(w, e, "x", 5, NULL), DIBS_OK);
    dibs__store_close(a);
    dibs__store_close(b);
    dibs__store_close(e);

    /* It lives until the last is closed, and then begins anew. */
    dibs__store_close(c);
    assert_status(try_lock(w, d, "x", 6, NULL), DIBS_BUSY);
    dibs__store_close(d);
    d = world_open_url(w, "memory:c");
    assert_status(try_lock(w, d, "x", 7, NULL), DIBS_OK);
    dibs__store_close(d);
}

/* Parties that died long ago, of names that nobody will ask for. */
static void leave_dead(world *w, int count)
{
    char sql[512];

    snprintf(sql, sizeof(sql),
             "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
             "WHERE i < %d) INSERT INTO party SELECT printf('dead-%%05d', i), "
             "'00000000000000000000000000000001', 0, 0, 1, 0, 0, 0, 1, 0, "
             "1000, 1, 2, '', 'gone:1', 0 FROM n",
             count);
    world_sql(w->path, sql);
}

static void the_long_dead_are_swept(void **state)
{
    enum { DEAD = 500, GRANTS = 4000 };
    world *w = *state;
    dibs__store *st = world_open(w);
    const char *left = "SELECT count(*) FROM party WHERE name > 'dead'";

    leave_dead(w, DEAD);
    assert_status(try_lock(w, st, "alive", 1, NULL), DIBS_OK);
    assert_int_equal(world_number(w->path, left) > DEAD - 100, 1);
    for (unsigned i = 0; i < GRANTS; i++) {
        assert_status(try_lock(w, st, "zz", 2, NULL), DIBS_OK);
        assert_status(unlock(w, st, "zz", 2), DIBS_OK);
    }
    assert_int_equal(world_number(w->path, left), 0);
    assert_status(try_lock(w, st, "alive", 3, NULL), DIBS_BUSY);
    dibs__store_close(st);
}

static void expired_values_are_swept(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    const char *left = "SELECT count(*) FROM value WHERE key > 'dead'";

    world_sql(w->path,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
              "WHERE i < 100) INSERT INTO value SELECT printf('dead-%03d', i), "
              "x'31', i, 1000 FROM n");
    assert_int_equal(world_number(w->path, left), 100);
    for (int i = 0; i < 10; i++)
        put_text(w, st, "alive", "v");
    assert_int_equal(world_number(w->path, left), 0);
    assert_text(w, st, "alive", "v");
    dibs__store_close(st);
}

/* No step may act on what cannot be a party, nor change it. */
static void a_broken_row_is_reported_and_left(void **state)
{
    static const char *const breaks[] = {
        "role = 9",
        "mode = -1",
        "fence = -5",
        "who = printf('%400c', 'x')",
        "bell = printf('%50c', 'x')",
        "permits = 5000000000",
        "until_us = -1",
        "until_us = 9223372036854775807",
        "ttl_ms = 9223372036854775807",
        "fence = 0",
        "owner = 'short'",
        "tell = 2",
    };
    world *w = *state;
    dibs__store *st = world_open(w);
    char sql[160];

    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
        snprintf(sql, sizeof(sql), "UPDATE party SET %s WHERE name = 'a'",
                 breaks[i]);
        world_sql(w->path, sql);
        assert_status(try_lock(w, st, "a", 2, NULL), DIBS_INTERNAL);
        assert_status(unlock(w, st, "a", 1), DIBS_INTERNAL);
        snprintf(sql, sizeof(sql), "SELECT count(*) FROM party WHERE %s",
                 breaks[i]);
        assert_int_equal(world_number(w->path, sql), 1);
        world_sql(w->path, "DELETE FROM party WHERE name = 'a'");
    }
    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    dibs__store_close(st);
}

typedef struct listing {
    world *w;
    dibs__store *st;
    size_t count;
    size_t stop_at;
    char last[DIBS_NAME_MAX + 1];
    bool reenter;
} listing;

static bool
on_names(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    listing *ls = arg;

    assert_int_equal(count, 1);
    assert_true(entries[0].holder);
    assert_true(strcmp(name, ls->last) > 0);
    snprintf(ls->last, sizeof(ls->last), "%s", name);
    if (ls->reenter) /* Nothing is locked while this runs. */
        assert_status(try_lock(ls->w, ls->st, name, 9999, NULL), DIBS_BUSY);
    return ++ls->count != ls->stop_at;
}

static bool on_keys(const dibs_state_item *item, void *arg)
{
    listing *ls = arg;

    assert_true(strcmp(item->key, ls->last) > 0);
    assert_int_equal(item->len, 1);
    assert_int_equal(item->expires_ms, -1);
    snprintf(ls->last, sizeof(ls->last), "%s", item->key);
    if (ls->reenter)
        assert_text(ls->w, ls->st, item->key, "v");
    return ++ls->count != ls->stop_at;
}

static size_t names(world *w, dibs__store *st, const char *begins,
                    size_t stop_at, bool reenter)
{
    listing ls = {.w = w, .st = st, .stop_at = stop_at, .reenter = reenter};

    assert_status(st->ops->lease->list(st, begins, soon(), on_names, &ls,
                                       &w->err),
                  DIBS_OK);
    return ls.count;
}

static size_t keys(world *w, dibs__store *st, const char *begins,
                   size_t stop_at, bool reenter)
{
    listing ls = {.w = w, .st = st, .stop_at = stop_at, .reenter = reenter};

    assert_status(st->ops->value->list(st, begins, soon(), on_keys, &ls,
                                       &w->err),
                  DIBS_OK);
    return ls.count;
}

static void listings_go_on_over_many_pages(void **state)
{
    enum { MANY = 700 };
    world *w = *state;
    dibs__store *st = world_open_url(w, "memory:");
    char name[32];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n-%04u", i);
        assert_status(try_lock(w, st, name, i, NULL), DIBS_OK);
        put_text(w, st, name, "v");
    }
    assert_int_equal(names(w, st, "", 0, true), MANY);
    assert_int_equal(names(w, st, "n-00", 0, false), 100);
    assert_int_equal(names(w, st, "", 300, false), 300);
    assert_int_equal(names(w, st, "x", 0, false), 0);
    assert_int_equal(keys(w, st, "", 0, true), MANY);
    assert_int_equal(keys(w, st, "n-00", 0, false), 100);
    assert_int_equal(keys(w, st, "", 300, false), 300);
    assert_int_equal(keys(w, st, "x", 0, false), 0);
    dibs__store_close(st);
}

static void a_prefix_is_taken_literally(void **state)
{
    static const char *const all[] = {"a%b", "a_b",       "aXb",
                                      "a*b", "a\xff\xff", "a\xff\xff!"};
    world *w = *state;
    dibs__store *st = world_open(w);

    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        assert_status(try_lock(w, st, all[i], i, NULL), DIBS_OK);
        put_text(w, st, all[i], "v");
    }
    assert_int_equal(names(w, st, "a%", 0, false), 1);
    assert_int_equal(names(w, st, "a_", 0, false), 1);
    assert_int_equal(names(w, st, "a*b", 0, false), 1);
    assert_int_equal(names(w, st, "a\xff\xff", 0, false), 2);
    assert_int_equal(names(w, st, "a", 0, false), 6);
    assert_int_equal(keys(w, st, "a%", 0, false), 1);
    assert_int_equal(keys(w, st, "a\xff\xff", 0, false), 2);
    dibs__store_close(st);
}

typedef struct audited {
    dibs_severity worst;
    unsigned count;
    char subjects[256];
    char worst_subject[32];
} audited;

static void on_finding(const dibs_finding *finding, void *arg)
{
    audited *au = arg;
    size_t len = strlen(au->subjects);

    assert_true(strlen(finding->found) > 0);
    assert_int_equal(finding->severity != DIBS_FINE, finding->advice != NULL);
    snprintf(au->subjects + len, sizeof(au->subjects) - len, "%s,",
             finding->subject);
    if (finding->severity > au->worst)
        snprintf(au->worst_subject, sizeof(au->worst_subject), "%s",
                 finding->subject);
    if (finding->severity > au->worst)
        au->worst = finding->severity;
    au->count++;
}

static void an_audit_tells_what_there_is(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    audited au = {0};

    assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
    assert_status(st->ops->audit(st, soon(), on_finding, &au, &w->err),
                  DIBS_OK);
    assert_string_equal(au.subjects, "sqlite,schema,integrity,leases,values,"
                                     "file,log,file system,free space,clock,"
                                     "doorbells,");
    assert_true(au.worst < DIBS_CAUTION);

    assert_int_equal(unlink(w->path), 0);
    au = (audited){0};
    assert_status(st->ops->audit(st, soon(), on_finding, &au, &w->err),
                  DIBS_OK);
    assert_int_equal(au.worst, DIBS_DANGER);
    assert_string_equal(au.worst_subject, "file");
    dibs__store_close(st);
}

static void an_audit_of_memory_says_that_it_is_not_shared(void **state)
{
    world *w = *state;
    dibs__store *st = world_open_url(w, "memory:");
    audited au = {0};

    assert_status(st->ops->audit(st, soon(), on_finding, &au, &w->err),
                  DIBS_OK);
    assert_int_equal(au.worst, DIBS_NOTE);
    assert_string_equal(au.worst_subject, "file");
    dibs__store_close(st);
}

/* A shared log that only grew would fill the disk, and slow every open. */
static void the_log_is_bounded_and_cut_at_close(void **state)
{
    enum { PAIRS = 3000, PAGE = 4096 + 24 };
    world *w = *state;
    dibs__store *st = world_open(w);
    char log[PATH_MAX];

    snprintf(log, sizeof(log), "%s-wal", w->path);
    for (unsigned i = 0; i < PAIRS; i++) {
        assert_status(try_lock(w, st, "a", 1, NULL), DIBS_OK);
        assert_status(unlock(w, st, "a", 1), DIBS_OK);
        assert_true(file_size(log) < 1200 * PAGE);
    }
    dibs__store_close(st);
    assert_true(file_size(log) <= 64 * PAGE);
    st = world_open(w);
    assert_status(try_lock(w, st, "a", 2, NULL), DIBS_OK);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_fence_rises_over_reopen_and_deletion),
        WORLD_TEST(a_fence_rises_with_the_clock_set_back),
        WORLD_TEST(a_version_is_not_used_again_after_a_delete),
        WORLD_TEST(only_values_pay_for_the_disk),
        WORLD_TEST(memory_is_shared_by_name_only),
        WORLD_TEST(the_long_dead_are_swept),
        WORLD_TEST(expired_values_are_swept),
        WORLD_TEST(a_broken_row_is_reported_and_left),
        WORLD_TEST(listings_go_on_over_many_pages),
        WORLD_TEST(a_prefix_is_taken_literally),
        WORLD_TEST(an_audit_tells_what_there_is),
        WORLD_TEST(an_audit_of_memory_says_that_it_is_not_shared),
        WORLD_TEST(the_log_is_bounded_and_cut_at_close),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
