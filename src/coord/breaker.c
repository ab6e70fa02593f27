/* breaker.c - circuit breakers: drives the machine of each in real time.
 *
 * A call that passes or is refused at once takes no lock. All else runs under the
 * client's mutex, let go for the store. A worker of the client reports, puts and listens,
 * when the timer of the breaker, a notice or a bad call says so.
 * Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "coord/breaker.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include "core/who.h"
#include <dibs/state.h>
#include <stdio.h>
#include <string.h>

#define KEYS "dibs.breaker/"

enum { ROUNDS_MAX = 4, FLUSH_MAX = 40 };

/* The key of the state, of the meter and of the permits. */
static dibs_status
name_breaker(dibs_breaker *br, const char *name, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 16];
    dibs_status rc = dibs__name_full(br->cl, name, br->key, err);

    if (rc != DIBS_OK)
        return rc;
    snprintf(br->name, sizeof(br->name), "%s", name);
    snprintf(key, sizeof(key), KEYS "%s", name);
    rc = dibs__name_full(br->cl, key, br->key, err);
    dibs__topic_of_value(br->key, br->handle.topic);
    return rc;
}

static dibs_status
make_machine(dibs_breaker *br, const dibs_breaker_opts *opts, dibs_error *err)
{
    bool shared = !dibs__store_cannot(br->cl->st, DIBS__CAN_METER);
    dibs__breaker_rules rules;
    uint64_t seed;
    dibs_status rc = dibs__breaker_rules_of(opts, &rules, br, err);

    if (rc != DIBS_OK)
        return rc;
    if (!dibsx_random(&seed, sizeof(seed)))
        return dibsx_fail(err, DIBS_UNAVAIL,
                          "the system gives no random numbers");
    dibs__breaker_init(&br->machine, &rules, shared, seed);
    br->away = !shared;
    return DIBS_OK;
}

/* Adds the breaker to its client. */
static dibs_status join_client(dibs_breaker *br, dibs_error *err)
{
    dibs_client *cl = br->cl;
    dibs_status rc = DIBS_OK;

    pthread_mutex_lock(&cl->mutex);
    if (!dibs__timer_reserve(cl, 1))
        rc = dibsx_nomem(err, "a breaker");
    if (rc == DIBS_OK) {
        rc = dibs__handle_join(cl, &br->handle, err);
        if (rc != DIBS_OK)
            dibs__timer_unreserve(cl, 1);
    }
    pthread_mutex_unlock(&cl->mutex);
    return rc;
}

dibs_status dibs_breaker_new(dibs_client *cl, const char *name,
                             const dibs_breaker_opts *opts, dibs_breaker **out,
                             dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_status rc = dibs__client_usable(cl, err);
    dibs_breaker *br;

    *out = NULL;
    if (rc != DIBS_OK)
        return rc;
    br = dibsx_zalloc(sizeof(*br));
    if (!br)
        return dibsx_nomem(err, "a breaker");
    dibs__breaker_prepare(br, cl);
    rc = name_breaker(br, name, err);
    if (rc == DIBS_OK)
        rc = make_machine(br, opts, err);
    if (rc == DIBS_OK)
        rc = join_client(br, err);
    if (rc != DIBS_OK) {
        dibsx_free(br);
        return rc;
    }
    if (!br->machine.shared)
        dibs__log(cl, DIBS_LOG_WARN, "breaker",
                  "%s is for this client alone: %s", br->name,
                  dibs__store_cannot(cl->st, DIBS__CAN_METER));
    *out = br;
    return DIBS_OK;
}

static dibs_status fail_open(const dibs_breaker *br, dibs_error *err)
{
    char span[32];
    int64_t retry_ms;

    if (!err)
        return DIBS_BUSY;
    retry_ms = dibs__breaker_retry_ms(&br->machine, dibsx_now());
    if (retry_ms < 0)
        return dibsx_fail(err, DIBS_BUSY,
                          "%s was opened by hand; `dibs breaker close` closes "
                          "it",
                          br->name);
    if (retry_ms == 0)
        return dibsx_fail(err, DIBS_BUSY,
                          "%s takes only part of the calls; try again soon",
                          br->name);
    dibsx_duration_text(retry_ms, span, sizeof(span));
    return dibsx_fail(err, DIBS_BUSY, "%s is open; try again in %s", br->name,
                      span);
}

/* Asks the store for the permit of a probe; *answer is what it says. Locks: cl->mutex,
 * let go meanwhile. */
