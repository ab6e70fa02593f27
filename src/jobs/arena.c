/* arena.c - memory that is freed all at once, in blocks of a few kilobytes. */
/* SPDX-License-Identifier: MIT */
#include "jobs/arena.h"

#include "base/alloc.h"
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK_SIZE = 4000 };

typedef struct block {
    struct block *next;
    size_t used;
    size_t room;
    alignas(max_align_t) char bytes[];
} block;

struct dibs__arena {
    block *first; /* the one that is filled */
    bool failed;
};

dibs__arena *dibs__arena_new(void)
{
    return dibsx_zalloc(sizeof(dibs__arena));
}

void dibs__arena_free(dibs__arena *arena)
{
    if (!arena)
        return;
    for (block *bl = arena->first, *next; bl; bl = next) {
        next = bl->next;
        dibsx_free(bl);
    }
    dibsx_free(arena);
}

static block *add_block(dibs__arena *arena, size_t need)
{
    size_t room = need > BLOCK_SIZE ? need : BLOCK_SIZE;
    block *bl = dibsx_zalloc(sizeof(*bl) + room);

    if (!bl)
        return NULL;
    bl->room = room;
    bl->next = arena->first;
    arena->first = bl;
    return bl;
}

void *dibs__arena_take(dibs__arena *arena, size_t count, size_t size)
{
    const size_t unit = alignof(max_align_t);
    block *bl = arena->first;
    size_t need;
    void *out;

    if (arena->failed || (size && count > (SIZE_MAX / 2) / size)) {
        arena->failed = true;
        return NULL;
    }
    need = (count * size + unit - 1) / unit * unit;
    if (!bl || bl->room - bl->used < need)
        bl = add_block(arena, need);
    if (!bl) {
        arena->failed = true;
        return NULL;
    }
    out = bl->bytes + bl->used;
    bl->used += need;
    return out;
}

char *dibs__arena_text(dibs__arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    char *out = dibs__arena_take(arena, size, 1);

    if (out)
        memcpy(out, text, size);
    return out;
}

bool dibs__arena_ok(const dibs__arena *arena)
{
    return !arena->failed;
}

size_t dibs__arena_bytes(const dibs__arena *arena)
{
    size_t bytes = sizeof(*arena);

    for (const block *bl = arena->first; bl; bl = bl->next)
        bytes += sizeof(*bl) + bl->room;
    return bytes;
}
