/* roster_keys.h - the names of the keys of rosters. Pure. docs/keys.md has the rules. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_ROSTER_KEYS_H
#define DIBS_STORE_REDIS_WIRE_ROSTER_KEYS_H

#include "store/redis/wire/key_escape.h"

#define DIBS__KEY_ROSTER "dibs:roster:"

/* The keys of a roster: roster, till, new. The first is also the channel of its
 * topic. The name is in braces, or has a {tag} of its own; others are escaped, which
 * a "%" behind the braces tells. */
enum { DIBS__ROSTER_KEYS = 3 };
void dibs__keys_of_roster(const char *name,
                          char out[DIBS__ROSTER_KEYS][DIBS__KEY_MAX]);

/* The name whose roster `key` is; false when it is none. */
bool dibs__key_roster_name(const char *key, char out[DIBS_NAME_MAX + 1]);

/* The texts that the keys of rosters with the beginning `begins` begin with. */
enum { DIBS__ROSTER_KEY_BEGINS = 3 };
void dibs__roster_keys_begin(const char *begins,
                             char out[DIBS__ROSTER_KEY_BEGINS][DIBS__KEY_MAX]);

#endif
