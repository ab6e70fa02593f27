/* jobs_main.c - nodes of the job engine in simulated time: a store in memory, commits that
 * are slow, lost or late, rings that are lost, late or repeated, nodes that die or stand
 * still, clocks that are wrong and jump.
 *
 *     sim_jobs [SEEDS [FIRST]]       so many seeds from FIRST on
 *     sim_jobs --mutant N SEEDS      with a mistake planted, which must be noticed
 *
 * The machines are those of src/jobs; the node here is a plain driver of them. Beside the
 * invariants that jobs_store.c looks at with each commit:
 *   I2  a job that is due is ticked;
 *   I5  a step has one live tree at most;
 *   I6  its starts are at most its attempts;
 *   I8  a live node knows every step that names it;
 *   I9  a dead node's steps leave RUNNING;
 *   I10 a job with forbid, replace or queue has one live tree at most;
 *   I17 a step that is ready is begun.
 * Nodes sleep until the first number of an index or a ring of the bell (jobs_bell.c). In some
 * worlds nothing fails, and what is due or ready has to be found soon; in some no job has a
 * schedule, so that nothing but a ring or a look by itself wakes a node. */
/* SPDX-License-Identifier: MIT */
#include "jobs/follow.h"
#include "jobs/wake.h"
#include "jobs_sim.h"
#include "seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

static dibs__zone *utc;

/* A scene with storage of its own. */
typedef struct stage {
    dibs__scene sc;
    dibs__run run, live, next;
    dibs__job_state state;
    parcel *parcel;
} stage;

bool chance(world *w, unsigned of_1000)
{
    return dibsx_prng_below(&w->prng, 1000) < of_1000;
}

dibsx_nsec span(world *w, int64_t low_ms, int64_t high_ms)
{
    uint64_t wide = (uint64_t)(high_ms - low_ms) + 1;

    return (low_ms + (int64_t)dibsx_prng_below(&w->prng, wide)) * DIBSX_MS;
}

/* Something that goes wrong with this chance, where things go wrong. */
static bool fails(world *w, unsigned of_1000)
{
    return !w->calm && chance(w, of_1000);
}

static void drop_parcel(parcel *p)
{
    if (p && --p->refs == 0) {
        dibs__intent_fini(&p->in);
        free(p);
    }
}

static void open_stage(world *w, stage *st, int who, int job)
{
    memset(st, 0, sizeof(*st));
    st->parcel = calloc(1, sizeof(*st->parcel));
    st->parcel->refs = 1;
    st->sc = (dibs__scene){.job = &sim_jobs[job],
                           .run = &st->run,
                           .now_us = wall_us(w) + w->nodes[who].noise_us,
                           .chance = (uint32_t)dibsx_prng_next(&w->prng),
                           .in = &st->parcel->in};
}

static void close_stage(stage *st)
{
    dibs__run_fini(&st->run);
    dibs__run_fini(&st->live);
    dibs__run_fini(&st->next);
    drop_parcel(st->parcel);
}

/* The job's state, and the runs that it names if they may change. */
static void load_state(world *w, stage *st, int job, bool with_live)
{
    if (!read_state(w, job, &st->state))
        w->wrong = "a state is not there";
    st->sc.state = &st->state;
    if (with_live && st->state.live[0] &&
        read_run(w, st->state.live, &st->live))
        st->sc.live = &st->live;
    if (st->state.follows[0] && read_run(w, st->state.follows, &st->next))
        st->sc.next = &st->next;
}

static bool load_run(world *w, stage *st, int who, const char *id)
{
    dibs__run run;
    int job;

    if (!read_run(w, id, &run))
        return false;
    job = find_job(run.job);
    open_stage(w, st, who, job);
    st->run = run;
    if (dibs__scene_needs_state(&sim_jobs[job])) {
        load_state(w, st, job, false);
        if (st->sc.next && strcmp(st->next.id, id) == 0)
            st->sc.next = NULL; /* It is the run itself. */
        if (w->mutant == NO_STATE)
            st->sc.state = NULL;
    }
    return true;
}

