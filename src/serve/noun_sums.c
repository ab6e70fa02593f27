/* noun_sums.c - metrics of elections, queues, breakers and deadlocks; see noun_sums.h.
 *
 * Owns the names whose changes it counts. */
/* SPDX-License-Identifier: MIT */
#include "serve/noun_sums.h"
#include "base/alloc.h"
#include "serve/metrics.h"
#include "serve/noun_json.h"
#include <stdio.h>
#include <string.h>

enum { DEADLOCKS_MS = 1000 };

#define OTHER "other"

void dibs__noun_sums_init(dibs__noun_sums *sums)
{
    *sums = (dibs__noun_sums){.deadlocks = 0};
    pthread_mutex_init(&sums->mutex, NULL);
}

void dibs__noun_sums_fini(dibs__noun_sums *sums)
{
    dibsx_free(sums->elections.at);
    dibsx_free(sums->breakers.at);
    pthread_mutex_destroy(&sums->mutex);
}

/* The record of a name. NULL: there are too many, or memory is short. */
static dibs__noun_changed *
find_changed(dibs__noun_changes *list, const char *name)
{
    size_t i = 0;

    if (!list->at)
        list->at = dibsx_zalloc_n(DIBS__NOUN_LABELS_MAX, sizeof(*list->at));
    if (!list->at || strcmp(name, OTHER) == 0)
        return NULL;
    while (i < list->count && strcmp(list->at[i].name, name) != 0)
        i++;
    return i < list->count ? &list->at[i] : NULL;
}

/* Compares a thing with what was seen of it. The first sight of it is no change. */
static void note_thing(dibs__noun_changes *list, const char *name,
                       uint64_t version, int state)
{
    dibs__noun_changed *thing = find_changed(list, name);

    if (thing) {
        thing->changes += thing->version != version || thing->state != state;
    } else {
        if (!list->at || list->count == DIBS__NOUN_LABELS_MAX ||
            strcmp(name, OTHER) == 0)
            return;
        thing = &list->at[list->count++];
        (void)snprintf(thing->name, sizeof(thing->name), "%s", name);
    }
    thing->version = version;
    thing->state = state;
}

/* Two scrapes may come with pages in another order; only later ones count. */
static bool is_later(dibs__noun_changes *list, dibsx_nsec seen_at)
{
    if (seen_at <= list->seen_at)
        return false;
    list->seen_at = seen_at;
    return true;
}

static void put_changes(const dibs__noun_changes *list, dibsx_buf *out,
                        dibs__serve_metric metric, const char *key)
{
    dibs__serve_metric_head(out, metric);
    for (size_t i = 0; i < list->count; i++)
        dibs__serve_metric_labelled(out, metric, key, list->at[i].name, NULL,
                                    (double)list->at[i].changes);
}

/* ---- elections */

static uint64_t term_of(const dibs_lease_info *row)
{
    const dibs_party *leader = dibs__noun_leader(row);

    return leader ? leader->fence : 0;
}

static double led_of(const dibs_lease_info *row)
{
    return dibs__noun_leader(row) != NULL;
}

static double term_value(const dibs_lease_info *row)
{
    return (double)term_of(row);
}

static double candidates_of(const dibs_lease_info *row)
{
    return (double)row->waiter_count;
}

static void put_elections(const dibs__serve_picture *picture, dibsx_buf *out,
                          dibs__serve_metric metric,
                          double (*value)(const dibs_lease_info *))
{
    size_t shown = 0;

    dibs__serve_metric_head(out, metric);
    for (size_t i = 0;
         picture && i < picture->count && shown < DIBS__NOUN_LABELS_MAX; i++) {
        if (!dibs__noun_is_election(picture->rows[i]))
            continue;
        dibs__serve_metric_labelled(out, metric, "election",
                                    picture->rows[i]->name, NULL,
                                    value(picture->rows[i]));
        shown++;
    }
}

/* A gap without a leader is no change; the next term is. */
static void
note_elections(dibs__noun_changes *list, const dibs__serve_picture *picture)
{
    for (size_t i = 0; i < picture->count; i++)
        if (dibs__noun_is_election(picture->rows[i]) &&
            term_of(picture->rows[i]))
            note_thing(list, picture->rows[i]->name, term_of(picture->rows[i]),
                       0);
}

void dibs__noun_sums_elections(dibs__noun_sums *sums,
                               const dibs__serve_picture *picture,
                               dibsx_buf *out)
{
    put_elections(picture, out, DIBS__SERVE_ELECTION_LED, led_of);
    put_elections(picture, out, DIBS__SERVE_ELECTION_TERM, term_value);
    put_elections(picture, out, DIBS__SERVE_ELECTION_CANDIDATES, candidates_of);
    pthread_mutex_lock(&sums->mutex);
    if (picture && is_later(&sums->elections, picture->seen_at))
        note_elections(&sums->elections, picture);
    put_changes(&sums->elections, out, DIBS__SERVE_ELECTION_CHANGES,
                "election");
    pthread_mutex_unlock(&sums->mutex);
}

/* ---- queues */

typedef double queue_fn(const dibs_queue_info *info);

/* One number of each queue. */
typedef struct queue_part {
    dibs__serve_metric metric;
    const char *more;
    bool highest; /* of all others, not their sum */
    queue_fn *value;
} queue_part;

