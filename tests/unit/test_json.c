/* test_json.c - the JSON writer: commas, escapes, bytes that are not UTF-8. */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/rand.h"
#include "unit.h"
#include <string.h>

#define LOST "\xEF\xBF\xBD"

typedef struct fixture {
    dibsx_buf buf;
    dibsx_json js;
} fixture;

static int set_up(void **state)
{
    static fixture fx;

    dibsx_buf_init(&fx.buf, 1 << 20);
    dibsx_json_init(&fx.js, &fx.buf);
    *state = &fx;
    return 0;
}

static int tear_down(void **state)
{
    fixture *fx = *state;

    dibsx_buf_fini(&fx->buf);
    return 0;
}

static void objects_and_arrays_nest(void **state)
{
    fixture *fx = *state;
    dibsx_json *js = &fx->js;

    dibsx_json_open(js, '{');
    dibsx_json_pair_text(js, "name", "a");
    dibsx_json_key(js, "list");
    dibsx_json_open(js, '[');
    dibsx_json_int(js, 1);
    dibsx_json_open(js, '{');
    dibsx_json_close(js, '}');
    dibsx_json_open(js, '[');
    dibsx_json_close(js, ']');
    dibsx_json_null(js);
    dibsx_json_close(js, ']');
    dibsx_json_pair_bool(js, "yes", true);
    dibsx_json_pair_bool(js, "no", false);
    dibsx_json_pair_text(js, "none", NULL);
    dibsx_json_pair_int(js, "int", -5);
    dibsx_json_pair_uint(js, "uint", 5);
    dibsx_json_close(js, '}');
    assert_true(dibsx_buf_ok(&fx->buf));
    assert_string_equal(dibsx_buf_text(&fx->buf),
                        "{\"name\":\"a\",\"list\":[1,{},[],null],"
                        "\"yes\":true,\"no\":false,\"none\":null,"
                        "\"int\":-5,\"uint\":5}");
}

static void numbers_are_exact(void **state)
{
    fixture *fx = *state;

    dibsx_json_open(&fx->js, '[');
    dibsx_json_int(&fx->js, INT64_MIN);
    dibsx_json_int(&fx->js, INT64_MAX);
    dibsx_json_uint(&fx->js, UINT64_MAX);
    dibsx_json_uint(&fx->js, 0);
    dibsx_json_close(&fx->js, ']');
    assert_string_equal(dibsx_buf_text(&fx->buf),
                        "[-9223372036854775808,9223372036854775807,"
                        "18446744073709551615,0]");
}

static void write_bytes(fixture *fx, const void *bytes, size_t len)
{
    dibsx_buf_reset(&fx->buf);
    dibsx_json_init(&fx->js, &fx->buf);
    dibsx_json_bytes(&fx->js, bytes, len);
    assert_true(dibsx_buf_ok(&fx->buf));
}

static void strings_are_escaped(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {NULL, 0, "\"\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\""},
        {"\0\1\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\""},
        {"h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92", 12,
         "\"h\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\x92\""},
        {"a\0b", 3, "\"a\\u0000b\""},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_bytes(*state, cases[i].bytes, cases[i].len);
        assert_string_equal(dibsx_buf_text(&((fixture *)*state)->buf),
                            cases[i].json);
    }
}

static void what_no_screen_may_show_is_escaped(void **state)
{
    fixture *fx = *state;

    fx->js.shown = true;
    dibsx_json_text(&fx->js, "\x7f\xC2\x9B\xC2\xA0\xE2\x80\xAE\xE2\x82\xAC");
    assert_string_equal(dibsx_buf_text(&fx->buf),
                        "\"\\u007f\\u009b\xC2\xA0\\u202e\xE2\x82\xAC\"");
}

