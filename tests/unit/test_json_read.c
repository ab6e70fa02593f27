/* test_json_read.c - the JSON reader: what is JSON is read, nothing else is. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/json.h"
#include "base/json_read.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads from storage of exactly the size, so that a sanitizer sees a step too
 * far. */
static dibs_status
read_exactly(const char *text, size_t len, dibsx_json_doc *doc, dibs_error *err)
{
    char *copy = malloc(len ? len : 1);
    dibs_status rc;

    assert_non_null(copy);
    memcpy(copy, text, len);
    rc = dibsx_json_read(copy, len, doc, err);
    free(copy);
    return rc;
}

static dibsx_json_doc must_read(const char *text)
{
    dibsx_json_doc doc;
    dibs_error err;

    if (read_exactly(text, strlen(text), &doc, &err) != DIBS_OK)
        fail_msg("%s: %s", text, err.message);
    return doc;
}

static void test_scalars(void **state)
{
    dibsx_json_doc doc = must_read(" null ");

    (void)state;
    assert_int_equal(doc.root->kind, DIBSX_JSON_NULL);
    dibsx_json_doc_fini(&doc);
    doc = must_read("true");
    assert_true(doc.root->kind == DIBSX_JSON_BOOL && doc.root->truth);
    dibsx_json_doc_fini(&doc);
    doc = must_read("false");
    assert_true(doc.root->kind == DIBSX_JSON_BOOL && !doc.root->truth);
    dibsx_json_doc_fini(&doc);
    doc = must_read("\"\"");
    assert_true(doc.root->kind == DIBSX_JSON_TEXT && doc.root->len == 0);
    dibsx_json_doc_fini(&doc);
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t integer;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"2000", true, 2000},
        {"-7", true, -7},
        {"2000.0", true, 2000},
        {"2e3", true, 2000},
        {"20E+2", true, 2000},
        {"5e-1", false, 0},
        {"0.5", false, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"1e300", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibsx_json_doc doc = must_read(cases[i].text);

        assert_int_equal(doc.root->kind, DIBSX_JSON_NUMBER);
        assert_int_equal(doc.root->whole, cases[i].whole);
        if (cases[i].whole)
            assert_int_equal(doc.root->integer, cases[i].integer);
        assert_true(doc.root->real == strtod(cases[i].text, NULL));
        dibsx_json_doc_fini(&doc);
    }
}

static void test_texts(void **state)
{
    static const struct {
        const char *json;
        const char *text;
    } cases[] = {
        {"\"plain\"", "plain"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u0041\\u00e9\\u2713\"", "A\xC3\xA9\xE2\x9C\x93"},
        {"\"\\ud83d\\udd11\"", "\xF0\x9F\x94\x91"},
        {"\"\xF0\x9F\x94\x91\"", "\xF0\x9F\x94\x91"},
        {"\"\x7F\"", "\x7F"},
    };
    dibsx_json_doc doc;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        doc = must_read(cases[i].json);
        assert_int_equal(doc.root->kind, DIBSX_JSON_TEXT);
        assert_string_equal(doc.root->text, cases[i].text);
        assert_int_equal(doc.root->len, strlen(cases[i].text));
        dibsx_json_doc_fini(&doc);
    }
    doc = must_read("\"a\\u0000b\"");
    assert_int_equal(doc.root->len, 3);
    assert_memory_equal(doc.root->text, "a\0b", 4);
    dibsx_json_doc_fini(&doc);
}

static void test_trees(void **state)
{
    dibsx_json_doc doc = must_read(" { \"a\" : [ 1 , [ ] , { } ] , \"b\" : { "
                                   "\"a\" : \"x\" } , \"\" : 2 } ");
    const dibsx_json_node *list = dibsx_json_get(doc.root, "a");

    (void)state;
    assert_int_equal(list->kind, DIBSX_JSON_LIST);
    assert_int_equal(list->child->integer, 1);
    assert_int_equal(list->child->next->kind, DIBSX_JSON_LIST);
    assert_null(list->child->next->child);
    assert_int_equal(list->child->next->next->kind, DIBSX_JSON_MAP);
    assert_null(list->child->next->next->next);
    assert_string_equal(
        dibsx_json_get(dibsx_json_get(doc.root, "b"), "a")->text, "x");
    assert_int_equal(dibsx_json_get(doc.root, "")->integer, 2);
    assert_null(dibsx_json_get(doc.root, "c"));
    assert_null(dibsx_json_get(list, "a"));
    assert_null(dibsx_json_get(NULL, "a"));
    dibsx_json_doc_fini(&doc);
    dibsx_json_doc_fini(&doc);
}

static void test_what_is_not_json(void **state)
{
    static const char *const cases[] = {
        "",
        " ",
        "nul",
        "nulls",
        "True",
        "'a'",
        "\"a",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\",
        "\"\\ud800\\",
        "\"\\ud800\\u",
        "\"\\ud800\\u0041\"",
        "\"\n\"",
        "\"\xC3\"",
        "\"\xED\xA0\x80\"",
        "\xEF\xBB\xBF[]",
        "01",
        "-",
        "+1",
        ".5",
        "1.",
        "1e",
        "1e+",
        "0x10",
        "1e999",
        "NaN",
        "Infinity",
        "--1",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "[1 2]",
        "]",
        "[1}",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{\"a\" 1}",
        "{\"a\":1]",
        "{}{}",
        "1 2",
        "// c\n1",
        "/* c */1",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
    };
    dibsx_json_doc doc;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        dibs_error err = {0};

        if (read_exactly(cases[i], strlen(cases[i]), &doc, &err) !=
            DIBS_INVALID)
            fail_msg("read: %s", cases[i]);
        assert_null(doc.root);
        assert_non_null(strstr(err.message, "byte "));
    }
    assert_int_equal(read_exactly("1\0", 2, &doc, NULL), DIBS_INVALID);
}

static void check_depth(int depth, dibs_status expected)
{
    char text[2 * DIBSX_JSON_DEPTH_MAX + 16];
    dibsx_json_doc doc;

    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    assert_int_equal(read_exactly(text, (size_t)depth * 2, &doc, NULL),
                     expected);
    dibsx_json_doc_fini(&doc);
}

static void check_members(int count, dibs_status expected)
{
    dibsx_json_doc doc;
    dibsx_json js;
    dibsx_buf text;
    char key[16];

    dibsx_buf_init(&text, 1 << 20);
    dibsx_json_init(&js, &text);
    dibsx_json_open(&js, '{');
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        dibsx_json_pair_int(&js, key, i);
    }
    dibsx_json_close(&js, '}');
    assert_int_equal(read_exactly(text.data, text.len, &doc, NULL), expected);
    dibsx_json_doc_fini(&doc);
    dibsx_buf_fini(&text);
}

static void test_limits(void **state)
{
    (void)state;
    check_depth(DIBSX_JSON_DEPTH_MAX, DIBS_OK);
    check_depth(DIBSX_JSON_DEPTH_MAX + 1, DIBS_INVALID);
    check_members(DIBSX_JSON_MEMBERS_MAX, DIBS_OK);
    check_members(DIBSX_JSON_MEMBERS_MAX + 1, DIBS_INVALID);
}

static void test_no_memory(void **state)
{
    dibsx_json_doc doc;

    (void)state;
    for (unsigned long n = 1; n <= 2; n++) {
        dibsx_alloc_fail_at(n);
        assert_int_equal(dibsx_json_read("[1]", 3, &doc, NULL), DIBS_NOMEM);
        assert_null(doc.root);
    }
    dibsx_alloc_fail_at(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_what_is_not_json),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
