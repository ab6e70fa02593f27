/* store_name.h - what people call the store of a URL, and where a store that
 * keeps no values leaves them. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DEMO_STORE_NAME_H
#define DIBS_DEMO_STORE_NAME_H

#include "base/buf.h"

/* "Redis", "SQLite", ...; url NULL or "" is the embedded store. */
const char *dibs__demo_store_name(const char *url);

/* A majority of servers keeps locks but no values. Appends the URL of the first of
 * them, with user and password; false for other URLs. */
bool dibs__demo_first_server(const char *url, dibsx_buf *out);

#endif
