/* notice.h - what is told at a client's doorbell.
 *
 * Rings are hints: any may be lost, late, repeated, or about what is over. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_NOTICE_H
#define DIBS_STORE_NOTICE_H

#include <dibs/types.h>

typedef enum dibs__notice_kind {
    DIBS__NOTICE_GRANTED, /* the place in the queue became a claim */
    DIBS__NOTICE_BROKEN,  /* the lease was taken away by force */
    DIBS__NOTICE_WANTED, /* another was refused because of this lease, which was
                           taken with DIBS__ASK_TELL */
    DIBS__NOTICE_YIELD,  /* somebody asks for it back */
    DIBS__NOTICE_MISSED  /* rings may have been lost: who waits had better ask;
                           has neither owner nor fence */
} dibs__notice_kind;

/* A notice on the doorbell of a client. */
typedef struct dibs__notice {
    char owner[DIBS_OWNER_SIZE];
    dibs__notice_kind kind;
    uint64_t fence; /* of the grant, or of the lease that was broken */
} dibs__notice;

/* Reads "OWNER NEWS FENCE", as the servers pass it on. False when it is something
 * else: anyone may have written to the channel. Pure. */
bool dibs__notice_read(const char *text, dibs__notice *notice);

#endif
