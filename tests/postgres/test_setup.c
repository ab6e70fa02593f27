/* test_setup.c - the schema: made by one of many, found by the others, refused
 * when it is not what it should be; rights and fences as they are kept. */
/* SPDX-License-Identifier: MIT */
#include "pg_world.h"

#include "store/store.h"

#include <pthread.h>

enum { MANY = 6 };

static void url_of(const char *rest, char out[PG_URL_MAX])
{
    snprintf(out, PG_URL_MAX, "postgres://dibs@127.0.0.1:%d/%s", world_sv.port,
             rest);
}

static dibs_status
setup(const char *rest, dibs_store_task task, dibs_store_state *state)
{
    char url[PG_URL_MAX];
    dibs_error err = {0};
    dibs_status rc;

    url_of(rest, url);
    rc = dibs_store_setup(url, task, PG_BOUND_MS, state, &err);
    if (rc != DIBS_OK)
        print_message("%s: %s\n", dibs_status_name(rc), err.message);
    return rc;
}

static dibs_status try_open(const char *rest, dibs_error *err)
{
    char url[PG_URL_MAX];
    dibs_client *cl = NULL;
    dibs_status rc;

    url_of(rest, url);
    rc = dibs_open(url, NULL, &cl, err);
    dibs_close(cl);
    return rc;
}

static void *init_one(void *arg)
{
    dibs_store_state *state = arg;
    dibs_status rc = setup("postgres?schema=many", DIBS_STORE_INIT, state);

    IN_TIME(!pace_explains(rc));
    if (rc != DIBS_OK)
        state->found = -1;
    return NULL;
}

static void of_many_at_once_one_makes_it(void **state)
{
    dibs_store_state states[MANY];
    pthread_t threads[MANY];
    int changed = 0;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, init_one,
                                        &states[i]),
                         0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(states[i].found, states[i].known);
        changed += states[i].changed;
    }
    assert_int_equal(changed, 1);
}

static void what_is_not_there_is_named(void **state)
{
    dibs_store_state found;
    dibs_error err = {0};

    (void)state;
    assert_status(setup("postgres?schema=none", DIBS_STORE_STATUS, &found),
                  DIBS_OK);
    assert_true(found.needed);
    assert_int_equal(found.found, 0);
    assert_status(try_open("postgres?schema=none", &err), DIBS_REFUSED);
    assert_non_null(strstr(err.message, "dibs store init"));
    assert_status(setup("postgres?schema=none", DIBS_STORE_UPGRADE, &found),
                  DIBS_REFUSED);
    assert_status(try_open("nodatabase", &err), DIBS_INVALID);
    assert_status(try_open("postgres?schema=it's", &err), DIBS_INVALID);
    assert_status(try_open("postgres?nonsense=1", &err), DIBS_INVALID);
}

