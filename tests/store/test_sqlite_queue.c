/* test_sqlite_queue.c - the queues of the embedded store beyond the contract: another boot,
 * what is left behind, what is broken. */
/* SPDX-License-Identifier: MIT */
#include "core/client.h"
#include "store/sqlite/conn.h"
#include "store_world.h"
#include <dibs/dibs.h>
#include <inttypes.h>

typedef struct taking {
    dibs__reserve ask;
    dibs__settlement settle;
    dibs__token token;
    size_t count;
} taking;

static uint64_t push(world *w, dibs__store *st, const char *queue,
                     uint64_t lane, uint64_t number, dibs_status expected)
{
    dibs__push_item item = {.data = "x", .len = 1, .to = "", .dedup = ""};
    dibs__push ask = {.queue = queue,
                      .lane = lane,
                      .number = number,
                      .items = &item,
                      .count = 1};

    assert_status(st->ops->queue->push(st, &ask, soon(), &w->err), expected);
    return item.id;
}

static void note_token(const dibs__delivery *delivery, void *arg)
{
    taking *tk = arg;

    tk->token = delivery->token;
    tk->count++;
}

static dibs_status take(world *w, dibs__store *st, taking *tk, uint32_t want)
{
    tk->ask.number++;
    tk->ask.seen = tk->ask.stamp;
    tk->ask.want = want;
    tk->ask.settle = &tk->settle;
    tk->count = 0;
    return st->ops->queue->reserve(st, &tk->ask, soon(), note_token, tk,
                                   &w->err);
}

static taking
open_lane(world *w, dibs__store *st, const char *queue, uint64_t lane)
{
    taking tk = {
        .ask = {.queue = queue, .lane = lane, .span_ms = 600000, .as = ""}};

    assert_status(take(w, st, &tk, 0), DIBS_OK);
    return tk;
}

/* Its clients are gone, and their times are on a clock that has begun anew. */
static void a_reboot_returns_what_is_out(void **state)
{
    const char *real = dibs__sqlite_boot_id_path;
    world *w = *state;
    char path[160];
    dibs__store *st = world_open(w);
    uint64_t id = push(w, st, "jobs", 5, 1, DIBS_OK);
    taking tk = open_lane(w, st, "jobs", 7), other;

    assert_status(take(w, st, &tk, 1), DIBS_OK);
    assert_int_equal(tk.count, 1);
    dibs__store_close(st);
    snprintf(path, sizeof(path), "%s.boot", w->path);
    file_write(path, "another boot\n", 13);
    dibs__sqlite_boot_id_path = path;
    st = world_open(w);
    other = open_lane(w, st, "jobs", 8);
    assert_status(take(w, st, &other, 1), DIBS_OK);
    assert_int_equal(other.count, 1);
    assert_int_equal(other.token.id, id);
    assert_int_equal(other.token.attempt, 2);
    assert_true(other.token.fence > tk.token.fence);
    assert_status(take(w, st, &tk, 0), DIBS_LOST);
    /* Nobody sends a push of the boot before again. */
    push(w, st, "jobs", 5, 2, DIBS_LOST);
    dibs__store_close(st);
    dibs__sqlite_boot_id_path = real;
}

enum { FREED_MAX = 256, FREED_BYTES = 1 << 20, PART = 20 };

static int64_t count_own(const world *w)
{
    return world_number(w->path,
                        "SELECT count(*) FROM item WHERE own = 'bert'");
}

/* Pushes for a worker that leaves then. Answers how many are still its own. */
static int64_t
leave_load(world *w, dibs__store *st, uint64_t lane, size_t parts, size_t len)
{
    static char data[FREED_BYTES / 8];
    dibs__push_item items[PART];
    dibs__push ask = {.queue = "jobs", .lane = lane, .items = items};
    taking tk = {.ask = {.queue = "jobs",
                         .lane = lane,
                         .span_ms = 600000,
                         .as = "bert"}};

    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_true(len <= sizeof(data));
    ask.count = len < sizeof(data) ? PART : 1;
    for (ask.number = 1; ask.number <= parts; ask.number++) {
        for (size_t i = 0; i < ask.count; i++)
            items[i] = (dibs__push_item){.data = data,
                                         .len = len,
                                         .to = "bert",
                                         .dedup = ""};
        assert_status(st->ops->queue->push(st, &ask, soon(), &w->err), DIBS_OK);
    }
    assert_int_equal(count_own(w), parts * ask.count);
    assert_status(st->ops->queue->leave(st, "jobs", lane, soon(), &w->err),
                  DIBS_OK);
    return count_own(w);
}

