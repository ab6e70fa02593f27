/* jobs.c - functions as jobs, through the public interface. */
/* SPDX-License-Identifier: MIT */
#include "core.h"
#include "node_thread.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CALLERS = 20, MEMBERS = 6, LONG_MS = 60000 };
enum { TOGETHER = 200, CROWD = 200 };

/* A node of a board of its own, on its own thread and with its own client. */
typedef struct node {
    char board[64];
    dibs_client *cl;
    dibs_jobs *jobs;
    node_thread run;
} node;

static const dibs_jobs_opts fast = {.size = sizeof(fast), .look_ms = 20};

static void make_node(node *n, const char *board, dibs_jobs_opts opts)
{
    memset(n, 0, sizeof(*n));
    snprintf(n->board, sizeof(n->board), "%s", board);
    opts.board = n->board;
    opts.ttl_ms = pace_ms(6000);
    n->cl = core_open();
    CHECK(DIBS_OK, dibs_jobs_open(n->cl, &opts, &n->jobs, err));
}

/* What it defines is in the store when this returns. */
static void start_node(node *n)
{
    CHECK(DIBS_OK, dibs_jobs_publish(n->jobs, err));
    node_thread_start(&n->run, n->jobs);
}

static void stop_node(node *n)
{
    node_thread_stop(&n->run);
    dibs_close(n->cl);
}

static const char *at(const node *n, const char *name)
{
    static char whole[DIBS_RUN_SIZE];

    snprintf(whole, sizeof(whole), "%s/%s", n->board, name);
    return whole;
}

static void start_run(const node *n, const char *job,
                      const dibs_start_opts *opts, char run[DIBS_RUN_SIZE])
{
    CHECK(DIBS_OK, dibs_job_start(n->cl, at(n, job), opts, run, err));
}

static dibs_run_info await(const node *n, const char *run)
{
    dibs_run_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_job_wait(n->cl, run, pace_ms(LONG_MS), &info, err));
    assert_true(info.ended);
    /* A node that was late for its ttl has lost the run. */
    IN_TIME(info.state != DIBS_RUN_FAILED || strcmp(info.reason, "lost") != 0);
    return info;
}

static bool load_atom(void *arg)
{
    return atomic_load((atomic_int *)arg) > 0;
}

/* ---- one function */

typedef struct greeting {
    atomic_int calls;
    char said[160];
    uint64_t token;
} greeting;

static dibs_status greet(dibs_run *run, void *arg, dibs_error *err)
{
    greeting *g = arg;
    const char *name = dibs_run_param(run, "name");

    snprintf(g->said, sizeof(g->said), "%s %s %u %s %d", dibs_run_job(run),
             dibs_run_step(run), (unsigned)dibs_run_attempt(run),
             name ? name : "nobody", dibs_run_why(run) == NULL);
    g->token = dibs_run_token(run);
    atomic_fetch_add(&g->calls, 1);
    return dibs_run_result(run, "hello", 5, err);
}

static bool find_ok(const dibs_run_info *info, void *arg)
{
    *(int *)arg += info->state == DIBS_RUN_OK;
    return true;
}

static void a_function_runs_when_its_job_is_started(void **state)
{
    const char *params[] = {"name=anna", NULL};
    char run[DIBS_RUN_SIZE], again[DIBS_RUN_SIZE];
    greeting g = {.calls = 0};
    dibs_run_info info;
    dibs_value value;
    int count = 0;
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "greet", greet, &g,
                        DIBS_JOB_OPTS(.more = "params: {name: {}}"), err));
    start_node(&n);
    start_run(&n, "greet", DIBS_START_OPTS(.id = "one", .params = params), run);
    start_run(&n, "greet", DIBS_START_OPTS(.id = "one", .params = params),
              again);
    assert_string_equal(run, again);
    assert_string_equal(run, at(&n, "greet.one"));
    info = await(&n, run);
    assert_int_equal(info.state, DIBS_RUN_OK);
    assert_string_equal(info.cause, "hand");
    assert_int_equal(atomic_load(&g.calls), 1);
    assert_string_equal(g.said, "greet main 1 anna 1");
    assert_true(g.token > 0);
    CHECK(DIBS_OK, dibs_job_result(n.cl, run, "main", &value, err));
    assert_string_equal(value.data, "hello");
    dibs_value_free(&value);
    CHECK(DIBS_NOTFOUND, dibs_job_result(n.cl, run, "other", &value, err));
    CHECK(DIBS_OK, dibs_job_runs(n.cl, at(&n, "greet"), find_ok, &count, err));
    assert_int_equal(count, 1);
    CHECK(DIBS_STALE, dibs_job_cancel(n.cl, run, err));
    CHECK(DIBS_NOTFOUND,
          dibs_job_start(n.cl, at(&n, "nothing"), NULL, run, err));
    stop_node(&n);
}

