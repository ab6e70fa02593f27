/* bench_queue.c - the steps of queues, beside what a bare driver does with a list, a stream
 * or a table.
 *
 *     bench_queue PART COUNT URL
 *
 *     push    items one by one, beside LPUSH or INSERT
 *     take    an item is acknowledged and the next one taken, beside RPOPLPUSH and LREM,
 *             or DELETE of a row that nobody has locked
 *     push32, take32   the same by 32 threads with a lane each on one store, beside 32
 *             requests on the way
 *     group32 as take32, beside XREADGROUP, XACK and XDEL
 *     batch   16 items with a request, 4 on the way, beside XREADGROUP of 16 or DELETE
 *     pushes  16 items with a request, 4 on the way, beside LPUSH or INSERT of 16
 *     take8, batch8   as take32 and batch by 8, on PostgreSQL, beside DELETE under a lock of
 *             the queue's row
 *     dead    COUNT lanes with 10 items each end: "MS" of the step that finds it; of the
 *             processor on Redis
 *     memory  bytes of an item of 100 bytes, of COUNT: "BARE OURS RATIO"
 *
 * push and take have the form of bench/pairs.h, where the ratio is of times; COUNT is of
 * blocks. The others print "BARE OURS RATIO", in items each second. */
/* SPDX-License-Identifier: MIT */
#include "bench/pairs.h"
#include "bench/queue_bare.h"
#include "bench/samples.h"
#include "store/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 100, BATCH = 16, MEMORY_BATCH = 100, SPAN_MS = 600000 };
enum { EACH = 10, BRIEF_MS = 5000 };

static dibs__store *store;
static atomic_uint_fast64_t lanes = 1;

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("step", err->message);
}

/* One who pushes to the queue, or takes from it. */
typedef struct worker {
    const char *queue;
    uint64_t lane, number, stamp;
    int batch;
    int64_t span_ms;
    dibs__settlement settle[BATCH];
    size_t had;
} worker;

static worker worker_new(const char *queue, int batch)
{
    return (worker){.queue = queue,
                    .lane = ((uint64_t)now_ns() << 8 & 0x1fffffffffff00) +
                            atomic_fetch_add(&lanes, 1),
                    .batch = batch,
                    .span_ms = SPAN_MS};
}

static void push_items(worker *wk, int count)
{
    static char data[BARE_BYTES];
    dibs__push_item items[MEMORY_BATCH];
    dibs__push push = {.queue = wk->queue,
                       .lane = wk->lane,
                       .number = ++wk->number,
                       .items = items,
                       .count = (size_t)count};
    dibs_error err;

    for (int i = 0; i < count; i++)
        items[i] = (dibs__push_item){.data = data,
                                     .len = sizeof(data),
                                     .to = "",
                                     .dedup = ""};
    must(store->ops->queue->push(store, &push, dibsx_now() + 60 * DIBSX_SEC,
                                 &err),
         &err);
}

static void push_once(void *arg)
{
    worker *wk = arg;

    push_items(wk, wk->batch);
}

static void note_delivery(const dibs__delivery *delivery, void *arg)
{
    worker *wk = arg;

    if (wk->had == BATCH || delivery->len != BARE_BYTES)
        give_up("take", "a delivery that was not asked for");
    wk->settle[wk->had++] =
        (dibs__settlement){.verb = DIBS__ITEM_ACK, .token = delivery->token};
}

/* Acknowledges what it has, and takes the next; with 0 nothing. */
static void take_items(worker *wk, int want)
{
    dibs__reserve ask = {.queue = wk->queue,
                         .lane = wk->lane,
                         .number = ++wk->number,
                         .seen = wk->stamp,
                         .span_ms = wk->span_ms,
                         .want = (uint32_t)want,
                         .as = "",
                         .settle = wk->settle,
                         .settle_count = wk->had};
    dibs__settlement settle[BATCH];
    dibs_error err;

    memcpy(settle, wk->settle, sizeof(settle));
    ask.settle = settle;
    wk->had = 0;
    must(store->ops->queue->reserve(store, &ask, dibsx_now() + 60 * DIBSX_SEC,
                                    note_delivery, wk, &err),
         &err);
    wk->stamp = ask.stamp;
    for (size_t i = 0; i < ask.settle_count; i++)
        if (settle[i].rc != DIBS_OK)
            give_up("take", "an item was lost");
    if (wk->had != (size_t)want)
        give_up("take", "the queue is empty");
}

static void take_once(void *arg)
{
    worker *wk = arg;

    take_items(wk, wk->batch);
}

