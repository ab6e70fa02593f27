/* cluster_load.c - a cluster under load while masters crash and slots move.
 *
 *     cluster_load CRASHES MOVES
 *
 * Threads take turns on names all over the slots, with ten seconds for each
 * acquire; a few leases are held from beginning to end. Nobody may be told of an
 * error, be inside together with another, or see a fence that does not rise. What
 * a crashed master had answered was passed on before: what is lost beside that is
 * for docs/guarantees.md to say. */
/* SPDX-License-Identifier: MIT */
#include "cluster_world.h"
#include "pace.h"

#include "base/clock.h"
#include "base/rand.h"
#include "store/redis/cluster/slot.h"
#include "store/redis/keys.h"
#include <dibs/dibs.h>

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLIENTS = 3,
    THREADS = 9,
    NAMES = 12,
    KEPT = 6,
    NAME_MAX_LEN = 48,
    WAIT_MS = 10000,
    TTL_MS = 15000 /* outlasts an election that has to be held twice */
};

typedef struct load {
    char names[NAMES][NAME_MAX_LEN];
    atomic_int inside[NAMES];
    atomic_ullong fences[NAMES];
    dibs_client *clients[CLIENTS];
    atomic_bool over;
    atomic_llong turns;
    atomic_int two;       /* were inside at once, */
    atomic_int backwards; /* ... a fence did not rise, */
    atomic_int errors;    /* ... somebody was told of an error, */
    atomic_int late;      /* ... which a slow machine explains */
    int64_t failover_ms;  /* the longest, until the next master served */
} load;

typedef struct worker {
    load *ld;
    int number;
    pthread_t thread;
    dibs_lock *locks[NAMES];
    dibsx_prng prng;
} worker;

static void complain(load *ld, const char *what, const char *name,
                     dibs_status rc, const dibs_error *err)
{
    atomic_fetch_add(&ld->late, pace_explains(rc));
    if (atomic_fetch_add(&ld->errors, 1) < 10)
        fprintf(stderr, "%s of %s: %s: %s\n", what, name, dibs_status_name(rc),
                err->message);
}

/* Some names have a tag, and some braces that are none. */
static void make_names(load *ld)
{
    static const char *const forms[] = {"load:%d", "load:{tag-%d}:x", "{}%d",
                                        "load}%d{"};

    for (int i = 0; i < NAMES; i++) {
        const char *form = forms[i % 4];
        const char *mark = strstr(form, "%d");

        snprintf(ld->names[i], NAME_MAX_LEN, "%.*s%d%s", (int)(mark - form),
                 form, i, mark + 2);
    }
}

static int slot_of(const load *ld, int name)
{
    dibs__keys keys;

    dibs__keys_of(ld->names[name], &keys);
    return dibs__slot_of(keys.key[0], keys.len[0]);
}

static void work(worker *wk, int i)
{
    load *ld = wk->ld;
    uint64_t fence = dibs_lock_fence(wk->locks[i]);

    if (atomic_fetch_add(&ld->inside[i], 1) != 0)
        atomic_fetch_add(&ld->two, 1);
    if (atomic_exchange(&ld->fences[i], fence) >= fence)
        atomic_fetch_add(&ld->backwards, 1);
    if (dibsx_prng_below(&wk->prng, 8) == 0)
        poll(NULL, 0, (int)dibsx_prng_below(&wk->prng, 5));
    atomic_fetch_add(&ld->turns, 1);
    /* A lease that ended while its holder did not run lets another in. */
    IN_TIME(dibs_lock_check(wk->locks[i]) == DIBS_OK);
    atomic_fetch_sub(&ld->inside[i], 1);
}

static void *take_turns(void *arg)
{
    worker *wk = arg;
    load *ld = wk->ld;

    while (!atomic_load(&ld->over)) {
        int i = (int)dibsx_prng_below(&wk->prng, NAMES);
        dibs_error err = {0};
        dibs_status rc = dibs_lock_acquire(wk->locks[i], &err);

        if (rc != DIBS_OK) {
            complain(ld, "acquire", ld->names[i], rc, &err);
            continue;
        }
        work(wk, i);
        rc = dibs_lock_release(wk->locks[i], &err);
        if (rc != DIBS_OK)
            complain(ld, "release", ld->names[i], rc, &err);
    }
    return NULL;
}

static dibs_lock *make_lock(load *ld, dibs_client *cl, const char *name)
{
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc =
        dibs_lock_new(cl, name,
                      DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = WAIT_MS),
                      &lock, &err);

    if (rc != DIBS_OK) {
        complain(ld, "a handle", name, rc, &err);
        exit(2);
    }
    return lock;
}

