/* cluster_listener.c - one listener of a doorbell in a cluster: its thread and
 * its connection.
 *
 * Owns the connection. Other threads change its list of channels, and wake
 * it. */
/* SPDX-License-Identifier: MIT */
#include "store/redis/bell/cluster_listener.h"
#include "base/event.h"
#include "store/redis/bell/subscription.h"
#include <poll.h>
#include <stdio.h>

/* How long a listener without channels stays connected, and how long it hears
 * nothing before it offers the ordinary channel to another. */
enum { LINGER_MS = 1000, OFFER_MS = 2000 };

/* Sends a command about the channel of a slot. The reply comes like any
 * other. */
static dibs_status
send_slot_command(const dibs__cluster_listener *ls, dibs__conn *cn,
                  const char *command, int slot, dibs_error *err)
{
    char tag[DIBS__SLOT_TAG];
    char name[sizeof(DIBS__BELL_CHANNEL "{}:") + sizeof(tag) +
              DIBS__DOORBELL_ADDRESS];
    dibs__words words = {.count = 0};

    dibs__slot_tag(slot, tag);
    snprintf(name, sizeof(name), DIBS__BELL_CHANNEL "{%s}:%s", tag,
             ls->all->bell->base.address);
    dibs__words_puts(&words, command);
    dibs__words_puts(&words, name);
    return dibs__conn_tell(cn, &words,
                           dibsx_after_ms(dibsx_now(), DIBS__BELL_CONNECT_MS),
                           err);
}

/* Moves one channel of the listener from a stage to the next: its slot, -1 when
 * no channel is at that stage. */
static int
advance_channel(dibs__cluster_listener *ls, dibs__stage from, dibs__stage to)
{
    dibs__channel *ch;
    int slot = -1;

    pthread_mutex_lock(&ls->all->mutex);
    ch = dibs__slot_channels_at(&ls->all->channels,
                                dibs__cluster_listener_number(ls), from);
    if (ch) {
        ch->stage = to;
        slot = ch->slot;
    }
    pthread_mutex_unlock(&ls->all->mutex);
    return slot;
}

static void look_ahead(dibs__cluster_listener *ls)
{
    dibsx_nsec now = dibsx_now();
    bool plain, spare;

    pthread_mutex_lock(&ls->all->mutex);
    plain = dibs__cluster_listener_is_plain(ls);
    spare = !dibs__cluster_listener_has_channels(ls);
    ls->until = spare && !plain ? dibsx_after_ms(now, LINGER_MS) : 0;
    ls->offer_at = spare && plain ? dibsx_after_ms(now, OFFER_MS) : 0;
    pthread_mutex_unlock(&ls->all->mutex);
}

/* The moment at which the listener has something else to do. */
static dibsx_nsec
limit_of(const dibs__cluster_listener *ls, dibsx_nsec heard_at)
{
    if (ls->until > 0)
        return ls->until;
    if (ls->offer_at > 0)
        return ls->offer_at;
    return dibsx_after_ms(heard_at, DIBS__BELL_QUIET_MS);
}

/* Subscribes and unsubscribes as the list of channels demands. */
static dibs_status
catch_up(dibs__cluster_listener *ls, dibs__conn *cn, dibs_error *err)
{
    dibs__cluster_doorbell *cd = ls->all;
    dibs_status rc = DIBS_OK;
    bool changed, inherits;
    int slot;

    pthread_mutex_lock(&cd->mutex);
    changed = ls->changed;
    inherits = changed && cd->heir == ls;
    ls->changed = false;
    pthread_mutex_unlock(&cd->mutex);
    if (inherits)
        rc = dibs__subscription_tell(cd->bell->base.address, cn, err);
    while (changed && rc == DIBS_OK &&
           (slot = advance_channel(ls, DIBS__UNWANTED, DIBS__UNUSED)) >= 0)
        rc = send_slot_command(ls, cn, "SUNSUBSCRIBE", slot, err);
    while (changed && rc == DIBS_OK &&
           (slot = advance_channel(ls, DIBS__WANTED, DIBS__SENT)) >= 0)
        rc = send_slot_command(ls, cn, "SSUBSCRIBE", slot, err);
    if (changed && rc == DIBS_OK)
        rc = dibs__ears_catch_up(&cd->bell->ears,
                                 dibs__cluster_listener_number(ls), true, cn,
                                 err);
    if (changed)
        look_ahead(ls);
    return rc;
}

