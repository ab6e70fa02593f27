/* noun_json.h - the JSON of what the library tells of queues, topics, breakers, groups,
 * barriers and latches: the same in lists and alone. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_NOUN_JSON_H
#define DIBS_SERVE_NOUN_JSON_H

#include "base/json.h"
#include <dibs/barrier.h>
#include <dibs/breaker.h>
#include <dibs/events.h>
#include <dibs/latch.h>
#include <dibs/members.h>
#include <dibs/monitor.h>
#include <dibs/queue_admin.h>

/* Each writes the pairs of an object, without its name. */
void dibs__noun_queue(dibsx_json *js, const dibs_queue_info *info);
void dibs__noun_breaker(dibsx_json *js, const dibs_breaker_info *info);
void dibs__noun_barrier(dibsx_json *js, const dibs_barrier_state *state);
void dibs__noun_latch(dibsx_json *js, const dibs_latch_state *state);
void dibs__noun_topic(dibsx_json *js, const dibs_topic_state *state);
void dibs__noun_member(dibsx_json *js, const dibs_member_info *info);

/* "key=value" texts that tabs separate, as an object under "meta". */
void dibs__noun_meta(dibsx_json *js, const char *meta);

/* Whether the lease is an election: its holder or its waiters give a member. */
bool dibs__noun_is_election(const dibs_lease_info *info);

/* The pairs of an election. `since_ms` is how old the copy is; `parties_max` 0: all
 * candidates. */
void dibs__noun_election(dibsx_json *js, const dibs_lease_info *info,
                         int64_t since_ms, size_t parties_max);

/* The holder that leads, or NULL. */
const dibs_party *dibs__noun_leader(const dibs_lease_info *info);

#endif
