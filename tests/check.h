/* check.h - a call that must have one status. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CHECK_H
#define DIBS_TESTS_CHECK_H

#include "pace.h"

#include <dibs/types.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the four above. */
#include <cmocka.h>

/* Fails because of a status; when a slow machine explains that one, the judge
 * decides. */
#define FAIL_OF(rc, ...)                                                       \
    do {                                                                       \
        if (pace_explains(rc))                                                 \
            MISSED(__VA_ARGS__);                                               \
        fail_msg(__VA_ARGS__);                                                 \
    } while (0)

/* Fails unless the status is as expected. */
#define assert_status(call, expected)                                          \
    do {                                                                       \
        dibs_status rc_ = (dibs_status)(call);                                 \
        if (rc_ != (expected))                                                 \
            FAIL_OF(rc_, "%s is %s, not %s", #call, dibs_status_name(rc_),     \
                    dibs_status_name(expected));                               \
    } while (0)

/* Fails with the error's message unless the status is as expected. The call has
 * `err` for its error. */
#define CHECK(expected, call)                                                  \
    do {                                                                       \
        dibs_error err_ = {0};                                                 \
        dibs_error *err = &err_;                                               \
        dibs_status rc_ = (call);                                              \
        if (rc_ != (expected))                                                 \
            FAIL_OF(rc_, "%s is %s, not %s: %s", #call, dibs_status_name(rc_), \
                    dibs_status_name(expected), err_.message);                 \
        (void)err;                                                             \
    } while (0)

#endif
