/* doorbell.h - the part that the doorbells of all servers share: a thread of the
 * store listens, and the notices it hears are kept until the core reads them.
 *
 * Notices are hints: a notice is lost when there is no room for it, which the core
 * hears as DIBS__NOTICE_MISSED, or when it comes while no thread listens. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_DOORBELL_H
#define DIBS_STORE_DOORBELL_H

#include "base/clock.h"
#include "store/notice.h"
#include <pthread.h>
#include <stdatomic.h>

enum { DIBS__DOORBELL_NOTICES = 1024, DIBS__DOORBELL_ADDRESS = 17 };

typedef struct dibs__doorbell {
    pthread_mutex_t mutex;
    pthread_cond_t cond; /* `listened` or `failure` has changed */
    int notice_fd;       /* readable while there are notices; -1 until opened */
    int stop_fd;         /* readable when the listening thread must end */
    dibs__notice *notices; /* a circle of DIBS__DOORBELL_NOTICES */
    size_t first;
    size_t count;
    bool listened;                        /* a thread has listened once */
    dibs_error failure;                   /* of the last attempt to listen */
    char address[DIBS__DOORBELL_ADDRESS]; /* drawn at random */
    atomic_bool open;                     /* address and fds are constant */
    atomic_bool stopping;                 /* the listening thread must end */
    dibs__notice_tap *tap; /* NULL: none. Constant while it is open */
    void *tap_arg;
} dibs__doorbell;

/* The caller owns the struct. Before fini, the caller stops the listening thread and
 * waits for its end. */
void dibs__doorbell_init(dibs__doorbell *doorbell);
void dibs__doorbell_stop(dibs__doorbell *doorbell);
void dibs__doorbell_fini(dibs__doorbell *doorbell);

/* As doorbell_open and doorbell_read of store/store.h. The first call to open runs `start`,
 * which starts the listening thread: 0, or an errno. Every call waits for the outcome
 * of the first attempt to listen, a second at most; later calls only read it. */
DIBS_MUST_CHECK dibs_status dibs__doorbell_open(dibs__doorbell *doorbell,
                                                int (*start)(void *arg),
                                                void *arg, dibsx_nsec deadline,
                                                int *fd, dibs_error *err);
size_t dibs__doorbell_read(dibs__doorbell *doorbell, dibs__notice *notices,
                           size_t max);

/* As doorbell_tap. The first call counts: a doorbell that is open has its tap. */
void dibs__doorbell_tap(dibs__doorbell *doorbell, dibs__notice_tap *tap,
                        void *arg);

/* For the listening thread, as all below. Offers a notice that it heard to the tap,
 * or keeps it, with its message. Locks: none held. */
void dibs__doorbell_put(dibs__doorbell *doorbell, const dibs__notice *notice);

/* Notices may have been lost: waiters should ask the store again. */
void dibs__doorbell_missed(dibs__doorbell *doorbell);

/* Reports the outcome of an attempt to listen, NULL for success. After a success that
 * is not the first attempt, notices may have been missed. */
void dibs__doorbell_report(dibs__doorbell *doorbell, const dibs_error *failure);

/* Waits. True when the thread must end, which `stopping` alone decides: a wait may
 * end for any reason. */
bool dibs__doorbell_rest(const dibs__doorbell *doorbell, dibsx_nsec until);
bool dibs__doorbell_stopping(const dibs__doorbell *doorbell);

#endif
