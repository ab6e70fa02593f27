/* record.c - counts acquires and leases; see record.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/stats/record.h"

#include "core/stats/name_table.h"
#include "core/stats/shared_stats.h"

static dibs__name_row *record_of(const dibs_lock *lock)
{
    dibs__name_table *table = dibs__name_table_of(lock->cl);

    return table ? dibs__name_table_use(table, lock->name) : NULL;
}

static uint64_t us_of(dibsx_nsec span)
{
    return span > 0 ? (uint64_t)span / 1000 : 0;
}

void dibs__record_acquired(dibs_lock *lock, dibs_status rc, dibsx_nsec waited,
                           bool contended)
{
    dibs__name_row *name = record_of(lock);

    if (!name)
        return;
    dibs__counts_acquired(&name->all, rc, us_of(waited), contended);
    if (!lock->cl->share_stats)
        return;
    dibs__counts_acquired(&name->fresh, rc, us_of(waited), contended);
    dibs__shared_stats_note(lock->cl);
}

void dibs__record_ended(dibs_lock *lock, bool lost, dibsx_nsec held)
{
    dibs__name_row *name = record_of(lock);

    if (!name)
        return;
    dibs__counts_ended(&name->all, lost, us_of(held));
    if (!lock->cl->share_stats)
        return;
    dibs__counts_ended(&name->fresh, lost, us_of(held));
    dibs__shared_stats_note(lock->cl);
}

void dibs__record_use_ended(dibs_lock *lock, bool valid)
{
    dibs__stats *stats = &lock->cl->stats;

    if (lock->lease.fence == 0 || lock->lease.announced || lock->acquire ||
        lock->sticky.idle)
        return;
    dibs__uncount(&stats->held);
    dibs__count(valid ? &stats->released : &stats->lost);
    dibs__record_ended(lock, !valid, dibsx_now() - lock->lease.held_at);
}
