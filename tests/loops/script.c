/* script.c - see script.h. The subject runs on the thread that calls and on those
 * of its client; the peer there as well, and on a thread that lets go of a lock
 * when the subject waits for it. */
/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "faults.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The slack is for a busy machine. */
#define TIMEOUT_MS pace_ms(500)
#define WAIT_MS    pace_ms(3000)
#define SLACK_MS   pace_ms(4000)

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((format(printf, 2, 0))) static void
tell_breach(script *sc, const char *format, va_list args)
{
    sc->breaches++;
    printf("violation: %s: ", sc->what);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
}

void script_breach(script *sc, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tell_breach(sc, format, args);
    va_end(args);
}

void script_breach_of(script *sc, dibs_status rc, const char *format, ...)
{
    va_list args;

    if (pace_explains(rc))
        sc->late++;
    va_start(args, format);
    tell_breach(sc, format, args);
    va_end(args);
}

/* What a fault of the system may be told as. */
static bool is_told(dibs_status rc)
{
    return rc == DIBS_OK || rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN ||
           rc == DIBS_NOMEM;
}

dibs_status script_told(script *sc, const char *step, dibs_status rc,
                        dibs_status also, const dibs_error *err)
{
    if (rc == DIBS_OK)
        sc->granted++;
    else
        sc->refused++;
    if (sc->verbose)
        printf("  %s: %s %s\n", step, dibs_status_name(rc),
               rc == DIBS_OK ? "" : err->message);
    if (!is_told(rc) && rc != also && rc != sc->also)
        script_breach_of(sc, rc, "%s: %s (%s)", step, dibs_status_name(rc),
                         err->message);
    if (rc != DIBS_OK && err->status != rc)
        script_breach(sc, "%s: %s, but the error says %s", step,
                      dibs_status_name(rc), dibs_status_name(err->status));
    return rc;
}

/* A fence that was given now: above all that were given before. */
static void rises(script *sc, name *nm, uint64_t fence)
{
    if (fence <= nm->fence)
        script_breach(sc, "%s: the fence %" PRIu64 " does not rise", nm->text,
                      fence);
    else
        nm->fence = fence;
}

static dibs_lock *peer_lock(script *sc, const name *nm, int64_t wait_ms)
{
    dibs_lock *lock = NULL;
    dibs_error err = {0};

    if (dibs_lock_new(sc->peer, nm->text, DIBS_LOCK_OPTS(.wait_ms = wait_ms),
                      &lock, &err) != DIBS_OK)
        script_breach(sc, "the peer cannot make a handle: %s", err.message);
    return lock;
}

/* The peer takes the name and gives it back; its status. */
static dibs_status peer_takes(script *sc, name *nm, int64_t wait_ms)
{
    dibs_lock *lock = peer_lock(sc, nm, wait_ms);
    dibs_error err = {0};
    dibs_status rc = lock ? dibs_lock_acquire(lock, &err) : DIBS_NOMEM;

    if (rc == DIBS_OK) {
        rises(sc, nm, dibs_lock_fence(lock));
        if (dibs_lock_release(lock, &err) != DIBS_OK)
            script_breach_of(sc, err.status, "%s: the peer cannot release: %s",
                             nm->text, err.message);
    }
    dibs_lock_free(lock);
    return rc;
}

/* While the subject holds the name, nobody else can have it. */
static void is_alone(script *sc, dibs_lock *lock, name *nm)
{
    dibs_status other;

    rises(sc, nm, dibs_lock_fence(lock));
    faults_take_part(false);
    if (dibs_lock_check(lock) == DIBS_OK) {
        other = peer_takes(sc, nm, 0);
        if (other != DIBS_BUSY && dibs_lock_check(lock) == DIBS_OK)
            script_breach_of(sc, other, "%s: held, and the peer got %s",
                             nm->text, dibs_status_name(other));
    }
    faults_take_part(true);
}

/* Nothing of the subject may be left: it was told so. Of a quorum a majority was told,
 * and a node that is slow may not have heard of it yet; a lease that is left behind
 * lives longer than the peer waits. */
static void is_free(script *sc, name *nm, const char *after)
{
    dibs_status rc;

    faults_take_part(false);
    rc = peer_takes(sc, nm, sc->quorum ? TTL_MS / 4 : 0);
    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: the peer got %s after %s", nm->text,
                         dibs_status_name(rc), after);
    faults_take_part(true);
}

