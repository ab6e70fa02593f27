/* bench_queue_calls.c - queues as a program uses them, by the public calls, beside what a
 * bare driver does with a list or a stream.
 *
 *     bench_queue_calls push THREADS COUNT URL    COUNT pushes of each thread
 *     bench_queue_calls work THREADS COUNT URL    COUNT items that each reserves and acks
 *     bench_queue_calls wake COUNT URL            an item pushed for a consumer that waits
 *     bench_queue_calls grow COUNT URL            a push, and a reserve and an ack, behind COUNT
 *                                                 items that wait
 *
 * push and work print "BARE OURS RATIO", in items each second; wake "BARE50 OURS50 RATIO50 BARE99 OURS99
 * RATIO99", grow "PUSH WORK", in microseconds: medians. */
/* SPDX-License-Identifier: MIT */
#include "bench/queue_bare.h"
#include "bench/samples.h"

#include <dibs/dibs.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS_MAX = BARE_FLYING, CALLS = 1000 };

static dibs_client *client;
static dibs_queue *queue;
static long count;

static void must(dibs_status rc, const dibs_error *err)
{
    if (rc != DIBS_OK)
        give_up("queue", err->message);
}

static void push_one(const void *data, size_t len)
{
    dibs_error err;

    must(dibs_queue_push(queue, data, len, NULL, NULL, &err), &err);
}

static dibs_item *reserve_one(void)
{
    dibs_item *item;
    dibs_error err;

    must(dibs_queue_reserve(queue, -1, &item, &err), &err);
    return item;
}

static void ack_one(dibs_item *item)
{
    dibs_error err;

    must(dibs_item_ack(item, &err), &err);
    dibs_item_free(item);
}

static void fill(long items)
{
    static char data[BARE_BYTES];
    dibs_push_item all[DIBS_QUEUE_BATCH];
    dibs_error err;

    for (size_t i = 0; i < DIBS_QUEUE_BATCH; i++)
        all[i] = (dibs_push_item){.data = data, .len = sizeof(data)};
    for (long left = items; left > 0; left -= DIBS_QUEUE_BATCH)
        must(dibs_queue_push_many(
                 queue, all,
                 (size_t)(left < DIBS_QUEUE_BATCH ? left : DIBS_QUEUE_BATCH),
                 NULL, NULL, &err),
             &err);
}

/* ---- many calls */

static void *push_all(void *arg)
{
    static char data[BARE_BYTES];

    (void)arg;
    for (long i = 0; i < count; i++)
        push_one(data, sizeof(data));
    return NULL;
}

/* Acks each item with the request that brings the next one. */
static void *work_all(void *arg)
{
    dibs_item *item = reserve_one();
    dibs_error err;

    (void)arg;
    for (long i = 1; i < count; i++)
        must(dibs_item_ack_next(&item, -1, &err), &err);
    ack_one(item);
    return NULL;
}

static double run_threads(int threads, void *(*body)(void *))
{
    pthread_t all[THREADS_MAX];
    int64_t began = now_ns();

    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, body, NULL))
            give_up("thread", "cannot be started");
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    return (double)threads * (double)count * 1e9 / (double)(now_ns() - began);
}

static void measure_many(bool takes, int threads, const char *url)
{
    bool alone = threads == 1;
    const bare_ops *ops = alone ? &bare_list : &bare_stream;
    bare *b = ops->open(url);
    int batch = takes && !alone ? 16 : 1, times = threads * (int)count / batch;
    double bares, ours;
    int64_t began;

    if (takes) {
        ops->push(b, 4, times, batch);
        fill(threads * count);
    }
    began = now_ns();
    if (takes)
        ops->take(b, alone ? 1 : 4, times, batch);
    else
        ops->push(b, threads, times, batch);
    bares = (double)times * batch * 1e9 / (double)(now_ns() - began);
    ours = run_threads(threads, takes ? work_all : push_all);
    printf("%.0f %.0f %.3f\n", bares, ours, ours / bares);
    ops->close(b);
}

/* ---- a consumer that waits */

typedef struct pipe_of {
    redisContext *pusher, *popper; /* NULL: ours */
    samples *times;
} pipe_of;

static int64_t take_stamp(const pipe_of *pp)
{
    int64_t sent_ns = 0;
    redisReply *reply;
    dibs_item *item;

    if (!pp->popper) {
        item = reserve_one();
        memcpy(&sent_ns, dibs_item_data(item, NULL), sizeof(sent_ns));
        samples_add(pp->times, now_ns() - sent_ns);
        ack_one(item);
        return sent_ns;
    }
    reply = redisCommand(pp->popper, "BRPOPLPUSH bench-wake bench-woken 0");
    if (!reply || reply->type != REDIS_REPLY_STRING)
        give_up("BRPOPLPUSH", pp->popper->errstr);
    memcpy(&sent_ns, reply->str, sizeof(sent_ns));
    samples_add(pp->times, now_ns() - sent_ns);
    freeReplyObject(reply);
    return sent_ns;
}