/* All others wait for a step: it is not the longer, the more the worker had. */
static void a_dead_worker_costs_a_step_little(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    taking tk;

    assert_int_equal(leave_load(w, st, 7, 15, 1), 15 * PART - FREED_MAX);
    tk = open_lane(w, st, "jobs", 8);
    assert_int_equal(count_own(w), 0);
    assert_int_equal(leave_load(w, st, 9, 12, FREED_BYTES / 8), 12 - 8);
    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_int_equal(count_own(w), 0);
    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM lane"), 1);
    dibs__store_close(st);
}

/* It is there again while its items are freed, and has those that are left. */
static void a_worker_that_is_back_keeps_the_rest(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    taking bert = {
        .ask = {.queue = "jobs", .lane = 8, .span_ms = 600000, .as = "bert"}};
    int64_t left = leave_load(w, st, 7, 40, 1);

    assert_int_equal(left, 40 * PART - FREED_MAX);
    assert_status(take(w, st, &bert, 0), DIBS_OK);
    assert_int_equal(count_own(w), left - FREED_MAX);
    assert_status(take(w, st, &bert, 0), DIBS_OK);
    assert_int_equal(count_own(w), left - FREED_MAX);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM lane"), 1);
    dibs__store_close(st);
}

static int64_t rows_left(const world *w)
{
    return world_number(
        w->path, "SELECT (SELECT count(*) FROM queue WHERE name = 'jobs') + "
                 "(SELECT count(*) FROM item) + (SELECT count(*) FROM dedup) + "
                 "(SELECT count(*) FROM dead) + (SELECT count(*) FROM lane) + "
                 "(SELECT count(*) FROM pusher WHERE q = (SELECT q FROM queue "
                 "WHERE name = 'jobs'))");
}

/* Once nobody uses it for a while, which the test does not wait for. */
static void done_leaves_nothing(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    taking tk;

    push(w, st, "jobs", 5, 1, DIBS_OK);
    tk = open_lane(w, st, "jobs", 7);
    assert_status(take(w, st, &tk, 1), DIBS_OK);
    tk.settle = (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = tk.token};
    tk.ask.settle_count = 1;
    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_status(tk.settle.rc, DIBS_OK);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM item"), 0);
    world_sql(w->path, "UPDATE pusher SET until_us = 1; "
                       "UPDATE lane SET until_us = -100000000");
    for (uint64_t i = 1; i <= 1000 && rows_left(w) > 0; i++) {
        push(w, st, "others", 9, i, DIBS_OK);
        world_sql(w->path, "DELETE FROM item");
    }
    assert_int_equal(rows_left(w), 0);
    dibs__store_close(st);
}

/* The numbers of a queue that nobody uses are kept with its pushers. */
static void an_empty_queue_keeps_its_numbers(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    uint64_t id = push(w, st, "jobs", 5, 1, DIBS_OK);
    taking tk = open_lane(w, st, "jobs", 7);

    assert_status(take(w, st, &tk, 1), DIBS_OK);
    tk.settle = (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = tk.token};
    tk.ask.settle_count = 1;
    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_status(st->ops->queue->leave(st, "jobs", 7, soon(), &w->err),
                  DIBS_OK);
    for (uint64_t i = 1; i <= 64; i++)
        push(w, st, "others", 9, i, DIBS_OK);
    assert_int_equal(push(w, st, "jobs", 5, 1, DIBS_OK), id);
    assert_int_equal(world_number(w->path, "SELECT items FROM queue "
                                           "WHERE name = 'jobs'"),
                     0);
    dibs__store_close(st);
}

