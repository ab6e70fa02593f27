/* crowd.c - threads of some processes that wait for the same thing.
 *
 * The program does the deed, and its children wait: a troop each. They share the crowd,
 * which is in memory that all of them have. */
/* SPDX-License-Identifier: MIT */
#include "bench/crowd.h"
#include "bench/pairs.h"
#include "bench/raw.h"
#include "bench/samples.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAME_ROOM = 48, COUNT = 2, STACK = 256 * 1024, TIMEOUT_MS = 30000 };

/* A crowd is still while the server gets this few commands in this time: those that wait
 * look now and then. */
enum { STILL_MS = 50, STILL_COMMANDS = 30 };

/* Between the first calls of parties: a seat ends if its first use waits for those of
 * thousands. */
enum { SEAT_US = 200, SEAT_ELSEWHERE_US = 1000 };

/* A round that takes longer is no measure. */
#define ROUND_MAX_NS INT64_C(60000000000)

/* Between two looks at those that come. */
enum { REST_MIN_NS = 1000000, REST_MAX_NS = 100000000 };

struct crowd {
    crowd_kind kind;
    crowd_size size;
    const char *url;
    int port;
    unsigned run;                    /* a part of the names */
    atomic_uint seated;              /* parties that begin to take a seat */
    atomic_uint ready;               /* waits that began, in all rounds */
    atomic_uint awake;               /* that ended */
    atomic_ullong heard_ns, last_ns; /* when the latest was awake */
    sem_t done;                      /* all are awake */
    pthread_mutex_t mutex;
    pthread_cond_t gate;
    size_t begun;

    /* For the program alone: */
    pid_t pids[CROWD_PROCESSES];
    size_t round;
    dibs_client *client; /* opened in the first round */
    dibs_barrier *last;  /* CROWD_BARRIER: the party that comes last */
    raw *voice;          /* port != 0 */
    int shows;           /* of the barrier, in this round */
    int64_t round_ns;    /* when that began */
};

/* The threads of one process. */
typedef struct troop {
    crowd *all;
    int count;
    dibs_client *client;
    raw *ear; /* CROWD_BARE */
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    size_t rung;         /* rounds that the ear heard of */
    atomic_size_t heard; /* rounds of which a thread is awake */
} troop;

static void rest_ns(int64_t ns)
{
    const struct timespec span = {ns / 1000000000, ns % 1000000000};

    nanosleep(&span, NULL);
}

/* A latch is used once, a barrier for all rounds. */
static void name_of(const crowd *cr, size_t round, char out[NAME_ROOM])
{
    snprintf(out, NAME_ROOM, "bench-crowd-%x-%zu", cr->run,
             cr->kind == CROWD_LATCH ? round : 0);
}

/* A step may wait for those of thousands. */
static dibs_client *open_client(const char *url)
{
    dibs_client *client;
    dibs_error err;

    must_succeed(dibs_open(url,
                           DIBS_CLIENT_OPTS(.timeout_ms = TIMEOUT_MS,
                                            .open_wait_ms = TIMEOUT_MS),
                           &client, &err),
                 &err);
    return client;
}

static dibs_barrier *party_new(const crowd *cr, dibs_client *client)
{
    uint32_t parties = (uint32_t)cr->size.threads + 1;
    dibs_barrier *party;
    char name[NAME_ROOM];
    dibs_error err;

    name_of(cr, 0, name);
    must_succeed(dibs_barrier_new(client, name,
                                  DIBS_BARRIER_OPTS(.parties = parties), &party,
                                  &err),
                 &err);
    return party;
}

/* On a busy machine a seat may end before it is used. */
static void pass_barrier(dibs_barrier *party)
{
    dibs_error err;
    dibs_status rc;

    do
        rc = dibs_barrier_wait(party, NULL, &err);
    while (rc == DIBS_LOST || rc == DIBS_BROKEN);
    must_succeed(rc, &err);
}

/* ---- a troop */

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

static void await_bare(troop *tr, size_t round)
{
    pthread_mutex_lock(&tr->mutex);
    while (tr->rung <= round)
        pthread_cond_wait(&tr->cond, &tr->mutex);
    pthread_mutex_unlock(&tr->mutex);
}

static void await_round(troop *tr, size_t round, dibs_barrier *party)
{
    char name[NAME_ROOM];
    dibs_error err;

    name_of(tr->all, round, name);
    if (tr->all->kind == CROWD_BARE)
        await_bare(tr, round);
    else if (tr->all->kind == CROWD_LATCH)
        must_succeed(dibs_latch_wait(tr->client, name, COUNT, -1, &err), &err);
    else
        pass_barrier(party);
}