static void send_parcel(world *w, int who, parcel *p, const sim_task *task)
{
    event ev = {.kind = SERVE,
                .who = who,
                .life = w->nodes[who].life,
                .fence = w->nodes[who].fence,
                .task = task ? task->serial : 0,
                .request = task ? task->request : 0,
                .parcel = p};

    if (!dibs__intent_ok(&p->in))
        w->wrong = "an intent failed";
    if (!fails(w, 50)) {
        ev.at = w->now + span(w, 0, fails(w, 150) ? 6000 : 30);
        p->refs++;
        add(w, ev);
    }
    if (task) {
        ev.kind = GIVE_UP;
        ev.parcel = NULL;
        ev.at = w->now + (dibsx_nsec)LIMIT_MS * DIBSX_MS;
        add(w, ev);
    }
}

static void send_task(world *w, int who, sim_task *task)
{
    task->request = ++w->nodes[who].request;
    send_parcel(w, who, task->parcel, task);
}

static sim_task *new_task(world *w, int who)
{
    for (size_t i = 0; i < TASKS; i++) {
        sim_task *task = &w->nodes[who].tasks[i];

        if (!task->used) {
            *task = (sim_task){.used = true, .serial = ++w->serial};
            return task;
        }
    }
    return NULL;
}

static bool has_room(const world *w, int who)
{
    for (size_t i = 0; i < TASKS; i++)
        if (!w->nodes[who].tasks[i].used)
            return true;
    return false;
}

/* There is room: the node looks for what is ready. */
static void free_task(world *w, sim_task *task)
{
    for (int i = 0; i < NODES; i++)
        if (task >= w->nodes[i].tasks && task < w->nodes[i].tasks + TASKS)
            look_within(w, i, 0);
    w->refused += task->task.refused;
    drop_parcel(task->parcel);
    memset(task, 0, sizeof(*task));
}

/* The intent of a task's state; false: the record does not want it. */
static bool plan_task(world *w, int who, sim_task *task)
{
    stage st;
    size_t i;
    dibs_status rc = DIBS_STALE;
    const char *nonce = task->task.nonce;

    if (!load_run(w, &st, who, task->task.run))
        return false;
    if (dibs__run_find(&st.run, task->task.step, &i)) {
        if (w->mutant == ANY_NONCE)
            nonce = st.run.steps[i].nonce;
        rc = task->task.state == DIBS__TASK_BEGINNING
                 ? dibs__run_begin(&st.sc, i, nonce, NULL)
                 : dibs__run_end(&st.sc, i, nonce, &task->outcome, NULL);
    }
    if (rc == DIBS_OK) {
        dibs__scene_write(&st.sc);
        st.parcel->is_end = task->task.state == DIBS__TASK_ENDING;
        drop_parcel(task->parcel);
        task->parcel = st.parcel;
        task->parcel->refs++;
        send_task(w, who, task);
    }
    close_stage(&st);
    return rc == DIBS_OK;
}

static dibs__task_todo read_task(world *w, int who, sim_task *task)
{
    dibs__run run = {0};
    bool found = read_run(w, task->task.run, &run);
    dibs__task_todo todo;
    size_t i;

    if (w->mutant == ANY_NONCE && found &&
        task->task.state == DIBS__TASK_ENDING &&
        dibs__run_find(&run, task->task.step, &i))
        memcpy(task->task.nonce, run.steps[i].nonce, DIBS__NONCE_SIZE);
    todo = dibs__task_read(&task->task, found ? &run : NULL, w->now,
                           w->nodes[who].valid_until);
    dibs__run_fini(&run);
    return todo;
}

static void do_todo(world *w, int who, sim_task *task, dibs__task_todo todo)
{
    while (todo == DIBS__TASK_READ)
        todo = w->mutant == NO_REREAD && task->task.state == DIBS__TASK_ENDING
                   ? DIBS__TASK_DROP
                   : read_task(w, who, task);
    switch (todo) {
    case DIBS__TASK_AGAIN:
        send_task(w, who, task);
        break;
    case DIBS__TASK_PLAN:
        if (!plan_task(w, who, task))
            do_todo(w, who, task, read_task(w, who, task));
        break;
    case DIBS__TASK_LOCK:
        add(w, (event){.kind = LOCKED,
                       .at = w->now + span(w, 5, 300),
                       .who = who,
                       .life = w->nodes[who].life,
                       .task = task->serial,
                       .taken = !chance(w, 200)});
        break;
    case DIBS__TASK_START:
        if (!task->tree)
            start_tree(w, who, task);
        break;
    case DIBS__TASK_DROP:
        free_task(w, task);
        break;
    default:
        if (task->task.state == DIBS__TASK_HELD) {
            w->held++;
            if (w->mutant == NO_HOLD)
                free_task(w, task);
        }
    }
}

