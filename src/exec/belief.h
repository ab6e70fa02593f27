/* belief.h - until when a node may believe in its lease: a page that the node shares
 * with the guards of all its commands. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_BELIEF_H
#define DIBS_EXEC_BELIEF_H

#include "base/clock.h"
#include <stdatomic.h>

/* Moments are on dibsx_now(), or DIBSX_NEVER. */
typedef struct dibs__belief {
    _Atomic int64_t kill_at; /* by the node: when guards kill */
    _Atomic int64_t last_at; /* by the node: ... and backstops, if need be */
    _Atomic int64_t late;    /* by guards: how late they are woken */
    _Atomic uint32_t beats;  /* by the executor: how often the node asked it */
} dibs__belief;

/* How long before the end of a lease its commands are killed. Guard and backstop have
 * a half of it each, and each is as late as guards have been lately. For short leases
 * it is a part of the ttl, so that renewal comes first. */
int64_t dibs__belief_margin_ms(int64_t ttl_ms, dibsx_nsec late);

#endif