static worker taker_new(const char *queue, int batch)
{
    worker wk = worker_new(queue, batch);

    take_items(&wk, 0);
    return wk;
}

static void taker_end(worker *wk)
{
    dibs_error err;

    take_items(wk, 0);
    must(store->ops->queue->leave(store, wk->queue, wk->lane,
                                  dibsx_now() + 60 * DIBSX_SEC, &err),
         &err);
}

static void fill(const char *queue, size_t count)
{
    worker wk = worker_new(queue, 1);

    for (size_t done = 0; done < count; done += MEMORY_BATCH)
        push_items(&wk, MEMORY_BATCH);
}

/* ---- one at a time */

typedef struct bare_side {
    const bare_ops *ops;
    bare *b;
} bare_side;

static void bare_push(void *arg)
{
    bare_side *bs = arg;

    bs->ops->push(bs->b, 1, 1, 1);
}

static void bare_take(void *arg)
{
    bare_side *bs = arg;

    bs->ops->take(bs->b, 1, 1, 1);
}

static void
measure_one(bare_side *bs, const char *queue, bool takes, size_t blocks)
{
    size_t items = (blocks + 2) * 100;
    worker wk = takes ? taker_new(queue, 1) : worker_new(queue, 1);

    if (takes) {
        fill(queue, items);
        bs->ops->push(bs->b, 4, (int)items / 10, 10);
        measure_pairs(&(side){bare_take, bs}, &(side){take_once, &wk}, blocks);
        taker_end(&wk);
    } else {
        measure_pairs(&(side){bare_push, bs}, &(side){push_once, &wk}, blocks);
    }
}

/* ---- many at once */

typedef struct crew {
    pthread_barrier_t turn;
    const char *queue;
    size_t blocks;
    int count, batch;
    bool takes;
} crew;

static void *work_in_turn(void *arg)
{
    crew *cw = arg;
    worker wk = cw->takes ? taker_new(cw->queue, cw->batch)
                          : worker_new(cw->queue, cw->batch);

    for (size_t i = 0; i < cw->blocks; i++) {
        pthread_barrier_wait(&cw->turn);
        for (int k = 0; k < TIMES; k++)
            if (cw->takes)
                take_once(&wk);
            else
                push_once(&wk);
        if (cw->takes)
            take_items(&wk, 0);
        pthread_barrier_wait(&cw->turn);
    }
    if (cw->takes)
        taker_end(&wk);
    return NULL;
}

static double rate(const crew *cw, int64_t began)
{
    return (double)(cw->count * cw->batch * TIMES) * 1e9 /
           (double)(now_ns() - began);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *numbers, size_t count)
{
    qsort(numbers, count, sizeof(*numbers), by_size);
    return numbers[count / 2];
}

/* One block of either side, with its items made before. */
static void
run_block(bare_side *bs, crew *cw, double *bare_rate, double *our_rate)
{
    int requests = cw->count * TIMES;
    int64_t began;

    if (cw->takes) {
        fill(cw->queue, (size_t)requests * (size_t)cw->batch);
        bs->ops->push(bs->b, cw->count, requests, cw->batch);
    }
    began = now_ns();
    if (cw->takes)
        bs->ops->take(bs->b, cw->count, requests, cw->batch);
    else
        bs->ops->push(bs->b, cw->count, requests, cw->batch);
    *bare_rate = rate(cw, began);
    began = now_ns();
    pthread_barrier_wait(&cw->turn);
    pthread_barrier_wait(&cw->turn);
    *our_rate = rate(cw, began);
}

static void measure_crew_of(bare_side *bs, crew *cw, size_t blocks)
{
    double *bares = calloc(blocks, sizeof(double));
    double *ours = calloc(blocks, sizeof(double));
    double *ratios = calloc(blocks, sizeof(double));
    pthread_t threads[BARE_FLYING];
    double skipped;

    if (!bares || !ours || !ratios)
        give_up("crew", "out of memory");
    cw->blocks = blocks + 1;
    pthread_barrier_init(&cw->turn, NULL, (unsigned)cw->count + 1);
    for (int i = 0; i < cw->count; i++)
        if (pthread_create(&threads[i], NULL, work_in_turn, cw))
            give_up("thread", "cannot be started");
    run_block(bs, cw, &skipped, &skipped); /* connects, and fills caches */
    for (size_t i = 0; i < blocks; i++) {
        run_block(bs, cw, &bares[i], &ours[i]);
        ratios[i] = ours[i] / bares[i];
    }
    for (int i = 0; i < cw->count; i++)
        pthread_join(threads[i], NULL);
    printf("%.0f %.0f %.3f\n", median(bares, blocks), median(ours, blocks),
           median(ratios, blocks));
    free(bares);
    free(ours);
    free(ratios);
}

