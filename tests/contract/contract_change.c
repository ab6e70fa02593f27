/* contract_change.c - changing values: compare-and-set, add, delete. */
/* SPDX-License-Identifier: MIT */
#include "contract.h"

static dibs_status
cas(contract *t, uint64_t expected, const char *text, uint64_t *version)
{
    dibs__store *st = t->st[0];
    dibs__put what = {.key = t->name,
                      .data = text,
                      .len = strlen(text),
                      .expected = expected};
    dibs_error err = {0};

    return st->ops->value->put(st, &what, contract_soon(), version, &err);
}

static dibs_status add(contract *t, int64_t delta, int64_t *sum)
{
    dibs__store *st = t->st[1];
    dibs_error err = {0};

    return st->ops->value->add(st, t->name, delta, contract_soon(), sum, &err);
}

static dibs_status del(contract *t, uint64_t expected)
{
    dibs__store *st = t->st[2];
    dibs_error err = {0};

    return st->ops->value->del(st, t->name, expected, contract_soon(), &err);
}

/* Checks the text and returns the version; text NULL: nothing is there. */
static uint64_t expect(contract *t, const char *text)
{
    dibs__store *st = t->st[1];
    dibs_error err = {0};
    dibs_value value = {0};
    uint64_t version;
    dibs_status rc =
        st->ops->value->get(st, t->name, contract_soon(), &value, &err);

    assert_status(rc, text ? DIBS_OK : DIBS_NOTFOUND);
    if (text)
        assert_string_equal(value.data, text);
    version = value.version;
    dibs_value_free(&value);
    return version;
}

static void a_version_is_replaced_once(void **state)
{
    contract *t = *state;
    uint64_t first = 0, second = 0, found = 0;

    assert_status(cas(t, DIBS_VERSION_ANY, "1", &first), DIBS_OK);
    assert_status(cas(t, first, "2", &second), DIBS_OK);
    assert_int_not_equal(first, second);
    assert_status(cas(t, first, "3", &found), DIBS_STALE);
    assert_int_equal(found, second);
    assert_int_equal(expect(t, "2"), second);
}

static void none_expects_nothing_there(void **state)
{
    contract *t = *state;
    uint64_t first = 0, found = 0;

    assert_status(cas(t, DIBS_VERSION_NONE, "1", &first), DIBS_OK);
    assert_status(cas(t, DIBS_VERSION_NONE, "2", &found), DIBS_STALE);
    assert_int_equal(found, first);
    assert_int_equal(expect(t, "1"), first);
}

static void a_version_is_not_found_where_nothing_is(void **state)
{
    contract *t = *state;
    uint64_t found = 77, first = 0;

    assert_status(cas(t, 12345, "1", &found), DIBS_STALE);
    assert_int_equal(found, 0);
    expect(t, NULL);
    assert_status(cas(t, DIBS_VERSION_ANY, "1", &first), DIBS_OK);
    assert_status(del(t, first), DIBS_OK);
    assert_status(cas(t, first, "2", &found), DIBS_STALE);
    assert_int_equal(found, 0);
    expect(t, NULL);
}

static void an_equal_value_still_gets_a_new_version(void **state)
{
    contract *t = *state;
    uint64_t first = 0, second = 0;

    assert_status(cas(t, DIBS_VERSION_ANY, "same", &first), DIBS_OK);
    assert_status(cas(t, DIBS_VERSION_ANY, "same", &second), DIBS_OK);
    assert_int_not_equal(first, second);
}

static void delete_by_version_or_any(void **state)
{
    contract *t = *state;
    uint64_t first = 0, second = 0;

    assert_status(del(t, DIBS_VERSION_ANY), DIBS_NOTFOUND);
    assert_status(cas(t, DIBS_VERSION_ANY, "1", &first), DIBS_OK);
    assert_status(cas(t, DIBS_VERSION_ANY, "2", &second), DIBS_OK);
    assert_status(del(t, first), DIBS_STALE);
    assert_int_equal(expect(t, "2"), second);
    assert_status(del(t, second), DIBS_OK);
    expect(t, NULL);
    assert_status(del(t, second), DIBS_NOTFOUND);
    assert_status(cas(t, DIBS_VERSION_NONE, "3", &first), DIBS_OK);
    assert_status(del(t, DIBS_VERSION_ANY), DIBS_OK);
    expect(t, NULL);
}

enum { VERSIONS = 60 };

static void a_version_is_never_used_twice(void **state)
{
    contract *t = *state;
    uint64_t seen[VERSIONS];

    for (size_t i = 0; i < VERSIONS; i++) {
        if (i % 3 == 2)
            assert_status(del(t, DIBS_VERSION_ANY), DIBS_OK);
        if (i % 20 == 19) {
            dibs__store_close(t->st[0]);
            t->st[0] = contract_open();
        }
        if (i % 10 == 5)
            contract_name(t->name, sizeof(t->name), "version");
        assert_status(cas(t, DIBS_VERSION_ANY, "x", &seen[i]), DIBS_OK);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(seen[k], seen[i]);
    }
}

static void adding_starts_from_nothing(void **state)
{
    contract *t = *state;
    int64_t sum = 0;
    uint64_t before;

    assert_status(add(t, 5, &sum), DIBS_OK);
    assert_int_equal(sum, 5);
    before = expect(t, "5");
    assert_status(add(t, -12, &sum), DIBS_OK);
    assert_int_equal(sum, -7);
    assert_int_not_equal(expect(t, "-7"), before);
    assert_status(add(t, 0, &sum), DIBS_OK);
    assert_int_equal(sum, -7);
}

