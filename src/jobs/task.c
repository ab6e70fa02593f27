/* task.c - an attempt in the hands of its node. */
/* SPDX-License-Identifier: MIT */
#include "jobs/task.h"

#include <stdio.h>
#include <string.h>

void dibs__task_init(dibs__task *task, const char *run, const char *step,
                     const char *nonce, bool locks)
{
    memset(task, 0, sizeof(*task));
    (void)snprintf(task->run, sizeof(task->run), "%s", run);
    (void)snprintf(task->step, sizeof(task->step), "%s", step);
    (void)snprintf(task->nonce, sizeof(task->nonce), "%s", nonce);
    task->locks = locks;
}

static dibs__task_todo drop_task(dibs__task *task)
{
    task->state = DIBS__TASK_GONE;
    return DIBS__TASK_DROP;
}

static dibs__task_todo plan_task(dibs__task *task, dibs__task_state state)
{
    task->state = state;
    task->doubt = false;
    return DIBS__TASK_PLAN;
}

/* The attempt is this node's, by the record (6). */
static dibs__task_todo
start_task(dibs__task *task, dibsx_nsec now, dibsx_nsec valid_until)
{
    if (valid_until < now + DIBS__TASK_MARGIN_MS * DIBSX_MS) {
        task->state = DIBS__TASK_HELD;
        return DIBS__TASK_WAIT;
    }
    task->state = DIBS__TASK_RUNNING;
    return DIBS__TASK_START;
}

static dibs__task_todo
agree_task(dibs__task *task, dibsx_nsec now, dibsx_nsec valid_until)
{
    task->doubt = false;
    switch (task->state) {
    case DIBS__TASK_ASKING:
        if (!task->locks)
            return start_task(task, now, valid_until);
        task->state = DIBS__TASK_LOCKING;
        return DIBS__TASK_LOCK;
    case DIBS__TASK_BEGINNING:
        return start_task(task, now, valid_until);
    default:
        return drop_task(task);
    }
}

dibs__task_todo dibs__task_answered(dibs__task *task, dibs_status rc,
                                    dibsx_nsec now, dibsx_nsec valid_until)
{
    switch (rc) {
    case DIBS_OK:
        return agree_task(task, now, valid_until);
    case DIBS_STALE:
        return DIBS__TASK_READ;
    case DIBS_UNAVAIL:
        return DIBS__TASK_AGAIN;
    case DIBS_EARLY:
        return task->doubt || task->state == DIBS__TASK_BEGINNING
                   ? DIBS__TASK_AGAIN
                   : drop_task(task);
    case DIBS_LATE:
        if (task->doubt)
            return DIBS__TASK_READ;
        if (task->state == DIBS__TASK_BEGINNING)
            return plan_task(task, DIBS__TASK_ENDING);
        return drop_task(task);
    default:
        task->doubt = true;
        return DIBS__TASK_AGAIN;
    }
}

static const dibs__run_step *
find_own(const dibs__task *task, const dibs__run *run)
{
    size_t i;

    if (!run || !dibs__run_find(run, task->step, &i) ||
        strcmp(run->steps[i].nonce, task->nonce) != 0)
        return NULL;
    return &run->steps[i];
}

static bool is_lost(const dibs__run_step *own)
{
    return own && own->state == DIBS__STATE_FAILED &&
           own->reason == DIBS__REASON_LOST;
}

dibs__task_todo dibs__task_read(dibs__task *task, const dibs__run *run,
                                dibsx_nsec now, dibsx_nsec valid_until)
{
    const dibs__run_step *own = find_own(task, run);
    bool claimed = own && own->state == DIBS__STATE_CLAIMED;
    bool running = own && own->state == DIBS__STATE_RUNNING;

    switch (task->state) {
    case DIBS__TASK_ASKING:
        return running || claimed ? agree_task(task, now, valid_until)
                                  : drop_task(task);
    case DIBS__TASK_BEGINNING:
        if (running)
            return agree_task(task, now, valid_until);
        return claimed ? plan_task(task, DIBS__TASK_BEGINNING)
                       : drop_task(task);
    case DIBS__TASK_ENDING:
        if (running || claimed || (task->outlived && is_lost(own)))
            return plan_task(task, DIBS__TASK_ENDING);
        task->refused = !own;
        return drop_task(task);
    default:
        return DIBS__TASK_WAIT;
    }
}

dibs__task_todo dibs__task_locked(dibs__task *task, bool taken)
{
    return plan_task(task, taken ? DIBS__TASK_BEGINNING : DIBS__TASK_ENDING);
}

dibs__task_todo
dibs__task_renewed(dibs__task *task, dibsx_nsec now, dibsx_nsec valid_until)
{
    if (task->state != DIBS__TASK_HELD)
        return DIBS__TASK_WAIT;
    return start_task(task, now, valid_until);
}

dibs__task_todo
dibs__task_start_later(dibs__task *task, dibsx_nsec now, dibsx_nsec valid_until)
{
    return start_task(task, now, valid_until);
}

dibs__task_todo dibs__task_died(dibs__task *task)
{
    return plan_task(task, DIBS__TASK_ENDING);
}

void dibs__task_lose(dibs__task *task)
{
    task->state = DIBS__TASK_GONE;
}

void dibs__task_outlive(dibs__task *task)
{
    task->outlived = true;
}

bool dibs__task_must_end(const dibs__task *task, const dibs__run *run)
{
    const dibs__run_step *own = find_own(task, run);

    if (task->state == DIBS__TASK_LOCKING)
        return !own || own->state != DIBS__STATE_CLAIMED;
    if (task->state != DIBS__TASK_RUNNING && task->state != DIBS__TASK_HELD)
        return false;
    if (task->outlived)
        return own && own->cancel;
    return !own || own->cancel || own->state != DIBS__STATE_RUNNING;
}