#define QUEUE_VALUE(name, expression)                                          \
    static double name(const dibs_queue_info *info)                            \
    {                                                                          \
        return (double)(expression);                                           \
    }

QUEUE_VALUE(ready_of, info->ready)
QUEUE_VALUE(later_of, info->later)
QUEUE_VALUE(out_of, info->out)
QUEUE_VALUE(dead_of, info->dead)
QUEUE_VALUE(oldest_of, (double)info->oldest_ms / 1e3)
QUEUE_VALUE(consumers_of, info->consumers)
QUEUE_VALUE(pushed_of, info->pushed)
QUEUE_VALUE(acked_of, info->acked)
QUEUE_VALUE(nacked_of, info->nacked)
QUEUE_VALUE(lost_of, info->lost)
QUEUE_VALUE(died_of, info->died)

static const queue_part queue_parts[] = {
    {DIBS__SERVE_QUEUE_MESSAGES, "state=\"ready\"", false, ready_of},
    {DIBS__SERVE_QUEUE_MESSAGES, "state=\"later\"", false, later_of},
    {DIBS__SERVE_QUEUE_MESSAGES, "state=\"out\"", false, out_of},
    {DIBS__SERVE_QUEUE_MESSAGES, "state=\"dead\"", false, dead_of},
    {DIBS__SERVE_QUEUE_OLDEST, NULL, true, oldest_of},
    {DIBS__SERVE_QUEUE_CONSUMERS, NULL, false, consumers_of},
    {DIBS__SERVE_QUEUE_PUSHED, NULL, false, pushed_of},
    {DIBS__SERVE_QUEUE_DONE, NULL, false, acked_of},
    {DIBS__SERVE_QUEUE_RETRIED, NULL, false, nacked_of},
    {DIBS__SERVE_QUEUE_LOST, NULL, false, lost_of},
    {DIBS__SERVE_QUEUE_DEAD, NULL, false, died_of}};

static void put_queue_part(const dibs__catalog_page *page, dibsx_buf *out,
                           const queue_part *part)
{
    double other = 0;
    bool others = false;

    for (size_t i = 0; page && i < page->count; i++) {
        const dibs__catalog_row *row = &page->rows[i];
        const double value = part->value(&row->facts.queue);

        if (i < DIBS__NOUN_LABELS_MAX && strcmp(row->name, OTHER) != 0) {
            dibs__serve_metric_labelled(out, part->metric, "queue", row->name,
                                        part->more, value);
            continue;
        }
        others = true;
        if (!part->highest)
            other += value;
        else if (value > other)
            other = value;
    }
    if (others)
        dibs__serve_metric_labelled(out, part->metric, "queue", OTHER,
                                    part->more, other);
}

void dibs__noun_sums_queues(const dibs__catalog_page *page, dibsx_buf *out)
{
    const size_t count = sizeof(queue_parts) / sizeof(queue_parts[0]);

    for (size_t i = 0; i < count; i++) {
        if (i == 0 || queue_parts[i].metric != queue_parts[i - 1].metric)
            dibs__serve_metric_head(out, queue_parts[i].metric);
        put_queue_part(page, out, &queue_parts[i]);
    }
}

/* ---- breakers */

static double openness(dibs_breaker_state state)
{
    switch (state) {
    case DIBS_BREAKER_CLOSED:
        return 0;
    case DIBS_BREAKER_HALF_OPEN:
        return 1;
    case DIBS_BREAKER_OPEN:
    case DIBS_BREAKER_FORCED:
        break;
    }
    return 2;
}

void dibs__noun_sums_breakers(dibs__noun_sums *sums,
                              const dibs__catalog_page *page, dibsx_buf *out)
{
    dibs__serve_metric_head(out, DIBS__SERVE_BREAKER_STATE);
    for (size_t i = 0; page && i < page->count && i < DIBS__NOUN_LABELS_MAX;
         i++)
        dibs__serve_metric_labelled(out, DIBS__SERVE_BREAKER_STATE, "breaker",
                                    page->rows[i].name, NULL,
                                    openness(
                                        page->rows[i].facts.breaker.state));
    pthread_mutex_lock(&sums->mutex);
    if (page && is_later(&sums->breakers, page->seen_at))
        for (size_t i = 0; i < page->count; i++)
            note_thing(&sums->breakers, page->rows[i].name, 0,
                       (int)page->rows[i].facts.breaker.state);
    put_changes(&sums->breakers, out, DIBS__SERVE_BREAKER_CHANGES, "breaker");
    pthread_mutex_unlock(&sums->mutex);
}

/* ---- deadlocks */

static bool count_deadlock(const dibs_wait_link *links, size_t count, void *arg)
{
    (void)links;
    (void)count;
    ++*(uint64_t *)arg;
    return true;
}

uint64_t
dibs__noun_sums_deadlocks(dibs__noun_sums *sums, dibs_client *cl, bool waits)
{
    uint64_t found = 0;

    if (!waits)
        return 0;
    pthread_mutex_lock(&sums->mutex);
    if (!sums->looked_at ||
        dibsx_now() >= dibsx_after_ms(sums->looked_at, DEADLOCKS_MS)) {
        if (dibs_deadlocks(cl, NULL, count_deadlock, &found, NULL) == DIBS_OK)
            sums->deadlocks = found;
        sums->looked_at = dibsx_now();
    }
    found = sums->deadlocks;
    pthread_mutex_unlock(&sums->mutex);
    return found;
}
