/* test_job_node.c - nodes and batches, on a store whose requests are counted, late or refused.
 * The nodes run on threads of their own. */
/* SPDX-License-Identifier: MIT */
#include "node_world.h"
#include "turns.h"

#include <string.h>

/* Runs of old, and steps that no node can execute: many pages of each. */
#ifdef DIBS_SANITIZED
enum { OLD = 2500, READY = 1200 };
#else
enum { OLD = 5000, READY = 3000 };
#endif
enum {
    BAD = 150, /* more than two pages of a look */
    WINDOW_MS = 1500,
    IDLE_REQUESTS = 20, /* in a second, at most */
    DUE = 50,
    TICKS = 20,
    LATE_MS = 100, /* each answer, where answers are late */
    TTL_MS = 3000,
    OLD_LATE_MS = 20,
    ENDED = 2 * DIBS_LOOK_MAX + 50,
    OTHERS = 8,         /* nodes that are only in the list */
    LONGEST_MS = 500,   /* that a node leaves a job to others */
    FOREIGN = 192,      /* jobs that are their turn: three pages */
    FOREIGN_LOOKS = 40, /* until it is this node's turn, at most */
    READY_LATE_MS = 20,
    WAITING = 40, /* runs of a job that has as many as it may */
    LOOKS = 20,
    LIVE = 600, /* steps of runs that are gone */
    STUCK = 17 * 64 +
            10,    /* jobs that cannot be ticked: more pages than in one look */
    FULL = 70,     /* jobs that have as many runs as they may */
    FULL_RUNS = 3, /* of each of them */
    DEFINITIONS = 600,
#ifdef DIBS_SANITIZED
    RELOADS = 100, /* they only grow what a plain build shows as well */
#else
    RELOADS = 1000,
#endif
    HOUR_MS = 3600 * 1000,
    MEMBERS = 20000, /* of a batch */
    WAIT_MS = NODE_WAIT_MS
};

static void run_job(world *w, const char *job)
{
    char run[DIBS_RUN_SIZE];

    CHECK(DIBS_OK, dibs_job_start(w->other, job, NULL, run, err));
    CHECK(DIBS_OK, dibs_job_wait(w->other, run, pace_ms(WAIT_MS), NULL, err));
}

static void run_part(world *w)
{
    run_job(w, "part");
}

/* ---- the board */

static void enter(world *w, const char *index, const char *member, int64_t at)
{
    dibs_commit_change change = {.verb = DIBS_COMMIT_ENTER,
                                 .name = index,
                                 .member = member,
                                 .at = at};
    dibs_commit commit = {.changes = &change, .change_count = 1};

    CHECK(DIBS_OK, dibs_state_commit(w->keep, &commit, 1, err));
    dibs_commit_free(&commit, 1);
}

/* Members of an index, whose runs are no JSON. */
static void plant(world *w, const char *index, const char *rest)
{
    char member[64], key[128];

    for (int i = 0; i < BAD; i++) {
        (void)snprintf(member, sizeof(member), "bad%d%s", i, rest);
        enter(w, index, member, 1);
        (void)snprintf(key, sizeof(key), KEY("run/bad%d"), i);
        CHECK(DIBS_OK, dibs_state_set(w->keep, key, "{", 1, 0, NULL, err));
    }
}

/* So many members of an index, with these beginnings and ends, and numbers from 1 on. */
static void plant_many(world *w, const char *index, const char *begin,
                       const char *end, int count)
{
    dibs_commit_change changes[DIBS_CHANGES_MAX];
    char members[DIBS_CHANGES_MAX][64];

    for (int from = 0; from < count; from += DIBS_CHANGES_MAX) {
        dibs_commit commit = {.changes = changes};

        for (int i = from; i < count && i < from + DIBS_CHANGES_MAX; i++) {
            char *member = members[i - from];

            (void)snprintf(member, sizeof(members[0]), "%s%d%s", begin, i, end);
            changes[commit.change_count++] =
                (dibs_commit_change){.verb = DIBS_COMMIT_ENTER,
                                     .name = index,
                                     .member = member,
                                     .at = 1 + i / 2};
        }
        CHECK(DIBS_OK, dibs_state_commit(w->keep, &commit, 1, err));
        dibs_commit_free(&commit, 1);
    }
}

/* ---- entries that no node can deal with */

