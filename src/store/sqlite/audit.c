/* audit.c - the audit of the embedded store.
 *
 * First all facts are gathered, then each is reported with nothing locked. Any
 * thread; changes nothing. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "base/fail.h"
#include "store/sqlite/db.h"
#include "store/sqlite/ground.h"
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CHECKED_BYTES ((int64_t)64 << 20) /* a larger file is not read whole */
#define SPACE_BYTES   ((uint64_t)64 << 20)
#define LOG_BYTES     ((int64_t)64 << 20)

enum { TEXT_MAX = 160 };

/* The facts that the database reports. */
typedef struct facts {
    char journal[TEXT_MAX];
    char check[TEXT_MAX];
    char counts[TEXT_MAX];
    char values[TEXT_MAX];
    char era[TEXT_MAX];
    char schema[TEXT_MAX];
    int64_t size;
    int64_t log_size;
} facts;

/* The first column of the first row, as text. Locks: cn. */
static dibs_status
read_cell(dibs__sqlite_conn *cn, const char *sql, char *out, dibs_error *err)
{
    sqlite3_stmt *stmt = NULL;
    const char *text = NULL;
    int code = dibs__sql.prepare_v3(cn->db, sql, -1, 0, &stmt, NULL);

    if (code == SQLITE_OK)
        code = dibs__sql.step(stmt);
    if (code == SQLITE_ROW)
        text = (const char *)dibs__sql.column_text(stmt, 0);
    snprintf(out, TEXT_MAX, "%s", text ? text : "");
    dibs__sql.finalize(stmt);
    return code == SQLITE_ROW ? DIBS_OK : dibs__sqlite_raise(cn, code, err);
}

/* Locks: cn. */
static dibs_status
gather_facts(dibs__sqlite_conn *cn, facts *ft, dibs_error *err)
{
    struct {
        const char *sql;
        char *out;
    } asks[] = {
        {"PRAGMA journal_mode", ft->journal},
        {"PRAGMA user_version", ft->schema},
        {"SELECT value FROM meta WHERE key = 'era'", ft->era},
        {"SELECT count(DISTINCT name) || ' names, ' || "
         "coalesce(sum(role = 0), 0) || ' holders, ' || "
         "coalesce(sum(role = 1), 0) || ' waiters, expired ones included' "
         "FROM party WHERE name > ''",
         ft->counts},
        {"SELECT count(*) || ' values, ' || coalesce(sum(length(data)), 0) || "
         "' bytes' FROM value",
         ft->values},
    };
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++)
        if (rc == DIBS_OK)
            rc = read_cell(cn, asks[i].sql, asks[i].out, err);
    if (rc == DIBS_OK && ft->size <= CHECKED_BYTES)
        rc = read_cell(cn, "PRAGMA quick_check(1)", ft->check, err);
    return rc;
}

static int64_t size_of(const char *path, const char *suffix)
{
    char name[PATH_MAX + 8];
    struct stat at;

    snprintf(name, sizeof(name), "%s%s", path, suffix);
    return stat(name, &at) == 0 ? (int64_t)at.st_size : 0;
}

static void report_database(const dibs__audit_report *to, const facts *ft)
{
    bool sound = strcmp(ft->check, "ok") == 0;

    dibs__audit_tell(to, DIBS_FINE, "sqlite", NULL, "version %s",
                     dibs__sql.libversion());
    dibs__audit_tell(to, DIBS_FINE, "schema", NULL, "version %s", ft->schema);
    if (!ft->check[0])
        dibs__audit_tell(to, DIBS_NOTE, "integrity",
                         "run `PRAGMA quick_check` on a copy of it",
                         "not checked: %" PRId64 " bytes", ft->size);
    else
        dibs__audit_tell(to, sound ? DIBS_FINE : DIBS_DANGER, "integrity",
                         sound ? NULL : "stop all that use it and restore it",
                         "%s", ft->check);
    dibs__audit_tell(to, DIBS_FINE, "leases", NULL, "%s", ft->counts);
    dibs__audit_tell(to, DIBS_FINE, "values", NULL, "%s", ft->values);
}

