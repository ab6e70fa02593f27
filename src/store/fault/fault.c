/* fault.c - a store around another that fails, loses answers and is late, as a test
 * or its URL chooses.
 *
 * A handle owns the handle of the store within. Everything runs on the thread
 * of the caller; all handles share the faults that a test has set. */
/* SPDX-License-Identifier: MIT */
#include "store/fault.h"
#include "base/alloc.h"
#include "base/fail.h"
#include "base/rand.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The fault that the parameters of the URL ask for. */
typedef struct fault_rule {
    dibs__fault fault;
    dibs__step step; /* DIBS__STEP_COUNT: all but open, listen and bell */
    uint64_t every;
    bool by_chance;
} fault_rule;

typedef struct fault_store {
    dibs__store base;
    dibs__store *within;
    fault_rule rule;
    pthread_mutex_t mutex; /* for what follows */
    uint64_t count;        /* steps that the rule concerns */
    dibsx_prng prng;
} fault_store;

static struct {
    pthread_rwlock_t lock;
    dibs__fault_fn *fn;
    void *arg;
    _Atomic uint64_t counts[DIBS__STEP_COUNT];
} by_tests = {.lock = PTHREAD_RWLOCK_INITIALIZER};

void dibs__fault_set(dibs__fault_fn *fn, void *arg)
{
    pthread_rwlock_wrlock(&by_tests.lock);
    by_tests.fn = fn;
    by_tests.arg = arg;
    for (size_t i = 0; i < DIBS__STEP_COUNT; i++)
        atomic_store(&by_tests.counts[i], 0);
    pthread_rwlock_unlock(&by_tests.lock);
}

static dibs__fault choose_by_test(dibs__step step)
{
    dibs__fault fault = {0};

    pthread_rwlock_rdlock(&by_tests.lock);
    if (by_tests.fn)
        fault =
            by_tests.fn(step, atomic_fetch_add(&by_tests.counts[step], 1) + 1,
                        by_tests.arg);
    pthread_rwlock_unlock(&by_tests.lock);
    return fault;
}

static dibs__fault choose_by_rule(fault_store *fs, dibs__step step)
{
    const fault_rule *rule = &fs->rule;
    bool every_step = rule->step == DIBS__STEP_COUNT &&
                      step != DIBS__STEP_OPEN && step != DIBS__STEP_LISTEN &&
                      step != DIBS__STEP_BELL;
    bool faulty;

    if (step != rule->step && !every_step)
        return (dibs__fault){0};
    pthread_mutex_lock(&fs->mutex);
    faulty = rule->by_chance ? dibsx_prng_below(&fs->prng, rule->every) == 0
                             : ++fs->count % rule->every == 0;
    pthread_mutex_unlock(&fs->mutex);
    return faulty ? rule->fault : (dibs__fault){0};
}

static void sleep_until(dibsx_nsec until)
{
    struct timespec at = {.tv_sec = (time_t)(until / DIBSX_SEC),
                          .tv_nsec = (long)(until % DIBSX_SEC)};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
        continue;
}

/* True when the deadline came first. */
static bool delay_step(int64_t delay_ms, dibsx_nsec deadline)
{
    dibsx_nsec until = dibsx_after_ms(dibsx_now(), delay_ms);

    sleep_until(until < deadline ? until : deadline);
    return until >= deadline;
}

static dibs_status lose_answer(dibs_error *err)
{
    return dibsx_fail_at(err, DIBS_UNKNOWN, "FAULT", "the answer was lost");
}

/* Runs before each step. DIBS_OK: do it; *after: do it and lose the answer. */
static dibs_status begin_step(fault_store *fs, dibs__step step,
                              dibsx_nsec deadline, bool *after, dibs_error *err)
{
    dibs__fault fault = choose_by_test(step);

    *after = false;
    if (fault.kind == DIBS__FAULT_NONE && fault.delay_ms == 0)
        fault = choose_by_rule(fs, step);
    if (fault.delay_ms > 0 && delay_step(fault.delay_ms, deadline))
        return lose_answer(err);
    switch (fault.kind) {
    case DIBS__FAULT_FAIL:
        return dibsx_fail_at(err, DIBS_UNAVAIL, "FAULT",
                             "the store fails, as the test or the URL asks");
    case DIBS__FAULT_DROP_BEFORE:
        return lose_answer(err);
    case DIBS__FAULT_DROP_AFTER:
        *after = true;
        return DIBS_OK;
    case DIBS__FAULT_NONE:
        break;
    }
    return DIBS_OK;
}

