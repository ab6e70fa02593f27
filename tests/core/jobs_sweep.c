/* jobs_sweep.c - the sweeps of a node: the size of the store after many runs and batches, and
 * entries that cannot be dealt with. Time is made to pass by writing what the store has
 * then. */
/* SPDX-License-Identifier: MIT */
#include "core.h"
#include "node_thread.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    BATCHES = 12,
    MEMBERS = 3,
    LIVING = DIBS_LOOK_MAX + 10,
    EXPIRED = 20,
    BAD = 150,      /* more than two pages of a look */
    TOGETHER = 100, /* runs of one commit */
    WAIT_MS = 60000
};

typedef struct bench {
    char board[64];
    dibs_client *cl;
    dibs_jobs *jobs;
    node_thread run;
} bench;

static dibs_status fail_at_first(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    return dibs_run_attempt(run) > 1 ? DIBS_OK : DIBS_MISMATCH;
}

static dibs_status await_stop(dibs_run *run, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    while (dibs_run_go_on(run))
        usleep(1000);
    return DIBS_TIMEOUT;
}

static dibs_status do_nothing(dibs_run *run, void *arg, dibs_error *err)
{
    (void)run;
    (void)arg;
    (void)err;
    return DIBS_OK;
}

/* A node that begins cleans up with its first look. */
static void start_node(bench *b)
{
    CHECK(DIBS_OK,
          dibs_jobs_open(b->cl,
                         DIBS_JOBS_OPTS(.board = b->board, .look_ms = 20,
                                        .ttl_ms = pace_ms(6000),
                                        .sweep_prefix = b->board),
                         &b->jobs, err));
    CHECK(DIBS_OK, dibs_jobs_add(b->jobs, "part", do_nothing, NULL,
                                 DIBS_JOB_OPTS(.description = "a part"), err));
    CHECK(DIBS_OK,
          dibs_jobs_add(b->jobs, "flaky", fail_at_first, NULL,
                        DIBS_JOB_OPTS(.attempts = 2, .attempt_delay_ms = 1),
                        err));
    CHECK(DIBS_OK, dibs_jobs_add(b->jobs, "limited", await_stop, NULL,
                                 DIBS_JOB_OPTS(.run_timeout_ms = 100), err));
    CHECK(DIBS_OK, dibs_jobs_publish(b->jobs, err));
    node_thread_start(&b->run, b->jobs);
}

static void begin_bench(bench *b)
{
    memset(b, 0, sizeof(*b));
    snprintf(b->board, sizeof(b->board), "%s", core_name());
    b->cl = core_open();
    start_node(b);
}

static void run_batch(bench *b, const char *batch, int members, uint32_t of)
{
    char run[DIBS_RUN_SIZE], job[DIBS_RUN_SIZE], name[DIBS_RUN_SIZE];
    dibs_batch_sum sum = {.of = 0};

    snprintf(job, sizeof(job), "%s/part", b->board);
    snprintf(name, sizeof(name), "%s/%s", b->board, batch);
    for (int i = 0; i < members; i++)
        CHECK(DIBS_OK, dibs_job_start(b->cl, job,
                                      DIBS_START_OPTS(.batch = batch, .of = of),
                                      run, err));
    if ((uint32_t)members == of)
        CHECK(DIBS_OK,
              dibs_batch_wait(b->cl, name, of, pace_ms(WAIT_MS), &sum, err));
    else
        CHECK(DIBS_OK, dibs_job_wait(b->cl, run, pace_ms(WAIT_MS), NULL, err));
}

/* ---- the store */

static const char *key_of(const bench *b, const char *name)
{
    static char key[256];

    snprintf(key, sizeof(key), "job/{%s}/%s", b->board, name);
    return key;
}

typedef struct tally {
    uint32_t count;
    int64_t last_at;
} tally;

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    tally *t = arg;

    if (strcmp(entry->member, "part") == 0)
        return true; /* The job is not meant. */
    t->count++;
    t->last_at = entry->at;
    return true;
}

