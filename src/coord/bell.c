/* bell.c - bells: names that commits ring.
 *
 * The topic of a bell is that of a value of its name, which need not exist. The keeper
 * passes the tells of the store on; a thread of the caller listens. Locks: cl->mutex
 * guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/event.h"
#include "base/uncancel.h"
#include "coord/handle.h"
#include "core/names.h"
#include <dibs/state.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

_Static_assert(2 * DIBS_BELL_LISTEN_MS <= (int)DIBS__EAR_MS,
               "an ear lasts until the next but one");

struct dibs_bell {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    int fd;
    bool missed;
};

static dibs_bell *bell_of(dibs__handle *handle)
{
    return (dibs_bell *)(void *)handle;
}

/* Thread: the keeper, as of the next. */
static void hear_ring(dibs__handle *handle, const dibs__notice *notice)
{
    (void)notice;
    dibsx_event_set(bell_of(handle)->fd);
}

static void hear_missed(dibs__handle *handle)
{
    bell_of(handle)->missed = true;
    dibsx_event_set(bell_of(handle)->fd);
}

static const dibs__handle_kind kind = {.noun = "a bell",
                                       .hear = hear_ring,
                                       .hear_missed = hear_missed};

static dibs_status
start_bell(dibs_bell *bell, const char *name, dibs_error *err)
{
    char full[DIBS_NAME_MAX + 1];
    dibs_status rc = dibs__name_full(bell->cl, name, full, err);

    if (rc != DIBS_OK)
        return rc;
    bell->handle.kind = &kind;
    dibs__topic_of_value(full, bell->handle.topic);
    bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell->fd < 0)
        return dibsx_fail(err, DIBS_INTERNAL, "cannot make an eventfd: %s",
                          strerror(errno));
    pthread_mutex_lock(&bell->cl->mutex);
    rc = dibs__handle_join(bell->cl, &bell->handle, err);
    pthread_mutex_unlock(&bell->cl->mutex);
    if (rc != DIBS_OK)
        close(bell->fd);
    return rc;
}

dibs_status dibs_bell_new(dibs_client *cl, const char *name, dibs_bell **out,
                          dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why;
    dibs_bell *bell;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    why = dibs__store_cannot(cl->st, DIBS__CAN_TOPIC);
    if (why)
        return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why);
    bell = dibsx_zalloc(sizeof(*bell));
    if (!bell)
        return dibsx_nomem(err, "a bell");
    bell->cl = cl;
    rc = start_bell(bell, name, err);
    if (rc == DIBS_OK)
        *out = bell;
    else
        dibsx_free(bell);
    return rc;
}

dibs_status dibs_bell_listen(dibs_bell *bell, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    dibs_status rc;

    if (!bell)
        return dibsx_fail(err, DIBS_INVALID, "the bell is NULL");
    cl = bell->cl;
    rc = dibs__client_usable(cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&cl->mutex);
    dibs__handle_begin(&bell->handle);
    rc = dibs__handle_listen(&bell->handle,
                             dibs__client_deadline(cl, dibsx_now()), err);
    dibs__handle_end(&bell->handle);
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

int dibs_bell_fd(const dibs_bell *bell)
{
    return bell ? bell->fd : -1;
}

bool dibs_bell_clear(dibs_bell *bell)
{
    DIBSX_UNCANCEL;
    bool missed;

    if (!bell || dibs__client_usable(bell->cl, NULL) != DIBS_OK)
        return false;
    pthread_mutex_lock(&bell->cl->mutex);
    dibsx_event_clear(bell->fd);
    missed = bell->missed;
    bell->missed = false;
    pthread_mutex_unlock(&bell->cl->mutex);
    return missed;
}

void dibs_bell_free(dibs_bell *bell)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!bell || dibs__forked(bell->cl->fork_number))
        return;
    cl = bell->cl;
    pthread_mutex_lock(&cl->mutex);
    last = dibs__handle_leave(&bell->handle);
    pthread_mutex_unlock(&cl->mutex);
    close(bell->fd);
    dibsx_free(bell);
    if (last)
        dibs__client_free(cl);
}
