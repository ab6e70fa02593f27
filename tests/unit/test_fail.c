/* test_fail.c - raising errors: what the record holds, and that it is one line. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "unit.h"
#include <errno.h>
#include <string.h>

static void the_record_is_filled(void **state)
{
    dibs_error err;

    (void)state;
    memset(&err, 'x', sizeof(err));
    assert_int_equal(dibsx_fail(&err, DIBS_INVALID, "longer than %d", 255),
                     DIBS_INVALID);
    assert_int_equal(err.status, DIBS_INVALID);
    assert_false(err.retriable);
    assert_string_equal(err.origin, "");
    assert_string_equal(err.message, "longer than 255");
}

static void the_origin_is_kept(void **state)
{
    dibs_error err;

    (void)state;
    assert_int_equal(dibsx_fail_at(&err, DIBS_UNAVAIL, "SQLITE_FULL",
                                   "the disk is full"),
                     DIBS_UNAVAIL);
    assert_string_equal(err.origin, "SQLITE_FULL");
    assert_string_equal(err.message, "the disk is full");
    (void)dibsx_fail_at(&err, DIBS_UNAVAIL,
                        "A_CODE_THAT_IS_LONGER_THAN_THE_FIELD", "x");
    assert_int_equal(strlen(err.origin), sizeof(err.origin) - 1);
}

static void a_record_is_not_needed(void **state)
{
    (void)state;
    assert_int_equal(dibsx_fail(NULL, DIBS_LOST, "%s", "x"), DIBS_LOST);
    assert_int_equal(dibsx_fail_at(NULL, DIBS_NOMEM, "ENOMEM", "x"),
                     DIBS_NOMEM);
}

static void four_statuses_are_retriable(void **state)
{
    static const dibs_status yes[] = {DIBS_UNAVAIL, DIBS_UNKNOWN, DIBS_BUSY,
                                      DIBS_TIMEOUT, DIBS_EARLY};
    dibs_error err;

    (void)state;
    for (int status = DIBS_BUSY; status <= DIBS_FORKED; status++) {
        bool expected = false;

        for (size_t i = 0; i < COUNT_OF(yes); i++)
            expected |= (int)yes[i] == status;
        (void)dibsx_fail(&err, (dibs_status)status, "x");
        assert_int_equal(err.retriable, expected);
    }
}

static void long_messages_are_cut(void **state)
{
    char text[1000];
    dibs_error err;

    (void)state;
    memset(text, 'a', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)dibsx_fail(&err, DIBS_INVALID, "%s", text);
    assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

/* A cut through a character would leave text that is not UTF-8. */
static void characters_are_cut_whole(void **state)
{
    static const char *const chars[] = {"\xC3\xA9", "\xE2\x82\xAC",
                                        "\xF0\x9F\x94\x92"};
    char text[1000];
    dibs_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(chars); i++) {
        size_t step = strlen(chars[i]);

        for (size_t pad = 0; pad < step; pad++) {
            size_t len = pad;

            memset(text, 'a', pad);
            for (; len + step < sizeof(text); len += step)
                memcpy(text + len, chars[i], step);
            text[len] = '\0';
            (void)dibsx_fail(&err, DIBS_INVALID, "%s", text);
            len = strlen(err.message);
            assert_int_equal((len - pad) % step, 0);
            assert_true(len + step > sizeof(err.message) - 1);
        }
    }
}

static void messages_are_one_line(void **state)
{
    dibs_error err;

    (void)state;
    (void)dibsx_fail(&err, DIBS_INVALID, "a\nb\tc\x1b[31m\x7f");
    assert_string_equal(err.message, "a b c [31m ");
}

static void an_error_may_be_wrapped_in_place(void **state)
{
    dibs_error err;

    (void)state;
    (void)dibsx_fail_at(&err, DIBS_UNAVAIL, "ENOENT", "no such file");
    (void)dibsx_fail_at(&err, DIBS_REFUSED, err.origin, "opening x: %s",
                        err.message);
    assert_int_equal(err.status, DIBS_REFUSED);
    assert_string_equal(err.origin, "ENOENT");
    assert_string_equal(err.message, "opening x: no such file");
}

static void a_failure_after_no_answer_is_no_answer(void **state)
{
    dibs_error err;

    (void)state;
    (void)dibsx_fail_at(&err, DIBS_DENIED, "NOAUTH", "log in first");
    assert_int_equal(dibsx_unanswered(&err), DIBS_UNKNOWN);
    assert_int_equal(err.status, DIBS_UNKNOWN);
    assert_true(err.retriable);
    assert_string_equal(err.origin, "NOAUTH");
    assert_string_equal(err.message, "log in first");
    assert_int_equal(dibsx_unanswered(NULL), DIBS_UNKNOWN);
}

static void no_memory_is_said_in_a_sentence(void **state)
{
    dibs_error err;

    (void)state;
    assert_int_equal(dibsx_nomem(&err, "a value of %d bytes", 7), DIBS_NOMEM);
    assert_int_equal(err.status, DIBS_NOMEM);
    assert_ptr_equal(strstr(err.message,
                            "there is no memory for a value of 7 bytes: "),
                     err.message);
    assert_non_null(strstr(err.message, "; free some"));
    assert_int_equal(dibsx_nomem(NULL, "a lock"), DIBS_NOMEM);
}

static void numbers_have_names(void **state)
{
    (void)state;
    assert_string_equal(dibsx_errno_name(ENOENT), "ENOENT");
    assert_string_equal(dibsx_errno_name(ENOSPC), "ENOSPC");
    assert_string_equal(dibsx_errno_name(-1), "EUNKNOWN");
    assert_string_equal(dibsx_errno_name(99999), "EUNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_record_is_filled),
        cmocka_unit_test(the_origin_is_kept),
        cmocka_unit_test(a_record_is_not_needed),
        cmocka_unit_test(four_statuses_are_retriable),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(characters_are_cut_whole),
        cmocka_unit_test(messages_are_one_line),
        cmocka_unit_test(an_error_may_be_wrapped_in_place),
        cmocka_unit_test(a_failure_after_no_answer_is_no_answer),
        cmocka_unit_test(no_memory_is_said_in_a_sentence),
        cmocka_unit_test(numbers_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
