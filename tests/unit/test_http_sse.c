/* test_http_sse.c - events as frames of text/event-stream. */
/* SPDX-License-Identifier: MIT */
#include "http/sse.h"
#include "unit.h"

#include <string.h>

static void
check(const char *id, const char *name, const char *data, const char *expected)
{
    dibsx_buf out;

    dibsx_buf_init(&out, 1024);
    dibs__http_sse_put(&out, id, name, data, strlen(data));
    assert_string_equal(dibsx_buf_text(&out), expected);
    dibsx_buf_fini(&out);
}

static void test_fields(void **state)
{
    (void)state;
    check("a-1", "gap", "{}", "id: a-1\nevent: gap\ndata: {}\n\n");
    check("a-2", NULL, "x", "id: a-2\ndata: x\n\n");
    check(NULL, NULL, "", "data: \n\n");
}

/* A line of the data must not become a field of its own, or end the event. */
static void test_lines(void **state)
{
    (void)state;
    check(NULL, NULL, "a\nid: b", "data: a\ndata: id: b\n\n");
    check(NULL, NULL, "a\r\nb\rc", "data: a\ndata: b\ndata: c\n\n");
    check(NULL, NULL, "a\n\nb", "data: a\ndata: \ndata: b\n\n");
    check(NULL, NULL, "a\n", "data: a\ndata: \n\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
