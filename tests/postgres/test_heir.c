/* test_heir.c - who is next, when waiters are killed or cut off from the server.
 *
 * Clients do the first two; the others speak for waiters in SQL, with a bell that no
 * session listens to for one that is cut off. A session of the test that is new, and
 * one that has been there for long, give and take in their names. */
/* SPDX-License-Identifier: MIT */
#include "child.h"
#include "pg_world.h"
#include "store/lease_args.h"

#include <pthread.h>
#include <signal.h>

#define HOLDER "00000000000000000000000000000001"
#define FIRST  "0000000000000000000000000000000a"
#define SECOND "0000000000000000000000000000000b"
#define THIRD  "0000000000000000000000000000000c"

#define DEAF   "feedfeedfeedfeed" /* a bell that nobody listens to */
#define POLLS  ""                 /* one who has none */

#define OURS   "FROM pg_stat_activity WHERE application_name = 'dibs'"

enum { TEXT_MAX = 512, ROUNDS = 5, SILENT_US = 2000000 };

static PGconn *new_session; /* of the test at hand */
static PGconn *old_session;

typedef struct answer {
    int status;
    long long fence, left_ms;
    int queued, ahead;
} answer;

/* The first cell of what the session answers. */
static void __attribute__((format(printf, 3, 4)))
tell(PGconn *pq, char out[TEXT_MAX], const char *format, ...)
{
    char sql[2 * TEXT_MAX];
    PGresult *rows;
    va_list args;

    va_start(args, format);
    vsnprintf(sql, sizeof(sql), format, args);
    va_end(args);
    rows = PQexec(pq, sql);
    if (PQresultStatus(rows) != PGRES_TUPLES_OK || PQntuples(rows) < 1)
        fail_msg("%s: %s", sql, PQerrorMessage(pq));
    snprintf(out, TEXT_MAX, "%s", PQgetvalue(rows, 0, 0));
    PQclear(rows);
}

static answer read_answer(const char *text)
{
    answer ans = {0};

    assert_true(sscanf(text, "%d %lld %lld %d %d", &ans.status, &ans.fence,
                       &ans.left_ms, &ans.queued, &ans.ahead) >= 1);
    return ans;
}

/* Asks for a lock, or a permit of so many, and waits if `bell` says how. */
static answer ask_for(PGconn *pq, const char *name, int capacity,
                      const char *owner, const char *bell)
{
    char text[TEXT_MAX];

    tell(pq, text,
         "SELECT dibs.acquire('%s', '%s', '%s', 1, %d, %d, 0, 60000, 'host:1', "
         "'%s')",
         name, owner, capacity ? "permits" : "exclusive", capacity,
         bell ? 1 : 0, bell ? bell : "");
    return read_answer(text);
}

static answer
ask(PGconn *pq, const char *name, const char *owner, const char *bell)
{
    return ask_for(pq, name, 0, owner, bell);
}

static void release(PGconn *pq, const char *name, const char *owner)
{
    char text[TEXT_MAX];

    tell(pq, text, "SELECT dibs.release('%s', '%s', false, 0)", name, owner);
    assert_status(strtol(text, NULL, 10), DIBS_OK);
}

/* Whether it holds the name, be it by a claim. */
static bool holds(const char *name, const char *owner)
{
    char text[TEXT_MAX];

    tell(old_session, text,
         "SELECT count(*) FROM dibs.lease WHERE name = '%s' AND owner = '%s' "
         "AND role = 'holder'",
         name, owner);
    return strcmp(text, "1") == 0;
}

/* As if its last ask had been so long ago. */
static void silence(const char *name, const char *owner)
{
    char text[TEXT_MAX];

    tell(old_session, text,
         "UPDATE dibs.party SET until_us = until_us - %d WHERE name = '%s' AND "
         "owner = '%s' AND role = 'waiter' RETURNING 1",
         SILENT_US, name, owner);
}

/* One holds it, and one that is cut off waits for it. */
static void have_cut_off(const char *name)
{
    assert_int_equal(ask(new_session, name, HOLDER, NULL).status, 0);
    assert_int_equal(ask(new_session, name, FIRST, DEAF).status, 1);
}

