/* error.h - the status of an error of libpq or of the server. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_ERROR_H
#define DIBS_STORE_POSTGRES_ERROR_H

#include "store/postgres/driver.h"

/* Why there is no connection, from the message of libpq at PQERRORS_VERBOSE.
 * `tried` is false when libpq gave up before it called anybody. */
dibs_status
dibs__pg_fail_connect(const char *message, bool tried, dibs_error *err);

/* The error that the server answered to a statement, by its SQLSTATE. `message` is without
 * line breaks or NULL. `fatal` says that the connection ended with it. */
dibs_status dibs__pg_fail(const char *sqlstate, const char *message, bool fatal,
                          dibs_error *err);

/* Whether the same statement may be sent again at once: it is certain that it has
 * changed nothing, and that it may do better. */
bool dibs__pg_again(const char *sqlstate);

/* Whether a prepared statement was not what it should be. */
bool dibs__pg_stale(const char *sqlstate);

#endif
