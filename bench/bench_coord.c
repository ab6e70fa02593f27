/* bench_coord.c - latches, limits, breakers, elections and barriers on a Redis server,
 * beside the bare driver.
 *
 *     bench_coord PORT latch BLOCKS    a count at a latch, beside INCR
 *     bench_coord PORT limit BLOCKS    a token, beside INCR and EXPIRE
 *     bench_coord PORT flying BLOCKS   tokens for 50 threads, beside 50 INCR and EXPIRE
 *                                      on the way at once: "BARE OURS RATIO" in each
 *                                      second
 *     bench_coord PORT stock BLOCKS    nanoseconds for a token out of a reservation
 *     bench_coord PORT enter BLOCKS    nanoseconds for a call behind a closed breaker;
 *                                      refused: behind an open one
 *     bench_coord PORT trip ROUNDS     from a bad call to another client that knows
 *                                      that the breaker is open, beside PUBLISH to a
 *                                      thread that listens
 *     bench_coord PORT leader ROUNDS   from a resignation to the next leader, beside
 *                                      PUBLISH to a thread that listens
 *     bench_coord PORT openN ROUNDS    from the last count at a latch to the last of N
 *                                      threads that wait, beside one that listens and
 *                                      wakes N threads of its process
 *     bench_coord PORT meetN ROUNDS    the same from the last of N + 1 parties that comes
 *                                      to a barrier
 *
 * bench/pairs.h has the form of the first two. The last ones print "BARE OURS RATIO",
 * medians in microseconds. The server should be idle, empty and of this machine. */
/* SPDX-License-Identifier: MIT */
#include "bench/crowd.h"
#include "bench/pairs.h"
#include "bench/raw.h"
#include "bench/samples.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLYING = 50, TAKES = 100, STOCK = 100000 };

static int port;

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("call", err->message);
}

static dibs_client *open_client(void)
{
    char url[64];

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", port);
    return client_open(url);
}

/* ---- latch, limit: one caller */

static void bare_count(void *r)
{
    raw_count(r);
}

static void bare_limit(void *r)
{
    raw_limit(r);
}

/* Latches of 1,000 ids each, one after the other. */
static void count_once(void *client)
{
    static unsigned counted;
    dibs_error err;
    char name[32], id[32];

    snprintf(name, sizeof(name), "bench-latch-%u", counted / 1000);
    snprintf(id, sizeof(id), "job-%u", counted++);
    must(dibs_latch_count_down(client, name, 1000, id, NULL, &err), &err);
}

static void take_one(void *limit)
{
    dibs_error err;

    must(dibs_limit_take(limit, 1, &err), &err);
}

/* One that is never reached. */
static dibs_limit *
limit_new(dibs_client *client, const char *name, int64_t chunk)
{
    dibs_limit *limit;
    dibs_error err;

    must(dibs_limit_new(client, name,
                        DIBS_LIMIT_OPTS(.count = 100000000, .burst = 100000000,
                                        .chunk = chunk),
                        &limit, &err),
         &err);
    return limit;
}

static void measure_limit(raw *r, dibs_client *client, size_t blocks)
{
    dibs_limit *limit = limit_new(client, "bench-limit", 0);

    measure_pairs(&(side){bare_limit, r}, &(side){take_one, limit}, blocks);
    dibs_limit_free(limit);
}

/* ---- limit: many callers, and from stock */

typedef struct takers {
    pthread_barrier_t turn;
    dibs_limit *limit;
    size_t blocks;
} takers;

static void *take_in_turn(void *arg)
{
    takers *tk = arg;

    for (size_t i = 0; i < tk->blocks; i++) {
        pthread_barrier_wait(&tk->turn);
        for (int k = 0; k < TAKES; k++)
            take_one(tk->limit);
        pthread_barrier_wait(&tk->turn);
    }
    return NULL;
}

static double rate_since(int64_t began)
{
    return (double)(FLYING * TAKES) * 1e9 / (double)(now_ns() - began);
}

/* Both sides in turn, and their ratio in thousandths. */
typedef struct duel {
    samples bare, ours, ratios;
} duel;

static void duel_init(duel *du, size_t rounds)
{
    samples_init(&du->bare, rounds);
    samples_init(&du->ours, rounds);
    samples_init(&du->ratios, rounds);
}

static void duel_add(duel *du, int64_t bare, int64_t ours)
{
    samples_add(&du->bare, bare);
    samples_add(&du->ours, ours);
    samples_add(&du->ratios, (int64_t)((double)ours * 1000 / (double)bare));
}

static double median(samples *s)
{
    double p50;

    samples_sort(s);
    p50 = samples_at(s, 50);
    samples_fini(s);
    return p50;
}

/* Prints the medians and frees the samples. */
static void duel_end(duel *du)
{
    printf("%.0f %.0f %.3f\n", median(&du->bare), median(&du->ours),
           median(&du->ratios));
}

