/* doorbell.c - what the doorbells of servers have in common.
 *
 * Owns the descriptors and the rings that wait to be heard. Any thread. */
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

void dibs__doorbell_init(dibs__doorbell *ln)
{
    memset(ln, 0, sizeof(*ln));
    ln->ring_fd = ln->stop_fd = -1;
    pthread_mutex_init(&ln->mutex, NULL);
    (void)dibsx_cond_init(&ln->cond);
    atomic_init(&ln->open, false);
}

static void fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void free_parts(dibs__doorbell *ln)
{
    fd_close(&ln->ring_fd);
    fd_close(&ln->stop_fd);
    dibsx_free(ln->rings);
    ln->rings = NULL;
}

void dibs__doorbell_stop(dibs__doorbell *ln)
{
    if (ln->open)
        dibsx_event_set(ln->stop_fd);
}

void dibs__doorbell_fini(dibs__doorbell *ln)
{
    free_parts(ln);
    pthread_cond_destroy(&ln->cond);
    pthread_mutex_destroy(&ln->mutex);
}

void dibs__doorbell_put(dibs__doorbell *ln, const dibs__notice *ring)
{
    pthread_mutex_lock(&ln->mutex);
    if (ln->count < DIBS__DOORBELL_NOTICES) {
        ln->rings[(ln->first + ln->count) % DIBS__DOORBELL_NOTICES] = *ring;
        if (ln->count++ == 0)
            dibsx_event_set(ln->ring_fd);
    }
    pthread_mutex_unlock(&ln->mutex);
}

void dibs__doorbell_missed(dibs__doorbell *ln)
{
    dibs__doorbell_put(ln, &(dibs__notice){.kind = DIBS__NOTICE_MISSED});
}

void dibs__doorbell_report(dibs__doorbell *ln, const dibs_error *failure)
{
    bool missed;

    pthread_mutex_lock(&ln->mutex);
    /* One had worked before, or failed so that waits began without a doorbell. */
    missed = !failure && (ln->heeded || ln->failure.status != DIBS_OK);
    if (failure)
        ln->failure = *failure;
    else
        ln->heeded = true;
    pthread_cond_broadcast(&ln->cond);
    pthread_mutex_unlock(&ln->mutex);
    if (missed)
        dibs__doorbell_missed(ln);
}

bool dibs__doorbell_rest(const dibs__doorbell *ln, dibsx_nsec until)
{
    struct pollfd stop = {.fd = ln->stop_fd, .events = POLLIN};
    int64_t span_ms = dibsx_wait_ms(until, dibsx_now());

    return poll(&stop, 1, (int)span_ms) > 0;
}

static dibs_status open_failed(int number, dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNAVAIL, dibsx_errno_name(number),
                         "no doorbell can be opened, so waits are polled (%s)",
                         dibsx_errno_name(number));
}

/* Locks: ln->mutex. */
static dibs_status start_listening(dibs__doorbell *ln, int (*start)(void *arg),
                                   void *arg, dibs_error *err)
{
    unsigned char id[(DIBS__DOORBELL_ADDRESS - 1) / 2];
    int failed;

    ln->rings = dibsx_zalloc_n(DIBS__DOORBELL_NOTICES, sizeof(*ln->rings));
    if (!ln->rings)
        return dibsx_nomem(err, "room for rings");
    ln->ring_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ln->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ln->ring_fd < 0 || ln->stop_fd < 0 || !dibsx_random(id, sizeof(id)))
        return open_failed(errno, err);
    dibsx_hex(id, sizeof(id), ln->address);
    failed = start(arg);
    return failed ? open_failed(failed, err) : DIBS_OK;
}

/* Locks: ln->mutex, let go while waiting. */
static void await_outcome(dibs__doorbell *ln, dibsx_nsec deadline)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), OPEN_MS);

    if (limit > deadline)
        limit = deadline;
    while (!ln->heeded && ln->failure.status == DIBS_OK && dibsx_now() < limit)
        dibsx_cond_wait(&ln->cond, &ln->mutex, limit);
}

dibs_status
dibs__doorbell_open(dibs__doorbell *ln, int (*start)(void *arg), void *arg,
                    dibsx_nsec deadline, int *fd, dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&ln->mutex);
    if (!ln->open) {
        rc = start_listening(ln, start, arg, err);
        ln->open = rc == DIBS_OK;
        if (rc != DIBS_OK)
            free_parts(ln);
    }
    if (rc == DIBS_OK)
        await_outcome(ln, deadline);
    if (rc == DIBS_OK && !ln->heeded)
        rc =
            dibsx_fail_at(err, DIBS_UNAVAIL, ln->failure.origin,
                          "no doorbell yet, so waits are polled: %s",
                          ln->failure.message[0] ? ln->failure.message
                                                 : "the server takes its time");
    *fd = ln->ring_fd;
    pthread_mutex_unlock(&ln->mutex);
    return rc;
}

size_t dibs__doorbell_hear(dibs__doorbell *ln, dibs__notice *rings, size_t max)
{
    size_t count;

    if (!ln->open)
        return 0;
    pthread_mutex_lock(&ln->mutex);
    for (count = 0; count < max && ln->count > 0; count++) {
        rings[count] = ln->rings[ln->first];
        ln->first = (ln->first + 1) % DIBS__DOORBELL_NOTICES;
        if (--ln->count == 0)
            dibsx_event_clear(ln->ring_fd);
    }
    pthread_mutex_unlock(&ln->mutex);
    return count;
}
