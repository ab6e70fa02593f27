/* lane.h - the two lanes of requests to a server. Neither delays the other, so that
 * no step delays renewals. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_LANE_H
#define DIBS_STORE_LANE_H

typedef enum dibs__lane {
    DIBS__LANE_STEPS,
    DIBS__LANE_RENEWALS,
    DIBS__LANES
} dibs__lane;

#endif
