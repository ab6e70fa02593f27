/* row.h - a lock with its holders and waiters: a copy of what the store has said,
 * and its JSON. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_SERVE_ROW_H
#define DIBS_SERVE_ROW_H

#include "base/json.h"
#include <dibs/dibs.h>

enum { DIBS__SERVE_PARTIES_MAX = 8 }; /* of each kind in a list */

/* A copy in one piece; NULL when memory is short. Free it with dibsx_free(). */
dibs_lease_info *dibs__serve_row_copy(const dibs_lease_info *info);

/* Writes the pairs of a row. `since_ms` is how old the copy is: ages and times left
 * become those of now. `parties_max` 0: all of them. */
void dibs__serve_row_json(dibsx_json *js, const dibs_lease_info *info,
                          int64_t since_ms, size_t parties_max);

typedef void dibs__serve_row_fn(dibsx_json *js, const dibs_lease_info *info,
                                int64_t since_ms, size_t parties_max);

/* `"<highest fence>-<waiters>-<holders>-<hash>"`, or `"free"` for NULL. All that the
 * row shows, but for its times, is in the hash: a holder that becomes shared keeps its fence. */
enum { DIBS__SERVE_ETAG_MAX = 80 };
void dibs__serve_row_etag(const dibs_lease_info *info,
                          char out[DIBS__SERVE_ETAG_MAX]);

/* The kind of a name: "lock" or "semaphore". */
const char *dibs__serve_row_kind(const dibs_lease_info *info);

bool dibs__serve_row_is_stale(const dibs_lease_info *info);

/* The longest that a waiter has waited; 0 without one. */
int64_t dibs__serve_row_waited_ms(const dibs_lease_info *info);

#endif