static void a_node_with_bad_entries_is_idle(void **state)
{
    world *w = *state;
    int64_t seen, span_ms;
    dibsx_nsec from_at;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    plant(w, KEY("retry"), "/main");
    plant(w, KEY("deadline"), "");
    plant(w, KEY("resume"), "");
    publish(&n);
    start_node(&n);
    run_part(w); /* It has swept by now. */
    from_at = dibsx_now();
    seen = world_seen(w, DIBS__STEP_FIRST);
    world_sleep_ms(WINDOW_MS);
    seen = world_seen(w, DIBS__STEP_FIRST) - seen;
    span_ms = world_ms_since(from_at);
    print_message("%d looks in %d ms\n", (int)seen, (int)span_ms);
    assert_true(seen <= IDLE_REQUESTS * (span_ms / 1000 + 1));
    stop_node(&n);
}

/* Members without a step, and one of a run that is gone behind them. */
static void members_that_are_no_steps_go(void **state)
{
    world *w = *state;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    plant(w, KEY("retry"), "");
    plant(w, KEY("live"), "");
    enter(w, KEY("retry"), "gone/main", 2);
    start_node(&n);
    await_members(w, KEY("retry"), 0);
    await_members(w, KEY("live"), 0);
    stop_node(&n);
}

/* Each of them is a commit by itself. */
static void a_node_that_sweeps_stops(void **state)
{
    world *w = *state;
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    plant_many(w, KEY("live"), "gone.", "/main", LIVE);
    world_delay(w, DIBS__STEP_COMMIT, OLD_LATE_MS);
    start_node(&n);
    while (count_members(w, KEY("live")) == LIVE)
        world_sleep_ms(2);
    asked = world_seen(w, DIBS__STEP_COMMIT);
    stop_node(&n);
    asked = world_seen(w, DIBS__STEP_COMMIT) - asked;
    print_message("%d requests\n", asked);
    IN_TIME(asked < LIVE / 2);
}

/* A sweep has half a second of a look, and this one takes twelve. */
static void a_long_sweep_is_in_no_runs_way(void **state)
{
    world *w = *state;
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    publish(&n);
    plant_many(w, KEY("live"), "gone.", "/main", LIVE);
    world_delay(w, DIBS__STEP_COMMIT, OLD_LATE_MS);
    asked = world_seen(w, DIBS__STEP_COMMIT);
    start_node(&n);
    await_steps(w, DIBS__STEP_COMMIT, asked + 10);
    run_part(w);
    asked = world_seen(w, DIBS__STEP_COMMIT) - asked;
    print_message("%d commits\n", asked);
    IN_TIME(asked < LIVE);
    world_heal(w);
    await_members(w, KEY("live"), 0);
    stop_node(&n);
}

/* ---- ticks */

/* Jobs that are due, and of which there is no record: each is asked for by itself. */
static void plant_due(world *w)
{
    char member[64];

    for (int i = 0; i < DUE; i++) {
        (void)snprintf(member, sizeof(member), "due%d", i);
        enter(w, KEY("due"), member, 1);
    }
}

static void ticks_end_when_the_store_is_away(void **state)
{
    world *w = *state;
    int asked, looks;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    publish(&n);
    start_node(&n);
    run_part(w);
    world_fault(w, DIBS__STEP_GET_MANY, DIBS__FAULT_FAIL, -1);
    asked = world_seen(w, DIBS__STEP_GET);
    plant_due(w);
    looks = world_seen(w, DIBS__STEP_GET_MANY);
    while (world_seen(w, DIBS__STEP_GET_MANY) < looks + 2 &&
           world_seen(w, DIBS__STEP_GET) < asked + DUE)
        world_sleep_ms(2);
    asked = world_seen(w, DIBS__STEP_GET) - asked;
    world_heal(w);
    stop_node(&n);
    print_message("%d requests\n", asked);
    IN_TIME(asked < DUE / 2);
}

