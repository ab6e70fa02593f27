/* test_sqlite_queue.c - the queues of the embedded store beyond the contract: another boot,
 * what is left behind, what is broken. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/conn.h"
#include "store_world.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_reboot_returns_what_is_out),
        WORLD_TEST(done_leaves_nothing),
        WORLD_TEST(an_empty_queue_keeps_its_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
