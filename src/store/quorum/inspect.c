/* inspect.c - the reading lease steps over a quorum, and ending leases of
 * others.
 *
 * The steps show the leases that a majority of the nodes has. A lease on a
 * minority is about to end, or was never granted. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/fail.h"
#include "store/quorum/round.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Entries of a node that are looked at, and how long a listing may take it. */
enum { FOUND_MAX = 1 << 16, LIST_MS = 2000 };

typedef struct found {
    char name[DIBS_NAME_MAX + 1];
    size_t node;
    dibs__entry entry;
} found;

typedef struct heap {
    found *items;
    size_t count;
    size_t room;
    bool full;
} heap;

typedef struct showing {
    dibs__round rd;
    bool all; /* names that begin with the text; else the one of that name */
    char text[DIBS_NAME_MAX + 1];
    heap heaps[DIBS__NODES_MAX];
} showing;

static void showing_free(dibs__round *rd)
{
    showing *sh = (showing *)rd;

    for (size_t i = 0; i < DIBS__NODES_MAX; i++)
        dibsx_free(sh->heaps[i].items);
}

static bool grow_heap(heap *hp)
{
    size_t room = hp->room ? 2 * hp->room : 16;
    found *items;

    if (hp->count < hp->room)
        return true;
    items = room <= FOUND_MAX ? dibsx_realloc_n(hp->items, room, sizeof(*items))
                              : NULL;
    if (!items)
        return false;
    hp->items = items;
    hp->room = room;
    return true;
}

static bool collect_entries(const char *name, const dibs__entry *entries,
                            size_t count, void *arg)
{
    heap *hp = arg;

    for (size_t i = 0; i < count && !hp->full; i++) {
        if (!entries[i].holder)
            continue;
        hp->full = !grow_heap(hp);
        if (hp->full)
            break;
        snprintf(hp->items[hp->count].name, sizeof(hp->items->name), "%s",
                 name);
        hp->items[hp->count++].entry = entries[i];
    }
    return !hp->full;
}

/* On a thread of the node. */
static dibs_status
show_at(dibs__round *rd, size_t node, dibs__vote *vote, dibs_error *err)
{
    showing *sh = (showing *)rd;
    struct dibs__store *st = rd->qm->nodes[node].st;
    heap *hp = &sh->heaps[node];
    dibs_status rc;

    (void)vote;
    if (sh->all)
        rc = st->ops->vote->list(st, sh->text, rd->deadline, collect_entries,
                                 hp, err);
    else
        rc = st->ops->lease->inspect(st, sh->text, rd->deadline,
                                     collect_entries, hp, err);
    if (hp->full)
        return dibsx_fail(err, DIBS_NOMEM,
                          "a list is at most %d leases: the quorum has more; "
                          "ask for names with a longer beginning",
                          FOUND_MAX);
    for (size_t i = 0; i < hp->count; i++)
        hp->items[i].node = node;
    return rc == DIBS_NOTFOUND ? DIBS_OK : rc;
}

static bool never_enough(const dibs__round *rd)
{
    (void)rd;
    return false;
}

/* Asks all nodes. DIBS_OK: a majority has answered; drop *out. */
static dibs_status
ask_nodes(dibs__quorum *qm, const char *text, bool all, dibsx_nsec deadline,
          showing **out, dibs_error *err)
{
    int64_t span_ms =
        all && LIST_MS > qm->node_timeout_ms ? LIST_MS : qm->node_timeout_ms;
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), span_ms);
    showing *sh = dibsx_zalloc(sizeof(*sh));
    dibs_status rc;

    *out = NULL;
    if (!sh || !dibs__round_init(&sh->rd, qm, show_at,
                                 limit < deadline ? limit : deadline)) {
        dibsx_free(sh);
        return dibsx_nomem(err, "a round of votes");
    }
    sh->rd.free = showing_free;
    sh->all = all;
    snprintf(sh->text, sizeof(sh->text), "%s", text);
    dibs__round_start(&sh->rd, DIBS__ALL_NODES);
    dibs__round_wait(&sh->rd, never_enough);
    if (dibs__ballot_count(&sh->rd.ballot) == DIBS__WON) {
        *out = sh;
        return DIBS_OK;
    }
    rc = dibs__ballot_status(&sh->rd.ballot);
    rc = dibs__round_fail(&sh->rd, rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc,
                          "no majority was reached", err);
    dibs__round_drop(&sh->rd);
    return rc;
}

static int in_order(const void *a, const void *b)
{
    const found *one = *(found *const *)a;
    const found *two = *(found *const *)b;
    int names = strcmp(one->name, two->name);

    return names != 0 ? names : strcmp(one->entry.owner, two->entry.owner);
}

/* All that was found, by name and owner; NULL when memory is short. */
static found **sort_found(showing *sh, size_t *count)
{
    const dibs__ballot *bl = &sh->rd.ballot;
    found **sorted;
    size_t sum = 0;

    for (size_t i = 0; i < bl->count; i++)
        sum += bl->votes[i].rc == DIBS_OK ? sh->heaps[i].count : 0;
    sorted = dibsx_zalloc_n(sum + 1, sizeof(*sorted));
    if (!sorted)
        return NULL;
    *count = 0;
    for (size_t i = 0; i < bl->count; i++)
        for (size_t k = 0; bl->votes[i].rc == DIBS_OK && k < sh->heaps[i].count;
             k++)
            sorted[(*count)++] = &sh->heaps[i].items[k];
    qsort(sorted, *count, sizeof(*sorted), in_order);
    return sorted;
}

/* Merges the entries of one owner into one; false when too few nodes hold it,
 * even if those that did not answer did. */
