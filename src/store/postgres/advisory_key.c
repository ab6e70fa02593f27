/* advisory_key.c - the advisory lock that DistributedLock.Postgres takes for a name.
 *
 * Pure. The layout is that of its PostgresAdvisoryLockKey, with hashing allowed. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/advisory_key.h"
#include "base/sha1.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASCII_BITS = 7, ASCII_MAX = 9, HALF = 8, HEX = 16 };

/* 7 bits for each character, a zero, and ones up to the end. */
static bool pack_ascii(const char *name, size_t len, uint64_t *bits)
{
    *bits = 0;
    if (len > ASCII_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] > 0x7f)
            return false;
        *bits = *bits << ASCII_BITS | (unsigned char)name[i];
    }
    *bits <<= 1;
    for (size_t i = len; i < ASCII_MAX; i++)
        *bits = *bits << ASCII_BITS | 0x7f;
    return true;
}

static bool read_half(const char *text, uint64_t *bits)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    char half[HALF + 1];

    memcpy(half, text, HALF);
    half[HALF] = '\0';
    if (strspn(half, digits) != HALF)
        return false;
    *bits = *bits << 32 | strtoull(half, NULL, 16);
    return true;
}

static bool read_digits(const char *name, size_t len, dibs__advkey *key)
{
    uint64_t bits = 0;

    key->pair = len == HEX + 1 && name[HALF] == ',';
    if (len != HEX && !key->pair)
        return false;
    if (!read_half(name, &bits) || !read_half(name + len - HALF, &bits))
        return false;
    key->bits = (int64_t)bits;
    return true;
}

/* The first eight bytes of the sum, the last of them highest. */
static int64_t hash_name(const char *name, size_t len)
{
    char sum[DIBSX_SHA1_TEXT];
    uint64_t bits = 0;

    dibsx_sha1(name, len, sum);
    for (size_t i = 8; i-- > 0;) {
        char byte[] = {sum[2 * i], sum[2 * i + 1], '\0'};

        bits = bits << 8 | strtoull(byte, NULL, 16);
    }
    return (int64_t)bits;
}

dibs__advkey dibs__advkey_of(const char *name)
{
    size_t len = strlen(name);
    dibs__advkey key = {.pair = true};
    uint64_t bits;

    if (pack_ascii(name, len, &bits)) {
        key.bits = (int64_t)bits;
        return key;
    }
    if (read_digits(name, len, &key))
        return key;
    return (dibs__advkey){.bits = hash_name(name, len)};
}

void dibs__advkey_text(dibs__advkey key, char out[DIBS__ADVKEY_TEXT])
{
    uint64_t bits = (uint64_t)key.bits;

    if (key.pair)
        snprintf(out, DIBS__ADVKEY_TEXT, "%" PRId32 ", %" PRId32,
                 (int32_t)(uint32_t)(bits >> 32), (int32_t)(uint32_t)bits);
    else
        snprintf(out, DIBS__ADVKEY_TEXT, "(%" PRId64 ")::bigint", key.bits);
}
