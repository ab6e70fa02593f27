/* once.c - see once.h. */
/* SPDX-License-Identifier: MIT */
#include "base/once.h"

dibs_status dibsx_once_do(dibsx_once *once, dibs_status (*fn)(dibs_error *err),
                          dibs_error *err)
{
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&once->mutex);
    if (!once->done)
        rc = fn(err);
    once->done = rc == DIBS_OK;
    pthread_mutex_unlock(&once->mutex);
    return rc;
}
