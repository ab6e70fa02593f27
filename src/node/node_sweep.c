/* node_sweep.c - sweeps of a node: retries, limits, waits and followers; and runs of nodes
 * that are gone. */
/* SPDX-License-Identifier: MIT */
#include "node/node_sweep.h"
#include "base/fail.h"
#include "jobs/board_batch.h"
#include "jobs/board_change.h"
#include "jobs/follow.h"
#include "jobs/run_graph.h"
#include <dibs/monitor.h>

#include <stdio.h>
#include <string.h>

/* A lease that ends is looked at so much later. */
enum { GONE_LATER_MS = 50 };

/* The run of an entry is gone, with its history: so goes the entry. */
dibs_status
dibs__node_drop_entry(dibs__node *node, const char *index, const char *member,
                      const char *id, dibs_error *err)
{
    char key[DIBS__PLACE_SIZE];
    bool doubt = false;
    dibs__intent in;
    dibs_status rc;

    dibs__intent_init(&in);
    if (id) {
        (void)snprintf(key, sizeof(key), "run/%s", id);
        dibs__intent_check_version(&in, key, 0);
    }
    dibs__intent_leave(&in, index, member);
    rc = dibs__board_commit(node->board, &in, &doubt, err);
    dibs__intent_fini(&in);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

/* One change of a run, as a sweep makes it. */
static dibs_status
sweep_run(dibs__node *node, const char *index, const dibs__node_entry *entry,
          const char *id, dibs__scene_fn *change, void *arg, dibs_error *err)
{
    dibs_status rc = dibs__board_change_run(node->board, id, change, arg, err);

    if (rc == DIBS_NOTFOUND)
        rc = dibs__node_drop_entry(node, index, entry->member, id, err);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

static dibs_status
retry_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    (void)doubt;
    (void)arg;
    return dibs__run_retry(sc, err);
}

dibs_status dibs__sweep_retry(dibs__node *node, const dibs__node_entry *entry,
                              dibs_error *err)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];

    if (!dibs__step_split(entry->member, id, step))
        return dibs__node_drop_entry(node, "retry", entry->member, NULL, err);
    return sweep_run(node, "retry", entry, id, retry_scene, NULL, err);
}

/* The indexes are written anew in any case. */
static dibs_status
deadline_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    (void)doubt;
    (void)arg;
    (void)!dibs__run_deadline(sc, err);
    return DIBS_OK;
}

dibs_status dibs__sweep_deadline(dibs__node *node,
                                 const dibs__node_entry *entry, dibs_error *err)
{
    return sweep_run(node, "deadline", entry, entry->member, deadline_scene,
                     NULL, err);
}

/* ---- nodes that are gone */

/* A lease as the store shows it. */
typedef struct lease_look {
    uint64_t fence;
    bool held;
    int64_t left_ms;
} lease_look;

static bool note_fence(const dibs_lease_info *info, void *arg)
{
    lease_look *look = arg;

    for (size_t i = 0; i < info->holder_count; i++)
        if (info->holders[i].fence == look->fence) {
            look->held = true;
            look->left_ms = info->holders[i].left_ms;
        }
    return true;
}

static dibs__node_alive *find_alive(dibs__node *node, const char *id)
{
    for (size_t i = 0; i < node->alive_count; i++)
        if (strcmp(node->alive[i].id, id) == 0)
            return &node->alive[i];
    return NULL;
}

static dibs__node_alive *add_alive(dibs__node *node, const char *id)
{
    dibs__node_alive *at = find_alive(node, id);

    if (!at)
        at = node->alive_count < DIBS__NODE_ALIVE_MAX
                 ? &node->alive[node->alive_count++]
                 : &node->alive[0];
    (void)snprintf(at->id, sizeof(at->id), "%s", id);
    return at;
}

/* The lease with this fence is not held (rule 8). One that was seen is not asked for
 * again before it may end. */
static dibs_status find_gone(dibs__node *node, const char *id, uint64_t fence,
                             dibsx_nsec *until, dibs_error *err)
{
    char inner[DIBS__NODE_SIZE + 8], key[DIBS_NAME_MAX + 1];
    const dibs__node_alive *seen = find_alive(node, id);
    dibsx_nsec now = dibsx_now();
    lease_look look = {.fence = fence};
    dibs_status rc;

    *until = seen ? seen->until : 0;
    if (now < *until)
        return DIBS_OK;
    (void)snprintf(inner, sizeof(inner), "node/%s", id);
    rc = dibs__board_key(node->board, inner, key, err);
    if (rc == DIBS_OK)
        rc = dibs_lease_show(node->board->cl, key, note_fence, &look, err);
    if (rc == DIBS_NOTFOUND)
        rc = DIBS_OK;
    *until = 0;
    if (rc != DIBS_OK || !look.held)
        return rc;
    *until = dibsx_after_ms(now, look.left_ms + GONE_LATER_MS);
    add_alive(node, id)->until = *until;
    return DIBS_OK;
}

