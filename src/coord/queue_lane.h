/* queue_lane.h - the lane of a queue handle: what the calls of consumers stand on.
 *
 * Locks: cl->mutex for everything here; the functions that talk to the store let it go
 * meanwhile. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_COORD_QUEUE_LANE_H
#define DIBS_COORD_QUEUE_LANE_H

#include "coord/queue.h"

/* The queues of a client, attached to it with the first one. */
typedef struct dibs__queues {
    dibs__attached attached; /* first, so that one is the other */
    dibs__notice_handler handler;
    dibs_queue *first;
    dibs__job tend_job;
    dibs__job lost_job;
    bool tending; /* the job runs */
} dibs__queues;

static inline dibs_item *dibs__item_of_node(dibsx_fifo_node *node)
{
    return node
               ? (dibs_item *)(void *)((char *)node - offsetof(dibs_item, node))
               : NULL;
}

/* ---- queue_hold.c: items in hand */

/* True: the caller frees the client, without the mutex. */
bool dibs__queue_unref(dibs_queue *q);
bool dibs__item_unref(dibs_item *item);

/* A copy of a delivery, NULL: no memory. Any thread, without the mutex. */
dibs_item *dibs__hold_copy(const dibs__delivery *delivery);

/* Until when a delivery of that limit may be believed in: it counts from before the first
 * send of its request, as the store may have done that one. */
dibsx_nsec dibs__hold_limit(dibsx_nsec sent_at, int64_t limit_ms);

/* Takes a delivery of an answer, into q->ready. */
void dibs__hold_take(dibs_queue *q, dibs_item *item, dibsx_nsec sent_at);

/* Gives what is ready to the waiters; what is too much goes back to the store. */
void dibs__hold_serve(dibs_queue *q);

/* Wants an item settled by the next request. */
void dibs__hold_want(dibs_item *item, dibs__settle_verb verb,
                     dibs__settler *settler);

/* Gives back what its owner has freed, if it is in hand. */
void dibs__hold_let_go(dibs_item *item);

/* A settlement has ended: tells the threads that wait for it. */
void dibs__hold_settled(dibs_item *item, dibs_status rc, const dibs_error *err);

/* The wait is over, with the status that it has: tells the thread or the call. */
void dibs__hold_end_wait(dibs__waiter *w);

/* The waiter goes without an item, because its time is over. */
void dibs__hold_leave(dibs_queue *q, dibs__waiter *w);
dibs_status dibs__hold_fail_late(const dibs_queue *q, dibs_error *err);

/* Ends the waits of a closing client's calls for settlements. */
void dibs__hold_give_up(dibs_queue *q);

/* Whether a call waits for a settlement. */
bool dibs__hold_has_call(const dibs_queue *q);

/* Ends every settlement of the request alike. */
void dibs__hold_end_settlements(dibs_queue *q, dibs_status rc,
                                const dibs_error *err);

/* The delivery is lost: one, and all that the lane has. A request that a thread has sent
 * is left to that thread. */
void dibs__hold_lose(dibs_item *item);
void dibs__hold_lose_all(dibs_queue *q);

/* Publishes how long the lane is valid. */
void dibs__hold_publish(dibs_queue *q);

/* ---- queue_tend.c */

/* Sets the timer of a queue to what comes next: a tend, a loss, a request. */
void dibs__tend_set(dibs_queue *q);
void dibs__tend_fire(dibs_client *cl, dibs__timer *timer, dibsx_nsec now);

/* The jobs: tends all lanes that are due; calls on_lost for all that are lost. */
void dibs__tend_run(dibs_client *cl, dibs__job *job);
void dibs__tend_tell(dibs_client *cl, dibs__job *job);

/* Whether a request is due, and when; nothing is while a thread sends one. */
bool dibs__ask_due(const dibs_queue *q, dibsx_nsec now, dibsx_nsec *until);

/* Lets another thread send what is due: one that waits, or a worker. */
void dibs__ask_pass_on(dibs_queue *q);

/* ---- queue_ask.c */

/* Sends the request that is due, once. */
void dibs__ask_drive(dibs_queue *q);
void dibs__ask_run(dibs_client *cl, dibs__job *job);

/* Gives the lane up and tells the store; what it had is not in hand any more. */
void dibs__ask_leave(dibs_queue *q);

/* Begins a call that may wait. On DIBS_OK the mutex is held until the end of the call,
 * when another thread sends what is due. */
DIBS_MUST_CHECK dibs_status dibs__ask_begin(dibs_queue *q, dibs_error *err);
void dibs__ask_end(dibs_queue *q);

/* Sends what is due, or sleeps until that, a signal or the deadline. */
void dibs__ask_go_on(dibs_queue *q, pthread_cond_t *cond, dibsx_nsec deadline);

/* ---- queue_reserve.c */
void dibs__reserve_add(dibs_queue *q, dibs__waiter *w);

/* DIBS_OK: the item can be settled now. */
DIBS_MUST_CHECK dibs_status dibs__settle_check(dibs_item *item,
                                               dibs_error *err);

/* Keeps the reason or the result of a settlement with the item, as every store takes
 * it: a result may have lines, a reason is for people. */
DIBS_MUST_CHECK dibs_status dibs__settle_keep_text(dibs_item *item,
                                                   const dibs__settlement *how,
                                                   dibs_error *err);

/* The store has settled it, and too few replicas have that: DIBS_UNKNOWN. */
dibs_status dibs__settle_unconfirmed(const dibs_item *item, dibs_error *err);

/* Wants an item settled that can be. */
DIBS_MUST_CHECK dibs_status dibs__settle_want(dibs_item *item,
                                              const dibs__settlement *how,
                                              dibs__settler *settler,
                                              dibs_error *err);

/* The delay of a nack, drawn if it is negative. Any thread, without the mutex. */
int64_t dibs__settle_delay(dibs_item *item, int64_t delay_ms);

/* ---- queue_push.c */

/* Sends what calls have pushed, if no thread does. */
void dibs__push_run(dibs_client *cl, dibs__job *job);
void dibs__push_drive(dibs_queue *q);

/* ---- queue_token.c */
dibs_status dibs__token_settle(dibs_item *item, const dibs__settlement *how,
                               dibs_error *err);

#endif
