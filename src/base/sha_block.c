/* sha_block.c - see sha_block.h. */
/* SPDX-License-Identifier: MIT */
#include "base/sha_block.h"
#include <string.h>

/* Where the length is in the last block. */
enum { LENGTH_AT = 56 };

void dibsx_sha_words(const unsigned char *block, uint32_t w[16])
{
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
}

void dibsx_sha_message(dibsx_sha_digest *digest, uint32_t *state, size_t words,
                       const void *bytes, size_t len, unsigned char *out)
{
    const unsigned char *at = bytes;
    unsigned char block[DIBSX_SHA_BLOCK] = {0};
    uint64_t bits = (uint64_t)len * 8;

    for (; len >= DIBSX_SHA_BLOCK;
         at += DIBSX_SHA_BLOCK, len -= DIBSX_SHA_BLOCK)
        digest(state, at);
    memcpy(block, at, len);
    block[len] = 0x80;
    if (len >= LENGTH_AT) {
        digest(state, block);
        memset(block, 0, sizeof(block));
    }
    for (int i = 0; i < 8; i++)
        block[LENGTH_AT + i] = (unsigned char)(bits >> (56 - 8 * i));
    digest(state, block);
    for (size_t i = 0; i < 4 * words; i++)
        out[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
    /* The message may be a secret. */
    explicit_bzero(block, sizeof(block));
}
