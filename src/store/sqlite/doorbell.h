/* doorbell.h - doorbells: a pipe per handle, by which a store notifies its client.
 * Notices are hints and may be lost. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_SQLITE_DOORBELL_H
#define DIBS_STORE_SQLITE_DOORBELL_H

#include "store/grant.h"
#include <pthread.h>
#include <stdatomic.h>

/* One notice and the doorbell that it goes to. Its message is borrowed until the list is
 * sent. */
typedef struct dibs__sqlite_notice {
    char bell[DIBS__BELL_MAX];
    dibs__notice notice;
} dibs__sqlite_notice;

/* Notices that are kept until their transaction is committed. */
typedef struct dibs__sqlite_notices {
    dibs__sqlite_notice *items;
    size_t count;
    size_t room;
    dibs__said *shown; /* by the last put that showed its value; owned */
} dibs__sqlite_notices;

/* Zeroed storage is an empty list. */
void dibs__sqlite_notices_fini(dibs__sqlite_notices *list);

/* Without room the notice is lost: a waiter asks again by itself. */
void dibs__sqlite_notices_add(dibs__sqlite_notices *list,
                              const dibs__party *party);

/* False: there is no room for the notice. */
bool dibs__sqlite_notices_put(dibs__sqlite_notices *list, const char *bell,
                              const dibs__notice *notice);

typedef struct dibs__sqlite_doorbell {
    const char *db_path; /* borrowed; NULL: in memory */
    pthread_mutex_t mutex;
    int dir_fd;                   /* the folder of the pipes, -1 until needed */
    int hear_fd;                  /* -1 until opened */
    int self_fd;                  /* in memory: where others write, else -1 */
    int full_size;                /* with so many bytes it may be full */
    int most;                     /* bytes, since it was last empty */
    int taken;                    /* bytes, since the last look at it */
    bool lost;                    /* a message that was there was not read */
    char address[DIBS__BELL_MAX]; /* the name of the pipe in its folder */
    atomic_bool open;             /* address and hear_fd are set and constant */
    struct dibs__sqlite_doorbell *next; /* among those in memory */
} dibs__sqlite_doorbell;

/* The caller owns the struct; end with fini. */
void dibs__sqlite_doorbell_init(dibs__sqlite_doorbell *doorbell,
                                const char *db_path);
void dibs__sqlite_doorbell_fini(dibs__sqlite_doorbell *doorbell);

/* As doorbell_open and doorbell_read of store/store.h. */
DIBS_MUST_CHECK dibs_status dibs__sqlite_doorbell_open(
    dibs__sqlite_doorbell *doorbell, int *fd, dibs_error *err);
size_t dibs__sqlite_doorbell_read(dibs__sqlite_doorbell *doorbell,
                                  dibs__notice *notices, size_t max);

/* The address at which others notify this handle, "" when it is not open. */
const char *dibs__sqlite_doorbell_address(dibs__sqlite_doorbell *doorbell);

/* Sends every notice without blocking and empties the list. False: a doorbell that may be
 * listened to could not be opened, so that its client hears of no loss. errno says why. */
bool dibs__sqlite_doorbell_notify(dibs__sqlite_doorbell *doorbell,
                                  dibs__sqlite_notices *list);

/* Runs in a child process right after the fork: forgets the doorbells of
 * the parent. */
void dibs__sqlite_doorbell_forked(void);

#endif
