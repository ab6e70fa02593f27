/* queue_library.c - the processes of the queue ground as programs are: on the public
 * calls, with a pool of threads that consume. */
/* SPDX-License-Identifier: MIT */
#include "queue_ground.h"
#include "queue_part.h"

#include <dibs/dibs.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4, TEXT_ROOM = 32, AGAIN_MS = 10, AWAY_MS = 100 };

typedef struct program {
    control *ct;
    witness *wn;
    pthread_mutex_t mutex; /* of the witness */
    dibs_client *cl;
    dibs_queue *q;
    int queue;
    uint64_t who;
    uint64_t random;
} program;

/* False when it was over before the store could be reached. */
static bool begin(program *pg, const char *folder, int queue, uint64_t who)
{
    dibs_error err = {0};
    char as[WORKER_ROOM];

    *pg = (program){.mutex = PTHREAD_MUTEX_INITIALIZER};
    pg->ct = map_file(folder, CONTROL, sizeof(*pg->ct));
    pg->wn = witness_open(folder);
    pg->queue = queue;
    pg->who = pg->random = who;
    while (!atomic_load(&pg->ct->over) &&
           dibs_open(pg->ct->url,
                     DIBS_CLIENT_OPTS(.timeout_ms = pg->ct->ttl_ms), &pg->cl,
                     &err) != DIBS_OK)
        poll(NULL, 0, AGAIN_MS);
    write_worker(worker_of(queue, who), as);
    return pg->wn && pg->cl &&
           dibs_queue_new(pg->cl, queue_names[queue],
                          DIBS_QUEUE_OPTS(.ttl_ms = pg->ct->ttl_ms,
                                          .as = as[0] ? as : NULL),
                          &pg->q, &err) == DIBS_OK;
}

static void end(program *pg)
{
    dibs_queue_free(pg->q);
    dibs_close(pg->cl);
    witness_close(pg->wn);
}

static outcome outcome_of(dibs_status rc)
{
    if (rc == DIBS_OK)
        return OUTCOME_OK;
    return rc == DIBS_UNKNOWN ? OUTCOME_UNSURE : OUTCOME_NOT;
}

static void push(const program *pg, pushed *all, size_t count)
{
    char texts[PART_BATCH][TEXT_ROOM], workers[PART_BATCH][WORKER_ROOM];
    dibs_push_item items[PART_BATCH] = {{0}};
    dibs_push_opts opts[PART_BATCH];
    dibs_pushed made[PART_BATCH] = {{0}};
    dibs_error err = {0};
    uint64_t sent_us = wall_us();
    dibs_status rc;

    for (size_t i = 0; i < count; i++) {
        write_worker(all[i].worker, workers[i]);
        opts[i] = *DIBS_PUSH_OPTS(.delay_ms = (int64_t)all[i].delay_ms,
                                  .tries = all[i].tries,
                                  .to = workers[i][0] ? workers[i] : NULL);
        items[i].opts = &opts[i];
        items[i].data = texts[i];
        items[i].len =
            (size_t)snprintf(texts[i], TEXT_ROOM, "%" PRIu64, all[i].seq);
    }
    rc = dibs_queue_push_many(pg->q, items, count,
                              DIBS_PUSH_OPTS(.wait_ms = -1), made, &err);
    for (size_t i = 0; i < count; i++) {
        all[i].how = outcome_of(rc);
        all[i].id = rc == DIBS_OK ? made[i].id : 0;
        all[i].sent_us = sent_us;
    }
}

int library_producer(const char *folder, int queue, uint64_t who)
{
    program pg;
    bool ready = begin(&pg, folder, queue, who);
    pushed all[PART_BATCH];
    size_t count;

    while (ready && (count = draw_items(pg.ct, queue, all, PART_BATCH)) > 0) {
        witness_push(pg.wn, queue, who, all, count);
        push(&pg, all, count);
        witness_pushed(pg.wn, all, count);
        if (all[0].how != OUTCOME_OK)
            poll(NULL, 0, AWAY_MS);
    }
    end(&pg);
    return 0;
}

