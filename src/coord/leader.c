/* leader.c - who leads an election: looks, and watches.
 *
 * A leader is the holder of the lease, and its term is the version that the machine of
 * a watch compares (watch_machine.h). Leaders tell the topic of the value
 * "dibs.leader/NAME", which does not exist, when a term begins and ends; that only
 * makes a watch look sooner. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/uncancel.h"
#include "coord/election.h"
#include "coord/watcher.h"
#include "core/names.h"
#include "core/worker.h"
#include <dibs/monitor.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct dibs_leader_watch {
    dibs__watcher watcher; /* first, so that one is the other */
    char name[DIBS_NAME_MAX + 1];
};

static const dibs__handle_kind kind = DIBS__WATCHER_KIND;
static const dibs__watcher_words words = {"elect", "see who leads",
                                          "the leader of "};

/* The topic that the leaders of a name tell. */
static dibs_status topic_of(const dibs_client *cl, const char *name,
                            char out[DIBS__TOPIC_MAX], dibs_error *err)
{
    char key[DIBS_NAME_MAX + 16], full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__name_full(cl, name, full, err);

    if (rc != DIBS_OK)
        return rc;
    snprintf(key, sizeof(key), "dibs.leader/%s", name);
    rc = dibs__name_full(cl, key, full, err);
    if (rc == DIBS_OK)
        dibs__topic_of_value(full, out);
    return rc;
}

/* A tell that a worker sends. */
typedef struct tell_job {
    dibs__job job; /* first, so that one is the other */
    char topic[DIBS__TOPIC_MAX];
    uint64_t term;
} tell_job;

/* Thread: a worker. A tell that fails only makes watches slower. */
static void send_tell(dibs_client *cl, dibs__job *job)
{
    tell_job *tj = (tell_job *)(void *)job;

    pthread_mutex_unlock(&cl->mutex);
    (void)cl->st->ops->topic->tell(cl->st, tj->topic, tj->term,
                                   dibs__client_deadline(cl, dibsx_now()),
                                   NULL);
    dibsx_free(tj);
    pthread_mutex_lock(&cl->mutex);
}

void dibs__leader_tell(dibs_client *cl, const char *name, uint64_t term)
{
    tell_job *tj = dibs__store_cannot(cl->st, DIBS__CAN_TOPIC)
                       ? NULL
                       : dibsx_zalloc(sizeof(*tj));
    bool added = false;

    if (!tj)
        return;
    tj->job.run = send_tell;
    tj->term = term;
    if (topic_of(cl, name, tj->topic, NULL) == DIBS_OK) {
        pthread_mutex_lock(&cl->mutex);
        added = dibs__worker_add(cl, &tj->job);
        pthread_mutex_unlock(&cl->mutex);
    }
    if (!added)
        dibsx_free(tj);
}

static void copy_text(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text);
}

/* A plain lock has no member. */
static void read_holder(const dibs_party *holder, dibs_leader *out)
{
    const char *meta = holder->meta;

    out->pid = holder->pid;
    out->term = holder->fence;
    out->age_ms = holder->age_ms;
    out->left_ms = holder->left_ms;
    copy_text(out->host, sizeof(out->host), holder->host);
    if (!dibs__member_read_name(&meta, out->member, sizeof(out->member)))
        snprintf(out->member, sizeof(out->member), "%.40s:%" PRId64,
                 holder->host, holder->pid);
    copy_text(out->meta, sizeof(out->meta), meta);
}

static bool read_lease(const dibs_lease_info *info, void *arg)
{
    dibs_leader *out = arg;

    out->candidates = (uint32_t)info->waiter_count;
    for (size_t i = 0; i < info->holder_count && out->term == 0; i++)
        if (!info->holders[i].left)
            read_holder(&info->holders[i], out);
    return false;
}

static dibs_status read_leader(dibs_client *cl, const char *name,
                               dibs_leader *out, dibs_error *err)
{
    dibs_status rc;

    *out = (dibs_leader){.term = 0};
    rc = dibs_lease_show(cl, name, read_lease, out, err);
    if (rc == DIBS_NOTFOUND || (rc == DIBS_OK && out->term == 0))
        return dibsx_fail(err, DIBS_NOTFOUND, "%s has no leader", name);
    return rc;
}