static void draw_claimant(world *w, int who, dibs__claimant *out)
{
    memset(out, 0, sizeof(*out));
    memcpy(out->node, w->nodes[who].id, sizeof(out->node));
    out->fence = w->nodes[who].fence;
    (void)snprintf(out->nonce, sizeof(out->nonce), "%012llx",
                   (unsigned long long)(++w->serial));
}

/* The label of a node is its number. */
static bool has_label(int who, const dibs__run_step *step)
{
    return step->label[0] == '\0' || step->label[0] == '0' + who;
}

/* Claims the step in the scene; true: the parcel is the task's. */
static bool claim_step(world *w, int who, stage *st, size_t i)
{
    dibs__claimant self;
    sim_task *task;

    if (!has_room(w, who) || !has_label(who, &st->run.steps[i]))
        return false;
    draw_claimant(w, who, &self);
    if (dibs__run_claim(&st->sc, i, &self, NULL) != DIBS_OK)
        return false;
    task = new_task(w, who);
    task->job = find_job(st->run.job);
    dibs__task_init(&task->task, st->run.id, st->run.steps[i].name, self.nonce,
                    st->sc.job->lock.key != NULL);
    dibs__scene_write(&st->sc);
    task->parcel = st->parcel;
    task->parcel->refs++;
    if (w->mutant == START_FIRST && !task->task.locks)
        start_tree(w, who, task);
    send_task(w, who, task);
    return true;
}

/* SPLIT_MARK: the state alone first. */
static void split_tick(world *w, int who, stage *st)
{
    parcel *mark = calloc(1, sizeof(*mark));

    mark->refs = 1;
    dibs__intent_not_before(&mark->in, st->parcel->in.not_before_us);
    dibs__job_state_commit(&st->state, &mark->in);
    send_parcel(w, who, mark, NULL);
    drop_parcel(mark);
    st->sc.state = NULL;
}

static bool is_ticking(const world *w, int who, const char *job)
{
    size_t len = strlen(job);

    for (size_t i = 0; i < TASKS; i++) {
        const sim_task *task = &w->nodes[who].tasks[i];

        if (task->used && task->task.state == DIBS__TASK_ASKING &&
            strncmp(task->task.run, job, len) == 0)
            return true;
    }
    return false;
}

static void take_tick(world *w, int who, const char *name)
{
    dibs__ticker tk = {.zone = utc, .tzdata = "1", .hash = "h"};
    int job = find_job(name);
    stage st;

    if (is_ticking(w, who, name))
        return;
    open_stage(w, &st, who, job);
    load_state(w, &st, job, true);
    if (dibs__tick_take(&st.sc, &tk, NULL) == DIBS_OK) {
        if (w->mutant == AT_ONCE && st.run.follows) {
            st.run.follows = false;
            st.run.steps[0].state = DIBS__STATE_READY;
            st.run.steps[0].at_us = st.sc.now_us;
        }
        if (w->mutant == SPLIT_MARK)
            split_tick(w, who, &st);
        if (!st.run.id[0] || !claim_step(w, who, &st, 0)) {
            dibs__scene_write(&st.sc);
            send_parcel(w, who, st.parcel, NULL);
        }
    }
    close_stage(&st);
}

static bool
has_task_of(const world *w, int who, const char *id, const char *step)
{
    for (size_t i = 0; i < TASKS; i++) {
        const sim_task *task = &w->nodes[who].tasks[i];

        if (task->used && strcmp(task->task.run, id) == 0 &&
            strcmp(task->task.step, step) == 0)
            return true;
    }
    return false;
}

static void claim_ready(world *w, int who)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    sim_entry entry;

    for (size_t k = 0; first_entry(w, READY, 0, k, &entry); k++) {
        stage st;
        size_t i;

        if (!dibs__step_split(entry.member, id, step) ||
            has_task_of(w, who, id, step) || !load_run(w, &st, who, id))
            continue;
        if (dibs__run_find(&st.run, step, &i))
            (void)claim_step(w, who, &st, i);
        close_stage(&st);
    }
}