static bool merge_entries(const showing *sh, found *const *same, size_t count,
                          dibs__entry *out)
{
    dibs__ballot bl = {.count = sh->rd.ballot.count};
    size_t silent = bl.count - dibs__ballot_said(&sh->rd.ballot, DIBS_OK);

    if (count + silent < dibs__majority(bl.count))
        return false;
    *out = same[0]->entry;
    out->priority = 0; /* The slot of a permit is of no interest. */
    for (size_t i = 0; i < count; i++) {
        const dibs__entry *entry = &same[i]->entry;

        bl.votes[same[i]->node] = (dibs__vote){.in = true,
                                               .counts = true,
                                               .fence = entry->fence,
                                               .left_ms = entry->left_ms};
        if (!out->who[0])
            memcpy(out->who, entry->who, sizeof(out->who));
        if (entry->age_ms > out->age_ms)
            out->age_ms = entry->age_ms;
        /* One node is enough: only the owner can have told it. */
        out->left = out->left || entry->left;
    }
    if (dibs__ballot_count(&bl) == DIBS__WON) {
        out->fence = dibs__ballot_fence(&bl);
        out->left_ms = dibs__ballot_left(&bl);
    }
    return true;
}

/* The number of those from `first` on that are of one name, or of one owner of it. */
static size_t run_of(found *const *first, size_t count, bool owner)
{
    size_t same = 1;

    while (same < count &&
           (owner ? in_order(&first[0], &first[same])
                  : strcmp(first[0]->name, first[same]->name)) == 0)
        same++;
    return same;
}

/* Shows what a majority has; returns how many, or -1 when memory is short. */
static long show_entries(showing *sh, dibs__entries_fn *each, void *arg)
{
    dibs__display dp = {.each = each, .arg = arg};
    size_t count, same, next;
    found **sorted = sort_found(sh, &count);
    bool more = true;
    long shown = 0;

    if (!sorted)
        return -1;
    for (size_t i = 0; i < count && more && shown >= 0; i += same) {
        size_t held = 0;

        same = run_of(sorted + i, count - i, false);
        if (!dibs__display_room(&dp, same))
            shown = -1;
        for (size_t k = 0; k < same && shown >= 0; k += next) {
            next = run_of(sorted + i + k, same - k, true);
            held += merge_entries(sh, sorted + i + k, next, &dp.entries[held]);
        }
        if (held == 0 || shown < 0)
            continue;
        shown++;
        more = each(sorted[i]->name, dp.entries, held, arg);
    }
    dibs__display_fini(&dp);
    dibsx_free(sorted);
    return shown;
}

static dibs_status
show_all(dibs__quorum *qm, const char *text, bool all, dibsx_nsec deadline,
         dibs__entries_fn *each, void *arg, dibs_error *err)
{
    showing *sh;
    dibs_status rc = ask_nodes(qm, text, all, deadline, &sh, err);
    long shown;

    if (rc != DIBS_OK)
        return rc;
    shown = show_entries(sh, each, arg);
    dibs__round_drop(&sh->rd);
    if (shown < 0)
        return dibsx_nomem(err, "a list of leases");
    if (shown == 0 && !all)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    return DIBS_OK;
}

dibs_status dibs__quorum_inspect(struct dibs__store *st, const char *name,
                                 dibsx_nsec deadline, dibs__entries_fn *each,
                                 void *arg, dibs_error *err)
{
    return show_all(dibs__quorum_of(st), name, false, deadline, each, arg, err);
}

dibs_status dibs__quorum_list(struct dibs__store *st, const char *begins,
                              dibsx_nsec deadline, dibs__entries_fn *each,
                              void *arg, dibs_error *err)
{
    return show_all(dibs__quorum_of(st), begins, true, deadline, each, arg,
                    err);
}

/* Leases of a name that are to be ended. */
typedef struct target {
    uint64_t fence; /* 0: all */
    size_t count;
    char owners[DIBS__NAME_SLOTS][DIBS_OWNER_SIZE];
} target;

static bool collect_targets(const char *name, const dibs__entry *entries,
                            size_t count, void *arg)
{
    target *tg = arg;

    (void)name;
    for (size_t i = 0; i < count && tg->count < DIBS__NAME_SLOTS; i++)
        if (tg->fence == 0 || tg->fence == entries[i].fence)
            memcpy(tg->owners[tg->count++], entries[i].owner, DIBS_OWNER_SIZE);
    return false;
}

dibs_status
dibs__quorum_revoke(struct dibs__store *st, const char *name, uint64_t fence,
                    dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    target tg = {.fence = fence};
    dibs_status rc =
        dibs__quorum_inspect(st, name, deadline, collect_targets, &tg, err);

    *broken = 0;
    if (rc != DIBS_OK)
        return rc;
    if (tg.count == 0)
        return dibsx_fail(err, DIBS_STALE, "it is held under another fence");
    for (size_t i = 0; i < tg.count && rc == DIBS_OK; i++) {
        /* With a tombstone, so that no request of its holder that is under way
         * brings it back. */
        const dibs__leave leave = {.name = name,
                                   .owner = tg.owners[i],
                                   .unanswered = true};

        rc = dibs__quorum_release(st, &leave, deadline, err);
        *broken += rc == DIBS_OK;
        if (rc == DIBS_LOST)
            rc = DIBS_OK;
    }
    if (rc == DIBS_OK && *broken == 0)
        return dibsx_fail(err, DIBS_NOTFOUND, "nobody holds it");
    /* Nothing has changed of the one that failed, but of those before it. */
    if (rc == DIBS_UNAVAIL && *broken > 0)
        rc = dibsx_unanswered(err);
    return rc;
}
