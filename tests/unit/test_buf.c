/* test_buf.c - the buffer: growth, the maximum, failures that stick. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/buf.h"
#include "unit.h"
#include <string.h>

static void empty_reads_as_empty_text(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 10);
    assert_true(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "");
    dibsx_buf_puts(&buf, "");
    dibsx_buf_printf(&buf, "%s", "");
    assert_null(buf.data);
    assert_null(dibsx_buf_take(&buf));
    dibsx_buf_fini(&buf);
}

static void every_append_adds(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 1000);
    dibsx_buf_puts(&buf, "one");
    dibsx_buf_putc(&buf, ' ');
    dibsx_buf_add(&buf, "two\0three", 9);
    dibsx_buf_printf(&buf, " %d%s", 4, "!");
    assert_true(dibsx_buf_ok(&buf));
    assert_int_equal(buf.len, 16);
    assert_memory_equal(buf.data, "one two\0three 4!", 17);
    dibsx_buf_fini(&buf);
}

static void grows_byte_by_byte_and_stays_closed(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 5000);
    for (size_t i = 0; i < 5000; i++) {
        dibsx_buf_putc(&buf, (char)('a' + i % 26));
        assert_int_equal(strlen(dibsx_buf_text(&buf)), i + 1);
        assert_true(buf.room > buf.len);
    }
    assert_true(dibsx_buf_ok(&buf));
    assert_true(buf.room <= 5001);
    for (size_t i = 0; i < 5000; i++)
        assert_int_equal(buf.data[i], 'a' + i % 26);
    dibsx_buf_fini(&buf);
}

static void the_maximum_may_be_reached_exactly(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 4);
    dibsx_buf_printf(&buf, "%s", "abcd");
    assert_true(dibsx_buf_ok(&buf));
    dibsx_buf_putc(&buf, 'e');
    assert_false(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "abcd");
    dibsx_buf_fini(&buf);
}

/* A text is first written into what room there is. */
static void a_text_that_does_not_fit_leaves_no_trace(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 4);
    dibsx_buf_puts(&buf, "ab");
    dibsx_buf_printf(&buf, "%s", "cde");
    assert_false(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "ab");
    dibsx_buf_fini(&buf);
    for (int len = 1; len < 300; len++) {
        dibsx_buf_init(&buf, 1000);
        dibsx_buf_puts(&buf, "before ");
        dibsx_buf_printf(&buf, "%0*d", len, 7);
        dibsx_buf_puts(&buf, " after");
        assert_int_equal(buf.len, 7 + (size_t)len + 6);
        assert_memory_equal(buf.data, "before ", 7);
        for (int i = 0; i < len; i++)
            assert_int_equal(buf.data[7 + i], i == len - 1 ? '7' : '0');
        assert_string_equal(buf.data + 7 + len, " after");
        dibsx_buf_fini(&buf);
    }
}

static void a_failure_sticks_until_reset(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 4);
    dibsx_buf_puts(&buf, "ab");
    dibsx_buf_puts(&buf, "cde"); /* whole or not at all */
    dibsx_buf_puts(&buf, "c");   /* would fit, but comes too late */
    dibsx_buf_printf(&buf, "%d", 1);
    assert_false(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "ab");
    dibsx_buf_reset(&buf);
    assert_true(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "");
    dibsx_buf_puts(&buf, "c");
    assert_string_equal(dibsx_buf_text(&buf), "c");
    dibsx_buf_fini(&buf);
}

static void a_maximum_of_nothing_takes_nothing(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 0);
    dibsx_buf_puts(&buf, "");
    assert_true(dibsx_buf_ok(&buf));
    dibsx_buf_putc(&buf, 'x');
    assert_false(dibsx_buf_ok(&buf));
    dibsx_buf_fini(&buf);
}

static void huge_lengths_do_not_wrap(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 100);
    dibsx_buf_puts(&buf, "abc");
    dibsx_buf_add(&buf, "x", SIZE_MAX);
    assert_false(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "abc");
    dibsx_buf_fini(&buf);
}

static void take_hands_over_the_storage(void **state)
{
    dibsx_buf buf;
    char *text;

    (void)state;
    dibsx_buf_init(&buf, 8);
    dibsx_buf_puts(&buf, "mine");
    text = dibsx_buf_take(&buf);
    assert_string_equal(text, "mine");
    assert_null(buf.data);
    assert_int_equal(buf.len, 0);
    dibsx_buf_puts(&buf, "12345678");
    assert_true(dibsx_buf_ok(&buf));
    dibsx_buf_putc(&buf, '9');
    assert_null(dibsx_buf_take(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "");
    dibsx_buf_fini(&buf);
    dibsx_free(text);
}

static void memory_running_short_is_a_failure(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 1000);
    dibsx_buf_puts(&buf, "abc");
    dibsx_alloc_fail_at(1);
    dibsx_buf_printf(&buf, "%900s", "x");
    dibsx_alloc_fail_at(0);
    assert_false(dibsx_buf_ok(&buf));
    assert_string_equal(dibsx_buf_text(&buf), "abc");
    dibsx_buf_reset(&buf);
    dibsx_buf_printf(&buf, "%900s", "x");
    assert_true(dibsx_buf_ok(&buf));
    assert_int_equal(buf.len, 900);
    dibsx_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_reads_as_empty_text),
        cmocka_unit_test(every_append_adds),
        cmocka_unit_test(grows_byte_by_byte_and_stays_closed),
        cmocka_unit_test(the_maximum_may_be_reached_exactly),
        cmocka_unit_test(a_text_that_does_not_fit_leaves_no_trace),
        cmocka_unit_test(a_failure_sticks_until_reset),
        cmocka_unit_test(a_maximum_of_nothing_takes_nothing),
        cmocka_unit_test(huge_lengths_do_not_wrap),
        cmocka_unit_test(take_hands_over_the_storage),
        cmocka_unit_test(memory_running_short_is_a_failure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
