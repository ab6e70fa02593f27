/* timer.c - calls owners at the moment that they asked for; see timer.h.
 *
 * Owns the heap of timers and the setting of the kernel's timer, which runs on
 * CLOCK_BOOTTIME, so that time in suspend counts. */
/* SPDX-License-Identifier: MIT */
#include "core/timer.h"

#include "base/fail.h"
#include "base/thread.h"
#include "core/client.h"
#include <sys/timerfd.h>

bool dibs__timer_reserve(dibs_client *cl, size_t count)
{
    dibs__keeper *kp = &cl->keeper;

    if (!dibsx_heap_reserve(&kp->timers, kp->timer_count + count))
        return false;
    kp->timer_count += count;
    return true;
}

void dibs__timer_unreserve(dibs_client *cl, size_t count)
{
    cl->keeper.timer_count -= count;
}

dibs_status dibs__timer_ready(dibs_client *cl, dibs_error *err)
{
    dibs__keeper *kp = &cl->keeper;
    int failed;

    if (kp->running)
        return DIBS_OK;
    if (kp->stopping)
        return dibsx_fail(err, DIBS_INVALID, "the client is closed");
    failed = dibsx_thread_start(&kp->thread, kp->body, cl);
    if (failed)
        return dibsx_fail_at(err, DIBS_NOMEM, dibsx_errno_name(failed),
                             "cannot start the keeper thread");
    kp->running = true;
    return DIBS_OK;
}

/* Sets the kernel's timer when the earliest moment comes before what it is set
 * to. One that goes off too early costs one look. */
static void arm_kernel(dibs__keeper *kp)
{
    const dibsx_heap_node *first = dibsx_heap_first(&kp->timers);
    struct itimerspec at = {0};

    if (!first || first->at >= kp->armed_at)
        return;
    kp->armed_at = first->at;
    at.it_value.tv_sec = first->at / DIBSX_SEC;
    at.it_value.tv_nsec = first->at % DIBSX_SEC;
    if (first->at <= 0)
        at.it_value.tv_nsec = 1; /* all zero would switch it off */
    timerfd_settime(kp->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void dibs__timer_set(dibs_client *cl, dibs__timer *timer, dibsx_nsec at)
{
    dibs__keeper *kp = &cl->keeper;

    if (at == DIBSX_NEVER) {
        dibsx_heap_remove(&kp->timers, &timer->node);
        return;
    }
    dibsx_heap_set(&kp->timers, &timer->node, at);
    arm_kernel(kp);
}

size_t dibs__timer_until(const dibs_client *cl, dibsx_nsec until,
                         dibsx_heap_node **out, size_t most)
{
    return dibsx_heap_until(&cl->keeper.timers, until, out, most);
}

void dibs__timer_run(dibs_client *cl)
{
    dibs__keeper *kp = &cl->keeper;
    dibsx_heap_node *first;

    kp->armed_at = DIBSX_NEVER;
    while ((first = dibsx_heap_first(&kp->timers)) != NULL) {
        dibs__timer *timer = (dibs__timer *)(void *)first;
        dibsx_nsec now = dibsx_now();

        if (first->at > now)
            break;
        dibsx_heap_remove(&kp->timers, first);
        timer->fire(cl, timer, now);
    }
    arm_kernel(kp);
}
