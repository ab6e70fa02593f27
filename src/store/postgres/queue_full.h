/* queue_full.h - the refusal of a queue that is full. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_POSTGRES_QUEUE_FULL_H
#define DIBS_STORE_POSTGRES_QUEUE_FULL_H

#include "store/postgres/step.h"

/* `answer` has how many items it has, and its cap. */
dibs_status dibs__pg_queue_full(dibs__pg_answer *answer, dibs_error *err);

#endif
