/* jobs_store.c - the store of sim_jobs: values and indexes in memory, commits, and the
 * invariants that every commit must keep. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/hash.h"
#include "jobs_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE_US INT64_C(1800000000000000)

static const char *const index_names[INDEXES] = {"due",   "ready/",   "live",
                                                 "retry", "deadline", "resume"};

int64_t wall_us(const world *w)
{
    return BASE_US + w->now / 1000 + w->shift_us;
}

sim_value *find_value(world *w, const char *part, const char *name)
{
    char key[DIBS__PLACE_SIZE];
    uint32_t hash;

    (void)snprintf(key, sizeof(key), "%s%s", part, name);
    hash = dibsx_hash_text(key);
    for (size_t i = 0; i < VALUES; i++)
        if (w->values[i].version && w->values[i].hash == hash &&
            strcmp(w->values[i].key, key) == 0)
            return &w->values[i];
    return NULL;
}

static void drop_value(sim_value *value)
{
    free(value->data);
    memset(value, 0, sizeof(*value));
}

void free_values(world *w)
{
    for (size_t i = 0; i < VALUES; i++)
        drop_value(&w->values[i]);
}

/* History, which is cleaned. */
static void drop_old(world *w)
{
    for (size_t i = 0; i < VALUES; i++)
        if (w->values[i].ended_at &&
            w->now > w->values[i].ended_at + 6 * DIBSX_SEC)
            drop_value(&w->values[i]);
}

static sim_value *make_value(world *w, const char *key)
{
    sim_value *value = find_value(w, "", key);

    for (size_t i = 0; i < VALUES && !value; i++)
        if (w->values[i].version == 0) {
            value = &w->values[i];
            (void)snprintf(value->key, sizeof(value->key), "%s", key);
            value->hash = dibsx_hash_text(key);
        }
    if (!value)
        w->wrong = "the simulation has no room for a value";
    return value;
}

sim_run *find_run(world *w, const char *id)
{
    uint32_t hash = dibsx_hash_text(id);

    for (size_t i = w->run_count; i > 0; i--)
        if (w->runs[i - 1].hash == hash && strcmp(w->runs[i - 1].id, id) == 0)
            return &w->runs[i - 1];
    return NULL;
}

bool read_run(world *w, const char *id, dibs__run *run)
{
    const sim_value *value = find_value(w, "run/", id);

    if (!value)
        return false;
    if (dibs__run_read(run, id, value->data, value->len, NULL) != DIBS_OK) {
        w->wrong = "a record is refused";
        return false;
    }
    dibs__run_noted(run, value->version);
    return true;
}

bool read_state(world *w, int job, dibs__job_state *state)
{
    const sim_value *value = find_value(w, "state/", sim_jobs[job].name);

    if (!value || dibs__job_state_read(state, sim_jobs[job].name, value->data,
                                       value->len, NULL) != DIBS_OK)
        return false;
    dibs__job_state_noted(state, value->version);
    return true;
}

bool first_entry(const world *w, index_id index, int64_t from, size_t skip,
                 sim_entry *out)
{
    const sim_entry *found = NULL;

    for (size_t turn = 0; turn <= skip; turn++) {
        const sim_entry *last = found;

        found = NULL;
        for (size_t i = 0; i < w->entry_count; i++) {
            const sim_entry *one = &w->entries[i];

            if (one->index != index || one->at < from ||
                (last && (one->at < last->at ||
                          (one->at == last->at &&
                           strcmp(one->member, last->member) <= 0))))
                continue;
            if (!found || one->at < found->at ||
                (one->at == found->at &&
                 strcmp(one->member, found->member) < 0))
                found = one;
        }
        if (!found)
            return false;
    }
    *out = *found;
    return true;
}

static sim_entry *find_entry(world *w, index_id index, const char *member)
{
    for (size_t i = 0; i < w->entry_count; i++)
        if (w->entries[i].index == index &&
            strcmp(w->entries[i].member, member) == 0)
            return &w->entries[i];
    return NULL;
}

