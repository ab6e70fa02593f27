/* node_task.c - the tasks of a node: attempts from their claim to their end. */
/* SPDX-License-Identifier: MIT */
#include "node/node_task.h"
#include "base/fail.h"
#include "jobs/board_change.h"
#include "jobs/history.h"
#include "jobs/kept_output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    AGAIN_MS = 200,
    FLUSH_MAX_MS = 30000,
    KEPT_MAX = 16 * 1024, /* bytes of a record that is kept */
    LEAVE_MS = 1000 /* what cannot be written, when the node should stop */
};

#define MONTH_MS (INT64_C(31) * 24 * 3600 * 1000)

size_t dibs__node_busy(const dibs__node *node)
{
    size_t busy = 0;

    for (size_t i = 0; i < node->opts->slots; i++)
        busy += node->tasks[i].used;
    return busy;
}

/* A tree that is still there keeps the slot until it has ended. */
static void free_task(dibs__node *node, dibs__node_task *task)
{
    task->task.state = DIBS__TASK_GONE;
    task->todo = DIBS__TASK_WAIT;
    if (task->at)
        return;
    if (task->task.refused)
        dibs__node_say(node,
                       "%s/%s: the result came too late: another attempt is "
                       "the current one",
                       task->task.run, task->task.step);
    dibs_lock_free(task->lock);
    dibs__intent_fini(&task->in);
    dibs__run_fini(&task->kept);
    dibsx_buf_fini(&task->unkept);
    dibs__job_free(task->own_job);
    memset(task, 0, sizeof(*task));
    dibs__node_hurry(node, 0);
}

void dibs__node_put_off(dibs__node_task *task, dibs__task_todo todo, int64_t ms)
{
    task->todo = todo;
    task->todo_at = dibsx_after_ms(dibsx_now(), ms);
}

/* A store that does not answer is asked again for as long as the node believes in its
 * lease, but a node that should stop asks for a ttl at most: its lease may be in another
 * store. A record that cannot be read, and a second signal, leave it a second. */
static bool
may_try(const dibs__node *node, dibs__node_task *task, dibs_status rc)
{
    dibsx_nsec now = dibsx_now();
    int64_t ms =
        dibsx_is_away(rc) && !node->killed ? node->opts->ttl_ms : LEAVE_MS;

    if (!node->drained)
        return true;
    if (!task->failed_at)
        task->failed_at = now;
    return now < dibsx_after_ms(task->failed_at, ms);
}

/* When the lease has ended, others take an attempt that was left for lost. */
static void try_again(dibs__node *node, dibs__node_task *task,
                      dibs__task_todo todo, dibs_status rc)
{
    if (may_try(node, task, rc)) {
        dibs__node_put_off(task, todo, AGAIN_MS);
        return;
    }
    dibs__node_say(node, "%s/%s is left: this node stops, and cannot write it",
                   task->task.run, task->task.step);
    free_task(node, task);
}

/* A record without room for the change has none in a later turn either. Others take the
 * attempt for lost when this node has gone. */
static bool cannot_write(dibs__node *node, dibs__node_task *task)
{
    if (!task->in.too_long)
        return false;
    dibs__node_say(node, "%s/%s is left: its record is too long to be written",
                   task->task.run, task->task.step);
    free_task(node, task);
    return true;
}

/* Other steps of the run are in the hands of this node too: their record is old now. */
static void forget_run(dibs__node *node, const char *id)
{
    for (size_t i = 0; i < node->opts->slots; i++) {
        dibs__run *kept = &node->tasks[i].kept;

        if (strcmp(kept->id, id) != 0)
            continue;
        dibs__run_fini(kept);
        dibs__run_init(kept, "");
    }
}

/* The record as this node wrote it serves until the next change: nothing is read before the
 * start and before the end. A long one is read again, as each slot may have one. */
static void keep_run(dibs__node_task *task, dibs__run *run, uint64_t version)
{
    dibs__run_noted(run, version);
    task->written = run;
    if (dibs__intent_bytes(&task->in) > KEPT_MAX)
        return;
    dibs__run_fini(&task->kept);
    task->kept = *run;
    dibs__run_init(run, "");
    task->written = &task->kept;
}