static void raise_to(atomic_ullong *latest, unsigned long long at)
{
    unsigned long long last = atomic_load(latest);

    while (at > last && !atomic_compare_exchange_weak(latest, &last, at))
        continue;
}

static void note_awake(troop *tr, size_t round)
{
    crowd *cr = tr->all;
    unsigned long long at = (unsigned long long)now_ns();
    size_t all = (round + 1) * (size_t)cr->size.threads;

    raise_to(&cr->last_ns, at);
    if (atomic_exchange(&tr->heard, round + 1) != round + 1)
        raise_to(&cr->heard_ns, at);
    if (atomic_fetch_add(&cr->awake, 1) + 1 == all)
        sem_post(&cr->done);
}

/* The first round of a barrier is no measure. */
static void space_seats(crowd *cr, size_t round)
{
    int64_t each_us = cr->port ? SEAT_US : SEAT_ELSEWHERE_US;

    if (cr->kind == CROWD_BARRIER && round == 0)
        rest_ns(atomic_fetch_add(&cr->seated, 1) * each_us * 1000);
}

static void *wait_in_troop(void *arg)
{
    troop *tr = arg;
    crowd *cr = tr->all;
    dibs_barrier *party =
        cr->kind == CROWD_BARRIER ? party_new(cr, tr->client) : NULL;

    for (size_t i = 0; i < cr->size.rounds; i++) {
        await_begin(cr, i);
        space_seats(cr, i);
        atomic_fetch_add(&cr->ready, 1);
        await_round(tr, i, party);
        note_awake(tr, i);
    }
    await_begin(cr, cr->size.rounds); /* no seat is left while it is measured */
    dibs_barrier_free(party);
    return NULL;
}

static void *listen_for_troop(void *arg)
{
    troop *tr = arg;

    for (size_t i = 0; i < tr->all->size.rounds; i++) {
        raw_hear(tr->ear);
        pthread_mutex_lock(&tr->mutex);
        tr->rung = i + 1;
        pthread_cond_broadcast(&tr->cond);
        pthread_mutex_unlock(&tr->mutex);
    }
    return NULL;
}

static void run_troop(crowd *cr, int count)
{
    troop tr = {.all = cr, .count = count};
    pthread_t listener, *threads = calloc((size_t)count, sizeof(*threads));
    pthread_attr_t attr;

    pthread_mutex_init(&tr.mutex, NULL);
    pthread_cond_init(&tr.cond, NULL);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    if (cr->kind == CROWD_BARE) {
        tr.ear = raw_open(cr->port);
        raw_listen(tr.ear);
        if (pthread_create(&listener, &attr, listen_for_troop, &tr))
            give_up("thread", "cannot be started");
    } else {
        tr.client = open_client(cr->url);
    }
    for (int i = 0; i < count; i++)
        if (!threads || pthread_create(&threads[i], &attr, wait_in_troop, &tr))
            give_up("thread", "cannot be started");
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (tr.ear) {
        pthread_join(listener, NULL);
        raw_close(tr.ear);
    }
    dibs_close(tr.client);
    free(threads);
}

/* ---- the crowd */

static void share_state(crowd *cr)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;

    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&cr->mutex, &mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&cr->gate, &cond);
    sem_init(&cr->done, 1, 0);
}

