/* test_commits.c - commits and lists where steps overlap, and what of long tables they look
 * at. */
/* SPDX-License-Identifier: MIT */
#include "sessions.h"
#include "store/postgres/queries.h"

#include <strings.h>

/* Writes one value if another is absent. */
static void put_unless(char out[SQL_MAX], const char *absent, const char *key)
{
    snprintf(out, SQL_MAX,
             "SELECT unnest(dibs.value_commit('{0}','{0}','{1}','{1}',"
             "'{%s%s}','{0}','{%s%s,%s%s}','{0}','{%s%s}','{-}','{0}',"
             "ARRAY['x'::bytea]))",
             queue, absent, queue, absent, queue, key, queue, key);
}

/* One member leaves the index and another enters it. 4: its size is asked for; 12: it
 * is not. */
static void
swap_members(char out[SQL_MAX], const char *leave, const char *enter, int verb)
{
    snprintf(out, SQL_MAX,
             "SELECT convert_from((dibs.value_commit('{0}','{0}','{0}','{2}',"
             "NULL,NULL,NULL,'{2,%d}','{%s,%s}','{%s,%s}','{0,7}',"
             "ARRAY['','']::bytea[]))[1], 'UTF8')",
             verb, queue, queue, leave, enter);
}

/* Runs the first in a transaction, and the second before that is committed. */
static void overlap(const char *first, const char *second)
{
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, "%s", first);
    assert_int_equal(PQsendQuery(session[1], second), 1);
    await_second(session[1]);
    tell(session[0], NULL, "COMMIT");
    assert_true(finish(session[1]) > 0);
}

static long long count_named(const char *what, const char *begin)
{
    char text[SQL_MAX];

    snprintf(text, sizeof(text), "%s LIKE '%s%s%%'", what, queue, begin);
    return count(text);
}

/* That something is absent is as firm as a version: of two commits that each write what
 * the other wants to be absent one is done, also when a plain put is the other. */
static void what_is_absent_stays_so_until_the_commit(void **state)
{
    char one[SQL_MAX], other[SQL_MAX];

    (void)state;
    put_unless(one, "a", "b");
    put_unless(other, "b", "a");
    overlap(one, other);
    assert_int_equal(count_named("value WHERE key", ""), 1);
    assert_int_equal(count_named("value WHERE key", "b"), 1);
    put_unless(one, "c", "d");
    snprintf(other, sizeof(other), "SELECT dibs.value_put('%sc',-1,0,'x')",
             queue);
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, "%s", one);
    assert_int_equal(PQsendQuery(session[1], other), 1);
    await_second(session[1]);
    assert_false(is_over(session[1]));
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(finish(session[1]), 1);
    assert_int_equal(count_named("value WHERE key", "c"), 1);
    assert_int_equal(count("value WHERE version = 0"), 0);
}

/* A member that is not there leaves as firmly as one that is. */
static void a_swap_is_before_or_behind_another(void **state)
{
    char one[SQL_MAX], other[SQL_MAX];

    (void)state;
    swap_members(one, "a", "b", 12);
    swap_members(other, "b", "a", 12);
    overlap(one, other);
    assert_int_equal(count_named("entry WHERE name", ""), 1);
    assert_int_equal(count("entry WHERE at < 0"), 0);
}

static void only_sizes_wait_for_each_other(void **state)
{
    char sql[SQL_MAX], answer[SQL_MAX];

    (void)state;
    tell(session[1], NULL, "SET lock_timeout = '%lldms'",
         (long long)pace_ms(5000));
    tell(session[0], NULL, "BEGIN");
    swap_members(sql, "x", "a", 12);
    tell(session[0], NULL, "%s", sql);
    swap_members(sql, "y", "b", 12);
    tell(session[1], NULL, "%s", sql);
    tell(session[0], NULL, "COMMIT");

    tell(session[0], NULL, "BEGIN");
    swap_members(sql, "x", "c", 4);
    tell(session[0], answer, "%s", sql);
    assert_string_equal(strrchr(answer, ' '), " 3");
    swap_members(sql, "y", "d", 4);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    assert_false(is_over(session[1]));
    tell(session[0], NULL, "COMMIT");
    finish(session[1]);
    swap_members(sql, "y", "d", 4);
    tell(session[0], answer, "%s", sql);
    assert_string_equal(strrchr(answer, ' '), " 4");
}

