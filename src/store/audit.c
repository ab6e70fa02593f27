/* audit.c - see audit.h. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "base/fail.h"
#include <stdarg.h>
#include <stdio.h>

void dibs__audit_tell(const dibs__audit_report *to, dibs_severity severity,
                      const char *subject, const char *advice,
                      const char *format, ...)
{
    char found[DIBS__FOUND_MAX];
    const dibs_finding finding = {severity, subject, found, advice};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(found, sizeof(found), format, args);
    va_end(args);
    to->each(&finding, to->arg);
}

static void note_danger(const dibs_finding *finding, void *arg)
{
    dibs_error *first = arg;

    if (finding->severity == DIBS_DANGER && first->status == DIBS_OK)
        (void)dibsx_fail(first, DIBS_REFUSED, "%s: %s; %s", finding->subject,
                         finding->found, finding->advice);
}

dibs_status
dibs__store_audit_strict(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    dibs_error danger = {.status = DIBS_OK};
    dibs_status rc = st->ops->audit(st, deadline, note_danger, &danger, err);

    if (rc == DIBS_OK && danger.status != DIBS_OK)
        rc = dibsx_fail(err, danger.status, "%s", danger.message);
    return rc;
}
