/* turns.c - see turns.h. */
/* SPDX-License-Identifier: MIT */
#include "turns.h"

#include "redis_world.h"

#include <pthread.h>
#include <sched.h>

enum {
    THREADS = TURNS_CLIENTS * TURNS_EACH,
    WAIT_MS = 30000,
    BOUND_MS = 60000
};

typedef struct taker {
    turns *tn;
    dibs_lock *lock;
    pthread_t thread;
} taker;

static void note_warning(dibs_log_level level, const char *event,
                         const char *message, void *arg)
{
    turns *tn = arg;

    if (level <= DIBS_LOG_WARN && atomic_fetch_add(&tn->warned, 1) < 5)
        fprintf(stderr, "%s: %s\n", event, message);
}

/* What a holder does: alone, if the lease is worth anything. */
static void work(turns *tn, dibs_lock *lock)
{
    uint64_t fence = dibs_lock_fence(lock);
    long long seen;

    if (atomic_fetch_add(&tn->inside, 1) != 0)
        atomic_fetch_add(&tn->two, 1);
    if (atomic_exchange(&tn->fence, fence) >= fence)
        atomic_fetch_add(&tn->backwards, 1);
    seen = atomic_load(&tn->counter);
    sched_yield();
    atomic_store(&tn->counter, seen + 1);
    atomic_fetch_add(&tn->taken, 1);
    atomic_fetch_add(&tn->ended, dibs_lock_check(lock) != DIBS_OK);
    atomic_fetch_sub(&tn->inside, 1);
}

static void *take_turns(void *arg)
{
    taker *tk = arg;
    turns *tn = tk->tn;

    while (!atomic_load(&tn->over)) {
        dibs_error err = {0};
        dibs_status rc = dibs_lock_acquire(tk->lock, &err);

        if (rc != DIBS_OK) {
            fprintf(stderr, "acquire: %s: %s\n", dibs_status_name(rc),
                    err.message);
            atomic_fetch_add(&tn->unserved, 1);
            atomic_fetch_add(&tn->odd, !pace_explains(rc));
            continue;
        }
        work(tn, tk->lock);
        rc = dibs_lock_release(tk->lock, &err);
        if (rc != DIBS_OK) {
            atomic_fetch_add(&tn->unanswered, 1);
            atomic_fetch_add(&tn->odd, !pace_explains(rc));
        }
    }
    return NULL;
}

static dibs_client *open_client(turns *tn)
{
    dibs_client *cl = NULL;

    CHECK(DIBS_OK,
          dibs_open(tn->url,
                    DIBS_CLIENT_OPTS(.timeout_ms = pace_ms(2000),
                                     .log = note_warning, .log_arg = tn,
                                     .log_level = DIBS_LOG_WARN),
                    &cl, err));
    return cl;
}

static bool goes_on(const turns *tn, dibsx_nsec from_at)
{
    dibsx_nsec now = dibsx_now();

    return now < dibsx_after_ms(from_at, tn->span_ms) ||
           (atomic_load(&tn->taken) < TURNS_LEAST &&
            now < dibsx_after_ms(from_at, pace_ms(BOUND_MS)));
}

void turns_run(turns *tn, void (*nuisance)(void *arg), void *arg,
               int64_t every_ms)
{
    dibs_client *clients[TURNS_CLIENTS];
    taker takers[THREADS];
    dibsx_nsec from_at = dibsx_now();

    for (int i = 0; i < TURNS_CLIENTS; i++)
        clients[i] = open_client(tn);
    for (int i = 0; i < THREADS; i++) {
        takers[i].tn = tn;
        takers[i].lock = world_lock(clients[i % TURNS_CLIENTS], tn->name,
                                    DIBS_LOCK_OPTS(.ttl_ms = tn->ttl_ms,
                                                   .wait_ms = WAIT_MS));
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_turns,
                                        &takers[i]),
                         0);
    }
    while (goes_on(tn, from_at)) {
        world_sleep_ms(every_ms);
        nuisance(arg);
    }
    atomic_store(&tn->over, true);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        dibs_lock_free(takers[i].lock);
    }
    for (int i = 0; i < TURNS_CLIENTS; i++)
        dibs_close(clients[i]);
}
