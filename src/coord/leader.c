/* leader.c - who leads an election: looks, and watches in real time.
 *
 * A leader is the holder of the lease, and its term is the version that the machine of
 * a watch compares (watch_machine.h). Leaders tell the topic of the value
 * "dibs.leader/NAME", which does not exist, when a term begins and ends; that only
 * makes a watch look sooner.
 *
 * Owns the list of a client's watches of leaders, attached to the client with the
 * first one, and the handler of their notices. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/uncancel.h"
#include "coord/election.h"
#include "coord/watch_machine.h"
#include "core/attach.h"
#include "core/client.h"
#include "core/log.h"
#include "core/names.h"
#include "core/notices.h"
#include "core/reach.h"
#include "core/worker.h"
#include <dibs/monitor.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct dibs_leader_watch {
    dibs_leader_watch *next;
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1];
    char topic[DIBS__TOPIC_MAX];
    char address[DIBS_OWNER_SIZE];
    dibs__watch machine;
    pthread_cond_t cond;
    bool waiting; /* a thread is in dibs_leader_watch_next() */
    bool cancelled;
    bool away;          /* the last look failed */
    dibs_error failure; /* of that */
};

typedef struct leader_watches {
    dibs__attached attached; /* first, so that one is the other */
    dibs__notice_handler handler;
    dibs_leader_watch *first;
} leader_watches;

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

/* The member is the first of the metadata; a plain lock has none. */
static void read_holder(const dibs_party *holder, dibs_leader *out)
{
    static const char key[] = "member=";
    const char *meta = holder->meta;
    size_t len;

    out->pid = holder->pid;
    out->term = holder->fence;
    out->age_ms = holder->age_ms;
    out->left_ms = holder->left_ms;
    copy_text(out->host, sizeof(out->host), holder->host);
    snprintf(out->member, sizeof(out->member), "%.40s:%" PRId64, holder->host,
             holder->pid);
    if (strncmp(meta, key, sizeof(key) - 1) == 0) {
        meta += sizeof(key) - 1;
        len = strcspn(meta, "\t");
        if (len < sizeof(out->member)) {
            memcpy(out->member, meta, len);
            out->member[len] = '\0';
        }
        meta += len + (meta[len] == '\t' ? 1 : 0);
    }
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

static leader_watches *watches_of_handler(dibs__notice_handler *handler)
{
    return (leader_watches *)(void *)((char *)handler -
                                      offsetof(leader_watches, handler));
}

/* Thread: the keeper. */
static void hear_tell(dibs_client *cl, dibs__notice_handler *handler,
                      const dibs__notice *notice)
{
    dibs_leader_watch *w = watches_of_handler(handler)->first;

    (void)cl;
    if (notice->kind != DIBS__NOTICE_CHANGED)
        return;
    for (; w; w = w->next) {
        if (strcmp(w->address, notice->owner) != 0)
            continue;
        if (dibs__watch_told(&w->machine, notice->fence))
            pthread_cond_signal(&w->cond);
    }
}

/* Thread: the keeper. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs_leader_watch *w = watches_of_handler(handler)->first;

    (void)cl;
    for (; w; w = w->next) {
        dibs__watch_missed(&w->machine);
        pthread_cond_signal(&w->cond);
    }
}

/* Every wait ends before the client does. */
static void close_watches(dibs_client *cl, dibs__attached *at)
{
    leader_watches *all = (leader_watches *)(void *)at;

    for (dibs_leader_watch *w = all->first; w;) {
        pthread_cond_signal(&w->cond);
        if (w->waiting) {
            pthread_cond_wait(&cl->over, &cl->mutex);
            w = all->first;
        } else {
            w = w->next;
        }
    }
}

static void free_watches(dibs_client *cl, dibs__attached *at)
{
    (void)cl;
    dibsx_free(at);
}

/* The watches of a client, made when first needed (`make`); NULL: none, or no memory.
 * Locks: cl->mutex. */
static leader_watches *watches_of(dibs_client *cl, bool make)
{
    dibs__attached *at = cl->attached;
    leader_watches *all;

    while (at && at->free != free_watches)
        at = at->next;
    if (at || !make)
        return (leader_watches *)(void *)at;
    all = dibsx_zalloc(sizeof(*all));
    if (!all)
        return NULL;
    all->attached.close = close_watches;
    all->attached.free = free_watches;
    all->handler.hear = hear_tell;
    all->handler.hear_missed = hear_missed;
    dibs__attach(cl, &all->attached);
    dibs__notices_register(cl, &all->handler);
    return all;
}

static dibs_status join_client(dibs_leader_watch *w, dibs_error *err)
{
    dibs_client *cl = w->cl;
    leader_watches *all;
    dibs_status rc;

    pthread_mutex_lock(&cl->mutex);
    all = watches_of(cl, true);
    rc = all ? dibs__timer_ready(cl, err) : dibsx_nomem(err, "a watch");
    if (rc == DIBS_OK) {
        w->next = all->first;
        all->first = w;
        cl->handle_count++;
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
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
    w->cl = cl;
    rc = topic_of(cl, name, w->topic, err);
    if (rc != DIBS_OK || !dibsx_cond_init(&w->cond)) {
        dibsx_free(w);
        return rc != DIBS_OK ? rc : dibsx_nomem(err, "a watch");
    }
    copy_text(w->name, sizeof(w->name), name);
    dibs__topic_address(w->topic, w->address);
    dibs__watch_init(&w->machine);
    rc = join_client(w, err);
    if (rc == DIBS_OK) {
        *out = w;
        return DIBS_OK;
    }
    pthread_cond_destroy(&w->cond);
    dibsx_free(w);
    return rc;
}

/* Notes how a look ended. True when the wait goes on. Locks: cl->mutex, let go for the
 * log. */
static bool
note_outcome(dibs_leader_watch *w, dibs_status rc, const dibs_error *failure)
{
    bool failed = rc != DIBS_OK && rc != DIBS_NOTFOUND;
    bool is_new = failed && !w->away;

    w->away = failed;
    if (!failed)
        return true;
    w->failure = *failure;
    if (is_new) {
        pthread_mutex_unlock(&w->cl->mutex);
        dibs__log(w->cl, DIBS_LOG_WARN, "elect",
                  "cannot see who leads %s, and will try again: %s", w->name,
                  failure->message);
        pthread_mutex_lock(&w->cl->mutex);
    }
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs_leader_watch *w)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    dibs_status rc = DIBS_UNSUPPORTED;

    pthread_mutex_unlock(&cl->mutex);
    if (!dibs__store_cannot(cl->st, DIBS__CAN_TOPIC))
        rc = dibs__reach_store(cl, deadline, NULL);
    if (rc == DIBS_OK) {
        dibs__notices_listen(cl, cl->st, deadline);
        rc = cl->st->ops->topic->ear(cl->st, w->topic, true, deadline, NULL);
    }
    pthread_mutex_lock(&cl->mutex);
    dibs__watch_eared(&w->machine, sent_at, dibsx_now(), rc);
}

/* *found: *out is a change to report. Locks: cl->mutex, let go meanwhile. */
static bool
look_leader(dibs_leader_watch *w, bool fetch, dibs_leader *out, bool *found)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibs__value_head head;
    dibs__watch_news news;
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = fetch ? read_with_members(cl, w->name, out, &err)
               : read_leader(cl, w->name, out, &err);
    pthread_mutex_lock(&cl->mutex);
    head = (dibs__value_head){.version = out->term, .expires_ms = out->left_ms};
    if (fetch)
        *found = dibs__watch_fetched(&w->machine, sent_at, dibsx_now(), rc,
                                     &head, &news);
    else
        dibs__watch_looked(&w->machine, sent_at, dibsx_now(),
                           rc == DIBS_NOTFOUND ? DIBS_OK : rc, &head);
    return note_outcome(w, rc, &err);
}

