/* lease_entry.c - see lease_entry.h. */
/* SPDX-License-Identifier: MIT */
#include "store/lease_entry.h"
#include "base/alloc.h"

bool dibs__display_room(dibs__display *dp, size_t count)
{
    void *grown;

    if (count <= dp->room)
        return true;
    grown = dibsx_realloc_n(dp->entries, count, sizeof(*dp->entries));
    if (!grown)
        return false;
    dp->entries = grown;
    dp->room = count;
    return true;
}

void dibs__display_fini(dibs__display *dp)
{
    dibsx_free(dp->entries);
}
