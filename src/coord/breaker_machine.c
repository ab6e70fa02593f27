/* breaker_machine.c - one client's part of a circuit breaker. Pure. */
/* SPDX-License-Identifier: MIT */
#include "coord/breaker_machine.h"
#include "base/fail.h"
#include "store/topic.h"
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {[DIBS__BREAKER_CLOSED] = "closed",
                                    [DIBS__BREAKER_OPEN] = "open",
                                    [DIBS__BREAKER_FORCED] = "forced"};

const char *dibs__breaker_text(dibs__breaker_state state)
{
    return texts[state];
}

/* No value is closed, and so is what no breaker has written. */
dibs__breaker_state dibs__breaker_parse(const char *text)
{
    if (strcmp(text, texts[DIBS__BREAKER_OPEN]) == 0)
        return DIBS__BREAKER_OPEN;
    if (strcmp(text, texts[DIBS__BREAKER_FORCED]) == 0)
        return DIBS__BREAKER_FORCED;
    return DIBS__BREAKER_CLOSED;
}

bool dibs__breaker_passes(const dibs__breaker *br)
{
    if (!br->known)
        return false;
    return br->own == DIBS__BREAKER_RESUMED ||
           (br->state == DIBS__BREAKER_CLOSED &&
            br->own != DIBS__BREAKER_TRIPPED);
}

static void publish(dibs__breaker *br, dibsx_nsec now)
{
    bool at_once =
        br->called && dibs__breaker_passes(br) && br->ramp_until <= now;

    atomic_store_explicit(&br->word, br->gen * 2 + at_once,
                          memory_order_release);
}

static void set_ask_at(dibs__breaker *br, dibsx_nsec at)
{
    atomic_store_explicit(&br->ask_at, at, memory_order_relaxed);
}

/* Clients ask for permits at different moments: recovery is spread by a tenth. */
static dibsx_nsec spread(dibs__breaker *br, dibsx_nsec at)
{
    uint64_t tenth = (uint64_t)(br->rules.recovery_ms * DIBSX_MS / 10);
    dibsx_nsec by = (dibsx_nsec)dibsx_prng_below(&br->prng, tenth + 1);

    return at < DIBSX_NEVER - by ? at + by : DIBSX_NEVER;
}

/* Results of calls and probes of the generation before count no more. */
static void begin_gen(dibs__breaker *br, dibsx_nsec now)
{
    br->gen++;
    br->window = (dibs__meter_window){0};
    br->own_goods = 0;
    if (dibs__breaker_passes(br))
        set_ask_at(br, 0);
    else if (br->state == DIBS__BREAKER_FORCED)
        set_ask_at(br, DIBSX_NEVER);
    else
        set_ask_at(br, spread(br, br->recover_at));
    publish(br, now);
}

void dibs__breaker_init(dibs__breaker *br, const dibs__breaker_rules *rules,
                        bool shared, uint64_t seed)
{
    memset(br, 0, sizeof(*br));
    br->rules = *rules;
    br->shared = shared;
    br->prng.state = seed;
    br->mark = (uint32_t)dibsx_prng_below(&br->prng, DIBS__METER_MARKS);
    br->known = !shared;
    br->away = !shared;
    br->report_at = br->ear_at = shared ? 0 : DIBSX_NEVER;
    begin_gen(br, 0);
}

static int64_t take_cells(dibs__breaker *br)
{
    int64_t good = 0;

    for (size_t i = 0; i < DIBS__BREAKER_CELLS; i++)
        good += atomic_exchange_explicit(&br->cells[i].good, 0,
                                         memory_order_relaxed);
    return good;
}

/* Adds calls to the window of this client; the sums are its own. */
static void add_to_window(dibs__breaker *br, int64_t good, int64_t bad,
                          int64_t slow, dibsx_nsec now, dibs__sums *sums)
{
    const dibs__meter own = {.window_ms = br->rules.sampling_ms,
                             .good = good,
                             .bad = bad,
                             .slow = slow};

    (void)dibs__meter_add(&br->window, &own, now / DIBSX_MS, sums);
}

