/* test_queue.c - queues and commits where steps overlap: sessions that hold their transactions
 * open at the worst moment, what is notified, what waits for the disk, what is left. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"
#include "store/postgres/queries.h"

#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <strings.h>

enum { SQL_MAX = 512, SESSIONS = 2 };

#define NONE "NULL,NULL,NULL"

static PGconn *session[SESSIONS];
static char queue[32]; /* another one for each test */

/* Runs a statement, whose first cell is copied to `out` if that is not NULL. */
__attribute__((format(printf, 3, 4))) static int
tell(PGconn *pq, char *out, const char *format, ...)
{
    char sql[SQL_MAX];
    PGresult *result;
    va_list args;
    int rows;

    va_start(args, format);
    vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    result = PQexec(pq, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK &&
        PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQresultErrorMessage(result));
    rows = PQntuples(result);
    if (out)
        snprintf(out, SQL_MAX, "%s", rows ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return rows;
}

static long long count(const char *what)
{
    char sql[SQL_MAX];

    snprintf(sql, sizeof(sql), "SELECT count(*) FROM dibs.%s", what);
    return pg_number(&world_sv, sql);
}

static long long count_items(const char *where)
{
    char what[SQL_MAX];

    snprintf(what, sizeof(what), "item WHERE queue = '%s' AND %s", queue,
             where);
    return count(what);
}

/* One item, without a dedup id. */
static void push_text(char out[SQL_MAX], int lane, int number)
{
    snprintf(out, SQL_MAX,
             "SELECT dibs.push('%s',%d,%d,ARRAY['x'::bytea],'{0}','{0}','{0}',"
             "'{\"\"}','{\"\"}','{0}')",
             queue, lane, number);
}

static void push(PGconn *pq, int lane, int number)
{
    char sql[SQL_MAX], answer[SQL_MAX];

    push_text(sql, lane, number);
    tell(pq, answer, "%s", sql);
    assert_memory_equal(answer, "0 ", 2);
}

/* A request for one item. */
static void reserve_text(char out[SQL_MAX], int lane, int number, bool wait)
{
    snprintf(out, SQL_MAX,
             "SELECT unnest(dibs.reserve('%s',%d,%d,coalesce((SELECT stamp "
             "FROM dibs.lane WHERE queue = '%s' AND lane = %d),0),60000,1,%s,"
             "'',0,0,'bell%d'," NONE "))",
             queue, lane, number, queue, lane, wait ? "true" : "false", lane);
}

/* Answers how many items it got. */
static int reserve(PGconn *pq, int lane, int number, bool wait)
{
    char sql[SQL_MAX];

    reserve_text(sql, lane, number, wait);
    return tell(pq, NULL, "%s", sql) - 2;
}

/* The same, after an ack of what the lane has. */
static int reserve_ack(PGconn *pq, int lane, int number)
{
    return tell(pq, NULL,
                "SELECT unnest(dibs.reserve('%s',%d,%d,(SELECT stamp FROM "
                "dibs.lane WHERE queue = '%s' AND lane = %d),60000,1,false,"
                "'',0,0,'bell%d',NULL,(SELECT array_agg(x) FROM (SELECT "
                "unnest(ARRAY[0,id,fence,attempts,0]) AS x FROM dibs.item "
                "WHERE queue = '%s' AND lane = %d) AS o),ARRAY['']))",
                queue, lane, number, queue, lane, lane, queue, lane) -
           2;
}

/* Whether what was sent has ended. */
static bool is_over(PGconn *pq)
{
    assert_int_equal(PQconsumeInput(pq), 1);
    return !PQisBusy(pq);
}

/* The statement that was sent on a session either waits for a lock, or ends. */
static void await_second(PGconn *pq)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);

    while (!is_over(pq) && count("meta WHERE EXISTS (SELECT FROM pg_locks "
                                 "WHERE NOT granted)") == 0) {
        IN_TIME(dibsx_now() < end);
        poll(NULL, 0, 1);
    }
}