/* The same for a step that only reads: there is no difference between the two
 * ways to lose an answer, and nothing must reach the caller. */
static dibs_status begin_read(fault_store *fs, dibs__step step,
                              dibsx_nsec deadline, dibs_error *err)
{
    bool after;
    dibs_status rc = begin_step(fs, step, deadline, &after, err);

    return rc == DIBS_OK && after ? lose_answer(err) : rc;
}

static fault_store *fault_of(dibs__store *st)
{
    return (fault_store *)st;
}

static dibs_status
fault_acquire(dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
              dibs__answer *ans, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_ACQUIRE, deadline, &after, err);

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->acquire(fs->within, ask, deadline, ans,
                                             err);
    if (!after)
        return rc;
    memset(ans, 0, sizeof(*ans));
    return lose_answer(err);
}

static dibs_status
fault_renew(dibs__store *st, dibs__renewal *items, size_t count,
            dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_RENEW, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->renew(fs->within, items, count, deadline,
                                           err);
    if (!after)
        return rc;
    for (size_t i = 0; i < count; i++) {
        items[i].rc = DIBS_UNKNOWN;
        items[i].left_ms = 0;
        items[i].wanted = false;
    }
    return lose_answer(err);
}

static dibs_status fault_release(dibs__store *st, const dibs__leave *leave,
                                 dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_RELEASE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->release(fs->within, leave, deadline, err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_acquire_all(dibs__store *st, const dibs__ask *asks, size_t count,
                  dibsx_nsec deadline, dibs__answer *answers, size_t *blocked,
                  dibs_error *err)
{
    fault_store *fs = fault_of(st);
    const dibs__lease_ops *lease = fs->within->ops->lease;
    bool after;
    dibs_status rc =
        begin_step(fs, DIBS__STEP_ACQUIRE_ALL, deadline, &after, err);

    *blocked = 0;
    memset(answers, 0, count * sizeof(*answers));
    if (rc == DIBS_OK && !lease->acquire_all)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "this store takes one name at a time");
    if (rc == DIBS_OK)
        rc = lease->acquire_all(fs->within, asks, count, deadline, answers,
                                blocked, err);
    if (!after)
        return rc;
    *blocked = 0;
    memset(answers, 0, count * sizeof(*answers));
    return lose_answer(err);
}

static dibs_status
fault_convert(dibs__store *st, const dibs__conversion *conversion,
              dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_CONVERT, deadline, &after, err);

    memset(ans, 0, sizeof(*ans));
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->convert(fs->within, conversion, deadline,
                                             ans, err);
    if (!after)
        return rc;
    memset(ans, 0, sizeof(*ans));
    return lose_answer(err);
}

static dibs_status
fault_yield(dibs__store *st, const char *name, uint64_t fence,
            dibsx_nsec deadline, uint32_t *asked, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_YIELD, deadline, &after, err);

    *asked = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->yield(fs->within, name, fence, deadline,
                                           asked, err);
    if (!after)
        return rc;
    *asked = 0;
    return lose_answer(err);
}

static dibs_status
fault_inspect(dibs__store *st, const char *name, dibsx_nsec deadline,
              dibs__entries_fn *each, void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_INSPECT, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->lease->inspect(fs->within, name, deadline, each,
                                           arg, err);
}

static dibs_status
fault_list(dibs__store *st, const char *begins, dibsx_nsec deadline,
           dibs__entries_fn *each, void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_LIST, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->lease->list(fs->within, begins, deadline, each, arg,
                                        err);
}

static dibs_status
fault_revoke(dibs__store *st, const char *name, uint64_t fence,
             dibsx_nsec deadline, uint32_t *broken, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_REVOKE, deadline, &after, err);

    *broken = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->lease->revoke(fs->within, name, fence, deadline,
                                            broken, err);
    if (!after)
        return rc;
    *broken = 0;
    return lose_answer(err);
}