/* Takes the good calls of all threads. While the store is away calls may pass though
 * the state is open: these are no probes, and are not reported. */
static void collect(dibs__breaker *br, dibsx_nsec now)
{
    int64_t good = take_cells(br);
    dibs__sums sums;

    if (good == 0)
        return;
    br->active = true;
    add_to_window(br, good, 0, 0, now, &sums);
    if (br->state == DIBS__BREAKER_CLOSED)
        br->good += good;
}

/* The notice that showed the state was late by as much as the store knows better. Before it
 * has recovered no permit was asked for, so that nothing else says when that may be. */
static void correct_recovery(dibs__breaker *br, int64_t left_ms, dibsx_nsec now)
{
    dibsx_nsec at = dibsx_after_ms(now, left_ms > 0 ? left_ms : 0);

    br->shown = false;
    if (br->state != DIBS__BREAKER_OPEN || br->own != DIBS__BREAKER_FOLLOWS ||
        now >= br->recover_at || at >= br->recover_at)
        return;
    br->recover_at = at;
    set_ask_at(br, spread(br, at));
}

/* Learns the state of the store. */
static void adopt(dibs__breaker *br, uint64_t version,
                  dibs__breaker_state state, int64_t left_ms, dibsx_nsec now)
{
    bool first = !br->known;
    bool same = !first && version == br->version && state == br->state;

    br->known = true;
    br->stated_at = now;
    if (same) {
        if (br->shown)
            correct_recovery(br, left_ms, now);
        return;
    }
    br->shown = false;
    br->version = version;
    br->state = state;
    br->own = DIBS__BREAKER_FOLLOWS;
    br->wants = DIBS__BREAKER_WANTS_NOTHING;
    (void)take_cells(br);
    br->good = br->bad = br->slow = br->probe_goods = 0;
    br->recover_at = dibsx_after_ms(now, left_ms > 0 ? left_ms : 0);
    br->ramp_until = 0;
    if (state == DIBS__BREAKER_CLOSED && br->rules.ramp_ms > 0 && left_ms > 0)
        br->ramp_until = dibsx_after_ms(now, left_ms);
    begin_gen(br, now);
    /* Programs that make one call each begin at different moments anyway. */
    if (first && state == DIBS__BREAKER_OPEN && left_ms <= 0)
        set_ask_at(br, now);
}

static bool reaches(int64_t part, int64_t calls, int64_t percent)
{
    return percent > 0 && part > 0 && part * 100 >= percent * calls;
}

static bool trips(const dibs__breaker_rules *rules, const dibs__sums *sums)
{
    int64_t calls = sums->good + sums->bad;

    if (rules->threshold > 0 && sums->bad >= rules->threshold)
        return true;
    return calls >= rules->min_calls &&
           (reaches(sums->bad, calls, rules->rate_percent) ||
            reaches(sums->slow, calls, rules->slow_percent));
}

/* By the calls of this client alone; it waits for nobody. */
static void trip(dibs__breaker *br, dibsx_nsec now)
{
    br->own = br->state == DIBS__BREAKER_CLOSED ? DIBS__BREAKER_TRIPPED
                                                : DIBS__BREAKER_FOLLOWS;
    br->recover_at = dibsx_after_ms(now, br->rules.recovery_ms);
    begin_gen(br, now);
    if (br->shared)
        br->report_at = now;
}

static void count_call(dibs__breaker *br, bool good, bool slow, dibsx_nsec now)
{
    dibsx_nsec soon = dibsx_after_ms(now, DIBS__BREAKER_SOON_MS);
    dibs__sums sums;

    collect(br, now);
    br->active = true;
    add_to_window(br, good, !good, slow, now, &sums);
    if (br->state == DIBS__BREAKER_CLOSED) {
        br->good += good;
        br->bad += !good;
        br->slow += slow;
    }
    if (trips(&br->rules, &sums))
        trip(br, now);
    else if (br->shared && (!good || slow) && br->report_at > soon)
        br->report_at = soon;
}

