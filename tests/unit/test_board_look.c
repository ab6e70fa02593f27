/* test_board_look.c - readers of a board whose looks take long see changes soon; changes
 * between two looks are told, though a look in between has failed, and however many. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "jobs/board_change.h"
#include "jobs/board_set.h"
#include "jobs/job_file.h"
#include "serve/board_look.h"

#include <dibs/client.h>
#include <semaphore.h>
#include <stdio.h>
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

/* -- Many changes. */

enum { ENDS = 300 };

#define MANY_STORE  "memory:board_look_many"
#define SHAKY_STORE "memory:board_look_shaky"

/* Each third value or so cannot be read. */
#define LOSSY_STORE                                                            \
    "fault+" SHAKY_STORE "?step=get_many&fault=fail&every=3&seed=7"

typedef struct scene {
    dibs_client *cl, *looker;
    dibs__board board;
    dibs__serve_hub hub;
    dibs__board_look look;
} scene;

static dibs_status make_run(const dibs__job *job, const dibs__job_state *state,
                            dibs__run *run, void *arg, dibs_error *why)
{
    return dibs__run_make(run, arg, job, state->hash, why);
}

/* Shows ends of runs in the index of their job, or takes them out: in one commit, so that no
 * picture has a part of them. */
static void index_runs(const dibs__board *board, dibs_commit_verb verb,
                       size_t first, size_t count)
{
    static char ids[ENDS][16];
    static dibs_commit_change changes[ENDS];
    char key[DIBS_NAME_MAX + 1];
    dibs_commit commit = {.changes = changes};

    CHECK(DIBS_OK, dibs__board_key(board, "runs/one", key, err));
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "one.%zu", first + i);
        changes[commit.change_count++] =
            (dibs_commit_change){.verb = verb,
                                 .name = key,
                                 .member = ids[i],
                                 .at = (int64_t)(1000 + first + i)};
    }
    CHECK(DIBS_OK, dibs_state_commit(board->cl, &commit, 1, err));
    dibs_commit_free(&commit, 1);
}

/* Runs have ended, and the first picture has none of them. */
static void begin_scene(scene *sc, const char *store, const char *looks_at)
{
    *sc = (scene){.cl = NULL};
    CHECK(DIBS_OK, dibs_open(store, NULL, &sc->cl, err));
    CHECK(DIBS_OK, dibs_open(looks_at, NULL, &sc->looker, err));
    CHECK(DIBS_OK, dibs__board_init(&sc->board, sc->cl, "main", err));
    load_jobs(&sc->board, "jobs: {one: {run: [x]}}\n");
    for (size_t i = 0; i < ENDS; i++) {
        char id[16];

        (void)snprintf(id, sizeof(id), "one.%zu", i);
        CHECK(DIBS_OK, dibs__board_start_run(&sc->board, "one", id, NULL,
                                             make_run, id, err));
        CHECK(DIBS_OK, dibs__board_cancel(&sc->board, id, err));
    }
    index_runs(&sc->board, DIBS_COMMIT_LEAVE, 0, ENDS);
    CHECK(DIBS_OK,
          dibs__hub_init(&sc->hub, "00000000", wake_nobody, NULL, err));
    CHECK(DIBS_OK, dibs__board_look_init(&sc->look, sc->looker, "main",
                                         &sc->hub, EVERY_MS, err));
    CHECK(DIBS_OK, dibs__board_look_start(&sc->look, err));
}

static void end_scene(scene *sc)
{
    dibs__board_look_stop(&sc->look);
    dibs__board_look_fini(&sc->look);
    dibs__hub_fini(&sc->hub);
    dibs_close(sc->looker);
    dibs_close(sc->cl);
}

/* Until a later picture than `after` has this many runs; when it was begun. */
static dibsx_nsec await_runs(scene *sc, size_t count, dibsx_nsec after)
{
    const dibsx_nsec until = dibsx_after_ms(dibsx_now(), WAIT_MS);
    dibsx_nsec seen_at = 0;

    while (!seen_at) {
        dibs__board_picture *picture;
        const dibs__board_row *row;

        dibs__board_look_again(&sc->look);
        picture = dibs__board_look_take(&sc->look, WAIT_MS);
        row = picture ? dibs__board_picture_find(picture, "one") : NULL;
        if (row && row->run_count == count && picture->seen_at > after)
            seen_at = picture->seen_at;
        dibs__board_picture_drop(picture);
        IN_TIME(dibsx_now() < until);
    }
    return seen_at;
}

/* The changes of a picture are told before the next one is made. */
static void await_told(scene *sc, size_t count)
{
    (void)await_runs(sc, count, await_runs(sc, count, 0));
}

static void count_frames(scene *sc, size_t *told, size_t *gaps)
{
    const dibs__ring *ring = &sc->hub.ring;

    *told = *gaps = 0;
    pthread_mutex_lock(&sc->hub.mutex);
    for (uint64_t i = ring->first; i < ring->next; i++) {
        const dibs__ring_frame *frame = &ring->frames[i % ring->frames_max];

        if (frame->topic == DIBS__HUB_RUNS)
            ++*(frame->bytes ? told : gaps);
    }
    pthread_mutex_unlock(&sc->hub.mutex);
}

static uint64_t count_sums(scene *sc)
{
    dibs__job_sums *sums = &sc->look.sums;
    uint64_t count;

    pthread_mutex_lock(&sums->mutex);
    count = sums->count ? sums->at[0].results[DIBS__STATE_CANCELLED] : 0;
    pthread_mutex_unlock(&sums->mutex);
    return count;
}

static void all_ends_are_told_and_counted(void **state)
{
    size_t told, gaps;
    scene sc;

    (void)state;
    begin_scene(&sc, MANY_STORE, MANY_STORE);
    (void)await_runs(&sc, 0, 0);
    index_runs(&sc.board, DIBS_COMMIT_ENTER, 0, ENDS);
    await_told(&sc, ENDS);
    count_frames(&sc, &told, &gaps);
    assert_int_equal(told, ENDS);
    assert_int_equal(gaps, 0);
    assert_int_equal(count_sums(&sc), ENDS);
    end_scene(&sc);
}

static void what_cannot_be_read_is_a_gap(void **state)
{
    size_t told = 0, gaps = 0;
    scene sc;

    (void)state;
    begin_scene(&sc, SHAKY_STORE, LOSSY_STORE);
    (void)await_runs(&sc, 0, 0);
    for (size_t i = 0; i < ENDS && (!told || !gaps); i++) {
        index_runs(&sc.board, DIBS_COMMIT_ENTER, i, 1);
        await_told(&sc, i + 1);
        count_frames(&sc, &told, &gaps);
        assert_int_equal(told + gaps, i + 1);
        assert_int_equal(count_sums(&sc), told);
    }
    assert_true(told > 0 && gaps > 0);
    end_scene(&sc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_seen_soon),
        cmocka_unit_test(a_failed_look_hides_no_change),
        cmocka_unit_test(all_ends_are_told_and_counted),
        cmocka_unit_test(what_cannot_be_read_is_a_gap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
