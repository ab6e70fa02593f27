/* test_postgres_advisory_key.c - the keys of advisory locks, as DistributedLock.Postgres
 * has them. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/advisory_key.h"
#include "unit.h"

#include <string.h>

static void is(const char *name, const char *wanted)
{
    char text[DIBS__ADVKEY_TEXT];

    dibs__advkey_text(dibs__advkey_of(name), text);
    if (strcmp(text, wanted) != 0)
        fail_msg("`%s` is (%s), not (%s)", name, text, wanted);
}

/* Seven bits for each character, a zero, and ones: of "a" 1100001 0 and 56 ones,
 * and so on. */
static void short_names_are_packed_into_a_pair(void **state)
{
    (void)state;
    is("a", "-1023410177, -1");
    is("ab", "-1014366209, -1");
    is("123456789", "1657379654, -1382303630");
    is("~~~~~~~~~", "-33818641, -541098244");
}

static void digits_are_taken_as_they_are(void **state)
{
    (void)state;
    is("0000000000000001", "(1)::bigint");
    is("7fffffffffffffff", "(9223372036854775807)::bigint");
    is("FFFFFFFFFFFFFFFE", "(-2)::bigint");
    is("00000001,00000002", "1, 2");
    is("ffffffff,80000000", "-1, -2147483648");
}

/* The first eight bytes of SHA-1, the lowest first. */
static void all_else_is_hashed(void **state)
{
    (void)state;
    is("0123456789", "(2363718883634621575)::bigint");
    is("workflow:retry-scheduler", "(6410998801009759982)::bigint");
    is("gr\xc3\xbc\xc3\x9f"
       "e",
       "(8327251111002724045)::bigint");
    is("0123456789abcdeg", "(8261140907795711218)::bigint");
    is("00000001;00000002", "(-7999680682512521144)::bigint");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_names_are_packed_into_a_pair),
        cmocka_unit_test(digits_are_taken_as_they_are),
        cmocka_unit_test(all_else_is_hashed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