/* The listener has nothing to listen to. */
static bool is_done(const dibs__cluster_listener *ls)
{
    bool done;

    pthread_mutex_lock(&ls->all->mutex);
    done = ls->until > 0 && !ls->changed;
    pthread_mutex_unlock(&ls->all->mutex);
    return done;
}

/* Listens. DIBS_OK: it has nothing to listen to any more. DIBS_CANCELLED: the
 * thread must end. Other statuses: the connection is lost; so is one to a
 * server that left the cluster and gets no messages any more. */
static dibs_status
listen_on(dibs__cluster_listener *ls, dibs__conn *cn, dibs_error *err)
{
    dibs__cluster *cluster = ls->all->bell->cluster;
    dibsx_nsec heard_at = dibsx_now();
    bool asked = false;
    dibs_status rc;

    while ((rc = catch_up(ls, cn, err)) == DIBS_OK) {
        redisReply *reply = NULL;

        rc = dibs__conn_hear(cn, ls->wake_fd, limit_of(ls, heard_at), &reply,
                             err);
        if (rc == DIBS_OK) {
            dibs__cluster_listener_handle(ls, reply);
            dibs__reply_free(reply);
            heard_at = dibsx_now();
            if (ls->offer_at > 0)
                ls->offer_at = dibsx_after_ms(heard_at, OFFER_MS);
            asked = false;
        } else if (rc == DIBS_CANCELLED) {
            /* In this order: an event that was set to stop it must not be
             * cleared unseen. */
            dibsx_event_clear(ls->wake_fd);
            if (ls->all->stopping)
                return rc;
        } else if (rc == DIBS_TIMEOUT && is_done(ls)) {
            return DIBS_OK;
        } else if (rc == DIBS_TIMEOUT && ls->offer_at > 0) {
            ls->offer_at = 0;
            dibs__cluster_doorbell_offer(ls->all);
        } else if (rc == DIBS_TIMEOUT && !asked &&
                   dibs__cluster_has(cluster, &ls->endpoint)) {
            dibs__cluster_doorbell_forget_idle(ls->all);
            rc = dibs__subscription_ping(cn, err);
            if (rc != DIBS_OK)
                return rc;
            heard_at = dibsx_now();
            asked = true;
        } else {
            return rc;
        }
    }
    return rc;
}

/* The ordinary channel may be at any server; each attempt uses the next one. */
static dibs_status
choose_server(dibs__cluster_listener *ls, dibsx_nsec deadline, dibs_error *err)
{
    dibs__redis_doorbell *bell = ls->all->bell;
    dibs_status rc = dibs__cluster_learn(bell->cluster, deadline, err);
    dibs__endpoint endpoint;

    if (rc != DIBS_OK)
        return rc;
    dibs__cluster_next(bell->cluster, &endpoint);
    pthread_mutex_lock(&ls->all->mutex);
    ls->endpoint = endpoint;
    pthread_mutex_unlock(&ls->all->mutex);
    return DIBS_OK;
}

/* The ordinary channel, as on one server. */
static dibs_status
subscribe_plain(dibs__cluster_listener *ls, dibs__conn *cn, dibs_error *err)
{
    dibs__redis_doorbell *bell = ls->all->bell;
    dibs_status rc = dibs__subscription_ask(bell->base.address, cn, err);

    if (rc != DIBS_OK)
        return rc;
    dibs__doorbell_report(&bell->base, NULL);
    pthread_mutex_lock(&ls->all->mutex);
    ls->all->plain_heard = true;
    dibs__backoff_worked(&ls->bo);
    pthread_mutex_unlock(&ls->all->mutex);
    return DIBS_OK;
}

