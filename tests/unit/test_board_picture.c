/* test_board_picture.c - the runs of a job, of which the store shows a part at a time. */
/* SPDX-License-Identifier: MIT */
#include "serve/board_picture.h"
#include "unit.h"

#include <dibs/state.h>
#include <stdio.h>
#include <string.h>

enum { PART = 250 };

static dibs_client *open_store(const char *url)
{
    dibs_client *cl = NULL;

    if (dibs_open(url, NULL, &cl, NULL) != DIBS_OK)
        fail_msg("%s does not open", url);
    return cl;
}

/* Adds `count` runs; `apart_us` from one to the next. */
static void add_runs(const dibs__board *board, const char *job, size_t count,
                     int64_t apart_us)
{
    char inner[64], key[DIBS_NAME_MAX + 1], ids[PART][32];
    dibs_commit_change changes[PART];

    snprintf(inner, sizeof(inner), "runs/%s", job);
    assert_int_equal(dibs__board_key(board, inner, key, NULL), DIBS_OK);
    for (size_t done = 0; done < count; done += PART) {
        dibs_commit commit = {.changes = changes};

        for (size_t i = 0; i < PART && done + i < count; i++) {
            snprintf(ids[i], sizeof(ids[i]), "run-%06zu", done + i);
            changes[commit.change_count++] =
                (dibs_commit_change){.verb = DIBS_COMMIT_ENTER,
                                     .name = key,
                                     .member = ids[i],
                                     .at =
                                         1000 + (int64_t)(done + i) * apart_us};
        }
        assert_int_equal(dibs_state_commit(board->cl, &commit, 1, NULL),
                         DIBS_OK);
        dibs_commit_free(&commit, 1);
    }
}

static void check_runs(const dibs__board_row *row, size_t count)
{
    char id[32];

    assert_int_equal(row->run_count, count);
    for (size_t i = 0; i < count; i++) {
        snprintf(id, sizeof(id), "run-%06zu", i);
        assert_string_equal(row->runs[i].id, id);
    }
}

static void test_all_runs_of_a_job(void **state)
{
    static const struct {
        const char *job;
        size_t count;
        int64_t apart_us;
    } cases[] = {{"none", 0, 1},
                 {"one-part", DIBS_LOOK_MAX, 7},
                 {"more", DIBS_LOOK_MAX + 1, 7},
                 {"many", 3 * DIBS_LOOK_MAX + 5, 1},
                 /* As a commit leaves them that ends many at once. */
                 {"same", 2 * DIBS_LOOK_MAX + 5, 0}};
    dibs__board_row rows[COUNT_OF(cases)];
    dibs_client *cl = open_store("memory:all_runs_of_a_job");
    dibs__board board;
    int64_t now_us = 0;

    (void)state;
    assert_int_equal(dibs__board_init(&board, cl, "main", NULL), DIBS_OK);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rows[i] = (dibs__board_row){.run_count = 0};
        dibs__job_state_init(&rows[i].state, cases[i].job);
        add_runs(&board, cases[i].job, cases[i].count, cases[i].apart_us);
    }
    assert_int_equal(dibs__board_row_read_runs(&board, rows, COUNT_OF(cases),
                                               &now_us, NULL),
                     DIBS_OK);
    assert_true(now_us > 0);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        check_runs(&rows[i], cases[i].count);
        dibs__board_row_drop_runs(&rows[i]);
        assert_int_equal(rows[i].run_count, 0);
    }
    dibs_close(cl);
}

static void put_state(const dibs__board *board, const char *job)
{
    char inner[64], key[DIBS_NAME_MAX + 1];
    dibs__job_state state;
    dibsx_buf json;

    dibs__job_state_init(&state, job);
    snprintf(state.hash, sizeof(state.hash), "0123456789abcdef");
    snprintf(state.set, sizeof(state.set), "some");
    dibsx_buf_init(&json, DIBS__STATE_JSON_MAX);
    dibs__job_state_write(&state, &json);
    snprintf(inner, sizeof(inner), "state/%s", job);
    assert_int_equal(dibs__board_key(board, inner, key, NULL), DIBS_OK);
    assert_int_equal(dibs_state_set(board->cl, key, json.data, json.len, 0,
                                    NULL, NULL),
                     DIBS_OK);
    dibsx_buf_fini(&json);
}

static void
enter(const dibs__board *board, const char *index, const char *member)
{
    char key[DIBS_NAME_MAX + 1];
    dibs_commit_change change = {.verb = DIBS_COMMIT_ENTER,
                                 .name = key,
                                 .member = member,
                                 .at = 1000};
    dibs_commit commit = {.changes = &change, .change_count = 1};

    assert_int_equal(dibs__board_key(board, index, key, NULL), DIBS_OK);
    assert_int_equal(dibs_state_commit(board->cl, &commit, 1, NULL), DIBS_OK);
    dibs_commit_free(&commit, 1);
}

/* The id of a run of a.b may be one of a run of a. */
static void test_jobs_that_nodes_work_for(void **state)
{
    static const char *const jobs[] = {"a", "a.b", "idle"};
    dibs_client *cl = open_store("memory:jobs_that_nodes_work_for");
    dibs__board_picture *picture;
    dibs__board board;

    (void)state;
    assert_int_equal(dibs__board_init(&board, cl, "main", NULL), DIBS_OK);
    for (size_t i = 0; i < COUNT_OF(jobs); i++)
        put_state(&board, jobs[i]);
    enter(&board, "runs/a", "a.c");
    enter(&board, "runs/a.b", "a.b.c");
    enter(&board, "runs/idle", "idle.d");
    enter(&board, "live", "a.b.c/main");
    picture = dibs__board_picture_make(&board, NULL);
    assert_non_null(picture);
    assert_int_equal(picture->rc, DIBS_OK);
    assert_int_equal(picture->count, COUNT_OF(jobs));
    for (size_t i = 0; i < COUNT_OF(jobs); i++)
        assert_int_equal(picture->rows[i].works, i == 1);
    dibs__board_picture_drop(picture);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_runs_of_a_job),
        cmocka_unit_test(test_jobs_that_nodes_work_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
