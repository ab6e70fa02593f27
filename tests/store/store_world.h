/* store_world.h - a folder, a database in it, and short ways to use the steps. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_STORE_WORLD_H
#define DIBS_TESTS_STORE_WORLD_H

/* cmocka.h needs these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "store/sqlite/db.h"
#include "store/store.h"

typedef struct world {
    char folder[64];
    char path[96]; /* of the database */
    char url[128];
    dibs_error err; /* of the last call that took one */
} world;

/* For cmocka: an empty folder for each test. */
int world_setup(void **state);
int world_teardown(void **state);

#define WORLD_TEST(name)                                                       \
    cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

dibsx_nsec soon(void); /* a deadline of ten seconds */

/* Opens what must open, closed with dibs__store_close(). */
dibs__store *world_open(world *w);
dibs__store *world_open_url(world *w, const char *url);

/* Opens what must not: the status, with w->err. */
dibs_status world_refused(world *w, const char *url);

/* The n-th of as many owners as are wanted. */
const char *owner(unsigned n);

/* Longer than hundreds of steps take on a slow disk. */
enum { WORLD_TTL_MS = 120000 };

/* Steps on a name as the n-th owner, for WORLD_TTL_MS. */
dibs_status try_lock(world *w, dibs__store *st, const char *name, unsigned n,
                     dibs__answer *ans);
dibs_status queue_lock(world *w, dibs__store *st, const char *name, unsigned n,
                       dibs__answer *ans);
dibs_status unlock(world *w, dibs__store *st, const char *name, unsigned n);

/* Writes and reads a value; the version that it got, or the text. */
uint64_t put_text(world *w, dibs__store *st, const char *key, const char *text);
void assert_text(world *w, dibs__store *st, const char *key, const char *text);

/* Runs SQL on a connection of its own, past the store. */
void world_sql(const char *path, const char *sql);
int64_t world_number(const char *path, const char *sql);
void world_text(const char *path, const char *sql, char *out, size_t size);

/* A small file: written whole, compared whole. */
void file_write(const char *path, const void *data, size_t len);
size_t file_read(const char *path, void *data, size_t size);
int64_t file_size(const char *path); /* -1: there is none */

#endif