static dibs_status fail_late(const dibs_leader_watch *w, dibs_error *err)
{
    if (w->away)
        return dibsx_fail_at(err, w->failure.status, w->failure.origin, "%s",
                             w->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT,
                      "the leader of %s did not change in "
                      "time",
                      w->name);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_change(dibs_leader_watch *w, dibsx_nsec deadline,
                                dibs_leader *out, dibs_error *err)
{
    bool found = false, goes_on = true;

    while (goes_on && !found) {
        dibsx_nsec until, now = dibsx_now();
        dibs__watch_todo todo;

        if (w->cancelled || w->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        todo = dibs__watch_next(&w->machine, now, &until);
        if (todo == DIBS__WATCH_EAR) {
            listen_topic(w);
        } else if (todo != DIBS__WATCH_SLEEP) {
            goes_on = look_leader(w, todo == DIBS__WATCH_FETCH, out, &found);
        } else if (now >= deadline) {
            return fail_late(w, err);
        } else {
            dibsx_cond_wait(&w->cond, &w->cl->mutex,
                            until < deadline ? until : deadline);
        }
    }
    return found ? DIBS_OK : fail_late(w, err);
}

dibs_status dibs_leader_watch_next(dibs_leader_watch *w, int64_t wait_ms,
                                   dibs_leader *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc;

    *out = (dibs_leader){.term = 0};
    if (!w)
        return dibsx_fail(err, DIBS_INVALID, "the watch is NULL");
    rc = dibs__client_usable(w->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&w->cl->mutex);
    if (w->waiting) {
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another thread waits for this watch; make one for "
                        "each thread");
    } else {
        w->waiting = true;
        w->cancelled = false;
        rc = await_change(w, deadline, out, err);
        w->waiting = false;
        pthread_cond_broadcast(&w->cl->over);
    }
    pthread_mutex_unlock(&w->cl->mutex);
    if (rc != DIBS_OK)
        *out = (dibs_leader){.term = 0};
    return rc;
}

void dibs_leader_watch_cancel(dibs_leader_watch *w)
{
    DIBSX_UNCANCEL;

    if (!w || dibs__client_usable(w->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&w->cl->mutex);
    w->cancelled = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->cl->mutex);
}

/* Takes the watch out of the list. True when it was the last that listened to its
 * topic. Locks: cl->mutex. */
static bool unlist_watch(dibs_leader_watch *w)
{
    dibs_leader_watch **at = &watches_of(w->cl, false)->first;
    bool last = w->machine.ear_until > 0;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    for (at = &watches_of(w->cl, false)->first; *at; at = &(*at)->next)
        last = last && strcmp((*at)->address, w->address) != 0;
    return last;
}

void dibs_leader_watch_free(dibs_leader_watch *w)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool ear, last;

    if (!w || dibs__forked(w->cl->fork_number))
        return;
    cl = w->cl;
    pthread_mutex_lock(&cl->mutex);
    ear = unlist_watch(w) && !atomic_load(&cl->closed);
    pthread_mutex_unlock(&cl->mutex);
    if (ear)
        (void)cl->st->ops->topic->ear(cl->st, w->topic, false,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      NULL);
    pthread_mutex_lock(&cl->mutex);
    /* One that was made meanwhile may not be heard. */
    if (ear)
        hear_missed(cl, &watches_of(cl, false)->handler);
    cl->handle_count--;
    last = cl->ended && cl->handle_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&w->cond);
    dibsx_free(w);
    if (last)
        dibs__client_free(cl);
}