/* Writes three values, or enters three members, in the order that is given. */
static void do_three(char out[SQL_MAX], bool values, const char *order)
{
    char names[144] = "";

    for (int i = 0; i < 3; i++)
        snprintf(names + strlen(names), sizeof(names) - strlen(names),
                 "%s%s%.*s", i ? "," : "", queue, values, order + i);
    snprintf(out, SQL_MAX,
             "SELECT unnest(dibs.value_commit('{0}','{0}','{0}','{3}',NULL,"
             "NULL,%s%s%s,'{%s}','{%s}','{%c,%c,%c}','{0,0,0}',"
             "ARRAY['','','']::bytea[]))",
             values ? "'{" : "", values ? names : "NULL", values ? "}'" : "",
             values ? "0,0,0" : "12,12,12", names, order[0], order[1],
             order[2]);
}

static void await_waiting(long long many)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);

    while (pg_number(&world_sv,
                     "SELECT count(*) FROM pg_locks WHERE NOT granted") < many)
        IN_TIME(dibsx_now() < end);
}

/* The one in the middle is locked; two come from both ends. */
static void come_from_both_ends(bool values)
{
    PGconn *third = pg_connect(&world_sv);
    char sql[SQL_MAX];

    assert_non_null(third);
    tell(third, NULL, "BEGIN");
    do_three(sql, values, "mnp");
    tell(third, NULL, "%s", sql);
    do_three(sql, values, "amz");
    assert_int_equal(PQsendQuery(session[0], sql), 1);
    await_waiting(1);
    do_three(sql, values, "zma");
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_waiting(2);
    tell(third, NULL, "ROLLBACK");
    assert_int_equal(finish(session[0]), 1);
    assert_int_equal(finish(session[1]), 1);
    PQfinish(third);
}

static void commits_lock_in_one_order(void **state)
{
    (void)state;
    come_from_both_ends(true);
    come_from_both_ends(false);
}

/* The time that a commit stood in line counts. */
static void the_clock_is_read_behind_the_locks(void **state)
{
    char sql[SQL_MAX], until[SQL_MAX];

    (void)state;
    put_unless(sql, "none", "held");
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, "%s", sql);
    tell(session[0], until, "SELECT dibs.now_us() + %lld",
         (long long)pace_ms(100) * 1000);
    snprintf(sql, sizeof(sql),
             "SELECT unnest(dibs.value_commit('{0}','{%.20s}','{0}','{1}',NULL,"
             "NULL,'{%sheld}','{0}','{%sheld}','{-}','{0}',"
             "ARRAY['late'::bytea]))",
             until, queue, queue);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    tell(session[0], NULL,
         "SELECT pg_sleep((%s - dibs.now_us()) / 1e6 + 0.001)", until);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(finish(session[1]), 1);
    assert_int_equal(count("value WHERE data = 'late'"), 0);
}

#define FIRST_TEXT(name, text) {#name, text},

/* Prepares a query, as the store has it, by its name in lower case. */
static void prepare(const char *name)
{
    static const struct {
        const char *name, *text;
    } queries[] = {DIBS__PG_QUERY_LIST(FIRST_TEXT)};
    char sql[4096];
    const char *text = NULL, *at;
    PGresult *result;

    snprintf(sql, sizeof(sql), "PREPARE %s AS ", name);
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
        if (strcasecmp(queries[i].name, name) == 0)
            text = queries[i].text;
    assert_non_null(text);
    for (; (at = strstr(text, "@schema@")) != NULL; text = at + 8)
        snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%.*sdibs",
                 (int)(at - text), text);
    snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), "%s", text);
    result = PQexec(session[0], sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
}

static void do_each_commit(void)
{
    char sql[SQL_MAX];

    swap_members(sql, "m77", "new", 12);
    tell(session[0], NULL, "%s", sql);
    put_unless(sql, "none", "some");
    tell(session[0], NULL, "%s", sql);
    assert_int_equal(tell(session[0], NULL,
                          "EXECUTE first('{%s}','{3}','{2}','{5}')", queue),
                     5);
}

