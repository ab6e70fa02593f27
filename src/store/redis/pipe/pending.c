/* pending.c - see pending.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/pipe/pending.h"

dibs__pending *dibs__waiter_next(const dibs__waiter *wt)
{
    dibs__pending *next = NULL;

    for (size_t i = 0; i < wt->count; i++) {
        dibs__pending *pd = &wt->commands[i];

        if (!pd->over && (!next || pd->deadline < next->deadline))
            next = pd;
    }
    return next;
}

void dibs__pending_gather(dibsx_fifo *queue, bool alone, dibsx_fifo *members)
{
    dibsx_fifo parts[2] = {{0}}, others = {0};
    dibs__pending *first = dibs__pending_first(queue);
    int most = alone || !first->member.part ? 1 : DIBS__BATCH_MAX;
    int count = 0;

    while (queue->first && count < most &&
           (count == 0 || !dibs__pending_first(queue)->only_on)) {
        dibs__pending *pd = dibs__pending_pop(queue);
        const dibs__part *part = pd->member.part;
        dibsx_fifo *own = &parts[part && part->second];
        const dibs__pending *like =
            own->first ? dibs__pending_first(own) : first;

        if (pd == first || dibs__member_fits(&pd->member, &like->member)) {
            dibsx_fifo_push(own, &pd->queued);
            count++;
        } else {
            dibsx_fifo_push(&others, &pd->queued);
        }
    }
    dibsx_fifo_prepend(queue, &others);
    *members = parts[1];
    dibsx_fifo_prepend(members, &parts[0]);
}
