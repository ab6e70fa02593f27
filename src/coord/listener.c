/* listener.c - messages: for all that listen now, and kept by nobody.
 *
 * The keeper puts messages into the inbox of each listener. A thread of the caller takes
 * them out, and goes on listening meanwhile.
 *
 *   (1) What was lost is reported behind all that came before it, once, and only when the
 *       store is listened to again. From the loss to the report nothing is taken in.
 *   (2) An inbox that is full has lost the next message. So has a listener whose time at
 *       the store is over, and one whose notices were lost.
 *
 * Locks: cl->mutex guards all of it but `shown`, which is of the waiting thread. */
/* SPDX-License-Identifier: MIT */
#include "coord/listener.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fifo.h"
#include "base/uncancel.h"
#include "coord/handle.h"
#include "core/names.h"
#include "core/reach.h"
#include <string.h>

enum { INBOX_MESSAGES = 1024, INBOX_BYTES = 1 << 20 };
enum { AGAIN_MS = 10000, RETRY_MS = 1000 }; /* to the next ear */

_Static_assert(2 * AGAIN_MS < (int)DIBS__EAR_MS,
               "an ear lasts until the next but one");
_Static_assert((int)DIBS_MESSAGE_MAX == (int)DIBS__SAY_MAX, "of the contract");

typedef struct letter {
    dibsx_fifo_node node; /* first, so that one is the other */
    size_t len;
    char data[];
} letter;

struct dibs_listener {
    dibs__handle handle; /* first, so that one is the other */
    dibs_client *cl;
    char name[DIBS_NAME_MAX + 1]; /* with the client's prefix */
    pthread_cond_t cond;
    dibsx_fifo inbox;
    size_t bytes;
    letter *shown;
    bool lost;              /* messages, since the last one in the inbox */
    bool deaf;              /* the store may not be listened to */
    dibsx_nsec ear_at;      /* when it asks for the next ear */
    dibsx_nsec heard_until; /* the last ear lasts so long */
    uint64_t misses;
    bool waiting; /* a thread is in dibs_listener_next() */
    bool cancelled;
    dibs_error failure; /* of the last ear; its status is DIBS_OK after none */
};

static dibs_listener *listener_of(dibs__handle *handle)
{
    return (dibs_listener *)(void *)handle;
}

static void wake(dibs__handle *handle)
{
    pthread_cond_signal(&listener_of(handle)->cond);
}

/* Thread: the keeper, as of the next. */
static void hear_message(dibs__handle *handle, const dibs__notice *notice)
{
    dibs_listener *l = listener_of(handle);
    letter *in = NULL;

    if (notice->kind != DIBS__NOTICE_SAID || !notice->said || l->lost)
        return;
    if (l->inbox.count < INBOX_MESSAGES &&
        l->bytes + notice->said->len <= INBOX_BYTES)
        in = dibsx_zalloc(sizeof(*in) + notice->said->len);
    if (in) {
        in->len = notice->said->len;
        memcpy(in->data, notice->said->data, in->len);
        l->bytes += in->len;
        dibsx_fifo_push(&l->inbox, &in->node);
    }
    l->lost = !in;
    wake(handle);
}

static void hear_missed(dibs__handle *handle)
{
    dibs_listener *l = listener_of(handle);

    l->misses++;
    l->lost = l->deaf = true;
    l->ear_at = 0;
    wake(handle);
}

static const dibs__handle_kind kind = {.noun = "a listener",
                                       .wake = wake,
                                       .hear = hear_message,
                                       .hear_missed = hear_missed};

static dibs_status check_client(dibs_client *cl, dibs_error *err)
{
    dibs_status rc = dibs__client_usable(cl, err);
    const char *why =
        rc == DIBS_OK ? dibs__store_cannot(cl->st, DIBS__CAN_TOPIC) : NULL;

    return why ? dibsx_fail(err, DIBS_UNSUPPORTED, "%s", why) : rc;
}

