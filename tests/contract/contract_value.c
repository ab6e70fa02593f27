/* contract_value.c - values: bytes as they were put, versions, expiry, lists. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <stdlib.h>

static dibs_status
get(contract *t, size_t handle, const char *key, dibs_value *out)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};
    dibs_status rc = st->ops->value->get(st, key, contract_soon(), out, &err);

    if (pace_explains(rc))
        MISSED("get: %s: %s", dibs_status_name(rc), err.message);
    return rc;
}

static dibs_status
put(contract *t, size_t handle, const dibs__put *what, uint64_t *version)
{
    dibs__store *st = t->st[handle];
    dibs_error err = {0};

    return st->ops->value->put(st, what, contract_soon(), version, &err);
}

static uint64_t
put_text(contract *t, const char *key, const char *text, int64_t ttl_ms)
{
    dibs__put what = {.key = key,
                      .data = text,
                      .len = strlen(text),
                      .expected = DIBS_VERSION_ANY,
                      .ttl_ms = ttl_ms};
    uint64_t version = 0;

    assert_status(put(t, 0, &what, &version), DIBS_OK);
    assert_true(version != DIBS_VERSION_NONE && version != DIBS_VERSION_ANY);
    return version;
}

static void nothing_is_found_where_nothing_was_put(void **state)
{
    contract *t = *state;
    dibs_value value = {.data = t, .len = 7, .version = 7};

    assert_status(get(t, 0, t->name, &value), DIBS_NOTFOUND);
    assert_null(value.data);
    assert_int_equal(value.len, 0);
    assert_int_equal(value.version, 0);
}

static void a_value_is_seen_through_every_handle(void **state)
{
    contract *t = *state;
    uint64_t version = put_text(t, t->name, "hello", 0);

    for (size_t i = 0; i < CONTRACT_HANDLES; i++) {
        dibs_value value = {0};

        assert_status(get(t, i, t->name, &value), DIBS_OK);
        assert_int_equal(value.len, 5);
        assert_memory_equal(value.data, "hello", 6); /* with the NUL beyond */
        assert_int_equal(value.version, version);
        assert_int_equal(value.expires_ms, -1);
        dibs_value_free(&value);
    }
}

static void a_value_outlives_its_handle(void **state)
{
    contract *t = *state;
    uint64_t version = put_text(t, t->name, "stays", 0);
    dibs_value value = {0};

    dibs__store_close(t->st[0]);
    t->st[0] = contract_open();
    assert_status(get(t, 0, t->name, &value), DIBS_OK);
    assert_string_equal(value.data, "stays");
    assert_int_equal(value.version, version);
    dibs_value_free(&value);
}

static void any_bytes_come_back_as_they_were(void **state)
{
    contract *t = *state;
    unsigned char bytes[512];
    dibs__put what = {.key = t->name,
                      .data = bytes,
                      .len = sizeof(bytes),
                      .expected = DIBS_VERSION_ANY};
    dibs_value value = {0};
    uint64_t version;

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 7);
    bytes[0] = bytes[sizeof(bytes) - 1] = 0;
    assert_status(put(t, 0, &what, &version), DIBS_OK);
    assert_status(get(t, 1, t->name, &value), DIBS_OK);
    assert_int_equal(value.len, sizeof(bytes));
    assert_memory_equal(value.data, bytes, sizeof(bytes));
    dibs_value_free(&value);
}

static void an_empty_value_is_a_value(void **state)
{
    contract *t = *state;
    dibs__put what = {.key = t->name,
                      .data = NULL,
                      .len = 0,
                      .expected = DIBS_VERSION_NONE};
    dibs_value value = {0};
    uint64_t version = 0;

    assert_status(put(t, 0, &what, &version), DIBS_OK);
    assert_status(get(t, 1, t->name, &value), DIBS_OK);
    assert_int_equal(value.len, 0);
    assert_int_equal(value.version, version);
    assert_non_null(value.data);
    assert_string_equal(value.data, "");
    dibs_value_free(&value);
    assert_status(put(t, 0, &what, &version), DIBS_STALE);
}

