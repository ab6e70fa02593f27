/* failovers.c - lossy failovers under load, and what the holders relied on.
 *
 *     failovers COUNT async|wait:K [SEED]
 *
 * Clients take and give back two names behind three sentinels. Again and again the
 * primary is cut off from its replicas, serves on for a while, and is killed, so
 * that what it did last is lost. Holds until these moments:
 *
 *   fence      no fence is had twice, and one that was granted before another was
 *              asked for is the smaller
 *   told       who held across the failover was told of the loss before its
 *              validity ended, or a moment later
 *   exclusion  with wait:K nobody relies on a name that another relies on; with
 *              async these overlaps are counted: they are what it costs
 *   errors     no acquire fails, for all can wait long enough
 */
/* SPDX-License-Identifier: MIT */
#include "topology.h"

#include "base/clock.h"
#include "base/rand.h"

#include <dibs/dibs.h>

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORKERS = 4,
    NAMES = 2,
    TTL_MS = 3000, /* longer than a failover takes */
    WAIT_MS = 30000,
    CUT_MS = 900,    /* the primary serves on, for nothing */
    AFTER_MS = 2500, /* until leases of before the last failover have ended */
    LATE_MS = 150,   /* a busy machine wakes a thread late */
    HOLDS_MAX = 200000
};

/* One lease that was relied on, from granted_at to believed_at. */
typedef struct hold {
    dibsx_nsec asked_at;
    dibsx_nsec granted_at;
    dibsx_nsec believed_at;
    uint64_t fence;
    int name;
} hold;

typedef struct run {
    topology tp;
    char url[SERVER_URL_MAX];
    const char *durability;
    atomic_bool over;
    atomic_bool cut; /* what is granted now will be lost */
    atomic_int errors;
    atomic_int unsure;           /* releases without an answer */
    atomic_int losses;           /* announced */
    atomic_int late;             /* ... after validity had ended */
    atomic_int under_replicated; /* asks given back */
    hold *holds;
    atomic_size_t count;
    pthread_t threads[WORKERS];
    dibsx_prng random;
} run;

typedef struct worker {
    run *rn;
    dibsx_prng random;
    dibs_client *cl;
    dibs_lock *locks[NAMES];
    _Atomic(dibsx_nsec) end_at; /* of the validity last seen */
    atomic_int told;            /* losses */
} worker;

static void say(const char *what, const dibs_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", what, dibs_status_name(err->status),
            err->message);
}

static dibsx_nsec end_of(const dibs_lock *lock)
{
    return dibsx_after_ms(dibsx_now(), dibs_lock_valid_ms(lock));
}

/* On the keeper's thread. */
static void note_loss(dibs_lock *lock, void *arg)
{
    worker *wk = arg;
    dibsx_nsec limit = atomic_load(&wk->end_at);

    (void)lock;
    atomic_fetch_add(&wk->rn->losses, 1);
    atomic_fetch_add(&wk->told, 1);
    if (dibsx_now() > dibsx_after_ms(limit, LATE_MS))
        atomic_fetch_add(&wk->rn->late, 1);
}

static hold *new_hold(run *rn)
{
    size_t i = atomic_fetch_add(&rn->count, 1);

    if (i >= HOLDS_MAX) {
        fprintf(stderr, "more than %d holds\n", HOLDS_MAX);
        exit(2);
    }
    return &rn->holds[i];
}

/* Who looked may know before it is told; that it is told is part of the promise. */
static void await_told(worker *wk, int before)
{
    dibsx_nsec end = dibsx_after_ms(dibsx_now(), 10 * LATE_MS);

    while (atomic_load(&wk->told) == before && dibsx_now() < end)
        poll(NULL, 0, 1);
    if (atomic_load(&wk->told) == before)
        atomic_fetch_add(&wk->rn->late, 1);
}

/* Short; but while the primary is cut off across the failover, so that it finds
 * holders. */
static void work(worker *wk, hold *hd, dibs_lock *lock)
{
    int64_t span_ms = atomic_load(&wk->rn->cut)
                          ? TTL_MS
                          : (int64_t)dibsx_prng_below(&wk->random, 8);
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), span_ms);
    int told = atomic_load(&wk->told);

    do {
        dibsx_nsec at = dibsx_now();

        if (dibs_lock_valid_ms(lock) > 0)
            atomic_store(&wk->end_at, end_of(lock));
        if (dibs_lock_check(lock) != DIBS_OK) {
            await_told(wk, told);
            return;
        }
        if (hd->granted_at == 0)
            hd->granted_at = at;
        hd->believed_at = at;
        poll(NULL, 0, 1);
    } while (dibsx_now() < until && !atomic_load(&wk->rn->over));
}

static void turn(worker *wk)
{
    int name = (int)dibsx_prng_below(&wk->random, NAMES);
    dibs_lock *lock = wk->locks[name];
    dibsx_nsec asked_at = dibsx_now();
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(lock, &err);
    hold *hd;

    if (rc != DIBS_OK) {
        say("acquire", &err);
        atomic_fetch_add(&wk->rn->errors, 1);
        return;
    }
    hd = new_hold(wk->rn);
    *hd = (hold){.asked_at = asked_at,
                 .fence = dibs_lock_fence(lock),
                 .name = name};
    work(wk, hd, lock);
    rc = dibs_lock_release(lock, &err);
    if (rc != DIBS_OK && rc != DIBS_LOST)
        atomic_fetch_add(&wk->rn->unsure, 1);
}