static void a_waiter_that_is_cut_off_is_waited_for(void **state)
{
    answer ans;

    (void)state;
    have_cut_off("kept");
    assert_int_equal(ask(new_session, "kept", SECOND, POLLS).status, 1);
    release(new_session, "kept", HOLDER);
    IN_TIME(!holds("kept", SECOND));
    /* A claim would be shorter than its client believes when it is notified. */
    assert_false(holds("kept", FIRST));
    ans = ask(new_session, "kept", SECOND, POLLS);
    IN_TIME(ans.status == 1);
    assert_int_equal(ans.ahead, 1);
    IN_TIME(ans.left_ms > 0);
    assert_true(ans.left_ms <= DIBS__CLAIM_MS / 2);
    ans = ask(new_session, "kept", FIRST, DEAF);
    IN_TIME(ans.status == 0);
    assert_int_equal(ans.left_ms, 60000);
}

static void a_silent_one_is_passed_over_and_keeps_its_place(void **state)
{
    answer ans;

    (void)state;
    have_cut_off("silent");
    assert_int_equal(ask(old_session, "silent", SECOND, POLLS).status, 1);
    silence("silent", FIRST);
    release(old_session, "silent", HOLDER);
    IN_TIME(holds("silent", SECOND));
    ans = ask(old_session, "silent", FIRST, DEAF);
    IN_TIME(ans.status == 1);
    assert_int_equal(ans.ahead, 0);
    ans = ask(old_session, "silent", THIRD, POLLS);
    IN_TIME(ans.status == 1);
    IN_TIME(ans.ahead == 1);
    release(old_session, "silent", SECOND);
    IN_TIME(!holds("silent", THIRD));
    IN_TIME(ask(old_session, "silent", FIRST, DEAF).status == 0);
}

/* While there was no server nobody could ask: a new session knows of no silence. */
static void a_silence_is_no_longer_than_the_session(void **state)
{
    (void)state;
    have_cut_off("away");
    assert_int_equal(ask(new_session, "away", SECOND, POLLS).status, 1);
    silence("away", FIRST);
    release(new_session, "away", HOLDER);
    IN_TIME(!holds("away", SECOND));
    IN_TIME(ask(new_session, "away", SECOND, POLLS).status == 1);
    IN_TIME(ask(new_session, "away", FIRST, DEAF).status == 0);
}

/* Some hold it, so that nothing ends which would show that it is somebody's turn. */
static void one_of_many_permits_passes_over_too(void **state)
{
    (void)state;
    assert_int_equal(ask_for(new_session, "some", 2, HOLDER, NULL).status, 0);
    assert_int_equal(ask_for(new_session, "some", 2, THIRD, NULL).status, 0);
    assert_int_equal(ask_for(new_session, "some", 2, FIRST, DEAF).status, 1);
    assert_int_equal(ask_for(new_session, "some", 2, SECOND, POLLS).status, 1);
    release(new_session, "some", HOLDER);
    IN_TIME(ask_for(new_session, "some", 2, SECOND, POLLS).status == 1);
    silence("some", FIRST);
    IN_TIME(ask_for(old_session, "some", 2, SECOND, POLLS).status == 0);
}

/* Nobody else waits: whoever comes next does not wait for it either. */
static void a_newcomer_passes_over_too(void **state)
{
    char text[TEXT_MAX];

    (void)state;
    have_cut_off("new");
    silence("new", FIRST);
    release(old_session, "new", HOLDER);
    assert_int_equal(ask(old_session, "new", SECOND, NULL).status, 0);
    release(old_session, "new", SECOND);
    tell(old_session, text,
         "SELECT dibs.acquire_all('{new}', '{" THIRD "}', '{0}', '{60000}', "
         "'{0}', '{host:1}', '')");
    assert_int_equal(read_answer(text).status, 0);
}

/* Waits for the name and gives it back, in a process or a thread of its own; counts
 * the turns that were taken before, if they are counted. */
