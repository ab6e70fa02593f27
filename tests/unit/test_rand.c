/* test_rand.c - random bytes, hexadecimal, the seeded generator. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "unit.h"
#include <string.h>

static void the_kernel_fills_all_of_it(void **state)
{
    unsigned char block[1000];
    bool seen[256] = {false};
    int kinds = 0;

    (void)state;
    memset(block, 0, sizeof(block));
    assert_true(dibsx_random(block, sizeof(block)));
    for (size_t i = 0; i < sizeof(block); i++) {
        kinds += !seen[block[i]];
        seen[block[i]] = true;
    }
    /* A thousand random bytes show about 251 of the 256 values. */
    assert_true(kinds > 200);
    assert_true(dibsx_random(block, 0));
}

static void tokens_do_not_repeat(void **state)
{
    char tokens[500][33];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        unsigned char bytes[16];

        assert_true(dibsx_random(bytes, sizeof(bytes)));
        dibsx_hex(bytes, sizeof(bytes), tokens[i]);
        assert_int_equal(strspn(tokens[i], "0123456789abcdef"), 32);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(tokens[i], tokens[j]);
    }
}

static void hex_is_lower_case(void **state)
{
    char out[9];

    (void)state;
    dibsx_hex("\x00\x0f\xa5\xff", 4, out);
    assert_string_equal(out, "000fa5ff");
    dibsx_hex("", 0, out);
    assert_string_equal(out, "");
}

/* The first numbers of SplitMix64 for seed 1234567, as published with it. */
static void drawn_digits_fill_their_room(void **state)
{
    char one[33], other[33] = "", room[6] = {0, 0, 0, 0, 0, 'x'};

    (void)state;
    assert_true(dibsx_random_hex(one, sizeof(one)));
    assert_true(dibsx_random_hex(other, sizeof(other)));
    assert_int_equal(strspn(one, "0123456789abcdef"), 32);
    assert_int_equal(strlen(one), 32);
    assert_string_not_equal(one, other);
    assert_true(dibsx_random_hex(room, 5));
    assert_int_equal(strlen(room), 4);
    assert_int_equal(room[5], 'x');
}

static void the_generator_is_the_known_one(void **state)
{
    static const uint64_t expected[] = {UINT64_C(6457827717110365317),
                                        UINT64_C(3203168211198807973),
                                        UINT64_C(9817491932198370423),
                                        UINT64_C(4593380528125082431),
                                        UINT64_C(16408922859458223821)};
    dibsx_prng prng = {.state = 1234567};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_true(dibsx_prng_next(&prng) == expected[i]);
}

static void bounds_are_kept(void **state)
{
    static const uint64_t bounds[] = {
        1, 2, 3, 1000, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1, UINT64_MAX};
    dibsx_prng prng = {.state = 3};

    (void)state;
    assert_int_equal(dibsx_prng_below(&prng, 0), 0);
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        for (int j = 0; j < 1000; j++)
            assert_true(dibsx_prng_below(&prng, bounds[i]) < bounds[i]);
    }
}

/* Three quarters of the range is where a plain remainder would be most uneven:
 * the first third would come twice as often as it should. */
static void numbers_are_even(void **state)
{
    uint64_t bound = UINT64_C(3) << 62;
    dibsx_prng prng = {.state = 5};
    int thirds[3] = {0, 0, 0};

    (void)state;
    for (int i = 0; i < 30000; i++)
        thirds[dibsx_prng_below(&prng, bound) / (bound / 3)]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(thirds[i], 9500, 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kernel_fills_all_of_it),
        cmocka_unit_test(tokens_do_not_repeat),
        cmocka_unit_test(hex_is_lower_case),
        cmocka_unit_test(drawn_digits_fill_their_room),
        cmocka_unit_test(the_generator_is_the_known_one),
        cmocka_unit_test(bounds_are_kept),
        cmocka_unit_test(numbers_are_even),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