/* They take longer than the lease, which is renewed meanwhile. */
static void slow_ticks_end_no_call(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {0};
    int asked;
    node n;

    open_node(&n, w, TTL_MS, 20);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "long", wait_long, &call,
                        DIBS_JOB_OPTS(.description = "a long one"), err));
    publish(&n);
    start_node(&n);
    CHECK(DIBS_OK, dibs_job_start(w->other, "long", NULL, run, err));
    while (!atomic_load(&call.begun))
        world_sleep_ms(2);
    world_delay(w, DIBS__STEP_GET, (int)pace_ms(LATE_MS));
    asked = world_seen(w, DIBS__STEP_GET);
    plant_due(w);
    await_steps(w, DIBS__STEP_GET, asked + DUE);
    IN_TIME(atomic_load(&call.lost) == 0);
    world_heal(w);
    atomic_store(&call.may_end, 1);
    CHECK(DIBS_OK, dibs_job_wait(w->other, run, pace_ms(WAIT_MS), NULL, err));
    stop_node(&n);
}

typedef struct first_call {
    world *w;
    dibs__step step;
    atomic_int asked; /* requests when it was made; 0: it was not */
} first_call;

static dibs_status note_first(dibs_run *run, void *arg, dibs_error *err)
{
    first_call *call = arg;
    int none = 0;

    (void)run;
    (void)err;
    (void)atomic_compare_exchange_strong(&call->asked, &none,
                                         world_seen(call->w, call->step));
    return DIBS_OK;
}

static void await_call(first_call *call)
{
    dibsx_nsec from_at = dibsx_now();

    while (!atomic_load(&call->asked)) {
        if (world_ms_since(from_at) > pace_ms(WAIT_MS))
            MISSED("the function was not called");
        world_sleep_ms(2);
    }
}

static void await_due(world *w, int count)
{
    while (count_up_to(w, KEY("due"), DIBS_INDEX_NOW) < count)
        world_sleep_ms(2);
}

static void add_ticks(const node *n, first_call *call)
{
    char name[16];

    for (int i = 0; i < TICKS; i++) {
        (void)snprintf(name, sizeof(name), "tick%d", i);
        CHECK(DIBS_OK,
              dibs_jobs_add(n->jobs, name, note_first, call,
                            DIBS_JOB_OPTS(.schedule = "@every 1s"), err));
    }
}

/* The first call comes before so many values were read, each of them late. */
static void check_ticked_soon(world *w, node *n, first_call *call, int most)
{
    int asked;

    world_delay(w, DIBS__STEP_GET, LATE_MS);
    asked = world_seen(w, DIBS__STEP_GET);
    start_node(n);
    await_call(call);
    asked = atomic_load(&call->asked) - asked;
    world_heal(w);
    stop_node(n);
    print_message("%d requests\n", asked);
    IN_TIME(asked < most);
}

/* Their definitions are in no file of the node, and each is another. */
static void the_definitions_of_ticks_are_read_at_once(void **state)
{
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_GET};
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    add_ticks(&n, &call);
    publish(&n);
    await_due(w, TICKS);
    check_ticked_soon(w, &n, &call, TICKS / 4);
}

typedef struct first_due {
    world *w;
    char keeps[64]; /* the definitions of the job that is due first */
} first_due;

/* All definitions but those of one job. */
static bool drop_definition(const dibs_state_item *item, void *arg)
{
    const first_due *due = arg;

    if (strncmp(item->key, due->keeps, strlen(due->keeps)) != 0)
        CHECK(DIBS_OK, dibs_state_delete(due->w->keep, item->key,
                                         DIBS_VERSION_ANY, err));
    return true;
}

static bool note_first_due(const dibs_index_entry *entry, void *arg)
{
    first_due *due = arg;

    (void)snprintf(due->keeps, sizeof(due->keeps), KEY("def/%s/"),
                   entry->member);
    return false;
}

/* The others are asked for one by one: each takes as long as a tick may wait for those that
 * go with it. */
static void a_tick_does_not_wait_for_slow_ones(void **state)
{
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_GET};
    first_due due = {.w = w};
    dibs_index_look look = {.index = KEY("due"),
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = 1};
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    add_ticks(&n, &call);
    publish(&n);
    await_due(w, TICKS);
    CHECK(DIBS_OK,
          dibs_index_first(w->keep, &look, 1, NULL, note_first_due, &due, err));
    CHECK(DIBS_OK, dibs_state_list(w->keep, KEY("def/tick"), drop_definition,
                                   &due, err));
    check_ticked_soon(w, &n, &call, TICKS / 2);
}

