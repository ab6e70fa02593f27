/* test_yaml.c - YAML as a tree: keys that come twice, places, limits. */
/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/yaml.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static const dibsx_yaml_limits wide = {.size = 4 * 1024 * 1024,
                                       .nodes = 100000};

static dibs_status parse(const char *text, const dibsx_yaml_limits *limits,
                         dibsx_yaml_node **out, dibs_error *err)
{
    return dibsx_yaml_parse(text, strlen(text), "f.yaml", limits, out, err);
}

static void put_keys(dibsx_buf *text, size_t count)
{
    dibsx_buf_init(text, 4 * 1024 * 1024);
    for (size_t i = 0; i < count; i++)
        dibsx_buf_printf(text, "key-%zu: {a: 1}\n", i);
}

static void a_map_keeps_its_order(void **state)
{
    dibsx_yaml_node *root = NULL;
    dibsx_buf text;
    char name[32];
    size_t i = 0;

    (void)state;
    put_keys(&text, 10000);
    assert_int_equal(parse(dibsx_buf_text(&text), &wide, &root, NULL), DIBS_OK);
    for (const dibsx_yaml_node *key = root->child; key; key = key->next) {
        snprintf(name, sizeof(name), "key-%zu", i++);
        assert_string_equal(key->text, name);
        assert_string_equal(key->value->child->text, "a");
    }
    assert_int_equal(i, 10000);
    dibsx_yaml_free(root);
    dibsx_buf_fini(&text);
}

static void a_key_that_comes_twice_is_found(void **state)
{
    static const size_t which[] = {0, 15, 16, 4999, 9999};

    (void)state;
    for (size_t i = 0; i < sizeof(which) / sizeof(which[0]); i++) {
        dibsx_yaml_node *root = NULL;
        dibs_error err = {0};
        dibsx_buf text;

        put_keys(&text, 10000);
        dibsx_buf_printf(&text, "key-%zu: 1\n", which[i]);
        assert_int_equal(parse(dibsx_buf_text(&text), &wide, &root, &err),
                         DIBS_INVALID);
        assert_null(root);
        assert_string_equal(err.message,
                            "f.yaml:10001:1: this key was given before");
        dibsx_buf_fini(&text);
    }
}

static void keys_count_in_their_own_map(void **state)
{
    dibsx_yaml_node *root = NULL;

    (void)state;
    assert_int_equal(parse("a: {a: {a: 1}, b: 1}\nb: [{a: 1}, {a: 1}]\n", NULL,
                           &root, NULL),
                     DIBS_OK);
    dibsx_yaml_free(root);
}

static void limits_are_the_callers(void **state)
{
    static const dibsx_yaml_limits small = {.size = 20, .nodes = 4};
    dibsx_yaml_node *root = NULL;
    dibs_error err = {0};
    dibsx_buf text;

    (void)state;
    assert_int_equal(parse("[a, b, c]", &small, &root, NULL), DIBS_OK);
    dibsx_yaml_free(root);
    assert_int_equal(parse("[a, b, c, d]", &small, &root, &err), DIBS_INVALID);
    assert_string_equal(err.message, "f.yaml:1:11: too many entries");
    assert_int_equal(parse("aaaaaaaaaaaaaaaaaaaaa", &small, &root, &err),
                     DIBS_INVALID);
    assert_string_equal(err.message,
                        "f.yaml:1:1: the file is larger than 20 bytes");

    put_keys(&text, 10000);
    assert_int_equal(parse(dibsx_buf_text(&text), NULL, &root, &err),
                     DIBS_INVALID);
    assert_non_null(strstr(err.message, "too many entries"));
    dibsx_buf_fini(&text);
}

static void a_failure_has_a_place(void **state)
{
    dibsx_yaml_node *root = NULL;
    dibsx_yaml_place place;
    dibs_error err = {0};

    (void)state;
    assert_int_equal(dibsx_yaml_parse_at("a: 1\nb: &x 2\n", 13, NULL, &root,
                                         &place, &err),
                     DIBS_INVALID);
    assert_int_equal(place.line, 2);
    assert_int_equal(place.column, 4);
    assert_string_equal(err.message, "anchors are not supported");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_keeps_its_order),
        cmocka_unit_test(a_key_that_comes_twice_is_found),
        cmocka_unit_test(keys_count_in_their_own_map),
        cmocka_unit_test(limits_are_the_callers),
        cmocka_unit_test(a_failure_has_a_place),
    };

    return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
