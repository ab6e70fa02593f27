/* tzif_maker.c - makes the content of a zone file, right or wrong in one place. */
/* SPDX-License-Identifier: MIT */
#include "tzif_maker.h"

#include <string.h>

static unsigned char *put_number(unsigned char *at, uint64_t number, int width)
{
    for (int i = width - 1; i >= 0; i--)
        *at++ = (unsigned char)(number >> (8 * i));
    return at;
}

static unsigned char *put_head(unsigned char *at, char version, uint32_t leaps,
                               uint32_t times, uint32_t types)
{
    memcpy(at, "TZif", 4);
    at[4] = (unsigned char)version;
    memset(at + 5, 0, 15);
    at = put_number(at + 20, 0, 8);
    at = put_number(at, leaps, 4);
    at = put_number(at, times, 4);
    at = put_number(at, types, 4);
    return put_number(at, 4, 4);
}

size_t make_tzif(const tzif *tz, unsigned char *out)
{
    unsigned char *at = put_head(out, tz->version, 0, 0, 1);

    at = put_number(at, 0, 6);
    at = put_number(at, 0x4c4d5400, 4);
    at = put_head(at, tz->version, tz->leap_count, tz->time_count,
                  tz->type_count);
    for (uint32_t i = 0; tz->times && i < tz->time_count; i++)
        at = put_number(at, (uint64_t)tz->times[i], 8);
    for (uint32_t i = 0; tz->times && i < tz->time_count; i++)
        *at++ = tz->indexes[i];
    for (uint32_t i = 0; tz->offsets && i < tz->type_count; i++)
        at = put_number(put_number(at, (uint32_t)tz->offsets[i], 4), 0, 2);
    at = put_number(at, 0x4c4d5400, 4);
    for (uint32_t i = 0; i < tz->leap_count; i++)
        at = put_number(put_number(at, 0, 8), 0, 4);
    memcpy(at, tz->footer, strlen(tz->footer));
    return (size_t)(at - out) + strlen(tz->footer);
}