/* The first processes have a thread more than the others, where they do not go up. */
static void start_troop(crowd *cr, int i)
{
    int parts = cr->size.processes;
    int count = cr->size.threads / parts + (i < cr->size.threads % parts);
    pid_t pid = fork();

    if (pid < 0)
        give_up("fork", strerror(errno));
    if (pid > 0) {
        cr->pids[i] = pid;
        return;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    run_troop(cr, count);
    _exit(0);
}

crowd *
crowd_new(crowd_kind kind, const crowd_size *size, const char *url, int port)
{
    crowd *cr = mmap(NULL, sizeof(*cr), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (cr == MAP_FAILED || size->threads < size->processes ||
        size->processes < 1 || size->threads > CROWD_MAX ||
        size->processes > CROWD_PROCESSES)
        give_up("crowd", "is too large or too small");
    cr->kind = kind;
    cr->size = *size;
    cr->url = url;
    cr->port = port;
    cr->run = (unsigned)now_ns();
    share_state(cr);
    for (int i = 0; i < size->processes; i++)
        start_troop(cr, i);
    if (port != 0)
        cr->voice = raw_open(port);
    return cr;
}

void crowd_free(crowd *cr)
{
    begin_round(cr);
    for (int i = 0; i < cr->size.processes; i++)
        (void)waitpid(cr->pids[i], NULL, 0);
    dibs_barrier_free(cr->last);
    dibs_close(cr->client);
    if (cr->voice)
        raw_close(cr->voice);
    munmap(cr, sizeof(*cr));
}

/* Nothing goes on without a process that has failed: it has said why, if no signal has
 * ended it. */
static void check_troops(const crowd *cr)
{
    int status = 0;

    if (now_ns() - cr->round_ns > ROUND_MAX_NS)
        give_up("crowd", "a round took longer than a minute");
    for (int i = 0; i < cr->size.processes; i++)
        if (waitpid(cr->pids[i], &status, WNOHANG) == cr->pids[i] &&
            status != 0)
            give_up("one of the processes failed",
                    WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                        : "see above");
}

static void open_crowd(crowd *cr)
{
    if (cr->kind == CROWD_BARE || cr->client)
        return;
    cr->client = open_client(cr->url);
    if (cr->kind == CROWD_BARRIER)
        cr->last = party_new(cr, cr->client);
}

/* Commands of the parties: a show is one of ours. */
static long long scripts_of(const crowd *cr)
{
    return cr->voice ? raw_calls(cr->voice, "evalsha") - cr->shows : 0;
}

/* A show reads all seats, so it comes last. */
static bool has_come(crowd *cr, long long scripts)
{
    dibs_barrier_state state = {0};
    char name[NAME_ROOM];
    dibs_error err;
    dibs_status rc;

    if (atomic_load(&cr->ready) < (cr->round + 1) * (unsigned)cr->size.threads)
        return false;
    if (cr->kind != CROWD_BARRIER)
        return true;
    if (cr->voice && scripts_of(cr) - scripts < cr->size.threads)
        return false;
    name_of(cr, 0, name);
    rc = dibs_barrier_show(cr->client, name, &state, NULL, NULL, &err);
    cr->shows++;
    if (rc != DIBS_NOTFOUND)
        must_succeed(rc, &err);
    return state.arrived == (uint32_t)cr->size.threads;
}

/* Looks now and then, for a fifth of the time at most; returns when the look began that
 * found all of them. */
static int64_t await_crowd(crowd *cr, long long scripts)
{
    int64_t began = now_ns(), took;

    while (!has_come(cr, scripts)) {
        check_troops(cr);
        took = now_ns() - began;
        rest_ns(took < REST_MAX_NS / 4 ? 4 * took + REST_MIN_NS : REST_MAX_NS);
        began = now_ns();
    }
    return began;
}

/* Until all have looked, listen and are blocked. */
static void await_still(const crowd *cr)
{
    int64_t each = cr->kind == CROWD_LATCH ? 1000000 : 20000;
    long long before, after;

    if (cr->kind == CROWD_BARE || !cr->voice) {
        rest_ns(20000000 + cr->size.threads * each);
        return;
    }
    after = scripts_of(cr);
    do {
        check_troops(cr);
        before = after;
        rest_ns(STILL_MS * INT64_C(1000000));
        after = scripts_of(cr);
    } while (after - before > STILL_COMMANDS);
}

static void count_down(const crowd *cr, const char *id)
{
    char name[NAME_ROOM];
    dibs_error err;

    name_of(cr, cr->round, name);
    must_succeed(dibs_latch_count_down(cr->client, name, COUNT, id, NULL, &err),
                 &err);
}

/* Does the deed that they wait for. */
static void ring(crowd *cr)
{
    if (cr->kind == CROWD_BARE)
        raw_tell(cr->voice);
    else if (cr->kind == CROWD_LATCH)
        count_down(cr, "last");
    else
        pass_barrier(cr->last);
}

static void await_awake(crowd *cr)
{
    struct timespec until;

    for (;;) {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        if (sem_timedwait(&cr->done, &until) == 0)
            return;
        check_troops(cr);
    }
}

void crowd_wake(crowd *cr, crowd_times *out)
{
    long long scripts;
    int64_t began;

    open_crowd(cr);
    if (cr->kind == CROWD_LATCH)
        count_down(cr, "first");
    cr->shows = 0;
    cr->round_ns = now_ns();
    scripts = scripts_of(cr);
    began = now_ns();
    begin_round(cr);
    out->arrived = await_crowd(cr, scripts) - began;
    await_still(cr);
    began = now_ns();
    ring(cr);
    await_awake(cr);
    out->heard = (int64_t)atomic_load(&cr->heard_ns) - began;
    out->last = (int64_t)atomic_load(&cr->last_ns) - began;
    out->commands = scripts_of(cr) - scripts;
    cr->round++;
}
