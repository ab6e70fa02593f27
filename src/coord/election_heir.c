/* election_heir.c - the candidate's side of a transfer.
 *
 * A leader that hands the lead on names a member in the value "dibs.heir/NAME". Every
 * candidate watches it, on a thread of its own. The one that is meant leaves its place
 * in the queue and asks again with the highest priority. The leader gives the lease
 * back when it sees it there (election_transfer.c). */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include "coord/election.h"
#include "core/client.h"
#include <string.h>

enum { REST_MS = 1000 };

/* Locks: el->mutex, let go meanwhile. */
static void hear_change(dibs_election *el, const dibs_change *change)
{
    const char *heir = change->value.data;

    if (!heir || strcmp(heir, el->member) != 0 ||
        el->machine.state == DIBS__ELECTION_LEADING)
        return;
    el->urged = true;
    dibs__election_interrupt(el);
}

void *dibs__election_hear(void *arg)
{
    dibs_election *el = arg;

    pthread_mutex_lock(&el->mutex);
    while (!el->ending && el->heirs) {
        dibs_change change;
        dibs_status rc;

        pthread_mutex_unlock(&el->mutex);
        rc = dibs_watch_next(el->heirs, -1, &change, NULL);
        pthread_mutex_lock(&el->mutex);
        if (rc == DIBS_OK)
            hear_change(el, &change);
        else if (!el->ending && rc != DIBS_CANCELLED)
            dibsx_cond_wait(&el->cond, &el->mutex,
                            dibsx_after_ms(dibsx_now(), REST_MS));
        dibs_value_free(&change.value);
    }
    el->heir_over = true;
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    return NULL;
}
