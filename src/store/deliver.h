/* deliver.h - the rule of queues: lanes, deliveries, and who gets what next. Pure, but for
 * the shelf.
 *
 * A store keeps the lanes and items of a queue on a shelf, and the rule fetches and
 * puts them one by one (store/shelf.h): a step costs the same however many there are.
 * A store runs one function below in one transaction. tests/sim has a shelf too.
 *
 *           push              reserve, hand-over             ack
 *   (none) -----> READY ----------------------> OUT -----------------> (none)
 *             \    ^ ^                           |   nack, lost, left
 *      delay   v   | '---------------------------+---------> READY or LATER
 *             LATER' due                         '---------> DEAD
 *
 * The rule (2, 4, 5 and 8 are the client's, as store/queue.h says):
 *   (1) A request carries its lane and number. The next number is done, the same again
 *       gets the kept answer, a lower one DIBS_LOST, as does an unknown lane.
 *   (3) A token counts with its lane, and while that lives.
 *   (6) A number that skips one, or that saw another stamp than that of the request
 *       before, shows that the store has forgotten: the lane ends.
 *   (7) An item that was handed over is unheard until a new number lists its whole
 *       token, or the kept answer of that number has it. A repeat keeps it unheard.
 *   (9) A lane that finds nothing gets its place in the same step, and what becomes
 *       ready is handed over in the same step.
 *  (10) Number 1 of a lane opens it and takes nothing.
 *  (11) Ids, fences and stamps are max(last + 1, wall clock in microseconds).
 *
 * Order: priority, then place, which is the id or the moment at which it was due. An
 * item that comes back without delay has its old place, as has every one that comes
 * back to a serial queue. Attempts are counted by the step that delivers. A lane that
 * dies is charged with as many losses as it has hands, lowest fences first. When the
 * last lane of a worker ends, the items that are ready for it become everybody's, at
 * their old places: some in each step, so that no step is long. The lane is kept
 * meanwhile (DIBS__LANE_OVER).
 *
 * dibs__deliver_check() looks for what holds after every step:
 *   I4   an item is in one place; an item that is out has a lane
 *   I6   nothing is ready while a live lane waits and nothing holds the queue back
 *   I7   fences of items that are out differ, and none is above the watermark
 *   I8   no item that lives has used up its tries, but for one in hand, or its losses
 *   I12  the counters of the queue are those of its items
 * tests/sim also checks what histories show: I1 to I3, I5, I9, I10. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_DELIVER_H
#define DIBS_STORE_DELIVER_H

#include "store/deliver_item.h"

/* As the steps of store/queue.h: an outcome, which is to be committed, or a failure
 * of the shelf, which is to be rolled back. */
dibs_status dibs__deliver_push(dibs__shelf *sh, const dibs__push *push);
dibs_status dibs__deliver_reserve(dibs__shelf *sh, dibs__reserve *ask);
dibs_status dibs__deliver_tend(dibs__shelf *sh, dibs__tend *item);
dibs_status dibs__deliver_leave(dibs__shelf *sh, uint64_t lane);
/* *more: records beyond the bound are left; the caller does it again, in a step of its own.
 * A bound that rises takes effect in the last of them. */
dibs_status dibs__deliver_set(dibs__shelf *sh, uint32_t fields,
                              const dibs__queue_conf *conf, bool *more);
dibs_status dibs__deliver_purge(dibs__shelf *sh, uint32_t places, size_t max,
                                size_t *purged);
dibs_status dibs__deliver_redrive(dibs__shelf *sh, uint64_t id, size_t max,
                                  size_t *redriven);

/* Ends what has run out, makes ready what is due, hands over what is ready: the
 * beginning and the end of the others. */
dibs_status dibs__deliver_tidy(dibs__shelf *sh);

/* Refuses with DIBS_INVALID what is too many or too long. */
dibs_status dibs__deliver_check_push(const dibs__push *push, dibs_error *err);
dibs_status
dibs__deliver_check_reserve(const dibs__reserve *ask, dibs_error *err);

/* NULL, or the invariant that does not hold. */
const char *
dibs__deliver_check(const dibs__queue_head *head, const dibs__lane *lanes,
                    size_t lane_count, const dibs__item *items,
                    size_t item_count, int64_t now_us, uint64_t watermark);

#endif
