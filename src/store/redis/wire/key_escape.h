/* key_escape.h - how names are written in keys where they cannot stand as they are.
 * Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_KEY_ESCAPE_H
#define DIBS_STORE_REDIS_WIRE_KEY_ESCAPE_H

#include <dibs/types.h>

/* An escaped byte takes three; the rest is for what is put around a name. */
enum { DIBS__KEY_MAX = 3 * DIBS_NAME_MAX + 32 };

/* Writes a "%" and two digits for each of the bytes %{}~; returns the length. */
size_t dibs__key_escape(const char *name, char *out);

/* False when it is not how dibs__key_escape() writes, or too long. */
bool dibs__key_unescape(const char *text, char out[DIBS_NAME_MAX + 1]);

#endif
