/* advisory_key.h - the advisory lock that DistributedLock.Postgres takes for a name. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_ADVISORY_KEY_H
#define DIBS_STORE_POSTGRES_ADVISORY_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* PostgreSQL has two spaces of keys, which know nothing of each other: one number
 * of 64 bits, or two of 32. */
typedef struct dibs__advkey {
    int64_t bits; /* of a pair, the first is the upper half */
    bool pair;
} dibs__advkey;

/* Pure. Up to nine characters of ASCII, "16 hexadecimal digits" and "8 digits,8
 * digits" have keys of their own; all else is hashed, so that two names may have
 * the same key, rarely. */
dibs__advkey dibs__advkey_of(const char *name);

/* As arguments of pg_advisory_lock(): "NUMBER" or "NUMBER, NUMBER". */
enum { DIBS__ADVKEY_TEXT = 48 };
void dibs__advkey_text(dibs__advkey key, char out[DIBS__ADVKEY_TEXT]);

#endif
