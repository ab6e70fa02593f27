/* suggest.c - the nearest known word, by edits of single letters. Pure. */
/* SPDX-License-Identifier: MIT */
#include "base/suggest.h"

#include <string.h>

enum { WORD_MAX = 40, SHORT_MAX = 4 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Letters put in, left out, replaced or swapped with their neighbour. */
static size_t edits(const char *a, size_t alen, const char *b, size_t blen)
{
    size_t row[3][WORD_MAX + 1];

    for (size_t j = 0; j <= blen; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= alen; i++) {
        size_t *now = row[i % 3], *up = row[(i + 2) % 3];

        now[0] = i;
        for (size_t j = 1; j <= blen; j++) {
            size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;

            now[j] = least(least(up[j] + 1, now[j - 1] + 1), up[j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], row[(i + 1) % 3][j - 2] + 1);
        }
    }
    return row[alen % 3][blen];
}

/* Two edits make of a short word almost any other. */
static size_t most_edits(size_t len)
{
    return len <= SHORT_MAX ? 1 : 2;
}

void dibsx_suggest_offer(dibsx_suggest *sg, const char *candidate)
{
    size_t len = sg->len ? sg->len : strlen(sg->typed);
    size_t other = strlen(candidate), distance;

    if (len == 0 || len > WORD_MAX || other > WORD_MAX)
        return;
    if (len >= 3 && other > len && memcmp(sg->typed, candidate, len) == 0)
        distance = 1; /* a beginning of it */
    else
        distance = edits(sg->typed, len, candidate, other);
    if (distance > most_edits(len) || distance >= len || distance >= other)
        return;
    if (!sg->best || distance < sg->distance) {
        sg->best = candidate;
        sg->distance = distance;
    }
}
