/* worker.c - one process that takes and gives back until enough was held.
 *
 * Owns its log. One thread does the work, so that a record is being written by
 * nobody else; the log of the client, which tells when a place was given, is
 * called on the same thread. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <dibs/dibs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 2000, HANDLES = 3 };

typedef struct worker {
    shared *sh;
    record_log *log;
    dibs_client *cl;
    /* Per key: one that waits, one that tries, one to read or to enter again. */
    dibs_lock *locks[KEYS][HANDLES];
    bool refused[KEYS][HANDLES]; /* the store has no such kind */
    uint64_t random;
} worker;

static record *current; /* what a "queued" is about */

static uint64_t pick(worker *wk, uint64_t below)
{
    wk->random ^= wk->random << 13;
    wk->random ^= wk->random >> 7;
    wk->random ^= wk->random << 17;
    return wk->random % below;
}

void key_name(uint32_t key, char *out, size_t size)
{
    snprintf(out, size, "history-%u", key);
}

static void listen_in(dibs_log_level level, const char *event,
                      const char *message, void *arg)
{
    (void)level;
    (void)message;
    (void)arg;
    if (current && current->queued_ns == 0 && strcmp(event, "queued") == 0)
        current->queued_ns = now_ns();
}

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc == DIBS_OK)
        return;
    fprintf(stderr, "worker: %s\n", err->message);
    _exit(2);
}

static void make_lock(worker *wk, uint32_t key, size_t i, dibs_lock_opts *opts)
{
    char name[32];
    dibs_error err;

    opts->size = sizeof(*opts);
    opts->ttl_ms = TTL_MS;
    opts->wait_ms = i == 1 ? 0 : WAIT_MS;
    key_name(key, name, sizeof(name));
    must(dibs_lock_new(wk->cl, name, opts, &wk->locks[key][i], &err), &err);
}

static void make_locks(worker *wk)
{
    for (uint32_t key = 0; key < KEYS; key++)
        for (size_t i = 0; i < HANDLES; i++) {
            dibs_lock_opts opts = {0};

            if (kind_of(key) == KEY_REENTRANT)
                opts.flags = DIBS_LOCK_REENTRANT;
            if (kind_of(key) == KEY_READ_WRITE && i == 2)
                opts.mode = DIBS_SHARED;
            if (kind_of(key) == KEY_SEMAPHORE) {
                opts.mode = DIBS_PERMITS;
                opts.capacity = CAPACITY;
                opts.permits = i == 2 ? 2 : 1;
            }
            make_lock(wk, key, i, &opts);
        }
}

/* Looks at the clock before the lease: valid now means valid then. */
static bool look(record *rec, const dibs_lock *lock)
{
    int64_t at = now_ns();
    bool valid = dibs_lock_check(lock) == DIBS_OK;

    if (valid)
        rec->believed_ns = at;
    return valid;
}

/* A write to what the lock protects. */
static void write_bank(worker *wk, uint32_t key, uint64_t fence)
{
    uint64_t seen = atomic_load(&wk->sh->bank[key]);

    while (fence >= seen)
        if (atomic_compare_exchange_weak(&wk->sh->bank[key], &seen, fence)) {
            atomic_fetch_add(&wk->sh->accepted, 1);
            return;
        }
    atomic_fetch_add(&wk->sh->refused, 1);
}

/* Mostly short, sometimes as long as a small job, seldom past the ttl. */
static void work(worker *wk, record *rec, const dibs_lock *lock)
{
    uint64_t chance = pick(wk, 2000);
    int64_t until = now_ns();

    if (chance == 0)
        until += (int64_t)TTL_MS * 1500000;
    else if (chance < 20)
        until += (int64_t)pick(wk, 20000000);
    else
        until += (int64_t)pick(wk, 100000);
    while (look(rec, lock) && now_ns() < until)
        if (chance < 20)
            poll(NULL, 0, 1);
}

