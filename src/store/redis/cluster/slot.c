/* slot.c - the hash slots of a cluster: CRC16 as XMODEM has it, and tags.
 *
 * Owns the table of tags, which is made once. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/cluster/slot.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { POLYNOMIAL = 0x1021, TAG_MAX = 9999999 };

static uint16_t crc_of[256]; /* of each byte */
static uint32_t tag_of[DIBS__SLOTS];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;
static pthread_once_t tag_once = PTHREAD_ONCE_INIT;

static void make_crc(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned crc = byte << 8;

        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ POLYNOMIAL : crc << 1;
        crc_of[byte] = (uint16_t)crc;
    }
}

static int hash_text(const char *text, size_t len)
{
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned at = (crc >> 8 ^ (unsigned char)text[i]) & 0xff;

        crc = (crc << 8 ^ crc_of[at]) & 0xffff;
    }
    return (int)(crc % DIBS__SLOTS);
}

int dibs__slot_of(const char *key, size_t len)
{
    const char *open = memchr(key, '{', len);
    const char *close = NULL;

    pthread_once(&crc_once, make_crc);
    if (open)
        close = memchr(open, '}', len - (size_t)(open - key));
    if (!close || close == open + 1)
        return hash_text(key, len);
    return hash_text(open + 1, (size_t)(close - open) - 1);
}

/* Numbers in order; the first that has a slot is its tag, plus one, as 0 says
 * that there is none yet. */
static void make_tags(void)
{
    int missing = DIBS__SLOTS;

    for (uint32_t number = 0; missing > 0 && number <= TAG_MAX; number++) {
        char digits[DIBS__SLOT_TAG];
        int len = snprintf(digits, sizeof(digits), "%u", number);
        int slot = dibs__slot_of(digits, (size_t)len);

        if (tag_of[slot] != 0)
            continue;
        tag_of[slot] = number + 1;
        missing--;
    }
    assert(missing == 0);
}

void dibs__slot_tag(int slot, char out[DIBS__SLOT_TAG])
{
    pthread_once(&tag_once, make_tags);
    snprintf(out, DIBS__SLOT_TAG, "%u", tag_of[slot] - 1);
}
