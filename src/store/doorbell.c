/* doorbell.c - the part that the doorbells of all servers share.
 *
 * Owns the descriptors and the notices that the core has not read yet. Any
 * thread. */
/* SPDX-License-Identifier: MIT */
#include "store/doorbell.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/event.h"
#include "base/fail.h"
#include "base/rand.h"
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { OPEN_MS = 1000 };

void dibs__doorbell_init(dibs__doorbell *doorbell)
{
    memset(doorbell, 0, sizeof(*doorbell));
    doorbell->notice_fd = doorbell->stop_fd = -1;
    pthread_mutex_init(&doorbell->mutex, NULL);
    (void)dibsx_cond_init(&doorbell->cond);
    atomic_init(&doorbell->open, false);
    atomic_init(&doorbell->stopping, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void free_parts(dibs__doorbell *doorbell)
{
    fd_close(&doorbell->notice_fd);
    fd_close(&doorbell->stop_fd);
    for (size_t i = 0; i < doorbell->count; i++)
        dibs__notice_drop(
            &doorbell->notices[(doorbell->first + i) % DIBS__DOORBELL_NOTICES]);
    doorbell->count = 0;
    dibsx_free(doorbell->notices);
    doorbell->notices = NULL;
}

void dibs__doorbell_stop(dibs__doorbell *doorbell)
{
    atomic_store(&doorbell->stopping, true);
    if (doorbell->open)
        dibsx_event_set(doorbell->stop_fd);
}

void dibs__doorbell_fini(dibs__doorbell *doorbell)
{
    free_parts(doorbell);
    pthread_cond_destroy(&doorbell->cond);
    pthread_mutex_destroy(&doorbell->mutex);
}

void dibs__doorbell_tap(dibs__doorbell *doorbell, dibs__notice_tap *tap,
                        void *arg)
{
    pthread_mutex_lock(&doorbell->mutex);
    if (!doorbell->open) {
        doorbell->tap = tap;
        doorbell->tap_arg = arg;
    }
    pthread_mutex_unlock(&doorbell->mutex);
}

void dibs__doorbell_put(dibs__doorbell *doorbell, const dibs__notice *notice)
{
    if (doorbell->tap && doorbell->tap(doorbell->tap_arg, notice))
        return;
    pthread_mutex_lock(&doorbell->mutex);
    if (doorbell->count < DIBS__DOORBELL_NOTICES) {
        doorbell->notices[(doorbell->first + doorbell->count) %
                          DIBS__DOORBELL_NOTICES] = *notice;
        if (doorbell->count++ == 0)
            dibsx_event_set(doorbell->notice_fd);
    } else {
        /* The last one gives way to the news that notices were lost. */
        dibs__notice *last =
            &doorbell->notices[(doorbell->first + doorbell->count - 1) %
                               DIBS__DOORBELL_NOTICES];
        dibs__notice lost = *notice;

        dibs__notice_drop(&lost);
        dibs__notice_drop(last);
        *last = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
    }
    pthread_mutex_unlock(&doorbell->mutex);
}

void dibs__doorbell_missed(dibs__doorbell *doorbell)
{
    dibs__doorbell_put(doorbell, &(dibs__notice){.kind = DIBS__NOTICE_MISSED});
}

void dibs__doorbell_report(dibs__doorbell *doorbell, const dibs_error *failure)
{
    bool missed;

    pthread_mutex_lock(&doorbell->mutex);
    /* An attempt has worked before, or has failed, so that waits began without a
     * doorbell. */
    missed =
        !failure && (doorbell->listened || doorbell->failure.status != DIBS_OK);
    if (failure)
        doorbell->failure = *failure;
    else
        doorbell->listened = true;
    pthread_cond_broadcast(&doorbell->cond);
    pthread_mutex_unlock(&doorbell->mutex);
    if (missed)
        dibs__doorbell_missed(doorbell);
}

bool dibs__doorbell_stopping(const dibs__doorbell *doorbell)
{
    return atomic_load(&doorbell->stopping);
}

bool dibs__doorbell_rest(const dibs__doorbell *doorbell, dibsx_nsec until)
{
    struct pollfd stop = {.fd = doorbell->stop_fd, .events = POLLIN};
    int64_t span_ms = dibsx_wait_ms(until, dibsx_now());

    (void)poll(&stop, 1, (int)span_ms);
    return dibs__doorbell_stopping(doorbell);
}

static dibs_status open_failed(int number, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(number),
                         "no doorbell can be opened, so waits are polled (%s)",
                         dibsx_errno_name(number));
}

/* Locks: doorbell->mutex. */
static dibs_status
start_listening(dibs__doorbell *doorbell, int (*start)(void *arg), void *arg,
                dibs_error *err)
{
    unsigned char id[(DIBS__DOORBELL_ADDRESS - 1) / 2];
    int failed;

    doorbell->notices =
        dibsx_zalloc_n(DIBS__DOORBELL_NOTICES, sizeof(*doorbell->notices));
    if (!doorbell->notices)
        return dibsx_nomem(err, "room for notices");
    doorbell->notice_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    doorbell->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (doorbell->notice_fd < 0 || doorbell->stop_fd < 0 ||
        !dibsx_random(id, sizeof(id)))
        return open_failed(errno, err);
    dibsx_hex(id, sizeof(id), doorbell->address);
    failed = start(arg);
    return failed ? open_failed(failed, err) : DIBS_OK;
}

/* Locks: doorbell->mutex, let go while waiting. */
static void await_outcome(dibs__doorbell *doorbell, dibsx_nsec deadline)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), OPEN_MS);

    if (limit > deadline)
        limit = deadline;
    while (!doorbell->listened && doorbell->failure.status == DIBS_OK &&
           dibsx_now() < limit)
        dibsx_cond_wait(&doorbell->cond, &doorbell->mutex, limit);
}

dibs_status
dibs__doorbell_open(dibs__doorbell *doorbell, int (*start)(void *arg),
                    void *arg, dibsx_nsec deadline, int *fd, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&doorbell->mutex);
    if (!doorbell->open) {
        rc = start_listening(doorbell, start, arg, err);
        doorbell->open = rc == DIBS_OK;
        if (rc != DIBS_OK)
            free_parts(doorbell);
    }
    if (rc == DIBS_OK)
        await_outcome(doorbell, deadline);
    if (rc == DIBS_OK && !doorbell->listened)
        rc = dibsx_fail_at(err, DIBS_UNAVAIL, doorbell->failure.origin,
                           "no doorbell yet, so waits are polled: %s",
                           doorbell->failure.message[0]
                               ? doorbell->failure.message
                               : "the server takes its time");
    *fd = doorbell->notice_fd;
    pthread_mutex_unlock(&doorbell->mutex);
    return rc;
}

size_t
dibs__doorbell_read(dibs__doorbell *doorbell, dibs__notice *notices, size_t max)
{
    size_t count;

    if (!doorbell->open)
        return 0;
    pthread_mutex_lock(&doorbell->mutex);
    for (count = 0; count < max && doorbell->count > 0; count++) {
        notices[count] = doorbell->notices[doorbell->first];
        doorbell->first = (doorbell->first + 1) % DIBS__DOORBELL_NOTICES;
        if (--doorbell->count == 0)
            dibsx_event_clear(doorbell->notice_fd);
    }
    pthread_mutex_unlock(&doorbell->mutex);
    return count;
}
