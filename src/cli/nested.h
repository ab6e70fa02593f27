/* nested.h - the environment of the command, and locks held further up its tree.
 *
 * DIBS_LOCK_CHAIN carries the locks of every `dibs run` above: name, owner and
 * fence each. What it says is checked against the store, so that a stale or
 * forged entry, or one of another store, counts for nothing. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_NESTED_H
#define DIBS_CLI_NESTED_H

#include <dibs/dibs.h>

/* A lock as the command is told of it. */
typedef struct dibs__held {
    const char *name; /* borrowed */
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    int64_t ttl_ms;
} dibs__held;

/* Looks for held->name in the chain (may be NULL) and asks the store whether
 * that owner still holds it under that fence. *found: it does, and the rest of
 * held is filled in. */
DIBS_MUST_CHECK dibs_status dibs__nested_find(dibs_client *cl,
                                              const char *chain,
                                              dibs__held *held, bool *found,
                                              dibs_error *err);

/* This process' environment with the DIBS_LOCK_* of `held`, which joins the
 * chain if it is not in there (`joins`). Free with dibs__childenv_free(). */
DIBS_MUST_CHECK dibs_status dibs__childenv_make(const dibs__held *held,
                                                bool joins, char ***out,
                                                dibs_error *err);
void dibs__childenv_free(char **envp);

#endif
