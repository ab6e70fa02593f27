/* setup.c - checks that a database is ours, of this version and of this boot.
 *
 * Nothing is changed in a file that is not ours. Many processes may open a fresh
 * file, or one of the version before, at once: one makes the tables, the others
 * find them. Runs inside enter, on the thread of the caller. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "store/sqlite/db.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    APPLICATION_ID = 0x64696273, /* "dibs"; also in schema.sql */
    SCHEMA_VERSION = 9,          /* also in the last of the makers */
    ERA_MAX = 128
};

extern const char dibs__sqlite_sql_schema[];
extern const char dibs__sqlite_sql_log[];
extern const char dibs__sqlite_sql_ear[];
extern const char dibs__sqlite_sql_rate[];
extern const char dibs__sqlite_sql_roster[];
extern const char dibs__sqlite_sql_meter[];
extern const char dibs__sqlite_sql_events[];
extern const char dibs__sqlite_sql_queue[];
extern const char dibs__sqlite_sql_commit[];
extern const char dibs__sqlite_sql_done[];

enum { PARTS_MAX = 2 };

/* The SQL that makes version i + 1 out of version i; 0 is empty. */
static const char *const makers[SCHEMA_VERSION][PARTS_MAX] = {
    {dibs__sqlite_sql_schema},
    {dibs__sqlite_sql_log},
    {dibs__sqlite_sql_ear},
    {dibs__sqlite_sql_rate},
    {dibs__sqlite_sql_roster},
    {dibs__sqlite_sql_meter},
    {dibs__sqlite_sql_events, dibs__sqlite_sql_queue},
    {dibs__sqlite_sql_commit},
    {dibs__sqlite_sql_done}};

const char *dibs__sqlite_boot_id_path = "/proc/sys/kernel/random/boot_id";

/* The one number that a statement answers. */
static dibs_status read_number(dibs__sqlite_conn *cn, const char *sql,
                               int64_t *out, dibs_error *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = dibs__sql.prepare_v3(cn->db, sql, -1, 0, &stmt, NULL);

    if (code == SQLITE_OK)
        code = dibs__sql.step(stmt);
    if (code == SQLITE_ROW)
        *out = dibs__sql.column_int64(stmt, 0);
    dibs__sql.finalize(stmt);
    return code == SQLITE_ROW ? DIBS_OK : dibs__sqlite_raise(cn, code, err);
}

/* *found is its version; 0: it is empty, free to be made ours. */
static dibs_status
identify_db(dibs__sqlite_conn *cn, int64_t *found, dibs_error *err)
{
    int64_t application = 0, version = 0, tables = 0;
    dibs_status rc =
        read_number(cn, "PRAGMA application_id", &application, err);

    if (rc == DIBS_OK)
        rc = read_number(cn, "PRAGMA user_version", &version, err);
    if (rc != DIBS_OK)
        return rc;
    if (application == APPLICATION_ID && version > SCHEMA_VERSION)
        return dibsx_fail(
            err, DIBS_REFUSED,
            "the database was made by a newer dibs; upgrade this one (schema "
            "version %lld, %d is known; %s)",
            (long long)version, SCHEMA_VERSION, cn->file->path);
    *found = version;
    if (application == APPLICATION_ID && version > 0)
        return DIBS_OK;
    rc = read_number(cn, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (rc != DIBS_OK)
        return rc;
    *found = 0;
    if (application == 0 && version == 0 && tables == 0)
        return DIBS_OK;
    return dibsx_fail(
        err, DIBS_REFUSED,
        "the file is a database of another program; name another (%s)",
        cn->file->path);
}

/* A database that looks foreign may be ours and in the making: the numbers were read
 * one by one. Reads them as of one moment. */
static dibs_status
identify_again(dibs__sqlite_conn *cn, int64_t *found, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_exec(cn, "BEGIN", err);
    dibs_status ended;

    if (rc != DIBS_OK)
        return rc;
    rc = identify_db(cn, found, err);
    ended = dibs__sqlite_exec(cn, "ROLLBACK", NULL);
    return rc == DIBS_OK ? ended : rc;
}

static int run_makers(dibs__sqlite_conn *cn, int64_t found)
{
    int code = SQLITE_OK;

    for (int64_t i = found; i < SCHEMA_VERSION; i++)
        for (size_t k = 0; k < PARTS_MAX && makers[i][k]; k++)
            if (code == SQLITE_OK)
                code = dibs__sql.exec(cn->db, makers[i][k], NULL, NULL, NULL);
    return code;
}

static dibs_status make_tables(dibs__sqlite_conn *cn, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_run(cn, err, DIBS__SQL_BEGIN, "");
    int64_t found = 0;

    if (rc != DIBS_OK)
        return rc;
    cn->watermark = cn->stored = 0;
    rc = identify_db(cn, &found, err); /* Another may have been here first. */
    if (rc == DIBS_OK) {
        int code = run_makers(cn, found);

        rc = code == SQLITE_OK ? DIBS_OK : dibs__sqlite_raise(cn, code, err);
    }
    return dibs__sqlite_end(cn, rc, err);
}

/* Reads a short file; -1 with errno. */
static ssize_t read_all(const char *path, char *out, size_t size)
{
    ssize_t len;
    int number;
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return -1;
    do
        len = read(fd, out, size);
    while (len < 0 && errno == EINTR);
    number = errno;
    close(fd);
    errno = number;
    return len;
}

static dibs_status read_boot_id(char *out, size_t size, dibs_error *err)
{
    ssize_t len = read_all(dibs__sqlite_boot_id_path, out, size - 1);

    /* Trouble that passes is not a machine without /proc. */
    if (len < 0 && errno != ENOENT && errno != ENOTDIR && errno != EACCES)
        return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(errno),
                             "the boot id cannot be read (%s, %s)",
                             dibsx_errno_name(errno),
                             dibs__sqlite_boot_id_path);
    if (len <= 0)
        return dibsx_fail(err, DIBS_REFUSED,
                          "the boot id cannot be read, so leases would outlive "
                          "a reboot; mount /proc (%s)",
                          dibs__sqlite_boot_id_path);
    out[len] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return DIBS_OK;
}

