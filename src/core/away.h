/* away.h - tells the log once that the store is away, and once that it is back.
 *
 * A store is away while it cannot be reached, does not answer, or refuses for a
 * reason that passes. Acquires that wait for it report their failures and answers
 * here; a failure that lasts only a moment is not told. Owns nothing.
 *
 * Locks: cl->mutex for everything here, let go while logging. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_AWAY_H
#define DIBS_CORE_AWAY_H

#include "core/client.h"

/* A step that was sent at `sent_at` failed, and its caller goes on waiting. */
void dibs__away_failed(dibs_client *cl, dibsx_nsec sent_at,
                       const dibs_error *why);

/* An ask that was sent at cl->silent_at, if that is set, has no answer yet. For the
 * keeper. */
void dibs__away_silent(dibs_client *cl);

/* The store fails and is not waited for: told at once, with the effect. */
void dibs__away_began(dibs_client *cl, const char *effect,
                      const dibs_error *why);

/* The store has answered. */
void dibs__away_ended(dibs_client *cl);

#endif
