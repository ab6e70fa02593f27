/* election_look.c - what looks at an election see: whether it leads, its term, and the
 * descriptor of a loss. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include "base/uncancel.h"
#include "coord/election.h"
#include "core/client.h"
#include "core/lock/term.h"
#include <sys/timerfd.h>

enum { AGAIN_MS = 20 };

/* The descriptor fires by the kernel's clock, even if no thread of the process runs.
 * Locks: el->mutex. */
static void set_lost_fd(const dibs_election *el, dibsx_nsec until)
{
    dibsx_nsec fires_at = until > 0 ? until : 1;
    struct itimerspec at = {.it_value = {.tv_sec = fires_at / DIBSX_SEC,
                                         .tv_nsec = fires_at % DIBSX_SEC}};

    if (el->lost_fd >= 0)
        timerfd_settime(el->lost_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void dibs__election_publish(dibs_election *el)
{
    dibsx_nsec until = dibs__election_until(&el->machine);

    if (until == atomic_load(&el->until))
        return;
    /* Belief is given last. */
    if (until > 0)
        atomic_store(&el->term, el->machine.term);
    atomic_store(&el->until, until);
    set_lost_fd(el, until);
}

void dibs__election_see_lease(dibs_election *el, dibsx_nsec now)
{
    dibsx_nsec valid_until = dibs__lock_valid_until(el->lock);

    dibs__election_renewed(&el->machine, valid_until, now);
    if (valid_until == 0)
        dibs__election_taken(&el->machine);
}

dibs_status dibs_election_check(const dibs_election *el)
{
    if (dibsx_now() >= atomic_load(&el->until))
        return DIBS_LOST;
    return dibs_lock_check(el->lock);
}

uint64_t dibs_election_term(const dibs_election *el)
{
    return dibs_election_check(el) == DIBS_OK ? atomic_load(&el->term) : 0;
}

int dibs_election_lost_fd(dibs_election *el)
{
    DIBSX_UNCANCEL;
    int fd;

    if (!el || dibs__client_usable(el->cl, NULL) != DIBS_OK)
        return -1;
    pthread_mutex_lock(&el->mutex);
    if (el->lost_fd < 0) {
        el->lost_fd =
            timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
        set_lost_fd(el, atomic_load(&el->until));
    }
    fd = el->lost_fd;
    pthread_mutex_unlock(&el->mutex);
    return fd;
}

void dibs__election_interrupt(dibs_election *el)
{
    while (el->asking && (el->urged || !el->machine.wanted)) {
        pthread_mutex_unlock(&el->mutex);
        dibs_lock_cancel(el->lock);
        pthread_mutex_lock(&el->mutex);
        /* The wait may not have begun when it was cancelled. */
        if (el->asking)
            dibsx_cond_wait(&el->cond, &el->mutex,
                            dibsx_after_ms(dibsx_now(), AGAIN_MS));
    }
}
