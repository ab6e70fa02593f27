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

/* Whether a machine that is too slow can be why a call has this status: something
 * ran out of time. */
static inline bool is_late(dibs_status rc)
{
    return rc == DIBS_TIMEOUT || rc == DIBS_LOST || rc == DIBS_UNAVAIL ||
           rc == DIBS_UNKNOWN;
}

/* Fails with the error's message unless the status is as expected. The call has
 * `err` for its error. */
#define CHECK(expected, call)                                                  \
    do {                                                                       \
        dibs_error err_ = {0};                                                 \
        dibs_error *err = &err_;                                               \
        dibs_status rc_ = (call);                                              \
        if (rc_ != (expected) && is_late(rc_))                                 \
            MISSED("%s is %s, not %s: %s", #call, dibs_status_name(rc_),       \
                   dibs_status_name(expected), err_.message);                  \
        if (rc_ != (expected))                                                 \
            fail_msg("%s is %s, not %s: %s", #call, dibs_status_name(rc_),     \
                     dibs_status_name(expected), err_.message);                \
        (void)err;                                                             \
    } while (0)

#endif
