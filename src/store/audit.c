/* audit.c - see audit.h. */
/* SPDX-License-Identifier: MIT */
#include "store/audit.h"
#include "base/fail.h"

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
