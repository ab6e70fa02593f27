/* audit.c - changes with who made them, from where, and why. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/audit.h"
#include "base/fail.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <stdio.h>
#include <string.h>

#define NO_ENTRY                                                               \
    "The trail of the store does not take the entry; nothing changed, try "    \
    "again"

bool dibs__serve_ask_change(dibs__http_exchange *ex, const char *fields,
                            const dibsx_json_node **body, const char **reason)
{
    *reason = NULL;
    return dibs__serve_ask_body(ex, fields, body) &&
           dibs__serve_ask_text(ex, *body, "reason", DIBS__SERVE_REASON_MAX,
                                reason);
}

/* Why, by whom, from where and how it ended, as the request has it. */
static dibs__change_cause
cause_of(dibs__http_exchange *ex, const char *reason, const char *result)
{
    const dibs__serve_caller *caller = dibs__serve_caller_of(ex);

    return (dibs__change_cause){reason,
                                caller->name,
                                caller->peer,
                                caller->request_id,
                                dibs__serve_role_text(caller->role),
                                dibs__http_route_path(ex),
                                result};
}

void dibs__serve_audit_cause(dibs__http_exchange *ex, const char *reason,
                             char out[DIBS__CHANGE_CAUSE_MAX])
{
    const dibs__change_cause cause =
        cause_of(ex, reason, dibs_status_name(DIBS_OK));

    dibs__change_write(&cause, out);
}

void dibs__serve_audit_log(dibs__http_exchange *ex, const char *action,
                           const char *target, uint64_t fence,
                           const char *reason, dibs_status rc)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const dibs__serve_caller *caller = dibs__serve_caller_of(ex);

    dibs__serve_say(
        &sv->log, DIBS_LOG_INFO, "audit",
        DIBS__SERVE_FACTS({"action", action, 0}, {"target", target, 0},
                          {"fence", NULL, (int64_t)fence},
                          {"result", dibs_status_name(rc), 0},
                          {"who", caller->name, 0},
                          {"role", dibs__serve_role_text(caller->role), 0},
                          {"route", dibs__http_route_path(ex), 0},
                          {"from", caller->peer, 0},
                          {"request", caller->request_id, 0},
                          {"reason", reason ? reason : "", 0}),
        "%s %s", caller->name, action);
}

/* False, after a line of the log: the trail did not take an entry. */
static bool is_taken(dibs__http_exchange *ex, const dibs__change *change,
                     dibs_status rc, const dibs_error *err)
{
    dibs__serve *sv = dibs__http_arg(ex);

    if (rc == DIBS_OK)
        return true;
    dibs__serve_counts_audit(&sv->counts);
    dibs__serve_say(&sv->log, DIBS_LOG_WARN, "audit_failed",
                    DIBS__SERVE_FACTS({"action", change->action, 0},
                                      {"target", change->target, 0}),
                    "the trail did not take %s of %s: %s", change->action,
                    change->target, err->message);
    return false;
}

/* False: the trail did not take it. */
static bool
add_entry(dibs__http_exchange *ex, const char *action, const char *target,
          uint64_t fence, const char *reason, const char *result)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const dibs__change change = {action, target, fence,
                                 cause_of(ex, reason, result)};
    dibs_error err = {0};
    dibs_status rc = dibs__change_add(sv->data, &change, &err);

    return is_taken(ex, &change, rc, &err);
}

void dibs__serve_audit_note(dibs__http_exchange *ex, const char *action,
                            const char *target, uint64_t fence,
                            const char *reason, dibs_status rc)
{
    dibs__serve_audit_log(ex, action, target, fence, reason, rc);
    if (dibs__change_may_be_done(rc))
        (void)add_entry(ex, action, target, fence, reason,
                        dibs_status_name(rc));
}

bool dibs__serve_audit_begin(dibs__http_exchange *ex, const char *action,
                             const char *target, const char *reason)
{
    if (add_entry(ex, action, target, 0, reason, "begun"))
        return true;
    (void)dibs__serve_refuse(ex, 503, "unavail", NO_ENTRY);
    dibs__http_set(ex, "Retry-After", "1");
    return false;
}

/* The entry that a change failed, after `done` items. None if it may be done. */
static void add_failure(dibs__http_exchange *ex, const char *action,
                        const char *target, uint64_t done, dibs_status rc)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const dibs__change change = {action, target, 0,
                                 cause_of(ex, NULL, dibs_status_name(rc))};
    dibs_error err = {0};

    if (!dibs__change_may_be_done(rc))
        (void)is_taken(ex, &change,
                       dibs__change_add_failed(sv->data, &change, rc, done,
                                               &err),
                       &err);
}

void dibs__serve_audit_end_items(dibs__http_exchange *ex, const char *action,
                                 const char *target, const char *reason,
                                 uint64_t done, dibs_status rc)
{
    dibs__serve_audit_log(ex, action, target, 0, reason, rc);
    add_failure(ex, action, target, done, rc);
}

void dibs__serve_audit_end(dibs__http_exchange *ex, const char *action,
                           const char *target, const char *reason,
                           dibs_status rc)
{
    dibs__serve_audit_end_items(ex, action, target, reason, 0, rc);
}

/* Whether the trail is in another store than the locks, which knows nothing of them. */
static bool is_apart(dibs__http_exchange *ex)
{
    const dibs__serve *sv = dibs__http_arg(ex);

    return sv->data != sv->cl;
}

dibs_status dibs__serve_audit_break(dibs__http_exchange *ex, const char *action,
                                    const char *target, uint64_t fence,
                                    const char *reason, dibs_error *err)
{
    if (!is_apart(ex) || add_entry(ex, action, target, fence, reason, "begun"))
        return DIBS_OK;
    return dibsx_fail(err, DIBS_UNAVAIL, NO_ENTRY);
}

void dibs__serve_audit_broken(dibs__http_exchange *ex, const char *action,
                              const char *target, uint64_t fence,
                              const char *reason, dibs_status rc)
{
    dibs__serve_audit_log(ex, action, target, fence, reason, rc);
    if (is_apart(ex))
        add_failure(ex, action, target, 0, rc);
}
