/* sha1.c - SHA-1 (FIPS 180-4), by which others name things. Pure. */
/* SPDX-License-Identifier: MIT */
#include "base/sha1.h"
#include "base/rand.h"
#include "base/sha_block.h"
#include <stdint.h>
#include <string.h>

enum { WORDS = 5, ROUNDS = 80 };

static uint32_t rotate(uint32_t word, int by)
{
    return word << by | word >> (32 - by);
}

static uint32_t mix(int round, uint32_t b, uint32_t c, uint32_t d)
{
    if (round < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (round < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (round < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void digest(uint32_t *state, const unsigned char *block)
{
    uint32_t w[ROUNDS], s[WORDS];

    dibsx_sha_words(block, w);
    for (int i = 16; i < ROUNDS; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    memcpy(s, state, sizeof(s));
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t next =
            rotate(s[0], 5) + mix(i, s[1], s[2], s[3]) + s[4] + w[i];

        s[4] = s[3];
        s[3] = s[2];
        s[2] = rotate(s[1], 30);
        s[1] = s[0];
        s[0] = next;
    }
    for (int i = 0; i < WORDS; i++)
        state[i] += s[i];
}

void dibsx_sha1(const char *bytes, size_t len, char out[DIBSX_SHA1_TEXT])
{
    uint32_t state[WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                             0xc3d2e1f0};
    unsigned char sum[4 * WORDS];

    dibsx_sha_message(digest, state, WORDS, bytes, len, sum);
    dibsx_hex(sum, sizeof(sum), out);
}
