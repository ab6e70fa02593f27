/* audit.h - refuses a store whose audit finds a danger, where its URL says `strict`.
 * Any thread. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_AUDIT_H
#define DIBS_STORE_AUDIT_H

#include "store/store.h"

/* DIBS_REFUSED with the first danger. */
DIBS_MUST_CHECK dibs_status dibs__store_audit_strict(dibs__store *st,
                                                     dibsx_nsec deadline,
                                                     dibs_error *err);

#endif
