/* call_group.c - steps of several asynchronous calls; see call_group.h.
 *
 * Runs on a runner. */
/* SPDX-License-Identifier: MIT */
#include "core/call_group.h"

#include "base/hash.h"
#include "core/lock/acquire.h"
#include "core/log.h"

bool dibs__call_group_is_full(const dibs__call_group *gr, const dibs_lock *lock)
{
    uint64_t name = dibsx_hash_text(lock->name);

    if (gr->count == DIBS__STEPS_MAX)
        return true;
    for (size_t i = 0; i < gr->count; i++)
        if (gr->names[i] == name)
            return true;
    return false;
}

static void count_step(dibs__call_group *gr, dibs_lock *lock,
                       const dibs__pending_release *release)
{
    gr->locks[gr->count] = lock;
    gr->releases[gr->count] = release;
    gr->partings[gr->count] = NULL;
    gr->names[gr->count] = dibsx_hash_text(lock->name);
    gr->count++;
}

void dibs__call_group_leave(dibs__call_group *gr, dibs_lock *lock,
                            dibs__pending_release *release, dibs_error *err)
{
    dibs__release_step(release, &gr->steps[gr->count], err);
    count_step(gr, lock, release);
}

void dibs__call_group_part(dibs__call_group *gr, dibs__parting *pt)
{
    dibs__call_group_leave(gr, pt->release.holder, &pt->release, &pt->why);
    gr->partings[gr->count - 1] = pt;
}

bool dibs__call_group_ask(dibs__call_group *gr, dibs_lock *lock)
{
    if (!dibs__lock_ask_begin(lock, &gr->steps[gr->count], gr->who[gr->count]))
        return false;
    count_step(gr, lock, NULL);
    return true;
}

/* Locks: none held. */
static void trace_answers(const dibs__call_group *gr)
{
    for (size_t i = 0; i < gr->count; i++)
        if (gr->releases[i])
            dibs__release_trace(gr->releases[i], gr->steps[i].rc);
        else
            dibs__lock_ask_trace_answer(gr->locks[i], gr->steps[i].rc,
                                        &gr->steps[i].ans);
}

void dibs__call_group_send(dibs__call_group *gr, dibs_client *cl)
{
    dibs__store *st = cl->st;

    pthread_mutex_unlock(&cl->mutex);
    for (size_t i = 0; i < gr->count; i++)
        if (!gr->releases[i])
            dibs__lock_ask_trace(gr->locks[i]);
    st->ops->lease_group(st, gr->steps, gr->count);
    dibs__log_alarm(cl, st);
    trace_answers(gr);
    pthread_mutex_lock(&cl->mutex);
}
