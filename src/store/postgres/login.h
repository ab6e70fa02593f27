/* login.h - lets libpq log in at a server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_LOGIN_H
#define DIBS_STORE_POSTGRES_LOGIN_H

#include "store/postgres/conn.h"

/* Goes on with a connection that libpq has started, until the server is ready.
 * Unless `cleartext`, a password is sent in clear text over TLS or a unix socket
 * alone: DIBS_DENIED when a server asks for it elsewhere. Statuses else as
 * dibs__pg_conn_open(). */
DIBS_MUST_CHECK dibs_status dibs__pg_login(dibs__pg_conn *cn, bool cleartext,
                                           dibsx_nsec deadline,
                                           dibs_error *err);

#endif
