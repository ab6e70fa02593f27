/* stage.h - a server and three handles on its steps, for tests that look at what
 * the server holds after each. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_STAGE_H
#define DIBS_TESTS_STAGE_H

#include "redis_world.h"

#include "store/store.h"

/* The first two handles have doorbells. */
typedef struct stage {
    world *w;
    dibs__store *st[3];
    int bell[2];
} stage;

int stage_setup(void **state);
int stage_teardown(void **state);

#define STAGE_TEST(fn)                                                         \
    cmocka_unit_test_setup_teardown(fn, stage_setup, stage_teardown)

/* A deadline that no working store misses. */
dibsx_nsec stage_soon(void);

/* A reply as text, with blanks for new lines. */
enum { STAGE_REPLY = 512 };
void stage_reply(char *reply, char out[STAGE_REPLY]);

/* What a command answers; wants `sg`. */
#define ASSERT_REPLY(expected, ...)                                            \
    do {                                                                       \
        char text_[STAGE_REPLY];                                               \
        stage_reply(server_ask(&sg->w->sv, __VA_ARGS__, NULL), text_);         \
        assert_string_equal(text_, expected);                                  \
    } while (0)

#endif