dibs_status dibs_message_send(dibs_client *cl, const char *topic,
                              const void *data, size_t len, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char name[DIBS_NAME_MAX + 1], full[DIBS__TOPIC_MAX];
    dibs_status rc = check_client(cl, err);

    if (rc == DIBS_OK)
        rc = dibs__reach_usable(cl, err);
    if (rc == DIBS_OK)
        rc = dibs__name_full(cl, topic, name, err);
    if (rc == DIBS_OK && len > DIBS_MESSAGE_MAX)
        rc = dibsx_fail(err, DIBS_INVALID,
                        "a message has at most %d bytes; append an event, "
                        "which may have more",
                        DIBS_MESSAGE_MAX);
    if (rc != DIBS_OK)
        return rc;
    dibs__topic_of_messages(name, full);
    return cl->st->ops->topic->say(cl->st, full, data, len,
                                   dibs__client_deadline(cl, dibsx_now()), err);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status listen_topic(dibs_listener *l, dibs_error *err)
{
    dibsx_nsec sent_at = dibsx_now();
    uint64_t misses = l->misses;
    dibs_status rc =
        dibs__handle_listen(&l->handle, dibs__client_deadline(l->cl, sent_at),
                            err);

    if (rc != DIBS_OK) {
        l->ear_at = dibsx_after_ms(dibsx_now(), RETRY_MS);
        return rc;
    }
    if (l->misses == misses) {
        l->deaf = false;
        l->heard_until = dibsx_after_ms(sent_at, DIBS__EAR_MS);
        l->ear_at = dibsx_after_ms(sent_at, AGAIN_MS);
    }
    return rc;
}

static void drop_letters(dibs_listener *l)
{
    dibsx_fifo_node *node;

    dibsx_free(l->shown);
    while ((node = dibsx_fifo_pop(&l->inbox)) != NULL)
        dibsx_free(node);
}

/* Ends a listener that is in the list. */
static void leave(dibs_listener *l)
{
    dibs_client *cl = l->cl;
    bool last;

    pthread_mutex_lock(&cl->mutex);
    last = dibs__handle_leave(&l->handle);
    pthread_mutex_unlock(&cl->mutex);
    drop_letters(l);
    pthread_cond_destroy(&l->cond);
    dibsx_free(l);
    if (last)
        dibs__client_free(cl);
}

static dibs_status start_listener(dibs_listener *l, dibs_error *err)
{
    dibs_client *cl = l->cl;
    dibs_status rc;

    l->handle.kind = &kind;
    dibs__topic_of_messages(l->name, l->handle.topic);
    pthread_mutex_lock(&cl->mutex);
    rc = dibs__handle_join(cl, &l->handle, err);
    pthread_mutex_unlock(&cl->mutex);
    if (rc != DIBS_OK) {
        pthread_cond_destroy(&l->cond);
        dibsx_free(l);
        return rc;
    }
    pthread_mutex_lock(&cl->mutex);
    dibs__handle_begin(&l->handle);
    rc = listen_topic(l, err);
    dibs__handle_end(&l->handle);
    pthread_mutex_unlock(&cl->mutex);
    if (rc != DIBS_OK)
        leave(l);
    return rc;
}

dibs_status dibs_listener_new(dibs_client *cl, const char *topic,
                              dibs_listener **out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = check_client(cl, err);
    dibs_listener *l;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    l = dibsx_zalloc(sizeof(*l));
    if (!l)
        return dibsx_nomem(err, "a listener");
    l->cl = cl;
    rc = dibs__name_full(cl, topic, l->name, err);
    if (rc != DIBS_OK || !dibsx_cond_init(&l->cond)) {
        dibsx_free(l);
        return rc != DIBS_OK ? rc : dibsx_nomem(err, "a listener");
    }
    rc = start_listener(l, err);
    if (rc == DIBS_OK)
        *out = l;
    return rc;
}

/* The next message, or the report that some were lost. Locks: cl->mutex. */
static bool take_letter(dibs_listener *l, dibs_message *out)
{
    letter *in = (letter *)(void *)dibsx_fifo_pop(&l->inbox);

    dibsx_free(l->shown);
    l->shown = in;
    if (in) {
        l->bytes -= in->len;
        *out = (dibs_message){.data = in->data, .len = in->len};
        return true;
    }
    if (!l->lost || l->deaf)
        return false;
    l->lost = false;
    *out = (dibs_message){.missed = true};
    return true;
}

/* Listens again when it is time. DIBS_OK: the wait goes on. Locks: cl->mutex, let go
 * meanwhile. */
static dibs_status keep_listening(dibs_listener *l, dibs_error *err)
{
    dibsx_nsec now = dibsx_now();
    dibs_error failure = {0};
    dibs_status rc;

    if (now >= l->heard_until)
        l->lost = l->deaf = true;
    if (now < l->ear_at)
        return DIBS_OK;
    rc = listen_topic(l, &failure);
    l->failure = failure;
    if (rc == DIBS_OK || rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN)
        return DIBS_OK;
    return dibsx_fail_at(err, rc, failure.origin, "%s", failure.message);
}

static dibs_status fail_late(const dibs_listener *l, dibs_error *err)
{
    if (l->deaf && l->failure.status != DIBS_OK)
        return dibsx_fail_at(err, DIBS_UNAVAIL, l->failure.origin, "%s",
                             l->failure.message);
    return dibsx_fail(err, DIBS_TIMEOUT, "no message of %s came in time",
                      dibs__name_short(l->cl, l->name));
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status await_message(dibs_listener *l, dibsx_nsec deadline,
                                 dibs_message *out, dibs_error *err)
{
    for (;;) {
        dibs_status rc;

        if (l->cancelled || l->cl->closing)
            return dibsx_fail(err, DIBS_CANCELLED, "the wait was cancelled");
        rc = keep_listening(l, err);
        if (rc != DIBS_OK || take_letter(l, out))
            return rc;
        if (dibsx_now() >= deadline)
            return fail_late(l, err);
        if (dibsx_now() < l->ear_at)
            dibsx_cond_wait(&l->cond, &l->cl->mutex,
                            l->ear_at < deadline ? l->ear_at : deadline);
    }
}

dibs_status dibs_listener_next(dibs_listener *l, int64_t wait_ms,
                               dibs_message *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        wait_ms < 0 ? DIBSX_NEVER : dibsx_after_ms(dibsx_now(), wait_ms);
    dibs_status rc;

    *out = (dibs_message){0};
    if (!l)
        return dibsx_fail(err, DIBS_INVALID, "the listener is NULL");
    rc = dibs__client_usable(l->cl, err);
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&l->cl->mutex);
    if (l->waiting) {
        rc = dibsx_fail(err, DIBS_INVALID,
                        "another thread waits for this listener; make one for "
                        "each thread");
    } else {
        l->waiting = true;
        dibs__handle_begin(&l->handle);
        rc = await_message(l, deadline, out, err);
        l->waiting = false;
        if (rc == DIBS_CANCELLED) /* else it is for the next call */
            l->cancelled = false;
        dibs__handle_end(&l->handle);
    }
    pthread_mutex_unlock(&l->cl->mutex);
    return rc;
}

void dibs__listener_begin(dibs_listener *l)
{
    pthread_mutex_lock(&l->cl->mutex);
    dibs__handle_begin(&l->handle);
    pthread_mutex_unlock(&l->cl->mutex);
}

void dibs__listener_end(dibs_listener *l)
{
    pthread_mutex_lock(&l->cl->mutex);
    dibs__handle_end(&l->handle);
    pthread_mutex_unlock(&l->cl->mutex);
}

void dibs_listener_cancel(dibs_listener *l)
{
    DIBSX_UNCANCEL;

    if (!l || dibs__client_usable(l->cl, NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&l->cl->mutex);
    l->cancelled = true;
    pthread_cond_signal(&l->cond);
    pthread_mutex_unlock(&l->cl->mutex);
}

void dibs_listener_free(dibs_listener *l)
{
    DIBSX_UNCANCEL;

    if (!l || dibs__forked(l->cl->fork_number))
        return;
    leave(l);
}