static void the_largest_value_fits(void **state)
{
    contract *t = *state;
    unsigned char *bytes = malloc(DIBS_VALUE_MAX);
    dibs__put what = {.key = t->name,
                      .data = bytes,
                      .len = DIBS_VALUE_MAX,
                      .expected = DIBS_VERSION_ANY};
    dibs_value value = {0};
    uint64_t version;

    assert_non_null(bytes);
    for (size_t i = 0; i < DIBS_VALUE_MAX; i++)
        bytes[i] = (unsigned char)(i ^ (i >> 8));
    assert_status(put(t, 0, &what, &version), DIBS_OK);
    assert_status(get(t, 1, t->name, &value), DIBS_OK);
    assert_int_equal(value.len, DIBS_VALUE_MAX);
    assert_int_equal(memcmp(value.data, bytes, DIBS_VALUE_MAX), 0);
    dibs_value_free(&value);
    free(bytes);
}

static void a_value_expires_and_not_before(void **state)
{
    contract *t = *state;
    dibsx_nsec put_at = dibsx_now();
    dibsx_nsec end = dibsx_after_ms(put_at, CONTRACT_BOUND_MS);
    dibs__put again = {.key = t->name,
                       .data = "b",
                       .len = 1,
                       .expected = DIBS_VERSION_NONE};
    uint64_t first = put_text(t, t->name, "a", 300), second = 0;
    dibs_value value = {0};

    while (get(t, 1, t->name, &value) == DIBS_OK) {
        assert_true(value.expires_ms >= 0 && value.expires_ms <= 300);
        dibs_value_free(&value);
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
    assert_true(contract_ms_since(put_at) >= 300 - CONTRACT_DRIFT_MS);
    assert_status(put(t, 0, &again, &second), DIBS_OK);
    assert_int_not_equal(second, first);
    assert_status(get(t, 1, t->name, &value), DIBS_OK);
    assert_int_equal(value.expires_ms, -1);
    dibs_value_free(&value);
}

static void a_put_sets_the_expiry_anew(void **state)
{
    contract *t = *state;
    dibs_value value = {0};

    put_text(t, t->name, "a", 60000);
    assert_status(get(t, 0, t->name, &value), DIBS_OK);
    assert_true(value.expires_ms > 30000 && value.expires_ms <= 60000);
    dibs_value_free(&value);
    put_text(t, t->name, "b", 0);
    assert_status(get(t, 0, t->name, &value), DIBS_OK);
    assert_int_equal(value.expires_ms, -1);
    dibs_value_free(&value);
}

typedef struct listing {
    contract *t;
    char keys[16][DIBS_NAME_MAX + 1];
    dibs_state_item items[16];
    size_t count;
    size_t stop_after;
} listing;

static bool collect(const dibs_state_item *item, void *arg)
{
    listing *seen = arg;
    dibs_value value = {0};

    assert_true(seen->count < 16);
    seen->items[seen->count] = *item;
    snprintf(seen->keys[seen->count], sizeof(seen->keys[0]), "%s", item->key);
    seen->count++;
    /* The store is not locked: it may be used in here. */
    assert_status(get(seen->t, 0, item->key, &value), DIBS_OK);
    dibs_value_free(&value);
    return seen->count != seen->stop_after;
}

static void list(contract *t, const char *begins, listing *seen)
{
    dibs_error err = {0};

    assert_status(t->st[0]->ops->value->list(t->st[0], begins, contract_soon(),
                                             collect, seen, &err),
                  DIBS_OK);
}

static void keys_are_listed_in_order_by_how_they_begin(void **state)
{
    contract *t = *state;
    const char *last[] = {"b", "a", "%", "_x", "a b", "{q}", "ü", "B"};
    const char *sorted[] = {"%", "B", "_x", "a", "a b", "b", "{q}", "ü"};
    listing seen = {.t = t}, few = {.t = t, .stop_after = 3};
    char key[96], begins[80];

    for (size_t i = 0; i < 8; i++) {
        snprintf(key, sizeof(key), "%s/%s", t->name, last[i]);
        put_text(t, key, last[i], i == 0 ? 60000 : 0);
    }
    snprintf(key, sizeof(key), "%s.outside", t->name);
    put_text(t, key, "x", 0);
    snprintf(begins, sizeof(begins), "%s/", t->name);
    list(t, begins, &seen);
    assert_int_equal(seen.count, 8);
    for (size_t i = 0; i < 8; i++) {
        snprintf(key, sizeof(key), "%s/%s", t->name, sorted[i]);
        assert_string_equal(seen.keys[i], key);
        assert_int_equal(seen.items[i].len, strlen(sorted[i]));
        assert_true(seen.items[i].version > 0);
    }
    assert_true(seen.items[5].expires_ms > 30000);
    assert_int_equal(seen.items[6].expires_ms, -1);
    list(t, begins, &few);
    assert_int_equal(few.count, 3);
}

static void a_beginning_is_plain_text_not_a_pattern(void **state)
{
    contract *t = *state;
    const char *begins[] = {"/a%", "/_", "/*", "/a?", "/[ab]", "/\\"};
    char key[96];

    snprintf(key, sizeof(key), "%s/ab", t->name);
    put_text(t, key, "1", 0);
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        listing seen = {.t = t};

        snprintf(key, sizeof(key), "%s%s", t->name, begins[i]);
        list(t, key, &seen);
        assert_int_equal(seen.count, 0);
    }
}

