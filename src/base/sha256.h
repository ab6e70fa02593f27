/* sha256.h - SHA-256 (FIPS 180-4). Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_SHA256_H
#define DIBS_BASE_SHA256_H

#include <stddef.h>

enum { DIBSX_SHA256_SIZE = 32 };
enum { DIBSX_SHA256_TEXT = 65 }; /* hexadecimal digits and a NUL */

/* Leaves nothing of the bytes behind: they may be a secret. */
void dibsx_sha256_bytes(const void *bytes, size_t len,
                        unsigned char out[DIBSX_SHA256_SIZE]);
void dibsx_sha256(const void *bytes, size_t len, char out[DIBSX_SHA256_TEXT]);

#endif
