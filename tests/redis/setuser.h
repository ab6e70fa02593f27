/* setuser.h - makes the least-privileged user, as the documentation has it. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_TESTS_REDIS_SETUSER_H
#define DIBS_TESTS_REDIS_SETUSER_H

#include "server.h"

/* As in the documentation. */
#define SETUSER_PASSWORD "change-me"

/* Runs the lines "ACL SETUSER dibs ..." of a file on the server, with `prefix`
 * in place of "workflow:". False when there are none or one of them fails. */
bool setuser(const server *sv, const char *file, const char *prefix);

#endif
