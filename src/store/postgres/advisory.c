/* advisory.c - advisory locks beside the leases; see advisory.h.
 *
 * Owns the session and the list of owners that hold advisory locks through it. Any thread; the session
 * is asked under the mutex, within the deadline of the step.
 *
 *  1. A holder has both: it gets the lease first, then the advisory lock. A waiter
 *     that got the lease alone keeps it as its place in the queue, and asks again; a
 *     caller that only tried gives it back.
 *  2. The advisory lock is given back before the lease.
 *  3. A grant by hand-off counts when its owner has asked: a notice only says that it
 *     should ask.
 *  4. When the session has ended, all advisory locks held through it are lost.
 *  5. When a lease has ended in the store, a thread gives back its advisory lock. The
 *     holder has ceased to believe by then: belief ends earlier. */
/* SPDX-License-Identifier: MIT */
#include "store/postgres/advisory.h"
#include "base/alloc.h"
#include "base/cond.h"
#include "base/fail.h"
#include "base/thread.h"
#include "store/postgres/advisory_key.h"
#include "store/postgres/step.h"
#include <stdio.h>
#include <string.h>

/* How soon the next waiter asks again whether the advisory lock is free: there is no
 * notice of that. And how long the thread waits for the session to give one back. */
enum { AGAIN_MS = 100, GIVE_BACK_MS = 5000, SQL_MAX = 160 };

typedef struct dibs__pg_hold {
    struct dibs__pg_hold *next;
    char owner[DIBS_OWNER_SIZE];
    dibs__advkey key;
    dibsx_nsec lease_until; /* when the lease has ended in the store as well */
    bool shared;
    bool lost; /* with the session */
} dibs__pg_hold;

void dibs__pg_advisory_init(dibs__pg_advisory *adv, const dibs__pg_conf *conf)
{
    *adv = (dibs__pg_advisory){.conf = conf};
    pthread_mutex_init(&adv->mutex, NULL);
    (void)dibsx_cond_init(&adv->changed);
}

static void end_thread(dibs__pg_advisory *adv)
{
    if (!adv->running)
        return;
    pthread_mutex_lock(&adv->mutex);
    adv->stopping = true;
    pthread_cond_signal(&adv->changed);
    pthread_mutex_unlock(&adv->mutex);
    pthread_join(adv->thread, NULL);
}

void dibs__pg_advisory_fini(dibs__pg_advisory *adv)
{
    end_thread(adv);
    while (adv->holds) {
        dibs__pg_hold *hold = adv->holds;

        adv->holds = hold->next;
        dibsx_free(hold);
    }
    dibs__pg_conn_close(adv->session);
    pthread_cond_destroy(&adv->changed);
    pthread_mutex_destroy(&adv->mutex);
}

/* Locks: adv->mutex. */
static void end_session(dibs__pg_advisory *adv)
{
    dibs__pg_conn_close(adv->session);
    adv->session = NULL;
    for (dibs__pg_hold *hold = adv->holds; hold; hold = hold->next)
        hold->lost = true;
}

/* Locks: adv->mutex. */
static dibs_status
begin_session(dibs__pg_advisory *adv, dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc;

    if (adv->session && !dibs__pg_conn_lives(adv->session))
        end_session(adv);
    if (adv->session)
        return DIBS_OK;
    rc = dibs__pg_conn_open(adv->conf, DIBS__PG_FOR_LISTEN, deadline,
                            &adv->session, err);
    if (rc == DIBS_OK && adv->session->pooled) {
        end_session(adv);
        return dibsx_fail(err, DIBS_REFUSED,
                          "advisory=1 needs a session, and a pooler is in "
                          "between; name the server itself with listen_host= "
                          "and listen_port=");
    }
    return rc;
}

dibs_status dibs__pg_advisory_reach(dibs__pg_advisory *adv, dibsx_nsec deadline,
                                    dibs_error *err)
{
    dibs_status rc;

    pthread_mutex_lock(&adv->mutex);
    rc = begin_session(adv, deadline, err);
    pthread_mutex_unlock(&adv->mutex);
    return rc;
}

