/* test_sqlite_log.c - the log of the embedded store beyond the contract: pages,
 * positions beside fences and versions, what is kept, what is broken. */
/* SPDX-License-Identifier: MIT */
#include "store_world.h"
#include <inttypes.h>

static uint64_t append(world *w, dibs__store *st, const char *topic,
                       const void *data, size_t len, uint32_t keep)
{
    uint64_t position = 0;

    if (st->ops->log->append(st,
                             &(dibs__append){.topic = topic,
                                             .data = data,
                                             .len = len,
                                             .keep = keep},
                             soon(), &position, &w->err) != DIBS_OK)
        FAIL_OF(w->err.status, "%s: %s", topic, w->err.message);
    return position;
}

typedef struct reading {
    world *w;
    dibs__store *st;
    size_t count;
    size_t stop_at;  /* 0: never */
    uint64_t last;   /* position */
    unsigned number; /* that the entry must hold next */
    size_t len;      /* of each; 0: that of the number alone */
    bool reenter;
} reading;

/* Entries hold consecutive numbers. */
static bool on_entry(const dibs__log_entry *entry, void *arg)
{
    reading *rd = arg;
    unsigned number;

    assert_true(entry->position > rd->last);
    assert_true(entry->store_wall_us > 0);
    assert_int_equal(entry->len, rd->len ? rd->len : sizeof(number));
    memcpy(&number, entry->data, sizeof(number));
    assert_int_equal(number, rd->number);
    rd->number++;
    rd->last = entry->position;
    if (rd->reenter) /* Nothing is locked while this runs. */
        append(rd->w, rd->st, "echo", entry->data, entry->len, 10);
    return ++rd->count != rd->stop_at;
}

static void read_on(reading *rd, const char *topic, uint64_t after, size_t max)
{
    rd->count = 0;
    if (rd->st->ops->log->read(rd->st, topic, after, max, soon(), on_entry, rd,
                               &rd->w->err) != DIBS_OK)
        FAIL_OF(rd->w->err.status, "%s: %s", topic, rd->w->err.message);
}

static void entries_are_read_in_order_over_many_pages(void **state)
{
    enum { MANY = 700 };
    world *w = *state;
    dibs__store *st = world_open_url(w, "memory:");
    reading rd = {.w = w, .st = st, .reenter = true};
    uint64_t middle = 0;

    for (unsigned i = 0; i < MANY; i++) {
        uint64_t position = append(w, st, "t", &i, sizeof(i), 10000);

        append(w, st, "t2", &i, sizeof(i), 10000);
        if (i == 299)
            middle = position;
    }
    read_on(&rd, "t", 0, SIZE_MAX);
    assert_int_equal(rd.count, MANY);
    rd = (reading){.w = w, .st = st, .number = 300};
    read_on(&rd, "t", middle, SIZE_MAX);
    assert_int_equal(rd.count, 400);

    /* So many, no more; and on from there. */
    rd = (reading){.w = w, .st = st};
    read_on(&rd, "t", 0, 300);
    assert_int_equal(rd.count, 300);
    assert_int_equal(rd.last, middle);
    read_on(&rd, "t", rd.last, 1);
    assert_int_equal(rd.count, 1);
    read_on(&rd, "t", rd.last, 0);
    assert_int_equal(rd.count, 0);
    rd.stop_at = 270;
    read_on(&rd, "t", rd.last, SIZE_MAX);
    assert_int_equal(rd.count, 270);
    read_on(&rd, "t", UINT64_MAX, SIZE_MAX);
    assert_int_equal(rd.count, 0);
    read_on(&rd, "nobody wrote here", 0, SIZE_MAX);
    assert_int_equal(rd.count, 0);
    dibs__store_close(st);
}

static void large_and_empty_entries_are_kept_whole(void **state)
{
    enum { BIG = 20 };
    static char data[DIBS__LOG_DATA_MAX];
    world *w = *state;
    dibs__store *st = world_open(w);
    reading rd = {.w = w, .st = st, .len = sizeof(data)};

    memset(data, 'x', sizeof(data));
    for (unsigned i = 0; i < BIG; i++) {
        memcpy(data, &i, sizeof(i));
        append(w, st, "big", data, sizeof(data), 100);
    }
    read_on(&rd, "big", 0, SIZE_MAX);
    assert_int_equal(rd.count, BIG);

    append(w, st, "empty", "", 0, 100);
    append(w, st, "empty", NULL, 0, 100);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM log WHERE "
                                           "topic = 'empty' AND data = x''"),
                     2);
    dibs__store_close(st);
}

