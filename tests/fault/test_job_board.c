/* test_job_board.c - jobs and runs of a board, on a store whose answers get lost. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "commit_faults.h"

#include "jobs/board_change.h"
#include "jobs/board_set.h"

#include <stdio.h>
#include <string.h>

static const char text[] =
    "version: %d\n"
    "set: all\n"
    "jobs:\n"
    "  daily: {schedule: '%s', run: [%s]}\n"
    "  other: {run: [x], concurrency: allow}\n"
    "  steps:\n"
    "    steps:\n"
    "      work: {run: [x]}\n"
    "      clean: {run: [x], needs: [work], when: always}\n"
    "  asks: {steps: {ask: {wait: {bookmark: ok}}, go: {run: [x], needs: "
    "[ask]}}}\n";

static void hear_note(void *arg, bool warning, size_t line, size_t column,
                      const char *message)
{
    (void)arg;
    if (!warning)
        fail_msg("%zu:%zu: %s", line, column, message);
}

static dibs__board board_of(void *w)
{
    dibs__board board;
    CHECK(DIBS_OK,
          dibs__board_init(&board, commit_faults_client(w), "main", err));
    return board;
}

static dibs_status try_load(void *w, int version, const char *schedule,
                            const char *command, dibs__load_sum *sum)
{
    const dibs__job_sink sink = {hear_note, NULL};
    const dibs__load_opts opts = {.origin = "here:file", .by = "me"};
    dibs__board board = board_of(w);
    dibs__job_file file;
    dibs_error ignored = {0};
    dibsx_buf why;
    dibs_status rc;
    char whole[sizeof(text) + 100];
    int len = snprintf(whole, sizeof(whole), text, version, schedule, command);

    dibsx_buf_init(&why, 1000);
    CHECK(DIBS_OK, dibs__job_file_read(whole, (size_t)len, "all.yaml", &sink,
                                       &file, err));
    rc =
        dibs__board_load(&board, &file, &opts, NULL, NULL, sum, &why, &ignored);
    dibsx_buf_fini(&why);
    dibs__job_file_fini(&file);
    return rc;
}

static dibs__load_sum
load(void *w, int version, const char *schedule, const char *command)
{
    dibs__load_sum sum;

    assert_status(try_load(w, version, schedule, command, &sum), DIBS_OK);
    return sum;
}

/* More jobs than one request takes. */
enum { MANY = 70 };

typedef struct crowd {
    void *w;
    int version; /* 0: none */
    const char *command;
    bool spare; /* has the job "spare" too */
    dibs__load_fn *each;
    const struct crowd *other; /* for `each` */
    int calls;
    dibs__load_sum sum;
    char why[300];
} crowd;

static dibs_status load_crowd(crowd *c)
{
    const dibs__job_sink sink = {hear_note, NULL};
    const dibs__load_opts opts = {.origin = "here:file", .by = "me"};
    dibs__board board = board_of(c->w);
    dibs__job_file file;
    dibs_error ignored = {0};
    dibsx_buf yaml, why;
    dibs_status rc;

    dibsx_buf_init(&yaml, 100000);
    dibsx_buf_init(&why, 1000);
    if (c->version)
        dibsx_buf_printf(&yaml, "version: %d\n", c->version);
    dibsx_buf_printf(&yaml, "set: crowd\njobs:\n");
    for (int i = 0; i < MANY; i++)
        dibsx_buf_printf(&yaml, "  j%02d: {schedule: '@daily', run: [%s]}\n", i,
                         c->command);
    if (c->spare)
        dibsx_buf_printf(&yaml, "  spare: {schedule: '@daily', run: [x]}\n");
    CHECK(DIBS_OK, dibs__job_file_read(dibsx_buf_text(&yaml), yaml.len,
                                       "crowd.yaml", &sink, &file, err));
    rc = dibs__board_load(&board, &file, &opts, c->each, c, &c->sum, &why,
                          &ignored);
    (void)snprintf(c->why, sizeof(c->why), "%s", dibsx_buf_text(&why));
    dibs__job_file_fini(&file);
    dibsx_buf_fini(&why);
    dibsx_buf_fini(&yaml);
    return rc;
}

