/* commit_faults.h - a client whose commits lose their answers, for tests of jobs: their
 * headers and that of the fault store have names in common. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_COMMIT_FAULTS_H
#define DIBS_TESTS_COMMIT_FAULTS_H

#include <dibs/client.h>

int commit_faults_setup(void **state);
int commit_faults_teardown(void **state);

dibs_client *commit_faults_client(void *state);

/* The next commits have no answer, and are done or not. */
void commit_faults_lose(void *state, bool done, int times);

/* From the next commit on values cannot be read, until commit_faults_heal(). */
void commit_faults_hide(void *state);
void commit_faults_heal(void *state);

#endif