static bool begin(worker *wk)
{
    dibs_error err = {0};
    dibs_status rc =
        dibs_open(wk->rn->url, DIBS_CLIENT_OPTS(.timeout_ms = 15000), &wk->cl,
                  &err);

    for (int i = 0; i < NAMES && rc == DIBS_OK; i++) {
        char name[16];

        snprintf(name, sizeof(name), "name-%d", i);
        rc = dibs_lock_new(wk->cl, name,
                           DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = WAIT_MS,
                                          .durability = wk->rn->durability,
                                          .on_lost = note_loss,
                                          .on_lost_arg = wk),
                           &wk->locks[i], &err);
    }
    if (rc != DIBS_OK)
        say("a worker", &err);
    return rc == DIBS_OK;
}

static void *worker_main(void *arg)
{
    worker wk = {.rn = arg};
    dibs_stats stats = {.size = sizeof(stats)};

    if (!dibsx_random(&wk.random, sizeof(wk.random)) || !begin(&wk))
        atomic_fetch_add(&wk.rn->errors, 1);
    else
        while (!atomic_load(&wk.rn->over))
            turn(&wk);
    for (int i = 0; i < NAMES; i++)
        dibs_lock_free(wk.locks[i]);
    if (wk.cl) {
        dibs_stats_get(wk.cl, &stats);
        atomic_fetch_add(&wk.rn->under_replicated, (int)stats.under_replicated);
    }
    dibs_close(wk.cl);
    return NULL;
}

static void sleep_ms(int64_t span_ms)
{
    poll(NULL, 0, (int)span_ms);
}

static bool fail_over(run *rn, int number)
{
    int before = rn->tp.primary;
    dibsx_nsec killed_at, chosen_at;
    size_t count;

    sleep_ms(AFTER_MS + (int64_t)dibsx_prng_below(&rn->random, 200));
    topology_cut(&rn->tp);
    atomic_store(&rn->cut, true);
    sleep_ms(CUT_MS);
    server_kill(&rn->tp.servers[before]);
    killed_at = dibsx_now();
    atomic_store(&rn->cut, false);
    if (!topology_await_switch(&rn->tp, before))
        return false;
    chosen_at = dibsx_now();
    count = atomic_load(&rn->count);
    while (atomic_load(&rn->count) == count &&
           dibsx_now() - chosen_at < DIBSX_SEC)
        sleep_ms(1);
    printf("failover %d: another primary after %" PRId64
           " ms, the next grant within %" PRId64 " ms of it\n",
           number, (chosen_at - killed_at) / DIBSX_MS,
           (dibsx_now() - chosen_at) / DIBSX_MS);
    fflush(stdout);
    return topology_heal(&rn->tp);
}

static int by_granted(const void *a, const void *b)
{
    const hold *x = a, *y = b;

    if (x->name != y->name)
        return x->name - y->name;
    return x->granted_at < y->granted_at ? -1 : x->granted_at > y->granted_at;
}

static bool overlap(const hold *a, const hold *b)
{
    return a->granted_at && b->granted_at && a->granted_at < b->believed_at &&
           b->granted_at < a->believed_at;
}

/* Each pair of one name that is near in time, and the highest fence before. */
static void check(hold *holds, size_t count, size_t *fences, size_t *overlaps)
{
    qsort(holds, count, sizeof(*holds), by_granted);
    for (size_t i = 0; i < count; i++)
        for (size_t j = i + 1; j < count && j < i + 1000; j++) {
            const hold *a = &holds[i], *b = &holds[j];

            if (a->name != b->name)
                break;
            if (a->fence == b->fence ||
                (a->granted_at && a->granted_at < b->asked_at &&
                 a->fence > b->fence))
                ++*fences;
            if (overlap(a, b))
                ++*overlaps;
        }
}

static int judge(run *rn)
{
    size_t count = atomic_load(&rn->count), fences = 0, overlaps = 0;
    bool strict = strcmp(rn->durability, "async") != 0;

    check(rn->holds, count, &fences, &overlaps);
    printf("%s: %zu holds, %d losses told, %d of them late, %zu fences "
           "repeated or falling, %zu overlaps, %d errors, %d releases without "
           "an answer, %d asks given back\n",
           rn->durability, count, rn->losses, rn->late, fences, overlaps,
           rn->errors, rn->unsure, rn->under_replicated);
    return count > 0 && fences == 0 && rn->late == 0 && rn->errors == 0 &&
                   !(strict && overlaps > 0)
               ? 0
               : 1;
}

int main(int argc, char **argv)
{
    static run rn;
    int count = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
    int started = 0, code = 1;

    if (count < 1) {
        fprintf(stderr, "usage: failovers COUNT async|wait:K [SEED]\n");
        return 2;
    }
    rn.durability = argv[2];
    rn.random.state = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    rn.holds = calloc(HOLDS_MAX, sizeof(*rn.holds));
    if (rn.holds && topology_start(&rn.tp, NULL)) {
        topology_url(&rn.tp, rn.url);
        while (started < WORKERS && pthread_create(&rn.threads[started], NULL,
                                                   worker_main, &rn) == 0)
            started++;
        code = 0;
        for (int i = 1; i <= count && code == 0; i++)
            code = fail_over(&rn, i) ? 0 : 1;
        sleep_ms(AFTER_MS);
    }
    atomic_store(&rn.over, true);
    for (int i = 0; i < started; i++)
        pthread_join(rn.threads[i], NULL);
    if (code == 0)
        code = judge(&rn);
    topology_stop(&rn.tp);
    free(rn.holds);
    return code;
}
