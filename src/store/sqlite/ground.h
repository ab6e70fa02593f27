/* ground.h - checks whether the path of a database file is fit for it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_GROUND_H
#define DIBS_STORE_SQLITE_GROUND_H

#include <dibs/types.h>

/* Checks that `path` can be a database: in a folder that is there and may be
 * written, a plain file or nothing, and on a local file system, or any with any_fs.
 * *out is then its absolute path without links; free it with
 * dibsx_free().
 *   DIBS_DENIED   the folder or the file may not be written
 *   DIBS_REFUSED  anything else that is wrong with it */
DIBS_MUST_CHECK dibs_status dibs__ground_check(const char *path, bool any_fs,
                                               char **out, dibs_error *err);

/* The name of a file system type (f_type of statfs) that other machines may
 * write, or on which locks and shared memory cannot be relied on; NULL for any
 * other. Pure. */
const char *dibs__ground_network(unsigned long type);

/* The name of a common local file system, NULL when it is not known. Pure. */
const char *dibs__ground_local(unsigned long type);

#endif