static void renew(script *sc, dibs_lock *lock)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_renew(lock, &err);

    script_told(sc, "renew", rc, DIBS_LOST, &err);
    if (rc == DIBS_LOST && dibs_lock_check(lock) == DIBS_OK)
        script_breach(sc, "renew: lost, and still valid");
}

static void release(script *sc, dibs_lock *lock, name *nm)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_release(lock, &err);

    script_told(sc, "release", rc, DIBS_LOST, &err);
    if (dibs_lock_check(lock) == DIBS_OK)
        script_breach(sc, "%s: released, and still held", nm->text);
    if (rc == DIBS_OK)
        is_free(sc, nm, "a release");
}

static void hold_alone(script *sc, dibs_client *cl)
{
    name *nm = &sc->alone[sc->turn % NAMES];
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    dibs_status rc =
        dibs_lock_new(cl, nm->text, DIBS_LOCK_OPTS(.ttl_ms = TTL_MS), &lock,
                      &err);

    if (script_told(sc, "new", rc, DIBS_OK, &err) != DIBS_OK)
        return;
    rc = script_told(sc, "acquire", dibs_lock_acquire(lock, &err), DIBS_OK,
                     &err);
    if (rc == DIBS_OK) {
        is_alone(sc, lock, nm);
        renew(sc, lock);
        release(sc, lock, nm);
    } else if (rc == DIBS_UNAVAIL) {
        is_free(sc, nm, "an acquire that changed nothing");
    }
    dibs_lock_free(lock);
    nm->free_at = now_ms() + TTL_MS + SLACK_MS;
}

/* The peer's lock, which goes when the subject stands in the queue, or has given
 * up. */
typedef struct gate {
    script *sc;
    name *nm;
    dibs_lock *lock;
    _Atomic bool over;
} gate;

static bool count_waiters(const dibs_lease_info *info, void *arg)
{
    *(size_t *)arg = info->waiter_count;
    return true;
}

static void *open_gate(void *arg)
{
    gate *gt = arg;
    dibs_error err = {0};
    size_t waiters = 0;

    while (waiters == 0 && !atomic_load(&gt->over)) {
        if (dibs_lease_show(gt->sc->peer, gt->nm->text, count_waiters, &waiters,
                            &err) != DIBS_OK)
            break;
        if (waiters == 0)
            poll(NULL, 0, 1);
        waiters += gt->sc->quorum;
    }
    if (dibs_lock_release(gt->lock, &err) != DIBS_OK)
        script_breach_of(gt->sc, err.status, "the peer cannot release: %s",
                         err.message);
    return NULL;
}

static void wait_for(script *sc, dibs_lock *lock, name *nm)
{
    dibs_error err = {0};
    dibs_status rc = dibs_lock_acquire(lock, &err);

    if (script_told(sc, "wait", rc, DIBS_TIMEOUT, &err) == DIBS_OK) {
        is_alone(sc, lock, nm);
        release(sc, lock, nm);
    }
}

static void hold_in_turn(script *sc, dibs_client *cl)
{
    name *nm = &sc->queue[sc->turn % NAMES];
    gate gt = {.sc = sc, .nm = nm};
    dibs_lock *lock = NULL;
    dibs_error err = {0};
    pthread_t opener;
    dibs_status rc;

    faults_take_part(false);
    gt.lock = peer_lock(sc, nm, 0);
    rc = gt.lock ? dibs_lock_acquire(gt.lock, &err) : DIBS_NOMEM;
    if (rc != DIBS_OK || pthread_create(&opener, NULL, open_gate, &gt) != 0) {
        script_breach_of(sc, rc, "the peer cannot hold: %s", err.message);
        goto out;
    }
    rises(sc, nm, dibs_lock_fence(gt.lock));
    faults_take_part(true);
    rc = dibs_lock_new(cl, nm->text,
                       DIBS_LOCK_OPTS(.ttl_ms = TTL_MS, .wait_ms = WAIT_MS),
                       &lock, &err);
    if (script_told(sc, "new", rc, DIBS_OK, &err) == DIBS_OK)
        wait_for(sc, lock, nm);
    atomic_store(&gt.over, true);
    faults_take_part(false);
    pthread_join(opener, NULL);
out:
    dibs_lock_free(gt.lock);
    faults_take_part(true);
    dibs_lock_free(lock);
    nm->free_at = now_ms() + CLAIM_MS + SLACK_MS;
}

