/* test_postgres_auth.c - what a server asks for before it lets a client in. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/auth.h"
#include "unit.h"

#include <string.h>

/* A text with NULs in it, and its length. */
#define BYTES(text) text, sizeof(text) - 1

#define OK          "R\0\0\0\x08\0\0\0\0"
#define CLEAR       "R\0\0\0\x08\0\0\0\x03"
#define MD5         "R\0\0\0\x0c\0\0\0\x05salt"
#define SASL        "R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
#define SASL_MORE   "R\0\0\0\x0b\0\0\0\x0br=a"

/* The verdict on all of it at once, which is that on its bytes one by one. */
static dibs__pg_auth_verdict read_all(const char *bytes, size_t len)
{
    dibs__pg_auth whole = {.open = false}, pieces = {.open = false};
    dibs__pg_auth_verdict verdict = dibs__pg_auth_read(&whole, bytes, len);
    dibs__pg_auth_verdict last = DIBS__PG_AUTH_FINE;

    for (size_t i = 0; i < len && last == DIBS__PG_AUTH_FINE; i++)
        last = dibs__pg_auth_read(&pieces, bytes + i, 1);
    assert_int_equal(verdict, last);
    assert_int_equal(whole.open, pieces.open);
    return verdict;
}

static void sound_requests_pass(void **state)
{
    (void)state;
    assert_int_equal(read_all(BYTES(OK)), DIBS__PG_AUTH_FINE);
    assert_int_equal(read_all(BYTES(MD5 OK)), DIBS__PG_AUTH_FINE);
    assert_int_equal(read_all(BYTES(SASL SASL_MORE OK)), DIBS__PG_AUTH_FINE);
    assert_int_equal(read_all(BYTES("v\0\0\0\x0c\0\0\0\0\0\0\0\0" OK)),
                     DIBS__PG_AUTH_FINE);
}

static void clear_text_is_found(void **state)
{
    (void)state;
    assert_int_equal(read_all(BYTES(CLEAR)), DIBS__PG_AUTH_CLEAR);
    assert_int_equal(read_all(BYTES(MD5 CLEAR)), DIBS__PG_AUTH_CLEAR);
    assert_int_equal(read_all(BYTES(SASL CLEAR)), DIBS__PG_AUTH_CLEAR);
    assert_int_equal(read_all(BYTES("v\0\0\0\x0c\0\0\0\0\0\0\0\0" CLEAR)),
                     DIBS__PG_AUTH_CLEAR);
}

static void the_last_byte_decides(void **state)
{
    dibs__pg_auth auth = {.open = false};

    (void)state;
    assert_int_equal(dibs__pg_auth_read(&auth, CLEAR, 8), DIBS__PG_AUTH_FINE);
    assert_int_equal(dibs__pg_auth_read(&auth, &CLEAR[8], 1),
                     DIBS__PG_AUTH_CLEAR);
}

/* Each is longer than its kind, or says to be shorter than a request is. */
static void nothing_is_hidden_in_a_request(void **state)
{
    (void)state;
    assert_int_equal(read_all(BYTES("R\0\0\0\x0c\0\0\0\0four")),
                     DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\0\0\0\x0d\0\0\0\x05saltR")),
                     DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\0\0\0\x0c\0\0\0\x0a"
                                    "S\0\0R")),
                     DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\0\0\0\x0b\0\0\0\x0aSSS")),
                     DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\0\0\0\x07\0\0\0")), DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\0\0\x07\xd1")), DIBS__PG_AUTH_ODD);
    assert_int_equal(read_all(BYTES("R\xff\xff\xff\xff")), DIBS__PG_AUTH_ODD);
}

/* Where no request is answered any more none is looked for: a statement's rows may
 * have such bytes. */
static void after_it_all_pass(void **state)
{
    (void)state;
    assert_int_equal(read_all(BYTES(OK CLEAR)), DIBS__PG_AUTH_FINE);
    assert_int_equal(read_all(BYTES("Efork failed\n\0" CLEAR)),
                     DIBS__PG_AUTH_FINE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_requests_pass),
        cmocka_unit_test(clear_text_is_found),
        cmocka_unit_test(the_last_byte_decides),
        cmocka_unit_test(nothing_is_hidden_in_a_request),
        cmocka_unit_test(after_it_all_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