static void a_newer_schema_is_refused(void **state)
{
    dibs_store_state found;
    dibs_error err = {0};

    (void)state;
    assert_status(setup("postgres?schema=newer", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    assert_true(pg_tell(&world_sv, "UPDATE newer.meta SET version = 99"));
    assert_status(try_open("postgres?schema=newer", &err), DIBS_REFUSED);
    assert_non_null(strstr(err.message, "newer dibs"));
    assert_status(setup("postgres?schema=newer", DIBS_STORE_UPGRADE, &found),
                  DIBS_REFUSED);
    assert_status(setup("postgres?schema=newer", DIBS_STORE_INIT, &found),
                  DIBS_REFUSED);
    assert_int_equal(found.found, 99);
}

static void keep_token(const dibs__delivery *delivery, void *arg)
{
    dibs__token *token = arg;

    assert_int_equal(delivery->len, 3);
    *token = delivery->token;
}

static dibs__store *open_store(const char *rest)
{
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    char url[PG_URL_MAX];
    dibs__store *st = NULL;

    url_of(rest, url);
    CHECK(DIBS_OK, dibs__store_open(url, deadline, &st, err));
    return st;
}

static void push_one(const char *rest)
{
    dibs__push_item item = {.data = "job", .len = 3, .to = "", .dedup = ""};
    dibs__push push = {
        .queue = "jobs", .lane = 1, .number = 1, .items = &item, .count = 1};
    dibs__store *st = open_store(rest);

    CHECK(DIBS_OK,
          st->ops->queue->push(st, &push,
                               dibsx_after_ms(dibsx_now(), PG_BOUND_MS), err));
    dibs__store_close(st);
}

/* Takes the item with the lane, and acks it with a result. */
static void take_and_ack(const char *rest, uint64_t lane)
{
    dibs__settlement ack = {.verb = DIBS__ITEM_ACK, .reason = "fine"};
    dibs__reserve ask = {.queue = "jobs",
                         .lane = lane,
                         .number = 1,
                         .span_ms = PG_BOUND_MS,
                         .as = ""};
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    dibs__store *st = open_store(rest);

    CHECK(DIBS_OK, st->ops->queue->reserve(st, &ask, deadline, keep_token,
                                           &ack.token, err));
    ask.number = 2;
    ask.seen = ask.stamp;
    ask.want = 1;
    CHECK(DIBS_OK, st->ops->queue->reserve(st, &ask, deadline, keep_token,
                                           &ack.token, err));
    assert_true(ack.token.id > 0);
    ask.number = 3;
    ask.seen = ask.stamp;
    ask.want = 0;
    ask.settle = &ack;
    ask.settle_count = 1;
    CHECK(DIBS_OK, st->ops->queue->reserve(st, &ask, deadline, keep_token,
                                           &ack.token, err));
    assert_status(ack.rc, DIBS_OK);
    dibs__store_close(st);
}

static void keep_records(const char *rest)
{
    const dibs__queue_conf conf = {.keep_done = 8};
    dibs__store *st = open_store(rest);

    CHECK(DIBS_OK,
          st->ops->queue_admin->set(st, "jobs", DIBS__SET_KEEP_DONE, &conf,
                                    dibsx_after_ms(dibsx_now(), PG_BOUND_MS),
                                    err));
    dibs__store_close(st);
}

static void upgrade(const char *rest)
{
    dibs_store_state found;
    dibs_error err = {0};

    assert_status(try_open(rest, &err), DIBS_REFUSED);
    assert_non_null(strstr(err.message, "dibs store upgrade"));
    assert_status(setup(rest, DIBS_STORE_UPGRADE, &found), DIBS_OK);
    assert_true(found.changed);
    assert_int_equal(found.found, found.known);
    assert_status(try_open(rest, &err), DIBS_OK);
}

/* Version 1 is this one without rates, rosters, meters, queues and commits. */
static void version_1_is_upgraded(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=older", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    assert_true(
        pg_tell(&world_sv,
                "DROP TABLE older.entry; "
                "DROP FUNCTION older.entry_enter, older.entry_leave, "
                "older.commit_indexes, older.commit_values, "
                "older.commit_check, older.commit_put, "
                "older.commit_entries, older.value_commit; "
                "DROP FUNCTION older.log_append, older.log_limit, "
                "older.log_trim; DROP TABLE older.writer; "
                "ALTER TABLE older.log DROP COLUMN prior, "
                "DROP COLUMN total, DROP COLUMN nth; "
                "CREATE FUNCTION older.log_append(text, bigint, bytea, "
                "boolean) RETURNS text LANGUAGE sql AS 'SELECT $1'; "
                "DROP TYPE older.queue_step, older.taken CASCADE; "
                "DROP TABLE older.queue, older.item, "
                "older.item_data, older.lane, older.pusher, "
                "older.dedup, older.dead, older.done, older.tally CASCADE; "
                "DROP SEQUENCE older.item_ids; "
                "DROP FUNCTION older.queue_lock, older.plus, "
                "older.queue_sums, older.queue_tally, older.next_id, "
                "older.lane_address, older.queue_known, "
                "older.sweep_queues, older.sweep_idle, "
                "older.lost_delay_us, older.is_held_up, older.push, "
                "older.is_heard, older.reserve, older.tend, "
                "older.leave, older.queue_set, older.queue_stats, "
                "older.queue_purge, older.queue_redrive, "
                "older.queue_remove, older.queue_peek, older.has_items, "
                "older.oldest_place, older.pick_both, older.queue_behind, "
                "older.queue_list, older.trim_done, older.peek_done; "
                "DROP TABLE older.meter CASCADE; "
                "DROP FUNCTION older.meter, older.meter_sweep, "
                "older.meter_value, older.meter_live, "
                "older.meter_sums; "
                "DROP TABLE older.rate CASCADE; "
                "DROP FUNCTION older.rate_sweep, older.rate_draw; "
                "DROP TABLE older.roster CASCADE; "
                "DROP TABLE older.seat CASCADE; "
                "DROP FUNCTION older.meet, older.run, "
                "older.tell_roster, older.seats_left, "
                "older.sweep_rosters; "
                "DROP FUNCTION older.show, older.value_put; "
                "CREATE FUNCTION older.value_put(text, bigint, bigint, "
                "bytea) RETURNS text LANGUAGE sql AS 'SELECT $1'; "
                "UPDATE older.meta SET version = 1"));
    upgrade("postgres?schema=older");
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM older.rate"),
                     0);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM older.meter"),
                     0);
    push_one("postgres?schema=older");
    take_and_ack("postgres?schema=older", 2);
    assert_int_equal(pg_number(&world_sv,
                               "SELECT count(*) FROM pg_proc WHERE "
                               "pronamespace = 'older'::regnamespace AND "
                               "proname IN ('show', 'value_put')"),
                     2);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM older.entry"),
                     0);
}