static dibs_status
fault_get(dibs__store *st, const char *key, dibsx_nsec deadline,
          dibs_value *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_GET, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->get(fs->within, key, deadline, out, err);
}

static dibs_status
fault_heads(dibs__store *st, const char *const *keys, size_t count,
            dibsx_nsec deadline, dibs__value_head *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_HEADS, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->heads(fs->within, keys, count, deadline, out,
                                         err);
}

static dibs_status
fault_put(dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
          uint64_t *version, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_PUT, deadline, &after, err);

    *version = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->value->put(fs->within, put, deadline, version,
                                         err);
    if (!after)
        return rc;
    *version = 0;
    return lose_answer(err);
}

static dibs_status fault_add(dibs__store *st, const char *key, int64_t delta,
                             dibsx_nsec deadline, int64_t *sum, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_ADD, deadline, &after, err);

    *sum = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->value->add(fs->within, key, delta, deadline, sum,
                                         err);
    if (!after)
        return rc;
    *sum = 0;
    return lose_answer(err);
}

static dibs_status
fault_del(dibs__store *st, const char *key, uint64_t expected,
          dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_DEL, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->value->del(fs->within, key, expected, deadline,
                                         err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_scan(dibs__store *st, const char *begins, dibsx_nsec deadline,
           dibs_state_fn *each, void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_SCAN, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->value->list(fs->within, begins, deadline, each, arg,
                                        err);
}

static dibs_status
fault_append(dibs__store *st, const dibs__append *what, dibsx_nsec deadline,
             uint64_t *position, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_APPEND, deadline, &after, err);

    *position = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->log->append(fs->within, what, deadline, position,
                                          err);
    if (!after)
        return rc;
    *position = 0;
    return lose_answer(err);
}

static dibs_status
fault_read(dibs__store *st, const char *topic, uint64_t position, size_t max,
           dibsx_nsec deadline, dibs__log_fn *each, void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_READ, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->log->read(fs->within, topic, position, max,
                                      deadline, each, arg, err);
}

static dibs_status
fault_bounds(dibs__store *st, const char *topic, dibsx_nsec deadline,
             dibs__log_span *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_BOUNDS, deadline, err);

    *out = (dibs__log_span){0};
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->log->bounds(fs->within, topic, deadline, out, err);
}

static dibs_status
fault_trim(dibs__store *st, const char *topic, uint64_t through,
           dibsx_nsec deadline, uint64_t *gone, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_TRIM, deadline, &after, err);

    *gone = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->log->trim(fs->within, topic, through, deadline,
                                        gone, err);
    if (!after)
        return rc;
    *gone = 0;
    return lose_answer(err);
}

static dibs_status fault_ear(dibs__store *st, const char *topic, bool on,
                             dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_EAR, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->topic->ear(fs->within, topic, on, deadline, err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_tell(dibs__store *st, const char *topic, uint64_t number,
           dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_TELL, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->topic->tell(fs->within, topic, number, deadline,
                                          err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_meter(dibs__store *st, const dibs__meter *report, dibsx_nsec deadline,
            dibs__sums *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_METER, deadline, &after, err);

    *out = (dibs__sums){.expires_ms = -1};
    if (rc == DIBS_OK)
        rc = fs->within->ops->meter->meter(fs->within, report, deadline, out,
                                           err);
    if (!after)
        return rc;
    *out = (dibs__sums){.expires_ms = -1};
    return lose_answer(err);
}

static dibs_status
fault_draw(dibs__store *st, const dibs__draw *draw, dibsx_nsec deadline,
           dibs__drawn *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_DRAW, deadline, &after, err);

    memset(out, 0, sizeof(*out));
    if (rc == DIBS_OK)
        rc = fs->within->ops->rate->draw(fs->within, draw, deadline, out, err);
    if (!after)
        return rc;
    memset(out, 0, sizeof(*out));
    return lose_answer(err);
}

static dibs_status fault_meet(dibs__store *st, dibs__meet *items, size_t count,
                              dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_MEET, deadline, &after, err);

    dibs__meet_clear(items, count, rc);
    if (rc == DIBS_OK)
        rc = fs->within->ops->roster->meet(fs->within, items, count, deadline,
                                           err);
    if (!after)
        return rc;
    dibs__meet_clear(items, count, DIBS_UNKNOWN);
    return lose_answer(err);
}

static dibs_status
fault_roll_call(dibs__store *st, const char *name, dibsx_nsec deadline,
                dibs__roster_head *out, dibs__seat_fn *each, void *arg,
                dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_ROLL_CALL, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->roster->roll_call(fs->within, name, deadline, out,
                                              each, arg, err);
}

/* Drops what reserve delivers, for an answer that is lost. */
static void drop_delivery(const dibs__delivery *delivery, void *arg)
{
    (void)delivery;
    (void)arg;
}

static dibs_status fault_push(dibs__store *st, const dibs__push *push,
                              dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_PUSH, deadline, &after, err);

    for (size_t i = 0; i < push->count; i++)
        push->items[i].id = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->push(fs->within, push, deadline, err);
    if (!after)
        return rc;
    for (size_t i = 0; i < push->count; i++)
        push->items[i].id = 0;
    return lose_answer(err);
}

