/* proc_file.h - a small file of /proc, read at once. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_PROC_FILE_H
#define DIBS_EXEC_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Reads up to `size` - 1 bytes of the file as text. False when it cannot be read or
 * is empty. System calls only, so that it may follow a fork. */
bool dibs__proc_read(int proc_fd, const char *path, char *text, size_t size);

#endif
