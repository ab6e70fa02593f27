/* route_manage.c - taking locks away, asking for them, and the trail of that. Threads
 * of the server. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "node/node.h"
#include "serve/ask.h"
#include "serve/audit.h"
#include "serve/bulk.h"
#include "serve/daemon.h"
#include "serve/manage.h"
#include "serve/problem.h"
#include "serve/routes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `"<fence>-..."`, as the ETag of a lock has it. */
static bool read_match(const char *text, int64_t *fence)
{
    char *end;

    if (!text || *text != '"' || text[1] < '0' || text[1] > '9')
        return false;
    *fence = strtoll(text + 1, &end, 10);
    return *end == '-' || *end == '"';
}

/* The lease of the body, or of "If-Match". A lock that nobody held has an ETag with 0 for a
 * fence, which says that there is no holder; in the body 0 is any. */
static bool take_match(dibs__http_exchange *ex, int64_t *fence)
{
    const char *match = dibs__http_header(ex, "If-Match");
    int64_t seen = -1;

    if (!match)
        return true;
    if (!read_match(match, &seen) || seen == 0 ||
        (*fence > 0 && *fence != seen)) {
        (void)dibs__serve_refuse(ex, 412, "precondition",
                                 "If-Match is not the ETag of the lease that "
                                 "is meant");
        return false;
    }
    *fence = seen;
    return true;
}

bool dibs__serve_read_fence(dibs__http_exchange *ex,
                            const dibsx_json_node *body, const char *field,
                            int64_t *fence)
{
    *fence = -1;
    if (!dibs__serve_ask_int(ex, body, field, 0, DIBS__SERVE_FENCE_MAX, fence))
        return false;
    if (!take_match(ex, fence))
        return false;
    if (*fence < 0) {
        (void)dibs__serve_refuse(ex, 428, "fence-missing",
                                 "Say which lease is meant: \"%s\" as it "
                                 "was shown, or 0 for whatever holder there "
                                 "is",
                                 field);
        return false;
    }
    return true;
}

void dibs__serve_post_yield(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    const dibsx_json_node *body;
    int64_t fence = 0;
    uint32_t asked = 0;
    dibs_error err = {0};
    dibs_status rc;

    if (!name || !dibs__serve_ask_change(ex, "fence reason", &body, &reason) ||
        !dibs__serve_ask_int(ex, body, "fence", 0, DIBS__SERVE_FENCE_MAX,
                             &fence))
        return;
    rc = dibs_lease_yield(sv->cl, name, (uint64_t)fence, &asked, &err);
    dibs__serve_audit_note(ex, "yield", name, (uint64_t)fence, reason, rc);
    if (rc == DIBS_OK)
        dibsx_json_pair_uint(dibs__http_answer(ex, 200), "asked", asked);
    else
        (void)dibs__serve_fail(ex, &err);
}

/* In the store of `cl`. */
static dibs_status
break_lease(dibs__http_exchange *ex, dibs_client *cl, const char *action,
            const char *name, uint64_t fence, const char *reason,
            uint32_t *broken, dibs_error *err)
{
    dibs__serve *sv = dibs__http_arg(ex);
    char cause[DIBS__CHANGE_CAUSE_MAX];
    uint32_t count = 0;
    dibs_status rc =
        dibs__serve_audit_break(ex, action, name, fence, reason, err);

    if (broken)
        *broken = 0;
    if (rc != DIBS_OK)
        return rc;
    dibs__serve_audit_cause(ex, reason, cause);
    rc = dibs_lease_break(cl, name, fence, cause, &count, err);
    dibs__serve_counts_broken(&sv->counts, action, count);
    if (broken)
        *broken = count;
    dibs__serve_audit_broken(ex, action, name, fence, reason, rc);
    return rc;
}

dibs_status
dibs__serve_break_lease(dibs__http_exchange *ex, const char *action,
                        const char *name, uint64_t fence, const char *reason,
                        uint32_t *broken, dibs_error *err)
{
    const dibs__serve *sv = dibs__http_arg(ex);

    return break_lease(ex, sv->cl, action, name, fence, reason, broken, err);
}