/* ---- memory */

static void measure_memory(bare_side *bs, const char *queue, size_t count,
                           long long (*bytes)(bare *))
{
    long long before, bares, ours;

    count -= count % MEMORY_BATCH;
    fill(queue, MEMORY_BATCH);
    before = bytes(bs->b);
    fill(queue, count);
    ours = bytes(bs->b) - before;
    before = bytes(bs->b);
    bs->ops->push(bs->b, 4, (int)count / 10, 10);
    bares = bytes(bs->b) - before;
    printf("%.0f %.0f %.3f\n", (double)bares / (double)count,
           (double)ours / (double)count, (double)ours / (double)bares);
}

static void purge(const char *queue)
{
    dibs_error err;
    size_t purged = DIBS__PURGE_MAX;

    while (purged == DIBS__PURGE_MAX)
        must(store->ops->queue_admin->purge(store, queue, DIBS__PLACE_READY,
                                            DIBS__PURGE_MAX,
                                            dibsx_now() + 60 * DIBSX_SEC,
                                            &purged, &err),
             &err);
}

/* ---- lanes that end */

static double clock_ms(bare_side *bs, bool redis)
{
    return redis ? bare_redis_cpu_ms(bs->b) : (double)now_ns() / 1e6;
}

/* Their items are for everybody again. */
static void
measure_dead(bare_side *bs, bool redis, const char *queue, size_t count)
{
    const struct timespec span = {.tv_sec = BRIEF_MS / 1000 + 1};
    worker next = taker_new(queue, EACH);
    double from_ms;

    fill(queue, (count * EACH / MEMORY_BATCH + 1) * MEMORY_BATCH);
    for (size_t i = 0; i < count; i++) {
        worker dead = taker_new(queue, EACH);

        dead.span_ms = BRIEF_MS;
        take_once(&dead);
    }
    purge(queue);
    nanosleep(&span, NULL);
    from_ms = clock_ms(bs, redis);
    take_once(&next);
    printf("%.1f\n", clock_ms(bs, redis) - from_ms);
    for (size_t i = 1; i < count; i++)
        take_once(&next);
    taker_end(&next);
}

static void measure(const char *part, bool redis, bare_side *bs, size_t count)
{
    char queue[32];
    crew cw = {.queue = queue, .count = BARE_FLYING, .batch = 1};

    snprintf(queue, sizeof(queue), "bench-%llx", (unsigned long long)now_ns());
    cw.takes = part[0] != 'p';
    if (strcmp(part, "push") == 0 || strcmp(part, "take") == 0) {
        measure_one(bs, queue, cw.takes, count);
    } else if (strcmp(part, "dead") == 0) {
        measure_dead(bs, redis, queue, count);
    } else if (strcmp(part, "memory") == 0) {
        measure_memory(bs, queue, count,
                       redis ? bare_redis_bytes : bare_postgres_bytes);
    } else {
        if (strcmp(part, "batch") == 0 || strcmp(part, "pushes") == 0)
            cw.count = 4;
        if (strchr(part, '8'))
            cw.count = 8;
        if (part[0] == 'b' || strcmp(part, "pushes") == 0)
            cw.batch = BATCH;
        measure_crew_of(bs, &cw, count);
    }
    purge(queue);
}

static bool is_part(const char *part)
{
    static const char *const parts[] = {"push",    "take",   "push32", "take32",
                                        "group32", "batch",  "take8",  "batch8",
                                        "pushes",  "memory", "dead"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(part, parts[i]) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    long count = argc == 4 ? strtol(argv[2], NULL, 10) : 0;
    bool redis, stream;
    dibs_error err;
    bare_side bs;

    if (count < 1 || count > 1000000 || !is_part(argv[1]))
        give_up("usage", "bench_queue PART 1-1000000 URL");
    redis = strncmp(argv[3], "redis:", 6) == 0;
    stream = strcmp(argv[1], "group32") == 0 || strcmp(argv[1], "batch") == 0;
    bs.ops = redis && stream        ? &bare_stream
             : redis                ? &bare_list
             : strchr(argv[1], '8') ? &bare_turns
                                    : &bare_table;
    bs.b = bs.ops->open(argv[3]);
    must(dibs__store_open(argv[3], dibsx_now() + 60 * DIBSX_SEC, &store, &err),
         &err);
    measure(argv[1], redis, &bs, (size_t)count);
    dibs__store_close(store);
    bs.ops->close(bs.b);
    return 0;
}
