/* test_redis_batch.c - commands of several threads, put together as one. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pending.h"
#include "unit.h"
#include <string.h>

static const dibs__batch batch_script = {.sha1 = "0123",
                                         .text = "return",
                                         .text_len = 6,
                                         .shared = "all"};
static const dibs__part first = {.batch = &batch_script,
                                 .key_at = 3,
                                 .key_count = 2,
                                 .rest_at = 6};
static const dibs__part second = {.batch = &batch_script,
                                  .second = true,
                                  .key_at = 3,
                                  .key_count = 1,
                                  .rest_at = 7};

/* EVALSHA of another script with three keys, of which not all are for the group. */
static void make(dibs__member *mb, const dibs__part *part, const char *key,
                 const char *rest, char *bytes)
{
    dibs__words words = {.count = 0};
    size_t len;

    dibs__words_puts(&words, "EVALSHA");
    dibs__words_puts(&words, "4567");
    dibs__words_puts(&words, "3");
    dibs__words_puts(&words, key);
    dibs__words_puts(&words, "~");
    dibs__words_puts(&words, "unused");
    dibs__words_puts(&words, rest);
    dibs__words_puts(&words, "");
    len = dibs__words_encode(&words, bytes);
    dibs__member_init(mb, part, &words, bytes, len);
}

static void put_together(bool whole, dibsx_buf *out)
{
    char bytes[3][256];
    dibs__member members[3];
    const dibs__member *all[] = {&members[0], &members[1], &members[2]};

    make(&members[0], &first, "a", "0123456789", bytes[0]);
    make(&members[1], &first, "bb", "x", bytes[1]);
    make(&members[2], &second, "ccc", "not this", bytes[2]);
    assert_true(dibs__member_fits(&members[0], &members[1]));
    assert_true(dibs__member_fits(&members[2], &members[1]));
    dibs__batch_put(all, 3, whole, out);
    assert_true(dibsx_buf_ok(out));
}

#define MEMBERS                                                                \
    "$1\r\n6\r\n$3\r\nall\r\n"                                                 \
    "$1\r\na\r\n$1\r\n~\r\n$2\r\nbb\r\n$1\r\n~\r\n$3\r\nccc\r\n"               \
    "$1\r\n2\r\n"                                                              \
    "$10\r\n0123456789\r\n$0\r\n\r\n$1\r\nx\r\n$0\r\n\r\n$0\r\n\r\n"

static void members_become_one_command(void **state)
{
    dibsx_buf out;

    (void)state;
    dibsx_buf_init(&out, 4096);
    put_together(false, &out);
    assert_string_equal(dibsx_buf_text(&out),
                        "*15\r\n$7\r\nEVALSHA\r\n$4\r\n0123\r\n" MEMBERS);
    dibsx_buf_reset(&out);
    put_together(true, &out);
    assert_string_equal(dibsx_buf_text(&out),
                        "*15\r\n$4\r\nEVAL\r\n$6\r\nreturn\r\n" MEMBERS);
    dibsx_buf_fini(&out);
}

static void unlike_members_do_not_fit(void **state)
{
    dibs__member one, more, none = {.part = NULL};
    char bytes[256];

    (void)state;
    make(&one, &first, "a", "x", bytes);
    more = one;
    more.rest_count++;
    assert_false(dibs__member_fits(&one, &more));
    assert_false(dibs__member_fits(&one, &none));
    assert_false(dibs__member_fits(&none, &one));
    assert_false(dibs__member_fits(&none, &none));
}

static void each_takes_its_own_answer(void **state)
{
    redisReply yes = {.type = REDIS_REPLY_INTEGER, .integer = 1};
    redisReply nil = {.type = REDIS_REPLY_NIL};
    redisReply *items[] = {&yes, &nil};
    redisReply list = {.type = REDIS_REPLY_ARRAY,
                       .elements = 2,
                       .element = items};
    redisReply error = {.type = REDIS_REPLY_ERROR};

    (void)state;
    assert_false(dibs__batch_is_answer(&list, 3));
    assert_false(dibs__batch_is_answer(&error, 2));
    assert_true(dibs__batch_is_answer(&list, 2));
    assert_null(dibs__batch_take(&list, 1));
    assert_ptr_equal(dibs__batch_take(&list, 0), &yes);
    assert_null(items[0]);
    assert_ptr_equal(items[1], &nil);
}

/* Later members go with the first one past others, and not past one that is bound to its
 * connection. */
static void none_passes_one_that_is_bound(void **state)
{
    char bytes[2][256];
    dibs__pending all[3] = {{.due = 1}, {.due = 1}, {.due = 1}};
    dibsx_fifo queue = {0}, members;

    (void)state;
    make(&all[0].member, &first, "a", "x", bytes[0]);
    make(&all[2].member, &first, "b", "x", bytes[1]);
    for (size_t i = 0; i < 3; i++)
        dibsx_fifo_push(&queue, &all[i].queued);
    dibs__pending_gather(&queue, false, &members);
    assert_int_equal(members.count, 2);
    assert_ptr_equal(dibs__pending_first(&queue), &all[1]);

    queue = (dibsx_fifo){0};
    all[1].only_on = 1;
    for (size_t i = 0; i < 3; i++)
        dibsx_fifo_push(&queue, &all[i].queued);
    dibs__pending_gather(&queue, false, &members);
    assert_int_equal(members.count, 1);
    assert_int_equal(queue.count, 2);
    dibs__pending_gather(&queue, false, &members);
    assert_ptr_equal(dibs__pending_first(&members), &all[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_one_command),
        cmocka_unit_test(unlike_members_do_not_fit),
        cmocka_unit_test(each_takes_its_own_answer),
        cmocka_unit_test(none_passes_one_that_is_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
