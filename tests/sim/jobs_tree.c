/* jobs_tree.c - the process trees of sim_jobs: a step has one at most. */
/* SPDX-License-Identifier: MIT */
#include "jobs_sim.h"

#include <string.h>

void start_tree(world *w, int who, sim_task *task)
{
    sim_tree *tree = NULL;
    sim_run *all = find_run(w, task->task.run);
    int64_t concurrency = sim_jobs[task->job].concurrency;

    for (size_t i = 0; i < TREES; i++) {
        sim_tree *one = &w->trees[i];

        if (!one->alive) {
            tree = one;
            continue;
        }
        if (strcmp(one->run, task->task.run) == 0 &&
            strcmp(one->step, task->task.step) == 0)
            w->wrong = "I5: a step has two live trees";
        if (one->job == task->job && concurrency != DIBS__CONCURRENCY_ALLOW)
            w->wrong = "I10: a job has two live trees";
    }
    if (!tree) {
        w->wrong = "the simulation has no room for a tree";
        return;
    }
    if (all && ++all->starts[task->task.step[0] - 'a'] >
                   (uint64_t)sim_jobs[task->job].steps[0].work.retry.attempts)
        w->wrong = "I6: a step was started too often";
    *tree = (sim_tree){.alive = true,
                       .serial = ++w->serial,
                       .job = task->job,
                       .who = who,
                       .fence = w->nodes[who].fence,
                       .valid_until = w->nodes[who].valid_until,
                       .ends_at =
                           w->now + span(w, 20, chance(w, 100) ? 6000 : 1800),
                       .fails = chance(w, 150)};
    memcpy(tree->run, task->task.run, sizeof(tree->run));
    memcpy(tree->step, task->task.step, sizeof(tree->step));
    task->tree = tree->serial;
}

sim_tree *find_tree(world *w, uint64_t serial)
{
    for (size_t i = 0; i < TREES; i++)
        if (serial && w->trees[i].serial == serial)
            return &w->trees[i];
    return NULL;
}

/* What time does to trees. */
void end_trees(world *w)
{
    for (size_t i = 0; i < TREES; i++) {
        sim_tree *tree = &w->trees[i];

        if (!tree->alive)
            continue;
        if (w->now >= tree->ends_at)
            tree->alive = false;
        else if (w->now >= tree->valid_until && w->mutant != NO_GUARD) {
            tree->alive = false;
            tree->guarded = true;
        }
    }
}