static dibs_status note_tick(dibs_run *run, void *arg, dibs_error *err)
{
    (void)err;
    if (dibs_run_tick_us(run) > 0)
        atomic_fetch_add((atomic_int *)arg, 1);
    return DIBS_OK;
}

static void a_schedule_calls_it(void **state)
{
    atomic_int ticks = 0;
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "often", note_tick, &ticks,
                                 DIBS_JOB_OPTS(.schedule = "@every 1s"), err));
    start_node(&n);
    core_until(load_atom, &ticks);
    stop_node(&n);
}

/* The latest tick of each job that was called. */
typedef struct crowd {
    _Atomic(int64_t) ticks[CROWD];
    atomic_int called, repeated;
} crowd;

static dibs_status count_tick(dibs_run *run, void *arg, dibs_error *err)
{
    crowd *c = arg;
    const long i = strtol(dibs_run_job(run) + 1, NULL, 10);
    const int64_t tick_us = dibs_run_tick_us(run);
    const int64_t before_us = atomic_exchange(&c->ticks[i], tick_us);

    (void)err;
    if (before_us == 0)
        atomic_fetch_add(&c->called, 1);
    else if (tick_us <= before_us)
        atomic_fetch_add(&c->repeated, 1);
    return DIBS_OK;
}

static bool is_whole(void *arg)
{
    return atomic_load(&((crowd *)arg)->called) == CROWD;
}

/* Two nodes share what is due in one instant: each job is called, and no tick twice. */
static void all_that_are_due_at_once_run_once(void **state)
{
    static crowd c;
    dibs_jobs_opts opts = fast;
    node defines, helps;
    char name[16];

    (void)state;
    memset(&c, 0, sizeof(c));
    opts.slots = 8;
    make_node(&defines, core_name(), opts);
    opts.set = "helps";
    make_node(&helps, defines.board, opts);
    CHECK(DIBS_OK,
          dibs_jobs_function(defines.jobs, "count", count_tick, &c, err));
    CHECK(DIBS_OK,
          dibs_jobs_function(helps.jobs, "count", count_tick, &c, err));
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "j%d", i);
        CHECK(DIBS_OK,
              dibs_jobs_define(defines.jobs, name,
                               DIBS_JOB_OPTS(.call = "count",
                                             .schedule = "*/5 * * * * *",
                                             .more = "history: {ok: 1}"),
                               err));
    }
    start_node(&defines);
    start_node(&helps);
    core_until(is_whole, &c);
    stop_node(&helps);
    stop_node(&defines);
    assert_int_equal(c.repeated, 0);
}

/* ---- failures, and how a call is told to stop */

typedef struct patient {
    atomic_int begun, calls;
    char why[32];
    bool heard; /* by the descriptor, too */
    dibs_status answer;
    uint64_t tokens[4];
} patient;

static dibs_status wait_until_told(dibs_run *run, void *arg, dibs_error *err)
{
    patient *p = arg;
    struct pollfd one = {.fd = dibs_run_stop_fd(run), .events = POLLIN};

    p->tokens[atomic_fetch_add(&p->calls, 1) % 4] = dibs_run_token(run);
    if (dibs_run_attempt(run) > 1)
        return DIBS_OK;
    atomic_store(&p->begun, 1);
    p->heard = poll(&one, 1, (int)pace_ms(LONG_MS)) == 1;
    snprintf(p->why, sizeof(p->why), "%s",
             dibs_run_go_on(run) ? "goes on" : dibs_run_why(run));
    snprintf(err->message, sizeof(err->message), "gave up");
    return p->answer;
}

