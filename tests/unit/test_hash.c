/* test_hash.c - hashes against known vectors: FNV-1a, and SHA-256 of FIPS 180-4. */
/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "base/sha256.h"
#include "unit.h"

#include <stdlib.h>
#include <string.h>

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

static void check_sha256(const void *bytes, size_t len, const char *expected)
{
    char sum[DIBSX_SHA256_TEXT];

    dibsx_sha256(bytes, len, sum);
    assert_string_equal(sum, expected);
}

static void sha256_of_known_texts(void **state)
{
    char *million = malloc(1000000);

    (void)state;
    check_sha256("", 0,
                 "e3b0c44298fc1c149afbf4c8996fb924"
                 "27ae41e4649b934ca495991b7852b855");
    check_sha256("abc", 3,
                 "ba7816bf8f01cfea414140de5dae2223"
                 "b00361a396177a9cb410ff61f20015ad");
    check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
                 "248d6a61d20638b8e5c026930c3e6039"
                 "a33ce45964ff2167f6ecedd419db06c1");
    assert_non_null(million);
    memset(million, 'a', 1000000);
    check_sha256(million, 1000000,
                 "cdc76e5c9914fb9281a1c7e284d73e67"
                 "f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* Each length up to three blocks, chained; the last sum is that of Python's hashlib. */
static void sha256_of_every_length(void **state)
{
    char sum[DIBSX_SHA256_TEXT] = "";
    char text[DIBSX_SHA256_TEXT + 200];

    (void)state;
    for (size_t n = 0; n <= 200; n++) {
        size_t head = strlen(sum);

        memcpy(text, sum, head);
        for (size_t i = 0; i < n; i++)
            text[head + i] = (char)(unsigned char)(i * 7 + n);
        dibsx_sha256(text, head + n, sum);
    }
    assert_string_equal(sum, "016a0718502df2a2c022d19e38b1a5ad"
                             "791f10d05f0378ae0dc9aa0692578bf9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_texts),
                                       cmocka_unit_test(sha256_of_known_texts),
                                       cmocka_unit_test(
                                           sha256_of_every_length)};

    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