void dibs__serve_post_break(dibs__http_exchange *ex)
{
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    const dibsx_json_node *body;
    uint32_t broken = 0;
    dibs_error err = {0};
    int64_t fence;

    if (!name || !dibs__serve_ask_change(ex, "fence reason", &body, &reason) ||
        !dibs__serve_read_fence(ex, body, "fence", &fence))
        return;
    if (dibs__serve_break_lease(ex, "break", name, (uint64_t)fence, reason,
                                &broken, &err) == DIBS_OK)
        dibsx_json_pair_uint(dibs__http_answer(ex, 200), "broken", broken);
    else
        (void)dibs__serve_fail(ex, &err);
}

/* The stale leases of a listing, each of which is broken by its own fence. */
typedef struct sweep {
    dibs__http_exchange *ex;
    dibsx_json *js;
    const char *reason;
    bool dry;
    dibsx_nsec end;
    bool cut;       /* there was no time for all */
    bool broken;    /* one was, whatever comes after it */
    dibs_error err; /* the first that is not about a lease that has gone */
} sweep;

static bool sweep_holder(sweep *sw, const char *name, const dibs_party *holder)
{
    const char *reason = sw->reason ? sw->reason : holder->stale;
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    if (!sw->dry)
        rc = dibs__serve_break_lease(sw->ex, "break-stale", name, holder->fence,
                                     reason, NULL, &err);
    if (rc == DIBS_OK) {
        sw->broken = !sw->dry;
        dibsx_json_open(sw->js, '{');
        dibsx_json_pair_text(sw->js, "name", name);
        dibsx_json_pair_uint(sw->js, "fence", holder->fence);
        dibsx_json_pair_text(sw->js, "host", holder->host);
        dibsx_json_pair_int(sw->js, "pid", holder->pid);
        dibsx_json_pair_text(sw->js, "stale", holder->stale);
        dibsx_json_close(sw->js, '}');
    } else if (rc != DIBS_NOTFOUND && rc != DIBS_STALE) {
        sw->err = err;
        return false;
    }
    return true;
}

static bool sweep_row(const dibs_lease_info *info, void *arg)
{
    sweep *sw = arg;
    bool on = true;

    for (size_t i = 0; i < info->holder_count && on; i++) {
        if (!info->holders[i].stale)
            continue;
        sw->cut = !sw->dry && dibs__bulk_over(sw->end);
        on = !sw->cut && sweep_holder(sw, info->name, &info->holders[i]);
    }
    return on;
}

void dibs__serve_post_break_stale(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const dibsx_json_node *body;
    const char *prefix = NULL;
    sweep sw = {.ex = ex};
    dibs_error err = {0};
    dibs_status rc;

    if (!dibs__serve_ask_body(ex, "prefix reason dry_run", &body) ||
        !dibs__serve_ask_text(ex, body, "prefix", DIBS_NAME_MAX, &prefix) ||
        !dibs__serve_ask_text(ex, body, "reason", DIBS__SERVE_REASON_MAX,
                              &sw.reason) ||
        !dibs__serve_ask_bool(ex, body, "dry_run", &sw.dry))
        return;
    sw.end = dibs__bulk_end();
    sw.js = dibs__http_answer(ex, 200);
    dibsx_json_key(sw.js, "broken");
    dibsx_json_open(sw.js, '[');
    rc = dibs_lease_list(sv->cl, prefix, sweep_row, &sw, &err);
    if (rc == DIBS_OK && sw.err.status != DIBS_OK) {
        err = sw.err;
        rc = err.status;
    }
    dibsx_json_close(sw.js, ']');
    dibsx_json_pair_bool(sw.js, "complete", rc == DIBS_OK && !sw.cut);
    if (rc != DIBS_OK && !sw.broken)
        (void)dibs__serve_fail(ex, &err);
}

/* The name of a lock by its key: the prefix may stand before it. */
static const char *strip_prefix(const dibs__serve *sv, const char *name)
{
    const char *prefix = sv->opts->prefix ? sv->opts->prefix : "";
    const size_t len = strlen(prefix);

    return len && strncmp(name, prefix, len) == 0 && name[len] ? name + len
                                                               : name;
}