static dibs__enter_todo ask_permit(dibs_breaker *br, dibs__breaker_pass *pass,
                                   dibs_status *answer, dibs_error *err)
{
    dibs_client *cl = br->cl;
    dibs__breaker_permit *pm =
        dibs__breaker_permit_of(&br->machine, pass->permit);
    char owner[DIBS_OWNER_SIZE], who[DIBS__WHO_MAX];
    dibs__ask ask = {.name = br->key,
                     .owner = owner,
                     .mode = DIBS__PERMITS,
                     .permits = 1,
                     .capacity = br->machine.rules.probes,
                     .ttl_ms = br->machine.rules.probe_ttl_ms,
                     .who = who};
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(cl, sent_at);
    dibs__answer ans = {0};
    dibs_status rc = DIBS_UNAVAIL;
    int64_t valid_ms;

    dibs__who_plain(cl, NULL, who, sizeof(who));
    if (dibsx_random_hex(owner, sizeof(owner))) {
        memcpy(pm->owner, owner, sizeof(owner));
        pthread_mutex_unlock(&cl->mutex);
        rc = cl->st->ops->lease->acquire(cl->st, &ask, deadline, &ans, err);
        pthread_mutex_lock(&cl->mutex);
    }
    *answer = rc;
    valid_ms = ans.left_ms < ask.ttl_ms ? ans.left_ms : ask.ttl_ms;
    valid_ms -= valid_ms / 100;
    return dibs__breaker_answered(&br->machine, pass, dibsx_now(), rc,
                                  dibsx_after_ms(sent_at, valid_ms),
                                  ans.left_ms);
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status
enter_locked(dibs_breaker *br, dibs__breaker_pass *pass, dibs_error *err)
{
    dibs__enter_todo todo = DIBS__ENTER_LOOK;
    dibs_status answer = DIBS_BUSY;
    dibs_error why = {0};

    for (int i = 0; i < ROUNDS_MAX && todo != DIBS__ENTER_PASS &&
                    todo != DIBS__ENTER_REFUSED;
         i++) {
        todo = dibs__breaker_enter(&br->machine, dibsx_now(), pass);
        if (todo == DIBS__ENTER_LOOK)
            (void)dibs__breaker_send_report(br, &why);
        else if (todo == DIBS__ENTER_ASK)
            todo = ask_permit(br, pass, &answer, &why);
        dibs__breaker_note(br, &why);
    }
    dibs__breaker_arrange(br);
    if (todo == DIBS__ENTER_PASS)
        return DIBS_OK;
    if (todo != DIBS__ENTER_REFUSED || answer == DIBS_BUSY)
        return fail_open(br, err);
    return dibsx_fail(
        err, answer,
        "%s is open, and the store refuses the permit of a probe: "
        "%s",
        br->name, why.message);
}

static dibs_status
enter_slowly(dibs_breaker *br, dibs_pass *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__breaker_pass pass = {0};
    dibs_status rc;

    pthread_mutex_lock(&br->cl->mutex);
    dibs__handle_begin(&br->handle);
    if (br->cl->closing)
        rc = dibsx_fail(err, DIBS_CANCELLED, "the client is being closed");
    else
        rc = enter_locked(br, &pass, err);
    dibs__handle_end(&br->handle);
    pthread_mutex_unlock(&br->cl->mutex);
    if (rc == DIBS_OK)
        *out = (dibs_pass){.version = pass.gen, .permit = pass.permit};
    return rc;
}

dibs_status
dibs_breaker_enter(dibs_breaker *br, dibs_pass *pass, dibs_error *err)
{
    dibs_status rc;

    pass->version = pass->permit = 0;
    if (!br)
        return dibsx_fail(err, DIBS_INVALID, "the breaker is NULL");
    rc = dibs__client_usable(br->cl, err);
    if (rc != DIBS_OK)
        return rc;
    if (dibs__breaker_enter_at_once(&br->machine, &pass->version))
        return DIBS_OK;
    pass->version = 0;
    if (dibsx_coarse_now() <
        atomic_load_explicit(&br->refuse_until, memory_order_relaxed))
        return fail_open(br, err);
    return enter_slowly(br, pass, err);
}

/* A number that differs between threads, mostly. */
static unsigned cell_of_thread(void)
{
    static _Thread_local char here;

    return (unsigned)((uint64_t)(uintptr_t)&here *
                          UINT64_C(0x9e3779b97f4a7c15) >>
                      61);
}

static void leave_slowly(dibs_breaker *br, const dibs__breaker_pass *pass,
                         bool good, bool slow)
{
    DIBSX_UNCANCEL;

    pthread_mutex_lock(&br->cl->mutex);
    dibs__breaker_left(&br->machine, pass, good, slow, dibsx_now());
    dibs__breaker_arrange(br);
    pthread_mutex_unlock(&br->cl->mutex);
}

static void leave(dibs_breaker *br, dibs_pass *pass, bool good, bool slow)
{
    dibs__breaker_pass was;

    if (!br || !pass || pass->version == 0)
        return;
    was = (dibs__breaker_pass){.gen = pass->version, .permit = pass->permit};
    pass->version = pass->permit = 0;
    if (dibs__client_usable(br->cl, NULL) != DIBS_OK)
        return;
    if (good && !slow && was.permit == 0 &&
        dibs__breaker_good_at_once(&br->machine, was.gen, cell_of_thread()))
        return;
    leave_slowly(br, &was, good, slow);
}

void dibs_breaker_leave(dibs_breaker *br, dibs_pass *pass, bool good)
{
    leave(br, pass, good, false);
}

void dibs_breaker_leave_after(dibs_breaker *br, dibs_pass *pass, bool good,
                              int64_t took_ms)
{
    leave(br, pass, good, br && br->slow_ms > 0 && took_ms >= br->slow_ms);
}

int64_t dibs_breaker_retry_ms(const dibs_breaker *br)
{
    return br ? dibs__breaker_retry_ms(&br->machine, dibsx_now()) : 0;
}

static void fill_info(const dibs_breaker *br, const dibs__sums *sums,
                      dibs_breaker_info *out)
{
    const dibs__breaker *m = &br->machine;
    dibsx_nsec now = dibsx_now();

    *out =
        (dibs_breaker_info){.state = dibs__breaker_public(m),
                            .alone = m->away || m->own != DIBS__BREAKER_FOLLOWS,
                            .version = m->version,
                            .retry_ms = dibs__breaker_recover_ms(m, now),
                            .good = sums->good,
                            .bad = sums->bad,
                            .slow = sums->slow,
                            .reporters = sums->reporters};
    if (out->state == DIBS_BREAKER_OPEN && out->retry_ms == 0)
        out->state = DIBS_BREAKER_HALF_OPEN;
}

/* The store may be away: *out is what this client knows then. */
static dibs_status
ask_store(dibs_breaker *br, dibs_breaker_info *out, dibs_error *err)
{
    dibs_status rc = DIBS_OK;
    dibs__sums seen = {0};

    pthread_mutex_lock(&br->cl->mutex);
    dibs__handle_begin(&br->handle);
    for (int i = 0; i < 2 && br->machine.shared; i++) {
        rc = dibs__breaker_look(br, &seen, err); /* STALE: once more */
        dibs__breaker_note(br, err);
        if (rc != DIBS_STALE)
            break;
        rc = DIBS_OK;
    }
    /* The sums of the machine may be of a report that came before this look. */
    if (rc != DIBS_OK || seen.version != br->machine.version)
        seen = br->machine.sums;
    fill_info(br, &seen, out);
    dibs__breaker_arrange(br);
    dibs__handle_end(&br->handle);
    pthread_mutex_unlock(&br->cl->mutex);
    return rc;
}

dibs_status
dibs_breaker_get(dibs_breaker *br, dibs_breaker_info *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_error why = {0};
    dibs_status rc;

    *out = (dibs_breaker_info){0};
    if (!br)
        return dibsx_fail(err, DIBS_INVALID, "the breaker is NULL");
    rc = dibs__client_usable(br->cl, err);
    if (rc == DIBS_OK)
        (void)ask_store(br, out, &why);
    return rc;
}

typedef struct listing {
    dibs_client *cl;
    dibs_breaker_each_fn *each;
    void *arg;
    dibs_error *err;
    dibs_status rc; /* of the first that could not be looked at */
} listing;

static bool list_value(const dibs_state_item *item, void *arg)
{
    const char *name = item->key + sizeof(KEYS) - 1;
    listing *li = arg;
    dibs_error why = {0};
    dibs_breaker *br = NULL;
    dibs_breaker_info info;

    li->rc = dibs_breaker_new(li->cl, name, NULL, &br, &why);
    if (li->rc == DIBS_INVALID) { /* a value of somebody else */
        li->rc = DIBS_OK;
        return true;
    }
    if (li->rc == DIBS_OK)
        li->rc = ask_store(br, &info, &why);
    dibs_breaker_free(br);
    if (li->rc != DIBS_OK && li->err)
        *li->err = why;
    return li->rc == DIBS_OK && li->each(name, &info, li->arg);
}

dibs_status
dibs_breaker_list(dibs_client *cl, const char *begins,
                  dibs_breaker_each_fn *each, void *arg, dibs_error *err)
{
    DIBSX_UNCANCEL;
    char key[sizeof(KEYS) + DIBS_NAME_MAX + 1];
    listing li = {.cl = cl, .each = each, .arg = arg, .err = err};
    dibs_status rc;

    snprintf(key, sizeof(key), KEYS "%s", begins ? begins : "");
    rc = dibs_state_list(cl, key, list_value, &li, err);
    return rc == DIBS_OK ? li.rc : rc;
}

/* Locks: cl->mutex, let go meanwhile. */
static dibs_status
force_locked(dibs_breaker *br, dibs__breaker_act *act, dibs_error *err)
{
    uint64_t version = br->machine.version + 1;
    dibs_status rc = DIBS_OK;

    if (br->machine.shared)
        rc = dibs__breaker_send_put(br, act, DIBS_VERSION_ANY, &version, err);
    if (rc == DIBS_OK)
        dibs__breaker_put_over(&br->machine, act, dibsx_now(), rc, version);
    dibs__breaker_arrange(br);
    return rc;
}

dibs_status
dibs_breaker_force(dibs_breaker *br, dibs_breaker_state state, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs__breaker_act act = {.ttl_ms = DIBS__BREAKER_KEEP_MS};
    dibs_status rc;

    if (!br)
        return dibsx_fail(err, DIBS_INVALID, "the breaker is NULL");
    if (state != DIBS_BREAKER_CLOSED && state != DIBS_BREAKER_OPEN &&
        state != DIBS_BREAKER_FORCED)
        return dibsx_fail(err, DIBS_INVALID,
                          "a breaker is set to closed, open or forced; "
                          "half-open comes with time");
    rc = dibs__client_usable(br->cl, err);
    if (rc != DIBS_OK)
        return rc;
    act.state = state == DIBS_BREAKER_CLOSED ? DIBS__BREAKER_CLOSED
                : state == DIBS_BREAKER_OPEN ? DIBS__BREAKER_OPEN
                                             : DIBS__BREAKER_FORCED;
    if (state == DIBS_BREAKER_OPEN)
        act.ttl_ms += br->machine.rules.recovery_ms;
    if (state == DIBS_BREAKER_FORCED)
        act.ttl_ms = 0;
    pthread_mutex_lock(&br->cl->mutex);
    dibs__handle_begin(&br->handle);
    rc = force_locked(br, &act, err);
    dibs__handle_end(&br->handle);
    pthread_mutex_unlock(&br->cl->mutex);
    return rc;
}

/* Sends what is due, in the place of the worker. Locks: cl->mutex, let go
 * meanwhile. */
static void flush(dibs_breaker *br)
{
    for (int i = 0; i < FLUSH_MAX && !br->machine.away; i++)
        if (!dibs__breaker_pending(&br->machine, dibsx_now()) ||
            !dibs__breaker_act_once(br))
            return;
}

/* No worker has it from here on. Locks: cl->mutex, let go meanwhile. */
static void stop_worker(dibs_breaker *br)
{
    dibs_client *cl = br->cl;

    br->ending = true;
    dibs__timer_set(cl, &br->timer, DIBSX_NEVER);
    while (br->ordered)
        pthread_cond_wait(&cl->over, &cl->mutex);
}

void dibs_breaker_free(dibs_breaker *br)
{
    DIBSX_UNCANCEL;
    dibs_client *cl;
    bool last;

    if (!br || dibs__forked(br->cl->fork_number))
        return;
    cl = br->cl;
    pthread_mutex_lock(&cl->mutex);
    stop_worker(br);
    if (!atomic_load(&cl->closed))
        flush(br);
    dibs__timer_unreserve(cl, 1);
    last = dibs__handle_leave(&br->handle);
    pthread_mutex_unlock(&cl->mutex);
    dibsx_free(br);
    if (last)
        dibs__client_free(cl);
}