static void adding_to_a_value_that_was_put(void **state)
{
    contract *t = *state;
    uint64_t version;
    int64_t sum = 0;

    assert_status(cas(t, DIBS_VERSION_ANY, "40", &version), DIBS_OK);
    assert_status(add(t, 2, &sum), DIBS_OK);
    assert_int_equal(sum, 42);
    assert_status(cas(t, version, "1", &version), DIBS_STALE);
    expect(t, "42");
}

static void what_is_no_integer_is_not_added_to(void **state)
{
    contract *t = *state;
    const char *bad[] = {"",    "abc", "12abc",
                         "1.5", "1 2", "0x10",
                         "1e3", "-",   "9223372036854775808"};
    uint64_t version;
    int64_t sum;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_status(cas(t, DIBS_VERSION_ANY, bad[i], &version), DIBS_OK);
        assert_status(add(t, 1, &sum), DIBS_INVALID);
        assert_int_equal(expect(t, bad[i]), version);
    }
}

static void a_sum_that_overflows_changes_nothing(void **state)
{
    contract *t = *state;
    uint64_t version;
    int64_t sum;

    assert_status(cas(t, DIBS_VERSION_ANY, "9223372036854775806", &version),
                  DIBS_OK);
    assert_status(add(t, 1, &sum), DIBS_OK);
    assert_true(sum == INT64_MAX);
    assert_status(add(t, 1, &sum), DIBS_INVALID);
    expect(t, "9223372036854775807");
    assert_status(cas(t, DIBS_VERSION_ANY, "-9223372036854775807", &version),
                  DIBS_OK);
    assert_status(add(t, -1, &sum), DIBS_OK);
    assert_true(sum == INT64_MIN);
    assert_status(add(t, -1, &sum), DIBS_INVALID);
    expect(t, "-9223372036854775808");
}

static void adding_keeps_the_expiry(void **state)
{
    contract *t = *state;
    dibs__put what = {.key = t->name,
                      .data = "1",
                      .len = 1,
                      .expected = DIBS_VERSION_ANY,
                      .ttl_ms = 60000};
    dibs_value value = {0};
    dibs_error err = {0};
    uint64_t version;
    int64_t sum;

    assert_status(t->st[0]->ops->value->put(t->st[0], &what, contract_soon(),
                                            &version, &err),
                  DIBS_OK);
    assert_status(add(t, 1, &sum), DIBS_OK);
    assert_status(t->st[0]->ops->value->get(t->st[0], t->name, contract_soon(),
                                            &value, &err),
                  DIBS_OK);
    assert_true(value.expires_ms > 30000 && value.expires_ms <= 60000);
    dibs_value_free(&value);
}

static void adding_to_an_expired_value_starts_anew(void **state)
{
    contract *t = *state;
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), CONTRACT_BOUND_MS);
    dibs__put what = {.key = t->name,
                      .data = "1000",
                      .len = 4,
                      .expected = DIBS_VERSION_ANY,
                      .ttl_ms = contract_brief_ms(100)};
    dibs_error err = {0};
    uint64_t version;
    int64_t sum = 0;

    assert_status(t->st[0]->ops->value->put(t->st[0], &what, contract_soon(),
                                            &version, &err),
                  DIBS_OK);
    do {
        assert_status(add(t, 1, &sum), DIBS_OK);
        contract_sleep_until(dibsx_now() + 5 * DIBSX_MS);
        IN_TIME(dibsx_now() < end);
    } while (sum > 1000);
    assert_int_equal(sum, 1);
}

static void a_past_deadline_changes_no_value(void **state)
{
    contract *t = *state;
    dibs__store *st = t->st[0];
    const dibs__value_ops *ops = st->ops->value;
    dibsx_nsec past = dibsx_now() - DIBSX_SEC, began_at = dibsx_now();
    dibs__put what = {.key = t->name,
                      .data = "late",
                      .len = 4,
                      .expected = DIBS_VERSION_ANY};
    dibs_value value = {0};
    dibs_error err = {0};
    uint64_t version;
    int64_t sum;

    assert_status(ops->put(st, &what, past, &version, &err), DIBS_UNAVAIL);
    assert_status(ops->add(st, t->name, 1, past, &sum, &err), DIBS_UNAVAIL);
    expect(t, NULL);
    assert_status(cas(t, DIBS_VERSION_NONE, "1", &version), DIBS_OK);
    assert_status(ops->del(st, t->name, DIBS_VERSION_ANY, past, &err),
                  DIBS_UNAVAIL);
    assert_status(ops->get(st, t->name, past, &value, &err), DIBS_UNAVAIL);
    assert_null(value.data);
    assert_int_equal(expect(t, "1"), version);
    IN_TIME(contract_ms_since(began_at) < pace_ms(1000));
}

int contract_change(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TEST(a_version_is_replaced_once),
        CONTRACT_TEST(none_expects_nothing_there),
        CONTRACT_TEST(a_version_is_not_found_where_nothing_is),
        CONTRACT_TEST(an_equal_value_still_gets_a_new_version),
        CONTRACT_TEST(delete_by_version_or_any),
        CONTRACT_TEST(a_version_is_never_used_twice),
        CONTRACT_TEST(adding_starts_from_nothing),
        CONTRACT_TEST(adding_to_a_value_that_was_put),
        CONTRACT_TEST(what_is_no_integer_is_not_added_to),
        CONTRACT_TEST(a_sum_that_overflows_changes_nothing),
        CONTRACT_TEST(adding_keeps_the_expiry),
        CONTRACT_TEST(adding_to_an_expired_value_starts_anew),
        CONTRACT_TEST(a_past_deadline_changes_no_value),
    };

    return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