void dibs__node_answered(dibs__node *node, dibs__node_task *task,
                         const dibs__answer *answer, dibs__run *run,
                         const dibs_error *err)
{
    dibs_status rc = answer->rc;
    dibs__task_todo todo;

    task->task.doubt = answer->doubt;
    if (rc != DIBS_OK && rc != DIBS_STALE && rc != DIBS_EARLY &&
        rc != DIBS_LATE)
        dibs__node_complain(node, task->task.run, err);
    if (rc == DIBS_LATE && task->task.state == DIBS__TASK_BEGINNING)
        task->outcome = (dibs__outcome){.reason = DIBS__REASON_LATE};
    todo = dibs__task_answered(&task->task, rc, dibsx_now(),
                               dibs__node_valid_until(node));
    if (rc == DIBS_OK && run) {
        forget_run(node, run->id);
        if (task->task.state != DIBS__TASK_GONE)
            keep_run(task, run, answer->version);
    }
    if (todo == DIBS__TASK_AGAIN)
        try_again(node, task, todo, rc);
    else
        dibs__node_do(node, task, todo);
    task->written = NULL; /* A task that was freed is zeros. */
}

void dibs__node_send(dibs__node *node, dibs__node_task *task, dibs__run *run)
{
    dibs__answer answer = {.doubt = task->task.doubt};
    dibs_error err = {0};

    if (cannot_write(node, task))
        return;
    (void)!dibs__board_commit_many(node->board, &task->in, 1, &answer, &err);
    dibs__node_answered(node, task, &answer, run, &err);
}

/* Reads the record; it may be gone. False: it could not be read, and `todo` is tried
 * again. */
static bool read_run(dibs__node *node, dibs__node_task *task,
                     dibs__task_todo todo, dibs__run *run, bool *found)
{
    dibs_error err = {0};
    dibs_status rc = dibs__board_run(node->board, task->task.run, run, &err);

    *found = rc == DIBS_OK;
    if (rc == DIBS_OK || rc == DIBS_NOTFOUND)
        return true;
    dibs__node_complain(node, task->task.run, &err);
    try_again(node, task, todo, rc);
    return false;
}

static void read_task(dibs__node *node, dibs__node_task *task)
{
    dibs__run run;
    bool found = false;
    dibs__task_todo todo = DIBS__TASK_WAIT;

    if (read_run(node, task, DIBS__TASK_READ, &run, &found))
        todo = dibs__task_read(&task->task, found ? &run : NULL, dibsx_now(),
                               dibs__node_valid_until(node));
    dibs__run_fini(&run);
    if (todo != DIBS__TASK_WAIT)
        dibs__node_do(node, task, todo);
}

/* Output goes with its run, which is kept from its end on. Where no other attempt can follow,
 * the run ends with this one; other runs have time until their limit, or for a month if they
 * have none: whatever the cleanup does not find goes then. */
static int64_t output_ttl_ms(dibs__node *node, const dibs__node_task *task)
{
    const dibs__job *job = task->job;
    int64_t left_ms = MONTH_MS;

    if (task->over && job->step_count == 1 &&
        task->step->work.retry.attempts == 1)
        return job->history.keep_ms;
    if (task->end_by_us)
        left_ms = (task->end_by_us - dibs__node_now_us(node)) / 1000;
    left_ms = left_ms > MONTH_MS ? MONTH_MS : left_ms;
    return job->history.keep_ms + (left_ms > 0 ? left_ms : 0);
}

/* A store that is away has it later, before the end of the attempt at the latest. */
static dibs_status write_output(dibs__node *node, dibs__node_task *task)
{
    dibs_error err = {0};
    char inner[DIBS__PLACE_SIZE], key[DIBS_NAME_MAX + 1];
    dibs__run_step step = {.attempt = task->attempt};
    dibs_status rc =
        dibsx_buf_ok(&task->unkept) ? DIBS_OK : dibsx_nomem(&err, "the output");
    dibs__run run;

    dibs__run_init(&run, task->task.run);
    (void)snprintf(step.name, sizeof(step.name), "%s", task->task.step);
    dibs__output_key(&run, &step, task->attempt, inner);
    if (rc == DIBS_OK)
        rc = dibs__board_key(node->board, inner, key, &err);
    if (rc == DIBS_OK)
        rc = dibs_state_set(node->board->cl, key, task->unkept.data,
                            task->unkept.len, output_ttl_ms(node, task), NULL,
                            &err);
    if (rc != DIBS_OK)
        dibs__node_complain(node, task->task.run, &err);
    if (!dibsx_is_away(rc))
        dibsx_buf_fini(&task->unkept);
    dibs__run_fini(&run);
    return rc;
}

