/* breaker.c - circuit breakers: drives the machine of each in real time.
 *
 * A call that passes or is refused at once takes no lock. All else runs under the
 * client's mutex, let go for the store. A worker of the client reports, puts and listens,
 * when the timer of the breaker, a notice or a bad call says so.
 *
 * Owns the list of a client's breakers, attached to the client with the first one, and
 * the handler of their notices. Locks: cl->mutex guards all of it. */
/* SPDX-License-Identifier: MIT */
#include "coord/breaker.h"
#include "base/alloc.h"
#include "base/rand.h"
#include "base/uncancel.h"
#include "core/attach.h"
#include "core/log.h"
#include "core/names.h"
#include "core/reach.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS_MAX = 4, FLUSH_MAX = 40 };

typedef struct breakers {
    dibs__attached attached; /* first, so that one is the other */
    dibs__notice_handler handler;
    dibs_breaker *first;
} breakers;

static breakers *breakers_of_handler(dibs__notice_handler *handler)
{
    return (breakers *)(void *)((char *)handler - offsetof(breakers, handler));
}

/* Thread: the keeper. */
static void hear_change(dibs_client *cl, dibs__notice_handler *handler,
                        const dibs__notice *notice)
{
    (void)cl;
    if (notice->kind != DIBS__NOTICE_CHANGED)
        return;
    for (dibs_breaker *br = breakers_of_handler(handler)->first; br;
         br = br->next) {
        if (strcmp(br->address, notice->owner) != 0)
            continue;
        dibs__breaker_told(&br->machine, notice->fence, dibsx_now());
        dibs__breaker_arrange(br);
    }
}

/* Thread: the keeper. */
static void hear_missed(dibs_client *cl, dibs__notice_handler *handler)
{
    (void)cl;
    for (dibs_breaker *br = breakers_of_handler(handler)->first; br;
         br = br->next) {
        dibs__breaker_missed(&br->machine, dibsx_now());
        dibs__breaker_arrange(br);
    }
}

/* Every call ends before the client does. */
static void close_breakers(dibs_client *cl, dibs__attached *at)
{
    breakers *all = (breakers *)(void *)at;

    for (dibs_breaker *br = all->first; br;) {
        if (br->callers > 0 || br->ordered) {
            pthread_cond_wait(&cl->over, &cl->mutex);
            br = all->first;
        } else {
            br = br->next;
        }
    }
}

static void free_breakers(dibs_client *cl, dibs__attached *at)
{
    (void)cl;
    dibsx_free(at);
}

/* The breakers of a client, made when first needed (`make`); NULL: none, or no
 * memory. Locks: cl->mutex. */
static breakers *breakers_of(dibs_client *cl, bool make)
{
    dibs__attached *at = cl->attached;
    breakers *all;

    while (at && at->free != free_breakers)
        at = at->next;
    if (at || !make)
        return (breakers *)(void *)at;
    all = dibsx_zalloc(sizeof(*all));
    if (!all)
        return NULL;
    all->attached.close = close_breakers;
    all->attached.free = free_breakers;
    all->handler.hear = hear_change;
    all->handler.hear_missed = hear_missed;
    dibs__attach(cl, &all->attached);
    dibs__notices_register(cl, &all->handler);
    return all;
}

