/* lockers.c - many lockers on one thread: see lockers.h.
 *
 * Owns the locks. Callbacks run on the thread of the loop. */
/* SPDX-License-Identifier: MIT */
#include "bench/lockers.h"
#include "bench/pairs.h"
#include "bench/samples.h"

#include <dibs/async.h>
#include <poll.h>
#include <stdlib.h>

typedef struct locker {
    lockers *all;
    dibs_lock *lock;
    int left; /* pairs to do */
} locker;

struct lockers {
    dibs_client *client;
    int fd;
    int count;
    int working;
    locker each[LOCKERS_MAX];
};

lockers *lockers_new(dibs_client *client, int count)
{
    lockers *ls = calloc(1, sizeof(*ls));

    if (!ls || count > LOCKERS_MAX)
        give_up("lockers", "out of memory");
    ls->client = client;
    ls->count = count;
    ls->fd = dibs_async_fd(client);
    for (int i = 0; i < count; i++)
        ls->each[i] = (locker){.all = ls, .lock = lock_new(client, i, 0)};
    return ls;
}

void lockers_free(lockers *ls)
{
    for (int i = 0; i < ls->count; i++)
        dibs_lock_free(ls->each[i].lock);
    free(ls);
}

static void
on_granted(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg);

static void begin_pair(locker *lk)
{
    dibs_error err;

    if (dibs_lock_acquire_async(lk->lock, on_granted, lk, &err) != DIBS_OK)
        give_up("acquire", err.message);
}

static void
on_released(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg)
{
    locker *lk = arg;

    (void)lock;
    if (rc != DIBS_OK)
        give_up("release", why->message);
    if (--lk->left > 0)
        begin_pair(lk);
    else
        lk->all->working--;
}

static void
on_granted(dibs_lock *lock, dibs_status rc, const dibs_error *why, void *arg)
{
    dibs_error err;

    if (rc != DIBS_OK)
        give_up("acquire", why->message);
    if (dibs_lock_release_async(lock, on_released, arg, &err) != DIBS_OK)
        give_up("release", err.message);
}

void lockers_work(lockers *ls, int pairs)
{
    ls->working = ls->count;
    for (int i = 0; i < ls->count; i++) {
        ls->each[i].left = pairs;
        begin_pair(&ls->each[i]);
    }
    while (ls->working > 0) {
        struct pollfd fd = {.fd = ls->fd, .events = POLLIN};

        (void)poll(&fd, 1, dibs_async_timeout_ms(ls->client));
        (void)dibs_async_process(ls->client);
    }
}