static node *start_patient(node *n, patient *p, const dibs_job_opts *opts,
                           char run[DIBS_RUN_SIZE])
{
    make_node(n, core_name(), fast);
    CHECK(DIBS_OK,
          dibs_jobs_add(n->jobs, "wait", wait_until_told, p, opts, err));
    start_node(n);
    start_run(n, "wait", NULL, run);
    core_until(load_atom, &p->begun);
    return n;
}

static void a_cancel_reaches_the_call(void **state)
{
    patient p = {.answer = DIBS_INTERNAL};
    char run[DIBS_RUN_SIZE];
    dibs_run_info info;
    node n;

    (void)state;
    start_patient(&n, &p, NULL, run);
    CHECK(DIBS_TIMEOUT, dibs_job_wait(n.cl, run, 0, NULL, err));
    CHECK(DIBS_OK, dibs_job_cancel(n.cl, run, err));
    info = await(&n, run);
    assert_int_equal(info.state, DIBS_RUN_CANCELLED);
    assert_true(p.heard);
    assert_string_equal(p.why, "cancelled");
    stop_node(&n);
}

static bool check_code(const dibs_step_info *step, void *arg)
{
    dibs_step_info *out = arg;

    *out = *step;
    return false;
}

static void a_timeout_reaches_the_call(void **state)
{
    patient p = {.answer = DIBS_INVALID};
    dibs_step_info step = {.code = 0};
    char run[DIBS_RUN_SIZE];
    dibs_run_info info;
    node n;

    (void)state;
    start_patient(&n, &p, DIBS_JOB_OPTS(.timeout_ms = 30), run);
    info = await(&n, run);
    assert_int_equal(info.state, DIBS_RUN_FAILED);
    assert_string_equal(info.reason, "timeout");
    assert_string_equal(p.why, "timeout");
    CHECK(DIBS_OK, dibs_job_show(n.cl, run, NULL, check_code, &step, err));
    assert_int_equal(step.code, DIBS_INVALID);
    stop_node(&n);
}

/* Work that was done is done, though it took too long. */
static void success_counts_after_a_timeout(void **state)
{
    patient p = {.answer = DIBS_OK};
    char run[DIBS_RUN_SIZE];
    node n;

    (void)state;
    start_patient(&n, &p, DIBS_JOB_OPTS(.timeout_ms = 30), run);
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    stop_node(&n);
}

static void a_stop_reaches_the_call(void **state)
{
    patient p = {.answer = DIBS_CANCELLED};
    dibs_run_info info = {.size = sizeof(info)};
    char run[DIBS_RUN_SIZE];
    dibs_client *cl = core_open();
    node n;

    (void)state;
    start_patient(&n, &p, NULL, run);
    stop_node(&n);
    assert_string_equal(p.why, "stopped");
    CHECK(DIBS_OK, dibs_job_show(cl, run, &info, NULL, NULL, err));
    assert_string_equal(info.reason, "stopped");
    dibs_close(cl);
}

/* Its lease is "job/{BOARD}/node/ID". */
static bool break_node(const dibs_lease_info *info, void *arg)
{
    node *n = arg;

    if (strstr(info->name, n->board) && strstr(info->name, "/node/"))
        CHECK(DIBS_OK, dibs_lease_break(n->cl, info->name, 0, NULL, NULL, err));
    return true;
}

static void a_lost_lease_reaches_the_call(void **state)
{
    patient p = {.answer = DIBS_LOST};
    dibs_client *cl = core_open();
    char run[DIBS_RUN_SIZE];
    node n;

    (void)state;
    start_patient(&n, &p,
                  DIBS_JOB_OPTS(.attempts = 2, .attempt_delay_ms = 1,
                                .retry_lost = true),
                  run);
    CHECK(DIBS_OK, dibs_lease_list(cl, NULL, break_node, &n, err));
    /* The node joins anew, finds its former self gone, and tries again. */
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    assert_string_equal(p.why, "lost");
    assert_int_equal(atomic_load(&p.calls), 2);
    assert_true(p.tokens[1] > p.tokens[0]);
    stop_node(&n);
    dibs_close(cl);
}

/* ---- the lock of a job */

