/* audit.h - changes with who made them, from where, and why.
 *
 * The trail of the store keeps revocations and all other changes; the daemon adds to the
 * reason who asked it (show/change_trail.h). Every change is also a line of the daemon's
 * log. The entry of an operator's change comes after it. That of an admin's comes before
 * it; without it nothing is changed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_AUDIT_H
#define DIBS_SERVE_AUDIT_H

#include "base/json_read.h"
#include "http/exchange.h"
#include "show/change_trail.h"
#include <dibs/dibs.h>

enum { DIBS__SERVE_REASON_MAX = DIBS__CHANGE_REASON_MAX };

/* Reads the body of a change; `fields` has "reason". *reason is NULL without one. False:
 * it was refused. */
DIBS_MUST_CHECK bool
dibs__serve_ask_change(dibs__http_exchange *ex, const char *fields,
                       const dibsx_json_node **body, const char **reason);

/* The reason with its cause, for the trail. `reason` may be NULL. */
void dibs__serve_audit_cause(dibs__http_exchange *ex, const char *reason,
                             char out[DIBS__CHANGE_CAUSE_MAX]);

/* The line of the log, for what has its entry in the trail, or changes nothing. */
void dibs__serve_audit_log(dibs__http_exchange *ex, const char *action,
                           const char *target, uint64_t fence,
                           const char *reason, dibs_status rc);

/* The same, and an entry of the trail, unless the change has failed. For changes of the
 * role operate. Blocks for the store: not on the loop. */
void dibs__serve_audit_note(dibs__http_exchange *ex, const char *action,
                            const char *target, uint64_t fence,
                            const char *reason, dibs_status rc);

/* For changes of the role admin: the entry is there before the change. False after a
 * refusal: the trail does not take it, and nothing may be changed. The end is the line
 * of the log, and after a failure an entry "ACTION-failed"; of a change of many items, of
 * which `done` were changed before it, "ACTION-partly". All block for the store. */
DIBS_MUST_CHECK bool
dibs__serve_audit_begin(dibs__http_exchange *ex, const char *action,
                        const char *target, const char *reason);
void dibs__serve_audit_end(dibs__http_exchange *ex, const char *action,
                           const char *target, const char *reason,
                           dibs_status rc);
void dibs__serve_audit_end_items(dibs__http_exchange *ex, const char *action,
                                 const char *target, const char *reason,
                                 uint64_t done, dibs_status rc);

/* Before and after a lease is broken, of which the store of the locks has an entry itself.
 * If the trail is in another store (data_url), the entries are there too. Not DIBS_OK: the
 * trail does not take it, and nothing may be changed. */
DIBS_MUST_CHECK dibs_status dibs__serve_audit_break(
    dibs__http_exchange *ex, const char *action, const char *target,
    uint64_t fence, const char *reason, dibs_error *err);
void dibs__serve_audit_broken(dibs__http_exchange *ex, const char *action,
                              const char *target, uint64_t fence,
                              const char *reason, dibs_status rc);

#endif
