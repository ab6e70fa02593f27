/* test_store_name.c - the server of a quorum that the demo keeps its values at. */
/* SPDX-License-Identifier: MIT */
#include "demo/store_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>

static void assert_first(const char *url, const char *expected)
{
    dibsx_buf buf;

    dibsx_buf_init(&buf, 1024);
    assert_true(dibs__demo_first_server(url, &buf));
    assert_string_equal(dibsx_buf_text(&buf), expected);
    dibsx_buf_fini(&buf);
}

static void the_first_server_is_found(void **state)
{
    (void)state;
    assert_first("redlock://a:1,b:2,c:3", "redis://a:1");
    assert_first("redlock://u:p,w@a,b,c/2", "redis://u:p,w@a/2");
}

/* A password must not go where there is no TLS, nor be missing. */
static void it_is_spoken_to_as_the_quorum_is(void **state)
{
    (void)state;
    assert_first("redlock://u:p@a:1,b,c/2?tls=1&ca=x&node_timeout=9ms",
                 "rediss://u:p@a:1/2?ca=x");
    assert_first("redlock://u@a,b,c?longest_ttl=5s&password_file=f&tls=0",
                 "redis://u@a?password_file=f");
    assert_first("redlock://a,b,c?ca=x&tls&cert=y", "rediss://a?ca=x&cert=y");
}

static void others_are_none(void **state)
{
    dibsx_buf buf;

    (void)state;
    dibsx_buf_init(&buf, 1024);
    assert_false(dibs__demo_first_server(NULL, &buf));
    assert_false(dibs__demo_first_server("redis://a", &buf));
    dibsx_buf_fini(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_server_is_found),
        cmocka_unit_test(it_is_spoken_to_as_the_quorum_is),
        cmocka_unit_test(others_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
