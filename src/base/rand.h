/* rand.h - randomness: owner tokens from the kernel, jitter from a seed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_RAND_H
#define DIBS_BASE_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Fills from getrandom(2). False when the kernel gives none: the caller must
 * fail, there is no weaker source. */
bool dibsx_random(void *out, size_t len);

/* 2*len hexadecimal digits and a NUL into out. */
void dibsx_hex(const void *bytes, size_t len, char *out);

/* Random digits of that kind, size - 1 of them (even, 64 at most) and a NUL. False when
 * the kernel gives none. */
bool dibsx_random_hex(char *out, size_t size);

/* A small generator that repeats from its seed: for jitter and simulations,
 * never for tokens. */
typedef struct dibsx_prng {
    uint64_t state;
} dibsx_prng;

uint64_t dibsx_prng_next(dibsx_prng *prng);

/* Evenly from 0 to bound - 1; 0 when bound is 0. */
uint64_t dibsx_prng_below(dibsx_prng *prng, uint64_t bound);

#endif