/* Asks the session what is true or false. Locks: adv->mutex. */
static dibs_status ask_session(dibs__pg_advisory *adv, const char *sql,
                               dibsx_nsec deadline, bool *yes, dibs_error *err)
{
    PGresult *rows = NULL;
    dibs_status rc = dibs__pg_conn_run(adv->session, sql, deadline, &rows, err);

    *yes = rc == DIBS_OK && dibs__pq.PQntuples(rows) == 1 &&
           *dibs__pg_text(rows, 0, 0) == 't';
    dibs__pq.PQclear(rows);
    if (adv->session->dead)
        end_session(adv);
    return rc;
}

/* Locks: adv->mutex. */
static dibs__pg_hold **find_hold(dibs__pg_advisory *adv, const char *owner)
{
    dibs__pg_hold **at = &adv->holds;

    while (*at && strcmp((*at)->owner, owner) != 0)
        at = &(*at)->next;
    return at;
}

/* Locks: adv->mutex. */
static void drop_hold(dibs__pg_hold **at)
{
    dibs__pg_hold *hold = *at;

    *at = hold->next;
    dibsx_free(hold);
}

/* DIBS_BUSY: another session has it. */
static dibs_status lock_key(dibs__pg_advisory *adv, dibs__pg_hold *hold,
                            dibsx_nsec deadline, dibs_error *err)
{
    char sql[SQL_MAX], key[DIBS__ADVKEY_TEXT];
    dibs_status rc;
    bool got;

    dibs__advkey_text(hold->key, key);
    snprintf(sql, sizeof(sql), "SELECT pg_try_advisory_lock%s(%s)",
             hold->shared ? "_shared" : "", key);
    rc = ask_session(adv, sql, deadline, &got, err);
    return rc == DIBS_OK && !got ? DIBS_BUSY : rc;
}

/* Locks: adv->mutex. */
static void unlock_key(dibs__pg_advisory *adv, const dibs__pg_hold *hold,
                       dibsx_nsec deadline)
{
    char sql[SQL_MAX], key[DIBS__ADVKEY_TEXT];
    bool was;

    if (!adv->session || hold->lost)
        return;
    dibs__advkey_text(hold->key, key);
    snprintf(sql, sizeof(sql), "SELECT pg_advisory_unlock%s(%s)",
             hold->shared ? "_shared" : "", key);
    /* If that fails, the end of the session gives it back. */
    if (ask_session(adv, sql, deadline, &was, NULL) != DIBS_OK && adv->session)
        end_session(adv);
}

/* The hold whose lease ends first. Locks: adv->mutex. */
static dibs__pg_hold **first_to_end(dibs__pg_advisory *adv)
{
    dibs__pg_hold **first = &adv->holds;

    for (dibs__pg_hold **at = first; *at; at = &(*at)->next)
        if ((*at)->lease_until < (*first)->lease_until)
            first = at;
    return first;
}

/* Gives back what has run out, until the handle is closed. */
static void *give_back_main(void *arg)
{
    dibs__pg_advisory *adv = arg;

    pthread_mutex_lock(&adv->mutex);
    while (!adv->stopping) {
        dibs__pg_hold **at = first_to_end(adv);
        dibsx_nsec now = dibsx_now();

        if (!*at) {
            pthread_cond_wait(&adv->changed, &adv->mutex);
        } else if ((*at)->lease_until > now) {
            dibsx_cond_wait(&adv->changed, &adv->mutex, (*at)->lease_until);
        } else {
            unlock_key(adv, *at, dibsx_after_ms(now, GIVE_BACK_MS));
            drop_hold(at);
        }
    }
    pthread_mutex_unlock(&adv->mutex);
    return NULL;
}

/* Makes sure of a session and of the thread. Locks: adv->mutex. */
static dibs_status
be_ready(dibs__pg_advisory *adv, dibsx_nsec deadline, dibs_error *err)
{
    if (!adv->running)
        adv->running =
            dibsx_thread_start(&adv->thread, give_back_main, adv) == 0;
    if (!adv->running)
        return dibsx_nomem(err, "cannot start the thread for advisory locks");
    return begin_session(adv, deadline, err);
}

