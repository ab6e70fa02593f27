/* session_lease.h - the handles of a session's leases, for the table. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_SESSION_LEASE_H
#define DIBS_SERVE_SESSION_LEASE_H

#include "serve/session.h"

/* Does what the machine wants done, and moves forgotten leases out of the session.
 * Locks: mutex. */
void dibs__session_act(dibs__serve_session *se);

/* Frees the handle of a lease, which releases what it holds; or renews the lease,
 * before `until`, and leaves it at the store. Locks: mutex, let go meanwhile. */
void dibs__session_handle_free(dibs__serve_lease *le);
void dibs__session_handle_leave(dibs__serve_lease *le, dibsx_nsec until);

/* Leaves the handle to the tender. Locks: mutex. */
void dibs__session_discard(dibs__serve_lease *le);

/* Frees a lease without a handle. */
void dibs__session_lease_free(dibs__serve_lease *le);

#endif
