/* queue_keys.h - the names of the keys of queues. Pure. docs/keys.md has the rules. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_QUEUE_KEYS_H
#define DIBS_STORE_REDIS_WIRE_QUEUE_KEYS_H

#include "store/redis/wire/key_escape.h"

#define DIBS__KEY_QUEUE "dibs:queue:"

/* The keys of a queue, in the order of lua/queue_shelf.lua. The first is the list of
 * plain items. The name is in braces, or has a {tag} of its own; others are
 * escaped, which a "%" behind the braces tells. All are in one slot. */
typedef enum dibs__queue_key {
    DIBS__QUEUE_LIST,
    DIBS__QUEUE_META,
    DIBS__QUEUE_OUT,
    DIBS__QUEUE_WAIT,
    DIBS__QUEUE_KEPT,
    DIBS__QUEUE_NEXT,
    DIBS__QUEUE_LATER,
    DIBS__QUEUE_DEAD,
    DIBS__QUEUE_IDS,
    DIBS__QUEUE_IDEND,
    DIBS__QUEUE_OWN,
    DIBS__QUEUE_LOAD,
    DIBS__QUEUE_LIMIT,
    DIBS__QUEUE_FROM,
    DIBS__QUEUE_WAS,
    DIBS__QUEUE_DONE,
    DIBS__QUEUE_KEYS
} dibs__queue_key;

typedef struct dibs__queue_names {
    char key[DIBS__QUEUE_KEYS][DIBS__KEY_MAX];
} dibs__queue_names;

void dibs__keys_of_queue(const char *name, dibs__queue_names *out);

/* The name of the queue whose META `key` is, which every queue has; false when it is
 * none. */
bool dibs__queue_key_name(const char *key, size_t len,
                          char out[DIBS_NAME_MAX + 1]);

/* The texts that the keys of queues with the beginning `begins` begin with. */
enum { DIBS__QUEUE_KEY_BEGINS = 3 };
void dibs__queue_keys_begin(const char *begins,
                            char out[DIBS__QUEUE_KEY_BEGINS][DIBS__KEY_MAX]);

#endif