static dibs_status
connect_to(dibs__cluster_listener *ls, dibs__conn **out, dibs_error *err)
{
    dibs__redis_doorbell *bell = ls->all->bell;
    int64_t limit_ms = bell->connect.conf->connect_timeout_ms;
    bool plain = dibs__cluster_listener_is_plain(ls);
    dibs_status rc = DIBS_OK;
    dibsx_nsec deadline;

    if (limit_ms <= 0 || limit_ms > DIBS__BELL_CONNECT_MS)
        limit_ms = DIBS__BELL_CONNECT_MS;
    deadline = dibsx_after_ms(dibsx_now(), limit_ms);
    if (plain)
        rc = choose_server(ls, deadline, err);
    if (rc == DIBS_OK)
        rc = dibs__conn_open_at(bell->connect.conf, &ls->endpoint,
                                bell->base.stop_fd, deadline, out, err);
    if (rc == DIBS_OK && plain)
        rc = subscribe_plain(ls, *out, err);
    if (rc != DIBS_OK && plain)
        dibs__doorbell_report(&bell->base, err);
    return rc;
}

/* Cleans up after a connection, or after an attempt to make one. The endpoint
 * of a failed attempt is kept, so that it is not tried again at once. */
static void end_connection(dibs__cluster_listener *ls, dibs_status rc)
{
    dibs__cluster_doorbell *cd = ls->all;
    bool missed;

    pthread_mutex_lock(&cd->mutex);
    missed = dibs__slot_channels_drop(&cd->channels,
                                      dibs__cluster_listener_number(ls),
                                      DIBS__HEARD);
    (void)dibs__slot_channels_drop(&cd->channels,
                                   dibs__cluster_listener_number(ls),
                                   DIBS__UNUSED);
    cd->missed = cd->missed || missed;
    missed =
        dibs__ears_drop(&cd->bell->ears, dibs__cluster_listener_number(ls)) ||
        missed;
    if (rc != DIBS_OK)
        dibs__backoff_failed(&ls->bo, dibsx_now());
    if (rc == DIBS_OK || dibs__cluster_listener_is_plain(ls))
        ls->endpoint = (dibs__endpoint){.port = 0};
    if (cd->heir == ls)
        cd->heir = NULL;
    if (dibs__cluster_listener_is_plain(ls))
        cd->plain_heard = false;
    ls->busy = false;
    pthread_mutex_unlock(&cd->mutex);
    if (missed)
        dibs__doorbell_missed(&cd->bell->base);
    if (rc != DIBS_OK)
        dibs__cluster_doubt(cd->bell->cluster);
}

/* One connection from its beginning to its end. */
static void serve_connection(dibs__cluster_listener *ls)
{
    dibs_error err = {0};
    dibs__conn *cn = NULL;
    dibs_status rc = connect_to(ls, &cn, &err);

    if (rc == DIBS_OK)
        rc = listen_on(ls, cn, &err);
    end_connection(ls, rc);
    dibs__conn_close(cn);
}

/* Whether there is something to listen to. */
static bool set_out(dibs__cluster_listener *ls)
{
    bool busy;

    pthread_mutex_lock(&ls->all->mutex);
    ls->busy = dibs__cluster_listener_is_plain(ls) ||
               dibs__cluster_listener_has_channels(ls);
    ls->changed = ls->busy;
    busy = ls->busy;
    pthread_mutex_unlock(&ls->all->mutex);
    return busy;
}

/* The listener of the ordinary channel waits until its next attempt is due, the
 * others until they are woken. */
static void wait_for_work(const dibs__cluster_listener *ls)
{
    bool plain = dibs__cluster_listener_is_plain(ls);
    struct pollfd fd = {.fd = plain ? ls->all->bell->base.stop_fd : ls->wake_fd,
                        .events = POLLIN};
    int64_t span_ms = plain ? dibsx_wait_ms(ls->bo.due_at, dibsx_now()) : -1;

    (void)poll(&fd, 1, (int)span_ms);
    if (!plain)
        dibsx_event_clear(ls->wake_fd);
}

void *dibs__cluster_listener_main(void *arg)
{
    dibs__cluster_listener *ls = arg;

    while (!ls->all->stopping) {
        if (set_out(ls))
            serve_connection(ls);
        if (!ls->all->stopping)
            wait_for_work(ls);
    }
    return NULL;
}