static bool is_valid(void *arg)
{
    return dibs_item_check(arg) == DIBS_OK;
}

static bool commit_effect(program *pg, dibs_item *item, effect *done)
{
    bool valid;

    pthread_mutex_lock(&pg->mutex);
    do_work(&pg->random);
    choose_end(pg->queue, &pg->random, done);
    valid =
        witness_effects(pg->wn, pg->queue, pg->who, done, 1, is_valid, item);
    pthread_mutex_unlock(&pg->mutex);
    return valid;
}

static dibs_status send_end(dibs_item *item, const effect *one, dibs_error *err)
{
    char reason[REASON_ROOM];

    write_reason(one, reason);
    if (one->end == END_NACK)
        return dibs_item_nack(item, (int64_t)one->delay_ms, reason, err);
    if (one->end == END_DEAD)
        return dibs_item_dead(item, reason, err);
    return dibs_item_ack(item, err);
}

/* While the store is away nothing is done, and the item is in hand as before. */
static void settle(const program *pg, dibs_item *item, effect *one)
{
    dibs_error err = {0};
    dibs_status rc;

    for (;;) {
        one->sent_us = wall_us();
        rc = send_end(item, one, &err);
        if (rc != DIBS_UNAVAIL || atomic_load(&pg->ct->over))
            break;
        poll(NULL, 0, AGAIN_MS);
    }
    one->how = outcome_of(rc);
}

static outcome redrive(const program *pg, uint64_t id)
{
    uint64_t count = 0;
    dibs_error err = {0};
    dibs_status rc =
        dibs_queue_redrive(pg->cl, queue_names[pg->queue], id, 0, &count, &err);

    if (rc == DIBS_NOTFOUND || (rc == DIBS_OK && count != 1))
        return OUTCOME_GONE;
    return outcome_of(rc);
}

/* Settles itself, to know how that ended. */
static dibs_status work(dibs_item *item, void *arg)
{
    program *pg = arg;
    effect done = {.id = dibs_item_id(item),
                   .fence = dibs_item_fence(item),
                   .attempt = dibs_item_attempt(item),
                   .lost = dibs_item_losses(item),
                   .at_us = wall_us(),
                   .seq = strtoull(dibs_item_data(item, NULL), NULL, 10)};
    outcome how = OUTCOME_NONE;
    bool again;

    if (!commit_effect(pg, item, &done))
        return DIBS_LOST;
    settle(pg, item, &done);
    pthread_mutex_lock(&pg->mutex);
    witness_told(pg->wn, pg->queue, &done, 1);
    again = wants_redrive(pg->ct, &pg->random, &done);
    if (again)
        witness_redrive(pg->wn, pg->queue, &done);
    pthread_mutex_unlock(&pg->mutex);
    if (again) {
        how = redrive(pg, done.id);
        pthread_mutex_lock(&pg->mutex);
        witness_redriven(pg->wn, pg->queue, &done, how);
        pthread_mutex_unlock(&pg->mutex);
    }
    return DIBS_LOST; /* nothing is left to do for the pool */
}

/* Ends the pool when all is over. */
static void *await_end(void *arg)
{
    const program *pg = arg;

    while (!atomic_load(&pg->ct->over))
        poll(NULL, 0, AGAIN_MS);
    dibs_queue_cancel(pg->q);
    return NULL;
}

int library_consumer(const char *folder, int queue, uint64_t who)
{
    program pg;
    dibs_error err = {0};
    pthread_t thread;
    int code = 0;

    if (begin(&pg, folder, queue, who)) {
        witness_worker(pg.wn, who, worker_of(queue, who));
        if (pthread_create(&thread, NULL, await_end, &pg) != 0)
            return 2;
        if (dibs_queue_work(pg.q, queue == POOL ? THREADS : 1, work, &pg,
                            &err) != DIBS_OK) {
            fprintf(stderr, "a pool of threads: %s\n", err.message);
            code = 2;
        }
        pthread_join(thread, NULL);
    }
    end(&pg);
    return code;
}
