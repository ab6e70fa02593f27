/* error.h - what an error reply of the server means for the caller. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_REDIS_WIRE_ERROR_H
#define DIBS_STORE_REDIS_WIRE_ERROR_H

#include <dibs/types.h>

/* Raises what an error reply says. */
dibs_status dibs__redis_fail(const char *reply, dibs_error *err);

/* Whether it says that the server does not have the script. */
bool dibs__redis_no_script(const char *reply);

/* Whether the server refused to write because it is a replica. */
bool dibs__redis_is_readonly(const char *reply);

/* Whether the server refused to write because too few replicas follow it. */
bool dibs__redis_lacks_replicas(const char *reply);

#endif
