/* value.h - values inside a transaction, for the steps that change several. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_VALUE_H
#define DIBS_STORE_SQLITE_VALUE_H

#include "store/sqlite/db.h"

/* 0: there is none, or it has expired. Locks: cn, as all of these. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_value_version(dibs__sqlite_conn *cn,
                                                       const char *key,
                                                       int64_t now_wall_us,
                                                       uint64_t *out,
                                                       dibs_error *err);

/* DIBS_NOTFOUND: likewise, without a message; *out is zeroed without DIBS_OK. Free it
 * with dibsx_free(out->data). */
DIBS_MUST_CHECK dibs_status dibs__sqlite_value_read(dibs__sqlite_conn *cn,
                                                    const char *key,
                                                    int64_t now_wall_us,
                                                    dibs_value *out,
                                                    dibs_error *err);

/* Writes a value under a version, whatever is expected, and tells its topic. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_value_write(dibs__sqlite_conn *cn,
                                                     const dibs__put *put,
                                                     int64_t now_wall_us,
                                                     uint64_t version,
                                                     dibs_error *err);

/* Removes a value, and tells its topic if it was there. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_value_drop(dibs__sqlite_conn *cn,
                                                    const char *key,
                                                    int64_t now_wall_us,
                                                    dibs_error *err);

#endif