static dibs_status
take_turn(dibs_client *cl, const char *name, atomic_int *turns, int *turn)
{
    dibs_lock *lock =
        world_lock(cl, name,
                   DIBS_LOCK_OPTS(.wait_ms = pace_ms(WORLD_BOUND_MS)));
    dibs_status rc = dibs_lock_acquire(lock, NULL);

    if (rc == DIBS_OK && turns)
        *turn = atomic_fetch_add(turns, 1);
    if (rc == DIBS_OK)
        rc = dibs_lock_release(lock, NULL);
    dibs_lock_free(lock);
    return rc;
}

static int wait_as_heir(char **words)
{
    dibs_client *cl = world_client(words[0], WORLD_STEP_MS);

    return (int)take_turn(cl, "heir", NULL, NULL);
}

typedef struct waiter {
    dibs_client *cl;
    pthread_t thread;
    const char *name;
    atomic_int *turns;
    int turn;
    dibs_status rc;
} waiter;

static void *wait_main(void *arg)
{
    waiter *wt = arg;

    wt->rc = take_turn(wt->cl, wt->name, wt->turns, &wt->turn);
    return NULL;
}

static void start_waiter(waiter *wt, const char *name, atomic_int *turns)
{
    char url[PG_URL_MAX];

    pg_url(&world_sv, url);
    *wt = (waiter){.name = name,
                   .turns = turns,
                   .cl = world_client(url, WORLD_STEP_MS)};
    assert_int_equal(pthread_create(&wt->thread, NULL, wait_main, wt), 0);
}

static void end_waiter(const waiter *wt)
{
    pthread_join(wt->thread, NULL);
    assert_status(wt->rc, DIBS_OK);
    dibs_close(wt->cl);
}

/* The first in line was killed a moment ago: the second does not wait for as long as
 * a claim lasts. */
static void a_killed_heir_is_passed_over(void **state)
{
    char url[PG_URL_MAX];
    dibsx_nsec released_at;
    atomic_int turns = 0;
    dibs_client *cl;
    dibs_lock *lock;
    long long count;
    waiter next;
    pid_t pid;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    lock = world_lock(cl, "heir", NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    pid = child_start("wait_as_heir", url, NULL);
    assert_true(pid > 0);
    world_await_waiters(cl, "heir", 1);
    start_waiter(&next, "heir", &turns);
    world_await_waiters(cl, "heir", 2);
    count = pg_number(&world_sv, "SELECT count(*) " OURS);
    kill(pid, SIGKILL);
    assert_int_equal(child_code(pid), 1000 + SIGKILL);
    while (pg_number(&world_sv, "SELECT count(*) " OURS) >= count)
        world_sleep_ms(5);
    released_at = dibsx_now();
    CHECK(DIBS_OK, dibs_lock_release(lock, err));
    end_waiter(&next);
    IN_TIME(world_ms_since(released_at) < DIBS__CLAIM_MS - 500);
    dibs_lock_free(lock);
    dibs_close(cl);
}

/* The server ends the session of the first in line, and the name is released before
 * that client can have a new one. */
#define CUT_AND_RELEASE                                                        \
    "DO $$ DECLARE v_bell text; BEGIN "                                        \
    "SELECT bell INTO v_bell FROM dibs.party WHERE name = 'cut' AND "          \
    "role = 'waiter' ORDER BY seq LIMIT 1; "                                   \
    "PERFORM pg_terminate_backend(l.pid) FROM pg_locks AS l "                  \
    "WHERE l.locktype = 'advisory' AND "                                       \
    "((l.classid::bigint << 32) | l.objid::bigint) = "                         \
    "hashtextextended('dibs_' || v_bell, 0); "                                 \
    "FOR i IN 1 .. 1000000 LOOP EXIT WHEN NOT dibs.hears(v_bell); END LOOP; "  \
    "PERFORM dibs.release('cut', '" HOLDER "', false, 0); END $$"

static void a_waiter_whose_session_ended_is_not_overtaken(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_int turns = 0;
        waiter first, second;

        assert_int_equal(ask(new_session, "cut", HOLDER, NULL).status, 0);
        start_waiter(&first, "cut", &turns);
        world_await_waiters(first.cl, "cut", 1);
        start_waiter(&second, "cut", &turns);
        world_await_waiters(first.cl, "cut", 2);
        assert_true(pg_tell(&world_sv, CUT_AND_RELEASE));
        end_waiter(&first);
        end_waiter(&second);
        IN_TIME(first.turn == 0 && second.turn == 1);
    }
}

