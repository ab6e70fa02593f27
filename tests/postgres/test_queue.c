/* test_queue.c - queues where steps overlap: sessions that hold their transactions open at the
 * worst moment, what is notified, what waits for the disk, what is left. */
/* SPDX-License-Identifier: MIT */
#include "sessions.h"

#define NONE "NULL,NULL,NULL"

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

/* A lane that has an item and waits for more is passed over by a push while a purge has it
 * locked: the purge ends first, or looks again. */
static void a_purge_leaves_no_lane_asleep(void **state)
{
    char sql[SQL_MAX];

    (void)state;
    push(session[0], 9, 1);
    reserve(session[0], 1, 1, false);
    assert_int_equal(reserve(session[0], 1, 2, false), 1);
    assert_int_equal(reserve(session[0], 1, 3, true), 0);
    tell(session[0], NULL, "BEGIN");
    tell(session[0], NULL, "SELECT dibs.queue_purge('%s', 4, 9)", queue);
    push_text(sql, 9, 2);
    assert_int_equal(PQsendQuery(session[1], sql), 1);
    await_second(session[1]);
    tell(session[0], NULL, "COMMIT");
    (void)finish(session[1]);
    assert_int_equal(count_items("lane = 1"), 1);
    assert_int_equal(count_items("lane = 0"), 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        SESSION_TEST(push_and_sleep_never_miss),
        SESSION_TEST(a_push_of_nothing_ready_locks_no_lane),
        SESSION_TEST(a_push_beside_a_take_locks_no_lane),
        SESSION_TEST(a_lane_that_asks_again_misses_nothing),
        SESSION_TEST(a_dead_worker_costs_a_step_little),
        SESSION_TEST(reader_misses_no_commit_out_of_order),
        SESSION_TEST(a_tended_lane_misses_nothing),
        SESSION_TEST(claims_wait_for_nobody),
        SESSION_TEST(a_purge_takes_from_no_lane_unlocked),
        SESSION_TEST(a_purge_leaves_no_lane_asleep),
        SESSION_TEST(no_notify_when_nobody_waits),
        SESSION_TEST(only_what_is_believed_in_waits_for_the_disk),
        SESSION_TEST(done_leaves_nothing),
        SESSION_TEST(a_long_queue_is_not_walked),
        SESSION_TEST(held_xmin_slows_takes_in_proportion),
    };

    return cmocka_run_group_tests_name("postgres queue", tests, world_begin,
                                       world_end);
}