dibs__breaker_permit *dibs__breaker_permit_of(dibs__breaker *br, uint64_t id)
{
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use != DIBS__PERMIT_FREE && br->permits[i].id == id)
            return &br->permits[i];
    return NULL;
}

/* C4: a probe whose permit has ended is void, whether it ends or not. */
static void drop_ended(dibs__breaker *br, dibsx_nsec now)
{
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use == DIBS__PERMIT_PROBING &&
            br->permits[i].valid_until <= now)
            br->permits[i].use = DIBS__PERMIT_FREE;
}

static dibs__breaker_permit *new_permit(dibs__breaker *br)
{
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use == DIBS__PERMIT_FREE) {
            br->permits[i] = (dibs__breaker_permit){.id = ++br->last_id,
                                                    .gen = br->gen,
                                                    .released = br->released};
            return &br->permits[i];
        }
    return NULL;
}

static bool has_over(const dibs__breaker *br)
{
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use == DIBS__PERMIT_OVER)
            return true;
    return false;
}

/* A share of the calls passes, which rises to all of them. */
static bool ramps(dibs__breaker *br, dibsx_nsec now)
{
    double whole = (double)(br->rules.ramp_ms * DIBSX_MS);
    double share = 1 - (double)(br->ramp_until - now) / whole;

    br->ramp_share += share > 0.01 ? share : 0.01;
    if (br->ramp_share < 1)
        return false;
    br->ramp_share -= 1;
    return true;
}

/* Without the store there is one probe at a time. */
static dibs__enter_todo
probe_alone(dibs__breaker *br, dibs__breaker_permit *pm, dibsx_nsec now)
{
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use == DIBS__PERMIT_PROBING && br->permits[i].own)
            return DIBS__ENTER_REFUSED;
    pm->use = DIBS__PERMIT_PROBING;
    pm->own = true;
    pm->valid_until = dibsx_after_ms(now, br->rules.probe_ttl_ms);
    set_ask_at(br, pm->valid_until);
    return DIBS__ENTER_PASS;
}

/* It tripped by itself, and the store is about to open it for all. */
static bool opens_for_all(const dibs__breaker *br)
{
    return br->own == DIBS__BREAKER_TRIPPED && !br->away &&
           br->rules.min_clients <= 1;
}

/* Open, and recovered. */
static dibs__enter_todo
enter_probe(dibs__breaker *br, dibsx_nsec now, dibs__breaker_pass *pass)
{
    dibs__breaker_permit *pm = opens_for_all(br) ? NULL : new_permit(br);

    if (!pm)
        return DIBS__ENTER_REFUSED;
    pass->permit = pm->id;
    if (br->own == DIBS__BREAKER_TRIPPED || br->away)
        return probe_alone(br, pm, now);
    pm->use = DIBS__PERMIT_ASKED;
    set_ask_at(br, dibsx_after_ms(now, DIBS__BREAKER_REPORT_MS));
    return DIBS__ENTER_ASK;
}

dibs__enter_todo
dibs__breaker_enter(dibs__breaker *br, dibsx_nsec now, dibs__breaker_pass *pass)
{
    *pass = (dibs__breaker_pass){.gen = br->gen};
    if (!br->called) {
        br->called = true;
        publish(br, now);
    }
    drop_ended(br, now);
    if (!br->known)
        return DIBS__ENTER_LOOK;
    if (dibs__breaker_passes(br)) {
        if (br->ramp_until > now)
            return ramps(br, now) ? DIBS__ENTER_PASS : DIBS__ENTER_REFUSED;
        publish(br, now);
        return DIBS__ENTER_PASS;
    }
    if (dibs__breaker_refuse_at_once(br, now))
        return DIBS__ENTER_REFUSED;
    return enter_probe(br, now, pass);
}

/* C3: a permit that was asked for in another generation, or whose time is up, is for
 * nothing. */