typedef dibs_status sweep_fn(dibs__scene *sc, dibs_error *err);

/* One entry that is due, as a sweep does it; nobody waits for the answer. */
static void sweep_one(world *w, int who, index_id index, sweep_fn *sweep)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    sim_entry entry;
    stage st;

    if (!first_entry(w, index, 0, 0, &entry))
        return;
    if (entry.at > wall_us(w) + w->nodes[who].noise_us) {
        look_at_number(w, who, entry.at);
        return;
    }
    look_within(w, who, AGAIN_MS);
    if (!dibs__step_split(entry.member, id, step))
        (void)snprintf(id, sizeof(id), "%.120s", entry.member);
    if (!load_run(w, &st, who, id))
        return;
    (void)sweep(&st.sc, NULL);
    dibs__scene_write(&st.sc);
    send_parcel(w, who, st.parcel, NULL);
    close_stage(&st);
}

static void take_over(world *w, int who, const sim_entry *entry)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    dibs_status rc = DIBS_STALE;
    stage st;
    size_t i;

    if (!dibs__step_split(entry->member, id, step) ||
        !load_run(w, &st, who, id))
        return;
    if (dibs__run_find(&st.run, step, &i))
        rc = dibs__run_lost(&st.sc, i, (uint64_t)entry->at, NULL);
    for (size_t k = 0; w->mutant == ANY_FENCE && k < st.run.step_count; k++)
        if (st.run.steps[k].fence)
            (void)dibs__run_lost(&st.sc, k, st.run.steps[k].fence, NULL);
    if (rc == DIBS_OK) {
        w->taken_over++;
        dibs__scene_write(&st.sc);
        send_parcel(w, who, st.parcel, NULL);
    }
    close_stage(&st);
}

/* All that is live, by its fences; NODE_LIST: each node of a list, from which those that
 * have nothing are struck off. */
static void look_after(world *w, int who)
{
    sim_entry entry;

    for (size_t k = 0;
         w->mutant != NODE_LIST && first_entry(w, LIVE, 0, k, &entry); k++) {
        const sim_lease *lease = find_lease(w, (uint64_t)entry.at);
        bool gone = lease && lease->until <= w->now;

        if (w->mutant == NO_LEASE && lease && lease->who != who &&
            chance(w, 100))
            gone = true;
        if (gone)
            take_over(w, who, &entry);
        if (lease && lease->who != who)
            look_within(w, who,
                        gone ? AGAIN_MS
                             : (lease->until - w->now) / DIBSX_MS + 50);
    }
    for (size_t i = 0; w->mutant == NODE_LIST && i < w->lease_count; i++) {
        sim_lease *lease = &w->leases[i];

        if (lease->until > w->now || lease->struck)
            continue;
        if (first_entry(w, LIVE, (int64_t)lease->fence, 0, &entry) &&
            entry.at == (int64_t)lease->fence)
            take_over(w, who, &entry);
        else
            lease->struck = true;
    }
}

static void cancel_some(world *w, int who)
{
    char id[DIBS__RUN_ID_SIZE], step[DIBS__JOB_NAME_SIZE];
    sim_entry entry;
    stage st;

    if (!first_entry(w, LIVE, 0, dibsx_prng_below(&w->prng, 6), &entry) ||
        !dibs__step_split(entry.member, id, step) || !load_run(w, &st, who, id))
        return;
    if (dibs__run_cancel(&st.sc, DIBS__REASON_CANCELLED, NULL) == DIBS_OK) {
        dibs__scene_write(&st.sc);
        send_parcel(w, who, st.parcel, NULL);
    }
    close_stage(&st);
}

/* A node reads its own live records: those that are to end are killed. */
static void look_at_own(world *w, int who)
{
    for (size_t i = 0; i < TASKS; i++) {
        sim_task *task = &w->nodes[who].tasks[i];
        sim_tree *tree = find_tree(w, task->tree);
        dibs__run run = {0};

        if (!task->used || !tree || !tree->alive || tree->cancelled)
            continue;
        if (read_run(w, task->task.run, &run) &&
            dibs__task_must_end(&task->task, &run)) {
            dibsx_nsec dies_at = w->now + span(w, 0, 400);

            tree->cancelled = true;
            if (dies_at < tree->ends_at)
                tree->ends_at = dies_at;
        }
        dibs__run_fini(&run);
    }
}

