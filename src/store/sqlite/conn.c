/* conn.c - one connection to a database: statements, transactions, deadlines.
 *
 * Owns the sqlite3 handle and its prepared statements. Runs on the thread that
 * entered. A failed step leaves the connection usable. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/conn.h"
#include "base/fail.h"
#include "store/sqlite/error.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A lock is tried again after a nap that doubles from the first to the last. */
#define NAP_FIRST ((dibsx_nsec)50000)
#define NAP_LAST  ((dibsx_nsec)1600000)

enum {
    PROGRESS_OPS = 5000, /* between two looks at the clock */
    LOG_KEPT_PAGES = 64  /* to read a longer one costs more than a sync */
};

void dibs__sqlite_conn_init(dibs__sqlite_conn *cn, dibs__sqlite_setup_fn *setup,
                            dibs__sqlite_file *file, bool durable,
                            int checkpoint_at)
{
    pthread_condattr_t attr;

    memset(cn, 0, sizeof(*cn));
    cn->setup = setup;
    cn->file = file;
    cn->durable = durable;
    cn->checkpoint_at = checkpoint_at;
    cn->prng.state = (uint64_t)dibsx_now() ^ (uint64_t)(uintptr_t)cn;
    pthread_mutex_init(&cn->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&cn->freed, &attr);
    pthread_condattr_destroy(&attr);
}

static void conn_close(dibs__sqlite_conn *cn)
{
    for (size_t i = 0; i < DIBS__SQL_COUNT; i++) {
        dibs__sql.finalize(cn->stmts[i]);
        cn->stmts[i] = NULL;
    }
    dibs__sql.close(cn->db);
    cn->db = NULL;
}

/* Cuts a log that has grown long, unless others are in the way. The next to
 * open may have to read it from its beginning. */
static void cut_log(dibs__sqlite_conn *cn)
{
    if (cn->log_pages < LOG_KEPT_PAGES)
        return;
    cn->deadline = 0;
    (void)dibs__sql.wal_checkpoint_v2(cn->db, NULL, SQLITE_CHECKPOINT_TRUNCATE,
                                      NULL, NULL);
}

void dibs__sqlite_conn_fini(dibs__sqlite_conn *cn)
{
    if (cn->db) {
        cut_log(cn);
        conn_close(cn);
    }
    dibs__roll_fini(&cn->roll);
    dibs__sqlite_notices_fini(&cn->notices);
    pthread_cond_destroy(&cn->freed);
    pthread_mutex_destroy(&cn->mutex);
}

/* Called by SQLite when another connection has the lock; 0 gives up. */
static int on_busy(void *arg, int tries)
{
    dibs__sqlite_conn *cn = arg;
    dibsx_nsec left = cn->deadline - dibsx_now();
    dibsx_nsec nap = tries < 5 ? NAP_FIRST << tries : NAP_LAST;
    struct timespec ts;

    if (left <= 0)
        return 0;
    nap = nap / 2 + (dibsx_nsec)dibsx_prng_below(&cn->prng, (uint64_t)nap);
    if (nap > left)
        nap = left;
    ts.tv_sec = nap / DIBSX_SEC;
    ts.tv_nsec = nap % DIBSX_SEC;
    (void)nanosleep(&ts, NULL);
    return 1;
}

/* Called by SQLite now and then during a statement; 1 ends it. */
static int on_progress(void *arg)
{
    const dibs__sqlite_conn *cn = arg;

    return !cn->firm && dibsx_now() > cn->deadline;
}

/* Called by SQLite after a commit. A checkpoint that fails does not concern the
 * step, which is done; the next commit tries again. */
static int on_commit(void *arg, sqlite3 *db, const char *name, int pages)
{
    dibs__sqlite_conn *cn = arg;

    cn->log_pages = pages;
    if (pages >= cn->checkpoint_at)
        (void)dibs__sql.wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE,
                                          NULL, NULL);
    return SQLITE_OK;
}

static bool can_write(const char *path, const char *ending)
{
    char whole[PATH_MAX];
    int len = snprintf(whole, sizeof(whole), "%s%s", path, ending);

    return len > 0 && (size_t)len < sizeof(whole) &&
           (faccessat(AT_FDCWD, whole, W_OK, AT_EACCESS) == 0 ||
            errno == ENOENT);
}