static void positions_share_the_watermark(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    int64_t ahead = dibsx_wall_us() + INT64_C(3600000000);
    dibs__answer ans;
    char sql[128];

    /* An hour ahead, as after the clock was set back by an hour. */
    snprintf(sql, sizeof(sql),
             "UPDATE party SET fence = %" PRId64 " WHERE name = ''", ahead);
    world_sql(w->path, sql);
    assert_int_equal(append(w, st, "t", "x", 1, 9), ahead + 1);
    assert_status(try_lock(w, st, "a", 1, &ans), DIBS_OK);
    assert_int_equal(ans.fence, ahead + 2);
    assert_int_equal(append(w, st, "u", "x", 1, 9), ahead + 3);
    assert_int_equal(put_text(w, st, "k", "v"), ahead + 4);
    dibs__store_close(st);
    st = world_open(w);
    assert_int_equal(append(w, st, "t", "x", 1, 9), ahead + 5);
    assert_true(world_number(w->path, "SELECT max(wall_us) FROM log") < ahead);

    world_sql(w->path, "UPDATE party SET fence = 9223372036854775807 "
                       "WHERE name = ''");
    assert_status(st->ops->log->append(st,
                                       &(dibs__append){.topic = "t",
                                                       .data = "x",
                                                       .len = 1,
                                                       .keep = 9},
                                       soon(), &(uint64_t){0}, &w->err),
                  DIBS_INTERNAL);
    dibs__store_close(st);
}

static void the_newest_are_kept(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    reading rd = {.w = w, .st = st};
    unsigned i = 0;

    append(w, st, "other", "x", 1, 100);
    for (; i < 20; i++)
        append(w, st, "few", &i, sizeof(i), 5);
    rd.number = 15;
    read_on(&rd, "few", 0, SIZE_MAX);
    assert_int_equal(rd.count, 5);

    /* More are let go in heaps, never one of those that are kept. */
    for (i = 0; i < 1000; i++)
        append(w, st, "many", &i, sizeof(i), 100);
    rd = (reading){.w = w, .st = st};
    rd.number =
        1000 - (unsigned)world_number(w->path, "SELECT count(*) FROM log "
                                               "WHERE topic = 'many'");
    assert_in_range(rd.number, 500, 900);
    read_on(&rd, "many", 0, SIZE_MAX);
    assert_int_equal(rd.number, 1000);
    assert_int_equal(world_number(w->path, "SELECT count(*) FROM log WHERE "
                                           "topic = 'other'"),
                     1);
    dibs__store_close(st);
}

static void it_survives_a_reboot(void **state)
{
    const char *real = dibs__sqlite_boot_id_path;
    world *w = *state;
    dibs__store *st = world_open(w);
    char path[PATH_MAX];
    reading rd = {.w = w};
    unsigned zero = 0;
    uint64_t before = append(w, st, "t", &zero, sizeof(zero), 9);

    dibs__store_close(st);
    snprintf(path, sizeof(path), "%s/boot_id", w->folder);
    file_write(path, "another-boot\n", 13);
    dibs__sqlite_boot_id_path = path;
    rd.st = st = world_open(w);
    read_on(&rd, "t", 0, 9);
    assert_int_equal(rd.count, 1);
    assert_int_equal(rd.last, before);
    assert_true(append(w, st, "t", "x", 1, 9) > before);
    dibs__store_close(st);
    dibs__sqlite_boot_id_path = real;
}

static void a_broken_row_is_reported(void **state)
{
    world *w = *state;
    dibs__store *st = world_open(w);
    reading rd = {.w = w, .st = st};

    append(w, st, "t", "x", 1, 9);
    world_sql(w->path, "UPDATE log SET data = zeroblob(65537)");
    assert_status(st->ops->log->read(st, "t", 0, 9, soon(), on_entry, &rd,
                                     &w->err),
                  DIBS_INTERNAL);
    assert_int_equal(rd.count, 0);
    world_sql(w->path, "DELETE FROM log");
    read_on(&rd, "t", 0, 9);
    dibs__store_close(st);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(entries_are_read_in_order_over_many_pages),
        WORLD_TEST(large_and_empty_entries_are_kept_whole),
        WORLD_TEST(positions_share_the_watermark),
        WORLD_TEST(the_newest_are_kept),
        WORLD_TEST(it_survives_a_reboot),
        WORLD_TEST(a_broken_row_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
