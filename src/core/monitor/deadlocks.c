/* deadlocks.c - deadlocks in a store: reading who waits for whom, twice.
 *
 * A store may be read name by name while its parties move on, so that a cycle may
 * appear that never was. A party that is seen twice was there all the time: owners
 * are never used again. Only cycles of parties that were seen both times are shown.
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/monitor.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/uncancel.h"
#include "core/monitor/deadlock_graph.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <string.h>

typedef struct gathering {
    dibs_client *cl;
    dibs__wait_graph *graph;
    const dibs__wait_graph *before; /* the first look; NULL: this is it */
    bool failed;
} gathering;

/* As many leases around a waiter are looked at. */
enum { WITHIN_MAX = 8 };

/* Texts of a party that its entry does not have. */
typedef struct party_texts {
    dibs__who who;
    char agent[DIBS__WHO_MAX];
    char within[WITHIN_MAX][DIBS_OWNER_SIZE];
    size_t within_count;
} party_texts;

/* The value of "within=" in the metadata: beginnings of owners, with commas
 * between them. Less than eight digits could be those of several. */
static void read_within(const char *meta, party_texts *texts)
{
    const char *at = meta;

    while (strncmp(at, "within=", 7) != 0) {
        at = strchr(at, '\t');
        if (!at)
            return;
        at++;
    }
    at += 6; /* the "=", as later a comma */
    do {
        size_t len = strspn(++at, "0123456789abcdef");
        char *out = texts->within[texts->within_count];

        if (len < 8 || len >= DIBS_OWNER_SIZE)
            return;
        memcpy(out, at, len);
        out[len] = '\0';
        texts->within_count++;
        at += len;
    } while (*at == ',' && texts->within_count < WITHIN_MAX);
}

static void read_texts(const dibs__entry *entry, party_texts *texts)
{
    dibs__who_read(entry->who, &texts->who);
    dibs__who_agent(&texts->who, texts->agent);
    if (!entry->holder)
        read_within(texts->who.meta, texts);
}

/* Adds the party, and once more for each lease within which it waits. Returns how
 * many it added. */
static size_t add_party(const dibs__entry *entry, const party_texts *texts,
                        dibs__wait_party *out)
{
    for (size_t i = 0; i <= texts->within_count; i++)
        out[i] =
            (dibs__wait_party){.agent = texts->agent,
                               .label = texts->who.label,
                               .owner = entry->owner,
                               .within = i > 0 ? texts->within[i - 1] : NULL,
                               .mode = entry->mode,
                               .permits = entry->permits,
                               .fence = entry->fence,
                               .age_ms = entry->age_ms};
    return texts->within_count + 1;
}

/* An entry that was released expires and blocks no waiter for good. Holders
 * come first in the entries, so one array of parties serves both. */
static void
fill_name(dibs__wait_name *nm, dibs__wait_party *parties,
          const dibs__entry *entries, const party_texts *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t added;

        if (entries[i].left)
            continue;
        added = add_party(&entries[i], &texts[i],
                          &parties[nm->holder_count + nm->waiter_count]);
        nm->capacity = entries[i].capacity;
        if (entries[i].holder)
            nm->holder_count += added;
        else
            nm->waiter_count += added;
    }
    nm->holders = parties;
    nm->waiters = parties + nm->holder_count;
}

static bool add_name(gathering *gt, const char *name,
                     const dibs__entry *entries, size_t count)
{
    dibs__wait_name nm = {.name = dibs__name_short(gt->cl, name)};
    party_texts *texts = dibsx_zalloc_n(count, sizeof(*texts));
    dibs__wait_party *parties = NULL;
    size_t room = count;
    bool good = texts != NULL;

    for (size_t i = 0; i < count && good; i++) {
        read_texts(&entries[i], &texts[i]);
        room += texts[i].within_count;
    }
    if (good)
        parties = dibsx_zalloc_n(room, sizeof(*parties));
    if (parties)
        fill_name(&nm, parties, entries, texts, count);
    good = parties && dibs__wait_graph_add(gt->graph, &nm, gt->before);
    dibsx_free(parties);
    dibsx_free(texts);
    return good;
}

/* A name without waiters is in no cycle. */
static bool gather_name(const char *name, const dibs__entry *entries,
                        size_t count, void *arg)
{
    gathering *gt = arg;

    if (count > 0 && !entries[count - 1].holder)
        gt->failed = !add_name(gt, name, entries, count);
    return !gt->failed;
}

/* Reads the graph; *out is to be freed, whatever the answer. */
static dibs_status
read_graph(dibs_client *cl, const char *begins, const dibs__wait_graph *before,
           dibs__wait_graph **out, dibs_error *err)
{
    gathering gt = {.cl = cl,
                    .before = before,
                    .graph = dibs__wait_graph_new()};
    dibs_status rc = DIBS_OK;

    *out = gt.graph;
    gt.failed = !gt.graph;
    if (!gt.failed)
        rc = cl->st->ops->lease->list(cl->st, begins,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      gather_name, &gt, err);
    if (rc == DIBS_OK && (gt.failed || !dibs__wait_graph_solve(gt.graph)))
        rc = dibsx_nomem(err, "so many waiters");
    return rc;
}

dibs_status dibs_deadlocks(dibs_client *cl, const char *begins,
                           dibs_deadlock_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char full[DIBS_NAME_MAX + 1];
    dibs__wait_graph *first = NULL, *second = NULL;
    dibs_status rc = dibs__reach_usable(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__name_begins(cl, begins, full, err);
    if (rc != DIBS_OK)
        return rc;
    rc = read_graph(cl, full, NULL, &first, err);
    if (rc != DIBS_OK || dibs__wait_graph_deadlocks(first, NULL, NULL) == 0)
        goto out;
    rc = read_graph(cl, full, first, &second, err);
    if (rc == DIBS_OK)
        (void)dibs__wait_graph_deadlocks(second, each, arg);
out:
    dibs__wait_graph_free(second);
    dibs__wait_graph_free(first);
    return rc;
}
