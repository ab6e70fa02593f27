/* thread.h - starting threads that leave signals to others. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_THREAD_H
#define DIBS_BASE_THREAD_H

#include <pthread.h>

/* pthread_create with all signals blocked; an errno number, or 0. */
int dibsx_thread_start(pthread_t *thread, void *(*body)(void *), void *arg);

#endif
