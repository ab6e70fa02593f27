/* roster_list.h - the rosters step, and the heads of rosters in replies; store/roster.h
 * has the contract. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_ROSTER_LIST_H
#define DIBS_STORE_REDIS_ROSTER_LIST_H

#include "store/redis/wire/reply.h"
#include "store/roster.h"

/* Reads the items kind gen need here, of which the first is `at`; false: they are odd. */
bool dibs__roster_head_read(const redisReply *reply, size_t at,
                            dibs__roster_head *out);

dibs_status
dibs__redis_rosters(struct dibs__store *st, const dibs__roster_query *query,
                    dibsx_nsec deadline, dibs__roster_fn *each, void *arg,
                    dibs_error *err);

#endif
