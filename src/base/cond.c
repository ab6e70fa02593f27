/* cond.c - condition variables that are waited on until a moment. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include <time.h>

bool dibsx_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    bool made;

    if (pthread_condattr_init(&attr) != 0)
        return false;
    made = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(cond, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return made;
}

void dibsx_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                     dibsx_nsec until)
{
    dibsx_nsec left = until - dibsx_now();
    struct timespec at;

    if (left < 0)
        left = 0;
    if (left > DIBSX_SEC)
        left = DIBSX_SEC;
    clock_gettime(CLOCK_MONOTONIC, &at);
    left += at.tv_nsec;
    at.tv_sec += (time_t)(left / DIBSX_SEC);
    at.tv_nsec = (long)(left % DIBSX_SEC);
    (void)pthread_cond_timedwait(cond, mutex, &at);
}
