/* dibs.hpp - the C interface for C++11 and later. Leaving a scope releases its
 * locks: by return, by break or by an exception.
 *
 *     dibs::client db("redis://localhost");
 *     {
 *         dibs::scoped_lock held(db, "hourly-task", dibs::options().ttl(5min));
 *         write_report(held.fence());
 *     }
 *
 * A call that fails throws dibs::error. Calls with a dibs_error parameter return
 * the status instead, and calls marked noexcept never throw. The classes are
 * move-only wrappers; get() is the C handle for everything else. Statuses, threads
 * and blocking are those of the C calls. Destroy locks before their client.
 */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_DIBS_HPP
#define DIBS_DIBS_HPP

#include <dibs/client.hpp>
#include <dibs/coord.hpp>
#include <dibs/events.hpp>
#include <dibs/jobs.hpp>
#include <dibs/lock.hpp>
#include <dibs/queue.hpp>
#include <dibs/queue_admin.hpp>
#include <dibs/state.hpp>

#endif