static void measure_flying(raw *r, dibs_client *client, size_t blocks)
{
    takers tk = {.limit = limit_new(client, "bench-flying", 0),
                 .blocks = blocks + 1};
    pthread_t threads[FLYING];
    duel du;

    duel_init(&du, blocks);
    pthread_barrier_init(&tk.turn, NULL, FLYING + 1);
    for (int i = 0; i < FLYING; i++)
        if (pthread_create(&threads[i], NULL, take_in_turn, &tk))
            give_up("thread", "cannot be started");
    for (size_t i = 0; i <= blocks; i++) {
        int64_t began = now_ns();
        double theirs, rate;

        raw_limit_flying(r, FLYING, FLYING * TAKES);
        theirs = rate_since(began);
        began = now_ns();
        pthread_barrier_wait(&tk.turn);
        pthread_barrier_wait(&tk.turn);
        rate = rate_since(began);
        if (i > 0) /* the first connects, and fills caches */
            duel_add(&du, (int64_t)(theirs * 1e3), (int64_t)(rate * 1e3));
    }
    for (int i = 0; i < FLYING; i++)
        pthread_join(threads[i], NULL);
    duel_end(&du);
    dibs_limit_free(tk.limit);
}

static void measure_stock(dibs_client *client, size_t blocks)
{
    dibs_limit *limit = limit_new(client, "bench-stock", 10000000);
    samples times;

    samples_init(&times, blocks);
    take_one(limit);
    for (size_t i = 0; i < blocks; i++) {
        int64_t began = now_ns();

        for (int k = 0; k < STOCK; k++)
            take_one(limit);
        samples_add(&times, (now_ns() - began) * 1000 / STOCK);
    }
    printf("%.1f\n", median(&times));
    dibs_limit_free(limit);
}

/* ---- breaker: calls */

static dibs_breaker *
breaker_new(dibs_client *client, const dibs_breaker_opts *opts)
{
    dibs_breaker *breaker;
    dibs_error err;

    must(dibs_breaker_new(client, "bench-breaker", opts, &breaker, &err), &err);
    return breaker;
}

/* True when it passed. */
static bool call_once(dibs_breaker *breaker, bool good)
{
    dibs_pass pass;

    if (dibs_breaker_enter(breaker, &pass, NULL) != DIBS_OK)
        return false;
    dibs_breaker_leave(breaker, &pass, good);
    return true;
}

static void measure_calls(dibs_client *client, size_t blocks, bool passes)
{
    dibs_breaker *breaker = breaker_new(client, NULL);
    dibs_error err;
    samples times;

    must(dibs_breaker_force(breaker,
                            passes ? DIBS_BREAKER_CLOSED : DIBS_BREAKER_OPEN,
                            &err),
         &err);
    samples_init(&times, blocks);
    for (size_t i = 0; i < blocks; i++) {
        int64_t began = now_ns();

        for (int k = 0; k < STOCK; k++)
            if (call_once(breaker, true) != passes)
                give_up("breaker", "changed its state");
        samples_add(&times, (now_ns() - began) * 1000 / STOCK);
    }
    printf("%.1f\n", median(&times));
    must(dibs_breaker_force(breaker, DIBS_BREAKER_CLOSED, &err), &err);
    dibs_breaker_free(breaker);
}

/* ---- wake-ups */

/* Threads of this process that wait, and the same by the bare driver. */
static void
measure_crowd(crowd_kind kind, dibs_client *client, int waiters, size_t rounds)
{
    crowd *bare = crowd_new(CROWD_BARE, waiters, rounds, port, NULL);
    crowd *ours = crowd_new(kind, waiters, rounds, port, client);
    duel du;

    duel_init(&du, rounds);
    for (size_t i = 0; i < rounds; i++) {
        int64_t theirs = crowd_wake(bare);

        duel_add(&du, theirs, crowd_wake(ours));
    }
    crowd_free(bare);
    crowd_free(ours);
    duel_end(&du);
}

/* ---- the next leader */

typedef struct seat {
    dibs_client *client;
    dibs_election *election;
    _Atomic(int64_t) gained_ns;
    sem_t gained;
} seat;

static void note_gained(dibs_election *election, uint64_t term, void *arg)
{
    seat *st = arg;

    (void)election;
    (void)term;
    atomic_store(&st->gained_ns, now_ns());
    sem_post(&st->gained);
}

static void seat_init(seat *st)
{
    dibs_error err;

    st->client = open_client();
    sem_init(&st->gained, 0, 0);
    must(dibs_election_new(st->client, "bench-leader",
                           DIBS_ELECTION_OPTS(.on_gained = note_gained,
                                              .arg = st),
                           &st->election, &err),
         &err);
    must(dibs_election_campaign(st->election, &err), &err);
}

static void await_candidate(dibs_client *client)
{
    const struct timespec moment = {0, 1000000};
    dibs_leader leader = {0};
    dibs_error err;

    do {
        nanosleep(&moment, NULL);
        must(dibs_leader_get(client, "bench-leader", &leader, &err), &err);
    } while (leader.candidates == 0);
    nanosleep(&moment, NULL);
}

