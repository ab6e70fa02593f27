/* test_redis_resp.c - commands on the wire, and what the guard lets in. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/wire/resp.h"
#include "unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void commands_are_encoded(void **state)
{
    static const char expected[] =
        "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$12\r\na\r\nb\0cdefghi\r\n";
    dibs__words words = {.count = 0};
    char out[128];
    size_t len;

    (void)state;
    dibs__words_puts(&words, "SET");
    dibs__words_puts(&words, "");
    dibs__words_add(&words, "a\r\nb\0cdefghi", 12);
    assert_true(dibs__words_room(&words) <= sizeof(out));
    len = dibs__words_encode(&words, out);
    assert_int_equal(len, sizeof(expected) - 1);
    assert_memory_equal(out, expected, len);
}

static void room_is_enough_for_the_longest(void **state)
{
    static char bytes[123456];
    dibs__words words = {.count = 0};
    char *out;

    (void)state;
    for (int i = 0; i < DIBS__WORDS_MAX; i++)
        dibs__words_add(&words, bytes, sizeof(bytes));
    out = malloc(dibs__words_room(&words));
    assert_non_null(out);
    assert_true(dibs__words_encode(&words, out) <= dibs__words_room(&words));
    free(out);
}

/* Whole, and byte by byte: what the guard says is the same. */
static const char *admit(const char *text)
{
    dibs__guard whole = {0};
    dibs__guard slow = {0};
    const char *why = dibs__guard_admit(&whole, text, strlen(text));
    const char *again = NULL;

    for (const char *c = text; *c && !again; c++)
        again = dibs__guard_admit(&slow, c, 1);
    assert_true(!why == !again);
    if (why)
        assert_string_equal(why, again);
    return why;
}

static void good_replies_pass(void **state)
{
    static const char *const cases[] = {
        "+OK\r\n",
        "+\r\n",
        "-ERR no\r\n:1\r\n:-5\r\n",
        "$0\r\n\r\n$5\r\nhe\r\no\r\n$-1\r\n",
        "*0\r\n*-1\r\n*2\r\n$1\r\na\r\n*1\r\n:1\r\n+OK\r\n",
        "*3\r\n*2\r\n+a\r\n+b\r\n$2\r\n\r\n\r\n*0\r\n+next\r\n",
        "$16777200\r\n",
        "*1048576\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*2\r\n:1\r\n:2\r\n+next\r\n",
        "*2\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n*1\r\n*0\r\n+n\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (admit(cases[i]))
            fail_msg("%s: %s", cases[i], admit(cases[i]));
}

static void bad_replies_do_not(void **state)
{
    static const char *const cases[] = {
        "HTTP/1.1 200 OK\r\n",
        "\r\n",
        "+OK\n",
        "+OK\rx",
        "+a\n$50\r\n*999999999\r\n",
        "$\r\n",
        "$-\r\n",
        "$-2\r\n",
        "$--1\r\n",
        "$1x\r\n",
        "$ 1\r\n",
        "$+1\r\n",
        "$1\n",
        "$99999999\r\n",
        "$9999999999\r\n",
        "*1048577\r\n",
        "*999999999\r\n",
        "*2\r\n*1048570\r\n*100\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
        "*1\r\nx",
        "%1\r\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (!admit(cases[i]))
            fail_msg("%s was let in", cases[i]);
}

/* Inner arrays do not hide how many there are; the next reply starts anew. */
static void the_items_of_a_reply_are_bounded(void **state)
{
    dibs__guard guard = {0};
    const char *why = NULL;
    int items = 1;

    (void)state;
    assert_null(dibs__guard_admit(&guard, "*1000000\r\n", 10));
    for (; !why && items < 2 * DIBS__ITEMS_MAX; items += 2)
        why = dibs__guard_admit(&guard, "*1\r\n+\r\n", 7);
    assert_non_null(why);
    assert_in_range(items, DIBS__ITEMS_MAX, DIBS__ITEMS_MAX + 2);
    guard = (dibs__guard){0};
    for (int i = 0; i < 2 * DIBS__ITEMS_MAX; i++)
        assert_null(dibs__guard_admit(&guard, "+\r\n", 3));
}

/* Many small items add up; the next reply starts from nothing. */
static void the_size_of_a_reply_is_bounded(void **state)
{
    static char chunk[1 << 16];
    dibs__guard guard = {0};
    char head[32];
    const char *why = NULL;

    (void)state;
    for (int reply = 0; reply < 3; reply++) {
        snprintf(head, sizeof(head), "$%d\r\n", DIBS__REPLY_MAX - (1 << 20));
        assert_null(dibs__guard_admit(&guard, head, strlen(head)));
        for (size_t i = 0; i < (DIBS__REPLY_MAX - (1 << 20)) / sizeof(chunk);
             i++)
            assert_null(dibs__guard_admit(&guard, chunk, sizeof(chunk)));
        assert_null(dibs__guard_admit(&guard, "\r\n", 2));
    }
    assert_null(dibs__guard_admit(&guard, "*100000\r\n", 9));
    snprintf(head, sizeof(head), "$%zu\r\n", sizeof(chunk));
    for (size_t i = 0; i < DIBS__REPLY_MAX / sizeof(chunk) && !why; i++) {
        assert_null(dibs__guard_admit(&guard, head, strlen(head)));
        why = dibs__guard_admit(&guard, chunk, sizeof(chunk));
        assert_true(why || !dibs__guard_admit(&guard, "\r\n", 2));
    }
    assert_non_null(why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_are_encoded),
        cmocka_unit_test(room_is_enough_for_the_longest),
        cmocka_unit_test(good_replies_pass),
        cmocka_unit_test(the_items_of_a_reply_are_bounded),
        cmocka_unit_test(bad_replies_do_not),
        cmocka_unit_test(the_size_of_a_reply_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
