/* monitor.c - who holds what and who waits, as the store tells it. */
/* SPDX-License-Identifier: MIT */
#include <dibs/monitor.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "core/names.h"

typedef struct viewer {
    dibs_client *cl;
    dibs_lease_fn *each;
    void *arg;
    bool short_of_memory;
} viewer;

static const char *mode_name(dibs__mode mode)
{
    switch (mode) {
    case DIBS__EXCLUSIVE:
        return "exclusive";
    case DIBS__SHARED:
        return "shared";
    case DIBS__PERMITS:
        break;
    }
    return "permits";
}

static void
show_party(const dibs__entry *entry, const dibs__who *who, dibs_party *out)
{
    *out = (dibs_party){
        .owner = entry->owner,
        .host = who->host,
        .pid = who->pid,
        .label = who->label,
        .mode = mode_name(entry->mode),
        .permits = entry->permits,
        .priority = entry->priority,
        .fence = entry->fence,
        .ttl_ms = entry->ttl_ms,
        .age_ms = entry->age_ms,
        .left_ms = entry->left_ms,
        .claim = entry->claim,
        .left = entry->left,
    };
}

/* Holders come first in the entries, so one array of parties serves both. */
static bool
show_name(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    viewer *vw = arg;
    dibs_lease_info info = {.name = dibs__name_short(vw->cl, name)};
    dibs_party *parties = dibsx_zalloc_n(count, sizeof(*parties));
    dibs__who *whos = dibsx_zalloc_n(count, sizeof(*whos));
    bool more = false;

    if (!parties || !whos) {
        vw->short_of_memory = true;
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        dibs__who_read(entries[i].who, &whos[i]);
        show_party(&entries[i], &whos[i], &parties[i]);
        if (entries[i].holder)
            info.holder_count++;
        if (entries[i].mode == DIBS__PERMITS)
            info.capacity = entries[i].capacity;
    }
    info.holders = parties;
    info.waiters = parties + info.holder_count;
    info.waiter_count = count - info.holder_count;
    more = vw->each(&info, vw->arg);
out:
    dibsx_free(whos);
    dibsx_free(parties);
    return more;
}

dibs_status dibs_lease_list(dibs_client *cl, const char *begins,
                            dibs_lease_fn *each, void *arg, dibs_error *err)
{
    viewer vw = {.cl = cl, .each = each, .arg = arg};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__client_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->list(cl->st, full,
                                  dibs__client_deadline(cl, dibsx_now()),
                                  show_name, &vw, err);
    if (rc == DIBS_OK && vw.short_of_memory)
        return dibsx_fail(err, DIBS_NOMEM, "no memory for the list");
    return rc;
}

dibs_status dibs_lease_show(dibs_client *cl, const char *name,
                            dibs_lease_fn *each, void *arg, dibs_error *err)
{
    viewer vw = {.cl = cl, .each = each, .arg = arg};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__client_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->inspect(cl->st, full,
                                     dibs__client_deadline(cl, dibsx_now()),
                                     show_name, &vw, err);
    if (rc == DIBS_OK && vw.short_of_memory)
        return dibsx_fail(err, DIBS_NOMEM, "no memory for %s", name);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "nobody holds %s and nobody waits", name);
    return rc;
}

dibs_status
dibs_lease_break(dibs_client *cl, const char *name, uint64_t fence,
                 const char *reason, uint32_t *broken, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    uint32_t count = 0;
    dibs_status rc = dibs__client_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->take(cl->st, full, fence,
                                  dibs__client_deadline(cl, dibsx_now()),
                                  &count, err);
    if (broken)
        *broken = count;
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "nobody holds %s", name);
    if (rc == DIBS_STALE)
        return dibsx_fail(err, rc, "%s is held under another fence", name);
    if (rc == DIBS_OK)
        dibs__log(cl, DIBS_LOG_WARN, "broken", "%s: %u ended by force: %s",
                  full, (unsigned)count, reason ? reason : "no reason given");
    return rc;
}
