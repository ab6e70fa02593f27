/* uncancel.h - code in which the thread cannot be cancelled.
 *
 * A call that blocks holds locks and marks handles as busy; a thread that was
 * cancelled in the middle would leave them so. Such calls begin with
 * DIBSX_UNCANCEL and are no cancellation points: a cancel waits for their end. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_UNCANCEL_H
#define DIBS_BASE_UNCANCEL_H

#include <pthread.h>

static inline int dibsx_cancel_off(void)
{
    int before;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void dibsx_cancel_restore(const int *before)
{
    int ignored;

    (void)pthread_setcancelstate(*before, &ignored);
}

/* From here to the end of the scope. */
#define DIBSX_UNCANCEL                                                         \
    const int dibsx_cancel                                                     \
        __attribute__((cleanup(dibsx_cancel_restore), unused)) =               \
            dibsx_cancel_off()

#endif