/* Enters again through a second handle: the lease must be the same one. */
static void enter_again(worker *wk, uint32_t key, const dibs_lock *lock)
{
    dibs_lock *inner = wk->locks[key][2];
    uint64_t fence = dibs_lock_fence(lock);
    uint64_t inner_fence;
    dibs_error err;

    if (dibs_lock_acquire(inner, &err) != DIBS_OK)
        return;
    inner_fence = dibs_lock_fence(inner);
    if (fence != 0 && inner_fence != 0 && inner_fence < fence) {
        fprintf(stderr, "worker: entered again under an older fence\n");
        _exit(3);
    }
    (void)dibs_lock_release(inner, &err);
}

static void hold(worker *wk, record *rec, dibs_lock *lock)
{
    atomic_bool *holding = &wk->sh->holding[wk->log->worker];
    dibs_error err;

    atomic_store(holding, true);
    rec->fence = dibs_lock_fence(lock);
    if (look(rec, lock))
        rec->granted_ns = rec->believed_ns;
    if (rec->granted_ns && rec->exclusive)
        write_bank(wk, rec->key, rec->fence);
    if (kind_of(rec->key) == KEY_REENTRANT && pick(wk, 2) == 0)
        enter_again(wk, rec->key, lock);
    work(wk, rec, lock);
    atomic_store(holding, false);
    rec->release_status = (int32_t)dibs_lock_release(lock, &err);
    atomic_fetch_add(&wk->sh->holds, 1);
}

static record *new_record(worker *wk)
{
    unsigned count = atomic_load(&wk->log->count);

    if (count == LOG_ROOM)
        return NULL;
    atomic_store(&wk->log->count, count + 1);
    return &wk->log->records[count];
}

/* Which key, and by which of its handles. */
static size_t pick_lock(worker *wk, uint32_t *key)
{
    size_t i;

    do {
        key_kind kind;

        *key = (uint32_t)pick(wk, KEYS);
        kind = kind_of(*key);
        i = pick(wk, 10) < 7 ? 0 : 1;
        if (kind == KEY_READ_WRITE ? pick(wk, 10) < 7
                                   : kind == KEY_SEMAPHORE && pick(wk, 10) < 3)
            i = 2;
    } while (wk->refused[*key][i]);
    return i;
}

/* False when the log is full. */
static bool turn(worker *wk)
{
    record *rec = new_record(wk);
    uint32_t key;
    size_t i = pick_lock(wk, &key);
    key_kind kind = kind_of(key);
    dibs_error err;

    if (!rec)
        return false;
    rec->key = key;
    rec->exclusive =
        kind != KEY_SEMAPHORE && !(kind == KEY_READ_WRITE && i == 2);
    rec->permits = kind != KEY_SEMAPHORE ? 0 : i == 2 ? 2 : 1;
    rec->waited = i != 1;
    current = rec;
    rec->invoked_ns = now_ns();
    rec->status = (int32_t)dibs_lock_acquire(wk->locks[key][i], &err);
    current = NULL;
    wk->refused[key][i] = rec->status == DIBS_UNSUPPORTED;
    if (rec->status == DIBS_OK)
        hold(wk, rec, wk->locks[key][i]);
    return true;
}

int worker_main(const char *url, const char *run, uint32_t number,
                uint32_t life)
{
    worker wk = {.random = 88172645463325252u + number * 7919 + life * 104729};
    char path[512];
    dibs_error err;

    snprintf(path, sizeof(path), "%s/shared", run);
    wk.sh = map_file(path, sizeof(*wk.sh));
    snprintf(path, sizeof(path), "%s/log-%u-%u", run, number, life);
    wk.log = map_file(path, sizeof(*wk.log));
    wk.log->worker = number;
    must(dibs_open(url,
                   DIBS_CLIENT_OPTS(.log = listen_in,
                                    .log_level = DIBS_LOG_TRACE),
                   &wk.cl, &err),
         &err);
    make_locks(&wk);
    while (atomic_load(&wk.sh->holds) < wk.sh->holds_wanted)
        if (!turn(&wk))
            break;
    for (uint32_t key = 0; key < KEYS; key++)
        for (size_t i = 0; i < HANDLES; i++)
            dibs_lock_free(wk.locks[key][i]);
    dibs_close(wk.cl);
    return 0;
}
