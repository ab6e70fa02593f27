/* tick.c - ticks of a job. */
/* SPDX-License-Identifier: MIT */
#include "jobs/tick.h"
#include "base/fail.h"
#include "base/sha1.h"
#include "jobs/run_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_US INT64_C(1000000)

int64_t dibs__job_jitter_us(const dibs__job *job, const char *board)
{
    char text[2 * DIBS__JOB_NAME_SIZE + 2], hash[DIBSX_SHA1_TEXT];
    int len;

    if (job->jitter_ms <= 0)
        return 0;
    len = snprintf(text, sizeof(text), "%.100s %.100s", board, job->name);
    dibsx_sha1(text, (size_t)len, hash);
    hash[12] = '\0';
    return (int64_t)(strtoull(hash, NULL, 16) %
                     ((uint64_t)job->jitter_ms * 1000));
}

static dibs__cron
cron_of(const dibs__job *job, const dibs__job_state *state, size_t i)
{
    dibs__cron cron = job->schedule.at[i].cron;

    cron.anchor_s = state->anchor_s;
    return cron;
}

static bool is_in_bounds(const dibs__job *job, int64_t at)
{
    return (job->from_s == DIBS__JOB_NONE || at >= job->from_s) &&
           (job->until_s == DIBS__JOB_NONE || at <= job->until_s);
}

bool dibs__job_next(const dibs__job *job, const dibs__job_state *state,
                    const dibs__zone *zone, int64_t after_s,
                    int64_t after_local_s, dibs__tick *out)
{
    bool early = job->from_s != DIBS__JOB_NONE && after_s < job->from_s;
    bool found = false;
    dibs__tick tick;

    for (size_t i = 0; i < job->schedule.count; i++) {
        dibs__cron cron = cron_of(job, state, i);
        bool one = early ? dibs__cron_next(&cron, zone, job->from_s - 1, &tick)
                         : dibs__cron_next_from(&cron, zone, after_s,
                                                after_local_s, &tick);

        if (one && (!found || tick.at < out->at)) {
            *out = tick;
            found = true;
        }
    }
    return found && is_in_bounds(job, out->at);
}

static bool find_prev(const dibs__job *job, const dibs__job_state *state,
                      const dibs__zone *zone, int64_t before_s, dibs__tick *out)
{
    bool found = false;
    dibs__tick tick;

    if (job->until_s != DIBS__JOB_NONE && before_s > job->until_s + 1)
        before_s = job->until_s + 1;
    for (size_t i = 0; i < job->schedule.count; i++) {
        dibs__cron cron = cron_of(job, state, i);

        if (dibs__cron_prev(&cron, zone, before_s, &tick) &&
            (!found || tick.at > out->at)) {
            *out = tick;
            found = true;
        }
    }
    return found && is_in_bounds(job, out->at);
}

static void
set_next(const dibs__job *job, dibs__job_state *state, const dibs__ticker *tk)
{
    dibs__tick next;

    state->changed = true;
    state->next_s = state->next_local_s = state->due_us = 0;
    (void)snprintf(state->tzdata, sizeof(state->tzdata), "%s", tk->tzdata);
    if (!job->enabled || !dibs__job_next(job, state, tk->zone, state->mark_s,
                                         state->mark_local_s, &next))
        return;
    state->next_s = next.at;
    state->next_local_s = next.at + next.offset_s;
    if (state->paused)
        state->due_us = state->paused_until_us;
    else
        state->due_us = next.at * SECOND_US + tk->jitter_us;
}

static void set_mark(const dibs__job *job, dibs__job_state *state,
                     const dibs__ticker *tk, int64_t mark_s, int64_t local_s)
{
    state->mark_s = mark_s;
    state->mark_local_s = local_s;
    set_next(job, state, tk);
}

void dibs__tick_reset(const dibs__job *job, dibs__job_state *state,
                      const dibs__ticker *tk, int64_t now_us)
{
    int64_t now_s = now_us / SECOND_US;

    if (!state->anchor_s)
        state->anchor_s = now_s;
    state->resets += now_s < state->mark_s;
    set_mark(job, state, tk, now_s, now_s + dibs__zone_offset(tk->zone, now_s));
}

void dibs__tick_refresh(const dibs__job *job, dibs__job_state *state,
                        const dibs__ticker *tk)
{
    set_next(job, state, tk);
}

void dibs__job_pause(dibs__job_state *state, const char *by, const char *note,
                     int64_t until_us)
{
    state->paused = true;
    (void)snprintf(state->paused_by, sizeof(state->paused_by), "%s", by);
    (void)snprintf(state->note, sizeof(state->note), "%s", note);
    state->paused_until_us = until_us;
    state->due_us = until_us;
    state->changed = true;
}

void dibs__job_unpause(const dibs__job *job, dibs__job_state *state,
                       const dibs__ticker *tk, int64_t now_us)
{
    state->paused = false;
    state->paused_by[0] = state->note[0] = '\0';
    state->paused_until_us = 0;
    /* A clock that was set back makes nothing run twice. */
    if (now_us / SECOND_US < state->mark_s)
        set_next(job, state, tk);
    else
        dibs__tick_reset(job, state, tk, now_us);
}

/* The ticks after the mark up to now. */
typedef struct late_ticks {
    dibs__tick oldest, newest;
    uint64_t count; /* DIBS__TICKS_COUNTED: or more */
} late_ticks;

static dibs__tick next_of(const dibs__job_state *state)
{
    return (dibs__tick){.at = state->next_s,
                        .offset_s =
                            (int32_t)(state->next_local_s - state->next_s)};
}

