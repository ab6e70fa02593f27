/* notices.c - dispatches the notices of the store; see notices.h.
 *
 * Owns the list of handlers, which only grows: the mutex may be let go while the
 * keeper is inside it. */
/* SPDX-License-Identifier: MIT */
#include "core/notices.h"

#include "core/client.h"

void dibs__notices_register(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs__notice_handler **end = &cl->notice_handlers;

    while (*end)
        end = &(*end)->next;
    handler->next = NULL;
    *end = handler;
}

static void dispatch_missed(dibs_client *cl)
{
    for (dibs__notice_handler *at = cl->notice_handlers; at; at = at->next)
        at->hear_missed(cl, at);
}

void dibs__notices_dispatch(dibs_client *cl, const dibs__notice *notice)
{
    dibs__notice_handler *at = cl->notice_handlers;

    if (notice->kind == DIBS__NOTICE_MISSED) {
        dispatch_missed(cl);
        return;
    }
    while (at && !at->hear(cl, at, notice))
        at = at->next;
}
