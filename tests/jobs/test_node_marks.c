/* test_node_marks.c - the marks of jobs that a node has seen. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "node/node_marks.h"

#include <stdio.h>
#include <string.h>

enum { JOBS = 3000, KEPT = 10 };

static void name_job(int i, char out[DIBS__JOB_NAME_SIZE])
{
    (void)snprintf(out, DIBS__JOB_NAME_SIZE, "job%d", i);
}

static dibs__node_mark *find(dibs__node_marks *marks, int i)
{
    char job[DIBS__JOB_NAME_SIZE];
    dibs__node_mark *mark;

    name_job(i, job);
    mark = dibs__marks_find(marks, job);
    assert_non_null(mark);
    assert_string_equal(mark->job, job);
    return mark;
}

/* Of a job in a set, or of one that is in none any more. */
static void put_state(const dibs__board *board, int i, const char *set)
{
    char job[DIBS__JOB_NAME_SIZE], inner[DIBS__PLACE_SIZE],
        key[DIBS_NAME_MAX + 1];
    dibs__job_state state;
    dibsx_buf json;

    name_job(i, job);
    dibs__job_state_init(&state, job);
    (void)snprintf(state.hash, sizeof(state.hash), "0123456789abcdef");
    (void)snprintf(state.set, sizeof(state.set), "%s", set);
    dibsx_buf_init(&json, DIBS__STATE_JSON_MAX);
    dibs__job_state_write(&state, &json);
    (void)snprintf(inner, sizeof(inner), "state/%s", job);
    CHECK(DIBS_OK, dibs__board_key(board, inner, key, err));
    CHECK(DIBS_OK,
          dibs_state_set(board->cl, key, json.data, json.len, 0, NULL, err));
    dibsx_buf_fini(&json);
}

static void look(dibs__node_marks *marks, const dibs__board *board)
{
    for (int i = 0; i < JOBS; i++)
        CHECK(DIBS_OK, dibs__marks_look(marks, board, err));
    assert_false(marks->looks);
}

static void test_a_mark_is_found_again(void **unused)
{
    dibs__node_marks marks = {.at = 0};

    (void)unused;
    for (int i = 0; i < JOBS; i++)
        find(&marks, i)->mark_s = 1 + i;
    assert_int_equal(marks.table.count, JOBS);
    for (int i = 0; i < JOBS; i++)
        assert_int_equal(find(&marks, i)->mark_s, 1 + i);
    assert_int_equal(marks.table.count, JOBS);
    dibs__marks_free(&marks);
}

/* The other half has no state any more. */
static void test_marks_of_removed_jobs_go(void **unused)
{
    dibs__node_marks marks = {.at = 0};
    dibs_client *cl = NULL;
    dibs__board board;

    (void)unused;
    CHECK(DIBS_OK, dibs_open("memory:node_marks", NULL, &cl, err));
    CHECK(DIBS_OK, dibs__board_init(&board, cl, "main", err));
    for (int i = 0; i < JOBS / 2; i++)
        put_state(&board, i, i < KEPT ? "some" : "");
    for (int i = 0; i < DIBS__MARKS_FEW - 1; i++)
        find(&marks, i)->mark_s = 1 + i;
    look(&marks, &board);
    assert_int_equal(marks.table.count, DIBS__MARKS_FEW - 1);
    for (int i = DIBS__MARKS_FEW - 1; i < JOBS; i++)
        find(&marks, i)->mark_s = 1 + i;
    look(&marks, &board);
    assert_int_equal(marks.table.count, KEPT);
    for (int i = 0; i < KEPT; i++)
        assert_int_equal(find(&marks, i)->mark_s, 1 + i);
    dibs__marks_free(&marks);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mark_is_found_again),
        cmocka_unit_test(test_marks_of_removed_jobs_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
