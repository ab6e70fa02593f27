/* store.h - the schema of a store: inspect it, create it, upgrade it.
 *
 * PostgreSQL has one. Other stores need none; SQLite creates its own. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_H
#define DIBS_STORE_H

#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dibs_store_task {
    DIBS_STORE_STATUS = 0, /* inspect only */
    DIBS_STORE_INIT = 1,   /* create the schema if there is none */
    DIBS_STORE_UPGRADE = 2 /* upgrade the schema to this version */
} dibs_store_task;

typedef struct dibs_store_state {
    bool needed;  /* this store has a schema; otherwise all below is 0 */
    bool changed; /* this call created or upgraded it */
    int found;    /* its version after the call; 0: there is none */
    int known;    /* the version that this library works with */
} dibs_store_state;

/* Inspects or changes the schema of a store, in one transaction. Any thread and
 * any number of processes may call it at once. Blocks for timeout_ms at most (0:
 * 5 s). `url` NULL or "" selects the configured store, as in
 * dibs_open().
 *   DIBS_OK       done; *out describes the schema
 *   DIBS_REFUSED  the schema is of a newer dibs; or INIT found an older one; or
 *                 UPGRADE found none
 *   DIBS_DENIED   the database user lacks the right
 *   DIBS_INVALID  the URL or the task is malformed */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_store_setup(const char *url,
                                                      dibs_store_task task,
                                                      int64_t timeout_ms,
                                                      dibs_store_state *out,
                                                      dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