/* Jobs that are due, and whose records are no JSON. */
static void plant_stuck(world *w)
{
    char key[64];

    for (int i = 0; i < STUCK; i++) {
        (void)snprintf(key, sizeof(key), KEY("job/stuck%d"), i);
        CHECK(DIBS_OK, dibs_state_set(w->keep, key, "{", 1, 0, NULL, err));
    }
    plant_many(w, KEY("due"), "stuck", "", STUCK);
}

static void ticks_behind_many_that_are_stuck_are_done(void **state)
{
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_GET};
    node n;

    plant_stuck(w);
    open_node(&n, w, 2 * TTL_MS, 20);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "own", note_first, &call,
                                 DIBS_JOB_OPTS(.schedule = "@every 1s"), err));
    publish(&n);
    start_node(&n);
    await_call(&call);
    stop_node(&n);
    assert_int_equal(count_up_to(w, KEY("due"), STUCK), DIBS_LOOK_MAX);
}

/* ---- turns */

/* Nodes that are only in the list, and jobs that are due with them. */
typedef struct turns {
    char own[TURN_NODE_SIZE];
    char others[OTHERS][TURN_NODE_SIZE];
    const char *list[OTHERS];
    char jobs[FOREIGN][TURN_JOB_SIZE];
    int64_t due_us; /* of the job "own" */
} turns;

static bool note_own(const dibs_index_entry *entry, void *arg)
{
    turns *t = arg;

    (void)snprintf(t->own, sizeof(t->own), "%s", entry->member);
    return false;
}

static bool note_due(const dibs_index_entry *entry, void *arg)
{
    turns *t = arg;

    if (strcmp(entry->member, "own") == 0)
        t->due_us = entry->at;
    return true;
}

static void look_at(world *w, const char *index, dibs_index_fn *each, turns *t)
{
    dibs_index_look look = {.index = index,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};

    CHECK(DIBS_OK, dibs_index_first(w->keep, &look, 1, NULL, each, t, err));
}

/* Others whose turn comes after this node's for the job "own". */
static void make_others(world *w, turns *t)
{
    unsigned number = 0;

    await_members(w, KEY("nodes"), 1);
    look_at(w, KEY("nodes"), note_own, t);
    for (int i = 0; i < OTHERS; i++) {
        t->list[i] = t->others[i];
        do
            (void)snprintf(t->others[i], TURN_NODE_SIZE, "%016x", number++);
        while (turn_delay_ms("own", t->own, &t->list[i], 1) > 0);
        enter(w, KEY("nodes"), t->others[i], DIBS_INDEX_AT_MAX);
    }
}

/* Names of jobs for which this node waits longest. */
static void name_foreign(turns *t)
{
    unsigned number = 0;

    for (int i = 0; i < FOREIGN; i++)
        do
            (void)snprintf(t->jobs[i], TURN_JOB_SIZE, "foreign%u", number++);
        while (turn_delay_ms(t->jobs[i], t->own, t->list, OTHERS) < LONGEST_MS);
}

/* They are due a moment before the job "own" is, the next time. */
static void plant_foreign(world *w, turns *t)
{
    dibs_commit_change changes[FOREIGN];
    dibs_commit commit = {.changes = changes, .change_count = FOREIGN};

    look_at(w, KEY("due"), note_due, t);
    for (int i = 0; i < FOREIGN; i++)
        changes[i] = (dibs_commit_change){.verb = DIBS_COMMIT_ENTER,
                                          .name = KEY("due"),
                                          .member = t->jobs[i],
                                          .at = t->due_us - 1};
    CHECK(DIBS_OK, dibs_state_commit(w->keep, &commit, 1, err));
    IN_TIME(commit.now_us < t->due_us - 1);
    dibs_commit_free(&commit, 1);
}

/* The jobs of the others have no records: one that is ticked is asked for by itself. */
static void the_turns_of_others_are_waited_for(void **state)
{
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_GET};
    turns t = {.due_us = 0};
    int asked, looks;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "own", note_first, &call,
                                 DIBS_JOB_OPTS(.schedule = "@every 2s"), err));
    publish(&n);
    start_node(&n);
    make_others(w, &t);
    name_foreign(&t);
    await_call(&call);
    atomic_store(&call.asked, 0);
    plant_foreign(w, &t);
    asked = world_seen(w, DIBS__STEP_GET);
    looks = world_seen(w, DIBS__STEP_FIRST);
    await_steps(w, DIBS__STEP_GET, asked + FOREIGN / 2);
    looks = world_seen(w, DIBS__STEP_FIRST) - looks;
    await_steps(w, DIBS__STEP_GET, asked + FOREIGN);
    await_call(&call);
    asked = atomic_load(&call.asked) - asked;
    stop_node(&n);
    print_message("%d requests, %d looks\n", asked, looks);
    IN_TIME(asked < FOREIGN / 3);
    IN_TIME(looks < FOREIGN_LOOKS);
}