static void a_held_lock_skips_the_call(void **state)
{
    greeting g = {.calls = 0};
    char run[DIBS_RUN_SIZE], key[64];
    dibs_run_info info;
    dibs_lock *lock;
    node n;

    (void)state;
    snprintf(key, sizeof(key), "%s", core_name());
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "greet", greet, &g,
                        DIBS_JOB_OPTS(.lock_key = key, .lock_ttl_ms = 60000,
                                      .retries = 2, .retry_delay_ms = 10),
                        err));
    start_node(&n);
    lock = core_lock(n.cl, key, NULL);
    CHECK(DIBS_OK, dibs_lock_try(lock, err));
    start_run(&n, "greet", NULL, run);
    info = await(&n, run);
    assert_int_equal(info.state, DIBS_RUN_SKIPPED);
    assert_int_equal(atomic_load(&g.calls), 0);
    dibs_lock_free(lock);
    start_run(&n, "greet", NULL, run);
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    assert_int_equal(atomic_load(&g.calls), 1);
    stop_node(&n);
}

/* ---- steps, bookmarks, graphs, batches */

static dibs_status join_needs(dibs_run *run, void *arg, dibs_error *err)
{
    const char *one = dibs_run_need(run, "first", NULL);
    const char *two = dibs_run_need(run, "approve", NULL);
    char text[64];

    (void)arg;
    snprintf(text, sizeof(text), "%s+%s+%s", one ? one : "-", two ? two : "-",
             dibs_run_need(run, "other", NULL) ? "?" : "none");
    return dibs_run_result(run, text, strlen(text), err);
}

/* A file whose calls are functions of this program. */
static void load_flow(node *n)
{
    char path[] = "/tmp/dibs-flow-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;

    assert_non_null(file);
    fprintf(file,
            "board: %s\nset: flow\njobs:\n  flow:\n    steps:\n"
            "      first: {call: greet}\n"
            "      approve: {wait: {bookmark: approval}, needs: [first]}\n"
            "      last: {call: join, needs: [first, approve]}\n",
            n->board);
    fclose(file);
    CHECK(DIBS_OK, dibs_jobs_load(n->jobs, path, err));
    unlink(path);
}

static bool find_waiting(const dibs_step_info *step, void *arg)
{
    *(bool *)arg = *(bool *)arg || step->state == DIBS_RUN_WAITING;
    return true;
}

typedef struct waiting {
    dibs_client *cl;
    const char *run;
} waiting;

static bool is_waiting(void *arg)
{
    const waiting *w = arg;
    bool found = false;

    CHECK(DIBS_OK,
          dibs_job_show(w->cl, w->run, NULL, find_waiting, &found, err));
    return found;
}

static void start_flow(node *n, greeting *g, char run[DIBS_RUN_SIZE])
{
    waiting w = {.run = run};

    make_node(n, core_name(), fast);
    CHECK(DIBS_OK, dibs_jobs_function(n->jobs, "greet", greet, g, err));
    CHECK(DIBS_OK, dibs_jobs_function(n->jobs, "join", join_needs, NULL, err));
    load_flow(n);
    start_node(n);
    start_run(n, "flow", NULL, run);
    w.cl = n->cl;
    core_until(is_waiting, &w);
}

typedef struct caller {
    const char *run;
    pthread_t thread;
    dibs_client *cl;
    dibs_status rc;
} caller;

static void *resume_run(void *arg)
{
    caller *c = arg;

    c->rc = dibs_bookmark_resume(c->cl, c->run, "approval", "yes", 3, NULL);
    return NULL;
}

static void results_are_passed_on_and_one_caller_resumes(void **state)
{
    caller callers[CALLERS];
    char run[DIBS_RUN_SIZE];
    greeting g = {.calls = 0};
    dibs_value value;
    int resumed = 0;
    node n;

    (void)state;
    start_flow(&n, &g, run);
    CHECK(DIBS_NOTFOUND,
          dibs_bookmark_resume(n.cl, run, "nothing", NULL, 0, err));
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (caller){.run = run, .cl = n.cl};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, resume_run,
                                        &callers[i]),
                         0);
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        resumed += callers[i].rc == DIBS_OK;
        if (callers[i].rc != DIBS_OK && callers[i].rc != DIBS_BUSY)
            assert_status(callers[i].rc, DIBS_STALE);
    }
    assert_int_equal(resumed, 1);
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    CHECK(DIBS_OK, dibs_job_result(n.cl, run, "last", &value, err));
    assert_string_equal(value.data, "hello+yes+none");
    dibs_value_free(&value);
    CHECK(DIBS_STALE,
          dibs_bookmark_resume(n.cl, run, "approval", NULL, 0, err));
    stop_node(&n);
}

