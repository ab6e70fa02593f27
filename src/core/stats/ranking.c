/* ranking.c - names in the order of their contention; see ranking.h. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/ranking.h"

#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 64 };

static void free_item(dibs__ranked *item)
{
    dibsx_free((char *)(uintptr_t)item->stats.name);
    dibsx_free((void *)(uintptr_t)item->stats.wait_counts);
    dibsx_free((void *)(uintptr_t)item->stats.hold_counts);
}

static void cut_to(dibs__ranking *rk, size_t count)
{
    while (rk->count > count)
        free_item(&rk->items[--rk->count]);
}

void dibs__ranking_fini(dibs__ranking *rk)
{
    cut_to(rk, 0);
    dibsx_free(rk->items);
    *rk = (dibs__ranking){0};
}

static int compare_falling(uint64_t a, uint64_t b)
{
    return (a < b) - (a > b);
}

static int by_contention(const void *one, const void *other)
{
    const dibs__ranked *a = one, *b = other;
    int order = compare_falling(a->stats.contended, b->stats.contended);

    if (order == 0)
        order = compare_falling(a->waited_us, b->waited_us);
    return order ? order : strcmp(a->stats.name, b->stats.name);
}

static void sort_items(dibs__ranking *rk)
{
    if (rk->count > 1)
        qsort(rk->items, rk->count, sizeof(rk->items[0]), by_contention);
}

/* Makes room for one more. At twice the number that is kept, the lower half is
 * dropped. */
static bool have_room(dibs__ranking *rk)
{
    size_t room = rk->room ? 2 * rk->room : ROOM_FIRST;
    dibs__ranked *items;

    if (rk->count < rk->room)
        return true;
    if (rk->count == 2 * (size_t)DIBS__RANKING_MAX) {
        sort_items(rk);
        cut_to(rk, DIBS__RANKING_MAX);
        return true;
    }
    items = dibsx_realloc_n(rk->items, room, sizeof(*items));
    if (!items)
        return false;
    rk->items = items;
    rk->room = room;
    return true;
}

bool dibs__ranking_add(dibs__ranking *rk, const char *name,
                       const dibs__counts *counts, uint64_t waiting)
{
    char *copy = dibsx_strdup(name);
    dibs__ranked *item;

    if (!copy || !have_room(rk)) {
        dibsx_free(copy);
        return false;
    }
    item = &rk->items[rk->count++];
    dibs__counts_show(counts, waiting, &item->stats);
    item->stats.name = copy;
    item->stats.wait_counts =
        dibs__histogram_copy_counts(&counts->wait,
                                    &item->stats.wait_counts_len);
    item->stats.hold_counts =
        dibs__histogram_copy_counts(&counts->hold,
                                    &item->stats.hold_counts_len);
    item->waited_us = counts->wait.total_us;
    if ((counts->wait.used && !item->stats.wait_counts) ||
        (counts->hold.used && !item->stats.hold_counts)) {
        free_item(item);
        rk->count--;
        return false;
    }
    return true;
}

void dibs__ranking_show(dibs__ranking *rk, dibs_name_stats_fn *each, void *arg)
{
    sort_items(rk);
    cut_to(rk, DIBS__RANKING_MAX);
    for (size_t i = 0; i < rk->count; i++)
        if (!each(&rk->items[i].stats, arg))
            break;
}