static dibs__enter_todo granted(dibs__breaker *br, dibs__breaker_permit *pm,
                                dibsx_nsec now, dibsx_nsec valid_until)
{
    if (pm->gen != br->gen || now >= valid_until) {
        pm->use = DIBS__PERMIT_OVER;
        return DIBS__ENTER_LOOK;
    }
    pm->use = DIBS__PERMIT_PROBING;
    pm->valid_until = valid_until;
    set_ask_at(br, br->rules.probes > 1 ? now : valid_until);
    return DIBS__ENTER_PASS;
}

/* The store did not answer, so that the client goes on alone. All else is an answer: a
 * store that forbids permits, say, has a state that is shared. */
static bool is_away(dibs_status rc)
{
    return dibsx_is_away(rc) || rc == DIBS_NOMEM;
}

dibs__enter_todo
dibs__breaker_answered(dibs__breaker *br, const dibs__breaker_pass *pass,
                       dibsx_nsec now, dibs_status rc, dibsx_nsec valid_until,
                       int64_t left_ms)
{
    dibs__breaker_permit *pm = dibs__breaker_permit_of(br, pass->permit);
    bool same = pm->gen == br->gen;

    if (rc == DIBS_OK)
        return granted(br, pm, now, valid_until);
    /* Without an answer it may have been granted. */
    pm->use = rc == DIBS_UNKNOWN ? DIBS__PERMIT_OVER : DIBS__PERMIT_FREE;
    if (is_away(rc)) {
        br->away = true;
        if (same)
            set_ask_at(br, now);
        return DIBS__ENTER_LOOK;
    }
    if (rc != DIBS_BUSY)
        left_ms = DIBS__BREAKER_REPORT_MS;
    if (left_ms > br->rules.probe_ttl_ms)
        left_ms = br->rules.probe_ttl_ms;
    /* The permit it waits for may be its own, which is about to be released. */
    if (rc == DIBS_BUSY && left_ms > DIBS__BREAKER_SOON_MS &&
        (has_over(br) || pm->released != br->released))
        left_ms = DIBS__BREAKER_SOON_MS;
    if (same)
        set_ask_at(br, dibsx_after_ms(now, left_ms > 10 ? left_ms : 10));
    return DIBS__ENTER_REFUSED;
}

/* Permits of the store that are not released yet. */
static uint32_t permits_in_use(const dibs__breaker *br)
{
    uint32_t count = 0;

    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        count += br->permits[i].use != DIBS__PERMIT_FREE && !br->permits[i].own;
    return count;
}

/* A probe without the store. */
static void own_probe_ended(dibs__breaker *br, bool good, dibsx_nsec now)
{
    set_ask_at(br, now);
    if (!good) {
        br->recover_at = dibsx_after_ms(now, br->rules.recovery_ms);
        begin_gen(br, now);
    } else if (++br->own_goods >= br->rules.need) {
        if (br->state == DIBS__BREAKER_CLOSED)
            br->own = DIBS__BREAKER_FOLLOWS;
        else if (br->away)
            br->own = DIBS__BREAKER_RESUMED;
        begin_gen(br, now);
    }
}

static void probe_ended(dibs__breaker *br, bool good, dibsx_nsec now)
{
    bool none_left = permits_in_use(br) >= br->rules.probes;

    if (good) {
        br->probe_goods++;
        br->report_at = now;
        set_ask_at(br, none_left ? dibsx_after_ms(now, DIBS__BREAKER_SOON_MS)
                                 : now);
        return;
    }
    br->wants = DIBS__BREAKER_WANTS_OPEN;
    br->recover_at = dibsx_after_ms(now, br->rules.recovery_ms);
    set_ask_at(br, br->recover_at);
}

void dibs__breaker_left(dibs__breaker *br, const dibs__breaker_pass *pass,
                        bool good, bool slow, dibsx_nsec now)
{
    dibs__breaker_permit *pm;
    bool own, counts;

    if (pass->permit == 0) {
        if (pass->gen == br->gen && dibs__breaker_passes(br))
            count_call(br, good, slow, now);
        return;
    }
    drop_ended(br, now);
    pm = dibs__breaker_permit_of(br, pass->permit);
    if (!pm || pm->use != DIBS__PERMIT_PROBING)
        return;
    own = pm->own;
    counts = pm->gen == br->gen;
    pm->use = own ? DIBS__PERMIT_FREE : DIBS__PERMIT_OVER;
    if (counts && own)
        own_probe_ended(br, good && !slow, now);
    else if (counts && br->state == DIBS__BREAKER_OPEN)
        probe_ended(br, good && !slow, now);
}