static void bad_bytes_are_replaced(void **state)
{
    static const struct {
        const char *bytes;
        const char *json;
    } cases[] = {
        {"a\xFFz", "\"a" LOST "z\""},
        {"\x80", "\"" LOST "\""},
        {"\xC3", "\"" LOST "\""},
        {"\xC3(", "\"" LOST "(\""},
        {"\xC0\xAF", "\"" LOST LOST "\""},                   /* overlong */
        {"\xE0\x80\x80", "\"" LOST LOST LOST "\""},          /* overlong */
        {"\xED\xA0\x80", "\"" LOST LOST LOST "\""},          /* surrogate */
        {"\xF4\x90\x80\x80", "\"" LOST LOST LOST LOST "\""}, /* too far */
        {"\xE2\x82\"", "\"" LOST LOST "\\\"\""},
        {"\xF0\x9F\x94", "\"" LOST LOST LOST "\""},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_bytes(*state, cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(dibsx_buf_text(&((fixture *)*state)->buf),
                            cases[i].json);
    }
}

/* Reads one character by arithmetic, not by tables as the writer does; returns
 * its length, 0 when it is not one. */
static size_t read_char(const unsigned char *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = at[0] < 0x80   ? 1
                 : at[0] < 0xC0 ? 0
                 : at[0] < 0xE0 ? 2
                 : at[0] < 0xF0 ? 3
                 : at[0] < 0xF8 ? 4
                                : 0;
    uint32_t code = len > 1 ? at[0] & (0xFFu >> (len + 1)) : at[0];

    if (len == 0 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        code = code << 6 | (at[i] & 0x3F);
    }
    if (code < least[len] || code > 0x10FFFF ||
        (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    return len;
}

/* The output is a JSON string in UTF-8, and what was good came through. */
static void
check_against_reference(fixture *fx, const unsigned char *bytes, size_t len)
{
    const char *out;

    write_bytes(fx, bytes, len);
    out = dibsx_buf_text(&fx->buf);
    assert_int_equal(*out++, '"');
    for (size_t i = 0; i < len;) {
        size_t step = read_char(bytes + i, len - i);

        if (step == 0) {
            assert_memory_equal(out, LOST, 3);
            out += 3;
            i++;
        } else if (bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\') {
            assert_int_equal(*out, '\\');
            out += out[1] == 'u' ? 6 : 2;
            i++;
        } else {
            assert_memory_equal(out, bytes + i, step);
            out += step;
            i += step;
        }
    }
    assert_string_equal(out, "\"");
}

static void every_pair_of_bytes(void **state)
{
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        unsigned char bytes[2] = {(unsigned char)(pair >> 8),
                                  (unsigned char)pair};

        check_against_reference(*state, bytes, 2);
    }
}

static void random_bytes_near_the_edges(void **state)
{
    static const unsigned char edges[] = {0x00, 0x1F, '"',  '\\', 'a',  0x7F,
                                          0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                          0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED,
                                          0xEF, 0xF0, 0xF4, 0xF5, 0xFF};
    dibsx_prng prng = {.state = 7};

    for (int i = 0; i < 50000; i++) {
        unsigned char bytes[12];
        size_t len = dibsx_prng_below(&prng, sizeof(bytes) + 1);

        for (size_t j = 0; j < len; j++)
            bytes[j] = edges[dibsx_prng_below(&prng, sizeof(edges))];
        check_against_reference(*state, bytes, len);
    }
}

static void a_full_buffer_is_told_at_the_end(void **state)
{
    dibsx_buf buf;
    dibsx_json js;

    (void)state;
    dibsx_buf_init(&buf, 8);
    dibsx_json_init(&js, &buf);
    dibsx_json_open(&js, '{');
    dibsx_json_pair_text(&js, "name", "a long value");
    dibsx_json_close(&js, '}');
    assert_false(dibsx_buf_ok(&buf));
    assert_null(dibsx_buf_take(&buf));
    dibsx_buf_fini(&buf);
}

#define WITH_FIXTURE(test)                                                     \
    cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(objects_and_arrays_nest),
        WITH_FIXTURE(numbers_are_exact),
        WITH_FIXTURE(strings_are_escaped),
        WITH_FIXTURE(what_no_screen_may_show_is_escaped),
        WITH_FIXTURE(bad_bytes_are_replaced),
        WITH_FIXTURE(every_pair_of_bytes),
        WITH_FIXTURE(random_bytes_near_the_edges),
        cmocka_unit_test(a_full_buffer_is_told_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
