/* worker_breaker.c - a worker calls a service behind the breaker, and writes down what
 * its client asks the store for meanwhile: permits of probes, and changes of the state.
 *
 * The steps of the store are tapped, because no public call says which version a change
 * replaced, or when a permit was free again. They run on any thread of the client. */
/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include "coord/breaker.h"
#include "core/client.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { SPELL_MS = 500, RECOVERY_MS = 100, SAMPLING_MS = 2000 };

/* More than a client has permits at a time. */
enum { PERMITS = 4 * DIBS__BREAKER_PERMITS };

#define BREAKER "chaos-breaker"
#define KEY     "dibs.breaker/" BREAKER

static struct {
    worker *wk;
    const dibs__store_ops *real;
    dibs__store_ops ops;
    dibs__lease_ops lease;
    dibs__value_ops value;
    _Atomic(record *) permits[PERMITS]; /* the latest that were asked for */
    atomic_uint asked;
} tap;

static record *begin_if(const char *key, operation op)
{
    return strcmp(key, KEY) == 0 ? worker_begin(tap.wk, op, 0) : NULL;
}

static dibs_status
tap_put(dibs__store *st, const dibs__put *put, dibsx_nsec deadline,
        uint64_t *version, dibs_error *err)
{
    record *rec = begin_if(put->key, OP_CHANGE);
    dibs_status rc;

    if (rec) {
        rec->expected = put->expected;
        rec->value = put->len > 0 && *(const char *)put->data == 'o'
                         ? SEEN_OPEN
                         : SEEN_CLOSED;
    }
    rc = tap.real->value->put(st, put, deadline, version, err);
    if (rec) {
        rec->fence = rc == DIBS_OK ? *version : 0;
        worker_end(tap.wk, rec, rc);
    }
    return rc;
}

static dibs_status
tap_acquire(dibs__store *st, const dibs__ask *ask, dibsx_nsec deadline,
            dibs__answer *ans, dibs_error *err)
{
    record *rec = begin_if(ask->name, OP_PERMIT);
    dibs_status rc;

    if (rec) {
        snprintf(rec->owner, sizeof(rec->owner), "%s", ask->owner);
        atomic_store(&tap.permits[atomic_fetch_add(&tap.asked, 1) % PERMITS],
                     rec);
    }
    rc = tap.real->lease->acquire(st, ask, deadline, ans, err);
    if (rec)
        worker_end(tap.wk, rec, rc);
    return rc;
}

static dibs_status tap_release(dibs__store *st, const dibs__leave *leave,
                               dibsx_nsec deadline, dibs_error *err)
{
    dibs_status rc = tap.real->lease->release(st, leave, deadline, err);

    for (size_t i = 0; strcmp(leave->name, KEY) == 0 && i < PERMITS; i++) {
        record *rec = atomic_load(&tap.permits[i]);

        if (rec && (rc == DIBS_OK || rc == DIBS_LOST) &&
            strcmp(rec->owner, leave->owner) == 0)
            rec->released_ns = now_ns();
    }
    return rc;
}

void worker_breaker_tap(worker *wk)
{
    dibs__store *st = wk->cl->st;

    tap.wk = wk;
    tap.real = st->ops;
    tap.ops = *st->ops;
    if (st->ops->value) {
        tap.value = *st->ops->value;
        tap.value.put = tap_put;
        tap.ops.value = &tap.value;
    }
    tap.lease = *st->ops->lease;
    tap.lease.acquire = tap_acquire;
    tap.lease.release = tap_release;
    tap.ops.lease = &tap.lease;
    st->ops = &tap.ops;
}

/* After the last fault the service is well. */
static bool is_well(const worker *wk)
{
    return atomic_load(&wk->run->calm_ns) != 0 ||
           (now_ns() - wk->run->began_ns) / 1000000 / SPELL_MS % 3 != 0;
}

static void open_breaker(worker *wk)
{
    dibs_error err = {0};

    if (wk->breaker)
        return;
    worker_must(
        dibs_breaker_new(wk->cl, BREAKER,
                         DIBS_BREAKER_OPTS(.threshold = THRESHOLD,
                                           .sampling_ms = SAMPLING_MS,
                                           .recovery_ms = RECOVERY_MS,
                                           .probes = PROBES, .need = NEED,
                                           .probe_ttl_ms = wk->run->ttl_ms),
                         &wk->breaker, &err),
        &err);
}

/* What the call belongs to, if the client has not learnt of another state since. A client
 * may have let it pass by itself, without a permit of the store. Without a fault too: a
 * machine may be too slow for the store to answer in time. */
static void look_at(dibs_breaker *br, const dibs_pass *pass, record *rec)
{
    const dibs__breaker *machine = &br->machine;
    const dibs__breaker_permit *pm;

    pthread_mutex_lock(&br->cl->mutex);
    pm = dibs__breaker_permit_of(&br->machine, pass->permit);
    rec->exclusive = pass->permit != 0 && (!pm || pm->own);
    rec->permits = pass->permit != 0 && !rec->exclusive;
    if (machine->gen == pass->version && machine->known) {
        rec->fence = machine->version;
        rec->expected =
            machine->state == DIBS__BREAKER_CLOSED ? SEEN_CLOSED : SEEN_OPEN;
    }
    pthread_mutex_unlock(&br->cl->mutex);
}

/* A probe takes a moment. */
void worker_call(worker *wk)
{
    dibs_error err = {0};
    dibs_pass pass = {0};
    record *rec;

    if (worker_pick(wk, 4) != 0)
        return;
    open_breaker(wk);
    rec = worker_begin(wk, OP_CALL, 0);
    if (!rec)
        return;
    worker_end(wk, rec, dibs_breaker_enter(wk->breaker, &pass, &err));
    if (rec->status != DIBS_OK)
        return;
    look_at(wk->breaker, &pass, rec);
    if (pass.permit != 0)
        poll(NULL, 0, 5);
    rec->value = is_well(wk);
    rec->released_ns = now_ns();
    dibs_breaker_leave(wk->breaker, &pass, rec->value != 0);
}
