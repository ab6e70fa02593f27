/* coord_breaker.c - breakers: calls behind them, and how soon all clients know that one
 * has opened.
 *
 * Owns the threads that call. Callbacks run on threads of the clients. */
/* SPDX-License-Identifier: MIT */
#include "bench/breakers.h"
#include "bench/coord.h"
#include "bench/duel.h"
#include "bench/pairs.h"
#include "bench/sockets.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { CALLS = 100000, CALLERS_MAX = 4, CLIENTS = 100 };

static void force_state(dibs_breaker *breaker, dibs_breaker_state state)
{
    dibs_error err;

    must_succeed(dibs_breaker_force(breaker, state, &err), &err);
}

/* ---- calls */

static void enter_often(dibs_breaker *breaker)
{
    dibs_pass pass;

    for (int i = 0; i < CALLS; i++)
        if (dibs_breaker_enter(breaker, &pass, NULL) != DIBS_OK)
            give_up("breaker", "changed its state");
}

static void call_often(dibs_breaker *breaker)
{
    for (int i = 0; i < CALLS; i++)
        if (!breaker_call(breaker, true))
            give_up("breaker", "changed its state");
}

static void try_often(dibs_breaker *breaker)
{
    for (int i = 0; i < CALLS; i++)
        if (breaker_call(breaker, true))
            give_up("breaker", "changed its state");
}

typedef struct caller {
    dibs_breaker *breaker;
    void (*call)(dibs_breaker *breaker);
    samples times; /* of 1,000 calls each */
} caller;

/* Processor time: there may be more callers than processors. */
static int64_t thread_cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void *run_caller(void *arg)
{
    caller *ca = arg;

    while (ca->times.count < ca->times.room) {
        int64_t began = thread_cpu_ns();

        ca->call(ca->breaker);
        samples_add(&ca->times, (thread_cpu_ns() - began) * 1000 / CALLS);
    }
    return NULL;
}

static void
measure_calls(const ground *on, size_t blocks, int threads,
              dibs_breaker_state state, void (*call)(dibs_breaker *breaker))
{
    dibs_breaker *breaker = breaker_new(on->client, NULL);
    pthread_t ids[CALLERS_MAX];
    caller callers[CALLERS_MAX];
    samples all;

    force_state(breaker, state);
    samples_init(&all, blocks * (size_t)threads);
    for (int i = 0; i < threads; i++) {
        callers[i] = (caller){.breaker = breaker, .call = call};
        samples_init(&callers[i].times, blocks);
        if (pthread_create(&ids[i], NULL, run_caller, &callers[i]))
            give_up("thread", "cannot be started");
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        for (size_t k = 0; k < blocks; k++)
            samples_add(&all, callers[i].times.ns[k]);
        samples_fini(&callers[i].times);
    }
    printf("%.1f\n", samples_median(&all));
    force_state(breaker, DIBS_BREAKER_CLOSED);
    dibs_breaker_free(breaker);
}

void measure_enter(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, 1, DIBS_BREAKER_CLOSED, enter_often);
}

void measure_enter4(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, CALLERS_MAX, DIBS_BREAKER_CLOSED, enter_often);
}

void measure_call(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, 1, DIBS_BREAKER_CLOSED, call_often);
}

void measure_call4(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, CALLERS_MAX, DIBS_BREAKER_CLOSED, call_often);
}

void measure_refused(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, 1, DIBS_BREAKER_OPEN, try_often);
}

void measure_refused4(const ground *on, size_t blocks)
{
    measure_calls(on, blocks, CALLERS_MAX, DIBS_BREAKER_OPEN, try_often);
}

/* ---- from a bad call to other clients */

/* A client that hears of each change. */
typedef struct witness {
    dibs_client *client;
    dibs_breaker *breaker;
    _Atomic(int64_t) changed_ns;
    atomic_int state;
} witness;

static void
note_state(dibs_breaker *breaker, dibs_breaker_state state, void *arg)
{
    witness *wt = arg;

    (void)breaker;
    atomic_store(&wt->changed_ns, now_ns());
    atomic_store(&wt->state, (int)state);
}

static void witness_init(witness *wt, const char *url)
{
    wt->client = client_open(url);
    wt->breaker =
        breaker_new(wt->client, DIBS_BREAKER_OPTS(.threshold = 1, .arg = wt,
                                                  .on_change = note_state));
    (void)breaker_call(wt->breaker, true); /* it listens from then on */
}

static void witness_fini(witness *wt)
{
    dibs_breaker_free(wt->breaker);
    dibs_close(wt->client);
}

static void await_state(witness *wts, int count, dibs_breaker_state state)
{
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < count; i++)
        while (atomic_load(&wts[i].state) != (int)state)
            nanosleep(&moment, NULL);
}

/* How long after `began` half of them, and all of them, knew. */
typedef struct spread {
    int64_t half, last;
} spread;

static spread await_opening(witness *wts, int count, int64_t began)
{
    spread at;
    samples known;

    await_state(wts, count, DIBS_BREAKER_OPEN);
    samples_init(&known, (size_t)count);
    for (int i = 0; i < count; i++)
        samples_add(&known, atomic_load(&wts[i].changed_ns) - began);
    samples_sort(&known);
    at.half = known.ns[count / 2];
    at.last = known.ns[count - 1];
    samples_fini(&known);
    return at;
}

/* Opens it, by a bad call or by hand, and closes it again. */
static spread
open_breaker(dibs_breaker *calls, witness *wts, int count, bool by_call)
{
    const struct timespec moment = {0, 20000000};
    int64_t began;
    spread at;

    nanosleep(&moment, NULL); /* all listen, and nothing is under way */
    began = now_ns();
    if (by_call)
        (void)breaker_call(calls, false);
    else
        force_state(calls, DIBS_BREAKER_OPEN);
    at = await_opening(wts, count, began);
    force_state(calls, DIBS_BREAKER_CLOSED);
    await_state(wts, count, DIBS_BREAKER_CLOSED);
    return at;
}

static void measure_opening(const ground *on, size_t rounds, int count)
{
    static witness wts[CLIENTS];
    sockets *bare = sockets_new(on->port, count);
    dibs_breaker *calls =
        breaker_new(on->client, DIBS_BREAKER_OPTS(.threshold = 1));
    samples half, last;
    duel du;

    duel_init(&du, rounds);
    samples_init(&half, rounds);
    samples_init(&last, rounds);
    force_state(calls, DIBS_BREAKER_CLOSED);
    for (int i = 0; i < count; i++)
        witness_init(&wts[i], on->url);
    for (size_t i = 0; i < rounds; i++) {
        int64_t theirs = sockets_wake(bare);
        spread at = open_breaker(calls, wts, count, false);

        samples_add(&half, at.half);
        samples_add(&last, at.last);
        at = open_breaker(calls, wts, count, true);
        duel_add(&du, theirs, at.last);
    }
    for (int i = 0; i < count; i++)
        witness_fini(&wts[i]);
    dibs_breaker_free(calls);
    sockets_free(bare);
    duel_print(&du);
    printf(" %.0f %.0f\n", samples_median(&half), samples_median(&last));
}

void measure_trip(const ground *on, size_t rounds)
{
    measure_opening(on, rounds, 1);
}

void measure_trips(const ground *on, size_t rounds)
{
    measure_opening(on, rounds, CLIENTS);
}
