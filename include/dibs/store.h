/* store.h - setting a store up: the schema that some stores keep in a database.
 *
 * A store that needs none answers so. Usable from C99 and C++11. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_STORE_H
#define DIBS_STORE_H

#include <dibs/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dibs_store_task {
    DIBS_STORE_STATUS = 0, /* look only */
    DIBS_STORE_INIT = 1,   /* make what is not there */
    DIBS_STORE_UPGRADE = 2 /* bring what is there up to this version */
} dibs_store_task;

typedef struct dibs_store_state {
    bool needed;  /* this store has a schema; else all below is 0 */
    bool changed; /* this call made or upgraded it */
    int found;    /* its version, now; 0: there is none */
    int known;    /* the version that this library works with */
} dibs_store_state;

/* Looks at the schema of a store or changes it, as the task says, in one
 * transaction; many may do so at once. `url` NULL is the default store.
 * timeout_ms 0 is 5 seconds.
 *   DIBS_REFUSED  the schema is of a newer dibs; or there is none to upgrade; or
 *                 it is older, and was to be made
 *   DIBS_DENIED   the user may not */
DIBS_API DIBS_MUST_CHECK dibs_status dibs_store_setup(const char *url,
                                                      dibs_store_task task,
                                                      int64_t timeout_ms,
                                                      dibs_store_state *out,
                                                      dibs_error *err);

#ifdef __cplusplus
}
#endif
#endif
