/* coord_leader.c - elections: the next leader after a resignation.
 *
 * Callbacks run on threads of the elections. */
/* SPDX-License-Identifier: MIT */
#include "bench/coord.h"
#include "bench/duel.h"
#include "bench/pairs.h"
#include "bench/sockets.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

typedef struct seat {
    dibs_client *client;
    dibs_election *election;
    const char *name;
    _Atomic(int64_t) gained_ns;
    sem_t gained;
} seat;

static void rest_ms(long ms)
{
    const struct timespec span = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&span, NULL);
}

static void await_post(sem_t *sem)
{
    while (sem_wait(sem))
        continue;
}

static void note_gained(dibs_election *election, uint64_t term, void *arg)
{
    seat *st = arg;

    (void)election;
    (void)term;
    atomic_store(&st->gained_ns, now_ns());
    sem_post(&st->gained);
}

static void campaign(seat *st)
{
    dibs_error err;

    must_succeed(dibs_election_campaign(st->election, &err), &err);
}

static void resign(seat *st)
{
    dibs_error err;

    must_succeed(dibs_election_resign(st->election, &err), &err);
}

/* A `ttl_ms` of 0 is the default. */
static void
seat_init(seat *st, const char *url, const char *name, int64_t ttl_ms)
{
    dibs_error err;

    st->client = client_open(url);
    st->name = name;
    sem_init(&st->gained, 0, 0);
    must_succeed(dibs_election_new(st->client, name,
                                   DIBS_ELECTION_OPTS(.ttl_ms = ttl_ms,
                                                      .on_gained = note_gained,
                                                      .arg = st),
                                   &st->election, &err),
                 &err);
}

static void seat_fini(seat *st)
{
    dibs_election_free(st->election);
    dibs_close(st->client);
}

static void look_at(const seat *st, dibs_leader *out)
{
    dibs_error err;
    dibs_status rc = dibs_leader_get(st->client, st->name, out, &err);

    if (rc != DIBS_NOTFOUND)
        must_succeed(rc, &err);
}

static void await_candidate(const seat *st)
{
    dibs_leader leader;

    do {
        rest_ms(1);
        look_at(st, &leader);
    } while (leader.candidates == 0);
    rest_ms(1);
}

/* The one that leads resigns; the other gains; the first campaigns again. */
static int64_t change_leader(seat *from, seat *to)
{
    int64_t began;

    await_candidate(from);
    began = now_ns();
    resign(from);
    await_post(&to->gained);
    campaign(from);
    return atomic_load(&to->gained_ns) - began;
}

void measure_leader(const ground *on, size_t rounds)
{
    sockets *bare = sockets_new(on->port, 1);
    seat seats[2];
    duel du;

    duel_init(&du, rounds);
    for (int i = 0; i < 2; i++) {
        seat_init(&seats[i], on->url, "bench-leader", 0);
        campaign(&seats[i]);
        if (i == 0)
            await_post(&seats[0].gained);
    }
    for (size_t i = 0; i < rounds; i++) {
        int64_t theirs = sockets_wake(bare);
        int64_t own = change_leader(&seats[i % 2], &seats[(i + 1) % 2]);

        duel_add(&du, theirs, own);
    }
    for (int i = 0; i < 2; i++)
        seat_fini(&seats[i]);
    sockets_free(bare);
    duel_print(&du);
    printf("\n");
}