/* If SQLite cannot open a file for writing, even for a moment (no descriptors were
 * left, say), it opens the file for reading, and the connection would stay so. */
static bool is_shut_by_chance(const dibs__sqlite_conn *cn, int code)
{
    return (code == SQLITE_READONLY || code == SQLITE_READONLY_RECOVERY ||
            code == SQLITE_READONLY_CANTLOCK ||
            code == SQLITE_READONLY_CANTINIT) &&
           cn->file && can_write(cn->file->path, "") &&
           can_write(cn->file->path, "-wal") &&
           can_write(cn->file->path, "-shm");
}

dibs_status dibs__sqlite_raise(dibs__sqlite_conn *cn, int code, dibs_error *err)
{
    dibs__sqlite_fault fault = {
        .code = code,
        .sys = cn->db ? dibs__sql.system_errno(cn->db) : 0,
        .committing = cn->firm,
        .detail = cn->db ? dibs__sql.errmsg(cn->db) : NULL,
        .path = cn->file ? cn->file->path : NULL,
    };
    int primary = code & 0xff;

    if (is_shut_by_chance(cn, code)) {
        cn->stale = true;
        return dibsx_fail_at(err, DIBS_UNAVAIL, "SQLITE_READONLY",
                             "the database could not be opened to be written "
                             "(%s)",
                             cn->file->path);
    }
    /* An older call may have left the number behind. */
    if (primary != SQLITE_IOERR && primary != SQLITE_CANTOPEN)
        fault.sys = 0;
    return dibs__sqlite_fail(&fault, err);
}

bool dibs__sqlite_same_file(const dibs__sqlite_file *file)
{
    struct stat at;

    return stat(file->path, &at) == 0 && at.st_ino == file->ino &&
           at.st_dev == file->dev;
}

static dibs_status fail_replaced(const dibs__sqlite_file *file, dibs_error *err)
{
    return dibsx_fail(err, DIBS_REFUSED,
                      "the database was removed or replaced while in use; stop "
                      "all that use it, then open it again (%s)",
                      file->path);
}

/* Remembers which file the first connection opened; the others must get it. */
static dibs_status know_file(dibs__sqlite_file *file, dibs_error *err)
{
    struct stat at;

    if (file->ino == 0 && stat(file->path, &at) == 0) {
        file->dev = at.st_dev;
        file->ino = at.st_ino;
    }
    return dibs__sqlite_same_file(file) ? DIBS_OK : fail_replaced(file, err);
}