/* The key of the state, of the meter and of the permits. */
static dibs_status
name_breaker(dibs_breaker *br, const char *name, dibs_error *err)
{
    char key[DIBS_NAME_MAX + 16];
    dibs_status rc = dibs__name_full(br->cl, name, br->key, err);

    if (rc != DIBS_OK)
        return rc;
    snprintf(br->name, sizeof(br->name), "%s", name);
    snprintf(key, sizeof(key), "dibs.breaker/%s", name);
    rc = dibs__name_full(br->cl, key, br->key, err);
    dibs__topic_of_value(br->key, br->topic);
    dibs__topic_address(br->topic, br->address);
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
    breakers *all;
    dibs_status rc;

    pthread_mutex_lock(&cl->mutex);
    all = breakers_of(cl, true);
    rc = all ? dibs__timer_ready(cl, err) : dibsx_nomem(err, "a breaker");
    if (rc == DIBS_OK && !dibs__timer_reserve(cl, 1))
        rc = dibsx_nomem(err, "a breaker");
    if (rc == DIBS_OK) {
        br->next = all->first;
        all->first = br;
        cl->handle_count++;
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
    br->cl = cl;
    dibs__breaker_prepare(br);
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
    unsigned char bits[(DIBS_OWNER_SIZE - 1) / 2];
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

    snprintf(who, sizeof(who), "%.40s:%d %s", cl->host, (int)getpid(),
             cl->label);
    if (dibsx_random(bits, sizeof(bits))) {
        dibsx_hex(bits, sizeof(bits), owner);
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
    br->callers++;
    if (br->cl->closing)
        rc = dibsx_fail(err, DIBS_CANCELLED, "the client is being closed");
    else
        rc = enter_locked(br, &pass, err);
    br->callers--;
    pthread_cond_broadcast(&br->cl->over);
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
    if (dibs__breaker_coarse_now() <
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

static void fill_info(const dibs_breaker *br, dibs_breaker_info *out)
{
    const dibs__breaker *m = &br->machine;
    const dibs__sums *sums = m->shared ? &m->sums : &(dibs__sums){0};
    dibsx_nsec now = dibsx_now();

    *out =
        (dibs_breaker_info){.state = dibs__breaker_public(m),
                            .alone = m->away || m->own != DIBS__BREAKER_FOLLOWS,
                            .version = m->version,
                            .retry_ms = dibs__breaker_retry_ms(m, now),
                            .good = sums->good,
                            .bad = sums->bad,
                            .slow = sums->slow,
                            .reporters = sums->reporters};
    if (out->state == DIBS_BREAKER_OPEN && out->retry_ms == 0)
        out->state = DIBS_BREAKER_HALF_OPEN;
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
    if (rc != DIBS_OK)
        return rc;
    pthread_mutex_lock(&br->cl->mutex);
    br->callers++;
    for (int i = 0; i < 2 && br->machine.shared && rc == DIBS_OK; i++) {
        rc = dibs__breaker_send_report(br, &why); /* STALE: once more */
        dibs__breaker_note(br, &why);
        if (rc == DIBS_OK)
            break;
        if (rc == DIBS_STALE)
            rc = DIBS_OK;
    }
    fill_info(br, out);
    dibs__breaker_arrange(br);
    br->callers--;
    pthread_cond_broadcast(&br->cl->over);
    pthread_mutex_unlock(&br->cl->mutex);
    return DIBS_OK;
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
    br->callers++;
    rc = force_locked(br, &act, err);
    br->callers--;
    pthread_cond_broadcast(&br->cl->over);
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

/* Takes the breaker out of the list. True when it was the last that listened to its
 * topic. Locks: cl->mutex. */
static bool unlist_breaker(dibs_breaker *br)
{
    dibs_breaker **at = &breakers_of(br->cl, false)->first;
    bool last = br->machine.listening;

    while (*at != br)
        at = &(*at)->next;
    *at = br->next;
    for (at = &breakers_of(br->cl, false)->first; *at; at = &(*at)->next)
        last = last && strcmp((*at)->address, br->address) != 0;
    return last;
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
    bool ear, last;

    if (!br || dibs__forked(br->cl->fork_number))
        return;
    cl = br->cl;
    pthread_mutex_lock(&cl->mutex);
    stop_worker(br);
    if (!atomic_load(&cl->closed))
        flush(br);
    ear = unlist_breaker(br) && !atomic_load(&cl->closed);
    dibs__timer_unreserve(cl, 1);
    pthread_mutex_unlock(&cl->mutex);
    if (ear)
        (void)cl->st->ops->topic->ear(cl->st, br->topic, false,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      NULL);
    pthread_mutex_lock(&cl->mutex);
    /* One that was made meanwhile may not be heard. */
    if (ear)
        hear_missed(cl, &breakers_of(cl, false)->handler);
    cl->handle_count--;
    last = cl->ended && cl->handle_count == 0;
    pthread_mutex_unlock(&cl->mutex);
    dibsx_free(br);
    if (last)
        dibs__client_free(cl);
}
