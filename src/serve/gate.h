/* gate.h - callers: who they are by their token, and whether they may.
 *
 * The loop thread asks; the main thread changes the tokens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_GATE_H
#define DIBS_SERVE_GATE_H

#include "base/clock.h"
#include "base/quota.h"
#include "base/rand.h"
#include "http/exchange.h"
#include "serve/token.h"
#include <pthread.h>

enum { DIBS__SERVE_PEERS_MAX = 256 };

/* Tokens that an address has got wrong. */
typedef struct dibs__serve_failures {
    char peer[DIBS__HTTP_PEER_MAX];
    unsigned count;
    dibsx_nsec until; /* they count until then */
} dibs__serve_failures;

typedef struct dibs__serve_gate {
    pthread_mutex_t mutex; /* for the tokens */
    dibs__serve_tokens *tokens;

    /* Loop thread only. */
    dibs__serve_failures failures[DIBS__SERVE_PEERS_MAX];
    dibsx_quota quotas[DIBSX_QUOTAS]; /* of requests, by name */
    dibsx_prng request_ids; /* not secret; a state of 0: not seeded yet */
    uint64_t refused_tokens, refused_rates; /* any thread reads them roughly */
} dibs__serve_gate;

/* The caller of a request, in its note. */
typedef struct dibs__serve_caller {
    char name[DIBS__SERVE_WHO_MAX]; /* "": without a token */
    dibs__serve_role role;
    char peer[DIBS__HTTP_PEER_MAX];
    char request_id[65];
} dibs__serve_caller;

void dibs__serve_gate_init(dibs__serve_gate *gate);
void dibs__serve_gate_fini(dibs__serve_gate *gate);

/* Takes the tokens over, which it frees. Any thread. */
void dibs__serve_gate_set(dibs__serve_gate *gate, dibs__serve_tokens *tokens);

/* How many tokens there are. Any thread. */
size_t dibs__serve_gate_count(dibs__serve_gate *gate);

/* As dibs__http_gate_fn: the need of a route is a role. */
bool dibs__serve_gate_pass(dibs__http_exchange *ex);

/* The address of the client, behind proxies that are trusted. */
void dibs__serve_client_of(const dibs__http_exchange *ex,
                           char out[DIBS__HTTP_PEER_MAX]);

const dibs__serve_caller *dibs__serve_caller_of(dibs__http_exchange *ex);

/* Whether the caller of a stream may still have it: its token may have expired, or
 * been removed. */
DIBS_MUST_CHECK bool dibs__serve_gate_still(dibs__http_exchange *ex);

/* Counts one more token that an address got wrong. True: the first in a minute. Pure but
 * for the record. */
bool dibs__serve_failures_add(dibs__serve_failures *all, const char *peer,
                              dibsx_nsec now);

/* True: it had its share, and must wait. */
bool dibs__serve_failures_over(const dibs__serve_failures *all,
                               const char *peer, dibsx_nsec now);

#endif
