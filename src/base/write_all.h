/* write_all.h - writes bytes to a file, also where the kernel takes them in parts. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_WRITE_ALL_H
#define DIBS_BASE_WRITE_ALL_H

#include <stdbool.h>
#include <stddef.h>

/* False: errno says why, and some of them may be written. System calls only, so that
 * it may follow a fork. */
bool dibsx_write_all(int fd, const void *bytes, size_t len);

#endif
