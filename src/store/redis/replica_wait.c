/* replica_wait.c - steps that count only once replicas have acknowledged them.
 *
 * Owns the connections that are kept, and knows the borrowed ones, so that all
 * can be dropped. Any thread. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/replica_wait.h"
#include "base/fail.h"
#include "store/redis/wire/error.h"
#include "store/redis/wire/reply.h"
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* The longest wait for replicas. They are milliseconds behind, or they are
 * gone. */
enum { PATIENCE_MS = 1000 };

void dibs__replica_wait_init(dibs__replica_wait *rw,
                             const dibs__redis_conf *conf)
{
    memset(rw, 0, sizeof(*rw));
    rw->conf = conf;
    pthread_mutex_init(&rw->mutex, NULL);
    if (!dibsx_random(&rw->jitter, sizeof(rw->jitter)))
        rw->jitter.state = (uint64_t)dibsx_now();
}

void dibs__replica_wait_fini(dibs__replica_wait *rw)
{
    dibs__replica_wait_drop(rw);
    pthread_mutex_destroy(&rw->mutex);
}

void dibs__replica_wait_drop(dibs__replica_wait *rw)
{
    pthread_mutex_lock(&rw->mutex);
    while (rw->count > 0)
        dibs__conn_close(rw->kept[--rw->count].cn);
    for (dibs__loan *loan = rw->loans; loan; loan = loan->next) {
        loan->dropped = true;
        dibs__conn_sever(loan->cn);
    }
    pthread_mutex_unlock(&rw->mutex);
}

/* From here on dibs__replica_wait_drop() finds it. Locks: rw->mutex. */
static void lend_conn(dibs__replica_wait *rw, dibs__conn *cn, dibs__loan *loan)
{
    loan->cn = cn;
    loan->next = rw->loans;
    rw->loans = loan;
}

/* Lends a kept connection to the endpoint of the loan that the server has not
 * closed, if there is one. */
static void lend_kept(dibs__replica_wait *rw, dibs__loan *loan)
{
    pthread_mutex_lock(&rw->mutex);
    for (size_t i = rw->count; i-- > 0 && !loan->cn;) {
        dibs__conn *cn = rw->kept[i].cn;

        if (!dibs__endpoint_is(&rw->kept[i].endpoint, &loan->endpoint))
            continue;
        rw->kept[i] = rw->kept[--rw->count];
        if (dibs__conn_gone(cn))
            dibs__conn_close(cn);
        else
            lend_conn(rw, cn, loan);
    }
    pthread_mutex_unlock(&rw->mutex);
}

/* False when the deadline comes first. */
static bool pause_before(dibs__replica_wait *rw, dibsx_nsec deadline)
{
    uint64_t bound = DIBS__SENTINEL_PAUSE / DIBSX_MS;
    int64_t span_ms;

    pthread_mutex_lock(&rw->mutex);
    span_ms = (int64_t)dibsx_prng_below(&rw->jitter, bound) + 1;
    pthread_mutex_unlock(&rw->mutex);
    if (dibsx_after_ms(dibsx_now(), span_ms) >= deadline)
        return false;
    (void)poll(NULL, 0, (int)span_ms);
    return true;
}

/* Lends a new one. While sentinels choose a primary, it waits for one, as a
 * pipeline does. If the last one was demoted, it reports that once. */
static dibs_status
lend_new(dibs__replica_wait *rw, const dibs__endpoint *endpoint, bool demoted,
         dibsx_nsec deadline, dibs__loan *loan, dibs_error *err)
{
    dibs__connect ct = {.conf = rw->conf,
                        .sentinel = rw->sentinel,
                        .endpoint = endpoint};
    dibsx_nsec since = dibsx_now();
    dibs__conn *cn = NULL;
    dibs_status rc;

    do {
        rc = dibs__connect_open(&ct, demoted, deadline, &cn, err);
        demoted = false;
    } while (dibs__connect_is_worth_a_wait(&ct, rc, since, dibsx_now()) &&
             pause_before(rw, deadline));
    if (rc == DIBS_OK) {
        pthread_mutex_lock(&rw->mutex);
        lend_conn(rw, cn, loan);
        loan->dropped = dibs__connect_has_moved(&ct);
        if (loan->dropped)
            dibs__conn_sever(cn);
        pthread_mutex_unlock(&rw->mutex);
    }
    dibs__connect_fini(&ct);
    return rc;
}

/* Borrows a connection; `endpoint` is NULL where there is no cluster. */
static dibs_status
borrow_conn(dibs__replica_wait *rw, const dibs__endpoint *endpoint,
            bool demoted, dibsx_nsec deadline, dibs__loan *loan,
            dibs_error *err)
{
    *loan = (dibs__loan){.rw = rw};
    if (endpoint)
        loan->endpoint = *endpoint;
    if (!demoted)
        lend_kept(rw, loan);
    return loan->cn ? DIBS_OK
                    : lend_new(rw, endpoint, demoted, deadline, loan, err);
}

/* When there is no room, it replaces another one, which it returns. Locks:
 * rw->mutex. */
static dibs__conn *keep_conn(dibs__replica_wait *rw, const dibs__loan *loan)
{
    dibs__conn *gone = NULL;
    size_t at = 0;

    if (rw->count < DIBS__REPLICA_WAIT_KEPT)
        at = rw->count++;
    else
        gone = rw->kept[at].cn;
    rw->kept[at].cn = loan->cn;
    rw->kept[at].endpoint = loan->endpoint;
    return gone;
}

