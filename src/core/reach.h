/* reach.h - the first contact of a client with its store.
 *
 * dibs_open() makes it, unless the client is lazy or has a fallback and the store
 * was away. Then the first call that needs the store makes it: the store is checked
 * before it is used, whenever that is. Owns nothing. Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_REACH_H
#define DIBS_CORE_REACH_H

#include "core/client.h"

/* Makes the first contact if there was none. Never DIBS_UNKNOWN. Locks: none
 * held. */
DIBS_MUST_CHECK dibs_status dibs__reach_store(dibs_client *cl,
                                              dibsx_nsec deadline,
                                              dibs_error *err);

/* Makes it at dibs_open(), again and again for wait_ms (negative: without limit)
 * while the store is away. Locks: none held. */
DIBS_MUST_CHECK dibs_status dibs__reach_waiting(dibs_client *cl,
                                                int64_t wait_ms,
                                                dibs_error *err);

/* dibs__client_usable(), and the first contact within timeout_ms. Every public
 * call that reads or writes the store outside a lock begins so. */
DIBS_MUST_CHECK dibs_status dibs__reach_usable(dibs_client *cl,
                                               dibs_error *err);

#endif