/* Takes the answer to what was sent: its rows. */
static int finish(PGconn *pq)
{
    PGresult *result = PQgetResult(pq);
    int rows = PQntuples(result);

    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    while (result) {
        PQclear(result);
        result = PQgetResult(pq);
    }
    return rows;
}

/* A push that does not see the place, and a place that does not see the item, would
 * both be content: neither may be, in either order. */
static void push_and_sleep_never_miss(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    /* The place is not committed when the push looks. */
    reserve(session[0], 1, 1, false);
    tell(session[0], NULL, "BEGIN");
    assert_int_equal(reserve(session[0], 1, 2, true), 0);
    push_text(sql, 9, 1);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(finish(session[1]), 1);
    assert_int_equal(count_items("lane = 1"), 1);
    assert_int_equal(count_items("lane = 0"), 0);
    /* The item is not committed when the lane looks. */
    assert_int_equal(reserve(session[0], 1, 3, false), 1);
    tell(session[1], NULL, "BEGIN");
    push(session[1], 9, 2);
    reserve_text(sql, 1, 4, true);
    assert_int_equal(PQsendQuery(session[0], sql), 1);
    await_second(session[0]);
    tell(session[1], NULL, "COMMIT");
    assert_int_equal(finish(session[0]), 3);
    assert_int_equal(count_items("lane = 1"), 2);
    assert_int_equal(count_items("lane = 0"), 0);
}

/* Pushes one item with a dedup id and a delay: it makes nothing ready, whether it is a
 * duplicate or not. */
static void push_later(PGconn *pq, int lane, int number)
{
    tell(pq, NULL,
         "SELECT dibs.push('%s',%d,%d,ARRAY['x'::bytea],'{60000}','{0}','{0}',"
         "'{\"\"}','{one}','{0}')",
         queue, lane, number);
}

/* A lane that waits is locked by no push that has nothing for it: the next one would pass it
 * over. */
static void a_push_of_nothing_ready_locks_no_lane(void **state)
{
    (void)state;
    push(session[0], 9, 1);
    reserve(session[0], 1, 1, false);
    assert_int_equal(reserve(session[0], 1, 2, false), 1);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(reserve(session[0], 1, 1 + 2 * i, true), 0);
        tell(session[1], NULL, "BEGIN");
        push_later(session[1], 8, i);
        push(session[0], 9, 1 + i);
        tell(session[1], NULL, "COMMIT");
        assert_int_equal(count_items("lane = 1"), 1 + i);
        assert_int_equal(count_items("due_us > 0"), 1);
        assert_int_equal(reserve(session[0], 1, 2 + 2 * i, false), 1);
    }
}

/* Nor by one that sees an item which a take has locked. */
static void a_push_beside_a_take_locks_no_lane(void **state)
{
    PGconn *taker = pg_connect(&world_sv);

    (void)state;
    assert_non_null(taker);
    push(session[0], 9, 1);
    reserve(session[0], 1, 1, false);
    reserve(taker, 2, 1, false);
    tell(taker, NULL, "BEGIN");
    assert_int_equal(reserve(taker, 2, 2, false), 1);
    assert_int_equal(reserve(session[0], 1, 2, true), 0);
    tell(session[1], NULL, "BEGIN");
    push_later(session[1], 8, 1);
    push(session[0], 9, 2);
    tell(session[1], NULL, "COMMIT");
    tell(taker, NULL, "COMMIT");
    PQfinish(taker);
    assert_int_equal(count_items("lane = 1"), 1);
    assert_int_equal(count_items("lane = 2"), 1);
}

/* A push passes over a lane that sends its request again, and neither sees the other: the
 * lane waits for the push before it looks. */
static void a_lane_that_asks_again_misses_nothing(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    reserve(session[0], 1, 1, false);
    assert_int_equal(reserve(session[0], 1, 2, true), 0);
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL,
         "SELECT FROM dibs.lane WHERE queue = '%s' FOR UPDATE", queue);
    tell(session[1], NULL, "BEGIN");
    push(session[1], 9, 1);
    reserve_text(sql, 1, 2, true);
    assert_int_equal(PQsendQuery(session[0], sql), 1);
    await_second(session[0]);
    tell(session[1], NULL, "COMMIT");
    (void)finish(session[0]);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(count_items("lane = 1"), 1);
}

