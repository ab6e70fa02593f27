/* request.c - see request.h. Pure. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/request.h"

void dibs__line_push(dibs__line *ln, dibs__request *rq)
{
    rq->next = NULL;
    if (ln->tail)
        ln->tail->next = rq;
    else
        ln->head = rq;
    ln->tail = rq;
    ln->count++;
}

dibs__request *dibs__line_pop(dibs__line *ln)
{
    dibs__request *rq = ln->head;

    ln->head = rq->next;
    if (!ln->head)
        ln->tail = NULL;
    ln->count--;
    return rq;
}

bool dibs__line_remove(dibs__line *ln, dibs__request *rq)
{
    dibs__request *before = NULL;

    for (dibs__request *at = ln->head; at; before = at, at = at->next) {
        if (at != rq)
            continue;
        if (before)
            before->next = rq->next;
        else
            ln->head = rq->next;
        if (ln->tail == rq)
            ln->tail = before;
        ln->count--;
        return true;
    }
    return false;
}

void dibs__line_prepend(dibs__line *rest, dibs__line *ln)
{
    if (ln->count == 0)
        return;
    ln->tail->next = rest->head;
    rest->head = ln->head;
    if (!rest->tail)
        rest->tail = ln->tail;
    rest->count += ln->count;
    *ln = (dibs__line){0};
}

void dibs__line_gather(dibs__line *queue, bool alone, dibs__line *members)
{
    dibs__line parts[2] = {{0}}, others = {0};
    dibs__request *first = queue->head;
    int most = alone || !first->member.part ? 1 : DIBS__GROUP_MAX;
    int count = 0;

    while (queue->head && count < most) {
        dibs__request *rq = dibs__line_pop(queue);
        const dibs__part *part = rq->member.part;
        dibs__line *own = &parts[part && part->second];
        const dibs__request *like = own->head ? own->head : first;

        if (rq == first || dibs__member_fits(&rq->member, &like->member)) {
            dibs__line_push(own, rq);
            count++;
        } else {
            dibs__line_push(&others, rq);
        }
    }
    dibs__line_prepend(queue, &others);
    *members = parts[1];
    dibs__line_prepend(members, &parts[0]);
}