/* The boot clock has one meaning within an era: a boot and a time namespace,
 * as "BOOT NAMESPACE". */
static dibs_status read_era(char era[ERA_MAX], dibs_error *err)
{
    char ns[48];
    char boot[64];
    ssize_t len = readlink("/proc/self/ns/time", ns, sizeof(ns) - 1);
    dibs_status rc = read_boot_id(boot, sizeof(boot), err);

    ns[len > 0 ? len : 0] = '\0'; /* Kernels before 5.6 have none. */
    snprintf(era, ERA_MAX, "%s %s", boot, ns);
    return rc;
}

static dibs_status
stored_era(dibs__sqlite_conn *cn, char era[ERA_MAX], dibs_error *err)
{
    sqlite3_stmt *stmt;
    dibs_status rc =
        dibs__sqlite_ask(cn, &stmt, err, DIBS__SQL_META, "t", "era");
    const char *text;

    if (rc == DIBS_OK)
        rc = dibs__sqlite_row(cn, stmt, err);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, DIBS_INTERNAL, "the era is missing");
    if (rc != DIBS_OK)
        return rc;
    text = (const char *)dibs__sql.column_text(stmt, 0);
    snprintf(era, ERA_MAX, "%s", text ? text : "");
    dibs__sqlite_reset(stmt);
    return DIBS_OK;
}

static bool same_boot(const char *era, const char *other)
{
    size_t len = strcspn(era, " ");

    return len == strcspn(other, " ") && memcmp(era, other, len) == 0;
}

/* After a reboot every lease is void: its holder is gone and its times are on a
 * clock that has begun anew. */
static dibs_status
enter_era(dibs__sqlite_conn *cn, const char *era, dibs_error *err)
{
    char stored[ERA_MAX];
    dibs_status rc = dibs__sqlite_begin(cn, err);

    if (rc != DIBS_OK)
        return rc;
    rc = stored_era(cn, stored, err);
    if (rc == DIBS_OK && !same_boot(stored, era)) {
        rc = dibs__sqlite_run(cn, err, DIBS__SQL_PARTY_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_EAR_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_RATE_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_METER_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_ROSTER_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_SEAT_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_LANE_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_PUSHER_CLEAR, "");
        if (rc == DIBS_OK)
            rc = dibs__sqlite_run(cn, err, DIBS__SQL_WRITER_CLEAR, "");
        if (rc == DIBS_OK)
            rc =
                dibs__sqlite_run(cn, err, DIBS__SQL_META_SET, "tt", "era", era);
    }
    return dibs__sqlite_end(cn, rc, err);
}

static dibs_status check_era(dibs__sqlite_conn *cn, dibs_error *err)
{
    char era[ERA_MAX], stored[ERA_MAX];
    dibs_status rc = read_era(era, err);

    if (rc == DIBS_OK)
        rc = stored_era(cn, stored, err);
    if (rc == DIBS_OK && !same_boot(stored, era)) {
        rc = enter_era(cn, era, err);
        if (rc == DIBS_OK)
            rc = stored_era(cn, stored, err);
    }
    if (rc != DIBS_OK || strcmp(stored, era) == 0)
        return rc;
    return dibsx_fail(
        err, DIBS_REFUSED,
        "the database is in use from another time namespace, where the "
        "clock of leases differs; use one database for each (%s)",
        cn->file->path);
}

static dibs_status setup_file(dibs__sqlite_conn *cn, dibs_error *err)
{
    int64_t found = 0;
    dibs_status rc = identify_db(cn, &found, err);

    if (rc == DIBS_REFUSED)
        rc = identify_again(cn, &found, err);
    if (rc == DIBS_OK && found == 0)
        rc = dibs__sqlite_exec(cn, "PRAGMA journal_mode = WAL", err);
    if (rc == DIBS_OK && found != SCHEMA_VERSION)
        rc = make_tables(cn, err);
    if (rc == DIBS_OK)
        rc = dibs__sqlite_exec(cn,
                               cn->durable ? "PRAGMA synchronous = FULL"
                                           : "PRAGMA synchronous = NORMAL",
                               err);
    return rc == DIBS_OK ? check_era(cn, err) : rc;
}

/* In memory a change copies whole pages aside, so small ones are faster. */
static dibs_status setup_memory(dibs__sqlite_conn *cn, dibs_error *err)
{
    dibs_status rc = dibs__sqlite_exec(cn, "PRAGMA page_size = 1024", err);

    return rc == DIBS_OK ? make_tables(cn, err) : rc;
}

dibs_status dibs__sqlite_setup(dibs__sqlite_conn *cn, dibs_error *err)
{
    return cn->file ? setup_file(cn, err) : setup_memory(cn, err);
}