/* The record that this node has kept is used once: if another has changed it since, the
 * commit meets STALE, and the record is read. */
static dibs_status stage_task(dibs__node *node, dibs__node_task *task,
                              dibs__stage *st, dibs_error *err)
{
    st->sc.now_us = dibs__node_now_us(node);
    if (!task->kept.id[0])
        return dibs__stage_run(node->board, task->task.run, st, err);
    dibs__run_fini(&st->run);
    st->run = task->kept;
    dibs__run_init(&task->kept, "");
    return dibs__stage_rest(node->board, st, err);
}

/* The intent of a task's state. A record that does not want it is read. */
static void plan_task(dibs__node *node, dibs__node_task *task)
{
    const char *nonce = task->task.nonce;
    dibs_error err = {0};
    dibs__stage st;
    size_t i = 0;
    dibs_status rc = task->unkept.len ? write_output(node, task) : DIBS_OK;

    if (dibsx_is_away(rc)) {
        try_again(node, task, DIBS__TASK_PLAN, rc);
        return;
    }
    dibs__stage_init(&st);
    rc = stage_task(node, task, &st, &err);
    /* The record is there, and its job or definition is not: it cannot be read either. */
    if (rc == DIBS_NOTFOUND && st.run.version > 0)
        rc = DIBS_INVALID;
    if (rc != DIBS_OK && rc != DIBS_NOTFOUND) {
        dibs__node_complain(node, task->task.run, &err);
        try_again(node, task, DIBS__TASK_PLAN, rc);
        dibs__stage_fini(&st);
        return;
    }
    if (rc == DIBS_OK && !dibs__run_find(&st.run, task->task.step, &i))
        rc = DIBS_NOTFOUND;
    if (rc == DIBS_OK)
        rc = task->task.state == DIBS__TASK_BEGINNING
                 ? dibs__run_begin(&st.sc, i, nonce, &err)
                 : dibs__run_end(&st.sc, i, nonce, &task->outcome, &err);
    if (rc == DIBS_OK) {
        dibs__scene_write(&st.sc);
        dibs__intent_fini(&task->in);
        task->in = st.in;
        dibs__intent_init(&st.in);
    }
    if (rc == DIBS_OK)
        dibs__node_send(node, task, &st.run);
    else if (task->task.outlived) /* The run has no place for it any more. */
        free_task(node, task);
    else
        read_task(node, task);
    dibs__stage_fini(&st);
}

/* ---- start and end of the command */

void dibs__node_end_unstarted(dibs__node *node, dibs__node_task *task,
                              dibs__reason reason)
{
    task->outcome = (dibs__outcome){.reason = reason};
    dibs__node_do(node, task, dibs__task_died(&task->task));
}

/* An executor that died or does not answer is replaced or goes on in a while, and nothing
 * was started meanwhile. Trees of a dead one are gone within a ttl. */
static bool may_start_later(const dibs__node *node, dibs__node_task *task)
{
    dibsx_nsec now = dibsx_now();

    if (!task->refused_at)
        task->refused_at = now;
    return now < dibsx_after_ms(task->refused_at, node->opts->ttl_ms);
}

/* Its output says why. */
static void
end_refused(dibs__node *node, dibs__node_task *task, const dibs_error *err)
{
    char text[sizeof(err->message) + 1];
    int len = snprintf(text, sizeof(text), "%s\n", err->message);

    task->over = true;
    dibs__node_keep_output(node, task, text, (size_t)len, NULL, 0, 0);
    dibs__node_end_unstarted(node, task, DIBS__REASON_UNSTARTED);
}

