/* queue_call.c - calls of a queue handle that end with a callback; see queue_call.h. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "coord/queue_call.h"

#include "base/hash.h"
#include "coord/queue_lane.h"

static void unlist_call(dibs__queue_call *call)
{
    dibs__queue_call **at = &call->q->calls;

    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
}

static void free_call(dibs__queue_call *call, bool told)
{
    dibs_queue *q = call->q;

    unlist_call(call);
    call->free(call, told);
    (void)dibs__queue_unref(q);
}

static bool run_call(dibs__call_node *node)
{
    dibs__queue_call *call = (dibs__queue_call *)(void *)node;
    dibs_client *cl = call->q->cl;

    call->calling = true;
    call->caller = pthread_self();
    dibs__runner_leave(cl);
    pthread_mutex_unlock(&cl->mutex);
    call->tell(call);
    pthread_mutex_lock(&cl->mutex);
    free_call(call, true);
    pthread_cond_broadcast(&cl->over);
    return true;
}

dibs_status
dibs__queue_call_begin(dibs__queue_call *call, dibs_queue *q, dibs_error *err)
{
    dibs_status rc;

    if (q->cl->closing)
        return dibsx_fail(err, DIBS_CANCELLED, "the client is being closed");
    rc =
        dibs__runner_enter(q->cl, dibsx_hash_text(q->name), &call->runner, err);
    if (rc != DIBS_OK)
        return rc;
    call->node.run = run_call;
    call->q = q;
    call->next = q->calls;
    q->calls = call;
    q->refs++;
    return DIBS_OK;
}

/* One that this thread can drop, or must wait for; NULL: none is left. */
static dibs__queue_call *next_call(dibs_queue *q)
{
    dibs__queue_call *call = q->calls;

    while (call && call->calling && pthread_equal(call->caller, pthread_self()))
        call = call->next;
    return call;
}

void dibs__queue_call_drop_all(dibs_queue *q)
{
    dibs_client *cl = q->cl;
    dibs__queue_call *call;

    while ((call = next_call(q)) != NULL) {
        if (call->calling) {
            pthread_cond_wait(&cl->over, &cl->mutex);
            continue;
        }
        call->dropped = true;
        if (!dibs__runner_unpost(call->runner, &call->node))
            call->withdraw(call);
        dibs__runner_leave(cl);
        free_call(call, false);
    }
}
