/* node_lock.c - the lock of a job, for a task of a node before its command starts. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "node/node_task.h"

#include <inttypes.h>

enum { LOCK_AGAIN_MS = 100 };

/* Twice the node's ttl at least: when the node stands still, its trees are dead before
 * the lock can pass on. */
static dibs_status
make_lock(dibs__node *node, dibs__node_task *task, dibs_error *err)
{
    const dibs__job_lock *lock = &task->job->lock;
    int64_t least_ms = 2 * node->opts->ttl_ms;

    return dibs_lock_new(node->board->cl, lock->key,
                         DIBS_LOCK_OPTS(.ttl_ms = lock->ttl_ms > least_ms
                                                      ? lock->ttl_ms
                                                      : least_ms,
                                        .hold_min_ms = lock->hold_min_ms,
                                        .label = task->task.run,
                                        .identity = task->task.nonce),
                         &task->lock, err);
}

/* One thread does all, so that it tries, and does not wait: so often in one wait. */
static int64_t tries_of_wait(const dibs__job_lock *lock)
{
    return 1 + lock->wait_ms / LOCK_AGAIN_MS;
}

/* Whether it tries again for its wait, and not after the delay that follows one. */
static bool is_in_wait(const dibs__node_task *task)
{
    const dibs__job_lock *lock = &task->job->lock;

    return lock->wait_ms > 0 && (task->lock_tries == 0 ||
                                 task->lock_tries % tries_of_wait(lock) != 0);
}

/* How it goes on: tries are left, or what the machine of runs does. A run of several steps
 * may have begun, and then this one is tried again. */
static void say_held(dibs__node *node, const dibs__node_task *task, bool again)
{
    static const char *const ends[] = {[DIBS__BUSY_SKIP] = "; skipped",
                                       [DIBS__BUSY_FAIL] = "; failed",
                                       [DIBS__BUSY_RETRY] = ""};
    const dibs__job *job = task->job;
    char span[32];

    dibsx_duration_text(is_in_wait(task) ? LOCK_AGAIN_MS
                                         : job->lock.retry_delay_ms,
                        span, sizeof(span));
    if (again || job->lock.on_busy == DIBS__BUSY_RETRY)
        dibs__node_say(node, "%s/%s: the lock %s is held; again in %s",
                       task->task.run, task->task.step, job->lock.key, span);
    else
        dibs__node_say(node, "%s/%s: the lock %s is held%s", task->task.run,
                       task->task.step, job->lock.key,
                       job->step_count == 1 ? ends[job->lock.on_busy] : "");
}

static void
end_unlocked(dibs__node *node, dibs__node_task *task, dibs__reason reason)
{
    task->outcome = (dibs__outcome){.reason = reason};
    dibs__node_do(node, task, dibs__task_locked(&task->task, false));
}

static dibs_status
try_lock(dibs__node *node, dibs__node_task *task, dibs_error *err)
{
    dibs_status rc = task->lock ? DIBS_OK : make_lock(node, task, err);

    return rc == DIBS_OK ? dibs_lock_try(task->lock, err) : rc;
}

void dibs__node_lock_task(dibs__node *node, dibs__node_task *task)
{
    const dibs__job_lock *lock = &task->job->lock;
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;
    bool again;

    if (node->drained) {
        end_unlocked(node, task, DIBS__REASON_STOPPED);
        return;
    }
    rc = try_lock(node, task, &err);
    if (rc == DIBS_OK) {
        dibs__node_say(node, "%s/%s: has the lock %s, try %" PRId64,
                       task->task.run, task->task.step, lock->key,
                       task->lock_tries + 1);
        dibs__node_do(node, task, dibs__task_locked(&task->task, true));
        return;
    }
    if (rc != DIBS_BUSY)
        dibs__node_complain(node, lock->key, &err);
    /* A store that does not answer says nothing about who holds it. */
    if (!dibsx_is_away(rc) && rc != DIBS_TIMEOUT)
        task->lock_tries++;
    again = task->lock_tries < (lock->retries + 1) * tries_of_wait(lock);
    /* Further tries in vain are not said. */
    if (rc == DIBS_BUSY && (!again || task->lock_tries == 1))
        say_held(node, task, again);
    if (again) {
        dibs__node_put_off(task, DIBS__TASK_LOCK,
                           is_in_wait(task) ? LOCK_AGAIN_MS
                                            : lock->retry_delay_ms);
        return;
    }
    end_unlocked(node, task, DIBS__REASON_BUSY);
}
