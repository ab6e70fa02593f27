/* env.h - the environment of the command, and locks held further up its tree.
 *
 * DIBS_LOCK_CHAIN carries the locks of every `dibs run` above: name, owner and
 * fence each. dibs checks each entry against the store, so that a stale or forged
 * entry, or one of another store, counts for nothing.
 *
 * A lock held above is enough when it gives at least what the command asks for: an
 * exclusive lock for an exclusive or a shared one, a shared for a shared one,
 * permits for as many or fewer. */
/* SPDX-License-Identifier: MIT */
#ifndef DIBS_CLI_RUN_ENV_H
#define DIBS_CLI_RUN_ENV_H

#include <dibs/dibs.h>

/* A lock as the command sees it in its environment. */
typedef struct dibs__held {
    const char *name; /* borrowed */
    char owner[DIBS_OWNER_SIZE];
    uint64_t fence;
    int64_t ttl_ms;
    bool above; /* held further up the tree, and enough */
} dibs__held;

/* Looks for held->name in the chain (may be NULL) and asks the store whether
 * that owner still holds it under that fence, and whether that is enough for
 * what is asked. held->above: it is, and the rest of held is filled in.
 * DIBS_INVALID: what is held above is in the way, so that the wait would never
 * end. */
DIBS_MUST_CHECK dibs_status dibs__run_env_find_held(dibs_client *cl,
                                                    const char *chain,
                                                    const dibs_lock_opts *asked,
                                                    dibs__held *held,
                                                    dibs_error *err);

/* The chain (may be NULL) as metadata of what is asked for under it: "within=" and
 * the beginnings of its owners, the innermost first, as many as `size` has room
 * for; "" when there is none. dibs_deadlocks() reads it: the runs around this one
 * wait for whatever it waits for. */
enum { DIBS__WITHIN_SIZE = 7 + 8 * 17 };
void dibs__run_env_within(const char *chain, char *out, size_t size);

/* The environment of a command. */
typedef struct dibs__run_env {
    char **vars; /* NULL ends; the first `own` are ours */
    size_t own;
} dibs__run_env;

/* This process' environment with the DIBS_LOCK_* of what is held; what is not in
 * the chain yet joins it. `progress_fd` goes to DIBS_PROGRESS_FD, unless it is
 * negative. End with dibs__run_env_fini(). */
DIBS_MUST_CHECK dibs_status dibs__run_env_init(dibs__run_env *env,
                                               const dibs__held *held,
                                               size_t count, int progress_fd,
                                               dibs_error *err);
void dibs__run_env_fini(dibs__run_env *env);

#endif