/* All that wait for a lock of a step wait little: it is not the longer, the more a worker
 * had that is gone. */
static void a_dead_worker_costs_a_step_little(void **state)
{
    (void)state;
    tell(session[0], NULL,
         "SELECT dibs.reserve('%s',1,1,0,60000,0,false,'bert',0,0,'bell1'," NONE
         ")",
         queue);
    for (int number = 1; number <= 6; number++)
        tell(session[0], NULL,
             "SELECT dibs.push('%s',9,%d,array_fill('x'::bytea,a),z,z,z,"
             "array_fill('bert'::text,a),array_fill(''::text,a),z) FROM "
             "(SELECT ARRAY[100] AS a, array_fill(0::bigint,ARRAY[100]) AS z) "
             "AS o",
             queue, number);
    assert_int_equal(count_items("own = 'bert'"), 600);
    tell(session[0], NULL, "SELECT dibs.leave('%s',1)", queue);
    /* It ends the lane, and looks again as every step does. */
    assert_int_equal(count_items("own = 'bert'"), 600 - 2 * 256);
    reserve(session[0], 2, 1, false);
    assert_int_equal(count_items("own = 'bert'"), 0);
    assert_int_equal(count("lane WHERE worker = 'bert'"), 0);
}

#define APPEND "SELECT dibs.log_append('%s',%d,1,60000,9,0,0,'x',false)"

/* The entry of a log that is committed later has the higher position, and knows the one
 * before it: a reader that follows closely misses none. */
static void reader_misses_no_commit_out_of_order(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, APPEND, queue, 1);
    snprintf(sql, sizeof(sql), APPEND, queue, 2);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(finish(session[1]), 1);
    snprintf(sql, sizeof(sql),
             "SELECT count(*) FROM dibs.log AS l JOIN dibs.log AS k ON "
             "k.topic = l.topic AND k.prior = l.position WHERE l.topic = '%s'",
             queue);
    assert_int_equal(pg_number(&world_sv, sql), 1);
}

/* A lane that is tended while a push looks for it is told that something is ready. */
static void a_tended_lane_misses_nothing(void **state)
{
    char answer[SQL_MAX];

    (void)state;
    reserve(session[0], 1, 1, false);
    reserve(session[0], 1, 2, true);
    tell(session[1], NULL, "BEGIN");
    /* As if the row were locked for a moment, when the push passes it. */
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL,
         "SELECT FROM dibs.lane WHERE queue = '%s' FOR UPDATE", queue);
    push(session[1], 9, 1);
    assert_int_equal(
        PQsendQuery(session[0],
                    "SELECT dibs.tend(array_agg(queue), array_agg(lane), "
                    "array_agg(60000::bigint)) FROM dibs.lane WHERE waits_us "
                    "> 0"),
        1);
    await_second(session[0]);
    tell(session[1], NULL, "COMMIT");
    {
        PGresult *result = PQgetResult(session[0]);

        assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
        snprintf(answer, sizeof(answer), "%s", PQgetvalue(result, 0, 0));
        PQclear(result);
        assert_null(PQgetResult(session[0]));
    }
    tell(session[0], NULL, "COMMIT");
    /* Status, left_ms, ready. */
    assert_memory_equal(answer, "0 0 ", 4);
    assert_string_equal(answer + strlen(answer) - 2, " 1");
}

/* Steps that overlap do not wait for each other, unless one of them goes to sleep. */
static void claims_wait_for_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++) {
        tell(session[i], NULL, "SET lock_timeout = 2000");
        reserve(session[i], i + 1, 1, false);
    }
    push(session[0], 9, 1);
    push(session[0], 9, 2);
    tell(session[0], NULL, "BEGIN");
    assert_int_equal(reserve(session[0], 1, 2, false), 1);
    assert_int_equal(reserve(session[1], 2, 2, false), 1);
    push(session[0], 9, 3);
    push(session[1], 8, 1);
    assert_int_equal(reserve(session[1], 2, 3, false), 1);
    tell(session[0], NULL, "COMMIT");
    assert_int_equal(count_items("lane = 2"), 2);
    assert_int_equal(count_items("lane = 1"), 1);
    assert_int_equal(count_items("lane = 0"), 1);
}

