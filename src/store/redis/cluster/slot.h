/* slot.h - the hash slots of a cluster. Pure.
 *
 * A key belongs to the slot of its tag, what is between its first "{" and the
 * first "}" after it, or of the whole key when there is no such tag or an empty
 * one. Keys that dibs has for a slot rather than for a name carry the tag of the
 * slot: the smallest number whose digits have that slot. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_CLUSTER_SLOT_H
#define DIBS_STORE_REDIS_CLUSTER_SLOT_H

#include <stddef.h>
#include <stdint.h>

enum { DIBS__SLOTS = 16384, DIBS__SLOT_TAG = 8 };

int dibs__slot_of(const char *key, size_t len);

/* Writes the tag of a slot. Any thread; the first call computes all of them. */
void dibs__slot_tag(int slot, char out[DIBS__SLOT_TAG]);

#endif