/* ---- claims */

/* Steps that are ready, of runs that are gone. */
static void plant_ready(world *w)
{
    plant_many(w, KEY("ready/call/part"), "part.", "/main", READY);
}

static void steps_that_no_node_can_execute_are_in_nobodys_way(void **state)
{
    world *w = *state;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    publish(&n);
    plant_ready(w);
    start_node(&n);
    run_part(w);
    stop_node(&n);
    assert_int_equal(count_up_to(w, KEY("ready/call/part"), READY),
                     DIBS_LOOK_MAX);
}

/* It would take a minute to read all of them. */
static void a_node_that_reads_ready_steps_stops(void **state)
{
    world *w = *state;
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    publish(&n);
    plant_ready(w);
    start_node(&n);
    world_delay(w, DIBS__STEP_GET, READY_LATE_MS);
    await_steps(w, DIBS__STEP_GET, world_seen(w, DIBS__STEP_GET) + 10);
    asked = world_seen(w, DIBS__STEP_GET);
    stop_node(&n);
    asked = world_seen(w, DIBS__STEP_GET) - asked;
    print_message("%d requests\n", asked);
    IN_TIME(asked < READY / 4);
}

/* One of them is read in each look, by three requests for values and one for the clock,
 * which is of the kind of looks. */
static void a_job_that_is_full_is_asked_for_once(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    long_call call = {0};
    int asked, looks;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "long", wait_long, &call,
                                 DIBS_JOB_OPTS(.more = "max_running: 1"), err));
    publish(&n);
    for (int i = 0; i < WAITING; i++)
        CHECK(DIBS_OK, dibs_job_start(w->other, "long", NULL, run, err));
    start_node(&n);
    while (!atomic_load(&call.begun))
        world_sleep_ms(2);
    asked = world_seen(w, DIBS__STEP_GET);
    looks = world_seen(w, DIBS__STEP_FIRST);
    await_steps(w, DIBS__STEP_FIRST, looks + LOOKS);
    asked = world_seen(w, DIBS__STEP_GET) - asked;
    looks = world_seen(w, DIBS__STEP_FIRST) - looks;
    atomic_store(&call.may_end, 1);
    CHECK(DIBS_OK, dibs_job_wait(w->other, run, pace_ms(WAIT_MS), NULL, err));
    stop_node(&n);
    print_message("%d requests, %d looks\n", asked, looks);
    IN_TIME(asked < 2 * looks + 4);
}

static void add_limited(node *n, long_call *call)
{
    char name[16];

    for (int i = 0; i < FULL; i++) {
        (void)snprintf(name, sizeof(name), "full%d", i);
        CHECK(DIBS_OK,
              dibs_jobs_add(n->jobs, name, wait_long, call,
                            DIBS_JOB_OPTS(.more = "max_running: 1"), err));
    }
}

/* Runs of all of them, some of which wait; returns when as many are under way as may. */
static void fill_jobs(world *w)
{
    char name[16], run[DIBS_RUN_SIZE];

    for (int i = 0; i < FULL * FULL_RUNS; i++) {
        (void)snprintf(name, sizeof(name), "full%d", i % FULL);
        CHECK(DIBS_OK, dibs_job_start(w->other, name, NULL, run, err));
    }
    await_members(w, KEY("live"), FULL);
}

