/* driver.h - the SQLite library, loaded when the first database is opened.
 *
 * Nothing links to libsqlite3: its functions are called through the table
 * below, `dibs__sql.step(stmt)` being sqlite3_step(stmt). */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_DRIVER_H
#define DIBS_STORE_SQLITE_DRIVER_H

#include <dibs/types.h>
#include <sqlite3.h>

#define DIBS__SQLITE_CALLS(X)                                                  \
    X(bind_blob)                                                               \
    X(bind_int64)                                                              \
    X(bind_null)                                                               \
    X(bind_text)                                                               \
    X(busy_handler)                                                            \
    X(close)                                                                   \
    X(column_blob)                                                             \
    X(column_bytes)                                                            \
    X(column_int64)                                                            \
    X(column_text)                                                             \
    X(column_type)                                                             \
    X(db_config)                                                               \
    X(errmsg)                                                                  \
    X(exec)                                                                    \
    X(extended_result_codes)                                                   \
    X(finalize)                                                                \
    X(get_autocommit)                                                          \
    X(libversion)                                                              \
    X(libversion_number)                                                       \
    X(open_v2)                                                                 \
    X(prepare_v3)                                                              \
    X(progress_handler)                                                        \
    X(reset)                                                                   \
    X(step)                                                                    \
    X(system_errno)                                                            \
    X(threadsafe)                                                              \
    X(wal_checkpoint_v2)                                                       \
    X(wal_hook)

#define DIBS__SQLITE_SLOT(call) __typeof__(sqlite3_##call) *call;

typedef struct dibs__sqlite_calls {
    DIBS__SQLITE_CALLS(DIBS__SQLITE_SLOT)
} dibs__sqlite_calls;

/* Filled by dibs__sqlite_load(), constant afterwards. */
extern dibs__sqlite_calls dibs__sql;

/* Any thread; the first success is for good. DIBS_UNAVAIL: not installed, or
 * too old, and err says what to install. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_load(dibs_error *err);

#endif
