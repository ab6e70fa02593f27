/* stale.c - holders that seem to be gone, and ending their leases. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/monitor.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/log.h"
#include "core/monitor/monitor.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static bool process_gone(const dibs_client *cl, const dibs__who *who)
{
    return strcmp(who->host, cl->host) == 0 &&
           strcmp(who->host, DIBSX_HOST_UNKNOWN) != 0 && who->pid > 0 &&
           who->pid <= INT32_MAX && kill((pid_t)who->pid, 0) != 0 &&
           errno == ESRCH;
}

bool dibs__stale_hint(const dibs_client *cl, const dibs__entry *entry,
                      const dibs__who *who, char hint[DIBS__HINT_MAX])
{
    int64_t part_ms = entry->ttl_ms / DIBS_RENEWALS_PER_TTL;
    int64_t missed_once_ms = (DIBS_RENEWALS_PER_TTL - 1) * part_ms;
    int64_t missed_twice_ms = (DIBS_RENEWALS_PER_TTL - 2) * part_ms;

    if (!entry->holder || entry->claim || entry->left || who->by_hand)
        return false;
    if (entry->left_ms < missed_once_ms && process_gone(cl, who)) {
        snprintf(hint, DIBS__HINT_MAX, "its process is gone");
        return true;
    }
    if (entry->left_ms < missed_twice_ms) {
        snprintf(hint, DIBS__HINT_MAX, "it has not renewed for %" PRId64 " ms",
                 entry->ttl_ms - entry->left_ms);
        return true;
    }
    return false;
}

/* So many are looked for before they are ended. */
enum { BATCH = 128 };

/* A holder that seems to be gone. */
typedef struct gone {
    char name[DIBS_NAME_MAX + 1];
    uint64_t fence;
    char who[DIBS__WHO_MAX];
    char hint[DIBS__HINT_MAX];
} gone;

typedef struct sweep {
    dibs_client *cl;
    gone *found;
    size_t count;
} sweep;

static bool
note_gone(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    sweep *sw = arg;

    for (size_t i = 0; i < count && sw->count < BATCH; i++) {
        gone *gn = &sw->found[sw->count];
        dibs__who who;

        dibs__who_read(entries[i].who, &who);
        if (!dibs__stale_hint(sw->cl, &entries[i], &who, gn->hint))
            continue;
        snprintf(gn->name, sizeof(gn->name), "%s", name);
        snprintf(gn->who, sizeof(gn->who), "%s", entries[i].who);
        gn->fence = entries[i].fence;
        sw->count++;
    }
    return sw->count < BATCH;
}

/* Ends one lease and adds to *broken. That it ended or went to another meanwhile
 * is as good. */
static dibs_status
end_lease(dibs_client *cl, const gone *gn, const char *reason, uint32_t *broken,
          dibs_error *err)
{
    uint32_t ended = 0;
    dibs_status rc =
        cl->st->ops->lease->revoke(cl->st, gn->name, gn->fence,
                                   dibs__client_deadline(cl, dibsx_now()),
                                   &ended, err);

    if (rc == DIBS_NOTFOUND || rc == DIBS_STALE)
        return DIBS_OK;
    if (rc != DIBS_OK)
        return rc;
    *broken += ended;
    dibs__log(cl, DIBS_LOG_WARN, "broken", "%s: ended by force: %s", gn->name,
              gn->hint);
    dibs__trail_add(cl,
                    &(dibs__trail_item){.action = "break-stale",
                                        .name = dibs__name_short(cl, gn->name),
                                        .reason = reason ? reason : gn->hint,
                                        .holder = gn->who,
                                        .fence = gn->fence});
    return DIBS_OK;
}

/* Looks for as many as there is room for and ends them. *more: there may be
 * others. */
static dibs_status sweep_once(sweep *sw, const char *begins, const char *reason,
                              uint32_t *broken, bool *more, dibs_error *err)
{
    dibs_client *cl = sw->cl;
    uint32_t before = *broken;
    dibs_status rc;

    sw->count = 0;
    rc = cl->st->ops->lease->list(cl->st, begins,
                                  dibs__client_deadline(cl, dibsx_now()),
                                  note_gone, sw, err);
    for (size_t i = 0; i < sw->count && rc == DIBS_OK; i++)
        rc = end_lease(cl, &sw->found[i], reason, broken, err);
    *more = rc == DIBS_OK && sw->count == BATCH && *broken > before;
    return rc;
}

dibs_status
dibs_lease_break_stale(dibs_client *cl, const char *begins, const char *reason,
                       uint32_t *broken, dibs_error *err)
{
    DIBSX_UNCANCEL;
    sweep sw = {.cl = cl};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__reach_usable(cl, err);
    uint32_t count = 0;
    bool more = true;

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc == DIBS_OK) {
        sw.found = dibsx_zalloc_n(BATCH, sizeof(*sw.found));
        if (!sw.found)
            rc = dibsx_nomem(err, "the list");
    }
    while (rc == DIBS_OK && more)
        rc = sweep_once(&sw, full, reason, &count, &more, err);
    dibsx_free(sw.found);
    if (broken)
        *broken = count;
    return rc == DIBS_UNAVAIL && count > 0 ? dibsx_unanswered(err) : rc;
}