static dibs_status
fault_reserve(dibs__store *st, dibs__reserve *ask, dibsx_nsec deadline,
              dibs__delivery_fn *each, void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_RESERVE, deadline, &after, err);

    ask->stamp = 0;
    ask->due_ms = -1;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->reserve(fs->within, ask, deadline,
                                             after ? drop_delivery : each, arg,
                                             err);
    if (!after)
        return rc;
    ask->stamp = 0;
    ask->due_ms = -1;
    for (size_t i = 0; i < ask->settle_count; i++)
        ask->settle[i].rc = DIBS_UNKNOWN;
    return lose_answer(err);
}

static dibs_status fault_tend(dibs__store *st, dibs__tend *items, size_t count,
                              dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_TEND, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->tend(fs->within, items, count, deadline,
                                          err);
    for (size_t i = 0; i < count && after; i++)
        items[i] = (dibs__tend){.queue = items[i].queue,
                                .lane = items[i].lane,
                                .span_ms = items[i].span_ms,
                                .rc = DIBS_UNKNOWN};
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_leave(dibs__store *st, const char *queue, uint64_t lane,
            dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_LEAVE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue->leave(fs->within, queue, lane, deadline,
                                           err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_set(dibs__store *st, const char *queue, uint32_t fields,
          const dibs__queue_conf *conf, dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_SET, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->set(fs->within, queue, fields, conf,
                                               deadline, err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_stats(dibs__store *st, const char *queue, dibsx_nsec deadline,
            dibs__queue_stats *out, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_STATS, deadline, err);

    memset(out, 0, sizeof(*out));
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->stats(fs->within, queue, deadline, out,
                                               err);
}

static dibs_status
fault_peek(dibs__store *st, const char *queue, dibs__item_place place,
           size_t skip, size_t max, dibsx_nsec deadline, dibs__item_fn *each,
           void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_PEEK, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->peek(fs->within, queue, place, skip,
                                              max, deadline, each, arg, err);
}

static dibs_status
fault_purge(dibs__store *st, const char *queue, uint32_t places, size_t max,
            dibsx_nsec deadline, size_t *purged, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_PURGE, deadline, &after, err);

    *purged = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->purge(fs->within, queue, places, max,
                                                 deadline, purged, err);
    if (!after)
        return rc;
    *purged = 0;
    return lose_answer(err);
}

static dibs_status
fault_redrive(dibs__store *st, const char *queue, uint64_t id, size_t max,
              dibsx_nsec deadline, size_t *redriven, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_REDRIVE, deadline, &after, err);

    *redriven = 0;
    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->redrive(fs->within, queue, id, max,
                                                   deadline, redriven, err);
    if (!after)
        return rc;
    *redriven = 0;
    return lose_answer(err);
}

static dibs_status fault_remove(dibs__store *st, const char *queue,
                                dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    bool after;
    dibs_status rc = begin_step(fs, DIBS__STEP_REMOVE, deadline, &after, err);

    if (rc == DIBS_OK)
        rc = fs->within->ops->queue_admin->remove(fs->within, queue, deadline,
                                                  err);
    return after ? lose_answer(err) : rc;
}

static dibs_status
fault_queues(dibs__store *st, const char *begins, const char *after, size_t max,
             dibsx_nsec deadline, dibs__queue_fn *each, void *arg,
             dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_QUEUES, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->queue_admin->list(fs->within, begins, after, max,
                                              deadline, each, arg, err);
}

static dibs_status fault_doorbell_open(dibs__store *st, dibsx_nsec deadline,
                                       int *fd, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_LISTEN, deadline, err);

    *fd = -1;
    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->doorbell_open(fs->within, deadline, fd, err);
}

static size_t
fault_doorbell_read(dibs__store *st, dibs__notice *notices, size_t max)
{
    fault_store *fs = fault_of(st);
    size_t heard = fs->within->ops->doorbell_read(fs->within, notices, max);
    bool after;

    if (heard == 0)
        return 0;
    if (begin_step(fs, DIBS__STEP_BELL, DIBSX_NEVER, &after, NULL) != DIBS_OK)
        return 0;
    if (!after)
        return heard;
    notices[0] = (dibs__notice){.kind = DIBS__NOTICE_MISSED};
    return 1;
}

static dibs_status fault_now(dibs__store *st, dibsx_nsec deadline,
                             int64_t *store_wall_us, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_NOW, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->now(fs->within, deadline, store_wall_us, err);
}

static dibs_status
fault_audit(dibs__store *st, dibsx_nsec deadline, dibs_finding_fn *each,
            void *arg, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_AUDIT, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return fs->within->ops->audit(fs->within, deadline, each, arg, err);
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *out <= INT64_MAX;
}

#define STEP_NAME(step, STEP) #STEP,

/* Letters of a list may be in capitals, those of a word may not. */
static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name(const char *word, const char *name)
{
    while (*word && *word == to_lower(*name)) {
        word++;
        name++;
    }
    return *word == '\0' && *name == '\0';
}

/* The index of the word in the list, or -1. */
static int find_word(const char *word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_name(word, words[i]))
            return (int)i;
    return -1;
}