/* Many runs wait, and all are resumed in one moment. */
static void all_that_are_resumed_at_once_go_on(void **state)
{
    char runs[TOGETHER][DIBS_RUN_SIZE];
    caller callers[TOGETHER];
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK, dibs_jobs_function(n.jobs, "greet", join_needs, NULL, err));
    CHECK(DIBS_OK, dibs_jobs_function(n.jobs, "join", join_needs, NULL, err));
    load_flow(&n);
    start_node(&n);
    for (int i = 0; i < TOGETHER; i++)
        start_run(&n, "flow", NULL, runs[i]);
    for (int i = 0; i < TOGETHER; i++)
        core_until(is_waiting, &(waiting){.cl = n.cl, .run = runs[i]});
    for (int i = 0; i < TOGETHER; i++) {
        callers[i] = (caller){.run = runs[i], .cl = n.cl};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, resume_run,
                                        &callers[i]),
                         0);
    }
    for (int i = 0; i < TOGETHER; i++) {
        pthread_join(callers[i].thread, NULL);
        CHECK(DIBS_OK, callers[i].rc);
    }
    for (int i = 0; i < TOGETHER; i++)
        assert_int_equal(await(&n, runs[i]).state, DIBS_RUN_OK);
    stop_node(&n);
}

typedef struct attempt {
    dibs_client *cl;
    const char *run;
    dibs_status answer;
    dibs_error second;
} attempt;

/* Meanwhile another caller comes. */
static dibs_status decide(void *arg, char *data, size_t *len, dibs_error *err)
{
    attempt *a = arg;
    dibs_status rc =
        dibs_bookmark_resume(a->cl, a->run, "approval", "no", 2, &a->second);

    (void)err;
    assert_int_equal(*len, DIBS_RESULT_MAX);
    assert_status(rc, DIBS_BUSY);
    memcpy(data, "later", 5);
    *len = 5;
    return a->answer;
}

static void a_second_caller_is_told_that_it_is_in_progress(void **state)
{
    greeting g = {.calls = 0};
    char run[DIBS_RUN_SIZE];
    dibs_client *other = core_open();
    attempt a = {.cl = other, .run = run, .answer = DIBS_INVALID};
    dibs_value value;
    node n;

    (void)state;
    start_flow(&n, &g, run);
    /* Work that fails leaves the bookmark to others. */
    CHECK(DIBS_INVALID,
          dibs_bookmark_work(n.cl, run, "approval", decide, &a, err));
    assert_non_null(strstr(a.second.message, "already in progress"));
    a.answer = DIBS_OK;
    CHECK(DIBS_OK, dibs_bookmark_work(n.cl, run, "approval", decide, &a, err));
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    CHECK(DIBS_OK, dibs_job_result(n.cl, run, "last", &value, err));
    assert_string_equal(value.data, "hello+later+none");
    dibs_value_free(&value);
    CHECK(DIBS_STALE,
          dibs_bookmark_work(n.cl, run, "approval", decide, &a, err));
    stop_node(&n);
    dibs_close(other);
}