/* Version 6 had no records of done items. Its queues go on with what they have. */
static void version_6_is_upgraded(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=six", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    push_one("postgres?schema=six");
    assert_true(
        pg_tell(&world_sv,
                "DROP TABLE six.done; "
                "ALTER TABLE six.queue DROP COLUMN keep_done; "
                "ALTER TYPE six.queue_step DROP ATTRIBUTE keep_done; "
                "DROP FUNCTION six.trim_done, six.keep_done, six.peek_done, "
                "six.queue_set, six.ack_items; "
                "CREATE FUNCTION six.ack_items(six.queue_step, bigint, "
                "bigint[], bigint[], bigint[]) RETURNS six.queue_step "
                "LANGUAGE sql AS 'SELECT $1'; "
                "CREATE FUNCTION six.queue_set(text, bigint, boolean, "
                "boolean, bigint, bigint, bigint, bigint) RETURNS text "
                "LANGUAGE sql AS 'SELECT $1'; "
                "UPDATE six.meta SET version = 6"));
    upgrade("postgres?schema=six");
    keep_records("postgres?schema=six");
    take_and_ack("postgres?schema=six", 2);
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM six.done WHERE "
                                          "result = 'fine'"),
                     1);
    assert_int_equal(pg_number(&world_sv,
                               "SELECT count(*) FROM pg_proc WHERE "
                               "pronamespace = 'six'::regnamespace AND proname "
                               "IN ('ack_items', 'queue_set')"),
                     2);
}

/* A version 6 of the tree had them already. */
static void records_survive_an_upgrade(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=tree", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    keep_records("postgres?schema=tree");
    push_one("postgres?schema=tree");
    take_and_ack("postgres?schema=tree", 2);
    assert_true(pg_tell(&world_sv, "UPDATE tree.meta SET version = 6"));
    upgrade("postgres?schema=tree");
    assert_int_equal(pg_number(&world_sv, "SELECT count(*) FROM tree.done AS d "
                                          "JOIN tree.queue AS q ON q.name = "
                                          "d.queue WHERE q.keep_done = 8"),
                     1);
}

