/* postgres.h - the PostgreSQL store, as the table of stores sees it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_POSTGRES_H
#define DIBS_STORE_POSTGRES_POSTGRES_H

#include "store/store.h"

extern const dibs__store_ops dibs__pg_ops;    /* postgres:// */
extern const dibs__store_ops dibs__pgsql_ops; /* postgresql:// */

#endif