/* The other node has room, and of all that is ready only the run of "last" may begin. */
static void a_run_behind_many_full_jobs_is_claimed(void **state)
{
    world *w = *state;
    first_call last = {.w = w, .step = DIBS__STEP_GET};
    long_call call = {0};
    node busy = {.w = w}, n;
    int live;

    CHECK(DIBS_OK, dibs_jobs_open(w->other,
                                  DIBS_JOBS_OPTS(.ttl_ms = pace_ms(2 * TTL_MS),
                                                 .slots = FULL),
                                  &busy.jobs, err));
    add_limited(&busy, &call);
    publish(&busy);
    start_node(&busy);
    fill_jobs(w);
    open_node(&n, w, 2 * TTL_MS, 20);
    add_limited(&n, &call);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "last", note_first, &last,
                                 DIBS_JOB_OPTS(.description = "last"), err));
    publish(&n);
    start_node(&n);
    run_job(w, "last");
    live = count_members(w, KEY("live"));
    IN_TIME(live >= FULL); /* A node that is late has lost its runs. */
    assert_int_equal(live, FULL);
    atomic_store(&call.may_end, 1);
    await_members(w, KEY("live"), 0);
    stop_node(&n);
    stop_node(&busy);
}

/* ---- history */

static bool is_gone(world *w)
{
    return count_up_to(w, KEY("runs/old"), 2) == 0;
}

/* The run was ready before the sweep began; 5,000 runs take some 80 requests. */
static void a_long_history_is_in_no_runs_way(void **state)
{
    char run[DIBS_RUN_SIZE], member[64];
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_GET_MANY};
    dibsx_nsec from_at = dibsx_now();
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "old", note_first, &call,
                                 DIBS_JOB_OPTS(.description = "old"), err));
    publish(&n);
    for (int i = 0; i < OLD; i++) {
        (void)snprintf(member, sizeof(member), "old.%d", i);
        enter(w, KEY("runs/old"), member, 2);
    }
    enter(w, KEY("trim"), "old", 1);
    CHECK(DIBS_OK, dibs_job_start(w->other, "old", NULL, run, err));
    world_delay(w, DIBS__STEP_GET_MANY, OLD_LATE_MS);
    asked = world_seen(w, DIBS__STEP_GET_MANY);
    start_node(&n);
    CHECK(DIBS_OK, dibs_job_wait(w->other, run, pace_ms(WAIT_MS), NULL, err));
    asked = atomic_load(&call.asked) - asked;
    print_message("%d requests\n", asked);
    IN_TIME(asked < OLD / (int)DIBS_GET_MANY_MAX);
    while (!is_gone(w)) {
        if (world_ms_since(from_at) > pace_ms(WAIT_MS))
            MISSED("the history did not go");
        world_sleep_ms(2);
    }
    await_members(w, KEY("runs/old"), 1);
    stop_node(&n);
}

/* Each of them is a commit by itself. */
static void a_node_that_drops_definitions_stops(void **state)
{
    world *w = *state;
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    publish(&n);
    plant_many(w, KEY("old/part"), "a", "", DEFINITIONS);
    enter(w, KEY("trim"), "part", 1);
    world_delay(w, DIBS__STEP_COMMIT, OLD_LATE_MS);
    start_node(&n);
    while (count_members(w, KEY("old/part")) == DEFINITIONS)
        world_sleep_ms(2);
    asked = world_seen(w, DIBS__STEP_COMMIT);
    stop_node(&n);
    asked = world_seen(w, DIBS__STEP_COMMIT) - asked;
    print_message("%d requests\n", asked);
    IN_TIME(asked < DEFINITIONS / 2);
}

static void old_definitions_go_in_several_looks(void **state)
{
    world *w = *state;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    publish(&n);
    plant_many(w, KEY("old/part"), "a", "", 100);
    enter(w, KEY("trim"), "part", 1);
    world_delay(w, DIBS__STEP_COMMIT, OLD_LATE_MS);
    start_node(&n);
    await_members(w, KEY("old/part"), 0);
    await_members(w, KEY("trim"), 0);
    stop_node(&n);
}

static bool count_value(const dibs_state_item *item, void *arg)
{
    (void)item;
    ++*(int *)arg;
    return true;
}

/* All values of the board when a node has cleaned up, which it does when it starts. */
static int count_settled(world *w)
{
    int count = 0;
    node n;

    open_node(&n, w, 2 * TTL_MS, 0);
    publish(&n);
    start_node(&n);
    await_members(w, KEY("nodes"), 1);
    await_members(w, KEY("old/reloaded"), 0);
    CHECK(DIBS_OK, dibs_state_list(w->keep, KEY(""), count_value, &count, err));
    stop_node(&n);
    return count;
}

