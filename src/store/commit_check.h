/* commit_check.h - how every store begins its commit steps, and how they fail. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_COMMIT_CHECK_H
#define DIBS_STORE_COMMIT_CHECK_H

#include "store/commit.h"

/* They zero the answers, and refuse with DIBS_INVALID what no store takes; the message
 * says which commit it was. */
DIBS_MUST_CHECK dibs_status dibs__commit_begin(dibs__commit *items,
                                               size_t count, dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__get_many_begin(const char *const *keys,
                                                 size_t count, dibs_value *out,
                                                 dibs_error *err);
DIBS_MUST_CHECK dibs_status dibs__first_begin(dibs__index_look *looks,
                                              size_t count, int64_t *now_us,
                                              dibs_error *err);

/* Gives all commits this rc and no other answer, and frees what was found. Returns
 * rc. */
dibs_status
dibs__commit_fail(dibs__commit *items, size_t count, dibs_status rc);

/* The {tag} of a name, of *len bytes; NULL: it has none. */
const char *dibs__name_tag(const char *name, size_t *len);

#endif
