/* env_file.h - variables from a file of NAME=value lines. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_EXEC_ENV_FILE_H
#define DIBS_EXEC_ENV_FILE_H

#include <dibs/types.h>

#define DIBS__ENV_FILE_MAX ((size_t)256 * 1024)

/* Called for each variable, as "NAME=value". False ends the reading, as done. */
typedef bool dibs__env_fn(void *arg, const char *entry);

/* Reads the file. Empty lines and those that begin with # are left out; "export "
 * before a name is passed over, and so is a pair of quotes around a value. DIBS_INVALID: err names
 * the file, and the line that is none. */
DIBS_MUST_CHECK dibs_status dibs__env_file_read(const char *path,
                                                dibs__env_fn *each, void *arg,
                                                dibs_error *err);

#endif