/* A purge of what is out waits for the lanes that had something when it looked. What another
 * lane takes meanwhile is not its business. */
static void a_purge_takes_from_no_lane_unlocked(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    for (int i = 0; i < SESSIONS; i++) {
        push(session[0], 9, i + 1);
        reserve(session[0], i + 1, 1, false);
    }
    assert_int_equal(reserve(session[0], 2, 2, false), 1);
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL,
         "SELECT FROM dibs.lane WHERE queue = '%s' FOR UPDATE", queue);
    snprintf(sql, sizeof(sql), "SELECT dibs.queue_purge('%s', 4, 9)", queue);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    assert_int_equal(reserve(session[0], 1, 2, false), 1);
    tell(session[0], NULL, "COMMIT");
    (void)finish(session[1]);
    assert_int_equal(count_items("lane = 2"), 0);
    assert_int_equal(count_items("lane = 1"), 1);
}

/* How many notices came to the session. What is not there yet would come before the
 * answer to what it asks now. */
static int notices(PGconn *pq)
{
    PGnotify *notice;
    int seen = 0;

    tell(pq, NULL, "SELECT 1");
    while ((notice = PQnotifies(pq)) != NULL) {
        seen++;
        PQfreemem(notice);
    }
    return seen;
}

/* NOTIFY takes a lock of the whole server. */
static void no_notify_when_nobody_waits(void **state)
{
    (void)state;
    tell(session[0], NULL, "LISTEN dibs_bell1");
    reserve(session[0], 1, 1, false);
    assert_int_equal(reserve(session[0], 1, 2, false), 0);
    push(session[0], 9, 1);
    assert_int_equal(notices(session[0]), 0);
    assert_int_equal(reserve(session[0], 1, 3, false), 1);
    assert_int_equal(reserve(session[0], 1, 4, true), 0);
    push(session[0], 9, 2);
    assert_int_equal(notices(session[0]), 1);
    /* It was handed something, and waits no more. */
    push(session[0], 9, 3);
    assert_int_equal(notices(session[0]), 0);
    tell(session[0], NULL, "UNLISTEN *");
}

/* Begins a transaction that would wait for the disk. */
static void begin(void)
{
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, "SET LOCAL synchronous_commit = on");
}

/* Commits, and tells whether that waited for the disk. */
static bool waited(void)
{
    char how[SQL_MAX];

    tell(session[0], how, "SELECT current_setting('synchronous_commit')");
    tell(session[0], NULL, "COMMIT");
    return strcmp(how, "on") == 0;
}

static bool waited_for(int number, bool wait, int expected)
{
    begin();
    assert_int_equal(reserve(session[0], 1, number, wait), expected);
    return waited();
}

static bool tended(void)
{
    begin();
    tell(session[0], NULL, "SELECT dibs.tend('{%s}','{1}','{60000}')", queue);
    return waited();
}

static void only_what_is_believed_in_waits_for_the_disk(void **state)
{
    (void)state;
    assert_false(waited_for(1, false, 0));
    assert_false(waited_for(2, true, 0));
    assert_false(tended());
    begin();
    push(session[0], 9, 1);
    assert_true(waited());
    assert_true(waited_for(3, true, 1));
    assert_true(tended());
    /* It has that, and the number of its place must not be lost. */
    assert_true(waited_for(4, true, 0));
    begin();
    tell(session[0], NULL,
         "SELECT dibs.reserve('%s',1,5,(SELECT stamp FROM dibs.lane WHERE "
         "queue = '%s'),60000,0,false,'',0,0,'',NULL,(SELECT ARRAY[0,id,fence,"
         "attempts,0] FROM dibs.item WHERE queue = '%s'),'{\"\"}')",
         queue, queue, queue);
    assert_true(waited());
    assert_int_equal(count_items("true"), 0);
    begin();
    tell(session[0], NULL, "SELECT dibs.leave('%s',1)", queue);
    assert_false(waited());
}

