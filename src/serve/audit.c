/* audit.c - changes with who made them, from where, and why. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "serve/audit.h"
#include "serve/ask.h"
#include "serve/daemon.h"
#include "serve/problem.h"
#include <stdio.h>
#include <string.h>

bool dibs__serve_ask_change(dibs__http_exchange *ex, const char *fields,
                            const dibsx_json_node **body, const char **reason)
{
    *reason = NULL;
    return dibs__serve_ask_body(ex, fields, body) &&
           dibs__serve_ask_text(ex, *body, "reason", DIBS__SERVE_REASON_MAX,
                                reason);
}

void dibs__serve_audit_cause(dibs__http_exchange *ex, const char *reason,
                             char out[DIBS__SERVE_CAUSE_MAX])
{
    const dibs__serve_caller *caller = dibs__serve_caller_of(ex);

    snprintf(out, DIBS__SERVE_CAUSE_MAX, "%.256s%s[who=%s from=%s request=%s]",
             reason ? reason : "", reason ? " " : "", caller->name,
             caller->peer, caller->request_id);
}

/* Cuts " key=" off the end of the text; what is after it, or "". */
static const char *cut_last(char *text, const char *key)
{
    char *at = strstr(text, key);

    if (!at)
        return "";
    *at = '\0';
    return at + strlen(key);
}

void dibs__serve_audit_split(char *text, dibs__serve_cause *cause)
{
    const size_t len = strlen(text);
    char *open = NULL;

    *cause = (dibs__serve_cause){text, "", "", ""};
    /* A reason may have brackets too: the last ones are the daemon's. */
    for (char *at = strstr(text, "[who="); at; at = strstr(at + 1, "[who="))
        open = at;
    if (!open || text[len - 1] != ']')
        return;
    text[len - 1] = '\0';
    cause->request = cut_last(open, " request=");
    cause->from = cut_last(open, " from=");
    cause->who = open + 5;
    *open = '\0';
    if (open > text && open[-1] == ' ')
        open[-1] = '\0';
}

void dibs__serve_audit_log(dibs__http_exchange *ex, const char *action,
                           const char *target, uint64_t fence,
                           const char *reason, dibs_status rc)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const dibs__serve_caller *caller = dibs__serve_caller_of(ex);

    dibs__serve_say(&sv->log, DIBS_LOG_INFO, "audit",
                    DIBS__SERVE_FACTS({"action", action, 0},
                                      {"target", target, 0},
                                      {"fence", NULL, (int64_t)fence},
                                      {"result", dibs_status_name(rc), 0},
                                      {"who", caller->name, 0},
                                      {"from", caller->peer, 0},
                                      {"request", caller->request_id, 0},
                                      {"reason", reason ? reason : "", 0}),
                    "%s %s", caller->name, action);
}

/* After DIBS_UNKNOWN it may have been done, which somebody will want to know. */
static bool may_be_done(dibs_status rc)
{
    return rc == DIBS_OK || rc == DIBS_UNKNOWN;
}

/* False: the trail did not take it. A store without logs has no trail, as docs/serve.md
 * says; and a thing that cannot have such a name is not changed anyway. */
static bool add_entry(dibs__http_exchange *ex, const char *action,
                      const char *target, uint64_t fence, const char *reason)
{
    dibs__serve *sv = dibs__http_arg(ex);
    char cause[DIBS__SERVE_CAUSE_MAX];
    dibs_error err = {0};
    dibs_status rc;

    dibs__serve_audit_cause(ex, reason, cause);
    rc = dibs_trail_add(sv->cl, action, target, fence, cause, &err);
    if (rc == DIBS_OK || rc == DIBS_UNSUPPORTED || rc == DIBS_INVALID)
        return true;
    dibs__serve_counts_audit(&sv->counts);
    dibs__serve_say(&sv->log, DIBS_LOG_WARN, "audit_failed",
                    DIBS__SERVE_FACTS({"action", action, 0},
                                      {"target", target, 0}),
                    "the trail did not take %s of %s: %s", action, target,
                    err.message);
    return false;
}

void dibs__serve_audit_note(dibs__http_exchange *ex, const char *action,
                            const char *target, uint64_t fence,
                            const char *reason, dibs_status rc)
{
    dibs__serve_audit_log(ex, action, target, fence, reason, rc);
    if (may_be_done(rc))
        (void)add_entry(ex, action, target, fence, reason);
}

bool dibs__serve_audit_begin(dibs__http_exchange *ex, const char *action,
                             const char *target, const char *reason)
{
    if (add_entry(ex, action, target, 0, reason))
        return true;
    (void)dibs__serve_refuse(ex, 503, "unavail",
                             "The trail of the store does not take the entry; "
                             "nothing changed, try again");
    dibs__http_set(ex, "Retry-After", "1");
    return false;
}

void dibs__serve_audit_end(dibs__http_exchange *ex, const char *action,
                           const char *target, const char *reason,
                           dibs_status rc)
{
    char failed[32];

    dibs__serve_audit_log(ex, action, target, 0, reason, rc);
    if (may_be_done(rc))
        return;
    snprintf(failed, sizeof(failed), "%s-failed", action);
    (void)add_entry(ex, failed, target, 0, dibs_status_name(rc));
}
