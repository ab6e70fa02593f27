/* node_task.h - what the files that drive the tasks of a node share. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_NODE_NODE_TASK_H
#define DIBS_NODE_NODE_TASK_H

#include "node/node_inside.h"

/* Does what is to do next, at once or after so long. The task may be freed by that. */
void dibs__node_do(dibs__node *node, dibs__node_task *task,
                   dibs__task_todo todo);
void dibs__node_put_off(dibs__node_task *task, dibs__task_todo todo,
                        int64_t ms);

/* Sends the intent, which writes `run` (NULL: the caller has it no more). A store that does
 * not answer is asked again in a later turn. */
void dibs__node_send(dibs__node *node, dibs__node_task *task, dibs__run *run);

/* Tries the lock of its job. A node that should stop does not wait for it: others may
 * begin. */
void dibs__node_lock_task(dibs__node *node, dibs__node_task *task);

/* It has ended before its command was started. */
void dibs__node_end_unstarted(dibs__node *node, dibs__node_task *task,
                              dibs__reason reason);

#endif
