/* find.c - finds the primary: asks the sentinels, and reports a change.
 *
 * Owns the list of sentinels and one connection to the one that answered last.
 * Any thread; one asks at a time. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/sentinel/find.h"
#include "base/cond.h"
#include "base/event.h"
#include "base/fail.h"
#include "store/redis/sentinel/parse.h"
#include "store/redis/wire/error.h"
#include "store/redis/wire/reply.h"
#include <string.h>

enum { PATIENCE_MAX_MS = 3200 };

const char *dibs__sentinel_name(const dibs__sentinel *sn)
{
    return sn->conf->primary;
}

/* Sentinels have passwords of their own, and no databases. */
static dibs_status
open_sentinel(const dibs__sentinel *sn, dibs__endpoint *endpoint, int abort_fd,
              dibsx_nsec deadline, dibs__conn **out, dibs_error *err)
{
    dibs__redis_conf sentinel_conf = *sn->conf;

    sentinel_conf.user = sn->conf->sentinel_user;
    sentinel_conf.password = sn->conf->sentinel_password;
    sentinel_conf.db = 0;
    sentinel_conf.primary = NULL;
    sentinel_conf.tls = sn->conf->tls && sn->conf->sentinel_tls;
    return dibs__conn_open_at(&sentinel_conf, endpoint, abort_fd, deadline, out,
                              err);
}

dibs_status
dibs__sentinel_open(dibs__sentinel *sn, size_t number, int abort_fd,
                    dibsx_nsec deadline, dibs__conn **out, dibs_error *err)
{
    dibs__endpoint endpoint = {.port = 0};

    *out = NULL;
    pthread_mutex_lock(&sn->mutex);
    if (number < sn->count)
        endpoint = sn->list[number];
    pthread_mutex_unlock(&sn->mutex);
    if (!endpoint.host[0])
        return DIBS_NOTFOUND;
    return open_sentinel(sn, &endpoint, abort_fd, deadline, out, err);
}

static dibs_status
ask_sentinel(dibs__conn *cn, const char *question, const char *name,
             dibsx_nsec deadline, redisReply **out, dibs_error *err)
{
    dibs__words words = {.count = 0};
    dibs_status rc;

    dibs__words_puts(&words, "SENTINEL");
    dibs__words_puts(&words, question);
    dibs__words_puts(&words, name);
    rc = dibs__conn_ask(cn, &words, deadline, out, err);
    if (rc == DIBS_OK && (*out)->type == REDIS_REPLY_ERROR) {
        rc = dibs__redis_fail((*out)->str, err);
        dibs__reply_free(*out);
        *out = NULL;
    }
    return rc == DIBS_UNKNOWN ? DIBS_UNAVAIL : rc;
}

/* DIBS_INVALID: this sentinel does not know the name. */
static dibs_status
ask_primary(const dibs__sentinel *sn, dibs__conn *cn, dibsx_nsec deadline,
            dibs__endpoint *out, dibs_error *err)
{
    const char *name = sn->conf->primary;
    redisReply *reply = NULL;
    dibs_status rc = ask_sentinel(cn, "get-master-addr-by-name", name, deadline,
                                  &reply, err);

    if (rc == DIBS_OK &&
        !dibs__sentinel_read_endpoint(dibs__reply_item(reply, 0),
                                      dibs__reply_item(reply, 1), out))
        rc =
            dibsx_fail(err, DIBS_INVALID,
                       "the sentinels know no servers by the name %.60s", name);
    dibs__reply_free(reply);
    return rc;
}

/* Locks: sn->mutex. */
static void add_sentinel(dibs__sentinel *sn, const dibs__endpoint *endpoint)
{
    for (size_t i = 0; i < sn->count; i++)
        if (dibs__endpoint_is(&sn->list[i], endpoint))
            return;
    if (sn->count < DIBS__SENTINELS_MAX)
        sn->list[sn->count++] = *endpoint;
}