/* Entries of a set: more of them are looked at with each look. */
enum { WAYS = 4 };

/* FNV-1a; two entries with the same hash are looked at with each look. */
static uint64_t hash_entry(const dibs__node_entry *entry)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)entry->at ^
                    ((uint64_t)entry->look << 56);

    for (const char *at = entry->member; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

/* Where an entry is in a table, or is to be: in the place of the one of its set that ends
 * first. */
static size_t place_known(const dibs__node_known *table, uint64_t hash)
{
    size_t first = hash % (DIBS__NODE_KNOWN_MAX / WAYS) * WAYS, at = first;

    for (size_t i = first; i < first + WAYS; i++) {
        if (table[i].hash == hash)
            return i;
        if (table[i].until < table[at].until)
            at = i;
    }
    return at;
}

bool dibs__node_is_known(dibs__node *node, const dibs__node_entry *entry)
{
    uint64_t hash = hash_entry(entry);
    const dibs__node_known *at = &node->known[place_known(node->known, hash)];

    return at->hash == hash && dibsx_now() < at->until;
}

static void
note_known(dibs__node *node, const dibs__node_entry *entry, dibsx_nsec until)
{
    uint64_t hash = hash_entry(entry);

    node->known[place_known(node->known, hash)] =
        (dibs__node_known){.hash = hash, .until = until};
}

void dibs__node_leave(dibs__node *node, const dibs__node_entry *entry,
                      int64_t ms)
{
    uint64_t hash = hash_entry(entry);

    node->left[place_known(node->left, hash)] =
        (dibs__node_known){.hash = hash,
                           .until = dibsx_after_ms(dibsx_now(), ms)};
}

int64_t
dibs__node_left_ms(const dibs__node *node, const dibs__node_entry *entry)
{
    uint64_t hash = hash_entry(entry);
    const dibs__node_known *at = &node->left[place_known(node->left, hash)];

    return at->hash == hash ? dibsx_wait_ms(at->until, dibsx_now()) : 0;
}

void dibs__node_await_gone(dibs__node *node)
{
    dibsx_nsec now = dibsx_now(), at = DIBSX_NEVER;

    for (size_t i = 0; i < DIBS__NODE_KNOWN_MAX; i++) {
        dibs__node_known *known = &node->known[i];

        if (known->hash && known->until <= now)
            known->hash = 0;
        else if (known->hash && known->until < at)
            at = known->until;
    }
    if (at != DIBSX_NEVER)
        dibs__node_hurry(node, dibsx_wait_ms(at, now));
}

typedef struct loss {
    const char *step;
    uint64_t fence;
} loss;

static dibs_status
lost_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    const loss *l = arg;
    size_t i;

    (void)doubt;
    if (!dibs__run_find(sc->run, l->step, &i))
        return DIBS_STALE;
    return dibs__run_lost(sc, i, l->fence, err);
}

dibs_status dibs__sweep_live(dibs__node *node, const dibs__node_entry *entry,
                             dibs_error *err)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    char owner[DIBS__NODE_SIZE] = "";
    loss l = {.step = step, .fence = (uint64_t)entry->at};
    dibsx_nsec until = 0;
    dibs__run run;
    size_t i;
    dibs_status rc;

    if (!dibs__step_split(entry->member, id, step))
        return dibs__node_drop_entry(node, "live", entry->member, NULL, err);
    rc = dibs__board_run(node->board, id, &run, err);
    if (rc == DIBS_OK && dibs__run_find(&run, step, &i) &&
        run.steps[i].fence == l.fence)
        memcpy(owner, run.steps[i].node, sizeof(owner));
    dibs__run_fini(&run);
    if (rc == DIBS_NOTFOUND)
        return dibs__node_drop_entry(node, "live", entry->member, id, err);
    if (rc != DIBS_OK || !owner[0] || strcmp(owner, node->id) == 0)
        return rc;
    rc = find_gone(node, owner, l.fence, &until, err);
    if (rc == DIBS_OK && until)
        note_known(node, entry, until);
    if (rc != DIBS_OK || until)
        return rc;
    rc = dibs__board_change_run(node->board, id, lost_scene, &l, err);
    if (rc == DIBS_OK)
        dibs__node_say(node, "%s: node %s is gone", entry->member, owner);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}