static void find_late(const dibs__scene *sc, const dibs__ticker *tk,
                      int64_t now_s, late_ticks *late)
{
    dibs__tick tick = next_of(sc->state);

    late->oldest = late->newest = tick;
    for (late->count = 1; late->count < DIBS__TICKS_COUNTED; late->count++) {
        if (!dibs__job_next(sc->job, sc->state, tk->zone, tick.at,
                            tick.at + tick.offset_s, &tick) ||
            tick.at > now_s)
            return;
        late->newest = tick;
    }
    /* More than are counted; the newest is found from the other side. */
    if (find_prev(sc->job, sc->state, tk->zone, now_s + 1, &tick) &&
        tick.at > late->newest.at)
        late->newest = tick;
}

/* The tick that runs, and what becomes of the others. */
typedef struct choice {
    dibs__tick tick;
    bool runs;
    uint64_t merged, missed;
} choice;

static int64_t due_us(const dibs__ticker *tk, const dibs__tick *tick)
{
    return tick->at * SECOND_US + tk->jitter_us;
}

static choice
choose_skip(dibs__scene *sc, const dibs__ticker *tk, const late_ticks *late)
{
    int64_t until_us =
        due_us(tk, &late->newest) + sc->job->misfire.grace_ms * 1000;
    choice pick = {.tick = late->newest, .missed = late->count - 1};

    pick.runs = sc->now_us <= until_us;
    if (pick.runs)
        dibs__intent_not_after(sc->in, until_us);
    else {
        pick.missed++;
        dibs__intent_not_before(sc->in, until_us + 1);
    }
    return pick;
}

static choice
choose_each(dibs__scene *sc, const dibs__ticker *tk, const late_ticks *late)
{
    uint64_t max =
        sc->job->misfire.max > 0 ? (uint64_t)sc->job->misfire.max : 1;
    choice pick = {.tick = late->oldest, .runs = true};

    if (late->count <= max) {
        dibs__intent_not_before(sc->in, due_us(tk, &late->oldest));
        return pick;
    }
    pick.tick = late->newest;
    pick.missed = late->count - max;
    for (uint64_t i = 1; i < max; i++)
        if (!find_prev(sc->job, sc->state, tk->zone, pick.tick.at, &pick.tick))
            break;
    dibs__intent_not_before(sc->in, due_us(tk, &late->newest));
    return pick;
}

static choice
choose(dibs__scene *sc, const dibs__ticker *tk, const late_ticks *late)
{
    choice pick = {.tick = late->newest, .runs = true};

    if (sc->job->misfire.policy == DIBS__MISFIRE_RUN_ALL)
        return choose_each(sc, tk, late);
    dibs__intent_not_before(sc->in, due_us(tk, &late->newest));
    if (sc->job->misfire.policy == DIBS__MISFIRE_SKIP)
        return choose_skip(sc, tk, late);
    pick.merged = late->count - 1;
    return pick;
}

static dibs_status make_run(dibs__scene *sc, const dibs__ticker *tk,
                            const choice *pick, dibs_error *err)
{
    char id[DIBS__RUN_ID_SIZE];
    dibs_status rc;

    dibs__run_id_of_tick(sc->job->name, pick->tick.at, id);
    rc = dibs__run_make(sc->run, id, sc->job, tk->hash, err);
    if (rc == DIBS_OK)
        rc = dibs__run_params(sc->run, sc->job, NULL, 0, err);
    if (rc != DIBS_OK)
        return rc;
    sc->run->cause = DIBS__CAUSE_TICK;
    sc->run->tick_s = pick->tick.at;
    sc->run->merged = pick->merged;
    rc = dibs__run_start(sc, err);
    if (rc == DIBS_BUSY) {
        dibs__run_fini(sc->run);
        sc->state->skipped++;
        return DIBS_OK;
    }
    return rc;
}

/* Rule 13: the store has lost the mark that this node has seen. A user may set it back,
 * and then counts that: so a reset that was lost is written back, too. */
static bool write_back(dibs__scene *sc, const dibs__ticker *tk)
{
    dibs__job_state *state = sc->state;

    if (state->resets > tk->seen_resets ||
        (state->resets == tk->seen_resets && state->mark_s >= tk->seen_s))
        return false;
    state->resets = tk->seen_resets;
    set_mark(sc->job, sc->state, tk, tk->seen_s, tk->seen_local_s);
    return true;
}

dibs_status
dibs__tick_take(dibs__scene *sc, const dibs__ticker *tk, dibs_error *err)
{
    dibs__job_state *state = sc->state;
    late_ticks late;
    choice pick;

    if (state->due_us == 0 || state->due_us > sc->now_us)
        return dibsx_fail(err, DIBS_STALE, "the job %s is not due", state->job);
    if (state->paused) {
        dibs__intent_not_before(sc->in, state->due_us);
        /* Ticks from its end on are late if this node is. */
        dibs__job_unpause(sc->job, state, tk, state->paused_until_us - 1);
        return DIBS_OK;
    }
    if (write_back(sc, tk))
        return DIBS_OK;
    find_late(sc, tk, (sc->now_us - tk->jitter_us) / SECOND_US, &late);
    pick = choose(sc, tk, &late);
    state->missed += pick.missed;
    state->merged += pick.merged;
    set_mark(sc->job, state, tk, pick.tick.at,
             pick.tick.at + pick.tick.offset_s);
    return pick.runs && pick.tick.at != tk->ran_s ? make_run(sc, tk, &pick, err)
                                                  : DIBS_OK;
}