static void expired_and_deleted_keys_are_not_listed(void **state)
{
    contract *t = *state;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs_value value = {0};
    listing seen = {.t = t};
    dibs_error err = {0};
    char key[96];

    snprintf(key, sizeof(key), "%s/gone", t->name);
    put_text(t, key, "1", 0);
    assert_status(t->st[1]->ops->value->del(t->st[1], key, DIBS_VERSION_ANY,
                                            contract_soon(), &err),
                  DIBS_OK);
    snprintf(key, sizeof(key), "%s/brief", t->name);
    put_text(t, key, "1", 50);
    while (get(t, 0, key, &value) == DIBS_OK) {
        dibs_value_free(&value);
        IN_TIME(dibsx_now() < end);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
    }
    list(t, t->name, &seen);
    assert_int_equal(seen.count, 0);
}

/* A lock and a value of the same name have nothing to do with each other. */
static void values_and_leases_do_not_meet(void **state)
{
    contract *t = *state;
    actor a = contract_actor(t, 0);
    dibs_value value = {0};

    put_text(t, t->name, "value", 0);
    assert_status(actor_try(&a), DIBS_OK);
    assert_status(get(t, 0, t->name, &value), DIBS_OK);
    assert_string_equal(value.data, "value");
    dibs_value_free(&value);
    assert_status(actor_release(&a), DIBS_OK);
}

int contract_value(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(nothing_is_found_where_nothing_was_put),
        CONTRACT_TEST(a_value_is_seen_through_every_handle),
        CONTRACT_TEST(a_value_outlives_its_handle),
        CONTRACT_TEST(any_bytes_come_back_as_they_were),
        CONTRACT_TEST(an_empty_value_is_a_value),
        CONTRACT_TEST(the_largest_value_fits),
        CONTRACT_TEST(a_value_expires_and_not_before),
        CONTRACT_TEST(a_put_sets_the_expiry_anew),
        CONTRACT_TEST(keys_are_listed_in_order_by_how_they_begin),
        CONTRACT_TEST(a_beginning_is_plain_text_not_a_pattern),
        CONTRACT_TEST(expired_and_deleted_keys_are_not_listed),
        CONTRACT_TEST(values_and_leases_do_not_meet),
    };

    return cmocka_run_group_tests_name("value", tests, NULL, NULL);
}
