/* once.h - something that is done once in a process, and again if it failed. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_BASE_ONCE_H
#define DIBS_BASE_ONCE_H

#include <dibs/types.h>
#include <pthread.h>

typedef struct dibsx_once {
    pthread_mutex_t mutex;
    bool done;
} dibsx_once;

#define DIBSX_ONCE_INIT                                                        \
    {                                                                          \
        PTHREAD_MUTEX_INITIALIZER, false                                       \
    }

/* Calls fn unless a call of it has succeeded before. Any thread; others wait. */
DIBS_MUST_CHECK dibs_status dibsx_once_do(dibsx_once *once,
                                          dibs_status (*fn)(dibs_error *err),
                                          dibs_error *err);

#endif
