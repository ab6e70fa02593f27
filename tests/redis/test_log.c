/* test_log.c - a log as the server has it: a stream by position, which is trimmed
 * and read in pages. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

typedef struct entries {
    dibs__log_entry last;
    size_t count;
    size_t most;
    char data[32];
} entries;

static bool note_entry(const dibs__log_entry *entry, void *arg)
{
    entries *seen = arg;

    assert_true(entry->position > seen->last.position);
    seen->last = *entry;
    seen->count++;
    snprintf(seen->data, sizeof(seen->data), "%.*s", (int)entry->len,
             (const char *)entry->data);
    return seen->count != seen->most;
}

static uint64_t append(stage *sg, const char *data, size_t len, uint32_t keep)
{
    uint64_t position = 0;

    CHECK(DIBS_OK, sg->st[0]->ops->log->append(sg->st[0],
                                               &(dibs__append){.topic = "t",
                                                               .data = data,
                                                               .len = len,
                                                               .keep = keep},
                                               stage_soon(), &position, err));
    return position;
}

static entries read_log(stage *sg, uint64_t after, size_t max, size_t most)
{
    entries seen = {.most = most};

    CHECK(DIBS_OK,
          sg->st[1]->ops->log->read(sg->st[1], "t", after, max, stage_soon(),
                                    note_entry, &seen, err));
    return seen;
}

static void a_log_is_a_stream_by_position(void **state)
{
    stage *sg = *state;
    uint64_t first = append(sg, "one", 3, 1000);
    uint64_t second = append(sg, "", 0, 1000);
    char expected[128], number[32];
    entries seen = read_log(sg, 0, 10, 0);

    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.last.position, second);
    assert_int_equal(seen.last.len, 0);
    ASSERT_REPLY("stream", "TYPE", "dibs:log:t");
    ASSERT_REPLY("-1", "PTTL", "dibs:log:t");
    snprintf(expected, sizeof(expected), "%llu-0 d one b 0 s 3",
             (unsigned long long)first);
    ASSERT_REPLY(expected, "XRANGE", "dibs:log:t", "-", "+", "COUNT", "1");
    seen = read_log(sg, first - 1, 10, 1);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.data, "one");
    assert_int_equal(seen.last.store_wall_us, first);
    assert_int_equal(read_log(sg, first, 10, 0).count, 1);
    assert_int_equal(read_log(sg, second, 10, 0).count, 0);
    assert_int_equal(read_log(sg, UINT64_MAX, 10, 0).count, 0);
    /* Ahead of the clock, the entry has its time beside it. */
    assert_true(
        server_tell(&sg->w->sv, "SET", "dibs:fence", "9007199254740000", NULL));
    assert_int_equal(append(sg, "late", 4, 1000), 9007199254740001);
    seen = read_log(sg, second, 10, 0);
    assert_int_equal(seen.last.position, 9007199254740001);
    assert_in_range(seen.last.store_wall_us, second, second + 60000000);
    snprintf(number, sizeof(number), "%lld",
             (long long)seen.last.store_wall_us);
    snprintf(expected, sizeof(expected),
             "9007199254740001-0 d late b %llu s 7 t %s",
             (unsigned long long)second, number);
    ASSERT_REPLY(expected, "XREVRANGE", "dibs:log:t", "+", "-", "COUNT", "1");
}

enum { ENTRIES = 1000, KEEP = 300, SLACK = 100 };

/* Whole blocks of a stream go at once. */
static void a_log_is_trimmed_and_read_in_pages(void **state)
{
    stage *sg = *state;
    uint64_t positions[ENTRIES];
    entries seen;
    char *text;
    long len;

    for (size_t i = 0; i < ENTRIES; i++) {
        char data[32];
        int bytes = snprintf(data, sizeof(data), "entry %zu", i);

        positions[i] = append(sg, data, (size_t)bytes, KEEP);
    }
    text = server_ask(&sg->w->sv, "XLEN", "dibs:log:t", NULL);
    assert_non_null(text);
    len = strtol(text, NULL, 10);
    free(text);
    assert_in_range(len, KEEP, KEEP + SLACK);
    assert_int_equal(read_log(sg, 0, ENTRIES, 0).count, len);
    seen = read_log(sg, positions[ENTRIES - KEEP - 1], 200, 0);
    assert_int_equal(seen.count, 200);
    assert_int_equal(seen.last.position, positions[ENTRIES - 101]);
    assert_string_equal(seen.data, "entry 899");
    assert_int_equal(read_log(sg, 0, 0, 0).count, 0);
}

/* As many of the longest entries as a page has fit into replies; and what others
 * put into the stream is passed over. */
static void long_and_foreign_entries_of_a_log(void **state)
{
    static char data[DIBS__LOG_DATA_MAX];
    stage *sg = *state;
    uint64_t last = 0;
    entries seen;

    memset(data, 'x', sizeof(data));
    for (size_t i = 0; i < 140; i++)
        last = append(sg, data, sizeof(data), 200);
    assert_true(
        server_tell(&sg->w->sv, "XADD", "dibs:log:t", "*", "a", "b", NULL));
    seen = read_log(sg, 0, ENTRIES, 0);
    assert_int_equal(seen.count, 140);
    assert_int_equal(seen.last.position, last);
    assert_int_equal(seen.last.len, sizeof(data));
    last = append(sg, "y", 1, 200);
    assert_int_equal(read_log(sg, 0, ENTRIES, 0).last.position, last);
}

/* The keys of logs are no names of locks, and something else in the place of one
 * is refused. */
static void a_log_key_that_holds_something_else(void **state)
{
    stage *sg = *state;
    dibs__store *st = sg->st[0];
    uint64_t position = 9;
    entries seen = {0};

    assert_true(server_tell(&sg->w->sv, "SET", "dibs:log:t", "x", NULL));
    CHECK(DIBS_INTERNAL,
          st->ops->log->append(
              st,
              &(dibs__append){.topic = "t", .data = "x", .len = 1, .keep = 10},
              stage_soon(), &position, err));
    CHECK(DIBS_INTERNAL, st->ops->log->read(st, "t", 0, 1, stage_soon(),
                                            note_entry, &seen, err));
    assert_int_equal(seen.count, 0);
}

/* A watermark that was lost together with the time. */
static void a_log_does_not_go_back(void **state)
{
    stage *sg = *state;
    dibs__store *st = sg->st[0];
    uint64_t position = 9;
    dibs_error why = {0};

    assert_true(
        server_tell(&sg->w->sv, "SET", "dibs:fence", "9007199254740000", NULL));
    append(sg, "x", 1, 10);
    assert_true(server_tell(&sg->w->sv, "DEL", "dibs:fence", NULL));
    assert_status(st->ops->log->append(st,
                                       &(dibs__append){.topic = "t",
                                                       .data = "x",
                                                       .len = 1,
                                                       .keep = 10},
                                       stage_soon(), &position, &why),
                  DIBS_INTERNAL);
    assert_non_null(strstr(why.message, "dibs:fence"));
    assert_int_equal(read_log(sg, 0, 10, 0).count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STAGE_TEST(a_log_is_a_stream_by_position),
        STAGE_TEST(a_log_is_trimmed_and_read_in_pages),
        STAGE_TEST(long_and_foreign_entries_of_a_log),
        STAGE_TEST(a_log_key_that_holds_something_else),
        STAGE_TEST(a_log_does_not_go_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