static void move_entry(world *w, const dibs__intent_change *change)
{
    index_id index = 0;
    sim_entry *entry;

    while (index < INDEXES && strncmp(index_names[index], change->key,
                                      strlen(index_names[index])) != 0)
        index++;
    if (index == INDEXES)
        return;
    entry = find_entry(w, index, change->member);
    if (change->verb == DIBS__INTENT_LEAVE) {
        if (entry)
            *entry = w->entries[--w->entry_count];
        return;
    }
    if (!entry) {
        if (w->entry_count == ENTRIES) {
            w->wrong = "the simulation has no room for an entry";
            return;
        }
        entry = &w->entries[w->entry_count++];
        entry->index = index;
        entry->since = w->now;
        (void)snprintf(entry->member, sizeof(entry->member), "%s",
                       change->member);
    }
    entry->at = change->at;
}

/* I1, I3: the run is new. */
static void note_new_run(world *w, const dibs__run *run)
{
    if (find_run(w, run->id))
        w->wrong = "I1: a run was made twice";
    if (run->cause == DIBS__CAUSE_TICK) {
        w->ticks[find_job(run->job)]++;
        if (wall_us(w) < run->tick_s * INT64_C(1000000))
            w->wrong = "I3: a run was made before its moment";
    }
    if (w->run_count == RUNS) {
        w->wrong = "the simulation has no room for a run";
        return;
    }
    w->runs[w->run_count] = (sim_run){.hash = dibsx_hash_text(run->id)};
    memcpy(w->runs[w->run_count++].id, run->id, sizeof(run->id));
}

sim_lease *find_lease(world *w, uint64_t fence)
{
    for (size_t i = 0; i < w->lease_count; i++)
        if (w->leases[i].fence == fence)
            return &w->leases[i];
    return NULL;
}

static bool is_alive(world *w, uint64_t fence)
{
    const sim_lease *lease = find_lease(w, fence);

    return lease && lease->until > w->now;
}

/* I7, and starts that are too late: each step as it was and as it is. */
static void check_step(world *w, const dibs__run *was, const dibs__run *run,
                       size_t i, const parcel *sent, uint64_t fence)
{
    const dibs__run_step *step = &run->steps[i];
    const dibs__run_step *before = was ? &was->steps[i] : NULL;

    if (sent->is_end && before && before->state == DIBS__STATE_RUNNING &&
        step->state != DIBS__STATE_RUNNING && before->fence != fence)
        w->wrong = "I7: a result was taken from another than the claimant";
    if (!sent->is_end && before && before->state == DIBS__STATE_RUNNING &&
        step->state != DIBS__STATE_RUNNING && is_alive(w, before->fence))
        w->wrong = "a step was taken over from a node that lives";
    if (before && dibs__state_final(before->state) &&
        step->state != before->state)
        w->wrong = "a step that had ended has changed";
    if (step->state == DIBS__STATE_RUNNING && step->begins &&
        (!before || before->attempt < step->attempt) && run->start_by_us &&
        wall_us(w) > run->start_by_us)
        w->wrong = "an attempt was begun after start_deadline";
}

static void check_places(world *w, const dibs__run *run)
{
    static const dibs__place_kind kinds[INDEXES] = {[READY] = DIBS__PLACE_READY,
                                                    [LIVE] = DIBS__PLACE_LIVE,
                                                    [RETRY] =
                                                        DIBS__PLACE_RETRY};
    char member[DIBS__PLACE_SIZE];

    for (size_t i = 0; i < run->step_count; i++) {
        dibs__place place = dibs__step_place(&run->steps[i]);

        dibs__step_member(run, &run->steps[i], member);
        for (index_id index = READY; index <= RETRY; index++) {
            const sim_entry *entry = find_entry(w, index, member);

            if ((entry != NULL) != (place.kind == kinds[index]) ||
                (entry && entry->at != place.at))
                w->wrong = "I14: an index does not hold what the record says";
        }
    }
}

