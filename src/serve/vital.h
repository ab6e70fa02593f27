/* vital.h - whether the threads that all others need go around: the HTTP loop, the look
 * and the keeper of the client. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_VITAL_H
#define DIBS_SERVE_VITAL_H

#include "base/clock.h"

/* A thread that owes a sign of life for so long stands still. */
enum { DIBS__VITAL_MS = 10000 };

/* For how long each of them owes one. */
typedef struct dibs__serve_vitals {
    int64_t loop_ms, look_ms, keeper_ms;
} dibs__serve_vitals;

/* NULL, or which one stands still. `store_ms` is the longest step of the store, in which
 * the look may be. Pure. */
const char *
dibs__vital_stuck(const dibs__serve_vitals *vitals, int64_t store_ms);

#endif
