/* test_text.c - words, characters of UTF-8, and text that may be shown. */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "unit.h"

#include <string.h>

static void test_lengths(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"a", 1},
        {"\xC3\xA9", 2},
        {"\xE2\x9C\x93", 3},
        {"\xF0\x9F\x94\x91", 4},
        {"\xC3", 0},             /* cut off */
        {"\xC0\xAF", 0},         /* overlong */
        {"\xE0\x80\x80", 0},     /* overlong */
        {"\xED\xA0\x80", 0},     /* a surrogate */
        {"\xF4\x90\x80\x80", 0}, /* beyond U+10FFFF */
        {"\x80", 0},
        {"\xFF", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(dibsx_utf8_len((const unsigned char *)cases[i].bytes,
                                        strlen(cases[i].bytes)),
                         cases[i].len);
}

static void check_clean(const char *text, const char *expected)
{
    dibsx_buf out;

    dibsx_buf_init(&out, 100);
    dibsx_text_clean(&out, text);
    assert_string_equal(dibsx_buf_text(&out), expected);
    dibsx_buf_fini(&out);
}

static void test_what_drives_a_terminal_is_replaced(void **state)
{
    (void)state;
    check_clean("", "");
    check_clean("plain \xE2\x9C\x93 text", "plain \xE2\x9C\x93 text");
    check_clean("a\033[31mb\r\n\x7F", "a?[31mb???");
    check_clean("\xC2\x9B"
                "31m \xC2\xA0",
                "?31m \xC2\xA0");
    check_clean("\xE2\x80\xA7\xE2\x80\xA8\xE2\x80\xAE\xE2\x80\xAF",
                "\xE2\x80\xA7??\xE2\x80\xAF");
    check_clean("\xE2\x81\xA5\xE2\x81\xA6\xE2\x81\xA9\xE2\x81\xAA",
                "\xE2\x81\xA5??\xE2\x81\xAA");
    check_clean("\xE2\x9C", "??");
    check_clean("\xED\xA0\x80.", "???.");
}

static bool is_line(const char *text)
{
    return !dibsx_text_flaw(text, strlen(text));
}

static void test_lines_have_no_control_characters(void **state)
{
    (void)state;
    assert_true(is_line("plain \xE2\x9C\x93 text"));
    assert_true(is_line("\xC2\xA0\xE2\x80\xAE"));
    assert_false(is_line("two\nlines"));
    assert_false(is_line("\x7F"));
    assert_false(is_line("csi \xC2\x9B"
                         "31m"));
    assert_false(is_line("\x9B"));
    assert_false(is_line("\xC2"));
}

static void test_words(void **state)
{
    (void)state;
    assert_true(dibsx_has_word("open closed", "open", 4));
    assert_true(dibsx_has_word("open closed", "closed", 6));
    assert_false(dibsx_has_word("open closed", "close", 5));
    assert_false(dibsx_has_word("open closed", "open closed", 11));
    assert_false(dibsx_has_word("open closed", "", 0));
    assert_false(dibsx_has_word("", "open", 4));
    assert_false(dibsx_has_word("", "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_lines_have_no_control_characters),
        cmocka_unit_test(test_what_drives_a_terminal_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