static void set_keep_done(world *w, dibs__store *st, uint32_t count)
{
    const dibs__queue_conf conf = {.keep_done = count};

    assert_status(st->ops->queue_admin->set(st, "jobs", DIBS__SET_KEEP_DONE,
                                            &conf, soon(), &w->err),
                  DIBS_OK);
}

static bool count_view(const dibs__item_view *item, void *arg)
{
    assert_int_equal(item->place, DIBS__PLACE_DONE);
    ++*(size_t *)arg;
    return true;
}

static void expect_shown(world *w, dibs__store *st, size_t count)
{
    dibs__queue_stats stats;
    size_t shown = 0;

    assert_status(st->ops->queue_admin->stats(st, "jobs", soon(), &stats,
                                              &w->err),
                  DIBS_OK);
    assert_int_equal(stats.done, count);
    assert_status(st->ops->queue_admin->peek(st, "jobs", DIBS__PLACE_DONE, 0,
                                             100, soon(), count_view, &shown,
                                             &w->err),
                  DIBS_OK);
    assert_int_equal(shown, count);
}

/* Records of done items, and a table that notes how many each transaction drops. */
static void make_records(world *w, dibs__store *st)
{
    set_keep_done(w, st, 5000);
    world_sql(w->path,
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
              "WHERE i < 3500) INSERT INTO done SELECT i, (SELECT q FROM queue "
              "WHERE name = 'jobs'), i, 1, 0, 1, 0, '', '', '' FROM n; "
              "UPDATE queue SET done = 3500 WHERE name = 'jobs'; "
              "CREATE TABLE piece(n INTEGER); "
              "CREATE TRIGGER note AFTER UPDATE ON queue WHEN new.done < "
              "old.done BEGIN INSERT INTO piece VALUES(old.done - new.done); "
              "END");
}

/* Those beyond the bound are not shown, and not there. */
static void records_do_not_grow_with_acks(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    taking tk;

    set_keep_done(w, st, 3);
    tk = open_lane(w, st, "jobs", 7);
    for (uint64_t i = 1; i <= 6; i++) {
        push(w, st, "jobs", 5, i, DIBS_OK);
        tk.ask.settle_count = 0;
        assert_status(take(w, st, &tk, 1), DIBS_OK);
        tk.settle =
            (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = tk.token};
        tk.ask.settle_count = 1;
        assert_status(take(w, st, &tk, 0), DIBS_OK);
    }
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM done"), 3);
    dibs__store_close(st);
}

/* Others have their turn in between. */
static void a_lower_bound_drops_records_in_pieces(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    make_records(w, st);
    set_keep_done(w, st, 10);
    expect_shown(w, st, 10);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM done"), 10);
    assert_int_equal(world_number(w->path, "SELECT min(id) FROM done"), 3491);
    assert_int_equal(world_number(w->path, "SELECT sum(n) FROM piece"), 3490);
    assert_int_equal(world_number(w->path, "SELECT max(n) FROM piece"),
                     DIBS__PURGE_MAX);
    dibs__store_close(st);
}

/* As a call leaves it that had no time for all of it: what is beyond the bound is not shown,
 * and does not come back with a higher one. */
static void records_that_are_left_are_not_shown(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    make_records(w, st);
    world_sql(w->path, "UPDATE queue SET keep_done = 10 WHERE name = 'jobs'");
    expect_shown(w, st, 10);
    set_keep_done(w, st, 60);
    expect_shown(w, st, 10);
    assert_int_equal(world_number(w->path, "SELECT max(n) FROM piece"),
                     DIBS__PURGE_MAX);
    assert_int_equal(world_number(w->path, "SELECT keep_done FROM queue "
                                           "WHERE name = 'jobs'"),
                     60);
    dibs__store_close(st);
}

static int64_t records(const world *w)
{
    return world_number(w->path, "SELECT count(*) FROM done");
}

/* As a call leaves it that had no time to drop all of them: none is shown. */
static void leave_records(world *w, dibs__store *st)
{
    make_records(w, st);
    world_sql(w->path, "UPDATE queue SET keep_done = 0 WHERE name = 'jobs'");
    expect_shown(w, st, 0);
}

