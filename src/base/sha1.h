/* sha1.h - SHA-1 (FIPS 180-4), by which others name things. Pure.
 *
 * For nothing that must withstand an attack. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SHA1_H
#define DIBS_BASE_SHA1_H

#include <stddef.h>

enum { DIBSX_SHA1_TEXT = 41 }; /* hexadecimal digits and a NUL */

void dibsx_sha1(const char *bytes, size_t len, char out[DIBSX_SHA1_TEXT]);

#endif