static void end_task(world *w, int who, sim_task *task)
{
    sim_tree *tree = find_tree(w, task->tree);
    bool ends = tree && !tree->alive;

    if (w->mutant == END_FIRST && tree && tree->cancelled)
        ends = true;
    if (task->task.state != DIBS__TASK_RUNNING || !ends)
        return;
    task->outcome =
        (dibs__outcome){.reason = tree->guarded     ? DIBS__REASON_LOST
                                  : tree->cancelled ? DIBS__REASON_CANCELLED
                                  : tree->fails     ? DIBS__REASON_FAILED
                                                    : DIBS__REASON_NONE};
    task->tree = 0;
    do_todo(w, who, task, dibs__task_died(&task->task));
}

static void join_board(world *w, int who)
{
    sim_node *node = &w->nodes[who];

    if (w->lease_count == LEASES) {
        w->wrong = "the simulation has no room for a lease";
        return;
    }
    node->life++;
    dibs__wake_init(&node->wake, LOOK_MS, LISTEN_MS);
    node->fence = ++w->fence;
    (void)snprintf(node->id, sizeof(node->id), "%d.%llu", who,
                   (unsigned long long)node->life);
    w->leases[w->lease_count++] =
        (sim_lease){.fence = node->fence,
                    .who = who,
                    .until = w->now + (dibsx_nsec)TTL_MS * DIBSX_MS};
    node->valid_until = w->now + (dibsx_nsec)(TTL_MS - MARGIN_MS) * DIBSX_MS;
    node->renew_at = w->now + (dibsx_nsec)TTL_MS / 3 * DIBSX_MS;
}

/* Belief has ended, or the process has: its trees are dead, or will be. */
static void leave_board(world *w, int who)
{
    for (size_t i = 0; i < TASKS; i++) {
        sim_task *task = &w->nodes[who].tasks[i];

        if (!task->used)
            continue;
        dibs__task_lose(&task->task);
        free_task(w, task);
    }
    join_board(w, who);
}

static void keep_lease(world *w, int who)
{
    sim_node *node = &w->nodes[who];
    event ev = {.kind = RENEW,
                .who = who,
                .life = node->life,
                .fence = node->fence,
                .sent_at = w->now};

    if (w->now < node->renew_at)
        return;
    node->renew_at = w->now + (dibsx_nsec)LIMIT_MS * DIBSX_MS;
    ev.at = w->now + span(w, 0, fails(w, 80) ? 2500 : 30);
    if (!fails(w, 80))
        add(w, ev);
}

static void draw_noise(world *w, sim_node *node)
{
    if (w->now < node->noise_until)
        return;
    node->noise_until = w->now + span(w, 200, 3000);
    node->noise_us =
        fails(w, 400) ? span(w, 0, 6000) / 1000 - INT64_C(3000000) : 0;
}

/* W3: a node leaves a tick to those before it, who may be dead, for a while. */
static int64_t
find_turn_us(world *w, int who, const sim_entry *entry, int64_t now_us)
{
    const char *others[NODES];
    size_t count = 0, rank;

    for (int i = 0; i < NODES; i++)
        if (i != who && w->nodes[i].id[0])
            others[count++] = w->nodes[i].id;
    rank = dibs__node_rank(entry->member, w->nodes[who].id, others, count);
    if (w->mutant == FIRST_ONLY)
        return rank == 0 ? 0 : SPAN_S * INT64_C(1000000);
    return dibs__wake_turn_us(rank, entry->at, now_us);
}

static void do_ticks(world *w, int who)
{
    int64_t now_us = wall_us(w) + w->nodes[who].noise_us;
    sim_entry entry;

    for (size_t k = 0; first_entry(w, DUE, 0, k, &entry); k++) {
        int64_t turn_us = 0;

        if (entry.at > now_us) {
            look_at_number(w, who, entry.at);
            return;
        }
        turn_us = find_turn_us(w, who, &entry, now_us);
        if (turn_us == 0)
            take_tick(w, who, entry.member);
        look_within(w, who, turn_us > 0 ? (turn_us + 999) / 1000 : AGAIN_MS);
    }
}

