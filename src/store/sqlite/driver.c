/* driver.c - the SQLite library, loaded when the first database is opened.
 *
 * Owns the table of its functions. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/driver.h"
#include "base/dynlib.h"
#include "base/fail.h"
#include "base/once.h"

/* Row values and upserts need it, and 3.24 is what the oldest system that is
 * still maintained has. */
enum { OLDEST = 3024000 };

#define CALL(call) {"sqlite3_" #call, (void **)&dibs__sql.call},

dibs__sqlite_calls dibs__sql;

static const dibsx_dynlib_call calls[] = {DIBS__SQLITE_CALLS(CALL)};
static dibsx_once once = DIBSX_ONCE_INIT;

static dibs_status load_sqlite(dibs_error *err)
{
    dibs_status rc = dibsx_dynlib_load("libsqlite3.so.0", "libsqlite3-0", calls,
                                       sizeof(calls) / sizeof(calls[0]), err);

    if (rc != DIBS_OK)
        return rc;
    if (dibs__sql.libversion_number() < OLDEST)
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "SQLite %s is too old; 3.24 or later is needed",
                          dibs__sql.libversion());
    if (!dibs__sql.threadsafe())
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "this SQLite was built without threads; install "
                          "libsqlite3-0");
    return DIBS_OK;
}

dibs_status dibs__sqlite_load(dibs_error *err)
{
    return dibsx_once_do(&once, load_sqlite, err);
}
