/* cond.h - condition variables that are waited on until a moment of clock.h. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_COND_H
#define DIBS_BASE_COND_H

#include "base/clock.h"
#include <pthread.h>

/* False when the system has none left. End with pthread_cond_destroy(). */
bool dibsx_cond_init(pthread_cond_t *cond);

/* Waits until it is signalled or the moment has come, and for a second at most:
 * condition variables know no clock that counts suspend. So it is called in a loop
 * that looks at the clock. Locks: mutex, let go while waiting. */
void dibsx_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                     dibsx_nsec until);

#endif
