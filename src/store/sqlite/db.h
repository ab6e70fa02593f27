/* db.h - a database and a handle on it: what the files of this folder share.
 *
 * A file has three connections, so that renewals wait for nothing else of this
 * process and only values pay for the disk. A database in memory exists in one
 * connection only, which serves all. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_DB_H
#define DIBS_STORE_SQLITE_DB_H

#include "store/sqlite/conn.h"
#include "store/sqlite/doorbell.h"
#include "store/store.h"

typedef enum dibs__sqlite_role {
    DIBS__SQLITE_LEASE,
    DIBS__SQLITE_RENEW,
    DIBS__SQLITE_VALUE,
    DIBS__SQLITE_ROLES
} dibs__sqlite_role;

typedef struct dibs__sqlite_db {
    dibs__sqlite_file file; /* path is NULL in memory */
    dibs__sqlite_conn conns[DIBS__SQLITE_ROLES];
    char *name; /* in memory and shared under it; NULL: not shared */

    unsigned refs; /* handles; guarded, as all below, by the registry */
    pid_t pid;     /* the process that opened it */
    struct dibs__sqlite_db *next;
} dibs__sqlite_db;

typedef struct dibs__sqlite {
    dibs__store base;
    dibs__sqlite_db *db;
    dibs__sqlite_doorbell doorbell;
} dibs__sqlite;

static inline dibs__sqlite *dibs__sqlite_of(struct dibs__store *st)
{
    return (dibs__sqlite *)st;
}

static inline dibs__sqlite_conn *
dibs__sqlite_conn_of(struct dibs__store *st, dibs__sqlite_role role)
{
    dibs__sqlite_db *db = dibs__sqlite_of(st)->db;

    return &db->conns[db->file.path ? role : DIBS__SQLITE_LEASE];
}

/* Makes a connection ready: checks that the database is ours and of this boot,
 * makes the tables of an empty one. Locks: cn. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_setup(dibs__sqlite_conn *cn,
                                               dibs_error *err);

/* Rows of the table party. Read takes the columns of DIBS__SQL_PARTY_ROLL;
 * DIBS_INTERNAL: they hold what no party can. Load fills cn->roll for one step
 * on the name; save writes what is marked and keeps the notices for later. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_party_read(sqlite3_stmt *stmt,
                                                    dibs__party *party,
                                                    dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__sqlite_roll_load(dibs__sqlite_conn *cn,
                                                   const char *name,
                                                   dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__sqlite_roll_save(dibs__sqlite_conn *cn,
                                                   const char *name,
                                                   dibs_error *err);

/* Keeps the notices of the roll for later. */
void dibs__sqlite_roll_notify(dibs__sqlite_conn *cn);

/* Removes parties long dead of names that nobody asks for, a few at a time.
 * Inside a change. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_sweep(dibs__sqlite_conn *cn,
                                               dibs_error *err);

/* The frame of a step that changes something: begin enters the connection and
 * starts the transaction; end commits an outcome and rolls back a failure, sends notices,
 * and leaves. Only DIBS_OK from begin needs an end. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_step_begin(struct dibs__store *st,
                                                    dibs__sqlite_role role,
                                                    dibsx_nsec deadline,
                                                    dibs__sqlite_conn **cn,
                                                    dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__sqlite_step_end(struct dibs__store *st,
                                                  dibs__sqlite_conn *cn,
                                                  dibs_status rc,
                                                  dibs_error *err);

/* The next version or position, which come from the watermark as fences do.
 * Inside a change. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_next(dibs__sqlite_conn *cn,
                                              int64_t now_wall_us,
                                              uint64_t *number,
                                              dibs_error *err);

/* Tells a topic, once the change is committed. Inside a change. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_tell(dibs__sqlite_conn *cn,
                                              const char *topic,
                                              dibs__notice_kind kind,
                                              uint64_t number, dibs_error *err);

/* The same for a change of a value, which shows what the put says. One in a
 * transaction. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_show(dibs__sqlite_conn *cn,
                                              const char *topic,
                                              const dibs__put *put,
                                              uint64_t version,
                                              dibs_error *err);

/* Steps of the contract that have a file of their own. */
extern const dibs__lease_ops dibs__sqlite_lease_ops;
extern const dibs__value_ops dibs__sqlite_value_ops;
extern const dibs__log_ops dibs__sqlite_log_ops;
extern const dibs__topic_ops dibs__sqlite_topic_ops;
extern const dibs__rate_ops dibs__sqlite_rate_ops;
extern const dibs__meter_ops dibs__sqlite_meter_ops;
extern const dibs__roster_ops dibs__sqlite_roster_ops;
extern const dibs__queue_ops dibs__sqlite_queue_ops;
extern const dibs__queue_admin_ops dibs__sqlite_queue_admin_ops;
extern const dibs__commit_ops dibs__sqlite_commit_ops;

#define DIBS__SQLITE_STEP(step, STEP) DIBS__LEASE_STEP(sqlite, step)
DIBS__LEASE_STEPS(DIBS__SQLITE_STEP)

dibs_status
dibs__sqlite_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err);

#endif