static void an_ack_drops_what_a_bound_of_none_has_left(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    taking tk;

    leave_records(w, st);
    push(w, st, "jobs", 5, 1, DIBS_OK);
    tk = open_lane(w, st, "jobs", 7);
    assert_status(take(w, st, &tk, 1), DIBS_OK);
    tk.settle = (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = tk.token};
    tk.ask.settle_count = 1;
    assert_status(take(w, st, &tk, 0), DIBS_OK);
    assert_true(records(w) < 3500);
    assert_int_equal(world_number(w->path, "SELECT done FROM queue "
                                           "WHERE name = 'jobs'"),
                     records(w));
    dibs__store_close(st);
}

static void a_purge_drops_records_that_are_not_shown(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs_client *cl = NULL;
    uint64_t purged = 7;

    leave_records(w, st);
    assert_status(dibs_open(w->url, NULL, &cl, &w->err), DIBS_OK);
    assert_status(dibs_queue_purge(cl, "jobs", DIBS_ITEM_DONE, &purged,
                                   &w->err),
                  DIBS_OK);
    assert_int_equal(purged, 0);
    assert_int_equal(records(w), 0);
    assert_int_equal(world_number(w->path, "SELECT max(n) FROM piece"),
                     DIBS__PURGE_MAX);
    dibs_close(cl);
    dibs__store_close(st);
}

/* A queue that nobody uses goes only with its records. */
static void records_keep_their_queue(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    leave_records(w, st);
    for (uint64_t i = 1; i <= 200; i++) {
        push(w, st, "others", 9, i, DIBS_OK);
        world_sql(w->path, "DELETE FROM item");
    }
    expect_shown(w, st, 0);
    dibs__store_close(st);
}

static dibs_status pause_and_keep(world *w, dibs__store *st, uint32_t keep_done)
{
    const dibs__queue_conf conf = {.paused = true, .keep_done = keep_done};

    return st->ops->queue_admin->set(st, "jobs",
                                     DIBS__SET_PAUSED | DIBS__SET_KEEP_DONE,
                                     &conf, soon(), &w->err);
}

/* Another resumes the queue when the first piece is done. */
static void later_pieces_change_nothing_else(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    make_records(w, st);
    world_sql(w->path,
              "CREATE TRIGGER resume AFTER INSERT ON piece WHEN "
              "(SELECT count(*) FROM piece) = 1 BEGIN UPDATE queue SET "
              "paused = 0 WHERE name = 'jobs'; END");
    assert_status(pause_and_keep(w, st, 10), DIBS_OK);
    assert_int_equal(records(w), 10);
    assert_int_equal(world_number(w->path, "SELECT paused FROM queue "
                                           "WHERE name = 'jobs'"),
                     0);
    dibs__store_close(st);
}

static void a_later_piece_says_why_it_failed(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);

    make_records(w, st);
    world_sql(w->path, "CREATE TRIGGER refuse AFTER INSERT ON piece WHEN "
                       "(SELECT count(*) FROM piece) = 2 BEGIN "
                       "SELECT RAISE(ABORT, 'planted cause'); END");
    assert_status(pause_and_keep(w, st, 10), DIBS_UNKNOWN);
    assert_non_null(strstr(w->err.message, "not all records of done items"));
    assert_non_null(strstr(w->err.message, "planted cause"));
    assert_int_equal(records(w), 2500);
    dibs__store_close(st);
}

/* Writes to the same file, by another handle, after every piece of a purge. */
typedef struct writer {
    world *w;
    dibs__store *st;
    const dibs__queue_admin_ops *real;
    uint64_t turns;
} writer;

static writer next_writer;

static dibs_status
purge_and_write(struct dibs__store *st, const char *queue, uint32_t places,
                size_t max, dibsx_nsec deadline, size_t *purged,
                dibs_error *err)
{
    writer *wr = &next_writer;
    dibs_status rc =
        wr->real->purge(st, queue, places, max, deadline, purged, err);

    push(wr->w, wr->st, "others", 9, ++wr->turns, DIBS_OK);
    return rc;
}

