/* told.c - which grants and ends of leases the feed has told already; see told.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/told.h"
#include "base/hash.h"
#include <string.h>

void dibs__told_init(dibs__serve_told *told)
{
    pthread_mutex_init(&told->mutex, NULL);
}

void dibs__told_fini(dibs__serve_told *told)
{
    pthread_mutex_destroy(&told->mutex);
}

/* Never 0, which is the mark of an empty place. */
static uint64_t key_of(const char *name, uint64_t fence, bool ended)
{
    const uint64_t hash = dibsx_hash_text(name);

    return (hash << 32 ^ fence << 1 ^ (uint64_t)ended) | UINT64_C(1) << 63;
}

/* Locks: told->mutex. */
static bool remember(dibs__serve_told *told, uint64_t key)
{
    uint64_t *keys = told->keys[(key ^ key >> 32) % DIBS__TOLD_PLACES];

    for (size_t i = 0; i < DIBS__TOLD_DEPTH; i++)
        if (keys[i] == key)
            return false;
    memmove(keys + 1, keys, (DIBS__TOLD_DEPTH - 1) * sizeof(*keys));
    keys[0] = key;
    return true;
}

bool dibs__told_add(dibs__serve_told *told, const char *name, uint64_t fence,
                    bool ended)
{
    bool fresh;

    pthread_mutex_lock(&told->mutex);
    fresh = remember(told, key_of(name, fence, ended));
    pthread_mutex_unlock(&told->mutex);
    return fresh;
}

static void count(dibs__told_counts *counts, const dibs_lease_event *event)
{
    const bool granted = event->kind == DIBS_LEASE_ACQUIRED;

    counts->granted += granted;
    counts->ended += !granted;
    counts->lost += event->kind == DIBS_LEASE_LOST;
    if (granted && counts->wait_count < DIBS__SERIES_WAITS_MAX)
        counts->waits_ms[counts->wait_count++] = event->span_ms;
}

bool dibs__told_event(dibs__serve_told *told, const dibs_lease_event *event)
{
    const bool missed = event->kind == DIBS_LEASE_MISSED;
    bool fresh;

    pthread_mutex_lock(&told->mutex);
    if (missed)
        told->missed += event->missed;
    fresh =
        !missed && remember(told, key_of(event->name, event->fence,
                                         event->kind != DIBS_LEASE_ACQUIRED));
    if (fresh)
        count(&told->counts, event);
    pthread_mutex_unlock(&told->mutex);
    return fresh;
}

void dibs__told_take(dibs__serve_told *told, dibs__told_counts *out)
{
    pthread_mutex_lock(&told->mutex);
    *out = told->counts;
    told->counts = (dibs__told_counts){0};
    pthread_mutex_unlock(&told->mutex);
}

uint64_t dibs__told_missed(dibs__serve_told *told)
{
    uint64_t missed;

    pthread_mutex_lock(&told->mutex);
    missed = told->missed;
    pthread_mutex_unlock(&told->mutex);
    return missed;
}