/* A hold for an owner that has none. Locks: adv->mutex. */
static dibs_status add_hold(dibs__pg_advisory *adv, const dibs__ask *ask,
                            dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_hold *hold = dibsx_zalloc(sizeof(*hold));
    dibs_status rc;

    if (!hold)
        return dibsx_nomem(err, "an advisory lock");
    snprintf(hold->owner, sizeof(hold->owner), "%s", ask->owner);
    hold->key = dibs__advkey_of(ask->name);
    hold->shared = ask->mode == DIBS__SHARED;
    rc = lock_key(adv, hold, deadline, err);
    if (rc != DIBS_OK) {
        dibsx_free(hold);
        return rc;
    }
    hold->next = adv->holds;
    adv->holds = hold;
    return DIBS_OK;
}

/* Takes the advisory lock for an owner that has the lease, until the moment when
 * that ends. */
static dibs_status
hold_key(dibs__pg_advisory *adv, const dibs__ask *ask, dibsx_nsec lease_until,
         dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_hold **at;
    dibs_status rc;

    pthread_mutex_lock(&adv->mutex);
    rc = be_ready(adv, deadline, err);
    at = find_hold(adv, ask->owner);
    if (rc == DIBS_OK && *at && (*at)->lost)
        drop_hold(at);
    if (rc == DIBS_OK && !*find_hold(adv, ask->owner))
        rc = add_hold(adv, ask, deadline, err);
    if (rc == DIBS_OK) {
        (*find_hold(adv, ask->owner))->lease_until = lease_until;
        pthread_cond_signal(&adv->changed);
    }
    pthread_mutex_unlock(&adv->mutex);
    return rc;
}

static void
drop_key(dibs__pg_advisory *adv, const char *owner, dibsx_nsec deadline)
{
    dibs__pg_hold **at;

    pthread_mutex_lock(&adv->mutex);
    at = find_hold(adv, owner);
    if (*at) {
        unlock_key(adv, *at, deadline);
        drop_hold(at);
    }
    pthread_mutex_unlock(&adv->mutex);
}

/* Gives back the lease of an owner that cannot have the advisory lock. */
static bool
return_lease(struct dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline)
{
    dibs__leave leave = {.name = ask->name, .owner = ask->owner};
    dibs_status rc = dibs__pg_release(st, &leave, deadline, NULL);

    return rc == DIBS_OK || rc == DIBS_LOST;
}

/* The owner has the lease, another session the advisory lock. */
static dibs_status
refuse_key(struct dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
           dibs__answer *ans, dibs_error *err)
{
    bool queue = (ask->flags & DIBS__ASK_QUEUE) != 0;

    if (!queue && !return_lease(st, ask, deadline))
        return dibsx_fail(err, DIBS_UNKNOWN,
                          "another has the advisory lock, and the lease could "
                          "not be given back");
    ans->queued = queue;
    ans->claim = false;
    ans->left_ms = AGAIN_MS;
    ans->ahead = 0;
    return dibsx_fail(err, DIBS_BUSY,
                      "`" DIBS__NAME_SHOWN "` is held by an advisory lock of "
                      "another program",
                      ask->name);
}

static dibs_status
advised_acquire(struct dibs__store *st, const dibs__ask *ask,
                dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    dibs__pg *pg = dibs__pg_of(st);
    dibs_error why = {0};
    dibs_status rc;

    if (ask->mode == DIBS__PERMITS)
        return dibsx_fail(err, DIBS_UNSUPPORTED,
                          "permits have no advisory lock; open the store "
                          "without advisory=1 for them");
    rc = dibs__pg_acquire(st, ask, deadline, ans, err);
    if (rc != DIBS_OK)
        return rc;
    rc = hold_key(&pg->advisory, ask, dibsx_after_ms(dibsx_now(), ans->left_ms),
                  deadline, &why);
    if (rc == DIBS_OK)
        return DIBS_OK;
    if (rc == DIBS_BUSY)
        return refuse_key(st, ask, deadline, ans, err);
    /* A refusal says that nothing has changed. */
    if (rc != DIBS_REFUSED || !return_lease(st, ask, deadline))
        rc = DIBS_UNKNOWN;
    return dibsx_fail_at(err, rc, why.origin,
                         "cannot take the advisory lock: %s", why.message);
}