/* Version 12 has the functions of version 11, some of them anew. */
static void version_11_is_upgraded(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=eleven", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    keep_records("postgres?schema=eleven");
    push_one("postgres?schema=eleven");
    assert_true(pg_tell(&world_sv,
                        "CREATE OR REPLACE FUNCTION eleven.serve_lanes(st "
                        "eleven.queue_step, a_worker text, a_alone boolean) "
                        "RETURNS eleven.queue_step LANGUAGE sql AS 'SELECT "
                        "$1'; DROP FUNCTION eleven.reserve; "
                        "UPDATE eleven.meta SET version = 11"));
    upgrade("postgres?schema=eleven");
    take_and_ack("postgres?schema=eleven", 2);
    assert_int_equal(pg_number(&world_sv,
                               "SELECT count(*) FROM pg_proc WHERE "
                               "pronamespace = 'eleven'::regnamespace AND "
                               "proname = 'serve_lanes' AND prosrc <> "
                               "'SELECT $1'"),
                     1);
}

/* Version 13 has the settlements of version 12 anew. */
static void version_12_is_upgraded(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=twelve", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    push_one("postgres?schema=twelve");
    assert_true(pg_tell(&world_sv,
                        "CREATE OR REPLACE FUNCTION twelve.settle_items(st "
                        "twelve.queue_step, a_lane bigint, a_settle bigint[], "
                        "a_reasons text[]) RETURNS twelve.queue_step "
                        "LANGUAGE sql AS 'SELECT $1'; "
                        "DROP FUNCTION twelve.verbs; "
                        "UPDATE twelve.meta SET version = 12"));
    upgrade("postgres?schema=twelve");
    take_and_ack("postgres?schema=twelve", 1);
}

/* Version 14 has the outcome of a generation anew. */
static void version_13_is_upgraded(void **state)
{
    dibs_store_state found;

    (void)state;
    assert_status(setup("postgres?schema=thirteen", DIBS_STORE_INIT, &found),
                  DIBS_OK);
    assert_true(pg_tell(&world_sv,
                        "CREATE OR REPLACE FUNCTION thirteen.outcome(r "
                        "thirteen.roster, a_gen bigint) RETURNS bigint "
                        "LANGUAGE sql IMMUTABLE AS 'SELECT 0::bigint'; "
                        "UPDATE thirteen.meta SET version = 13"));
    upgrade("postgres?schema=thirteen");
    assert_int_equal(pg_number(&world_sv,
                               "SELECT thirteen.outcome(NULL::thirteen.roster,"
                               " 1) + thirteen.outcome(jsonb_populate_record("
                               "NULL::thirteen.roster, '{\"gen\": 7}'), 7)"),
                     1);
}

static void schemas_know_nothing_of_each_other(void **state)
{
    dibs_store_state found;
    char url[PG_URL_MAX];
    dibs_client *cl[2];
    dibs_lock *locks[2];

    (void)state;
    assert_status(setup("postgres?schema=Odd%20%22name", DIBS_STORE_INIT,
                        &found),
                  DIBS_OK);
    url_of("postgres", url);
    cl[0] = world_client(url, WORLD_STEP_MS);
    url_of("postgres?schema=Odd%20%22name", url);
    cl[1] = world_client(url, WORLD_STEP_MS);
    for (int i = 0; i < 2; i++) {
        locks[i] = world_lock(cl[i], "same", NULL);
        CHECK(DIBS_OK, dibs_lock_try(locks[i], err));
    }
    for (int i = 0; i < 2; i++) {
        dibs_lock_free(locks[i]);
        dibs_close(cl[i]);
    }
}