static void a_graph_runs_jobs_in_order(void **state)
{
    const char *needs[] = {"extract", "transform", NULL};
    const char *unknown[] = {"nothing", NULL};
    char run[DIBS_RUN_SIZE], name[DIBS_RUN_SIZE];
    greeting early = {.calls = 0}, late = {.calls = 0};
    dibs_graph *graph = NULL;
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "early", greet, &early,
                        DIBS_JOB_OPTS(.more = "params: {name: {}}"), err));
    CHECK(DIBS_OK, dibs_jobs_add(n.jobs, "late", greet, &late, NULL, err));
    start_node(&n);
    snprintf(name, sizeof(name), "%s", at(&n, "etl"));
    CHECK(DIBS_OK, dibs_graph_new(name, &graph, err));
    CHECK(DIBS_INVALID, dibs_graph_start(n.cl, graph, run, err));
    CHECK(DIBS_INVALID, dibs_graph_param(graph, "name", "x", err));
    CHECK(DIBS_OK, dibs_graph_add(graph, "extract", "early", NULL, err));
    CHECK(DIBS_OK, dibs_graph_param(graph, "name", "a \"${b}\"", err));
    CHECK(DIBS_INVALID, dibs_graph_add(graph, "extract", "early", NULL, err));
    CHECK(DIBS_OK, dibs_graph_add(graph, "transform", "early", NULL, err));
    CHECK(DIBS_INVALID, dibs_graph_add(graph, "load", "late", unknown, err));
    CHECK(DIBS_OK, dibs_graph_add(graph, "load", "late", needs, err));
    CHECK(DIBS_OK, dibs_graph_start(n.cl, graph, run, err));
    assert_int_equal(await(&n, run).state, DIBS_RUN_OK);
    assert_int_equal(atomic_load(&early.calls), 2);
    assert_int_equal(atomic_load(&late.calls), 1);
    assert_true(late.token > early.token);
    CHECK(DIBS_OK, dibs_graph_add(graph, "more", "missing", NULL, err));
    CHECK(DIBS_NOTFOUND, dibs_graph_start(n.cl, graph, run, err));
    dibs_graph_free(graph);
    stop_node(&n);
}

static dibs_status fail_odd(dibs_run *run, void *arg, dibs_error *err)
{
    const char *number = dibs_run_param(run, "number");

    (void)arg;
    snprintf(err->message, sizeof(err->message), "%s is odd", number);
    return strtol(number, NULL, 10) % 2 ? DIBS_MISMATCH : DIBS_OK;
}

static void a_batch_is_awaited(void **state)
{
    char run[DIBS_RUN_SIZE], batch[DIBS_RUN_SIZE];
    dibs_batch_sum sum;
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "part", fail_odd, NULL,
                        DIBS_JOB_OPTS(.more = "params: {number: {}}"), err));
    start_node(&n);
    snprintf(batch, sizeof(batch), "%s", at(&n, "42"));
    CHECK(DIBS_NOTFOUND, dibs_batch_wait(n.cl, batch, 0, 0, NULL, err));
    CHECK(DIBS_TIMEOUT, dibs_batch_wait(n.cl, batch, MEMBERS, 0, &sum, err));
    assert_int_equal(sum.ended, 0);
    for (int i = 0; i < MEMBERS; i++) {
        char number[16];
        const char *params[] = {number, NULL};

        snprintf(number, sizeof(number), "number=%d", i);
        start_run(&n, "part",
                  DIBS_START_OPTS(.params = params, .batch = "42",
                                  .of = MEMBERS),
                  run);
    }
    CHECK(DIBS_FULL,
          dibs_job_start(n.cl, at(&n, "part"),
                         DIBS_START_OPTS(.params =
                                             (const char *[]){"number=0", NULL},
                                         .batch = "42"),
                         run, err));
    CHECK(DIBS_OK,
          dibs_batch_wait(n.cl, batch, MEMBERS, pace_ms(LONG_MS), &sum, err));
    assert_int_equal(sum.ended, MEMBERS);
    assert_int_equal(sum.failed, MEMBERS / 2);
    CHECK(DIBS_OK, dibs_batch_wait(n.cl, batch, 0, 0, &sum, err));
    assert_int_equal(sum.of, MEMBERS);
    assert_int_equal(sum.failed, MEMBERS / 2);
    CHECK(DIBS_INVALID, dibs_batch_wait(n.cl, batch, 3, 0, NULL, err));
    stop_node(&n);
}

/* As many calls as wait for each other. */
typedef struct meeting {
    atomic_int wanted, begun;
} meeting;

static dibs_status meet(dibs_run *run, void *arg, dibs_error *err)
{
    meeting *m = arg;

    (void)err;
    atomic_fetch_add(&m->begun, 1);
    while (atomic_load(&m->begun) < atomic_load(&m->wanted) &&
           dibs_run_go_on(run))
        usleep(100);
    return dibs_run_go_on(run) ? DIBS_OK : DIBS_TIMEOUT;
}

