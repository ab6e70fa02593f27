/* witness_db.h - the database of a witness: rows of numbers, which no code of dibs writes.
 *
 * A failure ends the process. For one thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHAOS_WITNESS_DB_H
#define DIBS_TESTS_CHAOS_WITNESS_DB_H

#include <stdint.h>

typedef struct witness_db witness_db;

/* Opens witness.db in the folder, and makes the tables. NULL when it cannot be opened; why
 * is on stderr. Close it with witness_db_close(). */
witness_db *witness_db_open(const char *folder, const char *schema);
void witness_db_close(witness_db *db); /* NULL is a no-op */

void witness_db_run(witness_db *db, const char *sql);

/* `sql` is a literal: it is known by its address. The numbers are uint64_t. */
void witness_db_insert(witness_db *db, const char *sql, int count, ...);

/* The one number that a query answers; 0 when it is NULL. */
uint64_t witness_db_number(witness_db *db, const char *sql, int count, ...);

#endif