/* Asks a sentinel for the others. A refusal does no harm. */
static void
learn_sentinels(dibs__sentinel *sn, dibs__conn *cn, dibsx_nsec deadline)
{
    redisReply *reply = NULL;
    const redisReply *item;

    if (ask_sentinel(cn, "sentinels", sn->conf->primary, deadline, &reply,
                     NULL) != DIBS_OK)
        return;
    pthread_mutex_lock(&sn->mutex);
    for (size_t i = 0; (item = dibs__reply_item(reply, i)) != NULL; i++) {
        dibs__endpoint endpoint;

        if (dibs__sentinel_read_endpoint(dibs__sentinel_field(item, "ip"),
                                         dibs__sentinel_field(item, "port"),
                                         &endpoint))
            add_sentinel(sn, &endpoint);
    }
    pthread_mutex_unlock(&sn->mutex);
    dibs__reply_free(reply);
}

/* Moves a sentinel that answered to the front: it is asked first the next
 * time. */
static void to_the_front(dibs__sentinel *sn, const dibs__endpoint *endpoint)
{
    size_t i = 0;

    pthread_mutex_lock(&sn->mutex);
    while (i < sn->count && !dibs__endpoint_is(&sn->list[i], endpoint))
        i++;
    if (i < sn->count) {
        memmove(&sn->list[1], &sn->list[0], i * sizeof(sn->list[0]));
        sn->list[0] = *endpoint;
    }
    pthread_mutex_unlock(&sn->mutex);
}

static dibsx_nsec limit_of(const dibs__sentinel *sn, dibsx_nsec deadline)
{
    dibsx_nsec limit = dibsx_after_ms(dibsx_now(), sn->patience_ms);

    return limit < deadline ? limit : deadline;
}

/* Asks one sentinel, on a new connection, which is kept when it answers. */
static dibs_status
ask_one(dibs__sentinel *sn, dibs__endpoint *endpoint, dibsx_nsec deadline,
        dibs__endpoint *out, dibs_error *err)
{
    dibsx_nsec limit = limit_of(sn, deadline);
    dibs__conn *cn = NULL;
    dibs_status rc = open_sentinel(sn, endpoint, -1, limit, &cn, err);

    if (rc == DIBS_OK)
        rc = ask_primary(sn, cn, limit, out, err);
    if (rc == DIBS_UNSUPPORTED)
        rc = dibsx_fail_at(err, DIBS_REFUSED, "ERR",
                           "%s:%d is no sentinel; name the sentinels (port "
                           "26379), or write redis:",
                           endpoint->host, endpoint->port);
    if (rc != DIBS_OK) {
        dibs__conn_close(cn);
        return rc;
    }
    sn->cn = cn;
    to_the_front(sn, endpoint);
    learn_sentinels(sn, cn, limit_of(sn, deadline));
    return DIBS_OK;
}

/* A sentinel that named a wrong primary may be behind the others, for good if
 * it is cut off from them: it is asked last. Runs on the asking thread. */
static void pass_over_doubted(dibs__sentinel *sn)
{
    dibs__endpoint first;

    pthread_mutex_lock(&sn->mutex);
    first = sn->list[0];
    if (sn->doubted && sn->cn) {
        memmove(&sn->list[0], &sn->list[1], (sn->count - 1) * sizeof(first));
        sn->list[sn->count - 1] = first;
        dibs__conn_close(sn->cn);
        sn->cn = NULL;
    }
    sn->doubted = false;
    pthread_mutex_unlock(&sn->mutex);
}

/* Asks the one that answered last, then all in order. If several fail, reports
 * a failure that time does not heal. Runs on the asking thread. */
