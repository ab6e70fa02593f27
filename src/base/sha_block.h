/* sha_block.h - what the hashes of one family (FIPS 180-4) have in common: blocks of 64
 * bytes, the last of which ends with the length in bits. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SHA_BLOCK_H
#define DIBS_BASE_SHA_BLOCK_H

#include <stddef.h>
#include <stdint.h>

enum { DIBSX_SHA_BLOCK = 64 };

/* Takes a block into the state. */
typedef void dibsx_sha_digest(uint32_t *state, const unsigned char *block);

/* The sixteen words of a block. */
void dibsx_sha_words(const unsigned char *block, uint32_t w[16]);

/* Takes all bytes and the end of the message into the state, which has `words` words,
 * and writes it to OUT, four bytes a word. */
void dibsx_sha_message(dibsx_sha_digest *digest, uint32_t *state, size_t words,
                       const void *bytes, size_t len, unsigned char *out);

#endif