int64_t dibs__breaker_retry_ms(const dibs__breaker *br, dibsx_nsec now)
{
    dibsx_nsec at = atomic_load_explicit(&br->ask_at, memory_order_relaxed);

    return at == DIBSX_NEVER ? -1 : dibsx_wait_ms(at, now);
}

int64_t dibs__breaker_recover_ms(const dibs__breaker *br, dibsx_nsec now)
{
    if (br->called || br->state != DIBS__BREAKER_OPEN)
        return dibs__breaker_retry_ms(br, now);
    return dibsx_wait_ms(br->recover_at, now);
}

void dibs__breaker_report(dibs__breaker *br, dibsx_nsec now, dibs__meter *out)
{
    collect(br, now);
    *out = (dibs__meter){.version = br->version,
                         .window_ms = br->rules.sampling_ms,
                         .good = br->good + br->probe_goods,
                         .bad = br->bad,
                         .slow = br->slow,
                         .mark = br->mark};
    br->good = br->bad = br->slow = br->probe_goods = 0;
    br->report_at = dibsx_after_ms(now, DIBS__BREAKER_REPORT_MS);
    br->again = false;
}

/* Decides by the sums of all clients. One that only looks may have other rules than those
 * that make the calls. */
static void decide(dibs__breaker *br, const dibs__sums *sums)
{
    const dibs__breaker_rules *rules = &br->rules;

    if (!br->called || br->wants != DIBS__BREAKER_WANTS_NOTHING)
        return;
    if (br->state == DIBS__BREAKER_OPEN && sums->good >= rules->need)
        br->wants = DIBS__BREAKER_WANTS_CLOSED;
    if (br->state == DIBS__BREAKER_CLOSED &&
        ((trips(rules, sums) && sums->reporters >= rules->min_clients) ||
         opens_for_all(br)))
        br->wants = DIBS__BREAKER_WANTS_OPEN;
}

/* Whether results wait that are reported soon. */
static bool has_news(const dibs__breaker *br)
{
    int64_t good = br->own == DIBS__BREAKER_TRIPPED ? br->good : 0;

    return good + br->bad + br->slow + br->probe_goods > 0;
}

/* News that came while a report was under way keep their moment. */
static void find_next_report(dibs__breaker *br, dibsx_nsec now)
{
    bool often = br->active || br->away || !br->listening;
    dibsx_nsec at = dibsx_after_ms(now, often ? DIBS__BREAKER_REPORT_MS
                                              : DIBS__BREAKER_LOOK_MS);

    br->active = false;
    if (at < br->report_at || !has_news(br))
        br->report_at = at;
}

static void lose_store(dibs__breaker *br, dibsx_nsec now)
{
    br->away = true;
    if (!br->known)
        adopt(br, 0, DIBS__BREAKER_CLOSED, 0, now);
}

static void regain_store(dibs__breaker *br, dibsx_nsec now)
{
    br->away = false;
    if (br->own != DIBS__BREAKER_RESUMED)
        return;
    br->own = DIBS__BREAKER_FOLLOWS;
    begin_gen(br, now);
}

void dibs__breaker_metered(dibs__breaker *br, dibsx_nsec sent_at,
                           dibsx_nsec now, dibs_status rc,
                           const dibs__sums *sums)
{
    find_next_report(br, now);
    if (rc != DIBS_OK && rc != DIBS_STALE) {
        /* One that was sent before the last answer says nothing about now. */
        if (!br->known || sent_at >= br->stated_at)
            lose_store(br, now);
        return;
    }
    if (br->away)
        regain_store(br, now);
    /* A request that was sent before the last change was known may be about the
     * time before it. */
    if (br->known && sent_at < br->stated_at) {
        br->report_at = now;
        return;
    }
    if (br->again && (br->told == 0 || br->told != sums->version))
        br->report_at = now; /* Something changed after this was asked for. */
    br->sums = *sums;
    adopt(br, sums->version, dibs__breaker_parse(sums->state),
          sums->expires_ms - DIBS__BREAKER_KEEP_MS, now);
    if (rc == DIBS_OK)
        decide(br, sums);
}

