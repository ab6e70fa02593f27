/* board_batch.h - batches of a board in a store: read, and counted. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_JOBS_BOARD_BATCH_H
#define DIBS_JOBS_BOARD_BATCH_H

#include "jobs/batch.h"
#include "jobs/board.h"

/* Reads a batch; one that nobody has made has version 0. INVALID: this is no name. */
DIBS_MUST_CHECK dibs_status dibs__board_batch(const dibs__board *board,
                                              const char *id, dibs__batch *out,
                                              dibs_error *err);

/* Looks at a batch, and completes it if all of its members have ended. The caller may say
 * how many there are to be (0: it does not know) and which run waits (NULL: none).
 * INVALID: this is no name, or the number is another than before. */
typedef struct dibs__batch_news {
    uint64_t of; /* in, and out: 0: nobody has said it */
    const char *waiter;
    bool complete;  /* out */
    int64_t now_us; /* out: the store's clock */
} dibs__batch_news;
DIBS_MUST_CHECK dibs_status dibs__board_batch_look(const dibs__board *board,
                                                   const char *id,
                                                   dibs__batch_news *news,
                                                   dibs_error *err);

/* Whether all members have ended; nobody completes the batch for it. */
DIBS_MUST_CHECK dibs_status dibs__board_batch_full(const dibs__board *board,
                                                   const dibs__batch *batch,
                                                   bool *full, int64_t *now_us,
                                                   dibs_error *err);

/* Hears of a member that has ended, well or not; false: that is enough. */
typedef bool dibs__member_fn(const char *run, bool well, void *arg);

/* Calls `each` for the members of a batch that have ended. */
DIBS_MUST_CHECK dibs_status dibs__board_batch_ended(const dibs__board *board,
                                                    const dibs__batch *batch,
                                                    dibs__member_fn *each,
                                                    void *arg, dibs_error *err);

#endif
