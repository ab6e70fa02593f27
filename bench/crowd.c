/* crowd.c - threads of one process that wait for the same thing. */
/* SPDX-License-Identifier: MIT */
#include "bench/crowd.h"
#include "bench/raw.h"
#include "bench/samples.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct crowd {
    crowd_kind kind;
    int count;
    size_t rounds, round;
    dibs_client *client;
    dibs_barrier *last;    /* CROWD_BARRIER: the party that comes last */
    unsigned run;          /* a part of the names */
    raw *voice, *ear;      /* CROWD_BARE */
    atomic_uint ready;     /* waits that began */
    atomic_ullong last_ns; /* when the last was awake */
    sem_t done;
    pthread_mutex_t mutex;
    pthread_cond_t cond, gate;
    size_t rung; /* rounds that the ear heard of */
    size_t begun;
    pthread_t threads[CROWD_MAX], listener;
};

enum { NAME_ROOM = 48, COUNT = 2 };

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("crowd", err->message);
}

/* A latch is used once, a barrier for all rounds. */
static void name_of(const crowd *cr, size_t round, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, "bench-crowd-%x-%zu", cr->run,
             cr->kind == CROWD_LATCH ? round : 0);
}

static dibs_barrier *party_new(const crowd *cr)
{
    dibs_barrier *party;
    char name[NAME_ROOM];
    dibs_error err;

    name_of(cr, 0, name);
    must(dibs_barrier_new(cr->client, name,
                          DIBS_BARRIER_OPTS(.parties = (uint32_t)cr->count + 1),
                          &party, &err),
         &err);
    return party;
}

/* A thread that is awake early does not begin again before all are. */
static void await_begin(crowd *cr, size_t round)
{
    pthread_mutex_lock(&cr->mutex);
    while (cr->begun <= round)
        pthread_cond_wait(&cr->gate, &cr->mutex);
    pthread_mutex_unlock(&cr->mutex);
}

static void begin_round(crowd *cr)
{
    pthread_mutex_lock(&cr->mutex);
    cr->begun++;
    pthread_cond_broadcast(&cr->gate);
    pthread_mutex_unlock(&cr->mutex);
}

static void await_bare(crowd *cr, size_t round)
{
    pthread_mutex_lock(&cr->mutex);
    while (cr->rung <= round)
        pthread_cond_wait(&cr->cond, &cr->mutex);
    pthread_mutex_unlock(&cr->mutex);
}

static void await_round(crowd *cr, size_t round, dibs_barrier *party)
{
    char name[NAME_ROOM];
    dibs_error err;

    name_of(cr, round, name);
    if (cr->kind == CROWD_BARE)
        await_bare(cr, round);
    else if (cr->kind == CROWD_LATCH)
        must(dibs_latch_wait(cr->client, name, COUNT, 60000, &err), &err);
    else
        must(dibs_barrier_wait(party, NULL, &err), &err);
}

static void note_awake(crowd *cr)
{
    unsigned long long at = (unsigned long long)now_ns();
    unsigned long long last = atomic_load(&cr->last_ns);

    while (at > last && !atomic_compare_exchange_weak(&cr->last_ns, &last, at))
        continue;
    sem_post(&cr->done);
}

static void *wait_in_crowd(void *arg)
{
    crowd *cr = arg;
    dibs_barrier *party = cr->kind == CROWD_BARRIER ? party_new(cr) : NULL;

    for (size_t i = 0; i < cr->rounds; i++) {
        await_begin(cr, i);
        atomic_fetch_add(&cr->ready, 1);
        await_round(cr, i, party);
        note_awake(cr);
    }
    dibs_barrier_free(party);
    return NULL;
}

static void *listen_for_crowd(void *arg)
{
    crowd *cr = arg;

    for (size_t i = 0; i < cr->rounds; i++) {
        raw_hear(cr->ear);
        pthread_mutex_lock(&cr->mutex);
        cr->rung = i + 1;
        pthread_cond_broadcast(&cr->cond);
        pthread_mutex_unlock(&cr->mutex);
    }
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), crowd *cr)
{
    if (pthread_create(thread, NULL, run, cr))
        give_up("thread", "cannot be started");
}

crowd *crowd_new(crowd_kind kind, int threads, size_t rounds, int port,
                 dibs_client *client)
{
    crowd *cr = calloc(1, sizeof(*cr));

    if (!cr || threads < 1 || threads > CROWD_MAX)
        give_up("crowd", "is too large");
    cr->kind = kind;
    cr->count = threads;
    cr->rounds = rounds;
    cr->client = client;
    cr->run = (unsigned)now_ns();
    sem_init(&cr->done, 0, 0);
    pthread_mutex_init(&cr->mutex, NULL);
    pthread_cond_init(&cr->cond, NULL);
    pthread_cond_init(&cr->gate, NULL);
    if (kind == CROWD_BARRIER)
        cr->last = party_new(cr);
    if (kind == CROWD_BARE) {
        cr->voice = raw_open(port);
        cr->ear = raw_open(port);
        raw_listen(cr->ear);
        start(&cr->listener, listen_for_crowd, cr);
    }
    for (int i = 0; i < threads; i++)
        start(&cr->threads[i], wait_in_crowd, cr);
    return cr;
}

void crowd_free(crowd *cr)
{
    for (int i = 0; i < cr->count; i++)
        pthread_join(cr->threads[i], NULL);
    if (cr->kind == CROWD_BARE) {
        pthread_join(cr->listener, NULL);
        raw_close(cr->ear);
        raw_close(cr->voice);
    }
    dibs_barrier_free(cr->last);
    free(cr);
}

static bool has_come(const crowd *cr)
{
    dibs_barrier_state state = {0};
    char name[NAME_ROOM];
    dibs_error err;
    dibs_status rc;

    if (atomic_load(&cr->ready) < (cr->round + 1) * (unsigned)cr->count)
        return false;
    if (cr->kind != CROWD_BARRIER)
        return true;
    name_of(cr, 0, name);
    rc = dibs_barrier_show(cr->client, name, &state, NULL, NULL, &err);
    if (rc != DIBS_NOTFOUND)
        must(rc, &err);
    return state.arrived == (uint32_t)cr->count;
}

/* All wait, and have had the time to look, to listen and to block. */
static void await_crowd(const crowd *cr)
{
    const struct timespec moment = {0, 20000000 + cr->count * 500000L};

    while (!has_come(cr))
        nanosleep(&moment, NULL);
    nanosleep(&moment, NULL);
}

static void count_down(const crowd *cr, const char *id)
{
    char name[NAME_ROOM];
    dibs_error err;

    name_of(cr, cr->round, name);
    must(dibs_latch_count_down(cr->client, name, COUNT, id, NULL, &err), &err);
}

/* Does the deed that they wait for. */
static void ring(crowd *cr)
{
    dibs_error err;

    if (cr->kind == CROWD_BARE)
        raw_tell(cr->voice);
    else if (cr->kind == CROWD_LATCH)
        count_down(cr, "last");
    else
        must(dibs_barrier_wait(cr->last, NULL, &err), &err);
}

int64_t crowd_wake(crowd *cr)
{
    int64_t began;

    if (cr->kind == CROWD_LATCH)
        count_down(cr, "first");
    begin_round(cr);
    await_crowd(cr);
    began = now_ns();
    ring(cr);
    for (int i = 0; i < cr->count; i++)
        while (sem_wait(&cr->done))
            continue;
    cr->round++;
    return (int64_t)atomic_load(&cr->last_ns) - began;
}
