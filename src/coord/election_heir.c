/* election_heir.c - hearing of transfers, on a thread of the election.
 *
 * A transfer names a member in the value "dibs.heir/NAME", which every candidate
 * watches. The one that is meant leaves its place in the queue and asks again with the
 * highest priority. The leader gives the lease back when it sees the heir at the head
 * of the queue: in the call of its program (election_transfer.c), or here if another
 * process asked (`dibs leader --transfer`). src/cli/heir.h says why `dibs elect` has its
 * own. */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include "coord/election.h"
#include "coord/member_name.h"
#include "core/client.h"
#include <dibs/monitor.h>
#include <stdio.h>
#include <string.h>

/* How often a leader looks for the heir; how long to rest otherwise. */
enum { LOOK_MS = 20, REST_MS = 1000 };

/* A candidate hears its name within a second, by a look of its watch. A candidate of a
 * daemon's session does not listen: it keeps its place. */
enum { HEARS_MS = 1500 };

typedef struct search {
    const char *member;
    dibs__election_place place;
} search;

static bool find_candidate(const dibs_lease_info *info, void *arg)
{
    search *sr = arg;
    char member[DIBS__MEMBER_SIZE + 1]; /* so that a longer one differs */

    for (size_t i = 0; i < info->waiter_count && sr->place.at == SIZE_MAX;
         i++) {
        const dibs_party *waiter = &info->waiters[i];
        const char *meta = waiter->meta;

        if (dibs__member_read_name(&meta, member, sizeof(member)) &&
            strcmp(member, sr->member) == 0)
            sr->place = (dibs__election_place){.at = i,
                                               .highest = waiter->priority ==
                                                          INT32_MAX};
    }
    return false;
}

dibs_status dibs__election_find(dibs_election *el, const char *member,
                                dibs__election_place *out, dibs_error *err)
{
    search sr = {.member = member, .place.at = SIZE_MAX};
    dibs_status rc =
        dibs_lease_show(el->cl, el->name, find_candidate, &sr, err);

    *out = sr.place;
    return rc;
}

bool dibs__election_is_next(const dibs__election_place *place,
                            dibsx_nsec named_at)
{
    return place->at == 0 &&
           (place->highest ||
            dibsx_now() >= dibsx_after_ms(named_at, HEARS_MS));
}

void dibs__election_heir_key(const dibs_election *el,
                             char out[DIBS__HEIR_KEY_SIZE])
{
    snprintf(out, DIBS__HEIR_KEY_SIZE, "dibs.heir/%s", el->name);
}

/* Locks: el->mutex, let go meanwhile. */
static void hear_change(dibs_election *el, const dibs_change *change)
{
    const char *heir = change->value.data ? change->value.data : "";

    snprintf(el->heir, sizeof(el->heir), "%s", heir);
    el->named_at = dibsx_now();
    if (strcmp(heir, el->member) != 0 ||
        el->machine.state == DIBS__ELECTION_LEADING ||
        (el->asking && el->highest))
        return;
    el->urged = true;
    dibs__election_interrupt(el);
}

/* Another process wants this leader to hand over. Locks: el->mutex. */
static bool is_asked_to_hand_over(const dibs_election *el)
{
    return el->heir[0] && strcmp(el->heir, el->member) != 0 &&
           el->transfers == 0 && el->machine.state == DIBS__ELECTION_LEADING;
}

/* The heir is at the head of the queue, and the transfer is still wanted. Locks: none
 * held. */
static bool is_heir_next(dibs_election *el)
{
    char key[DIBS__HEIR_KEY_SIZE];
    dibs_value value = {0};
    dibs__election_place place;
    bool next;

    dibs__election_heir_key(el, key);
    next = dibs__election_find(el, el->heir, &place, NULL) == DIBS_OK &&
           dibs__election_is_next(&place, el->named_at) &&
           dibs_state_get(el->cl, key, &value, NULL) == DIBS_OK &&
           strcmp(value.data, el->heir) == 0;
    dibs_value_free(&value);
    return next;
}

/* The term ends as by a resignation: the lease goes back when the work has stopped.
 * Locks: el->mutex, let go meanwhile. */
static void hand_over(dibs_election *el)
{
    bool next;

    pthread_mutex_unlock(&el->mutex);
    next = is_heir_next(el);
    pthread_mutex_lock(&el->mutex);
    if (!next || !is_asked_to_hand_over(el))
        return;
    dibs__election_resign(&el->machine, true);
    dibs__election_publish(el);
    pthread_cond_broadcast(&el->cond);
}

/* Locks: el->mutex. */
static int64_t rest_of(const dibs_election *el)
{
    if (is_asked_to_hand_over(el))
        return LOOK_MS;
    return el->heir[0] ? REST_MS : -1;
}

void *dibs__election_hear(void *arg)
{
    dibs_election *el = arg;

    pthread_mutex_lock(&el->mutex);
    while (!el->ending && el->heirs) {
        int64_t rest_ms = rest_of(el);
        dibs_change change;
        dibs_status rc;

        pthread_mutex_unlock(&el->mutex);
        rc = dibs_watch_next(el->heirs, rest_ms, &change, NULL);
        pthread_mutex_lock(&el->mutex);
        if (rc == DIBS_OK)
            hear_change(el, &change);
        if ((rc == DIBS_OK || rc == DIBS_TIMEOUT) && is_asked_to_hand_over(el))
            hand_over(el);
        else if (!el->ending && rc != DIBS_OK && rc != DIBS_TIMEOUT &&
                 rc != DIBS_CANCELLED)
            dibsx_cond_wait(&el->cond, &el->mutex,
                            dibsx_after_ms(dibsx_now(), REST_MS));
        dibs_value_free(&change.value);
    }
    el->heir_over = true;
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
    return NULL;
}
