/* tzif_maker.h - makes the content of a zone file, right or wrong in one place. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_TZIF_MAKER_H
#define DIBS_TESTS_TZIF_MAKER_H

#include <stddef.h>
#include <stdint.h>

enum { TZIF_SIZE = 64 * 1024 + 64 };

/* What stands in the 64-bit block; counts may be lies. */
typedef struct tzif {
    char version;
    const int64_t *times;
    const uint8_t *indexes;
    uint32_t time_count;
    const int32_t *offsets; /* of the types */
    uint32_t type_count;
    uint32_t leap_count;
    const char *footer; /* with its newlines */
} tzif;

/* Writes it into `out`, which has TZIF_SIZE bytes; its length. */
size_t make_tzif(const tzif *tz, unsigned char *out);

#endif
