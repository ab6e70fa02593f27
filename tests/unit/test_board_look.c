/* test_board_look.c - readers of a board whose looks take long see changes soon. */
/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "serve/board_look.h"

#include <dibs/client.h>

/* A look takes so long at least that the next one is far away. */
#define SLOW_STORE "fault+memory:board_look?step=first&delay_ms=300"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_is_seen_soon),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
