/* ring.h - what is told at a client's doorbell.
 *
 * Rings are hints: any may be lost, late, repeated, or about what is over. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_RING_H
#define DIBS_STORE_RING_H

#include <dibs/types.h>

typedef enum dibs__news {
    DIBS__NEWS_GRANTED, /* the place in the queue became a claim */
    DIBS__NEWS_BROKEN,  /* the lease was taken away by force */
    DIBS__NEWS_WANTED,  /* another was refused because of this lease, which was
                           taken with DIBS__ASK_TELL */
    DIBS__NEWS_YIELD,   /* somebody asks for it back */
    DIBS__NEWS_MISSED   /* rings may have been lost: who waits had better ask;
                           has neither owner nor fence */
} dibs__news;

/* A notice on the doorbell of a client. */
typedef struct dibs__ring {
    char owner[DIBS_OWNER_SIZE];
    dibs__news news;
    uint64_t fence; /* of the grant, or of the lease that was broken */
} dibs__ring;

/* Reads "OWNER NEWS FENCE", as the servers pass it on. False when it is something
 * else: anyone may have written to the channel. Pure. */
bool dibs__ring_read(const char *text, dibs__ring *ring);

#endif
