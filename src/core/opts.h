/* opts.h - what a lock handle was asked to be, checked and copied. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CORE_OPTS_H
#define DIBS_CORE_OPTS_H

#include "core/lock.h"

/* Fills lock->opts and the texts that outlive the call; lock->cl is set. What was
 * copied is freed by dibs__opts_fini(), also after a failure. */
DIBS_MUST_CHECK dibs_status dibs__opts_read(dibs_lock *lock,
                                            const dibs_lock_opts *opts,
                                            dibs_error *err);
void dibs__opts_fini(dibs_lock *lock);

/* Whether the holder must be able to hear its doorbell. */
bool dibs__opts_hear(const dibs_lock_opts *opts);

#endif
