/* error.c - the status of a result code of SQLite. Pure.
 *
 * One table decides. The promise to keep: DIBS_UNAVAIL only when nothing can
 * have changed. A transaction that did not reach its commit changes nothing; an
 * input-output error inside a commit may have come after the last byte. */
/* SPDX-License-Identifier: MIT */
#include "store/sqlite/error.h"
#include "base/fail.h"
#include "store/sqlite/driver.h"
#include <errno.h>
#include <stddef.h>

typedef struct meaning {
    int code;
    const char *origin;
    dibs_status status;
    dibs_status committing; /* the status inside a commit */
    const char *text;       /* NULL: SQLite's own message */
} meaning;

static const meaning meanings[] = {
    {SQLITE_BUSY, "SQLITE_BUSY", DIBS_UNAVAIL, DIBS_UNAVAIL,
     "others kept the database locked until the deadline"},
    {SQLITE_LOCKED, "SQLITE_LOCKED", DIBS_UNAVAIL, DIBS_UNAVAIL,
     "others kept the database locked until the deadline"},
    {SQLITE_PROTOCOL, "SQLITE_PROTOCOL", DIBS_UNAVAIL, DIBS_UNAVAIL,
     "the database is too busy to be locked"},
    {SQLITE_INTERRUPT, "SQLITE_INTERRUPT", DIBS_UNAVAIL, DIBS_UNKNOWN,
     "the step was not done by its deadline"},
    {SQLITE_FULL, "SQLITE_FULL", DIBS_UNAVAIL, DIBS_UNAVAIL,
     "the disk is full, nothing was changed; free some space"},
    {SQLITE_IOERR, "SQLITE_IOERR", DIBS_UNAVAIL, DIBS_UNKNOWN, NULL},
    {SQLITE_CANTOPEN, "SQLITE_CANTOPEN", DIBS_UNAVAIL, DIBS_UNAVAIL, NULL},
    {SQLITE_READONLY, "SQLITE_READONLY", DIBS_DENIED, DIBS_DENIED,
     "this user may not write the database; its owner can open it and its "
     "folder to a group with `dibs store share`"},
    {SQLITE_PERM, "SQLITE_PERM", DIBS_DENIED, DIBS_DENIED, NULL},
    {SQLITE_AUTH, "SQLITE_AUTH", DIBS_DENIED, DIBS_DENIED, NULL},
    {SQLITE_NOTADB, "SQLITE_NOTADB", DIBS_REFUSED, DIBS_REFUSED,
     "not a dibs database; name another file"},
    {SQLITE_CORRUPT, "SQLITE_CORRUPT", DIBS_REFUSED, DIBS_UNKNOWN,
     /* SQLite does not tell the one from the other. */
     "the database is damaged, or the disk does not give it; restore it or "
     "move it away"},
    {SQLITE_NOMEM, "SQLITE_NOMEM", DIBS_NOMEM, DIBS_UNKNOWN,
     "memory ran short"},
    {SQLITE_TOOBIG, "SQLITE_TOOBIG", DIBS_INVALID, DIBS_INTERNAL, NULL},
    {SQLITE_SCHEMA, "SQLITE_SCHEMA", DIBS_INTERNAL, DIBS_INTERNAL, NULL},
    {SQLITE_CONSTRAINT, "SQLITE_CONSTRAINT", DIBS_INTERNAL, DIBS_INTERNAL,
     NULL},
    {SQLITE_MISMATCH, "SQLITE_MISMATCH", DIBS_INTERNAL, DIBS_INTERNAL, NULL},
    {SQLITE_MISUSE, "SQLITE_MISUSE", DIBS_INTERNAL, DIBS_INTERNAL, NULL},
    {SQLITE_RANGE, "SQLITE_RANGE", DIBS_INTERNAL, DIBS_INTERNAL, NULL},
    {SQLITE_ERROR, "SQLITE_ERROR", DIBS_INTERNAL, DIBS_INTERNAL, NULL},
};

static const meaning unheard_of = {0, "SQLITE", DIBS_INTERNAL, DIBS_UNKNOWN,
                                   NULL};

static const meaning *find_meaning(int code)
{
    for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (meanings[i].code == (code & 0xff))
            return &meanings[i];
    return &unheard_of;
}

/* The system sometimes knows better than the result code. */
static const meaning *
refine_meaning(const meaning *m, const dibs__sqlite_fault *fault)
{
    bool denied =
        fault->sys == EACCES || fault->sys == EPERM || fault->sys == EROFS;

    if (m->code == SQLITE_CANTOPEN && denied)
        return find_meaning(SQLITE_READONLY);
    if (m->code == SQLITE_IOERR && !fault->committing &&
        (fault->sys == ENOSPC || fault->sys == EDQUOT))
        return find_meaning(SQLITE_FULL);
    return m;
}

dibs_status dibs__sqlite_fail(const dibs__sqlite_fault *fault, dibs_error *err)
{
    const meaning *m = refine_meaning(find_meaning(fault->code), fault);
    dibs_status status = fault->committing ? m->committing : m->status;
    const char *text = m->text ? m->text : fault->detail;
    const char *path = fault->path ? fault->path : "memory";

    if (!text)
        text = "the database failed";
    if (fault->sys == 0)
        return dibsx_fail_at(err, status, m->origin, "%s (%s)", text, path);
    return dibsx_fail_at(err, status, m->origin, "%s (%s, %s)", text,
                         dibsx_errno_name(fault->sys), path);
}
