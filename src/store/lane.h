/* lane.h - the two ways along which a server is asked. A lane never holds up the
 * other, so that nothing delays renewals. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LANE_H
#define DIBS_STORE_LANE_H

typedef enum dibs__lane {
    DIBS__LANE_STEPS,
    DIBS__LANE_RENEWALS,
    DIBS__LANES
} dibs__lane;

#endif