static long long rows_left(void)
{
    char sql[SQL_MAX];

    snprintf(sql, sizeof(sql),
             "SELECT (SELECT count(*) FROM dibs.queue WHERE name = '%s') + "
             "(SELECT count(*) FROM dibs.lane WHERE queue = '%s') + "
             "(SELECT count(*) FROM dibs.pusher WHERE queue = '%s') + "
             "(SELECT count(*) FROM dibs.item_data WHERE queue = '%s') + "
             "(SELECT count(*) FROM dibs.dedup WHERE queue = '%s') + "
             "(SELECT count(*) FROM dibs.tally WHERE queue = '%s')",
             queue, queue, queue, queue, queue, queue);
    return pg_number(&world_sv, sql);
}

/* Once nobody uses it for a while, which the test does not wait for. */
static void done_leaves_nothing(void **state)
{
    char other[32];

    (void)state;
    reserve(session[0], 1, 1, false);
    tell(session[0], NULL,
         "SELECT dibs.push('%s',9,1,ARRAY['x'::bytea],'{0}','{0}','{0}',"
         "'{\"\"}','{window}','{1000}')",
         queue);
    assert_int_equal(reserve(session[0], 1, 2, false), 1);
    tell(session[0], NULL, "SELECT dibs.queue_purge('%s', 4, 1000)", queue);
    assert_int_equal(count_items("true"), 0);
    assert_true(rows_left() >= 3);
    tell(session[0], NULL,
         "UPDATE dibs.lane SET until_us = 1, end_s = 0; "
         "UPDATE dibs.pusher SET end_min = 0; "
         "UPDATE dibs.dedup SET until_us = 1");
    memcpy(other, queue, sizeof(other));
    for (int i = 1; i <= 2000 && rows_left() > 0; i++) {
        snprintf(queue, sizeof(queue), "others");
        push(session[0], 9, i);
        memcpy(queue, other, sizeof(queue));
    }
    assert_int_equal(rows_left(), 0);
}

/* Entries of tables and indexes that the transaction has looked at so far. */
static long long looked_at(void)
{
    char sum[SQL_MAX];

    tell(session[0], sum,
         "SELECT sum(pg_stat_get_xact_tuples_returned(c.oid)) FROM pg_class AS "
         "c WHERE c.relnamespace = 'dibs'::regnamespace AND c.relkind IN "
         "('r', 'i')");
    return strtoll(sum, NULL, 10);
}

/* Takes for a lane and for a worker, and all else that clients do often. */
static void do_each_step(int number)
{
    push(session[0], 9, 2 * number - 1);
    push(session[0], 9, 2 * number);
    assert_int_equal(reserve(session[0], 1, number + 1, false), 1);
    assert_int_equal(reserve(session[0], 2, number + 1, false), 1);
    tell(session[0], NULL, "SELECT dibs.tend('{%s}','{1}','{60000}')", queue);
    tell(session[0], NULL, "SELECT dibs.queue_stats('%s')", queue);
}

/* The plans of the functions are made while the queue is empty. */
static void a_long_queue_is_not_walked(void **state)
{
    long long before;

    (void)state;
    tell(session[0], NULL,
         "SET enable_seqscan = off; SET enable_bitmapscan = off; "
         "SET plan_cache_mode = force_generic_plan");
    reserve(session[0], 1, 1, false);
    tell(session[0], NULL,
         "SELECT dibs.reserve('%s',2,1,0,60000,0,false,'anna',0,0,''," NONE ")",
         queue);
    do_each_step(1);
    tell(session[0], NULL,
         "INSERT INTO dibs.item SELECT 1000 + n, n, 0, 0, 0, 0, 0, 1, 0, 0, 0, "
         "0, '%s', '', '', '', '' FROM generate_series(1, 5000) AS n",
         queue);
    tell(session[0], NULL,
         "INSERT INTO dibs.item_data SELECT id, queue, 'x' FROM dibs.item "
         "WHERE queue = '%s' ON CONFLICT DO NOTHING",
         queue);
    tell(session[0], NULL, "BEGIN");
    before = looked_at();
    do_each_step(2);
    assert_true(looked_at() - before < 500);
    tell(session[0], NULL, "COMMIT");
}

