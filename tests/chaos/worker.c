/* worker.c - see worker.h. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include "bank.h"
#include "pace.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a "queued" is about, which is logged on the thread that asks; others of the
 * library's threads log too. */
static _Thread_local record *current;
static _Atomic(record *) held; /* what a loss is about */

uint64_t worker_pick(worker *wk, uint64_t below)
{
    wk->random ^= wk->random << 13;
    wk->random ^= wk->random >> 7;
    wk->random ^= wk->random << 17;
    return wk->random % below;
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

/* On the keeper's thread, and of any key: a sticky lease may be lost unheld. */
static void note_loss(dibs_lock *lock, void *arg)
{
    record *rec = atomic_load(&held);

    (void)lock;
    if (rec && rec->key == (uintptr_t)arg && rec->told_ns == 0)
        rec->told_ns = now_ns();
}

void worker_must(dibs_status rc, const dibs_error *err)
{
    if (rc == DIBS_OK)
        return;
    fprintf(stderr, "worker: %s\n", err->message);
    _exit(2);
}

static void make_lock(worker *wk, uint32_t key, size_t i, dibs_lock_opts *opts)
{
    char name[NAME_ROOM];
    dibs_error err = {0};

    opts->size = sizeof(*opts);
    opts->ttl_ms = wk->run->ttl_ms;
    opts->wait_ms = i == 1 ? 0 : wk->run->wait_ms;
    opts->on_lost = note_loss;
    opts->on_lost_arg = (void *)(uintptr_t)key;
    key_name(key, name);
    worker_must(dibs_lock_new(wk->cl, name, opts, &wk->locks[key][i], &err),
                &err);
}

static void make_locks(worker *wk)
{
    for (uint32_t key = 0; key < KEYS; key++)
        for (size_t i = 0; i < HANDLES; i++) {
            dibs_lock_opts opts = {0};

            if (kind_of(key) == KEY_REENTRANT)
                opts.flags = DIBS_LOCK_REENTRANT;
            if (kind_of(key) == KEY_STICKY && i != 1)
                opts.flags = DIBS_LOCK_STICKY;
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
    int64_t valid_ms = dibs_lock_valid_ms(lock);

    if (valid_ms == 0 && dibs_lock_check(lock) != DIBS_OK) {
        rec->missed_ns = at;
        return false;
    }
    rec->valid_ns = at + valid_ms * 1000000;
    rec->looked_ns = at;
    atomic_signal_fence(memory_order_seq_cst);
    if (rec->from_ns == 0)
        rec->from_ns = at;
    return true;
}

/* Mostly short, sometimes as long as a small job, seldom past the ttl. */
static void work(worker *wk, record *rec, const dibs_lock *lock)
{
    uint64_t chance = worker_pick(wk, 2000);
    int64_t until = now_ns();

    if (chance == 0)
        until += wk->run->ttl_ms * 1500000;
    else if (chance < 20)
        until += (int64_t)worker_pick(wk, 20000000);
    else
        until += (int64_t)worker_pick(wk, 100000);
    while (look(rec, lock) && now_ns() < until) {
        worker_election_look(wk);
        if (chance < 20)
            poll(NULL, 0, 1);
    }
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

static bool ask_bank(worker *wk, const record *rec, bank_entry *entry)
{
    entry->key = rec->key;
    entry->fence = rec->fence;
    entry->worker = wk->log->worker;
    return bank_ask(wk->bank, entry) && entry->accepted;
}

/* What a lock is for: reads, works, and writes one more than was read. Now and
 * then the write is made without a look, as by a program that trusts its luck:
 * then it is for the bank to refuse it. */
static void use(worker *wk, record *rec, dibs_lock *lock)
{
    bool banked = wk->bank >= 0 && rec->exclusive;
    bank_entry entry = {.write = false};

    if (banked)
        banked = ask_bank(wk, rec, &entry);
    if (kind_of(rec->key) == KEY_REENTRANT && worker_pick(wk, 2) == 0)
        enter_again(wk, rec->key, lock);
    worker_trial(wk, lock);
    work(wk, rec, lock);
    if (banked && (worker_pick(wk, 4) == 0 || look(rec, lock))) {
        entry.based_on = entry.value;
        entry.value++;
        entry.write = true;
        (void)ask_bank(wk, rec, &entry);
    }
}

/* Who looked may know before it is told; that it is told is part of the promise. */
static void await_told(const record *rec)
{
    volatile const int64_t *told = &rec->told_ns;

    while (*told == 0 && now_ns() < rec->missed_ns + INT64_C(5000000000))
        poll(NULL, 0, 1);
}

static void hold(worker *wk, record *rec, dibs_lock *lock)
{
    atomic_bool *holding = &wk->run->holding[wk->log->worker];
    dibs_error err = {0};

    atomic_store(holding, true);
    atomic_store(&held, rec);
    rec->fence = dibs_lock_fence(lock);
    dibs_lock_owner(lock, rec->owner);
    if (look(rec, lock))
        use(wk, rec, lock);
    if (rec->missed_ns)
        await_told(rec);
    rec->released_ns = now_ns();
    atomic_store(holding, false);
    atomic_store(&held, NULL);
    rec->release_status = (int32_t)dibs_lock_release(lock, &err);
    atomic_fetch_add(&wk->run->holds, 1);
}

record *worker_record(worker *wk)
{
    unsigned count = atomic_load(&wk->log->count);

    do {
        if (count == LOG_ROOM)
            return NULL;
    } while (!atomic_compare_exchange_weak(&wk->log->count, &count, count + 1));
    return &wk->log->records[count];
}

record *worker_begin(worker *wk, operation op, uint32_t key)
{
    record *rec = worker_record(wk);

    if (rec) {
        rec->op = (uint8_t)op;
        rec->key = key;
        rec->invoked_ns = now_ns();
    }
    return rec;
}

void worker_end(worker *wk, record *rec, dibs_status rc)
{
    rec->status = (int32_t)rc;
    rec->returned_ns = now_ns();
    atomic_fetch_add(&wk->run->operations, 1);
}

/* Which key, and by which of its handles. */
static size_t pick_lock(worker *wk, uint32_t *key)
{
    size_t i;

    do {
        key_kind kind;

        *key = (uint32_t)worker_pick(wk, KEYS);
        kind = kind_of(*key);
        i = worker_pick(wk, 10) < 7 ? 0 : 1;
        if (kind == KEY_READ_WRITE
                ? worker_pick(wk, 10) < 7
                : kind == KEY_SEMAPHORE && worker_pick(wk, 10) < 3)
            i = 2;
    } while (wk->refused[*key][i]);
    return i;
}

/* False when the log is full. */
static bool turn(worker *wk)
{
    record *rec = worker_record(wk);
    uint32_t key;
    size_t i = pick_lock(wk, &key);
    key_kind kind = kind_of(key);
    dibs_error err = {0};

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
    rec->returned_ns = now_ns();
    current = NULL;
    atomic_fetch_add(&wk->run->operations, 1);
    wk->refused[key][i] = rec->status == DIBS_UNSUPPORTED;
    if (rec->status == DIBS_OK)
        hold(wk, rec, wk->locks[key][i]);
    return true;
}

static void open_store(worker *wk)
{
    int64_t until = now_ns() + pace_ms(30000) * INT64_C(1000000);
    dibs_error err = {0};
    dibs_status rc;

    /* A worker that is born while the store is away waits for it. */
    do {
        rc = dibs_open(wk->run->url,
                       DIBS_CLIENT_OPTS(.log = listen_in,
                                        .log_level = DIBS_LOG_TRACE,
                                        .timeout_ms = wk->run->timeout_ms,
                                        .durability = wk->run->durability),
                       &wk->cl, &err);
        if (rc != DIBS_OK)
            poll(NULL, 0, 50);
    } while ((rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN) && now_ns() < until &&
             !atomic_load(&wk->run->over));
    if (rc != DIBS_OK && atomic_load(&wk->run->over))
        _exit(0);
    worker_must(rc, &err);
}

static void close_store(worker *wk)
{
    for (uint32_t key = 0; key < KEYS; key++)
        for (size_t i = 0; i < HANDLES; i++)
            dibs_lock_free(wk->locks[key][i]);
    dibs_limit_free(wk->limit);
    dibs_breaker_free(wk->breaker);
    dibs_close(wk->cl);
}

int worker_main(const char *folder, uint32_t number, uint32_t life)
{
    worker wk = {.random = 88172645463325252u + number * 7919 + life * 104729};
    char name[NAME_ROOM];

    worker_trial_prepare();
    share_sleep(folder);
    signal(SIGXFSZ, SIG_IGN); /* A full disk is an error, not an end. */
    wk.run = map_file(folder, "run", sizeof(*wk.run));
    wk.random += wk.run->seed * 2654435761u;
    log_name(number, life, name);
    wk.log = map_file(folder, name, sizeof(*wk.log));
    wk.log->worker = number;
    wk.log->life = life;
    wk.log->began_ns = now_ns();
    wk.bank = bank_connect(folder);
    snprintf(name, sizeof(name), "clock-%u", number);
    wk.ahead_us = map_file(folder, name, 2 * sizeof(*wk.ahead_us));
    atomic_store(&wk.run->ready[number], true);
    worker_pulse_begin(&wk);
    open_store(&wk);
    worker_breaker_tap(&wk);
    make_locks(&wk);
    worker_election_begin(&wk);
    worker_barrier_begin(&wk);
    while (!atomic_load(&wk.run->over)) {
        worker_trial(&wk, NULL);
        worker_election_turn(&wk);
        worker_latch(&wk);
        worker_limit(&wk);
        worker_call(&wk);
        if (!wk.no_values && worker_pick(&wk, 8) == 0)
            worker_value(&wk);
        else if (!turn(&wk))
            break;
        if (wk.run->rest_us > 0)
            usleep((useconds_t)worker_pick(&wk, wk.run->rest_us));
    }
    worker_barrier_end(&wk);
    worker_election_end(&wk);
    close_store(&wk);
    worker_pulse_end(&wk);
    return 0;
}
