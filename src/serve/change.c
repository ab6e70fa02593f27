/* change.c - the difference of two pictures. Pure. */
/* SPDX-License-Identifier: MIT */
#include "serve/change.h"
#include <string.h>

const char *dibs__serve_change_text(dibs__serve_change_kind kind)
{
    static const char *const texts[] = {
        [DIBS__SERVE_QUEUED] = "queued",
        [DIBS__SERVE_ACQUIRED] = "acquired",
        [DIBS__SERVE_RELEASED] = "released",
        [DIBS__SERVE_EXPIRED] = "expired",
        [DIBS__SERVE_GAVE_UP] = "gave_up",
    };

    return texts[kind];
}

static const dibs_party *
find_holder(const dibs_lease_info *row, uint64_t fence, const char *owner)
{
    for (size_t i = 0; row && i < row->holder_count; i++) {
        if ((fence == 0 || row->holders[i].fence == fence) &&
            strcmp(row->holders[i].owner, owner) == 0)
            return &row->holders[i];
    }
    return NULL;
}

static const dibs_party *
find_waiter(const dibs_lease_info *row, const char *owner)
{
    for (size_t i = 0; row && i < row->waiter_count; i++) {
        if (strcmp(row->waiters[i].owner, owner) == 0)
            return &row->waiters[i];
    }
    return NULL;
}

/* Two rows of one name, of which either may be NULL. */
typedef struct pair {
    const dibs_lease_info *before, *now;
    int64_t step_ms; /* from one picture to the other */
    dibs__serve_change_fn *each;
    void *arg;
} pair;

static void tell_ends(const pair *pr)
{
    const dibs_lease_info *row = pr->before;

    for (size_t i = 0; row && i < row->holder_count; i++) {
        const dibs_party *holder = &row->holders[i];

        if (!find_holder(pr->now, holder->fence, holder->owner))
            pr->each(pr->arg,
                     &(dibs__serve_change){.kind =
                                               holder->left_ms <= pr->step_ms
                                                   ? DIBS__SERVE_EXPIRED
                                                   : DIBS__SERVE_RELEASED,
                                           .row = row,
                                           .party = holder});
    }
    for (size_t i = 0; row && i < row->waiter_count; i++) {
        const dibs_party *waiter = &row->waiters[i];

        if (!find_waiter(pr->now, waiter->owner) &&
            !find_holder(pr->now, 0, waiter->owner))
            pr->each(pr->arg, &(dibs__serve_change){.kind = DIBS__SERVE_GAVE_UP,
                                                    .row = row,
                                                    .party = waiter});
    }
}

static void tell_begins(const pair *pr)
{
    const dibs_lease_info *row = pr->now;

    for (size_t i = 0; row && i < row->holder_count; i++) {
        const dibs_party *holder = &row->holders[i];
        const dibs_party *waited = find_waiter(pr->before, holder->owner);

        if (!find_holder(pr->before, holder->fence, holder->owner))
            pr->each(pr->arg,
                     &(dibs__serve_change){.kind = DIBS__SERVE_ACQUIRED,
                                           .row = row,
                                           .party = holder,
                                           .waited_ms =
                                               waited ? waited->age_ms : -1});
    }
    for (size_t i = 0; row && i < row->waiter_count; i++) {
        if (!find_waiter(pr->before, row->waiters[i].owner))
            pr->each(pr->arg, &(dibs__serve_change){.kind = DIBS__SERVE_QUEUED,
                                                    .row = row,
                                                    .party = &row->waiters[i],
                                                    .place = i + 1});
    }
}

/* A picture that is cut says nothing about names behind its end. */
static bool is_known(const dibs__serve_picture *picture, const char *name)
{
    return !picture || dibs__serve_picture_covers(picture, name);
}

void dibs__serve_compare(const dibs__serve_picture *before,
                         const dibs__serve_picture *now,
                         dibs__serve_change_fn *each, void *arg)
{
    const int64_t step_ms =
        before ? (now->seen_at - before->seen_at) / DIBSX_MS : 0;
    size_t b = 0, n = 0;

    while ((before && b < before->count) || n < now->count) {
        const dibs_lease_info *old =
            before && b < before->count ? before->rows[b] : NULL;
        const dibs_lease_info *new = n < now->count ? now->rows[n] : NULL;
        const int order = !old ? 1 : !new ? -1 : strcmp(old->name, new->name);
        const char *name = order <= 0 ? old->name : new->name;
        const pair pr = {.before = order <= 0 ? old : NULL,
                         .now = order >= 0 ? new : NULL,
                         .step_ms = step_ms,
                         .each = each,
                         .arg = arg};

        if (is_known(before, name) && is_known(now, name)) {
            tell_ends(&pr);
            tell_begins(&pr);
        }
        b += order <= 0;
        n += order >= 0;
    }
}
