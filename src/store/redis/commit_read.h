/* commit_read.h - the reads among the commit steps; store/commit.h has the contract. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_COMMIT_READ_H
#define DIBS_STORE_REDIS_COMMIT_READ_H

#include "store/commit.h"

dibs_status
dibs__redis_get_many(struct dibs__store *st, const char *const *keys,
                     size_t count, dibsx_nsec deadline, dibs_value *out,
                     dibs_error *err);
dibs_status
dibs__redis_first(struct dibs__store *st, dibs__index_look *looks, size_t count,
                  dibsx_nsec deadline, int64_t *now_us, dibs__index_fn *each,
                  void *arg, dibs_error *err);

#endif
