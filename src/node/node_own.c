/* node_own.c - a node looks at the records of its own tasks. */
/* SPDX-License-Identifier: MIT */
#include "jobs/board_change.h"
#include "node/node_task.h"

#include <stdio.h>

/* One request reads two values for each of these. */
enum { OWN_MAX = DIBS_GET_MANY_MAX / 2 };

static void end_own(dibs__node *node, dibs__node_task *task)
{
    task->ends_by = DIBS__REASON_CANCELLED;
    if (task->at)
        node->ops->stop(node, task, DIBS__REASON_CANCELLED, false);
    else
        dibs__node_end_unstarted(node, task, DIBS__REASON_CANCELLED);
}

/* A record that cannot be read says nothing. */
static void look_at_task(dibs__node *node, dibs__node_task *task,
                         const dibs_value *record, const dibs_value *follow)
{
    dibsx_nsec now = dibsx_now();
    dibsx_nsec soon = dibsx_after_ms(now, DIBS__FOLLOWED_MS);
    dibs_error err = {0};
    dibs__run run;
    bool ends = record->version == 0;

    dibs__run_init(&run, task->task.run);
    if (!ends && dibs__run_read(&run, task->task.run, record->data, record->len,
                                &err) == DIBS_OK)
        ends = dibs__task_must_end(&task->task, &run);
    else if (!ends)
        dibs__node_complain(node, task->task.run, &err);
    dibs__run_fini(&run);
    if (follow->version > 0)
        task->followed_until = dibsx_after_ms(now, DIBS__FOLLOW_MS);
    /* A call has no output before its end. */
    if (follow->version > 0 && task->flush_ms > 0 && soon < task->flush_at)
        task->flush_at = soon;
    if (ends)
        end_own(node, task);
}

static dibs_status
name_values(const dibs__node *node, const dibs__node_task *task,
            char names[2][DIBS_NAME_MAX + 1], dibs_error *err)
{
    char inner[DIBS__PLACE_SIZE];
    dibs_status rc;

    (void)snprintf(inner, sizeof(inner), "run/%s", task->task.run);
    rc = dibs__board_key(node->board, inner, names[0], err);
    (void)snprintf(inner, sizeof(inner), "follow/%s", task->task.run);
    return rc == DIBS_OK ? dibs__board_key(node->board, inner, names[1], err)
                         : rc;
}

static void
look_at_some(dibs__node *node, dibs__node_task *const *tasks, size_t count)
{
    char names[OWN_MAX][2][DIBS_NAME_MAX + 1];
    const char *keys[2 * OWN_MAX];
    dibs_value values[2 * OWN_MAX] = {{.len = 0}};
    dibs_error err = {0};
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        rc = name_values(node, tasks[i], names[i], &err);
        keys[2 * i] = names[i][0];
        keys[2 * i + 1] = names[i][1];
    }
    if (rc == DIBS_OK && count > 0)
        rc =
            dibs_state_get_many(node->board->cl, keys, 2 * count, values, &err);
    (void)dibs__node_valid_until(node);
    if (rc != DIBS_OK)
        dibs__node_complain(node, "the records of its commands", &err);
    for (size_t i = 0; i < count && rc == DIBS_OK; i++)
        look_at_task(node, tasks[i], &values[2 * i], &values[2 * i + 1]);
    for (size_t i = 0; i < 2 * count; i++)
        dibs_value_free(&values[i]);
}

static bool is_looked_after(const dibs__node_task *task)
{
    return task->task.state == DIBS__TASK_LOCKING ||
           task->task.state == DIBS__TASK_HELD ||
           (task->task.state == DIBS__TASK_RUNNING && task->at);
}

/* Runs that have to end, by their records; and those whose output somebody follows. */
void dibs__node_look_at_own(dibs__node *node)
{
    dibs__node_task *tasks[OWN_MAX];
    size_t count = 0;

    for (size_t i = 0; i < node->opts->slots; i++) {
        dibs__node_task *task = &node->tasks[i];

        if (!task->used || task->ends_by || !is_looked_after(task))
            continue;
        tasks[count++] = task;
        if (count == OWN_MAX) {
            look_at_some(node, tasks, count);
            count = 0;
        }
    }
    look_at_some(node, tasks, count);
}
