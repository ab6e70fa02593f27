/* sessions.h - two sessions of a test, which hold their transactions open at the worst
 * moment, without the library. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_POSTGRES_SESSIONS_H
#define DIBS_TESTS_POSTGRES_SESSIONS_H

#include "pg_world.h"

enum { SQL_MAX = 512, SESSIONS = 2 };

extern PGconn *session[SESSIONS];
extern char queue[32]; /* another one for each test */

/* Around each test. */
int open_sessions(void **state);
int close_sessions(void **state);
#define SESSION_TEST(name)                                                     \
    cmocka_unit_test_setup_teardown(name, open_sessions, close_sessions)

/* Runs a statement, whose first cell is copied to `out` if that is not NULL. Answers how
 * many rows it has. */
__attribute__((format(printf, 3, 4))) int
tell(PGconn *pq, char *out, const char *format, ...);

/* The rows of a table of dibs; what may follow its name. */
long long count(const char *what);

/* Whether what was sent has ended. */
bool is_over(PGconn *pq);

/* The statement that was sent on a session either waits for a lock, or ends. */
void await_second(PGconn *pq);

/* Takes the answer to what was sent: its rows. */
int finish(PGconn *pq);

/* Entries of tables and indexes that the transaction has looked at so far. */
long long looked_at(void);

#endif