/* Counts the members of the group of that name; 0 where the store has none. */
static dibs_status
count_members(dibs_client *cl, const char *name, uint32_t *out, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs__meet item = {.name = full, .id = "", .verb = DIBS__LOOK};
    dibs_status rc;

    *out = 0;
    if (dibs__store_cannot(cl->st, DIBS__CAN_MEET))
        return DIBS_OK;
    rc = dibs__name_full(cl, name, full, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->roster->meet(cl->st, &item, 1,
                                       dibs__client_deadline(cl, dibsx_now()),
                                       err);
    if (rc == DIBS_OK && item.rc == DIBS_OK && item.parties == 0)
        *out = item.live;
    return rc;
}

/* DIBS_NOTFOUND: nobody leads; the members are counted all the same. */
static dibs_status read_with_members(dibs_client *cl, const char *name,
                                     dibs_leader *out, dibs_error *err)
{
    dibs_status rc = read_leader(cl, name, out, err);
    dibs_error failure = {0};
    dibs_status counted;

    if (rc != DIBS_OK && rc != DIBS_NOTFOUND)
        return rc;
    counted = count_members(cl, name, &out->members, &failure);
    if (counted == DIBS_OK)
        return rc;
    return dibsx_fail_at(err, counted, failure.origin, "%s", failure.message);
}

dibs_status dibs_leader_get(dibs_client *cl, const char *name, dibs_leader *out,
                            dibs_error *err)
{
    DIBSX_UNCANCEL;

    return read_with_members(cl, name, out, err);
}

static dibs_status start_watch(dibs_client *cl, const char *name,
                               dibs_leader_watch *w, dibs_error *err)
{
    dibs_status rc = topic_of(cl, name, w->watcher.handle.topic, err);

    if (rc != DIBS_OK)
        return rc;
    copy_text(w->name, sizeof(w->name), name);
    w->watcher.cl = cl;
    w->watcher.handle.kind = &kind;
    w->watcher.words = &words;
    w->watcher.name = w->name;
    return dibs__watcher_start(&w->watcher, err);
}

dibs_status dibs_leader_watch_new(dibs_client *cl, const char *name,
                                  dibs_leader_watch **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    dibs_leader_watch *w;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    w = dibsx_zalloc(sizeof(*w));
    if (!w)
        return dibsx_nomem(err, "a watch");
    rc = start_watch(cl, name, w, err);
    if (rc == DIBS_OK)
        *out = w;
    else
        dibsx_free(w);
    return rc;
}

/* *found: *out is a change to report. Locks: cl->mutex, let go meanwhile. */
static dibs_status look_leader(dibs_leader_watch *w, bool fetch,
                               dibs_leader *out, bool *found, dibs_error *err)
{
    dibs_client *cl = w->watcher.cl;
    dibs__watch *machine = &w->watcher.machine;
    dibsx_nsec sent_at = dibsx_now();
    dibs__value_head head;
    dibs__watch_news news;
    dibs_error failure = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = fetch ? read_with_members(cl, w->name, out, &failure)
               : read_leader(cl, w->name, out, &failure);
    pthread_mutex_lock(&cl->mutex);
    head = (dibs__value_head){.version = out->term, .expires_ms = out->left_ms};
    if (fetch)
        *found = dibs__watch_fetched(machine, sent_at, dibsx_now(), rc, &head,
                                     &news);
    else
        dibs__watch_looked(machine, sent_at, dibsx_now(),
                           rc == DIBS_NOTFOUND ? DIBS_OK : rc, &head);
    return dibs__watcher_note(&w->watcher, rc, &failure, err);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_change(dibs_leader_watch *w, dibsx_nsec deadline,
                                dibs_leader *out, dibs_error *err)
{
    bool found = false, fetch;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && !found) {
        rc = dibs__watcher_await(&w->watcher, deadline, &fetch, err);
        if (rc == DIBS_OK)
            rc = look_leader(w, fetch, out, &found, err);
    }
    return rc;
}

dibs_status dibs_leader_watch_next(dibs_leader_watch *w, int64_t wait_ms,
                                   dibs_leader *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc = dibs__watcher_begin((dibs__watcher *)(void *)w, err);

    if (rc == DIBS_OK) {
        rc = await_change(w, deadline, out, err);
        dibs__watcher_end(&w->watcher);
    }
    if (rc != DIBS_OK)
        *out = (dibs_leader){.term = 0};
    return rc;
}

void dibs_leader_watch_cancel(dibs_leader_watch *w)
{
    DIBSX_UNCANCEL;

    dibs__watcher_cancel((dibs__watcher *)(void *)w);
}

void dibs_leader_watch_free(dibs_leader_watch *w)
{
    DIBSX_UNCANCEL;

    dibs__watcher_free((dibs__watcher *)(void *)w);
}
