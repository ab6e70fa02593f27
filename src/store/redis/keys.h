/* keys.h - the names of keys. Pure. docs/keys.md has the rules.
 *
 * The key of a lock is its name, so that people find it. Its further keys share
 * its hash slot: they begin with the name when that has a {tag} of its own, else
 * with the name in braces. Names for which this would not hold are escaped. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_KEYS_H
#define DIBS_STORE_REDIS_KEYS_H

#include "store/redis/cluster/slot_keys.h" /* DIBS__KEY_FENCE */
#include "store/redis/wire/key_escape.h"
#include "store/redis/wire/resp.h"
#include <dibs/types.h>

#define DIBS__KEY_ESCAPE "dibs:lock:"
#define DIBS__KEY_VALUE  "dibs:value:"
#define DIBS__KEY_INDEX  "dibs:index:"
#define DIBS__KEY_LOG    "dibs:log:"
#define DIBS__KEY_FROM   "dibs:from:"
#define DIBS__KEY_RATE   "dibs:rate:"
#define DIBS__KEY_METER  "dibs:meter:"

enum { DIBS__KEYS = 4 };

/* The keys of a lock: lock, party, queue, place. */
typedef struct dibs__keys {
    size_t len[DIBS__KEYS];
    char key[DIBS__KEYS][DIBS__KEY_MAX];
} dibs__keys;

void dibs__keys_of(const char *name, dibs__keys *out);

/* Appends all of them to a command, which borrows them. */
void dibs__keys_add(const dibs__keys *keys, dibs__words *words);

/* The name whose lock or queue `key` is; false when it is neither. */
bool dibs__key_name(const char *key, size_t len, char out[DIBS_NAME_MAX + 1]);

/* The texts that the keys of names with the beginning `begins` begin with. */
enum { DIBS__KEY_BEGINS = 4 };
void dibs__keys_begin(const char *begins,
                      char out[DIBS__KEY_BEGINS][DIBS__KEY_MAX]);

/* The key of a value, an index, a log and a rate, of which the length is returned. */
size_t dibs__key_value(const char *name, char out[DIBS__KEY_MAX]);
size_t dibs__key_index(const char *name, char out[DIBS__KEY_MAX]);
size_t dibs__key_log(const char *topic, char out[DIBS__KEY_MAX]);
/* The writers of a log, in the slot of its key: those of this time, and of the time
 * before. */
void dibs__keys_writers(const char *topic, char from[DIBS__KEY_MAX],
                        char was[DIBS__KEY_MAX]);
size_t dibs__key_rate(const char *name, char out[DIBS__KEY_MAX]);

/* The name in a key that is no more than that behind its head, as DIBS__KEY_VALUE; false:
 * it is none. */
bool dibs__key_tail(const char *head, const char *key, size_t len,
                    char out[DIBS_NAME_MAX + 1]);

/* The key of the meter of a value, which is in the slot of the value's. */
size_t dibs__key_meter(const char *name, char out[DIBS__KEY_MAX]);

#endif