static void not_started(dibs__node *node, dibs__node_task *task, dibs_status rc,
                        const dibs_error *err)
{
    dibs__node_complain(node, task->task.run, err);
    if (rc == DIBS_UNAVAIL && may_start_later(node, task))
        dibs__node_put_off(task, DIBS__TASK_START, AGAIN_MS);
    else if (rc == DIBS_CANCELLED)
        dibs__node_end_unstarted(node, task, DIBS__REASON_STOPPED);
    else
        end_refused(node, task, err);
}

/* Starts the attempt, or ends it at once: the run has to end, or it cannot start. */
static void
start_attempt(dibs__node *node, dibs__node_task *task, const dibs__run *run)
{
    dibs_error err = {0};
    size_t i = 0;
    bool ends = !run || dibs__task_must_end(&task->task, run) ||
                !dibs__run_find(run, task->task.step, &i);
    dibs_status rc = DIBS_OK;

    if (!ends && node->drained)
        rc = dibsx_fail(&err, DIBS_CANCELLED, "this node stops");
    else if (!ends) {
        task->attempt = run->steps[i].attempt;
        task->end_by_us = run->end_by_us;
        rc = node->ops->start(node, task, run, &err);
    }
    if (ends)
        dibs__node_end_unstarted(node, task, DIBS__REASON_CANCELLED);
    else if (rc == DIBS_OK)
        dibs__node_say(node, "%s/%s attempt %u: started", task->task.run,
                       task->task.step, (unsigned)task->attempt);
    else
        not_started(node, task, rc, &err);
}

static void start_task(dibs__node *node, dibs__node_task *task)
{
    dibs__run run;
    bool found = false;

    if (task->written) {
        start_attempt(node, task, task->written);
        return;
    }
    if (read_run(node, task, DIBS__TASK_START, &run, &found))
        start_attempt(node, task, found ? &run : NULL);
    dibs__run_fini(&run);
}

void dibs__node_do(dibs__node *node, dibs__node_task *task,
                   dibs__task_todo todo)
{
    task->todo = DIBS__TASK_WAIT;
    switch (todo) {
    case DIBS__TASK_AGAIN:
        dibs__node_send(node, task, NULL);
        break;
    case DIBS__TASK_READ:
        read_task(node, task);
        break;
    case DIBS__TASK_PLAN:
        plan_task(node, task);
        break;
    case DIBS__TASK_LOCK:
        dibs__node_lock_task(node, task);
        break;
    case DIBS__TASK_START:
        start_task(node, task);
        break;
    case DIBS__TASK_DROP:
        free_task(node, task);
        break;
    case DIBS__TASK_WAIT:
        break;
    }
}

/* ---- turns */

/* The lock of the job ended: its tree must not go on. */
static void watch_lock(dibs__node *node, dibs__node_task *task)
{
    if (!task->at || !task->lock || task->ends_by ||
        dibs_lock_check(task->lock) == DIBS_OK)
        return;
    dibs__node_say(node, "%s/%s: the lock %s is lost", task->task.run,
                   task->task.step, task->job->lock.key);
    task->ends_by = DIBS__REASON_LOST;
    node->ops->stop(node, task, DIBS__REASON_LOST, true);
}

static void flush_task(dibs__node *node, dibs__node_task *task, dibsx_nsec now)
{
    if (!task->at || task->task.state != DIBS__TASK_RUNNING ||
        now < task->flush_at)
        return;
    node->ops->flush(node, task);
    if (now < task->followed_until) {
        task->flush_at = dibsx_after_ms(now, DIBS__FOLLOWED_MS);
        return;
    }
    task->flush_ms *= 2;
    if (task->flush_ms > FLUSH_MAX_MS)
        task->flush_ms = FLUSH_MAX_MS;
    task->flush_at = dibsx_after_ms(now, task->flush_ms);
}

void dibs__node_keep_output(dibs__node *node, dibs__node_task *task,
                            const char *head, size_t head_len, const char *tail,
                            size_t tail_len, uint64_t left_out)
{
    uint64_t bytes = head_len + tail_len + left_out;

    if (task->step->work.output.keep == 0 ||
        (task->followed_until && bytes == task->kept_bytes))
        return;
    dibsx_buf_fini(&task->unkept);
    dibsx_buf_init(&task->unkept, DIBS_VALUE_MAX);
    dibs__kept_output_put(&task->unkept, head, head_len, tail, tail_len,
                          left_out);
    if (write_output(node, task) == DIBS_OK)
        task->kept_bytes = bytes;
}

