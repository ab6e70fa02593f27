/* value.c - freeing a value that a store has given out. Any thread.
 *
 * A file of its own, so that the statistics may free one without the calls of
 * state.c. */
/* SPDX-License-Identifier: MIT */
#include <dibs/state.h>

#include "base/alloc.h"

void dibs_value_free(dibs_value *value)
{
    dibsx_free(value->data);
    *value = (dibs_value){0};
}
