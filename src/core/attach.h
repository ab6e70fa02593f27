/* attach.h - what lives with a client: ended when the client is closed, and freed
 * with it.
 *
 * The client does not know what is attached to it. The node is embedded in what is
 * attached; the last that was attached is ended first.
 *
 *     dibs_close():  close of each   leases are held; calls may be under way
 *                    drain of each   no call waits any more
 *                    (leases are released, keeper and renewer end)
 *                    stop of each    no timer is called any more
 *     the last handle is freed, or there was none:
 *                    free of each    no other thread has the client any more */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_ATTACH_H
#define DIBS_CORE_ATTACH_H

#include <dibs/client.h>

typedef struct dibs__attached dibs__attached;

struct dibs__attached {
    dibs__attached *next;
    /* Each may be NULL but for free. Locks: close and drain have cl->mutex, and
     * may let it go; stop and free have none. */
    void (*close)(dibs_client *cl, dibs__attached *at);
    /* Waits for the program, which may itself wait for what a close ends. */
    void (*drain)(dibs_client *cl, dibs__attached *at);
    void (*stop)(dibs_client *cl, dibs__attached *at);
    void (*free)(dibs_client *cl, dibs__attached *at);
};

/* Nothing is detached: it stays until the client is freed. Locks: cl->mutex. */
void dibs__attach(dibs_client *cl, dibs__attached *at);

/* For the client; each goes through all of them. The first one drains as well. */
void dibs__attached_close(dibs_client *cl);
void dibs__attached_stop(dibs_client *cl);
void dibs__attached_free(dibs_client *cl);

#endif