static tally count_members(const bench *b, const char *index)
{
    dibs_index_look look = {.index = key_of(b, index),
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = DIBS_LOOK_MAX};
    tally t = {.count = 0};

    CHECK(DIBS_OK,
          dibs_index_first(b->cl, &look, 1, NULL, count_entry, &t, err));
    return t;
}

static void
enter(const bench *b, const char *index, const char *member, int64_t at)
{
    dibs_commit_change change = {.verb = DIBS_COMMIT_ENTER,
                                 .name = key_of(b, index),
                                 .member = member,
                                 .at = at};
    dibs_commit commit = {.changes = &change, .change_count = 1};

    CHECK(DIBS_OK, dibs_state_commit(b->cl, &commit, 1, err));
    dibs_commit_free(&commit, 1);
}

static void drop_record(const bench *b, const char *name)
{
    dibs_commit_change change = {.verb = DIBS_COMMIT_DELETE,
                                 .name = key_of(b, name)};
    dibs_commit commit = {.changes = &change, .change_count = 1};

    CHECK(DIBS_OK, dibs_state_commit(b->cl, &commit, 1, err));
    dibs_commit_free(&commit, 1);
}

static bool has_record(const bench *b, const char *name)
{
    dibs_value value = {.len = 0};
    dibs_error err = {0};
    dibs_status rc = dibs_state_get(b->cl, key_of(b, name), &value, &err);

    dibs_value_free(&value);
    if (rc != DIBS_OK)
        assert_status(rc, DIBS_NOTFOUND);
    return rc == DIBS_OK;
}

static bool is_swept(void *arg)
{
    dibs_index_look look = {.index = key_of(arg, "trim"),
                            .up_to = DIBS_INDEX_NOW,
                            .limit = DIBS_LOOK_MAX};
    tally t = {.count = 0};
    bench *b = arg;

    CHECK(DIBS_OK,
          dibs_index_first(b->cl, &look, 1, NULL, count_entry, &t, err));
    return t.count == 0;
}

static void members_go_when_their_batch_is_gone(void **state)
{
    char name[32];
    bench b;

    (void)state;
    begin_bench(&b);
    for (int i = 0; i <= BATCHES; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        run_batch(&b, name, MEMBERS, MEMBERS);
    }
    node_thread_stop(&b.run);
    assert_int_equal(count_members(&b, "trim").count, BATCHES + 1);
    /* A week later, but for the last of them. */
    for (int i = 0; i <= BATCHES; i++) {
        snprintf(name, sizeof(name), "batch/b%d", i);
        assert_int_equal(count_members(&b, name).count, MEMBERS);
        enter(&b, "trim", name, i + 1);
        if (i < BATCHES)
            drop_record(&b, name);
    }
    start_node(&b);
    core_until(is_swept, &b);
    node_thread_stop(&b.run);
    for (int i = 0; i < BATCHES; i++) {
        snprintf(name, sizeof(name), "batch/b%d", i);
        assert_int_equal(count_members(&b, name).count, 0);
    }
    /* It is looked at again when its own week is over. */
    snprintf(name, sizeof(name), "batch/b%d", BATCHES);
    assert_int_equal(count_members(&b, name).count, MEMBERS);
    assert_int_equal(count_members(&b, "trim").count, 1);
    dibs_close(b.cl);
}

/* Writes a record of a batch that was made long ago, of which one member has ended. */
static void make_old(const bench *b, const char *name, const char *rest)
{
    char json[200];
    int len = snprintf(json, sizeof(json), "{\"of\":2,\"made_us\":1%s}", rest);

    CHECK(DIBS_OK, dibs_state_set(b->cl, key_of(b, name), json, (size_t)len, 0,
                                  NULL, err));
    enter(b, name, "part.some", 2);
    enter(b, "trim", name, 1);
}