static dibs__job_state state_of(void *w, const char *job)
{
    dibs__board board = board_of(w);
    dibs__job_state state;
    CHECK(DIBS_OK, dibs__board_state(&board, job, &state, err));
    return state;
}

/* Whatever becomes of answers, a load is whole. */
static void a_load_without_answers(void **state)
{
    void *w = *state;
    dibs__load_sum sum;

    commit_faults_lose(w, true, 1);
    sum = load(w, 1, "0 2 * * *", "x");
    assert_int_equal(sum.verdict, DIBS__SET_LOAD);
    assert_int_equal(sum.added, 4);
    commit_faults_lose(w, false, 2);
    sum = load(w, 2, "0 2 * * *", "y");
    assert_int_equal(sum.changed, 1);
    assert_int_equal(sum.same, 3);
    assert_int_equal(load(w, 2, "0 2 * * *", "y").verdict, DIBS__SET_SAME);
    assert_string_equal(state_of(w, "steps").set, "all");
}

/* The store does not answer any more. */
static void go_away(void *arg, char mark, const char *job)
{
    const crowd *c = arg;

    (void)mark;
    (void)job;
    commit_faults_lose(c->w, false, 1000);
}

static void a_load_that_broke_off_is_finished(void **state)
{
    void *w = *state;
    crowd first = {.w = w, .version = 1, .command = "x", .spare = true};
    crowd second = {.w = w, .version = 2, .command = "y", .each = go_away};
    char old[DIBS__JOB_HASH_SIZE];

    assert_status(load_crowd(&first), DIBS_OK);
    assert_int_equal(first.sum.added, MANY + 1);
    memcpy(old, state_of(w, "j69").hash, sizeof(old));
    assert_status(load_crowd(&second), DIBS_UNKNOWN);
    commit_faults_lose(w, false, 0);
    /* Each job is whole, as it was or as the file has it. */
    assert_string_not_equal(state_of(w, "j00").hash, old);
    assert_string_equal(state_of(w, "j69").hash, old);
    assert_string_equal(state_of(w, "spare").set, "crowd");
    assert_int_not_equal(state_of(w, "spare").due_us, 0);
    /* The older file does not come back. */
    assert_status(load_crowd(&first), DIBS_OK);
    assert_int_equal(first.sum.verdict, DIBS__SET_OLDER);
    /* The same file again does what is left, and no more. */
    second.each = NULL;
    assert_status(load_crowd(&second), DIBS_OK);
    assert_int_equal(second.sum.verdict, DIBS__SET_LOAD);
    assert_true(second.sum.changed >= 1 && second.sum.changed < MANY);
    assert_int_equal(second.sum.same, MANY - second.sum.changed);
    assert_int_equal(second.sum.removed, 1);
    assert_string_equal(state_of(w, "spare").set, "");
    assert_int_equal(state_of(w, "spare").due_us, 0);
    assert_status(load_crowd(&second), DIBS_OK);
    assert_int_equal(second.sum.verdict, DIBS__SET_SAME);
}

/* Another client loads a file in the middle of a load. */
static void load_other(void *arg, char mark, const char *job)
{
    crowd *c = arg;
    crowd other = *c->other;

    (void)mark;
    (void)job;
    if (c->calls++ == 0)
        assert_status(load_crowd(&other), DIBS_OK);
}

static void two_loads_of_one_file_help_each_other(void **state)
{
    void *w = *state;
    crowd other = {.w = w, .version = 1, .command = "x", .spare = true};
    crowd one = other;

    one.each = load_other;
    one.other = &other;
    assert_status(load_crowd(&one), DIBS_OK);
    assert_int_equal(one.sum.verdict, DIBS__SET_LOAD);
    assert_true(one.sum.added >= 1 && one.sum.added < MANY);
    assert_int_equal(one.sum.added + one.sum.same, MANY + 1);
    assert_status(load_crowd(&other), DIBS_OK);
    assert_int_equal(other.sum.verdict, DIBS__SET_SAME);
}

