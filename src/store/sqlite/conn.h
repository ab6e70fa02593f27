/* conn.h - one connection to a database: statements, transactions, deadlines.
 *
 * A connection is locked between enter and leave ("Locks: cn."). A function that
 * fails in between fills err and returns a status that a step may pass on. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_CONN_H
#define DIBS_STORE_SQLITE_CONN_H

#include "base/clock.h"
#include "base/rand.h"
#include "store/grant.h"
#include "store/sqlite/doorbell.h"
#include "store/sqlite/driver.h"
#include "store/sqlite/query.h"
#include <pthread.h>
#include <sys/types.h>

/* The file behind a database, shared by its connections. */
typedef struct dibs__sqlite_file {
    char *path; /* absolute */
    dev_t dev;
    ino_t ino; /* 0 until the first connection is open */
} dibs__sqlite_file;

struct dibs__sqlite_conn;

/* Makes a database that was opened ready for use. Locks: cn. */
typedef dibs_status
dibs__sqlite_setup_fn(struct dibs__sqlite_conn *cn, dibs_error *err);

typedef struct dibs__sqlite_conn {
    dibs__sqlite_setup_fn *setup;
    dibs__sqlite_file *file; /* borrowed; NULL: in memory */
    bool durable;            /* a commit reaches the disk */
    int checkpoint_at;       /* pages of the log */

    pthread_mutex_t mutex; /* guards `taken` */
    pthread_cond_t freed;
    bool taken; /* by a thread between enter and leave, whose is all below */

    sqlite3 *db; /* NULL until first entered */
    bool stale;  /* to be opened anew when next entered */
    sqlite3_stmt *stmts[DIBS__SQL_COUNT];
    dibsx_nsec deadline; /* of the step under way */
    bool firm;           /* a commit or a rollback runs: do not interrupt it */
    int log_pages;       /* in the log after the last commit */
    uint64_t watermark;  /* of the transaction; in memory: of the store */
    uint64_t stored;     /* the watermark before the transaction */
    dibsx_prng prng;
    dibs__roll roll;              /* storage that steps use again and again */
    dibs__sqlite_notices notices; /* to send after the commit */
} dibs__sqlite_conn;

/* `file` NULL makes a database in memory, which lives until fini. Nothing is
 * opened before the first enter, which has it made ready by `setup`. The caller
 * owns the struct; end with fini. */
void dibs__sqlite_conn_init(dibs__sqlite_conn *cn, dibs__sqlite_setup_fn *setup,
                            dibs__sqlite_file *file, bool durable,
                            int checkpoint_at);
void dibs__sqlite_conn_fini(dibs__sqlite_conn *cn);

/* Takes the connection, opening it if need be; DIBS_REFUSED when the file was
 * removed or replaced. Only DIBS_OK needs a leave. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_enter(dibs__sqlite_conn *cn,
                                               dibsx_nsec deadline,
                                               dibs_error *err);

/* The same whatever has become of the file: for the audit, which reports it. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_enter_as_is(dibs__sqlite_conn *cn,
                                                     dibsx_nsec deadline,
                                                     dibs_error *err);
void dibs__sqlite_leave(dibs__sqlite_conn *cn);

/* Begins a change and reads the watermark. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_begin(dibs__sqlite_conn *cn,
                                               dibs_error *err);

/* Ends it: commits when `rc` is an outcome, rolls back when it is a failure.
 * Answers rc, or why the commit failed. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_end(dibs__sqlite_conn *cn,
                                             dibs_status rc, dibs_error *err);

/* Ends it without a trace: nothing has changed, no notice is sent, and the watermark
 * is what it was. */
void dibs__sqlite_roll_back(dibs__sqlite_conn *cn);

/* Binds the arguments, of types as in `types`: t text, i int64_t, n NULL, b
 * bytes (const void *, size_t). They are borrowed until the statement is
 * reset. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_ask(dibs__sqlite_conn *cn,
                                             sqlite3_stmt **stmt,
                                             dibs_error *err,
                                             dibs__sqlite_query query,
                                             const char *types, ...);

/* DIBS_OK: there is a row, read it. DIBS_NOTFOUND: no further row, and the
 * statement is reset, as after a failure. */
dibs_status
dibs__sqlite_row(dibs__sqlite_conn *cn, sqlite3_stmt *stmt, dibs_error *err);
void dibs__sqlite_reset(sqlite3_stmt *stmt);

/* Asks and ignores the rows. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_run(dibs__sqlite_conn *cn,
                                             dibs_error *err,
                                             dibs__sqlite_query query,
                                             const char *types, ...);

/* Runs SQL outside of any transaction, waiting for locks until the deadline. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_exec(dibs__sqlite_conn *cn,
                                              const char *sql, dibs_error *err);

/* Raises the result code of a call on this connection. */
dibs_status
dibs__sqlite_raise(dibs__sqlite_conn *cn, int code, dibs_error *err);

/* Whether the path still leads to the file that is open. */
bool dibs__sqlite_same_file(const dibs__sqlite_file *file);

/* Where the boot id is read from; tests point it elsewhere. */
extern const char *dibs__sqlite_boot_id_path;

#endif
