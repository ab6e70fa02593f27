/* step.c - the frame of every step that changes a database: one transaction, and
 * notices once it is committed.
 *
 * Owns nothing. Any thread; a connection is locked from begin to end. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"

dibs_status dibs__sqlite_step_begin(struct dibs__store *st,
                                    dibs__sqlite_role role, dibsx_nsec deadline,
                                    dibs__sqlite_conn **cn, dibs_error *err)
{
    dibs_status rc;

    *cn = dibs__sqlite_conn_of(st, role);
    rc = dibs__sqlite_enter(*cn, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_begin(*cn, err);
    if (rc != DIBS_OK)
        dibs__sqlite_leave(*cn);
    return rc;
}

dibs_status dibs__sqlite_step_end(struct dibs__store *st, dibs__sqlite_conn *cn,
                                  dibs_status rc, dibs_error *err)
{
    rc = dibs__sqlite_end(cn, rc, err);
    (void)dibs__sqlite_doorbell_notify(&dibs__sqlite_of(st)->doorbell,
                                       &cn->notices);
    dibs__sqlite_leave(cn);
    return rc;
}

dibs_status dibs__sqlite_next(dibs__sqlite_conn *cn, int64_t now_wall_us,
                              uint64_t *number, dibs_error *err)
{
    if (cn->watermark >= INT64_MAX)
        return dibsx_fail(err, DIBS_INTERNAL,
                          "the versions of this store are used up");
    *number = cn->watermark + 1;
    if (now_wall_us > 0 && (uint64_t)now_wall_us > *number)
        *number = (uint64_t)now_wall_us;
    cn->watermark = *number;
    return DIBS_OK;
}
