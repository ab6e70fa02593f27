/* doorbell.h - doorbells: a pipe per handle, by which the next in a queue is told of
 * its grant. Rings are hints and may be lost. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_DOORBELL_H
#define DIBS_STORE_SQLITE_DOORBELL_H

#include "store/grant.h"
#include <pthread.h>
#include <stdatomic.h>

/* One ring and whom it goes to. */
typedef struct dibs__chime {
    char bell[DIBS__BELL_MAX];
    dibs__notice ring;
} dibs__chime;

/* Rings that are kept until their transaction is committed. */
typedef struct dibs__peal {
    dibs__chime *chimes;
    size_t count;
    size_t room;
} dibs__peal;

/* Zeroed storage is an empty peal. A ring that finds no room is lost. */
void dibs__peal_fini(dibs__peal *peal);
void dibs__peal_add(dibs__peal *peal, const dibs__party *party);

typedef struct dibs__bell {
    const char *db_path; /* borrowed; NULL: in memory */
    pthread_mutex_t mutex;
    int dir_fd;                   /* the folder of the pipes, -1 until needed */
    int hear_fd;                  /* -1 until opened */
    int self_fd;                  /* in memory: where others write, else -1 */
    char address[DIBS__BELL_MAX]; /* the name of the pipe in its folder */
    atomic_bool open;             /* address and hear_fd are set and constant */
    struct dibs__bell *next;      /* among those in memory */
} dibs__bell;

/* The caller owns the struct; end with fini. */
void dibs__bell_init(dibs__bell *bell, const char *db_path);
void dibs__bell_fini(dibs__bell *bell);

/* As bell_open and bell_hear of store/store.h. */
DIBS_MUST_CHECK dibs_status dibs__bell_open(dibs__bell *bell, int *fd,
                                            dibs_error *err);
size_t dibs__bell_hear(dibs__bell *bell, dibs__notice *rings, size_t max);

/* What others ring this handle by, "" when it is not open. */
const char *dibs__bell_address(dibs__bell *bell);

/* Sends every ring without blocking and empties the peal. */
void dibs__bell_ring(dibs__bell *bell, dibs__peal *peal);

/* Runs in a child process right after the fork: forgets the bells of the
 * parent. */
void dibs__bell_forked(void);

#endif
