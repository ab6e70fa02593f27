/* sha1.h - SHA-1 (FIPS 180-4), by which a server knows its scripts. Pure.
 *
 * For nothing that must withstand an attack. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SHA1_H
#define DIBS_STORE_REDIS_SHA1_H

#include <stddef.h>

enum { DIBS__SHA1_TEXT = 41 }; /* hexadecimal digits and a NUL */

void dibs__sha1(const char *bytes, size_t len, char out[DIBS__SHA1_TEXT]);

#endif
