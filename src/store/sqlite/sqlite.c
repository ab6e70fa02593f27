/* sqlite.c - the embedded store: a SQLite file, or the same in memory.
 *
 * Owns the handles and the registry of databases, by which handles share one in
 * memory by its name. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/sqlite.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ground.h"
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages in the log at which a commit also moves them to the database. Renewals
 * do it late, so that others nearly always have done it before. */
enum { CHECKPOINT_PAGES = 1000, CHECKPOINT_PAGES_RENEW = 4000 };

/* Every database that is open in this process, and those that it inherited. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static dibs__sqlite_db *registry; /* guarded by registry_mutex */
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;

/* Runs in a child process, where the thread that had the mutex is not. */
static void after_fork(void)
{
    pthread_mutex_init(&registry_mutex, NULL);
    dibs__sqlite_doorbell_forked();
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork);
}

static void registry_lock(void)
{
    pthread_once(&registry_once, watch_forks);
    pthread_mutex_lock(&registry_mutex);
}

static void db_free(dibs__sqlite_db *db)
{
    for (size_t i = 0; i < DIBS__SQLITE_ROLES; i++)
        dibs__sqlite_conn_fini(&db->conns[i]);
    dibsx_free(db->file.path);
    dibsx_free(db->name);
    dibsx_free(db);
}

/* Takes `path` and `name` over, also when it fails. Without a path the database
 * is in memory. Locks: registry_mutex. */
static dibs__sqlite_db *db_new(char *path, char *name)
{
    dibs__sqlite_db *db = dibsx_zalloc(sizeof(*db));
    dibs__sqlite_file *file;

    if (!db) {
        dibsx_free(path);
        dibsx_free(name);
        return NULL;
    }
    db->file.path = path;
    db->name = name;
    file = path ? &db->file : NULL;
    dibs__sqlite_conn_init(&db->conns[DIBS__SQLITE_LEASE], dibs__sqlite_setup,
                           file, false, CHECKPOINT_PAGES);
    dibs__sqlite_conn_init(&db->conns[DIBS__SQLITE_RENEW], dibs__sqlite_setup,
                           file, false, CHECKPOINT_PAGES_RENEW);
    dibs__sqlite_conn_init(&db->conns[DIBS__SQLITE_VALUE], dibs__sqlite_setup,
                           file, true, CHECKPOINT_PAGES);
    db->refs = 1;
    db->pid = getpid();
    db->next = registry;
    registry = db;
    return db;
}

/* SQLite keeps its locks by process and would take those of the parent for ours,
 * so a database that the parent has open is not opened again. Locks:
 * registry_mutex. */
static dibs_status check_inherited(const char *path, dibs_error *err)
{
    struct stat at;

    if (stat(path, &at) != 0)
        return DIBS_OK;
    for (const dibs__sqlite_db *db = registry; db; db = db->next)
        if (db->pid != getpid() && db->file.path && db->file.ino == at.st_ino &&
            db->file.dev == at.st_dev)
            return dibsx_fail(err, DIBS_REFUSED,
                              "this process was forked from one that has the "
                              "database open; open it after the fork only, or "
                              "run another program (%s)",
                              path);
    return DIBS_OK;
}

/* Takes `path` over. */
static dibs_status db_file(char *path, dibs__sqlite_db **out, dibs_error *err)
{
    dibs_status rc;

    registry_lock();
    rc = check_inherited(path, err);
    if (rc == DIBS_OK)
        *out = db_new(path, NULL);
    else
        dibsx_free(path);
    pthread_mutex_unlock(&registry_mutex);
    return rc;
}

/* Locks: registry_mutex. */
static dibs__sqlite_db *db_named(const char *name)
{
    char *copy;

    for (dibs__sqlite_db *db = registry; db; db = db->next)
        if (db->pid == getpid() && db->name && strcmp(db->name, name) == 0) {
            db->refs++;
            return db;
        }
    copy = dibsx_strdup(name);
    return copy ? db_new(NULL, copy) : NULL;
}

/* `name` NULL: not shared. NULL when memory is short. */
static dibs__sqlite_db *db_memory(const char *name)
{
    dibs__sqlite_db *db;

    registry_lock();
    db = name ? db_named(name) : db_new(NULL, NULL);
    pthread_mutex_unlock(&registry_mutex);
    return db;
}

static void db_unref(dibs__sqlite_db *db)
{
    dibs__sqlite_db **at = &registry;
    bool last;

    registry_lock();
    last = --db->refs == 0;
    if (last) {
        while (*at != db)
            at = &(*at)->next;
        *at = db->next;
    }
    pthread_mutex_unlock(&registry_mutex);
    if (last)
        db_free(db);
}

/* Makes a handle and opens its database. Takes the reference over. */
static dibs_status
handle_open(const dibs__store_ops *ops, dibs__sqlite_db *db,
            dibsx_nsec deadline, dibs__store **out, dibs_error *err)
{
    dibs__sqlite *sq = db ? dibsx_zalloc(sizeof(*sq)) : NULL;
    dibs_status rc;

    if (!sq) {
        if (db)
            db_unref(db);
        return dibsx_nomem(err, "a store handle");
    }
    sq->base.ops = ops;
    sq->db = db;
    dibs__sqlite_doorbell_init(&sq->doorbell, db->file.path);
    rc = dibs__sqlite_enter(&db->conns[DIBS__SQLITE_LEASE], deadline, err);
    if (rc != DIBS_OK) {
        ops->close(&sq->base);
        return rc;
    }
    dibs__sqlite_leave(&db->conns[DIBS__SQLITE_LEASE]);
    *out = &sq->base;
    return DIBS_OK;
}

