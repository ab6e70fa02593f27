/* session_leases.c - the list of session_leases.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/session_leases.h"

#include "base/hash.h"
#include <string.h>

static dibs__session_lease **
bucket_of(dibs__session_leases *all, const char *id)
{
    return &all->ids[dibsx_hash_text(id) % DIBS__SESSION_ID_BUCKETS];
}

static void link_first(dibs__session_leases *all, dibs__session_lease *le)
{
    le->prev = NULL;
    le->next = all->first;
    *(le->next ? &le->next->prev : &all->last) = le;
    all->first = le;
}

static void link_last(dibs__session_leases *all, dibs__session_lease *le)
{
    le->next = NULL;
    le->prev = all->last;
    *(le->prev ? &le->prev->next : &all->first) = le;
    all->last = le;
}

static void unlink_lease(dibs__session_leases *all, dibs__session_lease *le)
{
    *(le->prev ? &le->prev->next : &all->first) = le->next;
    *(le->next ? &le->next->prev : &all->last) = le->prev;
    if (all->over == le)
        all->over = le->next;
}

void dibs__leases_add(dibs__session_leases *all, dibs__session_lease *le,
                      const char *id)
{
    dibs__session_lease **bucket = bucket_of(all, id);

    memset(le, 0, sizeof(*le));
    memcpy(le->id, id, strlen(id) + 1);
    le->next_same = *bucket;
    *bucket = le;
    link_first(all, le);
    all->live_count++;
}

static bool is_over(const dibs__session_lease *le)
{
    return !le->asking &&
           (le->stage == DIBS__STAGE_FREED || le->stage == DIBS__STAGE_LOST);
}

void dibs__leases_moved(dibs__session_leases *all, dibs__session_lease *le)
{
    if (le->over || !is_over(le))
        return;
    le->over = true;
    unlink_lease(all, le);
    link_last(all, le);
    if (!all->over)
        all->over = le;
    all->live_count--;
    all->over_count++;
}

void dibs__leases_want(dibs__session_leases *all, dibs__session_lease *le,
                       dibs__session_todo todo)
{
    le->todo = todo;
    if (le->queued || todo == DIBS__SESSION_NOTHING)
        return;
    le->queued = true;
    le->next_todo = NULL;
    *(all->todo_first ? &all->todo_last->next_todo : &all->todo_first) = le;
    all->todo_last = le;
}

dibs__session_lease *
dibs__leases_find(const dibs__session_leases *all, const char *id)
{
    dibs__session_lease *le =
        all->ids[dibsx_hash_text(id) % DIBS__SESSION_ID_BUCKETS];

    while (le && strcmp(le->id, id) != 0)
        le = le->next_same;
    return le;
}

dibs__session_lease *
dibs__leases_next(dibs__session_leases *all, dibs__session_todo *todo)
{
    dibs__session_lease *le;

    while ((le = all->todo_first) != NULL) {
        all->todo_first = le->next_todo;
        le->queued = false;
        *todo = le->todo;
        le->todo = DIBS__SESSION_NOTHING;
        if (*todo != DIBS__SESSION_NOTHING)
            return le;
    }
    *todo = DIBS__SESSION_NOTHING;
    return NULL;
}

dibs__session_lease *
dibs__leases_take_old(dibs__session_leases *all, size_t max)
{
    dibs__session_lease *le = all->over, **at;

    if (all->over_count <= max)
        return NULL;
    while (le && le->queued)
        le = le->next;
    if (!le)
        return NULL;
    unlink_lease(all, le);
    all->over_count--;
    for (at = bucket_of(all, le->id); *at != le; at = &(*at)->next_same)
        continue;
    *at = le->next_same;
    return le;
}

const char *dibs__leases_check(const dibs__session_leases *all)
{
    size_t live = 0, over = 0;

    for (const dibs__session_lease *le = all->first; le; le = le->next) {
        if (le->over != is_over(le) || (over > 0 && !le->over))
            return "S6: a lease is not where it belongs";
        if (le->over && over == 0 && all->over != le)
            return "S6: a lease that is over is not known as the first";
        if (dibs__leases_find(all, le->id) != le)
            return "S3: an id has two leases, or none";
        live += !le->over;
        over += le->over;
    }
    return live != all->live_count || over != all->over_count
               ? "S6: leases are not counted"
               : NULL;
}