static void a_role_without_rights_is_denied(void **state)
{
    char url[PG_URL_MAX];
    dibs_error why = {0};
    dibs_client *cl = NULL;

    (void)state;
    assert_true(pg_tell(&world_sv, "CREATE ROLE stranger LOGIN"));
    pg_role_url(&world_sv, "stranger", url);
    CHECK(DIBS_DENIED, dibs_open(url, NULL, &cl, &why));
    assert_true(pg_tell(&world_sv, "GRANT USAGE ON SCHEMA dibs TO stranger; "
                                   "GRANT SELECT ON dibs.meta, dibs.lease TO "
                                   "stranger"));
    cl = world_client(url, WORLD_STEP_MS);
    CHECK(DIBS_NOTFOUND, dibs_lease_show(cl, "none", NULL, NULL, err));
    dibs_close(cl);
}

/* The next fence of a name that is free. */
static uint64_t fence_of(dibs_client *cl, const char *name)
{
    dibs_lock *lock = world_lock(cl, name, NULL);
    uint64_t fence;

    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    fence = dibs_lock_fence(lock);
    dibs_lock_free(lock);
    return fence;
}

/* As if the clock had been set back by a year: the name has seen later times. */
static void fences_rise_whatever_the_clock_does(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    uint64_t before;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    (void)fence_of(cl, "ahead");
    assert_true(pg_tell(&world_sv, "UPDATE dibs.roll SET last = last + "
                                   "31536000000000 WHERE name = 'ahead'"));
    before = (uint64_t)pg_number(&world_sv, "SELECT last FROM dibs.roll WHERE "
                                            "name = 'ahead'");
    for (uint64_t i = 1; i < 5; i++)
        assert_int_equal(fence_of(cl, "ahead"), before + i);
    dibs_close(cl);
}

static dibs_status draw_token(dibs__store *st, dibs__drawn *got)
{
    const dibs__draw draw = {.name = "sms",
                             .cost = 1,
                             .least = 1,
                             .count = 20,
                             .period_us = 1000000,
                             .burst = 1};
    dibsx_nsec deadline = dibsx_after_ms(dibsx_now(), WORLD_STEP_MS);

    return st->ops->rate->draw(st, &draw, deadline, got, NULL);
}

/* As if the clock had been set back by an hour: the limit goes on. */
static void a_clock_set_back_blocks_no_draw(void **state)
{
    dibsx_nsec begun_at = dibsx_now();
    char url[PG_URL_MAX];
    dibs__store *st = NULL;
    dibs__drawn got;

    (void)state;
    pg_url(&world_sv, url);
    assert_status(dibs__store_open(url, dibsx_after_ms(begun_at, PG_BOUND_MS),
                                   &st, NULL),
                  DIBS_OK);
    assert_status(draw_token(st, &got), DIBS_OK);
    assert_true(pg_tell(&world_sv,
                        "UPDATE dibs.rate SET tat_us = dibs.now_us() + "
                        "3600050000, last_us = dibs.now_us() + 3600000000 "
                        "WHERE name = 'sms'"));
    assert_status(draw_token(st, &got), DIBS_BUSY);
    assert_true(got.wait_us <= 50000);
    while (draw_token(st, &got) != DIBS_OK)
        IN_TIME(dibsx_now() < dibsx_after_ms(begun_at, PG_BOUND_MS));
    dibs__store_close(st);
}

/* A set makes new names while it has entered those that it knows: what it is about
 * to be granted is not swept by itself. */
static void a_set_does_not_sweep_its_own_names(void **state)
{
    char url[PG_URL_MAX], name[32];
    const char *names[] = {"set:a", name};
    dibs_client *cl;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    (void)fence_of(cl, names[0]);
    for (int i = 0; i < 200; i++) {
        dibs_multi *set;

        snprintf(name, sizeof(name), "set:b%d", i);
        assert_true(pg_tell(&world_sv,
                            "UPDATE dibs.roll SET last = last - 120000000, "
                            "since_us = since_us - 120000000, "
                            "until_us = until_us - 120000000 "
                            "WHERE name = 'set:a'; "
                            "UPDATE dibs.meta SET swept = ''"));
        CHECK(DIBS_OK, dibs_multi_new(cl, names, 2, NULL, &set, err));
        CHECK(DIBS_OK, dibs_multi_try(set, err));
        dibs_multi_free(set);
    }
    dibs_close(cl);
}