/* Pushes one, takes it, and acks the one before; answers what that looked at. */
static long long pass_one(int number)
{
    long long before;

    tell(session[0], NULL, "BEGIN");
    before = looked_at();
    push(session[0], 9, number);
    assert_int_equal(reserve_ack(session[0], 1, number + 1), 1);
    before = looked_at() - before;
    tell(session[0], NULL, "COMMIT");
    return before;
}

/* A session that keeps its snapshot keeps the entries of all items that were done since in
 * the indexes: a take looks at three of them at most for each item, and at none soon after the
 * end of that session, without a vacuum. */
static void held_xmin_slows_takes_in_proportion(void **state)
{
    enum { MANY = 300, FEW = 20 };
    long long first = 0, last = 0;

    (void)state;
    tell(session[0], NULL,
         "SET enable_seqscan = off; SET enable_bitmapscan = off; "
         "SET plan_cache_mode = force_generic_plan");
    tell(session[1], NULL, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    tell(session[1], NULL, "SELECT count(*) FROM dibs.item");
    reserve(session[0], 1, 1, false);
    for (int i = 1; i <= MANY; i++) {
        last = pass_one(i);
        if (i == FEW)
            first = last;
    }
    assert_true(last < first + 3 * MANY);
    tell(session[1], NULL, "COMMIT");
    for (int i = 1; i <= FEW; i++)
        last = pass_one(MANY + i);
    assert_true(last < 2 * first);
}

/* ---- commits */

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

static int open_sessions(void **state)
{
    static int number;

    (void)state;
    snprintf(queue, sizeof(queue), "jobs%d", number++);
    for (int i = 0; i < SESSIONS; i++)
        session[i] = pg_connect(&world_sv);
    return session[0] && session[1] ? 0 : -1;
}

static int close_sessions(void **state)
{
    (void)state;
    for (int i = 0; i < SESSIONS; i++)
        PQfinish(session[i]);
    return 0;
}

#define QUEUE_TEST(name)                                                       \
    cmocka_unit_test_setup_teardown(name, open_sessions, close_sessions)

int main(void)
{
    const struct CMUnitTest tests[] = {
        QUEUE_TEST(push_and_sleep_never_miss),
        QUEUE_TEST(a_push_of_nothing_ready_locks_no_lane),
        QUEUE_TEST(a_push_beside_a_take_locks_no_lane),
        QUEUE_TEST(a_lane_that_asks_again_misses_nothing),
        QUEUE_TEST(a_dead_worker_costs_a_step_little),
        QUEUE_TEST(reader_misses_no_commit_out_of_order),
        QUEUE_TEST(a_tended_lane_misses_nothing),
        QUEUE_TEST(claims_wait_for_nobody),
        QUEUE_TEST(a_purge_takes_from_no_lane_unlocked),
        QUEUE_TEST(no_notify_when_nobody_waits),
        QUEUE_TEST(only_what_is_believed_in_waits_for_the_disk),
        QUEUE_TEST(done_leaves_nothing),
        QUEUE_TEST(a_long_queue_is_not_walked),
        QUEUE_TEST(held_xmin_slows_takes_in_proportion),
        QUEUE_TEST(what_is_absent_stays_so_until_the_commit),
        QUEUE_TEST(a_swap_is_before_or_behind_another),
        QUEUE_TEST(only_sizes_wait_for_each_other),
        QUEUE_TEST(commits_lock_in_one_order),
        QUEUE_TEST(the_clock_is_read_behind_the_locks),
        QUEUE_TEST(a_long_index_is_not_walked),
        QUEUE_TEST(a_page_of_a_list_begins_where_it_should),
        QUEUE_TEST(a_count_walks_no_rosters),
    };

    return cmocka_run_group_tests_name("postgres queue", tests, world_begin,
                                       world_end);
}