/* The next look is at the first number that is not dealt with, or when the bell rings. */
static void look_at_board(world *w, int who)
{
    begin_look(w, who);
    do_ticks(w, who);
    sweep_one(w, who, RETRY, dibs__run_retry);
    sweep_one(w, who, DEADLINE, dibs__run_deadline);
    sweep_one(w, who, RESUME, dibs__run_resume);
    claim_ready(w, who);
    look_at_own(w, who);
    look_after(w, who);
}

static void proceed(world *w, int who)
{
    sim_node *node = &w->nodes[who];

    if (w->now >= node->valid_until)
        leave_board(w, who);
    draw_noise(w, node);
    keep_lease(w, who);
    for (size_t i = 0; i < TASKS; i++) {
        sim_task *task = &node->tasks[i];

        if (task->used && task->task.state == DIBS__TASK_HELD)
            do_todo(w, who, task,
                    dibs__task_renewed(&task->task, w->now, node->valid_until));
        if (task->used)
            end_task(w, who, task);
    }
    if (chance(w, 10))
        cancel_some(w, who);
    listen_again(w, who);
    if (w->now >= node->wake.look_at)
        look_at_board(w, who);
}

static sim_task *find_task(world *w, const event *ev)
{
    sim_node *node = &w->nodes[ev->who];

    for (size_t i = 0; i < TASKS; i++)
        if (ev->task && ev->life == node->life && node->tasks[i].used &&
            node->tasks[i].serial == ev->task)
            return &node->tasks[i];
    return NULL;
}

static void hear_answer(world *w, const event *ev, dibs_status rc)
{
    sim_task *task = find_task(w, ev);
    sim_node *node = &w->nodes[ev->who];
    dibs__task_todo todo;

    if (!task || task->request != ev->request)
        return;
    task->request = 0;
    if (w->mutant == EARLY_SETTLES && (rc == DIBS_EARLY || rc == DIBS_LATE))
        task->task.doubt = false;
    if (w->mutant == NO_REPEAT && rc == DIBS_UNKNOWN &&
        task->task.state == DIBS__TASK_ASKING) {
        free_task(w, task);
        return;
    }
    if (rc == DIBS_LATE && task->task.state == DIBS__TASK_BEGINNING)
        task->outcome = (dibs__outcome){.reason = DIBS__REASON_LATE};
    todo = dibs__task_answered(&task->task, rc, w->now, node->valid_until);
    do_todo(w, ev->who, task, todo);
}

static void serve_renewal(world *w, event *ev)
{
    sim_lease *lease = find_lease(w, ev->fence);

    ev->rc = lease && lease->until > w->now ? DIBS_OK : DIBS_LOST;
    if (ev->rc == DIBS_OK)
        lease->until = w->now + (dibsx_nsec)TTL_MS * DIBSX_MS;
    ev->kind = RENEWED;
    ev->at = w->now + span(w, 0, 30);
    if (!fails(w, 50))
        add(w, *ev);
}

static void hear_renewal(world *w, const event *ev)
{
    sim_node *node = &w->nodes[ev->who];
    dibsx_nsec until =
        ev->sent_at + (dibsx_nsec)(TTL_MS - MARGIN_MS) * DIBSX_MS;

    if (ev->life != node->life || ev->rc != DIBS_OK ||
        until <= node->valid_until || w->now >= node->valid_until)
        return;
    node->valid_until = until;
    node->renew_at = ev->sent_at + (dibsx_nsec)TTL_MS / 3 * DIBSX_MS;
    for (size_t i = 0; i < TREES; i++)
        if (w->trees[i].alive && w->trees[i].fence == node->fence)
            w->trees[i].valid_until = until;
}

/* Ticks are due at full seconds of the store's clock. Every second death is within 10 ms of
 * one: before its commit, while it is under way, or before the answer. */
static dibsx_nsec choose_death(world *w)
{
    dibsx_nsec at = w->now + span(w, 4000, 20000);
    int64_t after_us = (wall_us(w) + (at - w->now) / 1000) % 1000000;

    if (!chance(w, 500))
        return at;
    w->at_ticks++;
    return at - after_us * 1000 - 10 * DIBSX_MS + span(w, 0, 20);
}