static dibs_status
advised_release(struct dibs__store *st, const dibs__leave *leave,
                dibsx_nsec deadline, dibs_error *err)
{
    drop_key(&dibs__pg_of(st)->advisory, leave->owner, deadline);
    return dibs__pg_release(st, leave, deadline, err);
}

/* A session that answers still has its locks. */
static void prove_session(dibs__pg_advisory *adv, dibsx_nsec deadline)
{
    bool yes;

    pthread_mutex_lock(&adv->mutex);
    if (adv->session &&
        (!dibs__pg_conn_lives(adv->session) ||
         ask_session(adv, "SELECT true", deadline, &yes, NULL) != DIBS_OK) &&
        adv->session)
        end_session(adv);
    pthread_mutex_unlock(&adv->mutex);
}

/* Checks the advisory lock of a renewed lease. An unknown one was given back
 * meanwhile, or belongs to another handle. */
static void
judge_renewal(struct dibs__store *st, dibs__renewal *item, dibsx_nsec deadline)
{
    dibs__pg_advisory *adv = &dibs__pg_of(st)->advisory;
    dibs__leave leave = {.name = item->name, .owner = item->owner};
    dibs__pg_hold *hold;
    bool known, lost;
    dibs_status rc;

    pthread_mutex_lock(&adv->mutex);
    hold = *find_hold(adv, item->owner);
    known = hold != NULL;
    lost = known && hold->lost;
    if (known)
        hold->lease_until = dibsx_after_ms(dibsx_now(), item->left_ms);
    pthread_mutex_unlock(&adv->mutex);
    if (known && !lost)
        return;
    item->rc = DIBS_LOST;
    if (!lost)
        return;
    /* If that fails, the lease ends by itself. */
    rc = dibs__pg_release(st, &leave, deadline, NULL);
    (void)rc;
}

static dibs_status
advised_renew(struct dibs__store *st, dibs__renewal *items, size_t count,
              dibsx_nsec deadline, dibs_error *err)
{
    dibs__pg_advisory *adv = &dibs__pg_of(st)->advisory;
    dibs_status rc;

    prove_session(adv, deadline);
    rc = dibs__pg_renew(st, items, count, deadline, err);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (items[i].rc == DIBS_LOST)
            drop_key(adv, items[i].owner, deadline);
        else if (items[i].rc == DIBS_OK)
            judge_renewal(st, &items[i], deadline);
    }
    return DIBS_OK;
}

static dibs_status
advised_convert(struct dibs__store *st, const dibs__conversion *conversion,
                dibsx_nsec deadline, dibs__answer *ans, dibs_error *err)
{
    (void)st;
    (void)conversion;
    (void)deadline;
    memset(ans, 0, sizeof(*ans));
    return dibsx_fail(err, DIBS_UNSUPPORTED, "%s", DIBS__PG_NO_CONVERSION);
}

/* The core acquires sets of names one by one. */
const dibs__lease_ops dibs__pg_advised_ops = {
    .acquire = advised_acquire,
    .renew = advised_renew,
    .release = advised_release,
    .convert = advised_convert,
    .yield = dibs__pg_yield,
    .inspect = dibs__pg_inspect,
    .list = dibs__pg_list,
    .revoke = dibs__pg_revoke,
};

size_t
dibs__pg_advised_hear(struct dibs__store *st, dibs__notice *notices, size_t max)
{
    size_t count =
        dibs__pg_doorbell_read(&dibs__pg_of(st)->doorbell, notices, max);

    for (size_t i = 0; i < count; i++)
        if (notices[i].kind == DIBS__NOTICE_GRANTED)
            notices[i].kind = DIBS__NOTICE_MISSED;
    return count;
}
