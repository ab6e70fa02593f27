/* attach.c - what lives with a client; see attach.h. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "core/attach.h"

#include "core/client.h"

void dibs__attach(dibs_client *cl, dibs__attached *at)
{
    at->next = cl->attached;
    cl->attached = at;
}

void dibs__attached_close(dibs_client *cl)
{
    for (dibs__attached *at = cl->attached; at; at = at->next)
        if (at->close)
            at->close(cl, at);
    for (dibs__attached *at = cl->attached; at; at = at->next)
        if (at->drain)
            at->drain(cl, at);
}

void dibs__attached_stop(dibs_client *cl)
{
    for (dibs__attached *at = cl->attached; at; at = at->next)
        if (at->stop)
            at->stop(cl, at);
}

void dibs__attached_free(dibs_client *cl)
{
    while (cl->attached) {
        dibs__attached *at = cl->attached;

        cl->attached = at->next;
        at->free(cl, at);
    }
}
