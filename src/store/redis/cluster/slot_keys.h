/* slot_keys.h - fits the command of a script to a cluster. Pure.
 *
 * All keys must be in one slot. The fence of the database becomes the fence of that
 * slot, dibs:fence:{TAG}. When there are several keys, one that never exists is
 * added after them, dibs:none:{TAG}: a server that is giving the slot away then
 * answers TRYAGAIN before the script has begun. Without it a script could begin
 * because its keys are all there, delete one and be refused when it writes it
 * anew, half done. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_SLOT_KEYS_H
#define DIBS_STORE_REDIS_CLUSTER_SLOT_KEYS_H

#include "store/redis/cluster/slot.h"
#include "store/redis/wire/resp.h"
#include <dibs/types.h>

#define DIBS__KEY_FENCE "dibs:fence"
#define DIBS__KEY_NONE  "dibs:none"

/* The words that it puts in; lives as long as the command. */
typedef struct dibs__slot_keys {
    char fence[sizeof("dibs:fence:{}") + DIBS__SLOT_TAG];
    char none[sizeof("dibs:none:{}") + DIBS__SLOT_TAG];
    char key_count[16];
} dibs__slot_keys;

/* `at` is where the keys of the command begin; the word before it says how many
 * there are. *key_at is one that decides the slot, or 0 when there are none.
 * DIBS_UNSUPPORTED when they are not in one slot. */
DIBS_MUST_CHECK dibs_status dibs__slot_keys_fit(dibs__words *words, int at,
                                                dibs__slot_keys *room,
                                                int *key_at, dibs_error *err);

#endif
