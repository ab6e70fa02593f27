/* watch.c - watches of values: drives the machine of each in real time.
 *
 * A watch lives on the thread that waits for it: that thread listens, looks and
 * fetches. The keeper passes the tells of the store on. Watches of a client whose
 * looks are due together share one read of heads.
 *
 * Owns the list of a client's watches, attached to the client with the first one,
 * and the handler of their notices. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cond.h"
#include "base/uncancel.h"
#include "coord/watch_machine.h"
#include "core/attach.h"
#include "core/client.h"
#include "core/log.h"
#include "core/names.h"
#include "core/notices.h"
#include "core/reach.h"
#include <string.h>

/* A look that is due so soon goes along with another. */
enum { TOGETHER_MS = 250 };

struct dibs_watch {
    dibs_watch *next;
    dibs_client *cl;
    char key[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    char address[DIBS_OWNER_SIZE];
    dibs__watch machine;
    pthread_cond_t cond;
    bool waiting; /* a thread is in dibs_watch_next() */
    bool cancelled;
    bool deaf;          /* the store forbids it to listen; said once */
    bool away;          /* the last call to the store failed */
    dibs_error failure; /* of that */
};

typedef struct watches {
    dibs__attached attached; /* first, so that one is the other */
    dibs__notice_handler handler;
    dibs_watch *first;
} watches;

static watches *watches_of_handler(dibs__notice_handler *handler)
{
    return (watches *)(void *)((char *)handler - offsetof(watches, handler));
}

/* Thread: the keeper. */
static void hear_tell(dibs_client *cl, dibs__notice_handler *handler,
                      const dibs__notice *notice)
{
    (void)cl;
    if (notice->kind != DIBS__NOTICE_CHANGED)
        return;
    for (dibs_watch *w = watches_of_handler(handler)->first; w; w = w->next) {
        if (strcmp(w->address, notice->owner) != 0)
            continue;
        if (dibs__watch_told(&w->machine, notice->fence))
            pthread_cond_signal(&w->cond);
    }
}

/* Thread: the keeper. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    (void)cl;
    for (dibs_watch *w = watches_of_handler(handler)->first; w; w = w->next) {
        dibs__watch_missed(&w->machine);
        pthread_cond_signal(&w->cond);
    }
}

/* Every wait ends before the client does. */
static void close_watches(dibs_client *cl, dibs__attached *at)
{
    watches *all = (watches *)(void *)at;

    for (dibs_watch *w = all->first; w;) {
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

/* The watches of a client, made when first needed (`make`); NULL: none, or no
 * memory. Locks: cl->mutex. */
static watches *watches_of(dibs_client *cl, bool make)
{
    dibs__attached *at = cl->attached;
    watches *all;

    while (at && at->free != free_watches)
        at = at->next;
    if (at || !make)
        return (watches *)(void *)at;
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

static void topic_of(const dibs_watch *w, char out[DIBS__TOPIC_MAX])
{
    dibs__topic_of_value(w->key, out);
}

/* Adds the watch to its client. */
static dibs_status join_client(dibs_watch *w, dibs_error *err)
{
    dibs_client *cl = w->cl;
    dibs_status rc;
    watches *all;

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

dibs_status dibs_state_watch(dibs_client *cl, const char *key, dibs_watch **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    char topic[DIBS__TOPIC_MAX];
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;
    dibs_watch *w;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_TOPIC);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    w = dibsx_zalloc(sizeof(*w));
    if (!w)
        return dibsx_nomem(err, "a watch");
    w->cl = cl;
    rc = dibs__name_full(cl, key, w->key, err);
    if (rc != DIBS_OK || !dibsx_cond_init(&w->cond)) {
        dibsx_free(w);
        return rc != DIBS_OK ? rc : dibsx_nomem(err, "a watch");
    }
    topic_of(w, topic);
    dibs__topic_address(topic, w->address);
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

/* Notes how a call to the store ended. True when the wait goes on: the call worked,
 * or may work later. Locks: cl->mutex, let go for the log. */
static bool
note_outcome(dibs_watch *w, dibs_status rc, const dibs_error *failure)
{
    bool failed = rc != DIBS_OK && rc != DIBS_NOTFOUND;
    bool is_new = failed && !w->away;

    w->away = failed;
    if (!failed)
        return true;
    w->failure = *failure;
    if (is_new) {
        pthread_mutex_unlock(&w->cl->mutex);
        dibs__log(w->cl, DIBS_LOG_WARN, "watch",
                  "cannot read %s, and will try again: %s",
                  dibs__name_short(w->cl, w->key), failure->message);
        pthread_mutex_lock(&w->cl->mutex);
    }
    return rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN;
}

/* Locks: cl->mutex, let go meanwhile. */
static void listen_topic(dibs_watch *w)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    char topic[DIBS__TOPIC_MAX];
    dibs_error err = {0};
    dibs_status rc;

    topic_of(w, topic);
    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK) {
        dibs__notices_listen(cl, cl->st, deadline);
        rc = cl->st->ops->topic->ear(cl->st, topic, true, deadline, &err);
    }
    if (rc == DIBS_DENIED && !w->deaf)
        dibs__log(cl, DIBS_LOG_WARN, "watch",
                  "cannot listen to %s, so changes come later: %s",
                  dibs__name_short(cl, w->key), err.message);
    pthread_mutex_lock(&cl->mutex);
    w->deaf = rc == DIBS_DENIED;
    dibs__watch_eared(&w->machine, sent_at, dibsx_now(), rc);
}

/* The watch itself, and others of the client that look soon. Locks: cl->mutex. */
static size_t collect_watches(dibs_watch *w, dibsx_nsec now, dibs_watch *list[])
{
    watches *all = watches_of(w->cl, false);
    dibsx_nsec soon = dibsx_after_ms(now, TOGETHER_MS);
    size_t count = 0;

    list[count++] = w;
    for (dibs_watch *at = all->first; at && count < DIBS__HEADS_MAX;
         at = at->next)
        if (at != w && at->waiting && at->machine.look_at <= soon)
            list[count++] = at;
    return count;
}

/* One that was freed meanwhile is not in the list any more. Locks: cl->mutex. */
static dibs_watch *find_watch(dibs_client *cl, const dibs_watch *wanted)
{
    dibs_watch *at = watches_of(cl, false)->first;

    while (at && at != wanted)
        at = at->next;
    return at;
}

/* Reads the heads of all watches that look soon. Locks: cl->mutex, let go
 * meanwhile. */
static bool look_together(dibs_watch *w)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    char keys[DIBS__HEADS_MAX][DIBS_NAME_MAX + 1];
    const char *list[DIBS__HEADS_MAX];
    dibs_watch *members[DIBS__HEADS_MAX];
    dibs__value_head heads[DIBS__HEADS_MAX];
    size_t count = collect_watches(w, sent_at, members);
    dibs_error err = {0};
    dibs_status rc;

    for (size_t i = 0; i < count; i++) {
        memcpy(keys[i], members[i]->key, sizeof(keys[i]));
        list[i] = keys[i];
    }
    pthread_mutex_unlock(&cl->mutex);
    rc = cl->st->ops->value->heads(cl->st, list, count,
                                   dibs__client_deadline(cl, sent_at), heads,
                                   &err);
    pthread_mutex_lock(&cl->mutex);
    dibs__watch_looked(&w->machine, sent_at, dibsx_now(), rc, &heads[0]);
    for (size_t i = 1; i < count && rc == DIBS_OK; i++) {
        dibs_watch *at = find_watch(cl, members[i]);

        if (!at || strcmp(at->key, keys[i]) != 0)
            continue;
        dibs__watch_looked(&at->machine, sent_at, dibsx_now(), rc, &heads[i]);
        pthread_cond_signal(&at->cond);
    }
    return note_outcome(w, rc, &err);
}

/* *found: *out is a change to report. Locks: cl->mutex, let go meanwhile. */
static bool fetch_value(dibs_watch *w, dibs_change *out, bool *found)
{
    dibs_client *cl = w->cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    dibs__value_head head;
    dibs__watch_news news;
    dibs_error err = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->value->get(cl->st, w->key, deadline, &out->value,
                                     &err);
    pthread_mutex_lock(&cl->mutex);
    head = (dibs__value_head){.version = out->value.version,
                              .expires_ms = out->value.expires_ms};
    *found = dibs__watch_fetched(&w->machine, sent_at, dibsx_now(), rc, &head,
                                 &news);
    out->merged = news.merged;
    out->back = news.back;
    if (*found && rc == DIBS_NOTFOUND)
        out->value.expires_ms = -1;
    if (!*found)
        dibs_value_free(&out->value);
    return note_outcome(w, rc, &err);
}

static dibs_status fail_late(const dibs_watch *w, dibs_error *err)
{
    if (w->away)
        return dibsx_fail_at(err, w->failure.status, w->failure.origin, "%s",
                             w->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "%s did not change in time",
                      dibs__name_short(w->cl, w->key));
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_change(dibs_watch *w, dibsx_nsec deadline,
                                dibs_change *out, dibs_error *err)
{
    bool found = false, goes_on = true;

    while (goes_on && !found) {
        dibsx_nsec until, now = dibsx_now();

        if (w->cancelled || w->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        switch (dibs__watch_next(&w->machine, now, &until)) {
        case DIBS__WATCH_EAR:
            listen_topic(w);
            break;
        case DIBS__WATCH_LOOK:
            goes_on = look_together(w);
            break;
        case DIBS__WATCH_FETCH:
            goes_on = fetch_value(w, out, &found);
            break;
        case DIBS__WATCH_SLEEP:
            if (now >= deadline)
                return fail_late(w, err);
            dibsx_cond_wait(&w->cond, &w->cl->mutex,
                            until < deadline ? until : deadline);
            break;
        }
    }
    return found ? DIBS_OK : fail_late(w, err);
}

dibs_status dibs_watch_next(dibs_watch *w, int64_t wait_ms, dibs_change *out,
                            dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc;

    *out = (dibs_change){.merged = false};
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
    return rc;
}

void dibs_watch_cancel(dibs_watch *w)
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
static bool unlist_watch(dibs_watch *w)
{
    dibs_watch **at = &watches_of(w->cl, false)->first;
    bool last = w->machine.ear_until > 0;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    for (at = &watches_of(w->cl, false)->first; *at; at = &(*at)->next)
        last = last && strcmp((*at)->address, w->address) != 0;
    return last;
}

/* A watch that was made while another gave the topic up may not be heard. Locks:
 * cl->mutex. */
static void doubt_topic(dibs_client *cl, const char *address)
{
    for (dibs_watch *w = watches_of(cl, false)->first; w; w = w->next)
        if (strcmp(w->address, address) == 0) {
            dibs__watch_missed(&w->machine);
            pthread_cond_signal(&w->cond);
        }
}

void dibs_watch_free(dibs_watch *w)
{
    DIBSX_UNCANCEL;
    char topic[DIBS__TOPIC_MAX], address[DIBS_OWNER_SIZE];
    dibs_client *cl;
    bool ear, last;

    if (!w || dibs__forked(w->cl->fork_number))
        return;
    cl = w->cl;
    pthread_mutex_lock(&cl->mutex);
    ear = unlist_watch(w) && !atomic_load(&cl->closed);
    pthread_mutex_unlock(&cl->mutex);
    topic_of(w, topic);
    memcpy(address, w->address, sizeof(address));
    if (ear)
        (void)cl->st->ops->topic->ear(cl->st, topic, false,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      NULL);
    pthread_mutex_lock(&cl->mutex);
    if (ear)
        doubt_topic(cl, address);
    cl->handle_count--;
    last = cl->ended && cl->handle_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    pthread_cond_destroy(&w->cond);
    dibsx_free(w);
    if (last)
        dibs__client_free(cl);
}