static void fill_put(dibs__breaker *br, dibsx_nsec now, dibs__breaker_act *act)
{
    bool opens = br->wants == DIBS__BREAKER_WANTS_OPEN;
    int64_t span_ms = opens ? br->rules.recovery_ms : br->rules.ramp_ms;

    if (opens && br->own == DIBS__BREAKER_TRIPPED)
        span_ms = dibsx_wait_ms(br->recover_at, now);
    act->state = opens ? DIBS__BREAKER_OPEN : DIBS__BREAKER_CLOSED;
    act->version = br->version;
    act->ttl_ms = span_ms + DIBS__BREAKER_KEEP_MS;
    br->wants = DIBS__BREAKER_WANTS_NOTHING;
}

static dibs__breaker_todo begin_ear(dibs__breaker *br, dibsx_nsec now)
{
    br->cut = false;
    br->ear_at = dibsx_after_ms(now, DIBS__BREAKER_LOOK_MS);
    return DIBS__BREAKER_EAR;
}

/* It listens before it looks: the store tells it what changes in between. */
dibs__breaker_todo
dibs__breaker_next(dibs__breaker *br, dibsx_nsec now, dibs__breaker_act *act)
{
    *act = (dibs__breaker_act){.until = br->report_at};
    drop_ended(br, now);
    if (!br->shared)
        return DIBS__BREAKER_SLEEP;
    if (br->wants != DIBS__BREAKER_WANTS_NOTHING) {
        fill_put(br, now, act);
        return DIBS__BREAKER_PUT;
    }
    if (br->ear_at <= now && !br->listening)
        return begin_ear(br, now);
    if (br->report_at <= now) {
        dibs__breaker_report(br, now, &act->report);
        return DIBS__BREAKER_REPORT;
    }
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++)
        if (br->permits[i].use == DIBS__PERMIT_OVER) {
            act->permit = br->permits[i];
            return DIBS__BREAKER_RELEASE;
        }
    if (br->ear_at <= now)
        return begin_ear(br, now);
    if (br->ear_at < act->until)
        act->until = br->ear_at;
    return DIBS__BREAKER_SLEEP;
}

dibsx_nsec dibs__breaker_wake_at(const dibs__breaker *br)
{
    if (!br->shared)
        return DIBSX_NEVER;
    if (br->wants != DIBS__BREAKER_WANTS_NOTHING || has_over(br))
        return 0;
    return br->ear_at < br->report_at ? br->ear_at : br->report_at;
}

bool dibs__breaker_pending(dibs__breaker *br, dibsx_nsec now)
{
    bool counts;

    if (!br->shared)
        return false;
    collect(br, now);
    counts = br->good + br->bad + br->slow + br->probe_goods > 0;
    br->ear_at = DIBSX_NEVER;
    br->report_at = counts ? now : DIBSX_NEVER;
    return counts || br->wants != DIBS__BREAKER_WANTS_NOTHING || has_over(br);
}

void dibs__breaker_put_over(dibs__breaker *br, const dibs__breaker_act *act,
                            dibsx_nsec now, dibs_status rc, uint64_t version)
{
    if (rc == DIBS_OK) {
        if (br->away)
            regain_store(br, now);
        if (!br->known || version > br->version)
            adopt(br, version, act->state, act->ttl_ms - DIBS__BREAKER_KEEP_MS,
                  now);
    } else if (rc == DIBS_STALE || rc == DIBS_UNKNOWN) {
        br->report_at = now;
    } else {
        lose_store(br, now);
    }
}

/* An answer that is under way may be older than what calls for the look. */
static void look_again(dibs__breaker *br, uint64_t version, dibsx_nsec now)
{
    br->told = version;
    br->again = true;
    br->report_at = now;
}

