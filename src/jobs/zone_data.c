/* zone_data.c - reads a TZif file (RFC 8536): its 64-bit block and its rule. Pure.
 *
 * The content may be anything: every count and index is checked before it is used. */
/* SPDX-License-Identifier: MIT */
#include "jobs/zone_data.h"
#include "base/alloc.h"
#include "base/fail.h"

#include <string.h>

enum {
    HEAD_SIZE = 44,
    COUNTS_AT = 20,
    TYPE_SIZE = 6,
    TYPES_MAX = 256,
    OFFSET_MIN_S = -25 * 3600, /* both are out of bounds */
    OFFSET_MAX_S = 26 * 3600
};

typedef struct counts {
    uint32_t universal;
    uint32_t standard;
    uint32_t leaps;
    uint32_t times;
    uint32_t types;
    uint32_t letters;
} counts;

/* The file, and how far it was read. */
typedef struct source {
    const unsigned char *bytes;
    size_t len;
    size_t at;
} source;

static uint32_t get_u32(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

static int64_t get_i64(const unsigned char *at)
{
    return (int64_t)((uint64_t)get_u32(at) << 32 | get_u32(at + 4));
}

/* NULL: fine. Otherwise why the head is none. */
static const char *read_head(source *src, counts *out)
{
    const unsigned char *head = src->bytes + src->at;

    if (src->len - src->at < HEAD_SIZE || memcmp(head, "TZif", 4) != 0)
        return "it is not a TZif file";
    if (head[4] < '2')
        return "it is of version 1, which has no 64-bit times";
    out->universal = get_u32(head + COUNTS_AT);
    out->standard = get_u32(head + COUNTS_AT + 4);
    out->leaps = get_u32(head + COUNTS_AT + 8);
    out->times = get_u32(head + COUNTS_AT + 12);
    out->types = get_u32(head + COUNTS_AT + 16);
    out->letters = get_u32(head + COUNTS_AT + 20);
    src->at += HEAD_SIZE;
    return NULL;
}

/* The size of the block below a head, whose times have `width` bytes. */
static uint64_t block_size(const counts *ct, unsigned width)
{
    return (uint64_t)ct->times * (width + 1) + (uint64_t)ct->types * TYPE_SIZE +
           ct->letters + (uint64_t)ct->leaps * (width + 4) + ct->standard +
           ct->universal;
}

static const char *skip_block(source *src, const counts *ct, unsigned width)
{
    uint64_t size = block_size(ct, width);

    if (size > src->len - src->at)
        return "it is cut off";
    src->at += (size_t)size;
    return NULL;
}

static const char *check_counts(const counts *ct)
{
    if (ct->leaps)
        return "it has leap seconds, which are not supported; take the zone "
               "without right/";
    if (ct->times > DIBS__ZONE_SHIFTS_MAX)
        return "it has more than 2000 transitions";
    if (ct->types < 1 || ct->types > TYPES_MAX)
        return "it does not have 1 to 256 local time types";
    return NULL;
}

/* Keeps a shift, but for one that changes no more than a name. */
static void add_shift(dibs__zone_data *data, int64_t at, int32_t offset_s)
{
    int32_t last_s = data->shift_count
                         ? data->shifts[data->shift_count - 1].offset_s
                         : data->first_s;

    data->known_until = at;
    if (offset_s != last_s)
        data->shifts[data->shift_count++] = (dibs__shift){at, offset_s};
}

/* `block` is whole, and data->shifts has room for its times. */
static const char *
read_block(dibs__zone_data *data, const counts *ct, const unsigned char *block)
{
    const unsigned char *indexes = block + (size_t)ct->times * 8;
    const unsigned char *types = indexes + ct->times;

    for (uint32_t i = 0; i < ct->types; i++) {
        int32_t offset_s = (int32_t)get_u32(types + (size_t)i * TYPE_SIZE);

        if (offset_s <= OFFSET_MIN_S || offset_s >= OFFSET_MAX_S)
            return "an offset from UTC is out of bounds";
    }
    data->first_s = (int32_t)get_u32(types);
    data->known_until = INT64_MIN;
    for (uint32_t i = 0; i < ct->times; i++) {
        int64_t at = get_i64(block + (size_t)i * 8);

        if (i > 0 && at <= data->known_until)
            return "its transitions are not in order";
        if (indexes[i] >= ct->types)
            return "a transition names a type that is not there";
        add_shift(data, at,
                  (int32_t)get_u32(types + (size_t)indexes[i] * TYPE_SIZE));
    }
    return NULL;
}

/* The rule stands between two newlines, and may be empty. */
static const char *read_footer(dibs__zone_data *data, const source *src)
{
    const unsigned char *begin = src->bytes + src->at;
    size_t left = src->len - src->at;
    const unsigned char *end;

    if (left < 2 || begin[0] != '\n')
        return "its rule at the end is missing";
    end = memchr(begin + 1, '\n', left - 1);
    if (!end)
        return "its rule at the end is cut off";
    if (end == begin + 1)
        return NULL;
    if (!dibs__rule_parse((const char *)begin + 1, (size_t)(end - begin - 1),
                          &data->rule))
        return "its rule at the end is no TZ string";
    if (data->shift_count == 0 && !data->rule.has_summer)
        data->first_s = data->rule.standard_s;
    return NULL;
}

static const char *read_file(dibs__zone_data *data, source *src, bool *short_of)
{
    counts ct;
    const char *why = read_head(src, &ct);
    const unsigned char *block;

    if (!why)
        why = skip_block(src, &ct, 4);
    if (!why)
        why = read_head(src, &ct);
    if (!why)
        why = check_counts(&ct);
    block = src->bytes + src->at;
    if (!why)
        why = skip_block(src, &ct, 8);
    if (why)
        return why;
    data->shifts = dibsx_zalloc_n(ct.times ? ct.times : 1, sizeof(dibs__shift));
    *short_of = !data->shifts;
    if (*short_of)
        return NULL;
    why = read_block(data, &ct, block);
    return why ? why : read_footer(data, src);
}

dibs_status
dibs__zone_data_read(dibs__zone_data *data, const char *path,
                     const unsigned char *bytes, size_t len, dibs_error *err)
{
    source src = {.bytes = bytes, .len = len};
    bool short_of = false;
    const char *why;

    *data = (dibs__zone_data){0};
    why = read_file(data, &src, &short_of);
    if (!why && !short_of)
        return DIBS_OK;
    dibs__zone_data_fini(data);
    if (short_of)
        return dibsx_nomem(err, "the zone");
    return dibsx_fail(err, DIBS_INVALID, "cannot use %.100s as a zone: %s",
                      path, why);
}

void dibs__zone_data_fini(dibs__zone_data *data)
{
    dibsx_free(data->shifts);
    *data = (dibs__zone_data){0};
}
