/* wrong_tokens.h - requests with a token that is not known, written down in the trail.
 *
 * The loop notes them, and a thread of its own writes. Strangers must not be able to push
 * the entries of operators out of the trail: the gate passes on one a minute for an
 * address, and there are at most ten an hour in all. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_WRONG_TOKENS_H
#define DIBS_SERVE_WRONG_TOKENS_H

#include "http/exchange.h"
#include "serve/life.h"
#include "serve/log.h"

enum { DIBS__WRONG_TOKENS_MAX = 10, DIBS__WRONG_TOKENS_HOUR_MS = 3600 * 1000 };

typedef struct dibs__wrong_token {
    char from[DIBS__HTTP_PEER_MAX];
    char request[65];
    char route[96];
} dibs__wrong_token;

typedef struct dibs__wrong_tokens {
    dibs_client *cl;      /* borrowed */
    dibs__serve_log *log; /* borrowed */

    dibs__serve_life life; /* its mutex is for all below */
    dibsx_nsec until;      /* the hour that is counted ends */
    unsigned noted;        /* in it */
    dibs__wrong_token items[DIBS__WRONG_TOKENS_MAX];
    size_t count; /* of items that are to be written */
} dibs__wrong_tokens;

/* Starts the thread. End with dibs__wrong_tokens_fini(), which leaves out what is not
 * written yet. Zeroed storage may be ended. */
DIBS_MUST_CHECK dibs_status dibs__wrong_tokens_init(dibs__wrong_tokens *wrong,
                                                    dibs_client *cl,
                                                    dibs__serve_log *log,
                                                    dibs_error *err);
void dibs__wrong_tokens_fini(dibs__wrong_tokens *wrong);

/* Does not block for the store. */
void dibs__wrong_tokens_note(dibs__wrong_tokens *wrong,
                             const dibs__wrong_token *item, dibsx_nsec now);

#endif