#define BELLS "FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock'"

/* The process of the server that has a step of a doorbell stand in line. */
static long long await_lent(void)
{
    long long pid;

    do
        pid = pg_number(&world_sv, "SELECT pid " OURS
                                   " AND wait_event_type = 'Lock' AND pid IN "
                                   "(SELECT pid " BELLS ")");
    while (pid < 0);
    return pid;
}

/* A name with a row that is locked. */
static void lock_row(const char *name)
{
    char text[TEXT_MAX];

    assert_int_equal(ask(new_session, name, HOLDER, NULL).status, 0);
    release(new_session, name, HOLDER);
    tell(new_session, text,
         "BEGIN; SELECT 1 FROM dibs.roll WHERE name = '%s' FOR UPDATE", name);
}

/* A doorbell is lent to steps. When the server ends its session in one of these, it
 * does not take until the next look at a quiet server (15 s) to have a new one. */
static void a_doorbell_that_a_step_lost_hears_again_soon(void **state)
{
    char text[TEXT_MAX], sql[TEXT_MAX];
    atomic_int turns = 0;
    dibsx_nsec end;
    long long pid;
    waiter wt;

    (void)state;
    lock_row("lent");
    start_waiter(&wt, "lent", &turns);
    pid = await_lent();
    snprintf(sql, sizeof(sql), "SELECT pg_terminate_backend(%lld)", pid);
    assert_true(pg_tell(&world_sv, sql));
    snprintf(sql, sizeof(sql), "SELECT count(*) " BELLS " AND pid <> %lld",
             pid);
    end = dibsx_after_ms(dibsx_now(), pace_ms(5000));
    while (pg_number(&world_sv, sql) != 1) {
        IN_TIME(dibsx_now() < end);
        world_sleep_ms(5);
    }
    tell(new_session, text, "ROLLBACK; SELECT 1");
    end_waiter(&wt);
}

static int begin(void **state)
{
    if (world_begin(state) != 0)
        return -1;
    old_session = pg_connect(&world_sv);
    return old_session ? 0 : -1;
}

static int end(void **state)
{
    PQfinish(old_session);
    return world_end(state);
}

/* The old session is older than any silence that counts. */
static int begin_test(void **state)
{
    char text[TEXT_MAX];

    (void)state;
    do
        tell(old_session, text,
             "SELECT (clock_timestamp() - backend_start > interval '1.6 "
             "s')::int "
             "FROM pg_stat_activity WHERE pid = pg_backend_pid()");
    while (strcmp(text, "1") != 0);
    new_session = pg_connect(&world_sv);
    return new_session ? 0 : -1;
}

static int end_test(void **state)
{
    (void)state;
    PQfinish(new_session);
    return 0;
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, begin_test, end_test)

int main(int argc, char **argv)
{
    static const child_part parts[] = {{"wait_as_heir", wait_as_heir},
                                       {NULL, NULL}};
    const struct CMUnitTest tests[] = {
        TEST(a_killed_heir_is_passed_over),
        TEST(a_waiter_whose_session_ended_is_not_overtaken),
        TEST(a_doorbell_that_a_step_lost_hears_again_soon),
        TEST(a_waiter_that_is_cut_off_is_waited_for),
        TEST(a_silent_one_is_passed_over_and_keeps_its_place),
        TEST(a_silence_is_no_longer_than_the_session),
        TEST(one_of_many_permits_passes_over_too),
        TEST(a_newcomer_passes_over_too),
    };

    child_play(argc, argv, parts);
    return cmocka_run_group_tests_name("postgres heir", tests, begin, end);
}
