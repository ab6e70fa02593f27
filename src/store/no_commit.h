/* no_commit.h - the commit steps of a store that cannot do them: each answers
 * DIBS_UNSUPPORTED with the reason that the store gives for DIBS__CAN_COMMIT. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_NO_COMMIT_H
#define DIBS_STORE_NO_COMMIT_H

#include "store/commit.h"

extern const dibs__commit_ops dibs__no_commit_ops;

#endif
