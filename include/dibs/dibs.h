/* dibs.h - the whole public interface in one include. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DIBS_H
#define DIBS_DIBS_H

#include <dibs/async.h>
#include <dibs/barrier.h>
#include <dibs/breaker.h>
#include <dibs/client.h>
#include <dibs/elect.h>
#include <dibs/events.h>
#include <dibs/guard.h>
#include <dibs/health.h>
#include <dibs/jobs.h>
#include <dibs/latch.h>
#include <dibs/limit.h>
#include <dibs/lock.h>
#include <dibs/members.h>
#include <dibs/monitor.h>
#include <dibs/multi.h>
#include <dibs/queue.h>
#include <dibs/queue_admin.h>
#include <dibs/queue_async.h>
#include <dibs/state.h>
#include <dibs/store.h>
#include <dibs/types.h>
#include <dibs/viewer.h>

#endif
