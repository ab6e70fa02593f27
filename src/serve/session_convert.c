/* session_convert.c - a lease of a session becomes shared or exclusive.
 *
 * A thread of the server asks the store, with the table's mutex let go. The handle stays
 * meanwhile: a release, a loss or the end of the session leaves it to the tender
 * afterwards, and the end of the daemon waits. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "serve/session_lease.h"

static dibs_status may_convert(const dibs__serve_lease *le, dibs_error *err)
{
    if (le->election)
        return dibsx_fail(err, DIBS_INVALID,
                          "a lease of kind \"election\" is exclusive; remove "
                          "it to resign");
    if (le->converting)
        return dibsx_fail(err, DIBS_BUSY,
                          "the lease %s is converted for another request; "
                          "send this one again",
                          le->machine.id);
    return DIBS_OK;
}

/* Locks: mutex. */
static void settle(dibs__serve_lease *le, dibs_lock_mode mode, dibs_status rc)
{
    le->converting = false;
    /* Without an answer the client may rely on the lesser right alone. */
    if (rc == DIBS_OK || rc == DIBS_UNKNOWN)
        le->mode = rc == DIBS_OK && mode == DIBS_EXCLUSIVE ? 'x' : 's';
    if (rc == DIBS_OK && le->machine.stage == DIBS__STAGE_HELD) {
        le->machine.fence = dibs_lock_fence(le->lock);
        le->told = -1;
    }
    if (le->due)
        dibs__session_discard(le);
    pthread_cond_broadcast(&le->table->cond);
}

dibs_status dibs__session_convert(dibs__serve_lease *le, dibs_lock_mode mode,
                                  dibs_error *err)
{
    dibs__serve_sessions *table = le->table;
    dibs_status rc = may_convert(le, err);

    if (rc != DIBS_OK)
        return rc;
    le->converting = true;
    pthread_mutex_unlock(&table->mutex);
    rc = mode == DIBS_EXCLUSIVE ? dibs_lock_upgrade(le->lock, err)
                                : dibs_lock_downgrade(le->lock, err);
    pthread_mutex_lock(&table->mutex);
    settle(le, mode, rc);
    return rc;
}
