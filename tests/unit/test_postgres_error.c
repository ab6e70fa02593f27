/* test_postgres_error.c - what errors of the server and of libpq mean. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/error.h"
#include "unit.h"

#include <string.h>

static void answers_have_their_meaning(void **state)
{
    static const struct {
        const char *sqlstate;
        dibs_status status;
    } known[] = {
        {"28P01", DIBS_DENIED},   {"42501", DIBS_DENIED},
        {"3D000", DIBS_INVALID},  {"42P01", DIBS_REFUSED},
        {"3F000", DIBS_REFUSED},  {"42883", DIBS_REFUSED},
        {"25006", DIBS_UNAVAIL},  {"40001", DIBS_UNAVAIL},
        {"40P01", DIBS_UNAVAIL},  {"55P03", DIBS_UNAVAIL},
        {"57014", DIBS_UNAVAIL},  {"53300", DIBS_UNAVAIL},
        {"53100", DIBS_UNAVAIL},  {"22003", DIBS_INTERNAL},
        {"22021", DIBS_INVALID},  {"XX001", DIBS_INTERNAL},
        {"P0001", DIBS_INTERNAL}, {"08006", DIBS_UNKNOWN},
        {"54000", DIBS_UNAVAIL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        dibs_error err = {0};

        assert_int_equal(dibs__pg_fail(known[i].sqlstate, "what it says", false,
                                       &err),
                         known[i].status);
        assert_string_equal(err.origin, known[i].sqlstate);
        assert_true(err.message[0]);
    }
}

/* The connection ended with it: it may have been committed just before. */
static void a_farewell_is_never_certain(void **state)
{
    static const char *const states[] = {"57P01", "57P02", "53300", "40001"};

    (void)state;
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
        assert_int_equal(dibs__pg_fail(states[i], "bye", true, NULL),
                         DIBS_UNKNOWN);
}

static void only_what_changed_nothing_is_tried_again(void **state)
{
    (void)state;
    assert_true(dibs__pg_again("40001"));
    assert_true(dibs__pg_again("40P01"));
    assert_false(dibs__pg_again("57P01"));
    assert_false(dibs__pg_again(""));
    assert_true(dibs__pg_stale("26000"));
    assert_true(dibs__pg_stale("0A000"));
    assert_false(dibs__pg_stale("42883"));
}

static void connecting_fails_for_a_reason(void **state)
{
    static const struct {
        const char *message;
        bool tried;
        dibs_status status;
    } known[] = {
        {"connection to server at \"h\", port 5432 failed: FATAL:  28P01: "
         "password authentication failed for user \"u\"\nLOCATION:  x\n",
         true, DIBS_DENIED},
        {"connection failed: SCHWERWIEGEND:  3D000: Datenbank gibt es nicht\n",
         true, DIBS_INVALID},
        {"connection failed: FATAL:  57P03: the database system is starting "
         "up\n",
         true, DIBS_UNAVAIL},
        {"connection failed: FATAL:  08P01: no such pool\n", true,
         DIBS_UNAVAIL},
        {"connection failed: Connection refused\n", true, DIBS_UNAVAIL},
        {"could not translate host name \"h\" to address\n", false,
         DIBS_UNAVAIL},
        {"SSL error: certificate verify failed\n", true, DIBS_DENIED},
        {"server does not support SSL, but SSL was required\n", true,
         DIBS_REFUSED},
        {"fe_sendauth: no password supplied\n", true, DIBS_DENIED},
        {"invalid connection option \"nonsense\"\n", false, DIBS_INVALID},
        {"out of memory\n", false, DIBS_NOMEM},
        /* As of libpq 17 when it has no descriptor for random bytes. */
        {"", false, DIBS_UNAVAIL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        dibs_error err = {0};

        assert_int_equal(dibs__pg_fail_connect(known[i].message, known[i].tried,
                                               &err),
                         known[i].status);
        assert_true(err.message[0]);
        assert_null(strchr(err.message, '\n'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_have_their_meaning),
        cmocka_unit_test(a_farewell_is_never_certain),
        cmocka_unit_test(only_what_changed_nothing_is_tried_again),
        cmocka_unit_test(connecting_fails_for_a_reason),
    };

    return cmocka_run_group_tests_name("postgres error", tests, NULL, NULL);
}
