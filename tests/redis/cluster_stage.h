/* cluster_stage.h - one cluster for all tests of a program. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_CLUSTER_STAGE_H
#define DIBS_TESTS_CLUSTER_STAGE_H

#include "cluster_world.h"
#include "world.h"

extern cluster_world cw;
extern char cw_url[SERVER_URL_MAX];

/* For the group. */
int cluster_stage_begin(void **state);
int cluster_stage_end(void **state);

/* The slot of a name or of a key, and the node that has it. */
int slot_of(const char *key);
const server *home_of(const char *key);

/* A client of the user that a guide to rights (docs/redis-acl.md) makes for names
 * that begin with "rights:", less one right; NULL: with all of them. */
dibs_client *client_of_user(const char *guide, const char *less);

#endif