/* Reads one parameter; *known is false when it is for the store within. */
static dibs_status read_param(fault_store *fs, const dibsx_url_param *param,
                              bool *known, dibs_error *err)
{
    static const char *const kinds[] = {"none", "fail", "drop_before",
                                        "drop_after"};
    static const char *const steps[] = {DIBS__FAULT_STEPS(STEP_NAME)};
    fault_rule *rule = &fs->rule;
    uint64_t number = 0;
    bool good = true;
    int index;

    *known = true;
    if (strcmp(param->key, "fault") == 0) {
        index = find_word(param->value, kinds, sizeof(kinds) / sizeof(*kinds));
        good = index >= 0;
        rule->fault.kind = good ? (dibs__fault_kind)index : DIBS__FAULT_NONE;
    } else if (strcmp(param->key, "step") == 0) {
        index = find_word(param->value, steps, DIBS__STEP_COUNT);
        good = index >= 0;
        rule->step = good ? (dibs__step)index : DIBS__STEP_COUNT;
    } else if (strcmp(param->key, "delay_ms") == 0) {
        good = read_number(param->value, &number);
        rule->fault.delay_ms = (int64_t)number;
    } else if (strcmp(param->key, "every") == 0) {
        good = read_number(param->value, &rule->every) && rule->every > 0;
    } else if (strcmp(param->key, "seed") == 0) {
        good = read_number(param->value, &fs->prng.state);
        rule->by_chance = true;
    } else {
        *known = false;
    }
    if (good)
        return DIBS_OK;
    return dibsx_fail(err, DIBS_INVALID, "%s=%.80s: there is no such fault",
                      param->key, param->value);
}