static void the_higher_version_wins_a_race(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    dibs__job_state spare;
    crowd other = {.w = w, .version = 2, .command = "y"};
    crowd one = {.w = w,
                 .version = 1,
                 .command = "x",
                 .spare = true,
                 .each = load_other,
                 .other = &other};

    assert_status(load_crowd(&one), DIBS_OK);
    assert_int_equal(one.sum.verdict, DIBS__SET_OLDER);
    assert_int_not_equal(dibs__board_state(&board, "spare", &spare, NULL),
                         DIBS_OK);
    assert_status(load_crowd(&other), DIBS_OK);
    assert_int_equal(other.sum.verdict, DIBS__SET_SAME);
    assert_string_not_equal(one.why, "");
}

static void a_race_without_versions_ends(void **state)
{
    void *w = *state;
    crowd other = {.w = w, .command = "y"};
    crowd one = {.w = w, .command = "x", .each = load_other, .other = &other};

    assert_status(load_crowd(&one), DIBS_BUSY);
    assert_status(load_crowd(&other), DIBS_OK);
    assert_int_equal(other.sum.verdict, DIBS__SET_SAME);
}

/* A mark in the past: a tick is late. An edit of the schedule forgets that, an edit of
 * anything else does not. */
static dibs_status
set_back(const dibs__job *job, dibs__job_state *state, const dibs__ticker *tk,
         int64_t now_us, void *arg, dibs_error *err)
{
    (void)arg;
    (void)err;
    dibs__tick_reset(job, state, tk, now_us - INT64_C(172800) * 1000000);
    return DIBS_OK;
}

static void an_edit_makes_nothing_late(void **state)
{
    const dibs__job late = {.name = "daily", .jitter_ms = 300000};
    void *w = *state;
    dibs__board board = board_of(w);
    dibs__job_state before, after;
    int64_t now_us = 0;

    (void)load(w, 1, "0 2 * * *", "x");
    CHECK(DIBS_OK,
          dibs__board_change_job(&board, "daily", set_back, NULL, err));
    before = state_of(w, "daily");
    CHECK(DIBS_OK, dibs__board_now(&board, &now_us, err));
    assert_true(before.due_us < now_us);
    (void)load(w, 2, "0 2 * * *", "y");
    after = state_of(w, "daily");
    assert_int_equal(after.mark_s, before.mark_s);
    assert_int_equal(after.due_us, before.due_us);
    assert_string_not_equal(after.hash, before.hash);
    (void)load(w, 3, "0 2 * * *', jitter: '5m", "y");
    after = state_of(w, "daily");
    assert_int_equal(after.mark_s, before.mark_s);
    assert_int_equal(after.due_us,
                     before.due_us + dibs__job_jitter_us(&late, "main"));
    assert_true(after.due_us > before.due_us);
    (void)load(w, 4, "0 3 * * *', jitter: '5m", "y");
    assert_true(state_of(w, "daily").due_us > now_us);
}

/* A definition that could not be read is not taken for one with another schedule. */
static void a_load_without_the_old_definition(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    dibs__job_state before;
    dibs__load_sum sum;

    (void)load(w, 1, "0 2 * * *", "x");
    CHECK(DIBS_OK,
          dibs__board_change_job(&board, "daily", set_back, NULL, err));
    before = state_of(w, "daily");
    commit_faults_hide(w);
    assert_int_not_equal(try_load(w, 2, "0 2 * * *", "y", &sum), DIBS_OK);
    commit_faults_heal(w);
    assert_string_equal(state_of(w, "daily").hash, before.hash);
    (void)load(w, 2, "0 2 * * *", "y");
    assert_string_not_equal(state_of(w, "daily").hash, before.hash);
    assert_int_equal(state_of(w, "daily").due_us, before.due_us);
}

static dibs_status make_run(const dibs__job *job, const dibs__job_state *state,
                            dibs__run *run, void *arg, dibs_error *err)
{
    return dibs__run_make(run, arg, job, state->hash, err);
}

static bool count_entry(const dibs_index_entry *entry, void *arg)
{
    (void)entry;
    ++*(size_t *)arg;
    return true;
}

static size_t count_runs(void *w, const char *index)
{
    dibs_index_look look = {.index = index,
                            .up_to = DIBS_INDEX_AT_MAX,
                            .limit = 100};
    size_t count = 0;
    CHECK(DIBS_OK, dibs_index_first(commit_faults_client(w), &look, 1, NULL,
                                    count_entry, &count, err));
    return count;
}