/* A start that was put off needs enough of the lease anew. */
static void do_later(dibs__node *node, dibs__node_task *task, dibsx_nsec now)
{
    dibs__task_todo todo = task->todo;

    if (todo == DIBS__TASK_START)
        todo = dibs__task_start_later(&task->task, now,
                                      dibs__node_valid_until(node));
    dibs__node_do(node, task, todo);
}

void dibs__node_proceed(dibs__node *node)
{
    for (size_t i = 0; i < node->opts->slots; i++) {
        dibs__node_task *task = &node->tasks[i];
        dibsx_nsec now = dibsx_now();

        if (!task->used || (!node->lease && !task->task.outlived))
            continue;
        watch_lock(node, task);
        if (task->task.state == DIBS__TASK_HELD)
            dibs__node_do(node, task,
                          dibs__task_renewed(&task->task, now,
                                             dibs__node_valid_until(node)));
        else if (task->todo != DIBS__TASK_WAIT && now >= task->todo_at)
            do_later(node, task, now);
        if (task->used)
            flush_task(node, task, now);
    }
}

void dibs__node_collect(dibs__node *node)
{
    dibs__node_task *task;

    while ((task = node->ops->next_ended(node)) != NULL) {
        bool ours = task->task.state == DIBS__TASK_RUNNING;

        task->followed_until = 0; /* The end writes all of it. */
        task->over = true;
        if (ours) {
            node->ops->take_outcome(node, task);
            node->ops->flush(node, task);
        }
        node->ops->end(task);
        task->at = NULL;
        if (ours)
            dibs__node_do(node, task, dibs__task_died(&task->task));
        else
            free_task(node, task);
    }
}

dibsx_nsec dibs__node_next_at(const dibs__node *node)
{
    dibsx_nsec at = DIBSX_NEVER;

    for (size_t i = 0; i < node->opts->slots; i++) {
        const dibs__node_task *task = &node->tasks[i];

        if (!task->used)
            continue;
        if (task->todo != DIBS__TASK_WAIT && task->todo_at < at)
            at = task->todo_at;
        if (task->at && task->task.state == DIBS__TASK_RUNNING &&
            task->flush_at < at)
            at = task->flush_at;
    }
    return at;
}

/* Its tree lives, or has ended, and the end is not in the store yet. */
static bool has_begun(const dibs__node_task *task)
{
    return (task->at && task->task.state == DIBS__TASK_RUNNING) ||
           task->task.state == DIBS__TASK_ENDING;
}

/* Belief in the lease is over: others may take over all that this node has. */
void dibs__node_lose_all(dibs__node *node)
{
    for (size_t i = 0; i < node->opts->slots; i++) {
        dibs__node_task *task = &node->tasks[i];

        if (!task->used)
            continue;
        if (task->job->on_lost == DIBS__LOST_FINISH && has_begun(task)) {
            dibs__task_outlive(&task->task);
            continue;
        }
        dibs__task_lose(&task->task);
        if (task->at)
            node->ops->stop(node, task, DIBS__REASON_LOST, true);
        free_task(node, task);
    }
}

/* The node is to stop. */
void dibs__node_stop_all(dibs__node *node, bool at_once)
{
    for (size_t i = 0; i < node->opts->slots; i++) {
        dibs__node_task *task = &node->tasks[i];

        if (!task->used)
            continue;
        if (task->at)
            node->ops->stop(node, task, DIBS__REASON_STOPPED, at_once);
        else if (task->task.state == DIBS__TASK_HELD)
            dibs__node_end_unstarted(node, task, DIBS__REASON_STOPPED);
        else if (task->task.state == DIBS__TASK_LOCKING)
            dibs__node_do(node, task, DIBS__TASK_LOCK);
    }
}

void dibs__node_free_tasks(dibs__node *node)
{
    for (size_t i = 0; node->tasks && i < node->opts->slots; i++)
        if (node->tasks[i].used)
            free_task(node, &node->tasks[i]);
}
