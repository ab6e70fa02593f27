/* breaker_work.c - the worker's part of a circuit breaker: reports, changes of the
 * state, permits that go back, the ear, and callbacks.
 *
 * Runs on a worker of the client, or on the thread of a call. Locks: cl->mutex, let go
 * for the store and for the program. */
/* SPDX-License-Identifier: MIT */
#include "base/cond.h"
#include "base/fail.h"
#include "base/opts.h"
#include "coord/breaker.h"
#include "core/log.h"
#include "core/reach.h"
#include <inttypes.h>
#include <string.h>

enum { DAY_MS = 86400000, HOUR_MS = 3600000 };

/* One option: what it is called, its place, its default and its most. */
typedef struct number {
    const char *name;
    size_t at;
    int64_t otherwise, most;
} number;

#define NUMBER(field, otherwise, most)                                         \
    {                                                                          \
#field, offsetof(dibs_breaker_opts, field), otherwise, most            \
    }

static const number numbers[] = {
    NUMBER(threshold, 0, DIBS__METER_CALLS_MAX),
    NUMBER(rate_percent, 0, 100),
    NUMBER(min_calls, 10, DIBS__METER_CALLS_MAX),
    NUMBER(sampling_ms, 60000, DAY_MS),
    NUMBER(recovery_ms, 30000, DAY_MS),
    NUMBER(probes, 1, 1000),
    NUMBER(need, 1, 1000000),
    NUMBER(probe_ttl_ms, 10000, HOUR_MS),
    NUMBER(min_clients, 1, DIBS__METER_MARKS),
    NUMBER(slow_ms, 0, DAY_MS),
    NUMBER(slow_percent, 0, 100),
    NUMBER(ramp_ms, 0, DAY_MS),
};

static dibs_status fill_opts(dibs_breaker_opts *out, dibs_error *err)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const number *n = &numbers[i];
        int64_t *value = (int64_t *)(void *)((char *)out + n->at);

        if (*value < 0 || *value > n->most)
            return dibsx_fail(err, DIBS_INVALID,
                              "%s of a breaker is %" PRId64
                              "; give 0 for the default, or up to %" PRId64,
                              n->name, *value, n->most);
        if (*value == 0)
            *value = n->otherwise;
    }
    if (out->slow_ms > 0 && out->slow_percent == 0)
        out->slow_percent = 50;
    if (out->slow_percent > 0 && out->slow_ms == 0)
        return dibsx_fail(err, DIBS_INVALID,
                          "slow_percent needs slow_ms: from when on is a call "
                          "slow?");
    if (out->threshold == 0 && out->rate_percent == 0 && out->slow_percent == 0)
        out->threshold = 5;
    return DIBS_OK;
}

dibs_status
dibs__breaker_rules_of(const dibs_breaker_opts *opts, dibs__breaker_rules *out,
                       dibs_breaker *br, dibs_error *err)
{
    dibs_breaker_opts want;
    dibs_status rc =
        dibsx_opts_copy(&want, sizeof(want), opts, "DIBS_BREAKER_OPTS()", err);

    if (rc == DIBS_OK)
        rc = fill_opts(&want, err);
    if (rc != DIBS_OK)
        return rc;
    br->slow_ms = want.slow_ms;
    br->on_change = want.on_change;
    br->arg = want.arg;
    *out = (dibs__breaker_rules){.threshold = want.threshold,
                                 .rate_percent = want.rate_percent,
                                 .slow_percent = want.slow_percent,
                                 .min_calls = want.min_calls,
                                 .sampling_ms = want.sampling_ms,
                                 .recovery_ms = want.recovery_ms,
                                 .probe_ttl_ms = want.probe_ttl_ms,
                                 .ramp_ms = want.ramp_ms,
                                 .probes = (uint32_t)want.probes,
                                 .need = (uint32_t)want.need,
                                 .min_clients = (uint32_t)want.min_clients};
    return DIBS_OK;
}

dibs_breaker_state dibs__breaker_public(const dibs__breaker *machine)
{
    if (!machine->known || dibs__breaker_passes(machine))
        return DIBS_BREAKER_CLOSED;
    return machine->state == DIBS__BREAKER_FORCED ? DIBS_BREAKER_FORCED
                                                  : DIBS_BREAKER_OPEN;
}

const char *dibs_breaker_state_name(dibs_breaker_state state)
{
    static const char *const names[] = {"closed", "open", "half-open",
                                        "forced"};

    return (unsigned)state < 4 ? names[state] : "unknown";
}

void dibs__breaker_note(dibs_breaker *br, const dibs_error *err)
{
    bool away = br->machine.away;

    if (away == br->away)
        return;
    br->away = away;
    pthread_mutex_unlock(&br->cl->mutex);
    if (away)
        dibs__log(br->cl, DIBS_LOG_WARN, "breaker",
                  "the store does not answer, so %s decides for this client "
                  "alone: %s",
                  br->name, err->message);
    else
        dibs__log(br->cl, DIBS_LOG_WARN, "breaker",
                  "the store answers again: %s is shared", br->name);
    pthread_mutex_lock(&br->cl->mutex);
}

