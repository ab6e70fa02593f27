/* monitor.c - lists holders and waiters as the store has them; asks a holder for its
 * lease, or revokes it. Any thread. */
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
#include <stdio.h>
#include <string.h>

typedef struct viewer {
    dibs_client *cl;
    dibs_lease_fn *each;
    void *arg;
    bool short_of_memory;
} viewer;

/* Texts of a party that its entry does not have. */
typedef struct party_texts {
    dibs__who who;
    char hint[DIBS__HINT_MAX];
} party_texts;

static void show_party(const dibs_client *cl, const dibs__entry *entry,
                       party_texts *texts, dibs_party *out)
{
    const dibs__who *who = &texts->who;

    dibs__who_read(entry->who, &texts->who);
    *out = (dibs_party){
        .owner = entry->owner,
        .host = who->host,
        .pid = who->pid,
        .label = who->label,
        .mode = dibs__mode_name(entry->mode),
        .permits = entry->permits,
        .priority = entry->priority,
        .fence = entry->fence,
        .ttl_ms = entry->ttl_ms,
        .age_ms = entry->age_ms,
        .left_ms = entry->left_ms,
        .claim = entry->claim,
        .left = entry->left,
        .identity = who->identity,
        .meta = who->meta,
    };
    if (dibs__stale_hint(cl, entry, who, texts->hint))
        out->stale = texts->hint;
}

/* Holders come first in the entries, so one array of parties serves both. */
static bool
show_name(const char *name, const dibs__entry *entries, size_t count, void *arg)
{
    viewer *vw = arg;
    dibs_lease_info info = {.name = dibs__name_short(vw->cl, name)};
    dibs_party *parties = dibsx_zalloc_n(count, sizeof(*parties));
    party_texts *texts = dibsx_zalloc_n(count, sizeof(*texts));
    bool more = false;

    if (!parties || !texts) {
        vw->short_of_memory = true;
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        show_party(vw->cl, &entries[i], &texts[i], &parties[i]);
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
    dibsx_free(texts);
    dibsx_free(parties);
    return more;
}

dibs_status dibs_lease_list(dibs_client *cl, const char *begins,
                            dibs_lease_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    viewer vw = {.cl = cl, .each = each, .arg = arg};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->list(cl->st, full,
                                  dibs__client_deadline(cl, dibsx_now()),
                                  show_name, &vw, err);
    if (rc == DIBS_OK && vw.short_of_memory)
        return dibsx_nomem(err, "the list");
    return rc;
}

dibs_status dibs_lease_show(dibs_client *cl, const char *name,
                            dibs_lease_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    viewer vw = {.cl = cl, .each = each, .arg = arg};
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->inspect(cl->st, full,
                                     dibs__client_deadline(cl, dibsx_now()),
                                     show_name, &vw, err);
    if (rc == DIBS_OK && vw.short_of_memory)
        return dibsx_nomem(err, "%s", name);
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "nobody holds %s and nobody waits", name);
    return rc;
}

/* The holder of a lease that is revoked, for the trail. */
typedef struct victim {
    uint64_t fence;
    char who[DIBS__WHO_MAX];
} victim;

/* At most so many holders of one name are in the trail. */
enum { VICTIMS_MAX = 256 };

typedef struct victims {
    uint64_t fence; /* 0: every holder */
    victim *list;
    size_t count;
} victims;

static bool note_victims(const char *name, const dibs__entry *entries,
                         size_t count, void *arg)
{
    victims *vs = arg;

    (void)name;
    if (count > VICTIMS_MAX)
        count = VICTIMS_MAX;
    vs->list = dibsx_zalloc_n(count, sizeof(*vs->list));
    for (size_t i = 0; i < count && vs->list; i++) {
        victim *vc = &vs->list[vs->count];

        if (!entries[i].holder ||
            (vs->fence != 0 && entries[i].fence != vs->fence))
            continue;
        vc->fence = entries[i].fence;
        snprintf(vc->who, sizeof(vc->who), "%s", entries[i].who);
        vs->count++;
    }
    return false;
}

/* Looks the holders up before, as no store knows them afterwards. Without an
 * answer the trail has no holder. */
static void look_up(dibs_client *cl, const char *full, victims *vs)
{
    dibs_error ignored;

    (void)cl->st->ops->lease->inspect(cl->st, full,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      note_victims, vs, &ignored);
}

static void write_down(dibs_client *cl, const char *name, const char *reason,
                       const victims *vs)
{
    dibs__trail_item item = {.action = "break",
                             .name = name,
                             .reason = reason,
                             .holder = "",
                             .fence = vs->fence};

    for (size_t i = 0; i < vs->count; i++) {
        item.holder = vs->list[i].who;
        item.fence = vs->list[i].fence;
        dibs__trail_add(cl, &item);
    }
    if (vs->count == 0)
        dibs__trail_add(cl, &item);
}

/* The error of a break or a yield that found no such holder. */
static dibs_status no_such(dibs_status rc, const char *name, dibs_error *err)
{
    if (rc == DIBS_NOTFOUND)
        return dibsx_fail(err, rc, "nobody holds %s", name);
    if (rc == DIBS_STALE)
        return dibsx_fail(err, rc, "%s is held under another fence", name);
    return rc;
}

dibs_status
dibs_lease_break(dibs_client *cl, const char *name, uint64_t fence,
                 const char *reason, uint32_t *broken, dibs_error *err)
{
    DIBSX_UNCANCEL;
    victims vs = {.fence = fence};
    char full[DIBS_NAME_MAX + 1];
    uint32_t count = 0;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    look_up(cl, full, &vs);
    rc = cl->st->ops->lease->revoke(cl->st, full, fence,
                                    dibs__client_deadline(cl, dibsx_now()),
                                    &count, err);
    if (broken)
        *broken = count;
    if (rc == DIBS_OK) {
        dibs__log(cl, DIBS_LOG_WARN, "broken", "%s: %u ended by force: %s",
                  full, (unsigned)count, reason ? reason : "no reason given");
        write_down(cl, name, reason, &vs);
    }
    dibsx_free(vs.list);
    return no_such(rc, name, err);
}

dibs_status dibs_lease_yield(dibs_client *cl, const char *name, uint64_t fence,
                             uint32_t *asked, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    uint32_t count = 0;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, name, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = cl->st->ops->lease->yield(cl->st, full, fence,
                                   dibs__client_deadline(cl, dibsx_now()),
                                   &count, err);
    if (asked)
        *asked = count;
    return no_such(rc, name, err);
}