static bool look_away(const dibs_lease_info *info, void *arg)
{
    (void)info;
    (void)arg;
    return false;
}

/* A lock that a path names, and the store that has it. */
typedef struct admin_lock {
    dibs_client *cl;
    const char *name;
    char sweep_name[DIBS_NAME_MAX + 1];
} admin_lock;

/* The lock of a sweep is in the store of the jobs, under a prefix of its own. A path may
 * leave that out, but a lock of that very name comes first. */
static dibs_status find_lock(const dibs__serve *sv, const char *name,
                             admin_lock *out, dibs_error *err)
{
    const size_t len = strlen(sv->opts->sweep_prefix);
    dibs_status rc;

    out->cl = sv->cl;
    out->name = strip_prefix(sv, name);
    if (len && strncmp(out->name, sv->opts->sweep_prefix, len) == 0 &&
        dibs__sweep_is_name(out->name + len)) {
        out->cl = sv->data;
        return DIBS_OK;
    }
    if (!dibs__sweep_is_name(out->name))
        return DIBS_OK;
    rc = dibs_lease_show(sv->cl, out->name, look_away, NULL, err);
    if (rc != DIBS_NOTFOUND)
        return rc;
    (void)snprintf(out->sweep_name, sizeof(out->sweep_name), "%s%s",
                   sv->opts->sweep_prefix, out->name);
    out->name = out->sweep_name;
    out->cl = sv->data;
    return DIBS_OK;
}

/* The holder with most time left, and who that is as a number. */
static bool answer_admin(const dibs_lease_info *info, void *arg)
{
    dibs__http_exchange *ex = arg;
    const dibs__serve *sv = dibs__http_arg(ex);
    const dibs_party *holder = NULL;
    char key[2 * DIBS_NAME_MAX];
    dibsx_json *js = dibs__http_answer(ex, 200);

    for (size_t i = 0; i < info->holder_count; i++) {
        if (!holder || info->holders[i].left_ms > holder->left_ms)
            holder = &info->holders[i];
    }
    snprintf(key, sizeof(key), "%s%s", sv->opts->prefix ? sv->opts->prefix : "",
             info->name);
    dibsx_json_pair_text(js, "lockKey", key);
    dibsx_json_pair_bool(js, "locked", holder != NULL);
    dibsx_json_pair_int(js, "remainingTime", holder ? holder->left_ms : 0);
    dibsx_json_key(js, "threadId");
    if (!holder)
        dibsx_json_null(js);
    else if (*holder->identity && strlen(holder->identity) < 19 &&
             strspn(holder->identity, "0123456789") == strlen(holder->identity))
        dibsx_json_int(js, strtoll(holder->identity, NULL, 10));
    else
        dibsx_json_int(js, holder->pid);
    return false;
}

void dibs__serve_get_admin_lock(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex);
    dibs_error err = {0};
    admin_lock lock;
    dibs_status rc;

    if (!name)
        return;
    rc = find_lock(sv, name, &lock, &err);
    if (rc == DIBS_OK)
        rc = dibs_lease_show(lock.cl, lock.name, answer_admin, ex, &err);
    if (rc == DIBS_NOTFOUND)
        (void)answer_admin(&(dibs_lease_info){.name = lock.name}, ex);
    else if (rc != DIBS_OK)
        (void)dibs__serve_fail(ex, &err);
}

void dibs__serve_delete_admin_lock(dibs__http_exchange *ex)
{
    dibs__serve *sv = dibs__http_arg(ex);
    const char *name = dibs__serve_ask_name(ex), *reason = NULL;
    dibs_error err = {0};
    admin_lock lock;

    if (!name ||
        !dibs__serve_ask_line(ex, "reason", DIBS__SERVE_REASON_MAX, &reason))
        return;
    if (find_lock(sv, name, &lock, &err) == DIBS_OK &&
        break_lease(ex, lock.cl, "unlock", lock.name, 0, reason, NULL, &err) ==
            DIBS_OK)
        dibs__http_answer_none(ex, 204);
    else
        (void)dibs__serve_fail(ex, &err);
}