static void begin(load *ld, worker *workers, const char *url)
{
    for (int i = 0; i < CLIENTS; i++) {
        dibs_error err = {0};
        dibs_status rc = dibs_open(url, DIBS_CLIENT_OPTS(.timeout_ms = WAIT_MS),
                                   &ld->clients[i], &err);

        if (rc != DIBS_OK) {
            complain(ld, "opening", url, rc, &err);
            exit(pace_explains(rc) ? PACE_MISSED : 2);
        }
    }
    for (int i = 0; i < THREADS; i++) {
        worker *wk = &workers[i];

        *wk = (worker){.ld = ld, .number = i};
        wk->prng.state = (uint64_t)i + 1;
        for (int k = 0; k < NAMES; k++)
            wk->locks[k] =
                make_lock(ld, ld->clients[i % CLIENTS], ld->names[k]);
        if (pthread_create(&wk->thread, NULL, take_turns, wk) != 0)
            exit(2);
    }
}

static void end(load *ld, worker *workers)
{
    atomic_store(&ld->over, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int k = 0; k < NAMES; k++)
            dibs_lock_free(workers[i].locks[k]);
    }
}

/* Leases that are held all the time, in slots that move too. */
static void keep(load *ld, dibs_lock **kept)
{
    for (int i = 0; i < KEPT; i++) {
        char name[NAME_MAX_LEN];
        dibs_error err = {0};
        dibs_status rc;

        snprintf(name, sizeof(name), "kept{tag-%d}", 4 * i + 1);
        kept[i] = make_lock(ld, ld->clients[i % CLIENTS], name);
        rc = dibs_lock_acquire(kept[i], &err);
        if (rc != DIBS_OK)
            complain(ld, "acquire", name, rc, &err);
    }
}

static void let_go(load *ld, dibs_lock **kept)
{
    for (int i = 0; i < KEPT; i++) {
        dibs_error err = {0};
        dibs_status rc = dibs_lock_release(kept[i], &err);

        if (rc != DIBS_OK)
            complain(ld, "a lease kept", "throughout", rc, &err);
        dibs_lock_free(kept[i]);
    }
}

/* Moves the slot of one name after the other round the masters. */
static bool move_slots(cluster_world *cw, const load *ld, int moves)
{
    for (int i = 0; i < moves; i++) {
        int slot = slot_of(ld, i % NAMES);
        int from = cluster_server_of(cw, slot);
        int to = from;

        for (int other = 1; to == from && other < CLUSTER_NODES; other++) {
            int far = cluster_server_of(
                cw, (slot + other * DIBS__SLOTS / CLUSTER_NODES) % DIBS__SLOTS);

            to = far >= 0 ? far : from;
        }
        if (from < 0 || !cluster_move(cw, slot, to, 10)) {
            fprintf(stderr, "slot %d could not be moved\n", slot);
            return false;
        }
    }
    return true;
}

/* Lets the load run for a while, until so many more turns were taken. */
static void let_run(const load *ld, long long turns)
{
    long long until = atomic_load(&ld->turns) + turns;
    dibsx_nsec end_at = dibsx_after_ms(dibsx_now(), WAIT_MS);

    while (atomic_load(&ld->turns) < until && dibsx_now() < end_at)
        poll(NULL, 0, 5);
}

static bool trouble(cluster_world *cw, load *ld, int crashes, int moves)
{
    let_run(ld, 200);
    if (!move_slots(cw, ld, moves))
        return false;
    for (int i = 0; i < crashes; i++) {
        int node = cluster_server_of(cw, slot_of(ld, i % NAMES));

        int64_t span_ms = 0;

        if (node < 0 || !cluster_crash(cw, node, &span_ms)) {
            fprintf(stderr, "no failover of node %d\n", node);
            return false;
        }
        if (span_ms > ld->failover_ms)
            ld->failover_ms = span_ms;
        let_run(ld, 200);
    }
    return true;
}

int main(int argc, char **argv)
{
    static load ld;
    static worker workers[THREADS];
    dibs_lock *kept[KEPT];
    char url[SERVER_URL_MAX];
    cluster_world cw;
    bool ok;

    if (argc != 3) {
        fprintf(stderr, "usage: cluster_load CRASHES MOVES\n");
        return 2;
    }
    if (!cluster_start(&cw))
        return PACE_MISSED;
    cluster_url(&cw, url);
    make_names(&ld);
    begin(&ld, workers, url);
    keep(&ld, kept);
    ok = trouble(&cw, &ld, (int)strtol(argv[1], NULL, 10),
                 (int)strtol(argv[2], NULL, 10));
    end(&ld, workers);
    let_go(&ld, kept);
    for (int i = 0; i < CLIENTS; i++)
        dibs_close(ld.clients[i]);
    cluster_stop(&cw);
    printf("%s crashes (up to %lld ms), %s moves, %lld turns: %d errors, "
           "%d times two inside, %d fences that did not rise\n",
           argv[1], (long long)ld.failover_ms, argv[2], (long long)ld.turns,
           (int)ld.errors, (int)ld.two, (int)ld.backwards);
    if (ld.two + ld.backwards > 0 || ld.errors > ld.late)
        return 1;
    return ok && ld.errors == 0 ? 0 : PACE_MISSED;
}
