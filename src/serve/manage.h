/* manage.h - taking a lease away from its holder, with the trail of that. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_MANAGE_H
#define DIBS_SERVE_MANAGE_H

#include "http/exchange.h"
#include <dibs/dibs.h>

/* Fences are below 2^53 for long; JSON readers keep such numbers whole. */
#define DIBS__SERVE_FENCE_MAX (INT64_C(1) << 53)

/* Ends the lease with this fence; 0: all. `action` is for the log, the trail has who
 * asked and why. `reason` and `broken` may be NULL. */
DIBS_MUST_CHECK dibs_status dibs__serve_break_lease(
    dibs__http_exchange *ex, const char *action, const char *name,
    uint64_t fence, const char *reason, uint32_t *broken, dibs_error *err);

/* The fence of the lease that the request means, in a field of the body or in
 * If-Match. False: it was refused. */
DIBS_MUST_CHECK bool
dibs__serve_read_fence(dibs__http_exchange *ex, const dibsx_json_node *body,
                       const char *field, int64_t *fence);

#endif
