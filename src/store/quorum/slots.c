/* slots.c - the search for a free slot of a name: see slots.h. */
/* SPDX-License-Identifier: MIT */
#include "store/quorum/slots.h"
#include <stdlib.h>
#include <string.h>

static uint64_t slot_bit(uint32_t slot)
{
    return (uint64_t)1 << (slot - 1);
}

/* Any of the slots that are not in the set; 0 when all are. */
static uint32_t draw_slot(dibs__slots *sl, uint64_t out)
{
    uint32_t open[DIBS__NAME_SLOTS];
    uint32_t count = 0;

    for (uint32_t slot = 1; slot <= sl->capacity; slot++)
        if (!(out & slot_bit(slot)))
            open[count++] = slot;
    return count > 0 ? open[dibsx_prng_below(&sl->prng, count)] : 0;
}

/* The number of nodes where another owner has the slot. */
static size_t with_slot(const dibs__ballot *bl, uint32_t slot)
{
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += bl->votes[i].in && bl->votes[i].rc == DIBS_BUSY &&
               (bl->votes[i].taken & slot_bit(slot));
    return sum;
}

void dibs__slots_init(dibs__slots *sl, uint32_t capacity, const char *owner)
{
    char part[17] = "";

    *sl = (dibs__slots){.capacity = capacity};
    memcpy(part, owner, strnlen(owner, sizeof(part) - 1));
    sl->prng.state = strtoull(part, NULL, 16);
    sl->slot = draw_slot(sl, 0);
}

void dibs__slots_move(dibs__slots *sl, const dibs__ballot *bl,
                      uint32_t doubtful)
{
    uint64_t doubted = 0;
    uint32_t next;

    if (sl->capacity == 0)
        return;
    sl->barred |= slot_bit(sl->slot);
    for (uint32_t slot = 1; slot <= sl->capacity; slot++) {
        size_t count = with_slot(bl, slot);

        if (count > bl->count - dibs__majority(bl->count))
            sl->barred |= slot_bit(slot);
        else if (count > 0)
            doubted |= slot_bit(slot);
    }
    sl->doubtful |= doubtful;
    next = draw_slot(sl, sl->barred | doubted);
    if (next == 0)
        next = draw_slot(sl, sl->barred);
    sl->moves = next > 0;
    sl->slot = next > 0 ? next : sl->slot;
}

uint64_t dibs__slots_fence(const dibs__slots *sl, uint64_t least)
{
    if (sl->capacity == 0)
        return least;
    return least + (sl->slot - 1 - least) % DIBS__NAME_SLOTS;
}