void dibs__replica_wait_done(dibs__loan *loan)
{
    dibs__replica_wait *rw = loan->rw;
    dibs__conn *gone = loan->cn;
    dibs__loan **next;

    if (!loan->cn)
        return;
    pthread_mutex_lock(&rw->mutex);
    for (next = &rw->loans; *next != loan;)
        next = &(*next)->next;
    *next = loan->next;
    if (!loan->failed && !loan->dropped)
        gone = keep_conn(rw, loan);
    pthread_mutex_unlock(&rw->mutex);
    dibs__conn_close(gone);
    loan->cn = NULL;
}

/* A step that is being sent. */
typedef struct replica_step {
    dibs__replica_wait *rw;
    dibs__script script;
    dibs__words *words;
    dibs__loan *shared; /* NULL: none */
    dibs__loan *loan;
    bool demoted; /* the last connection proved to be to a replica */
} replica_step;

static bool leads_to(dibs__loan *shared, const dibs__endpoint *endpoint)
{
    bool leads;

    if (!shared || !shared->cn || shared->failed)
        return false;
    pthread_mutex_lock(&shared->rw->mutex);
    leads = !shared->dropped &&
            (!endpoint || dibs__endpoint_is(&shared->endpoint, endpoint));
    pthread_mutex_unlock(&shared->rw->mutex);
    return leads;
}

/* As dibs__carry_fn: sends it to a server, or to another. */
static dibs_status
carry_script(void *arg, const dibs__endpoint *endpoint, bool asking,
             dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    const replica_step *rs = arg;
    dibs__loan *on = rs->loan;
    dibs_status rc = DIBS_OK;

    dibs__replica_wait_done(rs->loan);
    if (!rs->demoted && leads_to(rs->shared, endpoint))
        on = rs->shared;
    else
        rc = borrow_conn(rs->rw, endpoint, rs->demoted, deadline, on, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs__script_send_on(on->cn, asking, rs->script, rs->words, deadline,
                              out, err);
    on->failed = rc != DIBS_OK;
    return rc;
}

/* The new primary has no replicas yet, which is seen before anything is done. */
static bool lacks_replicas(const dibs__replica_wait *rw, const dibs_error *why)
{
    return rw->sentinel && strcmp(why->origin, "NOREPLICAS") == 0;
}

static dibs_status run_step(replica_step *rs, dibsx_nsec deadline,
                            redisReply **out, dibs_error *err)
{
    dibs__replica_wait *rw = rs->rw;
    dibs__loan *loan = rs->loan;
    dibs_error why;
    dibs_status rc;

    *loan = (dibs__loan){.rw = rw};
    do {
        why = (dibs_error){0};
        rc = dibs__script_carry(rw->route, rs->words, carry_script, rs,
                                deadline, out, &why);
        if (rc == DIBS_OK)
            return rc;
        /* The connection to a server that cannot run it is not kept. */
        loan->failed = loan->failed || rc == DIBS_UNAVAIL;
        dibs__replica_wait_done(loan);
        rs->demoted = rw->sentinel && strcmp(why.origin, "READONLY") == 0;
    } while ((rs->demoted || lacks_replicas(rw, &why)) &&
             pause_before(rw, deadline));
    return dibsx_fail_at(err, rc, why.origin, "%s", why.message);
}

dibs_status
dibs__replica_wait_run(dibs__replica_wait *rw, dibs__script script,
                       dibs__words *words, dibsx_nsec deadline,
                       dibs__loan *loan, redisReply **out, dibs_error *err)
{
    replica_step rs = {.rw = rw,
                       .script = script,
                       .words = words,
                       .loan = loan};

    return run_step(&rs, deadline, out, err);
}

dibs_status
dibs__replica_wait_run_on(dibs__loan *shared, dibs__script script,
                          dibs__words *words, dibsx_nsec deadline,
                          dibs__loan *loan, redisReply **out, dibs_error *err)
{
    replica_step rs = {.rw = shared->rw,
                       .script = script,
                       .words = words,
                       .shared = shared,
                       .loan = loan};

    return run_step(&rs, deadline, out, err);
}

dibs_status
dibs__replica_wait_wait(dibs__loan *loan, uint32_t replicas, int64_t limit_ms,
                        dibsx_nsec deadline, uint32_t *acked, dibs_error *err)
{
    char numbers[2][24];
    redisReply *reply = NULL;
    dibs__words words = {.count = 0};
    int64_t count = 0;
    dibs_status rc;

    *acked = 0;
    snprintf(numbers[0], sizeof(numbers[0]), "%u", (unsigned)replicas);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRId64, limit_ms);
    dibs__words_puts(&words, "WAIT");
    dibs__words_puts(&words, numbers[0]);
    dibs__words_puts(&words, numbers[1]);
    rc = dibs__conn_ask(loan->cn, &words, deadline, &reply, err);
    if (rc != DIBS_OK) {
        loan->failed = true;
        return DIBS_UNKNOWN;
    }
    if (reply->type == REDIS_REPLY_ERROR)
        rc = dibs__redis_fail(reply->str, err);
    else if (!dibs__reply_int(reply, &count) || count < 0 || count > UINT32_MAX)
        rc = dibs__reply_odd(err);
    dibs__reply_free(reply);
    if (rc == DIBS_OK)
        *acked = (uint32_t)count;
    return rc;
}

int64_t dibs__replica_wait_patience_ms(int64_t ttl_ms, dibsx_nsec deadline)
{
    int64_t limit_ms = dibsx_wait_ms(deadline, dibsx_now()) / 2;

    if (limit_ms > ttl_ms / 4)
        limit_ms = ttl_ms / 4;
    if (limit_ms > PATIENCE_MS)
        limit_ms = PATIENCE_MS;
    return limit_ms > 1 ? limit_ms : 1;
}
