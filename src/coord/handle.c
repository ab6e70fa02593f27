/* handle.c - the handles of a client; see handle.h. Owns their list, and the handler of
 * their notices. */
/* SPDX-License-Identifier: MIT */
#include "coord/handle.h"
#include "base/alloc.h"
#include "core/attach.h"
#include "core/notices.h"
#include "core/reach.h"
#include <string.h>

typedef struct dibs__handles {
    dibs__attached attached; /* first, so that one is the other */
    dibs__notice_handler handler;
    dibs_client *cl;
    dibs__handle *first;
    size_t calls; /* under way */
} handles;

static handles *handles_of_handler(dibs__notice_handler *handler)
{
    return (handles *)(void *)((char *)handler - offsetof(handles, handler));
}

/* The next one that has the address, `at` included. */
static dibs__handle *find_address(dibs__handle *at, const char *address)
{
    while (at && (!at->topic[0] || strcmp(at->address, address) != 0))
        at = at->next;
    return at;
}

/* Thread: the keeper. */
static void hear_notice(dibs_client *cl, dibs__notice_handler *handler,
                        const dibs__notice *notice)
{
    dibs__handle *at = handles_of_handler(handler)->first;

    (void)cl;
    while ((at = find_address(at, notice->owner)) != NULL) {
        at->kind->hear(at, notice);
        at = at->next;
    }
}

/* Thread: the keeper. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    dibs__handle *at = handles_of_handler(handler)->first;

    (void)cl;
    for (; at; at = at->next) {
        at->ear = false;
        if (at->topic[0])
            at->kind->hear_missed(at);
    }
}

static void close_handles(dibs_client *cl, dibs__attached *at)
{
    handles *all = (handles *)(void *)at;

    for (dibs__handle *handle = all->first; handle; handle = handle->next)
        if (handle->kind->wake) {
            handle->waking = true;
            handle->kind->wake(handle);
            handle->waking = false;
            pthread_cond_broadcast(&cl->over);
        }
    while (all->calls > 0)
        pthread_cond_wait(&cl->over, &cl->mutex);
}

static void free_handles(dibs_client *cl, dibs__attached *at)
{
    (void)cl;
    dibsx_free(at);
}

/* NULL: the client has none yet. */
static handles *find_handles(const dibs_client *cl)
{
    dibs__attached *at = cl->attached;

    while (at && at->free != free_handles)
        at = at->next;
    return (handles *)(void *)at;
}

/* The handles of a client, made when first needed; NULL: no memory. */
static handles *handles_of(dibs_client *cl)
{
    handles *all = find_handles(cl);

    if (all || (all = dibsx_zalloc(sizeof(*all))) == NULL)
        return all;
    all->attached.close = close_handles;
    all->attached.free = free_handles;
    all->handler.hear = hear_notice;
    all->handler.hear_missed = hear_missed;
    all->cl = cl;
    dibs__attach(cl, &all->attached);
    dibs__notices_register(cl, &all->handler);
    return all;
}

dibs_status
dibs__handle_join(dibs_client *cl, dibs__handle *handle, dibs_error *err)
{
    handles *all = handles_of(cl);
    dibs_status rc = all ? DIBS_OK : dibsx_nomem(err, "%s", handle->kind->noun);

    if (rc == DIBS_OK && handle->kind->hear)
        rc = dibs__timer_ready(cl, err);
    if (rc != DIBS_OK)
        return rc;
    if (handle->topic[0])
        dibs__topic_address(handle->topic, handle->address);
    handle->all = all;
    handle->next = all->first;
    handle->at = &all->first;
    if (handle->next)
        handle->next->at = &handle->next;
    all->first = handle;
    cl->handle_count++;
    return DIBS_OK;
}

void dibs__handle_begin(dibs__handle *handle)
{
    handle->all->calls++;
}

void dibs__handle_end(dibs__handle *handle)
{
    handle->all->calls--;
    pthread_cond_broadcast(&handle->all->cl->over);
}

/* The handle is not in the list any more. */
static void give_up(dibs__handle *handle)
{
    dibs_client *cl = handle->all->cl;
    dibs__handle *at;

    dibs__handle_begin(handle);
    pthread_mutex_unlock(&cl->mutex);
    (void)cl->st->ops->topic->ear(cl->st, handle->topic, false,
                                  dibs__client_deadline(cl, dibsx_now()), NULL);
    pthread_mutex_lock(&cl->mutex);
    at = handle->all->first;
    while ((at = find_address(at, handle->address)) != NULL) {
        at->kind->hear_missed(at);
        at = at->next;
    }
    dibs__handle_end(handle);
}

bool dibs__handle_leave(dibs__handle *handle)
{
    dibs_client *cl = handle->all->cl;
    dibs__handle *other;

    while (handle->waking)
        pthread_cond_wait(&cl->over, &cl->mutex);
    *handle->at = handle->next;
    if (handle->next)
        handle->next->at = handle->at;
    if (handle->ear) {
        other = find_address(handle->all->first, handle->address);
        if (other)
            other->ear = true;
        else if (!atomic_load(&cl->closed))
            give_up(handle);
    }
    cl->handle_count--;
    return cl->ended && cl->handle_count == 0;
}

dibs_status
dibs__handle_listen(dibs__handle *handle, dibsx_nsec deadline, dibs_error *err)
{
    dibs_client *cl = handle->all->cl;
    const char *why = dibs__store_cannot(cl->st, DIBS__CAN_TOPIC);
    dibs_status rc;

    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK) {
        dibs__notices_listen(cl, cl->st, deadline);
        rc =
            cl->st->ops->topic->ear(cl->st, handle->topic, true, deadline, err);
    }
    pthread_mutex_lock(&cl->mutex);
    handle->ear = handle->ear || rc == DIBS_OK;
    return rc;
}

dibs__handle *
dibs__handle_next(const dibs__handle_kind *kind, const dibs_client *cl,
                  const dibs__handle *after)
{
    const handles *all = after ? after->all : find_handles(cl);
    dibs__handle *at = after ? after->next : all ? all->first : NULL;

    while (at && at->kind != kind)
        at = at->next;
    return at;
}