/* ---- waits, children and followers */

typedef struct cause {
    const dibs__stage *st; /* of the parent, or of the run that has ended */
    size_t step;
} cause;

static dibs_status
check_set(const dibs__job *job, const dibs__job_state *state, dibs_error *err)
{
    return state->set[0]
               ? DIBS_OK
               : dibsx_fail(err, DIBS_NOTFOUND,
                            "the job %s is in no set any more", job->name);
}

static dibs_status
make_child(const dibs__job *job, const dibs__job_state *state, dibs__run *run,
           void *arg, dibs_error *err)
{
    const cause *c = arg;
    dibs_status rc = check_set(job, state, err);

    return rc == DIBS_OK ? dibs__child_make(c->st->job, &c->st->run, c->step,
                                            job, state->hash, run, err)
                         : rc;
}

static dibs_status make_then(const dibs__job *job, const dibs__job_state *state,
                             dibs__run *run, void *arg, dibs_error *err)
{
    const cause *c = arg;
    dibs_status rc = check_set(job, state, err);

    return rc == DIBS_OK
               ? dibs__then_make(&c->st->run, job, state->hash, run, err)
               : rc;
}

static dibs_status
followed_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    (void)doubt;
    (void)err;
    dibs__run_followed(sc, arg);
    return DIBS_OK;
}

/* Does all that a run owes after its end. A follower that cannot be made is left out; the
 * store being away is not that. */
static dibs_status
make_followers(dibs__node *node, const dibs__stage *st, dibs_error *err)
{
    const dibs__texts *jobs = dibs__then_jobs(st->job, &st->run);
    char id[DIBS__RUN_ID_SIZE];
    cause c = {.st = st};
    dibs_status rc = DIBS_OK;

    if (st->run.cancels > 0)
        rc = dibs__board_cancel_children(node->board, st->run.id, err);
    if (rc != DIBS_OK)
        return rc;
    for (size_t i = 0; i < jobs->count; i++) {
        dibs__then_id(jobs->at[i], &st->run, id);
        rc = dibs__board_start_run(node->board, jobs->at[i], id, NULL,
                                   make_then, &c, err);
        (void)dibs__node_valid_until(node);
        if (rc != DIBS_OK && (dibsx_is_away(rc) || rc == DIBS_STALE))
            return rc;
        if (rc != DIBS_OK)
            dibs__node_complain(node, jobs->at[i], err);
    }
    return dibs__board_change_run(node->board, st->run.id, followed_scene,
                                  (void *)&st->run, err);
}

typedef struct wait_look {
    size_t step;
    const dibs__run *child; /* NULL: it is a batch */
    bool complete;          /* the batch */
    bool unmade;            /* there is no such job, or no such batch */
    bool over;              /* out: the step does not wait any more */
} wait_look;

static dibs_status
wait_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    wait_look *look = arg;
    dibs_status rc;

    (void)doubt;
    if (look->unmade)
        rc = dibs__run_unmade(sc, look->step, err);
    else if (look->child)
        rc = dibs__run_child(sc, look->step, look->child, err);
    else
        rc = dibs__run_batch(sc, look->step, look->complete, err);
    look->over = rc == DIBS_STALE;
    return rc;
}

/* Reads the child, and makes it if there is none yet: one that is there goes on, whatever
 * has become of its job, and one that has gone since is not begun again. A run that fails
 * or is cancelled begins only what is there for that. */
static dibs_status
find_child(dibs__node *node, const dibs__stage *st, const char *id,
           wait_look *look, dibs__run *child, dibs_error *err)
{
    cause c = {.st = st, .step = look->step};
    dibs_status rc = dibs__board_run(node->board, id, child, err);

    if (rc != DIBS_NOTFOUND)
        return rc;
    if (dibs__run_saw_child(&st->run.steps[look->step])) {
        dibs__node_complain(node, st->run.id, err);
        look->unmade = true;
        return DIBS_OK;
    }
    look->unmade = !dibs__graph_may_begin(st->job, &st->run, look->step);
    if (look->unmade)
        return DIBS_OK;
    rc = dibs__board_start_run(node->board, st->job->steps[look->step].job, id,
                               NULL, make_child, &c, err);
    look->unmade = rc == DIBS_NOTFOUND || rc == DIBS_INVALID;
    if (look->unmade)
        dibs__node_complain(node, st->run.id, err);
    if (rc == DIBS_OK)
        rc = dibs__board_run(node->board, id, child, err);
    return look->unmade ? DIBS_OK : rc;
}

