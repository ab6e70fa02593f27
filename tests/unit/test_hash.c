/* test_hash.c - the hash of a text against the vectors of FNV-1a. */
/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "unit.h"

static void known_texts(void **state)
{
    (void)state;
    assert_int_equal(dibsx_hash_text(""), 0x811c9dc5);
    assert_int_equal(dibsx_hash_text("a"), 0xe40c292c);
    assert_int_equal(dibsx_hash_text("foobar"), 0xbf9cf968);
    /* Bytes above 127 count as such, whatever the sign of char. */
    assert_int_equal(dibsx_hash_text("\xff"),
                     (UINT32_C(2166136261) ^ 0xff) * UINT32_C(16777619));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_texts)};

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
