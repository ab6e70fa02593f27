/* test_http_route.c - paths, queries and the table of routes. */
/* SPDX-License-Identifier: MIT */
#include "http/route.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

static dibs__http_target must_read(const char *text)
{
    dibs__http_target target;
    dibs_error err;

    if (dibs__http_target_read(text, &target, &err) != DIBS_OK)
        fail_msg("%s: %s", text, err.message);
    return target;
}

static void test_paths(void **state)
{
    dibs__http_target target = must_read("/a%20b/c%2Fd//%C3%A9");

    (void)state;
    assert_int_equal(target.segment_count, 4);
    assert_string_equal(target.segments[0], "a b");
    assert_string_equal(target.segments[1], "c/d");
    assert_string_equal(target.segments[2], "");
    assert_string_equal(target.segments[3], "\xC3\xA9");
    dibs__http_target_fini(&target);
    target = must_read("/");
    assert_int_equal(target.segment_count, 1);
    assert_string_equal(target.segments[0], "");
    dibs__http_target_fini(&target);
    target = must_read("HTTP://localhost:3001/status?x");
    assert_string_equal(target.segments[0], "status");
    assert_string_equal(dibs__http_target_query(&target, "x"), "");
    dibs__http_target_fini(&target);
}

static void test_queries(void **state)
{
    dibs__http_target target = must_read("/p?a=1+2&b=%26%3d&&c&a=3&=v");

    (void)state;
    assert_int_equal(target.query_count, 5);
    assert_string_equal(dibs__http_target_query(&target, "a"), "1 2");
    assert_string_equal(dibs__http_target_query(&target, "b"), "&=");
    assert_string_equal(dibs__http_target_query(&target, "c"), "");
    assert_string_equal(dibs__http_target_query(&target, ""), "v");
    assert_null(dibs__http_target_query(&target, "d"));
    dibs__http_target_fini(&target);
    target = must_read("/p+q?");
    assert_string_equal(target.segments[0], "p+q");
    assert_int_equal(target.query_count, 0);
    dibs__http_target_fini(&target);
}

static void test_bad_targets(void **state)
{
    static const char *const cases[] = {
        "",
        "*",
        "status",
        "http://host",
        "/%",
        "/%4",
        "/%zz",
        "/%00",
        "/%C3",
        "/%ED%A0%80",
        "/?%",
        "/?a=%0",
        "/?%00=",
        "/a/%ff",
        "/\xFF",
        "/?a=\xC3",
        "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
    };
    char query[1024] = "/?";
    dibs__http_target target;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (dibs__http_target_read(cases[i], &target, NULL) != DIBS_INVALID)
            fail_msg("read: %s", cases[i]);
        assert_null(target.texts);
    }
    for (int i = 0; i < DIBS__HTTP_QUERY_MAX + 1; i++)
        snprintf(query + strlen(query), 8, "k%d&", i);
    assert_int_equal(dibs__http_target_read(query, &target, NULL),
                     DIBS_INVALID);
}

static const dibs__http_route routes[] = {
    {.method = "GET", .path = "/status"},
    {.method = "GET", .path = "/locks/{name}"},
    {.method = "DELETE", .path = "/locks/{name}"},
    {.method = "POST", .path = "/locks/{name}/holders/{id}"},
};

static void check_route(const char *method, const char *path, int expected,
                        bool expect_known)
{
    dibs__http_target target = must_read(path);
    const dibs__http_route *found;
    bool known;

    found = dibs__http_route_find(routes, COUNT_OF(routes), method, &target,
                                  &known);
    if (found != (expected < 0 ? NULL : &routes[expected]) ||
        known != expect_known)
        fail_msg("%s %s", method, path);
    dibs__http_target_fini(&target);
}

static void test_routes(void **state)
{
    (void)state;
    check_route("GET", "/status", 0, true);
    check_route("HEAD", "/status", 0, true);
    check_route("GET", "/st%61tus", 0, true);
    check_route("GET", "/status/", -1, false);
    check_route("GET", "/statuses", -1, false);
    check_route("GET", "/", -1, false);
    check_route("GET", "//status", -1, false);
    check_route("POST", "/status", -1, true);
    check_route("get", "/status", -1, true);
    check_route("GET", "/locks/a%2Fb", 1, true);
    check_route("DELETE", "/locks/x", 2, true);
    check_route("PUT", "/locks/x", -1, true);
    check_route("GET", "/locks/", -1, false);
    check_route("GET", "/locks", -1, false);
    check_route("POST", "/locks/x/holders/7", 3, true);
    check_route("GET", "/locks%2Fx", -1, false);
    check_route("POST", "/locks/x/holders%2F7", -1, false);
    check_route("POST", "/locks/x/holders%2F%7Bid%7D", -1, false);
    check_route("GET", "/locks/x/holders", -1, false);
    check_route("POST", "/locks/x/holder/7", -1, false);
}

static void test_params(void **state)
{
    dibs__http_target target = must_read("/locks/a%2Fb/holders/7");

    (void)state;
    assert_string_equal(dibs__http_route_param(&routes[3], &target, "name"),
                        "a/b");
    assert_string_equal(dibs__http_route_param(&routes[3], &target, "id"), "7");
    assert_null(dibs__http_route_param(&routes[3], &target, "nam"));
    assert_null(dibs__http_route_param(&routes[3], &target, "locks"));
    dibs__http_target_fini(&target);
}

static void test_allow(void **state)
{
    dibs__http_target target = must_read("/locks/x");
    dibsx_buf out;

    (void)state;
    dibsx_buf_init(&out, 100);
    dibs__http_route_allow(routes, COUNT_OF(routes), &target, &out);
    assert_string_equal(dibsx_buf_text(&out), "GET, HEAD, DELETE");
    dibsx_buf_fini(&out);
    dibs__http_target_fini(&target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths),       cmocka_unit_test(test_queries),
        cmocka_unit_test(test_bad_targets), cmocka_unit_test(test_routes),
        cmocka_unit_test(test_params),      cmocka_unit_test(test_allow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
