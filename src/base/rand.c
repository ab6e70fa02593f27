/* rand.c - randomness: tokens from the kernel, jitter from a seed.
 *
 * Owns nothing; the generator's state is its caller's. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include <assert.h>
#include <errno.h>
#include <sys/random.h>

bool dibsx_random(void *out, size_t len)
{
    unsigned char *at = out;

    while (len) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    return true;
}

void dibsx_hex(const void *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++) {
        *out++ = digits[at[i] >> 4];
        *out++ = digits[at[i] & 15];
    }
    *out = '\0';
}

bool dibsx_random_hex(char *out, size_t size)
{
    unsigned char bits[32];
    size_t len = (size - 1) / 2;

    assert(size % 2 == 1 && len <= sizeof(bits));
    if (!dibsx_random(bits, len))
        return false;
    dibsx_hex(bits, len, out);
    return true;
}

/* SplitMix64: one word of state and every seed is a good one. */
uint64_t dibsx_prng_next(dibsx_prng *prng)
{
    uint64_t z = prng->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t dibsx_prng_below(dibsx_prng *prng, uint64_t bound)
{
    uint64_t excess, number;

    if (bound == 0)
        return 0;
    /* As many of the lowest numbers are thrown away as would make the first
     * remainders more likely than the last. */
    excess = -bound % bound;
    do
        number = dibsx_prng_next(prng);
    while (number < excess);
    return number % bound;
}