static void a_batch_that_nobody_completes_is_forgotten(void **state)
{
    bench b;

    (void)state;
    begin_bench(&b);
    run_batch(&b, "new", 1, 2);
    node_thread_stop(&b.run);
    enter(&b, "trim", "batch/new", 1);
    make_old(&b, "batch/gone", ",\"started\":1,\"waiters\":[\"part.none\"]");
    make_old(&b, "batch/lives", ",\"started\":2");
    start_node(&b);
    core_until(is_swept, &b);
    node_thread_stop(&b.run);
    assert_false(has_record(&b, "batch/gone"));
    assert_int_equal(count_members(&b, "batch/gone").count, 0);
    /* Another member may end. */
    assert_true(has_record(&b, "batch/lives"));
    assert_int_equal(count_members(&b, "batch/lives").count, 1);
    assert_true(has_record(&b, "batch/new"));
    assert_int_equal(count_members(&b, "batch/new").count, 1);
    assert_int_equal(count_members(&b, "trim").count, 2);
    dibs_close(b.cl);
}

/* ---- history */

/* Puts so many runs into the history of "part", with this record; NULL: it has expired. */
static void add_runs(const bench *b, const char *letter, int count, int64_t at,
                     const dibs_value *record)
{
    char index[256], names[TOGETHER][64], keys[TOGETHER][256];
    dibs_commit_change changes[2 * TOGETHER];

    snprintf(index, sizeof(index), "%s", key_of(b, "runs/part"));
    for (int done = 0; done < count; done += TOGETHER) {
        dibs_commit commit = {.changes = changes};

        for (int i = 0; i < TOGETHER && done + i < count; i++) {
            snprintf(names[i], sizeof(names[i]), "part.%s%d", letter, done + i);
            snprintf(keys[i], sizeof(keys[i]), "%srun/%s", key_of(b, ""),
                     names[i]);
            changes[commit.change_count++] =
                (dibs_commit_change){.verb = DIBS_COMMIT_ENTER,
                                     .name = index,
                                     .member = names[i],
                                     .at = at};
            if (record)
                changes[commit.change_count++] =
                    (dibs_commit_change){.verb = DIBS_COMMIT_PUT,
                                         .name = keys[i],
                                         .data = record->data,
                                         .len = record->len};
        }
        CHECK(DIBS_OK, dibs_state_commit(b->cl, &commit, 1, err));
        dibs_commit_free(&commit, 1);
    }
}

static bool has_no_expired(void *arg)
{
    dibs_index_look look = {.index = key_of(arg, "runs/part"),
                            .from = 2,
                            .up_to = 2,
                            .limit = 1};
    tally t = {.count = 0};
    bench *b = arg;

    CHECK(DIBS_OK,
          dibs_index_first(b->cl, &look, 1, NULL, count_entry, &t, err));
    return t.count == 0;
}

/* Runs that live stand before those that go, in the order of their making. */
static void history_behind_many_runs_goes(void **state)
{
    char run[DIBS_RUN_SIZE], job[DIBS_RUN_SIZE], inner[DIBS_RUN_SIZE];
    dibs_value record = {.len = 0};
    bench b;

    (void)state;
    begin_bench(&b);
    node_thread_stop(&b.run);
    snprintf(job, sizeof(job), "%s/part", b.board);
    CHECK(DIBS_OK, dibs_job_start(b.cl, job, NULL, run, err));
    snprintf(inner, sizeof(inner), "run/%s", strchr(run, '/') + 1);
    CHECK(DIBS_OK, dibs_state_get(b.cl, key_of(&b, inner), &record, err));
    add_runs(&b, "live", LIVING, 1, &record);
    add_runs(&b, "gone", EXPIRED, 2, NULL);
    dibs_value_free(&record);
    enter(&b, "trim", "part", 1);
    start_node(&b);
    core_until(has_no_expired, &b);
    node_thread_stop(&b.run);
    CHECK(DIBS_OK,
          dibs_state_get(b.cl, key_of(&b, "run/part.live0"), &record, err));
    dibs_value_free(&record);
    dibs_close(b.cl);
}

