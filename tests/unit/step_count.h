/* step_count.h - how many steps a store `fault+URL` was asked for. Apart, because headers of
 * stores and of jobs have names in common. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_UNIT_STEP_COUNT_H
#define DIBS_TESTS_UNIT_STEP_COUNT_H

typedef struct step_counts {
    unsigned all, lists, firsts, get_manys;
} step_counts;

void step_count_begin(void);
step_counts step_count_end(void);

#endif