static void start_meeting(const node *n, int count, char run[DIBS_RUN_SIZE])
{
    char name[DIBS_RUN_SIZE], step[32];
    dibs_graph *graph = NULL;

    snprintf(step, sizeof(step), "of-%d", count);
    snprintf(name, sizeof(name), "%s", at(n, step));
    CHECK(DIBS_OK, dibs_graph_new(name, &graph, err));
    for (int i = 0; i < count; i++) {
        snprintf(step, sizeof(step), "step-%d", i);
        CHECK(DIBS_OK, dibs_graph_add(graph, step, "meet", NULL, err));
    }
    CHECK(DIBS_OK, dibs_graph_start(n->cl, graph, run, err));
    dibs_graph_free(graph);
}

/* Each has one call more than threads rest from the one before. */
static void slots_are_used_at_once(void **state)
{
    dibs_jobs_opts opts = fast;
    meeting m = {.begun = 0};
    char run[DIBS_RUN_SIZE];
    dibs_run_info info;
    node n;

    (void)state;
    opts.slots = MEMBERS;
    make_node(&n, core_name(), opts);
    CHECK(DIBS_OK,
          dibs_jobs_add(n.jobs, "meet", meet, &m,
                        DIBS_JOB_OPTS(.timeout_ms = pace_ms(LONG_MS) / 4),
                        err));
    start_node(&n);
    for (int i = 1; i <= MEMBERS; i++) {
        atomic_store(&m.begun, 0);
        atomic_store(&m.wanted, i);
        start_meeting(&n, i, run);
        info = await(&n, run);
        IN_TIME(strcmp(info.reason, "timeout") != 0);
        assert_int_equal(info.state, DIBS_RUN_OK);
    }
    stop_node(&n);
}

/* ---- a function that does not return */

static dibs_status stay(dibs_run *run, void *arg, dibs_error *err)
{
    (void)run;
    (void)arg;
    (void)err;
    for (;;)
        (void)pause();
    return DIBS_OK;
}

/* Runs a node whose only call does not return when its time is over. */
int core_stuck_call(char **words)
{
    const struct rlimit none = {0, 0};
    char job[DIBS_RUN_SIZE], run[DIBS_RUN_SIZE];
    dibs_client *cl = NULL;
    dibs_jobs *jobs = NULL;
    dibs_status rc;
    int code = 2;

    (void)setrlimit(RLIMIT_CORE, &none);
    snprintf(job, sizeof(job), "%s/stay", words[1]);
    rc = dibs_open(words[0], NULL, &cl, NULL);
    if (rc == DIBS_OK)
        rc = dibs_jobs_open(cl,
                            DIBS_JOBS_OPTS(.board = words[1],
                                           .on_stuck = DIBS_STUCK_ABORT),
                            &jobs, NULL);
    if (rc == DIBS_OK)
        rc = DIBS_JOB(jobs, "stay", stay, .timeout_ms = 30,
                      .more = "kill_after: 50ms");
    if (rc == DIBS_OK)
        rc = dibs_jobs_publish(jobs, NULL);
    if (rc == DIBS_OK)
        rc = dibs_job_start(cl, job, NULL, run, NULL);
    if (rc == DIBS_OK) {
        rc = dibs_jobs_run(jobs, NULL);
        code = rc == DIBS_OK ? 3 : 4;
    }
    if (pace_explains(rc))
        MISSED("a call is %s", dibs_status_name(rc));
    return code;
}

static void a_stuck_call_ends_its_process(void **state)
{
    (void)state;
    assert_int_equal(child_code(
                         child_start("stuck", core_url, core_name(), NULL)),
                     1000 + SIGABRT);
}

/* ---- misuse */