/* A program with a job that is another with each version. */
static void reload(world *w, int version)
{
    dibs_jobs *jobs;
    char text[32];

    (void)snprintf(text, sizeof(text), "version %d", version);
    CHECK(DIBS_OK,
          dibs_jobs_open(w->other,
                         DIBS_JOBS_OPTS(.set = "reloads", .version = version),
                         &jobs, err));
    CHECK(DIBS_OK, dibs_jobs_add(jobs, "reloaded", note_first, NULL,
                                 DIBS_JOB_OPTS(.description = text), err));
    CHECK(DIBS_OK, dibs_jobs_publish(jobs, err));
    dibs_jobs_close(jobs);
}

static void reload_grows_nothing(void **state)
{
    world *w = *state;
    int before;

    reload(w, 1);
    reload(w, 2);
    (void)count_settled(w);
    before = count_settled(w);
    for (int i = 3; i <= RELOADS; i++)
        reload(w, i);
    assert_int_equal(count_members(w, KEY("old/reloaded")), RELOADS - 2);
    assert_int_equal(count_settled(w), before);
}

/* ---- output */

/* The message of the first attempt is its output. */
static dibs_status fail_first(dibs_run *run, void *arg, dibs_error *err)
{
    if (dibs_run_attempt(run) > 1)
        return wait_long(run, arg, err);
    (void)snprintf(err->message, sizeof(err->message), "not yet");
    return DIBS_BROKEN;
}

/* How long the output of a first attempt will still be there. */
static int64_t output_left_ms(world *w, const char *run)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_value value = {.len = 0};
    int64_t left_ms;

    (void)snprintf(key, sizeof(key), KEY("out/%s/main/1"), run);
    CHECK(DIBS_OK, dibs_state_get(w->keep, key, &value, err));
    left_ms = value.expires_ms;
    dibs_value_free(&value);
    return left_ms;
}

/* Of a run that is in its last attempt; the second, if there are two. */
static int64_t left_while_it_runs(world *w, long_call *call, int64_t attempts,
                                  int64_t limit_ms)
{
    char run[DIBS_RUN_SIZE];
    int64_t left_ms;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "kept", fail_first, call,
                                 DIBS_JOB_OPTS(.attempts = attempts,
                                               .attempt_delay_ms = 1,
                                               .run_timeout_ms = limit_ms,
                                               .more = "history: {keep: 1h}"),
                                 err));
    publish(&n);
    start_node(&n);
    CHECK(DIBS_OK, dibs_job_start(w->other, "kept", NULL, run, err));
    while (attempts > 1 && !atomic_load(&call->begun))
        world_sleep_ms(2);
    atomic_store(&call->may_end, attempts == 1);
    if (attempts == 1)
        CHECK(DIBS_OK,
              dibs_job_wait(w->other, run, pace_ms(WAIT_MS), NULL, err));
    left_ms = output_left_ms(w, run);
    stop_node(&n);
    return left_ms;
}

/* It is kept for an hour from the end of its run. */
static void output_lives_as_long_as_its_run(void **state)
{
    world *w = *state;
    long_call free_run = {0}, bounded = {0}, single = {0};
    int64_t left_ms = left_while_it_runs(w, &free_run, 2, 0);

    assert_true(left_ms > 24 * HOUR_MS);
    left_ms = left_while_it_runs(w, &bounded, 2, HOUR_MS);
    IN_TIME(left_ms > HOUR_MS);
    assert_true(left_ms <= 2 * HOUR_MS);
    left_ms = left_while_it_runs(w, &single, 1, 0);
    assert_true(left_ms <= HOUR_MS);
}

/* ---- batches */

/* The run was ready before the sweep began; the members go with some 80 commits. */
static void a_batch_that_is_gone_is_in_no_runs_way(void **state)
{
    char run[DIBS_RUN_SIZE];
    world *w = *state;
    first_call call = {.w = w, .step = DIBS__STEP_COMMIT};
    int asked;
    node n;

    open_node(&n, w, 2 * TTL_MS, 20);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "one", note_first, &call,
                                 DIBS_JOB_OPTS(.description = "one"), err));
    publish(&n);
    plant_many(w, KEY("batch/gone"), "part.", "", MEMBERS);
    enter(w, KEY("trim"), "batch/gone", 1);
    CHECK(DIBS_OK, dibs_job_start(w->other, "one", NULL, run, err));
    asked = world_seen(w, DIBS__STEP_COMMIT);
    world_delay(w, DIBS__STEP_COMMIT, OLD_LATE_MS);
    start_node(&n);
    await_call(&call);
    asked = atomic_load(&call.asked) - asked;
    print_message("%d requests\n", asked);
    IN_TIME(asked < MEMBERS / 256);
    await_members(w, KEY("batch/gone"), 0);
    while (count_up_to(w, KEY("trim"), DIBS_INDEX_NOW) > 0)
        world_sleep_ms(2);
    stop_node(&n);
}

