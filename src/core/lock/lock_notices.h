/* lock_notices.h - the notices that are addressed to locks; see notices.h.
 *
 * Owns nothing: the table of owners is handle.h's. Its handler runs on the keeper's
 * thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_LOCK_LOCK_NOTICES_H
#define DIBS_CORE_LOCK_LOCK_NOTICES_H

#include <dibs/client.h>

/* Registers the handler of the client's locks, once. Locks: cl->mutex, or no
 * other thread has the client yet. */
void dibs__lock_notices_init(dibs_client *cl);

#endif
