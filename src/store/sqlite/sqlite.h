/* sqlite.h - the embedded store, as store.c sees it: on a file and in memory. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_SQLITE_H
#define DIBS_STORE_SQLITE_SQLITE_H

#include "store/store.h"

/* "sqlite:/path/file.db"; ?any_fs=1 takes any file system. */
extern const dibs__store_ops dibs__sqlite_ops;

/* "memory:" is this handle's alone; all handles of this process that open
 * "memory:NAME" share one. Gone with the last of them. */
extern const dibs__store_ops dibs__memory_ops;

#endif