static void *consume(void *arg)
{
    const pipe_of *pp = arg;

    for (long i = 0; i < count; i++)
        (void)take_stamp(pp);
    return NULL;
}

/* Pushes one after the other; each finds the consumer waiting. */
static void wake_all(pipe_of *pp)
{
    struct timespec pause = {.tv_nsec = 2000000};
    pthread_t consumer;

    if (pthread_create(&consumer, NULL, consume, pp))
        give_up("thread", "cannot be started");
    for (long i = 0; i < count; i++) {
        int64_t sent_ns;

        nanosleep(&pause, NULL);
        sent_ns = now_ns();
        if (pp->pusher)
            freeReplyObject(redisCommand(pp->pusher, "LPUSH bench-wake %b",
                                         &sent_ns, sizeof(sent_ns)));
        else
            push_one(&sent_ns, sizeof(sent_ns));
    }
    pthread_join(consumer, NULL);
    samples_sort(pp->times);
}

static redisContext *connect_bare(const char *url)
{
    const char *at = strrchr(url, ':');
    redisContext *ctx =
        redisConnect("127.0.0.1", at ? (int)strtol(at + 1, NULL, 10) : 0);

    if (!ctx || ctx->err)
        give_up("connect", ctx ? ctx->errstr : "out of memory");
    return ctx;
}

static void measure_wake(const char *url)
{
    samples bares, ours;
    pipe_of bare_pipe = {.pusher = connect_bare(url),
                         .popper = connect_bare(url),
                         .times = &bares};
    pipe_of our_pipe = {.times = &ours};

    samples_init(&bares, (size_t)count);
    samples_init(&ours, (size_t)count);
    wake_all(&bare_pipe);
    wake_all(&our_pipe);
    for (size_t percent = 50; percent < 100; percent += 49)
        printf("%.0f %.0f %.3f%s", samples_at(&bares, percent),
               samples_at(&ours, percent),
               samples_at(&ours, percent) / samples_at(&bares, percent),
               percent == 50 ? " " : "\n");
    redisFree(bare_pipe.pusher);
    redisFree(bare_pipe.popper);
    samples_fini(&bares);
    samples_fini(&ours);
}

/* ---- a long queue */

static void measure_growth(void)
{
    static char data[BARE_BYTES];
    samples pushes, works;

    samples_init(&pushes, CALLS);
    samples_init(&works, CALLS);
    fill(count);
    for (int i = 0; i < CALLS; i++) {
        int64_t began = now_ns();

        push_one(data, sizeof(data));
        samples_add(&pushes, now_ns() - began);
        began = now_ns();
        ack_one(reserve_one());
        samples_add(&works, now_ns() - began);
    }
    samples_sort(&pushes);
    samples_sort(&works);
    printf("%.0f %.0f\n", samples_at(&pushes, 50), samples_at(&works, 50));
    samples_fini(&pushes);
    samples_fini(&works);
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "", *url = argv[argc - 1];
    bool many = strcmp(part, "push") == 0 || strcmp(part, "work") == 0;
    long threads = many && argc == 5 ? strtol(argv[2], NULL, 10) : 1;
    char name[48];
    dibs_error err;

    if (argc == (many ? 5 : 4))
        count = strtol(argv[argc - 2], NULL, 10);
    if (count < 1 || threads < 1 || threads > THREADS_MAX)
        give_up("usage", "bench_queue_calls push|work THREADS COUNT URL, or "
                         "wake|grow COUNT URL");
    snprintf(name, sizeof(name), "bench-calls-%llx",
             (unsigned long long)now_ns());
    must(dibs_open(url, PATIENT, &client, &err), &err);
    must(dibs_queue_set(client, name,
                        DIBS_QUEUE_SETTINGS(.fields = DIBS_QUEUE_SET_CAP,
                                            .cap = 2000000),
                        &err),
         &err);
    must(dibs_queue_new(client, name, NULL, &queue, &err), &err);
    if (many)
        measure_many(part[0] == 'w', (int)threads, url);
    else if (strcmp(part, "wake") == 0)
        measure_wake(url);
    else
        measure_growth();
    dibs_queue_free(queue);
    must(dibs_queue_purge(client, name, DIBS_ITEM_READY, NULL, &err), &err);
    dibs_close(client);
    return 0;
}