static dibs_status ask_round(dibs__sentinel *sn, dibsx_nsec deadline,
                             dibs__endpoint *out, dibs_error *err)
{
    dibs__endpoint list[DIBS__SENTINELS_MAX];
    dibs_status worst = DIBS_OK;
    dibs_error why;
    size_t count;

    pass_over_doubted(sn);
    if (sn->cn &&
        ask_primary(sn, sn->cn, limit_of(sn, deadline), out, NULL) == DIBS_OK)
        return DIBS_OK;
    dibs__conn_close(sn->cn);
    sn->cn = NULL;
    pthread_mutex_lock(&sn->mutex);
    count = sn->count;
    memcpy(list, sn->list, sizeof(list));
    pthread_mutex_unlock(&sn->mutex);
    for (size_t i = 0; i < count && dibsx_now() < deadline; i++) {
        dibs_status rc = ask_one(sn, &list[i], deadline, out, &why);

        if (rc == DIBS_OK) {
            sn->patience_ms = DIBS__SENTINEL_PATIENCE_MS;
            return rc;
        }
        if (i == 0 || worst == DIBS_INVALID ||
            (worst == DIBS_UNAVAIL && rc != DIBS_INVALID)) {
            worst = dibsx_fail_at(err, rc, why.origin, "no sentinel helps: %s",
                                  why.message);
        }
    }
    if (sn->patience_ms < PATIENCE_MAX_MS)
        sn->patience_ms *= 2;
    if (worst == DIBS_OK)
        worst = dibsx_fail(err, DIBS_UNAVAIL, "no sentinel answers in time");
    return worst;
}

void dibs__sentinel_tell_moved(dibs__sentinel *sn)
{
    bool stopped;

    pthread_mutex_lock(&sn->mutex);
    atomic_fetch_add(&sn->moves, 1);
    stopped = sn->stopped;
    for (dibs__attempt *at = sn->attempts; at; at = at->next)
        if (at->abort_fd >= 0)
            dibsx_event_set(at->abort_fd);
    pthread_mutex_unlock(&sn->mutex);
    if (!stopped)
        sn->moved(sn->moved_arg);
}

void dibs__sentinel_heard(dibs__sentinel *sn, const dibs__endpoint *primary)
{
    bool another;

    pthread_mutex_lock(&sn->mutex);
    another = sn->primary.host[0] && !dibs__endpoint_is(&sn->primary, primary);
    sn->primary = *primary;
    pthread_mutex_unlock(&sn->mutex);
    if (another)
        dibs__sentinel_tell_moved(sn);
}

/* Waits until no thread is asking, or an answer has come that is newer than
 * `since`. False when the time was up. Locks: sn->mutex, let go while
 * waiting. */
static bool
await_turn(dibs__sentinel *sn, dibsx_nsec since, dibsx_nsec deadline)
{
    while (sn->asking && sn->answered_at < since) {
        if (dibsx_now() >= deadline)
            return false;
        dibsx_cond_wait(&sn->asked, &sn->mutex, deadline);
    }
    return true;
}

dibs_status dibs__sentinel_find(dibs__sentinel *sn, dibsx_nsec deadline,
                                dibs__endpoint *out, dibs_error *err)
{
    dibsx_nsec since = dibsx_now();
    bool mine = false, in_time;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&sn->mutex);
    in_time = await_turn(sn, since, deadline);
    if (sn->answered_at >= since)
        *out = sn->primary;
    else if (in_time)
        mine = sn->asking = true;
    else
        rc = dibsx_fail(err, DIBS_UNAVAIL, "no sentinel answers in time");
    pthread_mutex_unlock(&sn->mutex);
    if (!mine)
        return rc;
    rc = ask_round(sn, deadline, out, err);
    if (rc == DIBS_OK)
        dibs__sentinel_heard(sn, out);
    pthread_mutex_lock(&sn->mutex);
    sn->asking = false;
    if (rc == DIBS_OK)
        sn->answered_at = dibsx_now();
    pthread_cond_broadcast(&sn->asked);
    pthread_mutex_unlock(&sn->mutex);
    return rc;
}