static void a_mistake_is_reported_by_the_run(void **state)
{
    greeting g = {.calls = 0};
    dibs_error why = {0};
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    assert_int_equal(DIBS_JOB(n.jobs, "bad", greet, .schedule = "61 * * * *"),
                     DIBS_INVALID);
    assert_int_equal(DIBS_JOB(n.jobs, "good", greet, .attempts = 2), DIBS_OK);
    assert_int_equal(DIBS_JOB(n.jobs, "good", greet, .attempts = 2),
                     DIBS_INVALID);
    assert_int_equal(dibs_jobs_run(n.jobs, &why), DIBS_INVALID);
    assert_non_null(strstr(why.message, "bad"));
    assert_non_null(strstr(why.message, "minute"));
    CHECK(DIBS_NOTFOUND, dibs_jobs_load(n.jobs, "/nowhere/jobs.yaml", err));
    CHECK(DIBS_INVALID, dibs_jobs_function(n.jobs, "a b", greet, &g, err));
    dibs_jobs_close(n.jobs);
    CHECK(DIBS_INVALID,
          dibs_jobs_open(n.cl, DIBS_JOBS_OPTS(.ttl_ms = 10), &n.jobs, err));
    CHECK(DIBS_INVALID,
          dibs_jobs_open(n.cl, DIBS_JOBS_OPTS(.on_stuck = (dibs_on_stuck)2),
                         &n.jobs, err));
    CHECK(DIBS_INVALID,
          dibs_jobs_open(n.cl, DIBS_JOBS_OPTS(.sweep_prefix = "\t"), &n.jobs,
                         err));
    dibs_close(n.cl);
}

/* They would do nothing. */
static void a_name_is_defined_once(void **state)
{
    dibs_error why = {0};
    char name[16];
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    for (int i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "j%d", i);
        CHECK(DIBS_OK, dibs_jobs_define(n.jobs, name, NULL, err));
    }
    CHECK(DIBS_INVALID, dibs_jobs_define(n.jobs, "j7", NULL, &why));
    assert_non_null(strstr(why.message, "j7 already"));
    /* A job that was refused is not published without a word. */
    CHECK(DIBS_INVALID, dibs_jobs_publish(n.jobs, err));
    dibs_jobs_close(n.jobs);
    dibs_close(n.cl);
}

static void options_of_a_lock_need_its_key(void **state)
{
    const dibs_job_opts *odd[] = {DIBS_JOB_OPTS(.lock_ttl_ms = 60000),
                                  DIBS_JOB_OPTS(.retries = 3),
                                  DIBS_JOB_OPTS(.retry_delay_ms = 500),
                                  DIBS_JOB_OPTS(.on_busy = "fail")};
    dibs_error why = {0};
    node n;

    (void)state;
    make_node(&n, core_name(), fast);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        assert_int_equal(dibs_jobs_define(n.jobs, "odd", odd[i], &why),
                         DIBS_INVALID);
        assert_non_null(strstr(why.message, "the lock has no key"));
    }
    /* A singleton has one of its own. */
    CHECK(DIBS_OK, dibs_jobs_define(n.jobs, "even",
                                    DIBS_JOB_OPTS(.singleton = true,
                                                  .lock_ttl_ms = 60000),
                                    err));
    dibs_jobs_close(n.jobs);
    dibs_close(n.cl);
}

int core_jobs_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_runs_when_its_job_is_started),
        cmocka_unit_test(a_schedule_calls_it),
        cmocka_unit_test(all_that_are_due_at_once_run_once),
        cmocka_unit_test(a_cancel_reaches_the_call),
        cmocka_unit_test(a_timeout_reaches_the_call),
        cmocka_unit_test(success_counts_after_a_timeout),
        cmocka_unit_test(a_stop_reaches_the_call),
        cmocka_unit_test(a_lost_lease_reaches_the_call),
        cmocka_unit_test(a_held_lock_skips_the_call),
        cmocka_unit_test(results_are_passed_on_and_one_caller_resumes),
        cmocka_unit_test(a_second_caller_is_told_that_it_is_in_progress),
        cmocka_unit_test(all_that_are_resumed_at_once_go_on),
        cmocka_unit_test(a_graph_runs_jobs_in_order),
        cmocka_unit_test(a_batch_is_awaited),
        cmocka_unit_test(slots_are_used_at_once),
        cmocka_unit_test(a_stuck_call_ends_its_process),
        cmocka_unit_test(a_mistake_is_reported_by_the_run),
        cmocka_unit_test(a_name_is_defined_once),
        cmocka_unit_test(options_of_a_lock_need_its_key),
    };

    return cmocka_run_group_tests_name("jobs", tests, NULL, NULL);
}
