/* node_take.c - the tasks of a node begin: which steps it may take, and their claims. */
/* SPDX-License-Identifier: MIT */
#include "base/rand.h"
#include "node/call.h"
#include "node/node_task.h"

#include <string.h>

static dibs__node_task *find_free(const dibs__node *node)
{
    for (size_t i = 0; i < node->opts->slots; i++)
        if (!node->tasks[i].used)
            return &node->tasks[i];
    return NULL;
}

bool dibs__node_has_room(const dibs__node *node)
{
    return find_free(node) != NULL;
}

/* A command must be in a file of this node. A function is in the program anyway, so that
 * the definition of the store serves. */
static const dibs__job *find_job(const dibs__node *node, const dibs__stage *st)
{
    return node->opts->calls ? st->job
                             : dibs__node_job(node, st->run.job, st->run.hash);
}

static bool has_label(const dibs__node *node, const char *label)
{
    const char *const *labels = node->opts->labels;

    for (size_t i = 0; labels && labels[i]; i++)
        if (strcmp(labels[i], label) == 0)
            return true;
    return false;
}

bool dibs__node_takes(const dibs__node *node, const char *label)
{
    if (!node->opts->calls)
        return label[0] == '\0' || has_label(node, label);
    for (size_t i = 0; i < node->opts->calls->count; i++)
        if (strncmp(label, "call/", 5) == 0 &&
            strcmp(label + 5, node->opts->calls->functions[i].name) == 0)
            return true;
    return false;
}

/* The label of a call is its function, so that runs_on is looked at here. */
static bool may_execute(const dibs__node *node, const dibs__step *step)
{
    return step->kind != DIBS__STEP_CALL ||
           (node->opts->calls &&
            (!step->work.runs_on || has_label(node, step->work.runs_on)));
}

dibs_status dibs__node_prepare(dibs__node *node, dibs__stage *st, size_t i,
                               dibs__node_task **out)
{
    const dibs__job *job = find_job(node, st);
    dibs__node_task *task = find_free(node);
    dibs__claimant who = {.fence = node->fence};
    dibs_error err = {0};
    dibs_status rc;

    if (!job || i >= job->step_count || !may_execute(node, &job->steps[i]))
        return DIBS_NOTFOUND;
    memcpy(who.node, node->id, sizeof(who.node));
    if (!task || !dibsx_random_hex(who.nonce, sizeof(who.nonce)))
        return DIBS_BUSY;
    rc = dibs__run_claim(&st->sc, i, &who, NULL);
    if (rc != DIBS_OK)
        return rc;
    dibs__scene_write(&st->sc);
    rc = dibs__board_check(&st->in, 1, &err);
    if (rc != DIBS_OK) { /* The slot is for others. */
        dibs__node_complain(node, st->run.id, &err);
        return rc;
    }
    *task = (dibs__node_task){.used = true, .job = job, .step = &job->steps[i]};
    dibs__task_init(&task->task, st->run.id, st->run.steps[i].name, who.nonce,
                    job->lock.key != NULL);
    task->in = st->in;
    dibs__intent_init(&st->in);
    if (job == st->job) {
        task->own_job = st->job;
        st->job = NULL;
    }
    *out = task;
    return DIBS_OK;
}

dibs_status dibs__node_claim(dibs__node *node, dibs__stage *st, size_t i)
{
    dibs__node_task *task = NULL;
    dibs_status rc = dibs__node_prepare(node, st, i, &task);

    if (rc == DIBS_OK)
        dibs__node_send(node, task, &st->run);
    return rc;
}