static void a_start_without_answers_is_one_run(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    char ids[2][16] = {"other.a", "other.b"};

    (void)load(w, 1, "0 2 * * *", "x");
    for (size_t i = 0; i < 2; i++) {
        commit_faults_lose(w, i == 0, 3);
        /* No machine is too slow for an answer that a fault takes away. */
        assert_int_equal(dibs__board_start_run(&board, "other", ids[i], NULL,
                                               make_run, ids[i], NULL),
                         DIBS_OK);
    }
    /* Again, as a caller that had no answer would. */
    CHECK(DIBS_OK, dibs__board_start_run(&board, "other", ids[0], NULL,
                                         make_run, ids[0], err));
    assert_int_equal(count_runs(w, "job/{main}/runs/other"), 2);
    assert_int_equal(count_runs(w, "job/{main}/ready/"), 2);
}

static void delete_definition(void *w, const char *hash)
{
    dibs__board board = board_of(w);
    char key[DIBS__PLACE_SIZE];
    bool doubt = false;
    dibs__intent in;

    (void)snprintf(key, sizeof(key), "def/daily/%s", hash);
    dibs__intent_init(&in);
    dibs__intent_delete(&in, key);
    CHECK(DIBS_OK, dibs__board_commit(&board, &in, &doubt, err));
    dibs__intent_fini(&in);
}

/* After the schedule of "daily": its runs leave the state as it is. */
#define ALLOW "', concurrency: 'allow"

/* A run of "daily" that is being made when a sweep that saw no run deletes its definition. */
typedef struct lateness {
    void *w;
    char *id;
    const char *hash;     /* NULL: of the definition in force */
    const char *schedule; /* of a load before that; NULL: none */
    int calls;
} lateness;

static dibs_status make_late(const dibs__job *job, const dibs__job_state *state,
                             dibs__run *run, void *arg, dibs_error *err)
{
    lateness *late = arg;
    const char *hash = late->hash ? late->hash : state->hash;

    if (late->calls++ == 0) {
        if (late->schedule)
            (void)load(late->w, 2, late->schedule, "y");
        delete_definition(late->w, hash);
    }
    return dibs__run_make(run, late->id, job, hash, err);
}

static void start_in_a_load(void *w, const char *before, const char *after)
{
    dibs__board board = board_of(w);
    char id[] = "daily.a";
    lateness late = {.w = w, .id = id, .schedule = after};
    dibs__job *job = NULL;
    dibs__run run;

    (void)load(w, 1, before, "x");
    CHECK(DIBS_OK, dibs__board_start_run(&board, "daily", id, NULL, make_late,
                                         &late, err));
    CHECK(DIBS_OK, dibs__board_run(&board, id, &run, err));
    assert_string_equal(run.hash, state_of(w, "daily").hash);
    CHECK(DIBS_OK, dibs__board_job(&board, "daily", run.hash, &job, err));
    dibs__job_free(job);
    dibs__run_fini(&run);
}

static void a_start_in_a_load_has_its_definition(void **state)
{
    start_in_a_load(*state, "0 2 * * *", "0 3 * * *");
}

static void a_start_that_leaves_the_state_has_its_definition(void **state)
{
    start_in_a_load(*state, "0 2 * * *" ALLOW, "0 3 * * *" ALLOW);
}

/* A definition that is not in force, as of a rerun. */
static void make_old(void *w, char hash[DIBS__JOB_HASH_SIZE])
{
    (void)load(w, 1, "0 2 * * *" ALLOW, "x");
    memcpy(hash, state_of(w, "daily").hash, DIBS__JOB_HASH_SIZE);
    (void)load(w, 2, "0 3 * * *" ALLOW, "y");
}

static void a_start_that_lost_its_definition_is_none(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    char id[] = "daily.a", old[DIBS__JOB_HASH_SIZE];
    lateness late = {.w = w, .id = id, .hash = old};

    make_old(w, old);
    CHECK(DIBS_NOTFOUND, dibs__board_start_run(&board, "daily", id, old,
                                               make_late, &late, err));
    assert_int_equal(count_runs(w, "job/{main}/runs/daily"), 0);
}

