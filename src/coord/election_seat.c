/* election_seat.c - the seat of a candidate, for an election with minimum_nodes.
 *
 * The session of the client takes the seat and keeps it, as long as the candidate
 * campaigns. Its answers go to the machine, on a worker. Locks: cl->mutex before
 * el->mutex. */
/* SPDX-License-Identifier: MIT */
#include "coord/election.h"
#include "core/client.h"
#include "core/log.h"

enum { BEATS_PER_SEAT = 3 };

/* Locks: el->mutex. */
static void note_refusal(dibs_election *el, dibs_status rc)
{
    if (rc == DIBS_MISMATCH)
        (void)dibsx_fail(&el->refusal, rc,
                         "minimum_nodes counts the members of the group `%s`, "
                         "and that name is a barrier or a latch now; use "
                         "another name",
                         el->name);
    else
        (void)dibsx_fail(&el->refusal, rc,
                         "the store refuses a seat in the group `%s`",
                         el->name);
    el->refusal.status = rc;
}

/* Thread: a worker. Locks: cl->mutex. */
static void note_answer(dibs_client *cl, dibs__session_seat *seat,
                        const dibs__meet *answer, dibsx_nsec sent_at)
{
    dibs_election *el = seat->arg;
    bool keeps = answer->verb == DIBS__KEEP;

    (void)cl;
    pthread_mutex_lock(&el->mutex);
    switch (answer->rc) {
    case DIBS_OK:
        el->refusal.status = DIBS_OK;
        if (keeps)
            dibs__election_counted(&el->machine, sent_at,
                                   dibs__group_left_ms(answer));
        break;
    case DIBS_LOST:
        dibs__election_unseated(&el->machine);
        break;
    case DIBS_TIMEOUT: /* The session has given the seat up. */
        if (keeps)
            dibs__election_unseated(&el->machine);
        break;
    case DIBS_UNAVAIL:
    case DIBS_UNKNOWN:
        break;
    default:
        note_refusal(el, answer->rc);
    }
    dibs__election_publish(el);
    pthread_cond_broadcast(&el->cond);
    pthread_mutex_unlock(&el->mutex);
}

dibs_status dibs__election_seat_init(dibs_election *el, dibs_error *err)
{
    const dibs_election_opts *opts = &el->opts;
    dibs__group_opts group = {.group = el->name,
                              .member = opts->member,
                              .meta = opts->meta,
                              .ttl_ms = BEATS_PER_SEAT * opts->heartbeat_ms,
                              .need = opts->minimum_nodes,
                              .quick =
                                  (opts->flags & DIBS_ELECTION_QUICK) != 0};
    dibs_status rc;

    if (opts->minimum_nodes == 0)
        return DIBS_OK;
    rc = dibs__group_seat_init(el->cl, &el->group, &group, err);
    el->group.seat.told = note_answer;
    el->group.seat.arg = el;
    return rc;
}

/* Locks: cl->mutex. */
static bool take_seat(dibs_election *el)
{
    dibs_error err = {0};

    if (dibs__session_add(el->cl, &el->group.seat, &err) == DIBS_OK)
        return true;
    pthread_mutex_unlock(&el->cl->mutex);
    dibs__log(el->cl, DIBS_LOG_WARN, "elect",
              "cannot take a seat for %s, and will try again: %s", el->name,
              err.message);
    pthread_mutex_lock(&el->cl->mutex);
    return false;
}

bool dibs__election_seat_sync(dibs_election *el)
{
    bool wanted =
        el->opts.minimum_nodes > 0 &&
        (el->machine.wanted || el->machine.state != DIBS__ELECTION_IDLE);
    bool seated = el->seated;

    if (wanted == seated)
        return false;
    pthread_mutex_unlock(&el->mutex);
    pthread_mutex_lock(&el->cl->mutex);
    if (wanted)
        seated = take_seat(el);
    else
        dibs__session_leave(el->cl, &el->group.seat);
    pthread_mutex_unlock(&el->cl->mutex);
    pthread_mutex_lock(&el->mutex);
    el->seated = wanted && seated;
    if (!el->seated)
        dibs__election_unseated(&el->machine);
    pthread_cond_broadcast(&el->cond);
    return el->seated == wanted;
}

void dibs__election_seat_hurry(dibs_election *el)
{
    if (el->opts.minimum_nodes == 0 || !dibs__election_counts(&el->machine))
        return;
    pthread_mutex_unlock(&el->mutex);
    pthread_mutex_lock(&el->cl->mutex);
    dibs__session_hurry(el->cl, &el->group.seat);
    pthread_mutex_unlock(&el->cl->mutex);
    pthread_mutex_lock(&el->mutex);
}