/* Locks: cl->mutex, let go for the log and the callback. */
static void tell_program(dibs_breaker *br)
{
    dibs_breaker_state state = dibs__breaker_public(&br->machine);

    if (state == br->said)
        return;
    br->said = state;
    pthread_mutex_unlock(&br->cl->mutex);
    dibs__log(br->cl, DIBS_LOG_INFO, "breaker", "%s is %s", br->name,
              dibs_breaker_state_name(state));
    if (br->on_change)
        br->on_change(br, state, br->arg);
    pthread_mutex_lock(&br->cl->mutex);
}

/* A report that is under way, on the stack of the thread that sends it. */
typedef struct dibs__breaker_request {
    struct dibs__breaker_request *next; /* the latest that is older */
} request;

static void begin_report(dibs_breaker *br, request *rq)
{
    *rq = (request){.next = br->reports};
    br->reports = rq;
}

static void end_report(dibs_breaker *br, const request *rq)
{
    request **at = &br->reports;

    while (*at != rq)
        at = &(*at)->next;
    *at = rq->next;
    pthread_cond_broadcast(&br->cl->over);
}

/* Waits until no older report is under way. */
static dibs_status await_older(dibs_breaker *br, const request *rq,
                               dibsx_nsec deadline, dibs_error *err)
{
    while (rq->next && dibsx_now() < deadline)
        dibsx_cond_wait(&br->cl->over, &br->cl->mutex, deadline);
    return rq->next ? dibsx_fail(err, DIBS_UNAVAIL,
                                 "the store has not answered earlier reports "
                                 "of the breaker")
                    : DIBS_OK;
}

