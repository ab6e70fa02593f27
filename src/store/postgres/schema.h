/* schema.h - the version of the schema that this code knows. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_SCHEMA_H
#define DIBS_STORE_POSTGRES_SCHEMA_H

enum { DIBS__PG_VERSION = 14 }; /* of tables and functions (setup.c) */

#endif