static void store_close(dibs__store *st)
{
    dibs__sqlite *sq = dibs__sqlite_of(st);

    dibs__sqlite_doorbell_fini(&sq->doorbell);
    db_unref(sq->db);
    dibsx_free(sq);
}

/* `known` is the one parameter that may be given, NULL for none. */
static dibs_status
check_url(const dibsx_url *url, const char *known, dibs_error *err)
{
    if (url->host_count > 0 || url->user)
        return dibsx_fail(err, DIBS_INVALID, "a %s URL has no host; write %s",
                          url->scheme,
                          known ? "sqlite:/path/file.db" : "memory:NAME");
    for (size_t i = 0; i < url->param_count; i++)
        if (!known || strcmp(url->params[i].key, known) != 0)
            return dibsx_fail(err, DIBS_INVALID,
                              "a %s URL has no parameter \"%.40s\"",
                              url->scheme, url->params[i].key);
    return DIBS_OK;
}

static dibs_status file_open(const dibsx_url *url, dibsx_nsec deadline,
                             dibs__store **out, dibs_error *err)
{
    const char *any_fs = dibsx_url_param_get(url, "any_fs");
    dibs_status rc = check_url(url, "any_fs", err);
    dibs__sqlite_db *db = NULL;
    char *path;

    if (rc != DIBS_OK)
        return rc;
    if (!url->path)
        return dibsx_fail(err, DIBS_INVALID,
                          "the URL names no file; write sqlite:/path/file.db");
    if (any_fs && strcmp(any_fs, "0") != 0 && strcmp(any_fs, "1") != 0)
        return dibsx_fail(err, DIBS_INVALID, "any_fs is 0 or 1");
    rc = dibs__sqlite_load(err);
    if (rc == DIBS_OK)
        rc =
            dibs__ground_check(url->path, any_fs && *any_fs == '1', &path, err);
    if (rc == DIBS_OK)
        rc = db_file(path, &db, err);
    if (rc != DIBS_OK)
        return rc;
    return handle_open(&dibs__sqlite_ops, db, deadline, out, err);
}

static dibs_status memory_open(const dibsx_url *url, dibsx_nsec deadline,
                               dibs__store **out, dibs_error *err)
{
    dibs_status rc = check_url(url, NULL, err);

    if (rc == DIBS_OK)
        rc = dibs__sqlite_load(err);
    if (rc != DIBS_OK)
        return rc;
    return handle_open(&dibs__memory_ops, db_memory(url->path), deadline, out,
                       err);
}

static dibs_status
open_doorbell(dibs__store *st, dibsx_nsec deadline, int *fd, dibs_error *err)
{
    (void)deadline;
    return dibs__sqlite_doorbell_open(&dibs__sqlite_of(st)->doorbell, fd, err);
}

static size_t read_doorbell(dibs__store *st, dibs__notice *notices, size_t max)
{
    return dibs__sqlite_doorbell_read(&dibs__sqlite_of(st)->doorbell, notices,
                                      max);
}

static dibs_status read_clock(dibs__store *st, dibsx_nsec deadline,
                              int64_t *store_wall_us, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_LEASE);
    dibs_status rc = dibs__sqlite_enter(cn, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    rc = dibs__sqlite_run(cn, err, DIBS__SQL_WATERMARK, "");
    *store_wall_us = dibsx_wall_us();
    dibs__sqlite_leave(cn);
    return rc;
}

static const char *find_lack(const dibs__store *st, dibs__ability what)
{
    (void)st;
    return what == DIBS__CAN_REPLICATE
               ? "this store has no replicas: its durability is async"
               : NULL;
}

const dibs__store_ops dibs__sqlite_ops = {
    .scheme = "sqlite",
    .open = file_open,
    .close = store_close,
    .lease = &dibs__sqlite_lease_ops,
    .value = &dibs__sqlite_value_ops,
    .log = &dibs__sqlite_log_ops,
    .topic = &dibs__sqlite_topic_ops,
    .rate = &dibs__sqlite_rate_ops,
    .meter = &dibs__sqlite_meter_ops,
    .roster = &dibs__sqlite_roster_ops,
    .queue = &dibs__sqlite_queue_ops,
    .queue_admin = &dibs__sqlite_queue_admin_ops,
    .commit = &dibs__sqlite_commit_ops,
    .doorbell_open = open_doorbell,
    .doorbell_read = read_doorbell,
    .now = read_clock,
    .cannot = find_lack,
    .audit = dibs__sqlite_audit,
};

const dibs__store_ops dibs__memory_ops = {
    .scheme = "memory",
    .open = memory_open,
    .close = store_close,
    .lease = &dibs__sqlite_lease_ops,
    .value = &dibs__sqlite_value_ops,
    .log = &dibs__sqlite_log_ops,
    .topic = &dibs__sqlite_topic_ops,
    .rate = &dibs__sqlite_rate_ops,
    .meter = &dibs__sqlite_meter_ops,
    .roster = &dibs__sqlite_roster_ops,
    .queue = &dibs__sqlite_queue_ops,
    .queue_admin = &dibs__sqlite_queue_admin_ops,
    .commit = &dibs__sqlite_commit_ops,
    .doorbell_open = open_doorbell,
    .doorbell_read = read_doorbell,
    .now = read_clock,
    .cannot = find_lack,
    .audit = dibs__sqlite_audit,
};
