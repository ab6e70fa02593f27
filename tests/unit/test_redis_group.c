/* test_redis_group.c - commands of several threads, put together as one. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/group.h"
#include "unit.h"
#include <string.h>

static const dibs__group group = {.sha1 = "0123",
                                  .text = "return",
                                  .text_len = 6,
                                  .shared = "all",
                                  .key_at = 3,
                                  .key_count = 2,
                                  .rest_at = 6};

/* EVALSHA of another script with three keys, of which two are for the group. */
static void
make(dibs__member *mb, const char *key, const char *rest, char *bytes)
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
    dibs__member_init(mb, &group, &words, bytes, len);
}

static void put_together(bool whole, dibsx_buf *out)
{
    char bytes[2][256];
    dibs__member members[2];

    make(&members[0], "a", "0123456789", bytes[0]);
    make(&members[1], "bb", "x", bytes[1]);
    assert_true(dibs__member_fits(&members[0], &members[1]));
    dibs__group_begin(&members[0], 2, whole, out);
    for (int i = 0; i < 2; i++)
        dibsx_buf_add(out, members[i].keys, members[i].keys_len);
    for (int i = 0; i < 2; i++)
        dibsx_buf_add(out, members[i].rest, members[i].rest_len);
    assert_true(dibsx_buf_ok(out));
}

#define MEMBERS                                                                \
    "$1\r\n5\r\n$3\r\nall\r\n"                                                 \
    "$1\r\na\r\n$1\r\n~\r\n$2\r\nbb\r\n$1\r\n~\r\n"                            \
    "$10\r\n0123456789\r\n$0\r\n\r\n$1\r\nx\r\n$0\r\n\r\n"

static void members_become_one_command(void **state)
{
    dibsx_buf out;

    (void)state;
    dibsx_buf_init(&out, 4096);
    put_together(false, &out);
    assert_string_equal(dibsx_buf_text(&out),
                        "*12\r\n$7\r\nEVALSHA\r\n$4\r\n0123\r\n" MEMBERS);
    dibsx_buf_reset(&out);
    put_together(true, &out);
    assert_string_equal(dibsx_buf_text(&out),
                        "*12\r\n$4\r\nEVAL\r\n$6\r\nreturn\r\n" MEMBERS);
    dibsx_buf_fini(&out);
}

static void unlike_members_do_not_fit(void **state)
{
    dibs__member one, more, none = {.group = NULL};
    char bytes[256];

    (void)state;
    make(&one, "a", "x", bytes);
    more = one;
    more.rest_count++;
    assert_false(dibs__member_fits(&one, &more));
    assert_false(dibs__member_fits(&one, &none));
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
    assert_false(dibs__group_is_answer(&list, 3));
    assert_false(dibs__group_is_answer(&error, 2));
    assert_true(dibs__group_is_answer(&list, 2));
    assert_null(dibs__group_take(&list, 1));
    assert_ptr_equal(dibs__group_take(&list, 0), &yes);
    assert_null(items[0]);
    assert_ptr_equal(items[1], &nil);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_become_one_command),
        cmocka_unit_test(unlike_members_do_not_fit),
        cmocka_unit_test(each_takes_its_own_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