/* The next probe may begin. After a bad one it has not recovered. */
void dibs__breaker_released(dibs__breaker *br, uint64_t id, dibsx_nsec now)
{
    dibs__breaker_permit *pm = dibs__breaker_permit_of(br, id);

    if (!pm || pm->use != DIBS__PERMIT_OVER)
        return;
    pm->use = DIBS__PERMIT_FREE;
    br->released++;
    if (pm->gen == br->gen && !br->away && br->recover_at <= now)
        set_ask_at(br, now);
}

/* An answer that a MISSED overtook is of a connection that is lost: another ear follows. */
void dibs__breaker_eared(dibs__breaker *br, dibsx_nsec sent_at, dibsx_nsec now,
                         dibs_status rc)
{
    bool was = br->listening && sent_at < br->heard_until;

    if (rc == DIBS_OK && br->cut)
        return;
    br->listening = rc == DIBS_OK;
    if (!br->listening)
        return;
    br->heard_until = dibsx_after_ms(sent_at, DIBS__EAR_MS);
    if (!was)
        look_again(br, 0, now); /* a change before it was heard by nobody */
}

void dibs__breaker_told(dibs__breaker *br, uint64_t version, dibsx_nsec now)
{
    if (br->shared && (!br->known || version != br->version))
        look_again(br, version, now);
}

/* Reads "TTL_MS TEXT", if the text is that of a state. */
static bool
read_shown(const char *shown, int64_t *ttl_ms, dibs__breaker_state *state)
{
    char *end;

    *ttl_ms = strtoll(shown, &end, 10);
    if (end == shown || *ttl_ms < 0 || *end != ' ')
        return false;
    *state = dibs__breaker_parse(end + 1);
    return strcmp(end + 1, dibs__breaker_text(*state)) == 0;
}

void dibs__breaker_shown(dibs__breaker *br, uint64_t version, const char *shown,
                         dibsx_nsec now)
{
    dibs__breaker_state state;
    int64_t ttl_ms;

    if (!br->shared || !br->known || br->away || version <= br->version ||
        !read_shown(shown, &ttl_ms, &state)) {
        dibs__breaker_told(br, version, now);
        return;
    }
    adopt(br, version, state, ttl_ms - DIBS__BREAKER_KEEP_MS, now);
    br->shown = true;
}

void dibs__breaker_missed(dibs__breaker *br, dibsx_nsec now)
{
    if (!br->shared)
        return;
    br->listening = false;
    br->cut = true;
    br->ear_at = now;
    look_again(br, 0, now);
}

const char *dibs__breaker_check(const dibs__breaker *br, dibsx_nsec now)
{
    uint64_t word = atomic_load(&br->word);
    uint32_t own = 0, shared = 0;

    if (word >> 1 != br->gen)
        return "the word is of another generation";
    if ((word & 1) && !dibs__breaker_passes(br))
        return "calls pass at once though it is not closed";
    if (br->state != DIBS__BREAKER_CLOSED && br->good + br->bad + br->slow > 0)
        return "C1: calls are to be reported that began under no closed "
               "version";
    if (br->state != DIBS__BREAKER_OPEN && br->probe_goods > 0)
        return "C2: probes are to be reported that were of no open version";
    if (br->wants == DIBS__BREAKER_WANTS_CLOSED &&
        br->state != DIBS__BREAKER_OPEN)
        return "C2: it wants to close what is not open";
    for (size_t i = 0; i < DIBS__BREAKER_PERMITS; i++) {
        const dibs__breaker_permit *pm = &br->permits[i];

        if (pm->use != DIBS__PERMIT_PROBING || pm->valid_until <= now)
            continue;
        own += pm->own;
        shared += !pm->own;
        if (pm->gen == br->gen && dibs__breaker_passes(br))
            return "C3: a probe while calls pass";
    }
    if (own > 1)
        return "C3: more than one probe without the store";
    return shared > br->rules.probes ? "C3: more probes than permits" : NULL;
}
