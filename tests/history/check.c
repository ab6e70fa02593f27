/* check.c - whether a history kept the promises.
 *
 * For each key, over what the workers relied on:
 *   exclusion   a writer's span touches no other; permits in use never add up to
 *               more than the capacity
 *   fence       fences are distinct, and a lease that was granted before another
 *               was asked for has the smaller one
 *   order       who had a place before another asked for the name was served
 *               first, unless its process was stopped while it waited
 */
/* SPDX-License-Identifier: MIT */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct edge {
    int64_t at_ns;
    int step; /* +1 begins, -1 ends */
    const record *rec;
} edge;

bool history_add(history *hs, const record_log *log)
{
    size_t count = atomic_load(&log->count);

    if (hs->count + count > hs->room) {
        size_t room = 2 * (hs->count + count);
        record *records = realloc(hs->records, room * sizeof(*records));
        uint32_t *workers;

        if (records)
            hs->records = records;
        workers = realloc(hs->workers, room * sizeof(*workers));
        if (workers)
            hs->workers = workers;
        if (!records || !workers)
            return false;
        hs->room = room;
    }
    for (size_t i = 0; i < count; i++) {
        hs->records[hs->count] = log->records[i];
        hs->workers[hs->count++] = log->worker;
    }
    return true;
}

void history_fini(history *hs)
{
    free(hs->records);
    free(hs->workers);
}

static void tell(const char *what, const record *a, const record *b)
{
    printf("violation: %s on key %" PRIu32 ": fence %" PRIu64
           " relied on [%" PRId64 ", %" PRId64 "], fence %" PRIu64
           " relied on [%" PRId64 ", %" PRId64 "]\n",
           what, a->key, a->fence, a->granted_ns, a->believed_ns, b->fence,
           b->granted_ns, b->believed_ns);
}

static int by_time(const void *a, const void *b)
{
    const edge *x = a, *y = b;

    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    return x->step - y->step; /* What ends goes before what begins. */
}

static int by_fence(const void *a, const void *b)
{
    const record *x = *(const record *const *)a;
    const record *y = *(const record *const *)b;

    return x->fence < y->fence ? -1 : x->fence > y->fence;
}

static int by_granted(const void *a, const void *b)
{
    const record *x = *(const record *const *)a;
    const record *y = *(const record *const *)b;

    return x->granted_ns < y->granted_ns ? -1 : x->granted_ns > y->granted_ns;
}

static int by_invoked(const void *a, const void *b)
{
    const record *x = *(const record *const *)a;
    const record *y = *(const record *const *)b;

    return x->invoked_ns < y->invoked_ns ? -1 : x->invoked_ns > y->invoked_ns;
}

static void *must_have(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);

    if (!memory) {
        fprintf(stderr, "history: no memory for %zu records\n", count);
        exit(2);
    }
    return memory;
}

/* Sweeps over the spans that were relied on. */
static size_t check_exclusion(const record **held, size_t count)
{
    edge *edges = must_have(2 * count, sizeof(*edges));
    const record *last = NULL;
    int writers = 0, readers = 0, permits = 0;
    size_t bad = 0;

    for (size_t i = 0; i < count; i++) {
        edges[2 * i] = (edge){held[i]->granted_ns, 1, held[i]};
        edges[2 * i + 1] = (edge){held[i]->believed_ns, -1, held[i]};
    }
    qsort(edges, 2 * count, sizeof(*edges), by_time);
    for (size_t i = 0; i < 2 * count; i++) {
        const record *rec = edges[i].rec;

        /* A lease that was looked at once has a span of no length. */
        if (rec->granted_ns == rec->believed_ns)
            continue;
        writers += rec->exclusive ? edges[i].step : 0;
        readers += !rec->exclusive && !rec->permits ? edges[i].step : 0;
        permits += edges[i].step * (int)rec->permits;
        if (edges[i].step > 0 &&
            (writers > 1 || (writers && readers) || permits > CAPACITY) &&
            bad++ == 0)
            tell("two at once", last ? last : rec, rec);
        if (edges[i].step > 0)
            last = rec;
    }
    free(edges);
    return bad;
}

static size_t check_distinct(const record **held, size_t count)
{
    size_t bad = 0;

    qsort(held, count, sizeof(*held), by_fence);
    for (size_t i = 1; i < count; i++)
        if (held[i]->fence == held[i - 1]->fence && bad++ == 0)
            tell("a fence twice", held[i - 1], held[i]);
    return bad;
}

/* Every lease that was there before this one was asked for has a smaller fence. */
static size_t check_fence_order(const record **held, size_t count)
{
    const record **asked = must_have(count, sizeof(*asked));
    const record *highest = NULL;
    size_t bad = 0, at = 0;

    memcpy(asked, held, count * sizeof(*asked));
    qsort(held, count, sizeof(*held), by_granted);
    qsort(asked, count, sizeof(*asked), by_invoked);
    for (size_t i = 0; i < count; i++) {
        for (; at < count && held[at]->granted_ns < asked[i]->invoked_ns; at++)
            if (!highest || held[at]->fence > highest->fence)
                highest = held[at];
        if (highest && highest->fence >= asked[i]->fence && bad++ == 0)
            tell("a fence that fell", highest, asked[i]);
    }
    free(asked);
    return bad;
}

static bool was_stopped(const history *hs, const record *rec)
{
    uint32_t worker = hs->workers[rec - hs->records];

    for (size_t i = 0; i < hs->stop_count; i++)
        if (hs->stops[i].worker == worker &&
            hs->stops[i].from_ns < rec->granted_ns &&
            (hs->stops[i].to_ns == 0 || hs->stops[i].to_ns > rec->invoked_ns))
            return true;
    return false;
}

/* In the order of fences nobody asked after another had its place. */
static size_t check_order(const history *hs, const record **held, size_t count)
{
    const record *latest = NULL;
    size_t bad = 0;

    qsort(held, count, sizeof(*held), by_fence);
    for (size_t i = 0; i < count; i++) {
        const record *rec = held[i];

        if (latest && rec->queued_ns && latest->invoked_ns > rec->queued_ns &&
            !was_stopped(hs, rec) && bad++ == 0)
            tell("out of order", latest, rec);
        if (!latest || rec->invoked_ns > latest->invoked_ns)
            latest = rec;
    }
    return bad;
}

static size_t check_key(const history *hs, uint32_t key, size_t *held_count)
{
    const record **held = must_have(hs->count, sizeof(*held));
    size_t count = 0, bad;

    for (size_t i = 0; i < hs->count; i++)
        if (hs->records[i].key == key && hs->records[i].granted_ns)
            held[count++] = &hs->records[i];
    bad = check_exclusion(held, count);
    bad += check_distinct(held, count);
    bad += check_fence_order(held, count);
    if (kind_of(key) == KEY_MUTEX)
        bad += check_order(hs, held, count);
    *held_count += count;
    free(held);
    return bad;
}

size_t history_check(const history *hs)
{
    size_t bad = 0, held = 0;

    for (uint32_t key = 0; key < KEYS; key++)
        bad += check_key(hs, key, &held);
    printf("asked %zu, held %zu, violations %zu\n", hs->count, held, bad);
    return bad;
}