static dibs_client *open_client(world *w)
{
    dibs_client *cl = NULL;

    assert_status(dibs_open(w->url, NULL, &cl, &w->err), DIBS_OK);
    return cl;
}

static int64_t queues_left(const world *w)
{
    return world_number(w->path,
                        "SELECT count(*) FROM queue WHERE name = 'jobs'");
}

static void others_write_between_the_pieces_of_a_removal(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs_client *cl = open_client(w);
    const dibs__store_ops *real = cl->st->ops;
    dibs__queue_admin_ops admin = *real->queue_admin;
    dibs__store_ops ops = *real;

    make_records(w, st);
    next_writer = (writer){.w = w, .st = st, .real = real->queue_admin};
    admin.purge = purge_and_write;
    ops.queue_admin = &admin;
    cl->st->ops = &ops;
    assert_status(dibs_queue_remove(cl, "jobs", &w->err), DIBS_OK);
    cl->st->ops = real;
    assert_int_equal(next_writer.turns, 4);
    assert_int_equal(queues_left(w), 0);
    assert_int_equal(records(w), 0);
    assert_int_equal(world_number(w->path, "SELECT max(n) FROM piece"),
                     DIBS__PURGE_MAX);
    assert_status(dibs_queue_remove(cl, "jobs", &w->err), DIBS_NOTFOUND);
    dibs_close(cl);
    dibs__store_close(st);
}

static void a_queue_in_use_keeps_its_records(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs_client *cl = open_client(w);

    make_records(w, st);
    push(w, st, "jobs", 5, 1, DIBS_OK);
    assert_status(dibs_queue_remove(cl, "jobs", &w->err), DIBS_BUSY);
    assert_int_equal(records(w), 3500);
    assert_int_equal(queues_left(w), 1);
    dibs_close(cl);
    dibs__store_close(st);
}

static void a_removal_that_stops_can_be_repeated(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    dibs_client *cl = open_client(w);

    make_records(w, st);
    world_sql(w->path, "CREATE TRIGGER refuse AFTER INSERT ON piece WHEN "
                       "(SELECT count(*) FROM piece) = 3 BEGIN "
                       "SELECT RAISE(ABORT, 'planted cause'); END");
    assert_status(dibs_queue_remove(cl, "jobs", &w->err), DIBS_UNKNOWN);
    assert_non_null(strstr(w->err.message, "planted cause"));
    assert_int_equal(world_number(w->path, "SELECT keep_done FROM queue "
                                           "WHERE name = 'jobs'"),
                     5000);
    assert_int_equal(records(w), 1500);
    assert_int_equal(world_number(w->path, "SELECT min(id) FROM done"), 2001);
    world_sql(w->path, "DROP TRIGGER refuse");
    assert_status(dibs_queue_remove(cl, "jobs", &w->err), DIBS_OK);
    assert_int_equal(queues_left(w), 0);
    assert_int_equal(records(w), 0);
    dibs_close(cl);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_reboot_returns_what_is_out),
        WORLD_TEST(a_dead_worker_costs_a_step_little),
        WORLD_TEST(a_worker_that_is_back_keeps_the_rest),
        WORLD_TEST(done_leaves_nothing),
        WORLD_TEST(an_empty_queue_keeps_its_numbers),
        WORLD_TEST(records_do_not_grow_with_acks),
        WORLD_TEST(a_lower_bound_drops_records_in_pieces),
        WORLD_TEST(records_that_are_left_are_not_shown),
        WORLD_TEST(an_ack_drops_what_a_bound_of_none_has_left),
        WORLD_TEST(a_purge_drops_records_that_are_not_shown),
        WORLD_TEST(records_keep_their_queue),
        WORLD_TEST(later_pieces_change_nothing_else),
        WORLD_TEST(a_later_piece_says_why_it_failed),
        WORLD_TEST(others_write_between_the_pieces_of_a_removal),
        WORLD_TEST(a_queue_in_use_keeps_its_records),
        WORLD_TEST(a_removal_that_stops_can_be_repeated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