/* A sweep that listed the runs before it does not delete the definition. */
static void a_start_of_an_old_definition_is_news_to_a_sweep(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    char id[] = "daily.a", old[DIBS__JOB_HASH_SIZE];
    lateness late = {.w = w, .id = id, .hash = old, .calls = 1};
    dibs__job_state listed;
    bool doubt = false;
    dibs__intent in;

    make_old(w, old);
    listed = state_of(w, "daily");
    CHECK(DIBS_OK, dibs__board_start_run(&board, "daily", id, old, make_late,
                                         &late, err));
    dibs__intent_init(&in);
    dibs__intent_check_version(&in, "state/daily", listed.version);
    dibs__intent_enter(&in, "trim", "daily", 1);
    CHECK(DIBS_STALE, dibs__board_commit(&board, &in, &doubt, err));
    dibs__intent_fini(&in);
}

static dibs_status
claim_first(dibs__scene *sc, bool doubt, void *arg, dibs_error *err)
{
    dibs__claimant who = {.node = "0123456789abcdef",
                          .fence = 7,
                          .nonce = "0123456789ab"};

    (void)doubt;
    (void)arg;
    return dibs__run_claim(sc, 0, &who, err);
}

/* The second cancel of a run ends more than the first. */
static void a_cancel_without_answers_is_one(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    char id[] = "steps.a";
    dibs__run run;

    (void)load(w, 1, "0 2 * * *", "x");
    CHECK(DIBS_OK,
          dibs__board_start_run(&board, "steps", id, NULL, make_run, id, err));
    CHECK(DIBS_OK, dibs__board_change_run(&board, id, claim_first, NULL, err));
    for (uint32_t cancels = 1; cancels <= 2; cancels++) {
        commit_faults_lose(w, true, 1);
        CHECK(DIBS_OK, dibs__board_cancel(&board, id, err));
        CHECK(DIBS_OK, dibs__board_run(&board, id, &run, err));
        assert_int_equal(run.cancels, cancels);
        assert_true(run.steps[0].cancel);
        dibs__run_fini(&run);
        CHECK(DIBS_OK, dibs__board_cancel_to(&board, id, cancels, err));
    }
}

/* The one who resumed is told so, also when the answer was lost; the next one is not. */
static void a_resume_without_answers_is_ones_own(void **state)
{
    void *w = *state;
    dibs__board board = board_of(w);
    char ids[2][16] = {"asks.a", "asks.b"};
    dibs__run run;

    (void)load(w, 1, "0 2 * * *", "x");
    for (size_t i = 0; i < 2; i++) {
        CHECK(DIBS_OK, dibs__board_start_run(&board, "asks", ids[i], NULL,
                                             make_run, ids[i], err));
        commit_faults_lose(w, i == 0, 2);
        CHECK(DIBS_OK, dibs__board_bookmark(&board, ids[i], "ok", "mine", 4,
                                            "me", NULL, NULL, err));
        CHECK(DIBS_STALE, dibs__board_bookmark(&board, ids[i], "ok", "mine", 4,
                                               "me", NULL, NULL, err));
        CHECK(DIBS_OK, dibs__board_run(&board, ids[i], &run, err));
        assert_int_equal(run.steps[0].state, DIBS__STATE_OK);
        dibs__run_fini(&run);
    }
}

#define JOB_TEST(fn)                                                           \
    cmocka_unit_test_setup_teardown(fn, commit_faults_setup,                   \
                                    commit_faults_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        JOB_TEST(a_load_without_answers),
        JOB_TEST(a_load_that_broke_off_is_finished),
        JOB_TEST(two_loads_of_one_file_help_each_other),
        JOB_TEST(the_higher_version_wins_a_race),
        JOB_TEST(a_race_without_versions_ends),
        JOB_TEST(an_edit_makes_nothing_late),
        JOB_TEST(a_load_without_the_old_definition),
        JOB_TEST(a_start_without_answers_is_one_run),
        JOB_TEST(a_start_in_a_load_has_its_definition),
        JOB_TEST(a_start_that_leaves_the_state_has_its_definition),
        JOB_TEST(a_start_that_lost_its_definition_is_none),
        JOB_TEST(a_start_of_an_old_definition_is_news_to_a_sweep),
        JOB_TEST(a_cancel_without_answers_is_one),
        JOB_TEST(a_resume_without_answers_is_ones_own),
    };
    return cmocka_run_group_tests_name("job_board", tests, NULL, NULL);
}