/* What the peer reads: the text and its version. */
static uint64_t peer_reads(script *sc, char text[32])
{
    dibs_value value = {0};
    dibs_error err = {0};
    uint64_t version = 0;
    dibs_status rc = dibs_state_get(sc->peer, SCRIPT_VALUE, &value, &err);

    text[0] = '\0';
    if (rc == DIBS_OK && value.len < 32) {
        memcpy(text, value.data, value.len);
        text[value.len] = '\0';
        version = value.version;
    } else if (rc != DIBS_NOTFOUND) {
        script_breach_of(sc, rc, "the peer cannot read: %s", err.message);
    }
    dibs_value_free(&value);
    return version;
}

/* A write that was told as `rc`: done, not done, or either. */
static void
compare(script *sc, dibs_status rc, const char *before, const char *written)
{
    char text[32];
    uint64_t version;
    bool is_new, is_old;

    faults_take_part(false);
    version = peer_reads(sc, text);
    is_new = strcmp(text, written) == 0;
    is_old = strcmp(text, before) == 0;
    if ((rc == DIBS_OK && !is_new) || (rc == DIBS_UNAVAIL && !is_old) ||
        (!is_new && !is_old))
        script_breach(sc, "put: %s, and the value is '%s' (from '%s' to '%s')",
                      dibs_status_name(rc), text, before, written);
    if (is_new ? version <= sc->version : version != sc->version)
        script_breach(sc, "put: the version %" PRIu64 " after %" PRIu64,
                      version, sc->version);
    sc->version = version;
    faults_take_part(true);
}

/* What is in doubt may still be done at any moment. */
static bool in_doubt(dibs_status rc)
{
    return rc == DIBS_UNKNOWN || rc == DIBS_NOMEM;
}

static void read_back(script *sc, dibs_client *cl, bool doubtful)
{
    dibs_value value = {0};
    dibs_error err = {0};
    dibs_status rc = dibs_state_get(cl, SCRIPT_VALUE, &value, &err);

    script_told(sc, "get", rc, DIBS_NOTFOUND, &err);
    if (rc == DIBS_NOTFOUND && sc->version != 0)
        script_breach(sc, "get: there is a value");
    if (rc == DIBS_OK && value.version != sc->version && !doubtful)
        script_breach(sc, "get: the version %" PRIu64 ", not %" PRIu64,
                      value.version, sc->version);
    dibs_value_free(&value);
}

/* What the peer reads now, before a change. */
static void look(script *sc, char text[32])
{
    faults_take_part(false);
    sc->version = peer_reads(sc, text);
    faults_take_part(true);
}

static void change_value(script *sc, dibs_client *cl)
{
    char before[32], text[32];
    dibs_error err = {0};
    dibs_status put, cas;

    look(sc, before);
    snprintf(text, sizeof(text), "put %u", sc->turn);
    put = dibs_state_set(cl, SCRIPT_VALUE, text, strlen(text), 0, NULL, &err);
    script_told(sc, "put", put, DIBS_OK, &err);
    compare(sc, put, before, text);
    read_back(sc, cl, in_doubt(put));

    look(sc, before);
    snprintf(text, sizeof(text), "cas %u", sc->turn);
    cas = dibs_state_cas(cl, SCRIPT_VALUE, sc->version, text, strlen(text), 0,
                         NULL, &err);
    script_told(sc, "cas", cas, in_doubt(put) ? DIBS_STALE : DIBS_OK, &err);
    if (cas != DIBS_STALE)
        compare(sc, cas, before, text);
}

/* Threads that no call wakes keep no seat, and a seat is a lease of TTL_MS: LOST is true
 * then. */
static void wait_at(script *sc, dibs_barrier *barrier, const char *step,
                    uint64_t *generation)
{
    dibs_error err = {0};
    dibs_status rc = dibs_barrier_wait(barrier, generation, &err);

    script_told(sc, step, rc, rc == DIBS_LOST ? DIBS_LOST : DIBS_TIMEOUT, &err);
}