/* The plans are made while the index is empty, and the server knows that it is. */
static void a_long_index_is_not_walked(void **state)
{
    long long before;

    (void)state;
    tell(session[0], NULL,
         "SET enable_seqscan = off; SET enable_bitmapscan = off; "
         "SET enable_hashjoin = off; SET enable_mergejoin = off; "
         "SET plan_cache_mode = force_generic_plan");
    tell(session[0], NULL, "TRUNCATE dibs.entry, dibs.value");
    tell(session[0], NULL, "VACUUM ANALYZE dibs.entry");
    tell(session[0], NULL, "VACUUM ANALYZE dibs.value");
    prepare("first");
    tell(session[0], NULL, "EXECUTE first('{x}','{0}','{0}','{5}')");
    tell(session[0], NULL, "SELECT dibs.entry_leave('x', 'y')");
    tell(session[0], NULL, "SELECT dibs.entry_enter('x', 'y', 1)");
    tell(session[0], NULL,
         "INSERT INTO dibs.entry SELECT n, '%s', 'm' || n FROM "
         "generate_series(1, 3000) AS n",
         queue);
    tell(session[0], NULL,
         "INSERT INTO dibs.value SELECT 'v' || n, n, NULL, 'x' FROM "
         "generate_series(1, 3000) AS n");
    tell(session[0], NULL, "BEGIN");
    before = looked_at();
    do_each_commit();
    assert_true(looked_at() - before < 200);
    tell(session[0], NULL, "COMMIT");
}

/* A page of a list costs what it shows, wherever it begins. */
static void a_page_of_a_list_begins_where_it_should(void **state)
{
    static const struct {
        const char *name, *rows, *page;
        int shown;
    } lists[] = {
        {"value_list", "value SELECT 'v' || n, n, NULL, 'x'", "'v3900',0", 100},
        {"list",
         "roll(last, name, owner, until_us) SELECT n, 'v' || n, 'o', 9e15",
         "'v3900',0", 64},
        {"rates", "rate SELECT 'v' || n, 9e15, 1, 0, 1, 1, 9e15",
         "'v3900',0,256", 100},
        {"rosters",
         "roster(kind, gen, until_us, name) SELECT 2, 1, 9e15, 'v' || n",
         "'v3900',0,2,256", 100},
    };

    (void)state;
    tell(session[0], NULL,
         "SET enable_seqscan = off; SET enable_bitmapscan = off; "
         "SET enable_hashjoin = off; SET enable_mergejoin = off; "
         "SET plan_cache_mode = force_generic_plan");
    tell(session[0], NULL,
         "TRUNCATE dibs.value, dibs.roll, dibs.rate, dibs.roster; "
         "ALTER TABLE dibs.roll DISABLE TRIGGER sweep");
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        long long before;

        prepare(lists[i].name);
        tell(session[0], NULL,
             "INSERT INTO dibs.%s FROM generate_series(1001, 4000) AS n",
             lists[i].rows);
        tell(session[0], NULL, "BEGIN");
        before = looked_at();
        assert_int_equal(tell(session[0], NULL, "EXECUTE %s(%s)", lists[i].name,
                              lists[i].page),
                         lists[i].shown);
        if (looked_at() - before >= 600)
            fail_msg("%s looks at %lld", lists[i].name, looked_at() - before);
        tell(session[0], NULL, "COMMIT");
    }
    tell(session[0], NULL, "ALTER TABLE dibs.roll ENABLE TRIGGER sweep");
}

/* The number of the latch is one of those at which rosters are swept. */
static void a_count_walks_no_rosters(void **state)
{
    long long before;

    (void)state;
    tell(session[0], NULL,
         "INSERT INTO dibs.roster(kind, gen, last, need, until_us, name) "
         "SELECT 2, 16, 16, 1000, 9e15, 'latch' || n FROM "
         "generate_series(1, 3000) AS n");
    tell(session[0], NULL, "BEGIN");
    before = looked_at();
    for (int i = 0; i < 20; i++)
        tell(session[0], NULL,
             "SELECT dibs.meet('latch7','count','%d',0,0,1000,60000,'',0,0,'')",
             i);
    assert_true(looked_at() - before < 500);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(count("roster WHERE name = 'latch7' AND here = 20"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(what_is_absent_stays_so_until_the_commit),
        SESSION_TEST(a_swap_is_before_or_behind_another),
        SESSION_TEST(only_sizes_wait_for_each_other),
        SESSION_TEST(commits_lock_in_one_order),
        SESSION_TEST(the_clock_is_read_behind_the_locks),
        SESSION_TEST(a_long_index_is_not_walked),
        SESSION_TEST(a_page_of_a_list_begins_where_it_should),
        SESSION_TEST(a_count_walks_no_rosters),
    };

    return cmocka_run_group_tests_name("postgres commits", tests, world_begin,
                                       world_end);
}
