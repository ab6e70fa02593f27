/* hash.h - a quick hash of a text, for tables in memory: FNV-1a with 32 bits.
 *
 * A user who chooses the texts can make them collide. So it is for buckets, which
 * then get longer, and for nothing that is kept or sent. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_HASH_H
#define DIBS_BASE_HASH_H

#include <stdint.h>

static inline uint32_t dibsx_hash_text(const char *text)
{
    uint32_t hash = UINT32_C(2166136261);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
    return hash;
}

#endif