static void check_run(world *w, const dibs__run *was, const dibs__run *run,
                      const parcel *sent, uint64_t fence)
{
    const char *flaw = dibs__run_check(&sim_jobs[find_job(run->job)], run);

    if (flaw)
        w->wrong = flaw;
    if (!was)
        note_new_run(w, run);
    else if (strcmp(was->hash, run->hash) != 0)
        w->wrong = "I16: a run has another hash";
    for (size_t i = 0; i < run->step_count; i++)
        check_step(w, was, run, i, sent, fence);
    if (dibs__state_final(run->state) &&
        !(was && dibs__state_final(was->state)))
        w->ended[run->state]++;
}

/* I2: the mark rises, and every tick up to it is accounted for. */
static void
check_state(world *w, const dibs__job_state *was, const dibs__job_state *state)
{
    int job = find_job(state->job);
    int64_t every = sim_jobs[job].schedule.at[0].cron.every_s;
    uint64_t known =
        w->ticks[job] + state->missed + state->merged + state->skipped;

    if (was->mark_s > state->mark_s)
        w->wrong = "I2: a mark fell";
    if (known != (uint64_t)((state->mark_s - state->anchor_s) / every))
        w->wrong = "I2: a tick is not accounted for";
}

static void put_value(world *w, const dibs__intent_change *change)
{
    sim_value *value = make_value(w, change->key);

    if (!value)
        return;
    free(value->data);
    value->data = malloc(change->len + 1);
    memcpy(value->data, change->data, change->len);
    value->len = change->len;
    value->version = w->version;
    value->ended_at = change->ttl_ms ? w->now : 0;
}

static void put_run(world *w, const dibs__intent_change *change,
                    const parcel *sent, uint64_t fence)
{
    dibs__run was = {0}, run = {0};
    bool had = read_run(w, change->key + 4, &was);

    put_value(w, change);
    if (read_run(w, change->key + 4, &run))
        check_run(w, had ? &was : NULL, &run, sent, fence);
    dibs__run_fini(&was);
    dibs__run_fini(&run);
}

static void put_state(world *w, const dibs__intent_change *change)
{
    dibs__job_state was, state;
    int job = find_job(change->key + 6);
    bool had = read_state(w, job, &was);

    put_value(w, change);
    if (!read_state(w, job, &state))
        w->wrong = "a state is refused";
    else if (had && w->mutant != SPLIT_MARK)
        check_state(w, &was, &state);
}

static dibs_status judge_commit(world *w, const dibs__intent *in)
{
    if (in->not_before_us > wall_us(w) && w->mutant != NO_CLOCK)
        return DIBS_EARLY;
    if (in->not_after_us && in->not_after_us < wall_us(w) &&
        w->mutant != NO_LATE)
        return DIBS_LATE;
    for (size_t i = 0; i < in->check_count; i++) {
        const sim_value *value = find_value(w, "", in->checks[i].key);
        uint64_t version = value ? value->version : 0;

        if (version != in->checks[i].version &&
            (w->mutant != NO_VERSION || !version || !in->checks[i].version))
            return DIBS_STALE;
    }
    return DIBS_OK;
}

dibs_status do_commit(world *w, parcel *sent, int who, uint64_t fence)
{
    const dibs__intent *in = &sent->in;
    dibs_status rc = judge_commit(w, in);
    bool rings = false;

    (void)who;
    if (rc != DIBS_OK)
        return rc;
    drop_old(w);
    w->version++;
    for (size_t i = 0; i < in->change_count; i++) {
        const dibs__intent_change *change = &in->changes[i];

        if (change->verb == DIBS__INTENT_TELL)
            rings = true;
        if (change->verb == DIBS__INTENT_ENTER ||
            change->verb == DIBS__INTENT_LEAVE)
            move_entry(w, change);
        else if (change->verb == DIBS__INTENT_PUT &&
                 strncmp(change->key, "run/", 4) == 0)
            put_run(w, change, sent, fence);
    }
    for (size_t i = 0; i < in->change_count; i++) {
        const dibs__intent_change *change = &in->changes[i];
        dibs__run run = {0};

        if (change->verb != DIBS__INTENT_PUT)
            continue;
        if (strncmp(change->key, "state/", 6) == 0)
            put_state(w, change);
        else if (read_run(w, change->key + 4, &run))
            check_places(w, &run);
        dibs__run_fini(&run);
    }
    if (rings)
        ring_nodes(w);
    return DIBS_OK;
}