/* Names that nobody has used for long are swept, and their fences are not used
 * again, whatever the clock does. */
static void swept_names_leave_a_floor(void **state)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), PG_BOUND_MS);
    char url[PG_URL_MAX], name[32];
    dibs_client *cl;
    uint64_t fence;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "old:%d", i);
        (void)fence_of(cl, name);
    }
    assert_true(pg_tell(&world_sv,
                        "UPDATE dibs.roll SET last = last - 120000000, "
                        "since_us = since_us - 120000000, "
                        "until_us = until_us - 120000000 WHERE name ^@ "
                        "'old:'"));
    fence = (uint64_t)pg_number(&world_sv, "SELECT max(last) FROM dibs.roll "
                                           "WHERE name ^@ 'old:'");
    for (int i = 0; pg_number(&world_sv, "SELECT count(*) FROM dibs.roll "
                                         "WHERE name ^@ 'old:'") > 0;
         i++) {
        IN_TIME(dibsx_now() < end);
        snprintf(name, sizeof(name), "new:%d", i);
        (void)fence_of(cl, name);
    }
    assert_true((uint64_t)pg_number(&world_sv, "SELECT floor FROM dibs.meta") >=
                fence);
    assert_true(pg_tell(&world_sv, "UPDATE dibs.meta SET floor = floor + "
                                   "31536000000000"));
    fence = (uint64_t)pg_number(&world_sv, "SELECT floor FROM dibs.meta");
    assert_int_equal(fence_of(cl, "above the floor"), fence + 1);
    dibs_close(cl);
}

/* One who uses the same few names leaves nothing behind for vacuum, but for what is
 * written while somebody looks at an older state: vacuum, for one. Rows that are
 * not updated in place would take some seventy pages. */
static void a_lock_is_updated_in_place(void **state)
{
    char url[PG_URL_MAX];
    dibs_client *cl;
    long long pages;

    (void)state;
    pg_url(&world_sv, url);
    cl = world_client(url, WORLD_STEP_MS);
    (void)fence_of(cl, "hot");
    pages = pg_number(&world_sv, "SELECT pg_relation_size('dibs.roll')");
    for (int i = 0; i < 2000; i++)
        (void)fence_of(cl, "hot");
    assert_true(pg_number(&world_sv, "SELECT pg_relation_size('dibs.roll')") <=
                pages + 8192 * 24);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_many_at_once_one_makes_it),
        cmocka_unit_test(what_is_not_there_is_named),
        cmocka_unit_test(a_newer_schema_is_refused),
        cmocka_unit_test(version_1_is_upgraded),
        cmocka_unit_test(version_6_is_upgraded),
        cmocka_unit_test(records_survive_an_upgrade),
        cmocka_unit_test(version_11_is_upgraded),
        cmocka_unit_test(version_12_is_upgraded),
        cmocka_unit_test(version_13_is_upgraded),
        cmocka_unit_test(schemas_know_nothing_of_each_other),
        cmocka_unit_test(a_role_without_rights_is_denied),
        cmocka_unit_test(fences_rise_whatever_the_clock_does),
        cmocka_unit_test(a_clock_set_back_blocks_no_draw),
        cmocka_unit_test(a_set_does_not_sweep_its_own_names),
        cmocka_unit_test(swept_names_leave_a_floor),
        cmocka_unit_test(a_lock_is_updated_in_place),
    };

    return cmocka_run_group_tests_name("postgres setup", tests, world_begin,
                                       world_end);
}
