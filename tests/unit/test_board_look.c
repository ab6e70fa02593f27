/* test_board_look.c - readers of a board whose looks take long see changes soon; changes
 * between two looks are told, though a look in between has failed. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/board_set.h"
#include "jobs/job_file.h"
#include "serve/board_look.h"

#include <dibs/client.h>
#include <semaphore.h>
#include <string.h>

/* A look takes so long at least that the next one is far away. */
#define SLOW_STORE "fault+memory:board_look?step=first&delay_ms=300"

/* Each look has three of these steps, so that every other one fails. */
#define SOUND_STORE  "memory:board_look_fails"
#define FAULTY_STORE "fault+" SOUND_STORE "?step=first&fault=fail&every=4"

enum { EVERY_MS = 20, WAIT_MS = 60000 };

static void wake_nobody(void *arg)
{
    (void)arg;
}

static dibs__board_picture *take_picture(dibs__board_look *look)
{
    dibs__board_picture *picture = dibs__board_look_take(look, WAIT_MS);

    IN_TIME(picture != NULL);
    CHECK(DIBS_OK, picture->rc);
    return picture;
}

static void check_change(dibs__board_look *look)
{
    dibs__board_picture *first = take_picture(look), *next = take_picture(look);
    const int64_t pause_ms =
        dibs__life_pause_ms(EVERY_MS, DIBS_OK, first->took_us);
    dibsx_nsec changed_at;

    assert_true(first->took_us >= 300 * 1000);
    IN_TIME(next == first); /* It is new enough. */
    dibs__board_picture_drop(next);
    changed_at = dibsx_now();
    dibs__board_look_again(look);
    next = take_picture(look);
    assert_true(next->seen_at >= changed_at);
    IN_TIME(next->seen_at < dibsx_after_ms(first->seen_at, pause_ms));
    dibs__board_picture_drop(next);
    dibs__board_picture_drop(first);
}

static void a_change_is_seen_soon(void **state)
{
    dibs__board_look look = {.every_ms = 0};
    dibs__serve_hub hub;
    dibs_client *cl = NULL;

    (void)state;
    CHECK(DIBS_OK, dibs_open(SLOW_STORE, NULL, &cl, err));
    CHECK(DIBS_OK, dibs__hub_init(&hub, "00000000", wake_nobody, NULL, err));
    CHECK(DIBS_OK,
          dibs__board_look_init(&look, cl, "main", &hub, EVERY_MS, err));
    CHECK(DIBS_OK, dibs__board_look_start(&look, err));
    check_change(&look);
    dibs__board_look_stop(&look);
    dibs__board_look_fini(&look);
    dibs__hub_fini(&hub);
    dibs_close(cl);
}

/* -- Looks that fail. */

static void hear_note(void *arg, bool warning, size_t line, size_t column,
                      const char *message)
{
    (void)arg;
    (void)warning;
    fail_msg("%zu:%zu: %s", line, column, message);
}

static void load_jobs(const dibs__board *board, const char *text)
{
    const dibs__job_sink sink = {hear_note, NULL};
    const dibs__load_opts opts = {.origin = "here:file", .by = "me"};
    dibs__job_file file;
    dibs__load_sum sum;
    dibsx_buf why;

    dibsx_buf_init(&why, 1000);
    CHECK(DIBS_OK, dibs__job_file_read(text, strlen(text), "all.yaml", &sink,
                                       &file, err));
    CHECK(DIBS_OK,
          dibs__board_load(board, &file, &opts, NULL, NULL, &sum, &why, err));
    dibsx_buf_fini(&why);
    dibs__job_file_fini(&file);
}

static void wake_test(void *arg)
{
    sem_post(arg);
}

static void see_event(void *arg, const char *data, size_t len)
{
    (void)len;
    assert_non_null(strstr(data, "\"two\""));
    *(bool *)arg = true;
}

/* Looks until the hub has told of the second job. */
static void await_event(dibs__board_look *look, sem_t *woken)
{
    dibs__serve_hub *hub = look->hub;
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), WAIT_MS);
    bool seen = false;

    while (sem_trywait(woken) != 0) {
        dibs__board_look_again(look);
        dibs__board_picture_drop(dibs__board_look_take(look, WAIT_MS));
        IN_TIME(dibsx_now() < until);
    }
    pthread_mutex_lock(&hub->mutex);
    dibs__ring_latest(&hub->ring, DIBS__HUB_JOBS, NULL, 1, see_event, &seen);
    pthread_mutex_unlock(&hub->mutex);
    assert_true(seen);
}

static void a_failed_look_hides_no_change(void **state)
{
    dibs__board_look look = {.every_ms = 0};
    dibs__board board;
    dibs__serve_hub hub;
    dibs_client *cl = NULL, *looker = NULL;
    sem_t woken;

    (void)state;
    assert_int_equal(sem_init(&woken, 0, 0), 0);
    CHECK(DIBS_OK, dibs_open(SOUND_STORE, NULL, &cl, err));
    CHECK(DIBS_OK, dibs_open(FAULTY_STORE, NULL, &looker, err));
    CHECK(DIBS_OK, dibs__board_init(&board, cl, "main", err));
    CHECK(DIBS_OK, dibs__hub_init(&hub, "00000000", wake_test, &woken, err));
    CHECK(DIBS_OK,
          dibs__board_look_init(&look, looker, "main", &hub, EVERY_MS, err));
    load_jobs(&board, "jobs: {one: {run: [x]}}\n");
    CHECK(DIBS_OK, dibs__board_look_start(&look, err));
    dibs__board_picture_drop(take_picture(&look));
    load_jobs(&board, "jobs: {one: {run: [x]}, two: {run: [x]}}\n");
    await_event(&look, &woken);
    dibs__board_look_stop(&look);
    dibs__board_look_fini(&look);
    dibs__hub_fini(&hub);
    dibs_close(looker);
    dibs_close(cl);
    sem_destroy(&woken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_seen_soon),
        cmocka_unit_test(a_failed_look_hides_no_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