/* Makes the URL of the store within: `inner` borrows from `url`. */
static dibs_status read_url(fault_store *fs, const dibsx_url *url,
                            dibsx_url *inner, dibs_error *err)
{
    *inner = *url;
    inner->scheme += strlen(DIBS__FAULT_PREFIX);
    inner->param_count = 0;
    fs->rule.step = DIBS__STEP_COUNT;
    fs->rule.every = 1;
    for (size_t i = 0; i < url->param_count; i++) {
        bool known;
        dibs_status rc = read_param(fs, &url->params[i], &known, err);

        if (rc != DIBS_OK)
            return rc;
        if (!known)
            inner->params[inner->param_count++] = url->params[i];
    }
    return DIBS_OK;
}

static void fault_close(dibs__store *st)
{
    fault_store *fs = fault_of(st);

    if (fs->within)
        fs->within->ops->close(fs->within);
    pthread_mutex_destroy(&fs->mutex);
    dibsx_free(fs);
}

static dibs_status fault_open(const dibsx_url *url, dibsx_nsec deadline,
                              dibs__store **out, dibs_error *err)
{
    fault_store *fs = dibsx_zalloc(sizeof(*fs));
    dibsx_url inner;
    dibs_status rc;

    *out = NULL;
    if (!fs)
        return dibsx_nomem(err, "a store");
    fs->base.ops = &dibs__fault_ops;
    pthread_mutex_init(&fs->mutex, NULL);
    rc = read_url(fs, url, &inner, err);
    if (rc != DIBS_OK)
        goto out;
    rc = dibs__store_make_url(&inner, deadline, &fs->within, err);
    if (rc != DIBS_OK)
        goto out;
    *out = &fs->base;
    fs = NULL;
out:
    if (fs)
        fault_close(&fs->base);
    return rc;
}

static dibs_status
fault_reach(dibs__store *st, dibsx_nsec deadline, dibs_error *err)
{
    fault_store *fs = fault_of(st);
    dibs_status rc = begin_read(fs, DIBS__STEP_OPEN, deadline, err);

    if (rc != DIBS_OK)
        return rc;
    return dibs__store_reach(fs->within, deadline, err);
}

static bool fault_alarm(dibs__store *st, dibs_error *out)
{
    dibs__store *within = fault_of(st)->within;

    return within->ops->alarm && within->ops->alarm(within, out);
}

static const char *fault_cannot(const dibs__store *st, dibs__ability what)
{
    return dibs__store_cannot(((const fault_store *)(const void *)st)->within,
                              what);
}

#define MEMBER(step, STEP) .step = fault_##step,

static const dibs__lease_ops fault_lease = {DIBS__LEASE_STEPS(MEMBER)};

static const dibs__value_ops fault_value = {
    .get = fault_get,
    .heads = fault_heads,
    .put = fault_put,
    .add = fault_add,
    .del = fault_del,
    .list = fault_scan,
};

static const dibs__log_ops fault_log = {DIBS__LOG_STEPS(MEMBER)};

static const dibs__topic_ops fault_topic = {DIBS__TOPIC_STEPS(MEMBER)};

static const dibs__rate_ops fault_rate = {DIBS__RATE_STEPS(MEMBER)};

static const dibs__meter_ops fault_meter_ops = {DIBS__METER_STEPS(MEMBER)};
static const dibs__roster_ops fault_roster = {DIBS__ROSTER_STEPS(MEMBER)};
static const dibs__queue_ops fault_queue = {DIBS__QUEUE_STEPS(MEMBER)};
static const dibs__queue_admin_ops fault_queue_admin = {
    .set = fault_set,
    .stats = fault_stats,
    .peek = fault_peek,
    .purge = fault_purge,
    .redrive = fault_redrive,
    .remove = fault_remove,
    .list = fault_queues,
};

const dibs__store_ops dibs__fault_ops = {
    .scheme = "fault",
    .open = fault_open,
    .reach = fault_reach,
    .close = fault_close,
    .lease = &fault_lease,
    .value = &fault_value,
    .log = &fault_log,
    .topic = &fault_topic,
    .rate = &fault_rate,
    .meter = &fault_meter_ops,
    .roster = &fault_roster,
    .queue = &fault_queue,
    .queue_admin = &fault_queue_admin,
    .doorbell_open = fault_doorbell_open,
    .doorbell_read = fault_doorbell_read,
    .now = fault_now,
    .alarm = fault_alarm,
    .cannot = fault_cannot,
    .audit = fault_audit,
};