/* The process of a node dies; its guards see to the trees, by the end of belief. */
static void kill_node(world *w, int who)
{
    for (size_t i = 0; i < TREES; i++)
        if (w->trees[i].alive && w->trees[i].fence == w->nodes[who].fence &&
            chance(w, 700))
            w->trees[i].valid_until = w->now;
    leave_board(w, who);
    w->nodes[who].stopped_until = w->now + span(w, 0, 8000);
    add(w, (event){.kind = DEATH, .at = choose_death(w), .who = who});
}

static void handle_store(world *w, event *ev)
{
    if (ev->kind == RENEW) {
        serve_renewal(w, ev);
        return;
    }
    ev->rc = do_commit(w, ev->parcel, ev->who, ev->fence);
    drop_parcel(ev->parcel);
    ev->parcel = NULL;
    ev->kind = ANSWER;
    ev->at = w->now + span(w, 0, 30);
    if (!fails(w, 50))
        add(w, *ev);
}

/* A caller starts a run; it asks again only if it has no answer, which is not simulated. */
static void start_by_hand(world *w)
{
    static const int jobs[] = {0, 3};
    int job = jobs[dibsx_prng_below(&w->prng, 2)];
    char id[DIBS__RUN_ID_SIZE];
    stage st;

    open_stage(w, &st, 0, job);
    (void)snprintf(id, sizeof(id), "%s.%llu", sim_jobs[job].name,
                   (unsigned long long)++w->serial);
    if (dibs__run_make(&st.run, id, &sim_jobs[job], "h", NULL) != DIBS_OK ||
        dibs__run_start(&st.sc, NULL) != DIBS_OK)
        w->wrong = "a run cannot be started by hand";
    dibs__scene_write(&st.sc);
    send_parcel(w, 0, st.parcel, NULL);
    close_stage(&st);
    /* In a long pause nothing else wakes the nodes. */
    add(w, (event){.kind = HAND,
                   .at = w->now + (chance(w, 400) ? span(w, 20000, 24000)
                                                  : span(w, 1000, 9000))});
}

static void handle(world *w, event *ev)
{
    sim_task *task;

    switch (ev->kind) {
    case WAKE:
        proceed(w, ev->who);
        add(w, (event){.kind = WAKE,
                       .at = w->now + span(w, 20, 90),
                       .who = ev->who});
        if (ev->who == 0) {
            check_live(w);
            check_states(w);
            check_due(w);
            check_ready(w);
        }
        break;
    case RING:
        hear_ring(w, ev->who);
        break;
    case HAND:
        start_by_hand(w);
        break;
    case ANSWER:
        hear_answer(w, ev, ev->rc);
        break;
    case GIVE_UP:
        hear_answer(w, ev, DIBS_UNKNOWN);
        break;
    case RENEWED:
        hear_renewal(w, ev);
        break;
    case LOCKED:
        task = find_task(w, ev);
        if (task && task->task.state == DIBS__TASK_LOCKING) {
            task->outcome = (dibs__outcome){.reason = DIBS__REASON_BUSY};
            do_todo(w, ev->who, task,
                    dibs__task_locked(&task->task, ev->taken));
        }
        break;
    case DEATH:
        kill_node(w, ev->who);
        break;
    case STOP:
        w->nodes[ev->who].stopped_until = w->now + span(w, 100, 5000);
        add(w, (event){.kind = STOP,
                       .at = w->now + span(w, 4000, 20000),
                       .who = ev->who});
        break;
    case JUMP:
        w->shift_us += span(w, 0, 12000) / 1000 - INT64_C(4000000);
        add(w, (event){.kind = JUMP, .at = w->now + span(w, 5000, 30000)});
        break;
    default:
        handle_store(w, ev);
    }
}

/* What is for a node that stands still comes when it goes on. */
static bool is_put_off(world *w, event *ev)
{
    dibsx_nsec until = w->nodes[ev->who].stopped_until;

    if (ev->kind == SERVE || ev->kind == RENEW || ev->kind == DEATH ||
        ev->kind == STOP || ev->kind == JUMP || ev->kind == HAND ||
        until <= w->now)
        return false;
    ev->at = until;
    add(w, *ev);
    return true;
}

