/* session_lease.h - the handles of a session's leases. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_LEASE_H
#define DIBS_SERVE_SESSION_LEASE_H

#include "serve/session.h"

/* Does what the machine wants done, and moves forgotten leases out of the session.
 * Locks: mutex. */
void dibs__session_act(dibs__serve_session *se);

/* Frees the handle of a lease, which releases what it holds; or renews the lease,
 * before `until`, and leaves it at the store. False: the store did not answer, so that the
 * lease has what was left of its ttl. Locks: mutex, let go meanwhile. */
void dibs__session_handle_free(dibs__serve_lease *le);
bool dibs__session_handle_leave(dibs__serve_lease *le, dibsx_nsec until);

/* Leaves the handle to the tender, after the conversion under way. Locks: mutex. */
void dibs__session_discard(dibs__serve_lease *le);

/* Makes a lease that is HELD shared or exclusive. It may have ended meanwhile, and its
 * stage says so. Blocks.
 *   DIBS_OK       it has the mode, and perhaps another fence
 *   DIBS_BUSY     others share the lock, or another conversion is under way
 *   DIBS_UNKNOWN  no answer; it counts as shared
 *   others        as dibs_lock_upgrade(); nothing changed
 * Locks: mutex, let go meanwhile. */
DIBS_MUST_CHECK dibs_status dibs__session_convert(dibs__serve_lease *le,
                                                  dibs_lock_mode mode,
                                                  dibs_error *err);

/* Frees a lease without a handle. */
void dibs__session_lease_free(dibs__serve_lease *le);

#endif