/* A batch of which so many members have ended. */
static void make_batch(world *w, int of, int ended)
{
    char member[64], json[64];
    int len = snprintf(json, sizeof(json), "{\"of\":%d,\"made_us\":1}", of);

    CHECK(DIBS_OK, dibs_state_set(w->keep, KEY("batch/b"), json, (size_t)len, 0,
                                  NULL, err));
    for (int i = 0; i < ended; i++) {
        (void)snprintf(member, sizeof(member), "part.%d", i);
        enter(w, KEY("batch/b"), member, 2);
    }
}

static void a_wait_for_a_batch_outlasts_a_blip(void **state)
{
    world *w = *state;
    dibs_batch_sum sum = {.of = 0};

    make_batch(w, 2, 2);
    world_fault(w, DIBS__STEP_FIRST, DIBS__FAULT_FAIL, -1);
    CHECK(DIBS_UNAVAIL, dibs_batch_wait(w->one, "b", 2, 0, &sum, err));
    world_fault(w, DIBS__STEP_FIRST, DIBS__FAULT_FAIL, 3);
    world_fault(w, DIBS__STEP_GET, DIBS__FAULT_FAIL, 2);
    CHECK(DIBS_OK,
          dibs_batch_wait(w->one, "b", 2, pace_ms(WAIT_MS), &sum, err));
    assert_int_equal(sum.ended, 2);
}

/* Each look reads the record and one place of the index. */
static void a_large_batch_is_counted_once(void **state)
{
    world *w = *state;
    dibs_batch_sum sum = {.of = 0};
    int looks, pages;

    make_batch(w, ENDED + 1, ENDED);
    looks = world_seen(w, DIBS__STEP_GET);
    pages = world_seen(w, DIBS__STEP_FIRST);
    CHECK(DIBS_TIMEOUT,
          dibs_batch_wait(w->one, "b", 0, pace_ms(200), &sum, err));
    looks = world_seen(w, DIBS__STEP_GET) - looks;
    pages = world_seen(w, DIBS__STEP_FIRST) - pages;
    IN_TIME(sum.ended >= ENDED);
    assert_int_equal(sum.ended, ENDED);
    assert_int_equal(sum.of, ENDED + 1);
    print_message("%d looks, %d pages\n", looks, pages);
    assert_true(pages <= looks + ENDED / DIBS_LOOK_MAX + 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        WORLD_TEST(a_node_with_bad_entries_is_idle),
        WORLD_TEST(members_that_are_no_steps_go),
        WORLD_TEST(a_node_that_sweeps_stops),
        WORLD_TEST(a_long_sweep_is_in_no_runs_way),
        WORLD_TEST(ticks_behind_many_that_are_stuck_are_done),
        WORLD_TEST(a_run_behind_many_full_jobs_is_claimed),
        WORLD_TEST(ticks_end_when_the_store_is_away),
        WORLD_TEST(the_definitions_of_ticks_are_read_at_once),
        WORLD_TEST(a_tick_does_not_wait_for_slow_ones),
        WORLD_TEST(slow_ticks_end_no_call),
        WORLD_TEST(the_turns_of_others_are_waited_for),
        WORLD_TEST(steps_that_no_node_can_execute_are_in_nobodys_way),
        WORLD_TEST(a_node_that_reads_ready_steps_stops),
        WORLD_TEST(a_job_that_is_full_is_asked_for_once),
        WORLD_TEST(a_long_history_is_in_no_runs_way),
        WORLD_TEST(a_node_that_drops_definitions_stops),
        WORLD_TEST(old_definitions_go_in_several_looks),
        WORLD_TEST(reload_grows_nothing),
        WORLD_TEST(output_lives_as_long_as_its_run),
        WORLD_TEST(a_batch_that_is_gone_is_in_no_runs_way),
        WORLD_TEST(a_wait_for_a_batch_outlasts_a_blip),
        WORLD_TEST(a_large_batch_is_counted_once),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