static void define_jobs(world *w)
{
    dibs__ticker tk = {.zone = utc, .tzdata = "1"};

    for (int i = 0; i < JOBS; i++) {
        dibs__job_state state;
        parcel one = {.refs = 1};

        dibs__job_state_init(&state, sim_jobs[i].name);
        (void)snprintf(state.set, sizeof(state.set), "set");
        dibs__tick_reset(&sim_jobs[i], &state, &tk, wall_us(w));
        dibs__job_state_commit(&state, &one.in);
        (void)do_commit(w, &one, 0, 0);
        dibs__intent_fini(&one.in);
    }
}

static void begin_world(world *w, uint64_t seed, int planted)
{
    memset(w, 0, sizeof(*w));
    w->mutant = (mutant)planted;
    w->prng.state = seed * 0x9e3779b97f4a7c15u + 1;
    w->now = DIBSX_SEC;
    w->quiet = chance(w, 300);
    w->calm = chance(w, 250);
    w->clear = chance(w, w->calm ? 600 : 200);
    if (w->quiet)
        add(w, (event){.kind = HAND, .at = w->now + span(w, 500, 5000)});
    else
        define_jobs(w);
    for (int i = 0; i < NODES; i++) {
        join_board(w, i);
        add(w, (event){.kind = WAKE, .at = w->now + span(w, 0, 90), .who = i});
        if (w->calm)
            continue;
        add(w, (event){.kind = DEATH, .at = choose_death(w), .who = i});
        add(w, (event){.kind = STOP,
                       .at = w->now + span(w, 4000, 20000),
                       .who = i});
    }
    if (fails(w, 500))
        add(w, (event){.kind = JUMP, .at = w->now + span(w, 5000, 30000)});
}

static void end_world(world *w)
{
    for (int i = 0; i < NODES; i++)
        for (size_t k = 0; k < TASKS; k++)
            drop_parcel(w->nodes[i].tasks[k].parcel);
    for (size_t i = 0; i < w->count; i++)
        drop_parcel(w->events[i].parcel);
    free_values(w);
}

static world the_world;
static uint64_t ended[DIBS__STATES], taken_over, held, refused;
static uint64_t rings, lost_rings, looks, at_ticks;

static const char *run_one(uint64_t seed, int planted, dibsx_nsec *at)
{
    world *w = &the_world;

    if (!utc && dibs__zone_open("UTC", &utc, NULL) != DIBS_OK)
        return "there is no UTC";
    open_jobs();
    begin_world(w, seed, planted);
    while (!w->wrong && w->now < (dibsx_nsec)SPAN_S * DIBSX_SEC) {
        event ev = take_first(w);

        w->now = ev.at;
        end_trees(w);
        if (!is_put_off(w, &ev))
            handle(w, &ev);
    }
    if (!w->wrong && !w->quiet && w->ended[DIBS__STATE_OK] < 5)
        w->wrong = "nearly nothing ended well";
    *at = w->now;
    for (int i = 0; i < DIBS__STATES; i++)
        ended[i] += w->ended[i];
    taken_over += w->taken_over;
    held += w->held;
    refused += w->refused;
    rings += w->rings;
    lost_rings += w->lost_rings;
    looks += w->looks;
    at_ticks += w->at_ticks;
    end_world(w);
    return w->wrong;
}

static int report(uint64_t seeds)
{
    printf("%llu seeds of %d s", (unsigned long long)seeds, SPAN_S);
    for (int i = DIBS__STATE_OK; i < DIBS__STATES; i++)
        printf(", %llu %s", (unsigned long long)ended[i],
               dibs__run_state_name((dibs__run_state)i));
    printf("; %llu taken over, %llu held, %llu results refused, %llu looks, "
           "%llu of %llu rings lost, %llu deaths at a tick\n",
           (unsigned long long)taken_over, (unsigned long long)held,
           (unsigned long long)refused, (unsigned long long)looks,
           (unsigned long long)lost_rings, (unsigned long long)rings,
           (unsigned long long)at_ticks);
    dibs__zone_free(utc);
    return 0;
}

int main(int argc, char **argv)
{
    return seeds_main(argc, argv, run_one, report);
}