static dibs_status conn_open(dibs__sqlite_conn *cn, dibs_error *err)
{
    const char *path = cn->file ? cn->file->path : ":memory:";
    int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int code = dibs__sql.open_v2(path, &cn->db, flags, NULL);
    dibs_status rc;

    if (code != SQLITE_OK)
        return dibs__sqlite_raise(cn, code, err);
    dibs__sql.extended_result_codes(cn->db, 1);
    dibs__sql.busy_handler(cn->db, on_busy, cn);
    dibs__sql.progress_handler(cn->db, PROGRESS_OPS, on_progress, cn);
    rc = cn->file ? know_file(cn->file, err) : DIBS_OK;
    if (rc == DIBS_OK)
        rc = cn->setup(cn, err);
    if (rc != DIBS_OK || !cn->file)
        return rc;
    /* Only now: a foreign database is left as any reader leaves it. */
    dibs__sql.db_config(cn->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    dibs__sql.wal_hook(cn->db, on_commit, cn);
    return DIBS_OK;
}

/* A moment on the clock by which condition variables can wait: the deadline, or
 * in an hour. */
static struct timespec wait_until(dibsx_nsec deadline)
{
    dibsx_nsec left = deadline - dibsx_now();
    struct timespec ts;

    if (left > 3600 * DIBSX_SEC)
        left = 3600 * DIBSX_SEC;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    left += ts.tv_nsec;
    ts.tv_sec += left / DIBSX_SEC;
    ts.tv_nsec = left % DIBSX_SEC;
    return ts;
}

/* As a mutex, but with a deadline on the clock of leases. */
static bool lock_until(dibs__sqlite_conn *cn, dibsx_nsec deadline)
{
    bool got;

    pthread_mutex_lock(&cn->mutex);
    while (cn->taken && dibsx_now() < deadline) {
        struct timespec ts = wait_until(deadline);

        (void)pthread_cond_timedwait(&cn->freed, &cn->mutex, &ts);
    }
    got = !cn->taken && dibsx_now() < deadline;
    /* A thread that is too late may have taken the signal of another. */
    if (!got && !cn->taken)
        pthread_cond_signal(&cn->freed);
    cn->taken |= got;
    pthread_mutex_unlock(&cn->mutex);
    return got;
}

dibs_status dibs__sqlite_enter_as_is(dibs__sqlite_conn *cn, dibsx_nsec deadline,
                                     dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (!lock_until(cn, deadline))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the deadline passed before the step could begin");
    cn->deadline = deadline;
    if (cn->stale)
        conn_close(cn);
    cn->stale = false;
    if (!cn->db) {
        rc = conn_open(cn, err);
        if (rc != DIBS_OK) {
            conn_close(cn);
            dibs__sqlite_leave(cn);
        }
    }
    return rc;
}

dibs_status
dibs__sqlite_enter(dibs__sqlite_conn *cn, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_enter_as_is(cn, deadline, err);

    if (rc == DIBS_OK && cn->file && !dibs__sqlite_same_file(cn->file)) {
        rc = fail_replaced(cn->file, err);
        dibs__sqlite_leave(cn);
    }
    return rc;
}

void dibs__sqlite_leave(dibs__sqlite_conn *cn)
{
    pthread_mutex_lock(&cn->mutex);
    cn->taken = false;
    pthread_cond_signal(&cn->freed);
    pthread_mutex_unlock(&cn->mutex);
}

static int bind_args(sqlite3_stmt *stmt, const char *types, va_list args)
{
    int code = SQLITE_OK;
    const void *bytes;

    for (int i = 1; *types && code == SQLITE_OK; types++, i++) {
        switch (*types) {
        case 't':
            code = dibs__sql.bind_text(stmt, i, va_arg(args, const char *), -1,
                                       SQLITE_STATIC);
            break;
        case 'i':
            code = dibs__sql.bind_int64(stmt, i, va_arg(args, int64_t));
            break;
        case 'b':
            bytes = va_arg(args, const void *);
            code =
                dibs__sql.bind_blob(stmt, i, bytes ? bytes : "",
                                    (int)va_arg(args, size_t), SQLITE_STATIC);
            break;
        default:
            assert(*types == 'n');
            code = dibs__sql.bind_null(stmt, i);
        }
    }
    return code;
}

static dibs_status
start_query(dibs__sqlite_conn *cn, sqlite3_stmt **stmt, dibs_error *err,
            dibs__sqlite_query query, const char *types, va_list args)
{
    int code = SQLITE_OK;

    if (!cn->stmts[query])
        code = dibs__sql.prepare_v3(cn->db, dibs__sqlite_query_text[query], -1,
                                    SQLITE_PREPARE_PERSISTENT,
                                    &cn->stmts[query], NULL);
    if (code == SQLITE_OK)
        code = bind_args(cn->stmts[query], types, args);
    *stmt = cn->stmts[query];
    return code == SQLITE_OK ? DIBS_OK : dibs__sqlite_raise(cn, code, err);
}

dibs_status
dibs__sqlite_ask(dibs__sqlite_conn *cn, sqlite3_stmt **stmt, dibs_error *err,
                 dibs__sqlite_query query, const char *types, ...)
{
    dibs_status rc;
    va_list args;

    va_start(args, types);
    rc = start_query(cn, stmt, err, query, types, args);
    va_end(args);
    return rc;
}

dibs_status
dibs__sqlite_row(dibs__sqlite_conn *cn, sqlite3_stmt *stmt, dibs_error *err)
{
    int code = dibs__sql.step(stmt);
    dibs_status rc = DIBS_NOTFOUND;

    if (code == SQLITE_ROW)
        return DIBS_OK;
    if (code != SQLITE_DONE)
        rc = dibs__sqlite_raise(cn, code, err);
    dibs__sqlite_reset(stmt);
    return rc;
}

void dibs__sqlite_reset(sqlite3_stmt *stmt)
{
    (void)dibs__sql.reset(stmt); /* It repeats the result of step(). */
}

dibs_status dibs__sqlite_run(dibs__sqlite_conn *cn, dibs_error *err,
                             dibs__sqlite_query query, const char *types, ...)
{
    sqlite3_stmt *stmt;
    dibs_status rc;
    va_list args;

    va_start(args, types);
    rc = start_query(cn, &stmt, err, query, types, args);
    va_end(args);
    while (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

dibs_status
dibs__sqlite_exec(dibs__sqlite_conn *cn, const char *sql, dibs_error *err)
{
    int code = dibs__sql.exec(cn->db, sql, NULL, NULL, NULL);

    /* To switch to the log SQLite asks for two locks in a row, and does not
     * wait for the second. */
    for (int tries = 0; (code & 0xff) == SQLITE_BUSY; tries++) {
        if (!on_busy(cn, tries))
            break;
        code = dibs__sql.exec(cn->db, sql, NULL, NULL, NULL);
    }
    return code == SQLITE_OK ? DIBS_OK : dibs__sqlite_raise(cn, code, err);
}

static dibs_status read_watermark(dibs__sqlite_conn *cn, dibs_error *err)
{
    sqlite3_stmt *stmt;
    int64_t stored;
    dibs_status rc = dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_WATERMARK, "");

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, DIBS_INTERNAL, "the watermark is missing");
    if (rc != DIBS_OK)
        return rc;
    stored = dibs__sql.column_int64(stmt, 0);
    dibs__sqlite_reset(stmt);
    if (stored < 0)
        return dibsx_fail(err, DIBS_INTERNAL, "the watermark is negative");
    cn->watermark = cn->stored = (uint64_t)stored;
    return DIBS_OK;
}

static dibs_status check_begun(dibs__sqlite_conn *cn, dibs_error *err)
{
    if (dibsx_now() > cn->deadline)
        return dibs__sqlite_raise(cn, SQLITE_INTERRUPT, err);
    if (!cn->file)
        return DIBS_OK;
    if (!dibs__sqlite_same_file(cn->file))
        return fail_replaced(cn->file, err);
    return read_watermark(cn, err);
}

dibs_status dibs__sqlite_begin(dibs__sqlite_conn *cn, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_run(cn, err, DIBS__SQL_BEGIN, "");

    if (rc != DIBS_OK)
        return rc;
    cn->stored = cn->watermark;
    rc = check_begun(cn, err);
    return rc == DIBS_OK ? rc : dibs__sqlite_end(cn, rc, err);
}

/* A connection to a file that cannot get out of its transaction is given up, for
 * it keeps others out: the next step opens it again. */
void dibs__sqlite_roll_back(dibs__sqlite_conn *cn)
{
    dibs_status rc;

    cn->notices.count = 0;
    cn->watermark = cn->stored;
    if (dibs__sql.get_autocommit(cn->db))
        return;
    cn->firm = true;
    rc = dibs__sqlite_run(cn, NULL, DIBS__SQL_ROLLBACK, "");
    cn->firm = false;
    if (rc != DIBS_OK && cn->file)
        conn_close(cn);
}

static dibs_status commit_change(dibs__sqlite_conn *cn, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    if (cn->file && cn->watermark > cn->stored)
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_WATERMARK_SET, "i",
                              (int64_t)cn->watermark);
    if (rc != DIBS_OK)
        return rc;
    cn->firm = true;
    rc = dibs__sqlite_run(cn, err, DIBS__SQL_COMMIT, "");
    cn->firm = false;
    return rc;
}

dibs_status
dibs__sqlite_end(dibs__sqlite_conn *cn, dibs_status rc, dibs_error *err)
{
    dibs_status done = rc < DIBS_UNAVAIL ? commit_change(cn, err) : rc;

    if (done == DIBS_OK)
        return rc;
    dibs__sqlite_roll_back(cn);
    return done;
}
