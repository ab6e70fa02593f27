/* sent.h - a script that was sent, and for whose reply its sender does not wait.
 *
 * It lives from its making to dibs__sent_free(), and with it the bytes of the command
 * and all that the pipeline writes for it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_SENT_H
#define DIBS_STORE_REDIS_SENT_H

#include "store/lease_args.h"
#include "store/redis/script.h"

typedef struct dibs__sent {
    dibs__pending pd;
    redisReply *reply;
    dibs_error why;
    const dibs__leave *leave; /* the caller's, as it is a release; or */
    const dibs__ask *ask;     /* the caller's, as it is a vote, for this */
    uint64_t fence;
    char bytes[]; /* of the command */
} dibs__sent;

/* Ready to be posted; NULL when memory is short. */
dibs__sent *
dibs__sent_new(dibs__script script, dibs__words *words, dibsx_nsec deadline);
void dibs__sent_free(dibs__sent *sent);

/* How one that is over has ended. DIBS_OK: its reply is no error. DIBS_STALE: the
 * server did not run it. */
DIBS_MUST_CHECK dibs_status dibs__sent_status(const dibs__sent *sent,
                                              dibs_error *err);

#endif
