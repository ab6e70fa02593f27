/* state.c - shared values through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"

#include <string.h>

static void set_get_delete(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    dibs_value value;
    uint64_t version = 0;

    (void)state;
    CHECK(DIBS_NOTFOUND, dibs_state_get(cl, key, &value, err));
    assert_null(value.data);
    CHECK(DIBS_OK,
          dibs_state_set(cl, key, "one\0\xff\xc3o", 7, 0, &version, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_int_equal(value.len, 7);
    assert_memory_equal(value.data, "one\0\xff\xc3o", 8);
    assert_int_equal(value.version, version);
    assert_int_equal(value.expires_ms, -1);
    dibs_value_free(&value);
    assert_null(value.data);
    CHECK(DIBS_STALE, dibs_state_delete(cl, key, version + 1, err));
    CHECK(DIBS_OK, dibs_state_delete(cl, key, version, err));
    CHECK(DIBS_NOTFOUND, dibs_state_delete(cl, key, DIBS_VERSION_ANY, err));
    dibs_close(cl);
}

static void compare_and_set(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    uint64_t first = 0, second = 0;

    (void)state;
    CHECK(DIBS_OK,
          dibs_state_cas(cl, key, DIBS_VERSION_NONE, "a", 1, 0, &first, err));
    CHECK(DIBS_STALE,
          dibs_state_cas(cl, key, DIBS_VERSION_NONE, "b", 1, 0, &second, err));
    assert_int_equal(second, first);
    CHECK(DIBS_OK, dibs_state_cas(cl, key, first, "b", 1, 0, &second, err));
    assert_true(second > first);
    CHECK(DIBS_STALE, dibs_state_cas(cl, key, first, "c", 1, 0, NULL, err));
    dibs_close(cl);
}

static void adds(void **state)
{
    dibs_client *cl = core_open();
    const char *key = core_name();
    int64_t sum = 0;

    (void)state;
    CHECK(DIBS_OK, dibs_state_add(cl, key, 40, &sum, err));
    CHECK(DIBS_OK, dibs_state_add(cl, key, 2, &sum, err));
    assert_int_equal(sum, 42);
    CHECK(DIBS_OK, dibs_state_add(cl, key, -50, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, key, "no", 2, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_add(cl, key, 1, &sum, err));
    dibs_close(cl);
}

static bool has_expired(void *arg)
{
    dibs_value value;
    dibs_client *cl = ((void **)arg)[0];
    dibs_status rc = dibs_state_get(cl, ((void **)arg)[1], &value, NULL);

    dibs_value_free(&value);
    return rc == DIBS_NOTFOUND;
}

static void expires(void **state)
{
    dibs_client *cl = core_open();
    char key[64];
    void *arg[2] = {cl, key};
    dibs_value value;

    (void)state;
    strncpy(key, core_name(), sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 60000, NULL, err));
    CHECK(DIBS_OK, dibs_state_get(cl, key, &value, err));
    assert_in_range(value.expires_ms, 50000, 60000);
    dibs_value_free(&value);
    CHECK(DIBS_OK, dibs_state_set(cl, key, "x", 1, 100, NULL, err));
    core_until(has_expired, arg);
    dibs_close(cl);
}

static void bad_values_are_refused(void **state)
{
    static char big[DIBS_VALUE_MAX + 1];
    dibs_client *cl = core_open();
    const char *key = core_name();

    (void)state;
    CHECK(DIBS_INVALID,
          dibs_state_set(cl, key, big, sizeof(big), 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_set(cl, key, "x", 1, -1, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_set(cl, "", "x", 1, 0, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_add(cl, "\t", 1, NULL, err));
    CHECK(DIBS_INVALID, dibs_state_delete(cl, NULL, 0, err));
    dibs_close(cl);
}

typedef struct seen {
    char keys[4][96];
    size_t count;
} seen;

static bool note_key(const dibs_state_item *item, void *arg)
{
    seen *sn = arg;

    strncpy(sn->keys[sn->count], item->key, sizeof(sn->keys[0]) - 1);
    return ++sn->count < 4;
}

static void lists_without_the_prefix(void **state)
{
    dibs_client *cl = NULL;
    const char *prefix = core_name();
    seen sn = {0};

    (void)state;
    CHECK(DIBS_OK,
          dibs_open(core_url, DIBS_CLIENT_OPTS(.prefix = prefix), &cl, err));
    CHECK(DIBS_OK, dibs_state_set(cl, "/b", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, "/a", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_set(cl, ":c", "1", 1, 0, NULL, err));
    CHECK(DIBS_OK, dibs_state_list(cl, "/", note_key, &sn, err));
    assert_int_equal(sn.count, 2);
    assert_string_equal(sn.keys[0], "/a");
    assert_string_equal(sn.keys[1], "/b");
    dibs_close(cl);
}

int core_state_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_get_delete),
        cmocka_unit_test(compare_and_set),
        cmocka_unit_test(adds),
        cmocka_unit_test(expires),
        cmocka_unit_test(bad_values_are_refused),
        cmocka_unit_test(lists_without_the_prefix),
    };

    return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
