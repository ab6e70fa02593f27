/* commit_faults.c - see commit_faults.h. */
/* SPDX-License-Identifier: MIT */
#include "commit_faults.h"

#include "fault_world.h"

int commit_faults_setup(void **state)
{
    return world_setup(state);
}

int commit_faults_teardown(void **state)
{
    return world_teardown(state);
}

dibs_client *commit_faults_client(void *state)
{
    return ((world *)state)->one;
}

void commit_faults_lose(void *state, bool done, int times)
{
    world_fault(state, DIBS__STEP_COMMIT,
                done ? DIBS__FAULT_DROP_AFTER : DIBS__FAULT_DROP_BEFORE, times);
}

static void hide_values(void *state)
{
    world_fault(state, DIBS__STEP_GET, DIBS__FAULT_DROP_BEFORE, -1);
}

void commit_faults_hide(void *state)
{
    world_during(state, DIBS__STEP_COMMIT, hide_values, state);
}

void commit_faults_heal(void *state)
{
    world_heal(state);
}