/* Tells the parent how the child is. */
static dibs_status look_at_child(dibs__node *node, const dibs__stage *st,
                                 size_t i, dibs_error *err)
{
    wait_look look = {.step = i};
    char id[DIBS__RUN_ID_SIZE];
    dibs__run child;
    dibs_status rc;

    dibs__child_id(st->job, &st->run, i, id);
    rc = find_child(node, st, id, &look, &child, err);
    look.child = look.unmade ? NULL : &child;
    if (rc == DIBS_OK)
        rc = dibs__board_change_run(node->board, st->run.id, wait_scene, &look,
                                    err);
    /* The parent was cancelled while the child was made. */
    if (look.over && look.child)
        (void)!dibs__board_cancel_to(node->board, id, 1, NULL);
    dibs__run_fini(&child);
    return rc;
}

/* The batch learns of the run that waits, so that its last member wakes it. */
static dibs_status look_at_batch(dibs__node *node, const dibs__stage *st,
                                 size_t i, dibs_error *err)
{
    const dibs__step_wait *wait = &st->job->steps[i].wait;
    dibs__batch_news news = {.of = wait->of > 0 ? (uint64_t)wait->of : 0,
                             .waiter = st->run.id};
    wait_look look = {.step = i};
    char id[DIBS__JOB_NAME_SIZE];
    dibs_status rc = dibs__wait_batch(st->job, &st->run, i, id, err);

    if (rc == DIBS_OK)
        rc = dibs__board_batch_look(node->board, id, &news, err);
    if (rc == DIBS_INVALID) {
        dibs__node_complain(node, st->run.id, err);
        look.unmade = true;
        rc = DIBS_OK;
    }
    look.complete = news.complete;
    return rc == DIBS_OK ? dibs__board_change_run(node->board, st->run.id,
                                                  wait_scene, &look, err)
                         : rc;
}

static dibs_status
resume_scene(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    (void)doubt;
    (void)arg;
    (void)!dibs__run_resume(sc, err);
    return DIBS_OK;
}

static dibs_status
look_at_waits(dibs__node *node, const dibs__stage *st, dibs_error *err)
{
    dibs_status rc = DIBS_OK, left = DIBS_OK;

    for (size_t i = 0; i < st->run.step_count && rc == DIBS_OK; i++) {
        const dibs__run_step *step = &st->run.steps[i];

        /* An end of what is waited for comes before the step's own time. */
        if (step->state != DIBS__STATE_WAITING)
            continue;
        if (step->waits == DIBS__WAIT_CHILD)
            rc = look_at_child(node, st, i, err);
        else if (step->waits == DIBS__WAIT_BATCH)
            rc = look_at_batch(node, st, i, err);
        (void)dibs__node_valid_until(node);
        /* A child that has to wait for another run, or cannot be read, is in
         * nobody's way. */
        if (rc == DIBS_BUSY || rc == DIBS_INVALID)
            left = rc;
        rc = rc == DIBS_STALE || rc == left ? DIBS_OK : rc;
    }
    if (rc == DIBS_OK)
        rc = dibs__board_change_run(node->board, st->run.id, resume_scene, NULL,
                                    err);
    return rc == DIBS_OK ? left : rc;
}

/* A member of a batch has ended. The next end enters the batch again; should that be lost
 * between this look and its answer, each run that waits looks by itself. */
static dibs_status
sweep_batch(dibs__node *node, const dibs__node_entry *entry, dibs_error *err)
{
    dibs__batch_news news = {.waiter = NULL};
    dibs_status rc =
        dibs__board_batch_look(node->board,
                               entry->member + strlen(DIBS__BATCH_PART), &news,
                               err);

    return rc != DIBS_OK || news.complete
               ? rc
               : dibs__node_drop_entry(node, "resume", entry->member, NULL,
                                       err);
}

dibs_status dibs__sweep_resume(dibs__node *node, const dibs__node_entry *entry,
                               dibs_error *err)
{
    dibs__stage st;
    dibs_status rc;

    if (strncmp(entry->member, DIBS__BATCH_PART, strlen(DIBS__BATCH_PART)) == 0)
        return sweep_batch(node, entry, err);
    dibs__stage_init(&st);
    rc = dibs__stage_run(node->board, entry->member, &st, err);
    if (rc == DIBS_OK && st.run.owes)
        rc = make_followers(node, &st, err);
    else if (rc == DIBS_OK)
        rc = look_at_waits(node, &st, err);
    else if (rc == DIBS_NOTFOUND)
        rc = dibs__node_drop_entry(node, "resume", entry->member, entry->member,
                                   err);
    dibs__stage_fini(&st);
    return rc == DIBS_STALE ? DIBS_OK : rc;
}
