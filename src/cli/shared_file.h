/* shared_file.h - a database file that the users of a group can use together.
 *
 * SQLite makes `FILE-wal` and `FILE-shm` with the mode of the file, whatever the
 * umask, and removes them now and then. So every user needs to write
 *   - the folder, which hands its group down (mode 2770),
 *   - the file itself (mode 0660), and
 *   - the folder of the doorbells, `FILE.bells`, which dibs makes alike. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_SHARED_FILE_H
#define DIBS_CLI_SHARED_FILE_H

#include <dibs/types.h>
#include <sys/types.h>

/* Makes the folder and an empty file, if they are missing, and opens them to the
 * group. A folder that was there may have no files but those of this database.
 *   DIBS_DENIED   this user may not; err says what to do
 *   DIBS_REFUSED  the folder has other files, or the group cannot reach it */
DIBS_MUST_CHECK dibs_status dibs__shared_file_make(const char *path, gid_t gid,
                                                   dibs_error *err);

/* Opens what the database has beside it to the group: its log, its index, its
 * doorbells. Call it when the database has been opened once. */
DIBS_MUST_CHECK dibs_status dibs__shared_file_fit(const char *path, gid_t gid,
                                                  dibs_error *err);

#endif