/* A barrier of one party: it passes, or says why not, twice. */
static void pass_barrier(script *sc, dibs_client *cl)
{
    dibs_barrier *barrier = NULL;
    uint64_t first = 0, second = 0;
    dibs_error err = {0};
    char text[48];
    dibs_status rc;

    snprintf(text, sizeof(text), "%s-barrier",
             sc->alone[sc->turn % NAMES].text);
    rc =
        dibs_barrier_new(cl, text,
                         DIBS_BARRIER_OPTS(.parties = 1, .wait_ms = TIMEOUT_MS),
                         &barrier, &err);
    if (script_told(sc, "barrier new", rc, DIBS_OK, &err) == DIBS_OK) {
        wait_at(sc, barrier, "barrier", &first);
        wait_at(sc, barrier, "barrier again", &second);
        if (second && second <= first)
            script_breach(sc, "%s: generation %" PRIu64 " came after %" PRIu64,
                          text, second, first);
    } else if (barrier) {
        script_breach(sc, "%s: failed, and there is a barrier", text);
    }
    dibs_barrier_free(barrier);
}

/* Waits until the name must be free; then it is. */
static void settle_name(script *sc, name *nm)
{
    int64_t left_ms = nm->free_at - now_ms();
    dibs_status rc;

    if (nm->free_at == 0)
        return;
    rc = peer_takes(sc, nm, left_ms > 0 ? left_ms : 0);
    if (rc != DIBS_OK)
        script_breach_of(sc, rc, "%s: %s, long after the subject has gone",
                         nm->text, dibs_status_name(rc));
    nm->free_at = 0;
}

void script_run(script *sc)
{
    dibs_client *cl = NULL;
    dibs_error err = {0};
    dibs_status rc;

    sc->turn++;
    settle_name(sc, &sc->alone[sc->turn % NAMES]);
    settle_name(sc, &sc->queue[sc->turn % NAMES]);
    faults_take_part(true);
    rc = dibs_open(sc->url,
                   DIBS_CLIENT_OPTS(.timeout_ms = TIMEOUT_MS, .ttl_ms = TTL_MS),
                   &cl, &err);
    if (script_told(sc, "open", rc, DIBS_OK, &err) == DIBS_OK) {
        hold_alone(sc, cl);
        hold_in_turn(sc, cl);
        if (!sc->quorum) {
            change_value(sc, cl);
            pass_barrier(sc, cl);
            script_coord(sc, cl);
        }
    } else if (cl) {
        script_breach(sc, "open: failed, and there is a client");
    }
    dibs_close(cl);
    faults_take_part(false);
}

void script_settle(script *sc)
{
    dibs_error err = {0};

    for (int i = 0; i < NAMES; i++) {
        settle_name(sc, &sc->alone[i]);
        settle_name(sc, &sc->queue[i]);
    }
    if (dibs_ping(sc->peer, NULL, &err) != DIBS_OK)
        script_breach_of(sc, err.status, "the peer is cut off: %s",
                         err.message);
}

dibs_status script_init(script *sc, const char *url, dibs_error *err)
{
    dibs_status rc;

    sc->url = url;
    sc->what = "no fault";
    for (int i = 0; i < NAMES; i++) {
        snprintf(sc->alone[i].text, sizeof(sc->alone[i].text), "loops-a%d", i);
        snprintf(sc->queue[i].text, sizeof(sc->queue[i].text), "loops-q%d", i);
    }
    rc = dibs_open(url, NULL, &sc->peer, err);
    if (rc == DIBS_OK) {
        dibs_value value = {0};

        sc->quorum = dibs_state_get(sc->peer, SCRIPT_VALUE, &value, NULL) ==
                     DIBS_UNSUPPORTED;
        dibs_value_free(&value);
    }
    /* The peer has seen every name, and its counts of them are all there. */
    for (int i = 0; i < NAMES && rc == DIBS_OK; i++) {
        rc = peer_takes(sc, &sc->alone[i], 0);
        if (rc == DIBS_OK)
            rc = peer_takes(sc, &sc->queue[i], 0);
    }
    return rc;
}

void script_fini(script *sc)
{
    dibs_close(sc->peer);
}