static void report_fs(const dibs__audit_report *to, const char *path)
{
    struct statfs fs;
    const char *network, *local;
    uint64_t space;

    if (statfs(path, &fs) != 0) {
        dibs__audit_tell(to, DIBS_DANGER, "file system",
                         "see whether it is still mounted",
                         "unknown: it cannot be asked");
        return;
    }
    network = dibs__ground_network((unsigned long)fs.f_type);
    local = dibs__ground_local((unsigned long)fs.f_type);
    if (network)
        dibs__audit_tell(to, DIBS_DANGER, "file system",
                         "move the database to a local disk, or use a server",
                         "%s", network);
    else if (local)
        dibs__audit_tell(to, DIBS_FINE, "file system", NULL, "%s", local);
    else
        dibs__audit_tell(to, DIBS_NOTE, "file system",
                         "make sure that it is a local one", "of type %#lx",
                         (unsigned long)fs.f_type);
    space = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    dibs__audit_tell(to, space < SPACE_BYTES ? DIBS_CAUTION : DIBS_FINE,
                     "free space",
                     space < SPACE_BYTES
                         ? "free some: on a full disk steps fail"
                         : NULL,
                     "%" PRIu64 " MiB", space >> 20);
}

/* Pipes of killed processes are among them. */
static void report_doorbells(const dibs__audit_report *to, const char *path)
{
    char name[PATH_MAX + 8];
    struct dirent *file;
    int count = 0;
    DIR *dir;

    snprintf(name, sizeof(name), "%s.bells", path);
    dir = opendir(name);
    while (dir && (file = readdir(dir)))
        count += file->d_name[0] != '.';
    if (dir)
        closedir(dir);
    else if (size_of(name, "") > 0) {
        dibs__audit_tell(to, DIBS_CAUTION, "doorbells",
                         "open it to a group with `dibs store share`",
                         "the folder cannot be read, so waits are polled (%s)",
                         name);
        return;
    }
    dibs__audit_tell(to, DIBS_FINE, "doorbells", NULL, "%d in %s", count, name);
}

static void report_file(const dibs__audit_report *to,
                        const dibs__sqlite_file *file, const facts *ft)
{
    bool wal = strcmp(ft->journal, "wal") == 0;
    bool long_log = ft->log_size > LOG_BYTES;

    if (dibs__sqlite_same_file(file))
        dibs__audit_tell(to, DIBS_FINE, "file", NULL, "%s, %" PRId64 " bytes",
                         file->path, ft->size);
    else
        dibs__audit_tell(to, DIBS_DANGER, "file",
                         "stop all that use it, then start them again",
                         "%s was removed or replaced while in use", file->path);
    dibs__audit_tell(to, long_log ? DIBS_CAUTION : DIBS_FINE, "log",
                     long_log ? "look for a program that reads without an end"
                              : NULL,
                     "%" PRId64 " bytes", ft->log_size);
    if (!wal)
        dibs__audit_tell(to, DIBS_CAUTION, "journal",
                         "set it with `PRAGMA journal_mode = WAL`",
                         "%s, not wal", ft->journal);
    report_fs(to, file->path);
    dibs__audit_tell(to, DIBS_FINE, "clock", NULL, "CLOCK_BOOTTIME of boot %s",
                     ft->era);
    report_doorbells(to, file->path);
}

dibs_status
dibs__sqlite_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
                   void *arg, dibs_error *err)
{
    dibs__sqlite_conn *cn = dibs__sqlite_conn_of(st, DIBS__SQLITE_VALUE);
    const dibs__audit_report to = {each, arg};
    facts ft = {.size = 0};
    dibs_status rc;

    if (cn->file) {
        ft.size = size_of(cn->file->path, "");
        ft.log_size = size_of(cn->file->path, "-wal");
    }
    rc = dibs__sqlite_enter_as_is(cn, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    rc = gather_facts(cn, &ft, err);
    dibs__sqlite_leave(cn);
    if (rc != DIBS_OK)
        return rc;
    report_database(&to, &ft);
    if (cn->file)
        report_file(&to, cn->file, &ft);
    else
        dibs__audit_tell(
            &to, DIBS_NOTE, "file",
            "use sqlite:/path/file.db to share it with other processes",
            "none: in the memory of this process");
    return DIBS_OK;
}
