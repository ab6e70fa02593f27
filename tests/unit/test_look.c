/* test_look.c - whether the thread of the look goes around. */
/* SPDX-License-Identifier: MIT */
#include "serve/look.h"
#include "unit.h"

#include <poll.h>

/* A listener at which the thread of the look stands still. */
typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool inside, let_go;
} gate;

static void hold_look(void *arg, const dibs__serve_picture *before,
                      const dibs__serve_picture *now)
{
    gate *gt = arg;

    (void)before;
    (void)now;
    pthread_mutex_lock(&gt->mutex);
    gt->inside = true;
    pthread_cond_broadcast(&gt->cond);
    while (!gt->let_go)
        pthread_cond_wait(&gt->cond, &gt->mutex);
    pthread_mutex_unlock(&gt->mutex);
}

static void await_inside(gate *gt)
{
    pthread_mutex_lock(&gt->mutex);
    while (!gt->inside)
        pthread_cond_wait(&gt->cond, &gt->mutex);
    pthread_mutex_unlock(&gt->mutex);
}

static void let_go(gate *gt)
{
    pthread_mutex_lock(&gt->mutex);
    gt->let_go = true;
    pthread_cond_broadcast(&gt->cond);
    pthread_mutex_unlock(&gt->mutex);
}

static void test_a_look_that_stands_still_is_seen(void **state)
{
    gate gt = {.mutex = PTHREAD_MUTEX_INITIALIZER,
               .cond = PTHREAD_COND_INITIALIZER};
    dibs__serve_look look = {0};
    dibs_client *cl = NULL;
    dibs_error err = {0};

    (void)state;
    assert_int_equal(dibs_open("memory:", NULL, &cl, &err), DIBS_OK);
    assert_int_equal(dibs__serve_look_init(&look, cl, 1000, &err), DIBS_OK);
    dibs__serve_look_listen(&look, hold_look, &gt);
    /* Before its start it owes nothing. */
    assert_int_equal(dibs__serve_look_lag(&look, DIBSX_SEC), 0);
    assert_int_equal(dibs__serve_look_lag(&look, 2 * DIBSX_SEC), 0);
    assert_int_equal(dibs__serve_look_start(&look, &err), DIBS_OK);
    await_inside(&gt);
    assert_int_equal(dibs__serve_look_lag(&look, 3 * DIBSX_SEC), 0);
    assert_int_equal(dibs__serve_look_lag(&look, 23 * DIBSX_SEC),
                     20 * DIBSX_SEC);
    let_go(&gt);
    /* From then on it answers, also while it waits for its next turn. */
    for (int i = 0; i < 3; i++)
        while (dibs__serve_look_lag(&look, 24 * DIBSX_SEC) != 0)
            poll(NULL, 0, 1);
    dibs__serve_look_stop(&look);
    dibs__serve_look_fini(&look);
    dibs_close(cl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_look_that_stands_still_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