/* The one that leads resigns; the other gains; the first campaigns again. */
static int64_t change_leader(seat *from, seat *to)
{
    dibs_error err;
    int64_t began;

    await_candidate(from->client);
    began = now_ns();
    must(dibs_election_resign(from->election, &err), &err);
    while (sem_wait(&to->gained))
        continue;
    must(dibs_election_campaign(from->election, &err), &err);
    return atomic_load(&to->gained_ns) - began;
}

static void measure_leader(size_t rounds)
{
    crowd *bare = crowd_new(CROWD_BARE, 1, rounds, port, NULL);
    seat seats[2];
    duel du;

    duel_init(&du, rounds);
    seat_init(&seats[0]);
    while (sem_wait(&seats[0].gained))
        continue;
    seat_init(&seats[1]);
    for (size_t i = 0; i < rounds; i++) {
        int64_t theirs = crowd_wake(bare);
        int64_t own = change_leader(&seats[i % 2], &seats[(i + 1) % 2]);

        duel_add(&du, theirs, own);
    }
    crowd_free(bare);
    for (int i = 0; i < 2; i++) {
        dibs_election_free(seats[i].election);
        dibs_close(seats[i].client);
    }
    duel_end(&du);
}

/* ---- breaker: from a bad call to another client */

typedef struct witness {
    _Atomic(int64_t) opened_ns;
    sem_t changed;
} witness;

static void
note_state(dibs_breaker *breaker, dibs_breaker_state state, void *arg)
{
    witness *wt = arg;

    (void)breaker;
    if (state != DIBS_BREAKER_CLOSED)
        atomic_store(&wt->opened_ns, now_ns());
    sem_post(&wt->changed);
}

static void await_change(witness *wt)
{
    while (sem_wait(&wt->changed))
        continue;
}

static void measure_trip(dibs_client *client, size_t rounds)
{
    crowd *bare = crowd_new(CROWD_BARE, 1, rounds, port, NULL);
    dibs_client *peer = open_client();
    witness wt = {0};
    dibs_breaker *calls =
        breaker_new(client, DIBS_BREAKER_OPTS(.threshold = 1));
    dibs_breaker *hears =
        breaker_new(peer, DIBS_BREAKER_OPTS(.threshold = 1, .arg = &wt,
                                            .on_change = note_state));
    const struct timespec moment = {0, 20000000};
    dibs_error err;
    duel du;

    duel_init(&du, rounds);
    sem_init(&wt.changed, 0, 0);
    must(dibs_breaker_force(calls, DIBS_BREAKER_CLOSED, &err), &err);
    (void)call_once(hears, true);
    for (size_t i = 0; i < rounds; i++) {
        int64_t theirs = crowd_wake(bare), began;

        nanosleep(&moment, NULL); /* both listen, and nothing is under way */
        began = now_ns();
        (void)call_once(calls, false);
        await_change(&wt);
        duel_add(&du, theirs, atomic_load(&wt.opened_ns) - began);
        must(dibs_breaker_force(calls, DIBS_BREAKER_CLOSED, &err), &err);
        await_change(&wt);
    }
    crowd_free(bare);
    dibs_breaker_free(calls);
    dibs_breaker_free(hears);
    dibs_close(peer);
    duel_end(&du);
}

static void measure(const char *what, raw *r, dibs_client *client, size_t count)
{
    if (strcmp(what, "latch") == 0)
        measure_pairs(&(side){bare_count, r}, &(side){count_once, client},
                      count);
    else if (strcmp(what, "limit") == 0)
        measure_limit(r, client, count);
    else if (strcmp(what, "flying") == 0)
        measure_flying(r, client, count);
    else if (strcmp(what, "stock") == 0)
        measure_stock(client, count);
    else if (strcmp(what, "enter") == 0 || strcmp(what, "refused") == 0)
        measure_calls(client, count, what[0] == 'e');
    else if (strcmp(what, "trip") == 0)
        measure_trip(client, count);
    else if (strcmp(what, "leader") == 0)
        measure_leader(count);
    else if (strncmp(what, "open", 4) == 0)
        measure_crowd(CROWD_LATCH, client, (int)strtol(what + 4, NULL, 10),
                      count);
    else if (strncmp(what, "meet", 4) == 0)
        measure_crowd(CROWD_BARRIER, client, (int)strtol(what + 4, NULL, 10),
                      count);
    else
        give_up("usage", "see the top of bench_coord.c");
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    dibs_client *client;
    raw *r;

    port = argc == 4 ? (int)strtol(argv[1], NULL, 10) : 0;
    if (port < 1 || port > 65535 || count < 1 || count > 90000)
        give_up("usage", "bench_coord PORT WHAT 1-90000");
    r = raw_open(port);
    client = open_client();
    measure(argv[2], r, client, (size_t)count);
    dibs_close(client);
    raw_close(r);
    return 0;
}
