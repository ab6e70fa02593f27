/* watch.c - watches of values.
 *
 * Watches of a client whose looks are due together share one read of heads. Locks:
 * cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/uncancel.h"
#include "coord/watcher.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>

/* A look that is due so soon goes along with another. */
enum { TOGETHER_MS = 250 };

struct dibs_watch {
    dibs__watcher watcher;       /* first, so that one is the other */
    char key[DIBS_NAME_MAX + 1]; /* with the client's prefix */
};

static const dibs__handle_kind kind = DIBS__WATCHER_KIND;
static const dibs__watcher_words words = {"watch", "read", ""};

static dibs_watch *watch_of(dibs__handle *handle)
{
    return (dibs_watch *)(void *)handle;
}

static dibs_status
start_watch(dibs_client *cl, const char *key, dibs_watch *w, dibs_error *err)
{
    dibs_status rc = dibs__name_full(cl, key, w->key, err);

    if (rc != DIBS_OK)
        return rc;
    w->watcher.cl = cl;
    w->watcher.handle.kind = &kind;
    dibs__topic_of_value(w->key, w->watcher.handle.topic);
    w->watcher.words = &words;
    w->watcher.name = dibs__name_short(cl, w->key);
    return dibs__watcher_start(&w->watcher, err);
}

dibs_status dibs_state_watch(dibs_client *cl, const char *key, dibs_watch **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
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
    rc = start_watch(cl, key, w, err);
    if (rc == DIBS_OK)
        *out = w;
    else
        dibsx_free(w);
    return rc;
}

/* The watch itself, and others of the client that look soon. Locks: cl->mutex. */
static size_t collect_watches(dibs_watch *w, dibsx_nsec now, dibs_watch *list[])
{
    dibsx_nsec soon = dibsx_after_ms(now, TOGETHER_MS);
    const dibs_client *cl = w->watcher.cl;
    dibs__handle *at = NULL;
    size_t count = 0;

    list[count++] = w;
    while (count < DIBS__HEADS_MAX && (at = dibs__handle_next(&kind, cl, at))) {
        dibs_watch *other = watch_of(at);

        if (other != w && other->watcher.waiting &&
            other->watcher.machine.look_at <= soon)
            list[count++] = other;
    }
    return count;
}

/* One that was freed meanwhile is not in the list any more. Locks: cl->mutex. */
static dibs_watch *find_watch(dibs_client *cl, const dibs_watch *wanted)
{
    dibs__handle *at = dibs__handle_next(&kind, cl, NULL);

    while (at && watch_of(at) != wanted)
        at = dibs__handle_next(&kind, cl, at);
    return watch_of(at);
}

/* Reads the heads of all watches that look soon. Locks: cl->mutex, let go
 * meanwhile. */
static dibs_status look_together(dibs_watch *w, dibs_error *err)
{
    dibs_client *cl = w->watcher.cl;
    dibsx_nsec sent_at = dibsx_now();
    char keys[DIBS__HEADS_MAX][DIBS_NAME_MAX + 1];
    const char *list[DIBS__HEADS_MAX];
    dibs_watch *members[DIBS__HEADS_MAX];
    dibs__value_head heads[DIBS__HEADS_MAX];
    size_t count = collect_watches(w, sent_at, members);
    dibs_error failure = {0};
    dibs_status rc;

    for (size_t i = 0; i < count; i++) {
        memcpy(keys[i], members[i]->key, sizeof(keys[i]));
        list[i] = keys[i];
    }
    pthread_mutex_unlock(&cl->mutex);
    rc = cl->st->ops->value->heads(cl->st, list, count,
                                   dibs__client_deadline(cl, sent_at), heads,
                                   &failure);
    pthread_mutex_lock(&cl->mutex);
    for (size_t i = 1; i < count && rc == DIBS_OK; i++) {
        /* One that was not read looks by itself. */
        dibs_watch *at =
            heads[i].rc == DIBS_OK ? find_watch(cl, members[i]) : NULL;

        if (!at || strcmp(at->key, keys[i]) != 0)
            continue;
        dibs__watch_looked(&at->watcher.machine, sent_at, dibsx_now(), DIBS_OK,
                           &heads[i]);
        dibs__watcher_wake(&at->watcher.handle);
    }
    if (rc == DIBS_OK)
        rc = heads[0].rc;
    dibs__watch_looked(&w->watcher.machine, sent_at, dibsx_now(), rc,
                       &heads[0]);
    return dibs__watcher_note(&w->watcher, rc, &failure, err);
}

/* *found: *out is a change to report. Locks: cl->mutex, let go meanwhile. */
static dibs_status
fetch_value(dibs_watch *w, dibs_change *out, bool *found, dibs_error *err)
{
    dibs_client *cl = w->watcher.cl;
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    dibs__value_head head;
    dibs__watch_news news;
    dibs_error failure = {0};
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, &failure);
    if (rc == DIBS_OK)
        rc = cl->st->ops->value->get(cl->st, w->key, deadline, &out->value,
                                     &failure);
    pthread_mutex_lock(&cl->mutex);
    head = (dibs__value_head){.version = out->value.version,
                              .expires_ms = out->value.expires_ms};
    *found = dibs__watch_fetched(&w->watcher.machine, sent_at, dibsx_now(), rc,
                                 &head, &news);
    out->merged = news.merged;
    out->back = news.back;
    if (*found && rc == DIBS_NOTFOUND)
        out->value.expires_ms = -1;
    if (!*found)
        dibs_value_free(&out->value);
    return dibs__watcher_note(&w->watcher, rc, &failure, err);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_change(dibs_watch *w, dibsx_nsec deadline,
                                dibs_change *out, dibs_error *err)
{
    bool found = false, fetch;
    dibs_status rc = DIBS_OK;

    while (rc == DIBS_OK && !found) {
        rc = dibs__watcher_await(&w->watcher, deadline, &fetch, err);
        if (rc == DIBS_OK)
            rc = fetch ? fetch_value(w, out, &found, err)
                       : look_together(w, err);
    }
    return rc;
}

dibs_status dibs_watch_next(dibs_watch *w, int64_t wait_ms, dibs_change *out,
                            dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc = dibs__watcher_begin((dibs__watcher *)(void *)w, err);

    *out = (dibs_change){.merged = false};
    if (rc != DIBS_OK)
        return rc;
    rc = await_change(w, deadline, out, err);
    dibs__watcher_end(&w->watcher);
    return rc;
}

void dibs_watch_cancel(dibs_watch *w)
{
    DIBSX_UNCANCEL;

    dibs__watcher_cancel((dibs__watcher *)(void *)w);
}

void dibs_watch_free(dibs_watch *w)
{
    DIBSX_UNCANCEL;

    dibs__watcher_free((dibs__watcher *)(void *)w);
}
