/* coord_leader.c - elections: the next leader after a resignation and after the death of
 * a leader, and how late a leader hears that its term is over.
 *
 * Callbacks run on threads of the elections. */
/* SPDX-License-Identifier: MIT */
#include "bench/coord.h"
#include "bench/duel.h"
#include "bench/pairs.h"
#include "bench/sockets.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILLED_TTL_MS = 1000, PAUSED_TTL_MS = 500, PAUSE_MS = 1000 };

typedef struct seat {
    dibs_client *client;
    dibs_election *election;
    const char *name;
    _Atomic(int64_t) gained_ns, lost_ns;
    sem_t gained, lost;
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

static void
note_lost(dibs_election *election, uint64_t term, dibs_lost_why why, void *arg)
{
    seat *st = arg;

    (void)election;
    (void)term;
    (void)why;
    atomic_store(&st->lost_ns, now_ns());
    sem_post(&st->lost);
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
    sem_init(&st->lost, 0, 0);
    must_succeed(dibs_election_new(st->client, name,
                                   DIBS_ELECTION_OPTS(.ttl_ms = ttl_ms,
                                                      .on_gained = note_gained,
                                                      .on_lost = note_lost,
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

/* ---- a resignation */

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

/* ---- the death of a leader */

void measure_lead(const ground *on, size_t unused)
{
    seat st;

    (void)unused;
    seat_init(&st, on->url, "bench-killed", KILLED_TTL_MS);
    campaign(&st);
    for (;;)
        pause();
}

/* This program, in another process. */
static pid_t start_leader(int port)
{
    char number[16];
    pid_t pid;

    snprintf(number, sizeof(number), "%d", port);
    pid = fork();
    if (pid < 0)
        give_up("fork", strerror(errno));
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/proc/self/exe", "bench_coord", number, "lead", "1",
              (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void await_leader(const seat *st, pid_t pid)
{
    dibs_leader leader;

    do {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            give_up("leader", "its process has ended");
        rest_ms(1);
        look_at(st, &leader);
    } while (leader.pid != (int64_t)pid);
}

/* Kills a leader at another moment between its renewals in each round. */
static int64_t kill_leader(const ground *on, seat *st, size_t round)
{
    pid_t pid = start_leader(on->port);
    int64_t began;

    await_leader(st, pid);
    campaign(st);
    await_candidate(st);
    rest_ms((long)(round * 97 % (KILLED_TTL_MS / 3)));
    began = now_ns();
    kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    await_post(&st->gained);
    resign(st);
    return atomic_load(&st->gained_ns) - began;
}

static void print_spread(samples *s)
{
    samples_sort(s);
    printf("%.0f %.0f\n", samples_at(s, 50), samples_at(s, 100));
    samples_fini(s);
}

void measure_kill(const ground *on, size_t rounds)
{
    samples times;
    seat st;

    samples_init(&times, rounds);
    seat_init(&st, on->url, "bench-killed", KILLED_TTL_MS);
    for (size_t i = 0; i < rounds; i++)
        samples_add(&times, kill_leader(on, &st, i));
    seat_fini(&st);
    print_spread(&times);
}

/* ---- a term that is over */

/* The server is silent, so that the lease is not renewed. A look says that the term is
 * over when it is, whatever the threads of the election have got round to. */
static int64_t lose_term(const ground *on, seat *st, size_t round)
{
    const struct timespec moment = {0, 50000};
    int64_t until, late;

    await_post(&st->gained);
    rest_ms((long)(round * 97 % (PAUSED_TTL_MS / 3)));
    raw_pause(on->bare, PAUSE_MS);
    while (dibs_election_check(st->election) == DIBS_OK)
        nanosleep(&moment, NULL);
    until = now_ns();
    await_post(&st->lost);
    late = atomic_load(&st->lost_ns) - until;
    return late > 0 ? late : 0;
}

void measure_loss(const ground *on, size_t rounds)
{
    samples times;
    seat st;

    samples_init(&times, rounds);
    seat_init(&st, on->url, "bench-lost", PAUSED_TTL_MS);
    campaign(&st);
    for (size_t i = 0; i < rounds; i++)
        samples_add(&times, lose_term(on, &st, i));
    seat_fini(&st);
    print_spread(&times);
}