/* ---- entries that no node can deal with */

/* Members of an index, whose records are no JSON. */
static void plant(const bench *b, const char *index, const char *members,
                  const char *records)
{
    char name[256], member[64], key[256], whole[256];

    snprintf(name, sizeof(name), "%s", index);
    for (int i = 0; i < BAD; i++) {
        snprintf(member, sizeof(member), "bad%d%s", i, members);
        enter(b, name, member, 1);
        snprintf(key, sizeof(key), "%sbad%d", records, i);
        snprintf(whole, sizeof(whole), "%s", key_of(b, key));
        CHECK(DIBS_OK, dibs_state_set(b->cl, whole, "{", 1, 0, NULL, err));
    }
}

static void await_end(const bench *b, const char *run, dibs_run_state state)
{
    dibs_run_info info = {.size = sizeof(info)};

    CHECK(DIBS_OK, dibs_job_wait(b->cl, run, pace_ms(WAIT_MS), &info, err));
    /* A node that was late for its ttl has lost the run. */
    IN_TIME(info.state != DIBS_RUN_FAILED || strcmp(info.reason, "lost") != 0);
    assert_int_equal(info.state, state);
}

static void start_on(const bench *b, const char *job, char run[DIBS_RUN_SIZE])
{
    char name[DIBS_RUN_SIZE];

    snprintf(name, sizeof(name), "%s/%s", b->board, job);
    CHECK(DIBS_OK, dibs_job_start(b->cl, name, NULL, run, err));
}

static void start_graph(const bench *b, char run[DIBS_RUN_SIZE])
{
    char name[DIBS_RUN_SIZE];
    dibs_graph *graph = NULL;

    snprintf(name, sizeof(name), "%s/whole", b->board);
    CHECK(DIBS_OK, dibs_graph_new(name, &graph, err));
    CHECK(DIBS_OK, dibs_graph_add(graph, "one", "part", NULL, err));
    CHECK(DIBS_OK, dibs_graph_start(b->cl, graph, run, err));
    dibs_graph_free(graph);
}

static bool has_no_member(void *arg)
{
    return count_members(arg, "batch/old").count == 0;
}

static void bad_entries_are_in_nobodys_way(void **state)
{
    char flaky[DIBS_RUN_SIZE], limited[DIBS_RUN_SIZE], whole[DIBS_RUN_SIZE];
    bench b;

    (void)state;
    begin_bench(&b);
    node_thread_stop(&b.run);
    plant(&b, "retry", "/main", "run/");
    plant(&b, "deadline", "", "run/");
    plant(&b, "resume", "", "run/");
    plant(&b, "trim", "", "state/");
    enter(&b, "batch/old", "part.some", 1);
    enter(&b, "trim", "batch/old", 2);
    start_node(&b);
    start_on(&b, "flaky", flaky);
    start_on(&b, "limited", limited);
    start_graph(&b, whole);
    await_end(&b, flaky, DIBS_RUN_OK);
    await_end(&b, limited, DIBS_RUN_FAILED);
    await_end(&b, whole, DIBS_RUN_OK);
    core_until(has_no_member, &b);
    node_thread_stop(&b.run);
    assert_int_equal(count_members(&b, "retry").count, BAD);
    dibs_close(b.cl);
}

int core_jobs_sweep_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_entries_are_in_nobodys_way),
        cmocka_unit_test(history_behind_many_runs_goes),
        cmocka_unit_test(members_go_when_their_batch_is_gone),
        cmocka_unit_test(a_batch_that_nobody_completes_is_forgotten),
    };

    return cmocka_run_group_tests_name("sweeps of jobs", tests, NULL, NULL);
}