static dibs_status
ask_meter(dibs_breaker *br, const dibs__meter *report, dibsx_nsec deadline,
          dibs__sums *sums, dibs_error *err)
{
    dibs_client *cl = br->cl;
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->meter->meter(cl->st, report, deadline, sums, err);
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* `last`: behind all older ones. */
static dibs_status send_meter(dibs_breaker *br, dibs__meter *report, bool last,
                              dibs__sums *sums, dibs_error *err)
{
    dibsx_nsec sent_at = dibsx_now();
    dibsx_nsec deadline = dibs__client_deadline(br->cl, sent_at);
    dibs_status rc = DIBS_OK;
    request rq;

    report->key = br->key;
    begin_report(br, &rq);
    if (last) {
        rc = await_older(br, &rq, deadline, err);
        sent_at = dibsx_now();
    }
    if (rc == DIBS_OK)
        rc = ask_meter(br, report, deadline, sums, err);
    end_report(br, &rq);
    dibs__breaker_metered(&br->machine, sent_at, dibsx_now(), rc, sums);
    return rc;
}

dibs_status dibs__breaker_send_report(dibs_breaker *br, dibs_error *err)
{
    dibs__sums sums = {0};
    dibs__meter report;

    dibs__breaker_report(&br->machine, dibsx_now(), &report);
    return send_meter(br, &report, false, &sums, err);
}

dibs_status
dibs__breaker_look(dibs_breaker *br, dibs__sums *sums, dibs_error *err)
{
    dibs__meter report;

    dibs__breaker_report(&br->machine, dibsx_now(), &report);
    return send_meter(br, &report, true, sums, err);
}

dibs_status
dibs__breaker_send_put(dibs_breaker *br, const dibs__breaker_act *act,
                       uint64_t expected, uint64_t *version, dibs_error *err)
{
    dibs_client *cl = br->cl;
    const char *text = dibs__breaker_text(act->state);
    const dibs__put put = {.key = br->key,
                           .data = text,
                           .len = strlen(text),
                           .expected = expected,
                           .ttl_ms = act->ttl_ms,
                           .shows = true};
    dibsx_nsec deadline = dibs__client_deadline(cl, dibsx_now());
    dibs_status rc;

    pthread_mutex_unlock(&cl->mutex);
    rc = dibs__reach_store(cl, deadline, err);
    if (rc == DIBS_OK)
        rc = cl->st->ops->value->put(cl->st, &put, deadline, version, err);
    pthread_mutex_lock(&cl->mutex);
    return rc;
}

/* A permit that is not given back ends by itself. */
static void release_permit(dibs_breaker *br, const dibs__breaker_permit *pm)
{
    dibs_client *cl = br->cl;
    const dibs__leave leave = {.name = br->key,
                               .owner = pm->owner,
                               .unanswered = true};

    pthread_mutex_unlock(&cl->mutex);
    (void)cl->st->ops->lease->release(cl->st, &leave,
                                      dibs__client_deadline(cl, dibsx_now()),
                                      NULL);
    pthread_mutex_lock(&cl->mutex);
    dibs__breaker_released(&br->machine, pm->id, dibsx_now());
}

static void listen_topic(dibs_breaker *br)
{
    dibsx_nsec sent_at = dibsx_now();
    dibs_status rc =
        dibs__handle_listen(&br->handle, dibs__client_deadline(br->cl, sent_at),
                            NULL);

    dibs__breaker_eared(&br->machine, sent_at, dibsx_now(), rc);
}

/* As long as the machine refuses calls, but for a tick of the coarse clock. The first call
 * is not refused so: with it the handle begins to listen. */
static void publish_refusal(dibs_breaker *br)
{
    dibsx_nsec ask_at = atomic_load(&br->machine.ask_at), until = 0;
    dibsx_nsec now = dibsx_now();

    if (ask_at == DIBSX_NEVER && br->machine.called)
        until = DIBSX_NEVER;
    else if (ask_at > now && br->machine.called)
        until = dibsx_coarse_now() + (ask_at - now);
    atomic_store_explicit(&br->refuse_until, until, memory_order_relaxed);
}

bool dibs__breaker_act_once(dibs_breaker *br)
{
    dibs__breaker_act act;
    dibs_error why = {0};
    dibs__sums sums = {0};
    uint64_t version = 0;
    dibs_status rc;

    switch (dibs__breaker_next(&br->machine, dibsx_now(), &act)) {
    case DIBS__BREAKER_SLEEP:
        return false;
    case DIBS__BREAKER_REPORT:
        (void)send_meter(br, &act.report, false, &sums, &why);
        break;
    case DIBS__BREAKER_PUT:
        rc = dibs__breaker_send_put(br, &act, act.version, &version, &why);
        dibs__breaker_put_over(&br->machine, &act, dibsx_now(), rc, version);
        break;
    case DIBS__BREAKER_RELEASE:
        release_permit(br, &act.permit);
        break;
    case DIBS__BREAKER_EAR:
        listen_topic(br);
        break;
    }
    publish_refusal(br);
    dibs__breaker_note(br, &why);
    return true;
}

/* Thread: a worker. */
static void work(dibs_client *cl, dibs__job *job)
{
    dibs_breaker *br =
        (dibs_breaker *)(void *)((char *)job - offsetof(dibs_breaker, job));

    do
        tell_program(br);
    while (!cl->closing && !br->ending && dibs__breaker_act_once(br));
    br->ordered = false;
    dibs__handle_end(&br->handle);
    dibs__breaker_arrange(br);
}

static void order_work(dibs_breaker *br)
{
    br->ordered = dibs__worker_add(br->cl, &br->job);
    if (br->ordered)
        dibs__handle_begin(&br->handle);
}

/* Thread: the keeper. */
static void fire(dibs_client *cl, dibs__timer *timer, dibsx_nsec now)
{
    dibs_breaker *br =
        (dibs_breaker *)(void *)((char *)timer - offsetof(dibs_breaker, timer));

    (void)now;
    if (!br->ordered && !br->ending && !cl->closing)
        order_work(br);
}

static dibs_breaker *breaker_of(dibs__handle *handle)
{
    return (dibs_breaker *)(void *)handle;
}

/* Thread: the keeper. */
static void hear_change(dibs__handle *handle, const dibs__notice *notice)
{
    dibs_breaker *br = breaker_of(handle);
    const dibs__said *said = notice->said;
    char shown[DIBS__SHOWN_TEXT] = "";

    if (notice->kind != DIBS__NOTICE_CHANGED)
        return;
    if (said && said->len < sizeof(shown))
        memcpy(shown, said->data, said->len);
    dibs__breaker_shown(&br->machine, notice->fence, shown, dibsx_now());
    dibs__breaker_arrange(br);
}

/* Thread: the keeper. */
static void hear_missed(dibs__handle *handle)
{
    dibs_breaker *br = breaker_of(handle);

    dibs__breaker_missed(&br->machine, dibsx_now());
    dibs__breaker_arrange(br);
}

void dibs__breaker_prepare(dibs_breaker *br, dibs_client *cl)
{
    static const dibs__handle_kind kind = {.noun = "a breaker",
                                           .hear = hear_change,
                                           .hear_missed = hear_missed};

    br->handle.kind = &kind;
    br->cl = cl;
    br->job.run = work;
    br->timer.fire = fire;
}

void dibs__breaker_arrange(dibs_breaker *br)
{
    dibs_client *cl = br->cl;
    dibsx_nsec now = dibsx_now();
    dibsx_nsec at = dibs__breaker_wake_at(&br->machine);

    publish_refusal(br);
    if (br->ordered || br->ending || cl->closing)
        return;
    /* One that only looks asks the store each time, and has nothing to do between. */
    if (!br->machine.called && !br->on_change)
        return;
    if (dibs__breaker_public(&br->machine) != br->said)
        at = now;
    if (at <= now)
        order_work(br);
    if (!br->ordered)
        dibs__timer_set(cl, &br->timer,
                        at <= now ? dibsx_after_ms(now, DIBS__BREAKER_REPORT_MS)
                                  : at);
}
