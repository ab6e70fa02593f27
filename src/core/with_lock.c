/* with_lock.c - running something under a lock: the function and the block. */
/* SPDX-License-Identifier: MIT */
#include "base/fail.h"
#include "core/lock/lock.h"
#include "core/log.h"
#include <stdatomic.h>
#include <stdio.h>

/* Ends a run under a lock: whether its lease lasted. A release that the store
 * did not get is logged only: as a status it would mean that nothing ran. */
static dibs_status end_with_lock(dibs_lock *lock, dibs_error *err)
{
    dibs_error why = {0};
    dibs_status rc = dibs_lock_release(lock, &why);

    if (rc == DIBS_UNAVAIL || rc == DIBS_UNKNOWN) {
        dibs__log(lock->cl, DIBS_LOG_WARN, "release", "%s: %s", lock->name,
                  why.message);
        return DIBS_OK;
    }
    return rc == DIBS_OK ? rc : dibsx_fail(err, DIBS_LOST, "%s", why.message);
}

dibs_status
dibs_with_lock(dibs_client *cl, const char *name, const dibs_lock_opts *opts,
               dibs_lock_fn *fn, void *arg, dibs_error *err)
{
    dibs_lock *lock = NULL;
    dibs_status rc;

    rc = dibs_lock_new(cl, name, opts, &lock, err);
    if (rc != DIBS_OK)
        return rc;
    rc = dibs_lock_acquire(lock, err);
    if (rc == DIBS_OK) {
        fn(lock, arg);
        rc = end_with_lock(lock, err);
    }
    dibs_lock_free(lock);
    return rc;
}

/* Prints a status once, if it has no log to go to: the caller of a block gets no
 * error, and would take the failure for a busy lock. */
static void
print_skipped(atomic_uint *printed, const char *name, const dibs_error *err)
{
    unsigned bit = 1U << (unsigned)err->status;

    if ((atomic_fetch_or(printed, bit) & bit) == 0)
        fprintf(stderr, "dibs: skipped: %s: %s\n", name, err->message);
}

/* Says why a block did not run. */
static void
say_skipped(dibs_client *cl, const char *name, const dibs_error *err)
{
    static atomic_uint without_client;
    bool usual = err->status == DIBS_BUSY || err->status == DIBS_TIMEOUT;
    bool usable = dibs__client_usable(cl, NULL) == DIBS_OK;

    if (!name)
        name = "(no name)";
    if (usable && cl->log)
        dibs__log(cl, usual ? DIBS_LOG_INFO : DIBS_LOG_ERROR, "skipped",
                  "%s: %s", name, err->message);
    else if (!usual && err->status != DIBS_CANCELLED)
        print_skipped(usable ? &cl->skips_printed : &without_client, name, err);
}

dibs_lock *
dibs_scope_begin(dibs_client *cl, const char *name, const dibs_lock_opts *opts)
{
    dibs_lock *lock = NULL;
    dibs_error err;
    dibs_status rc = dibs_lock_new(cl, name, opts, &lock, &err);

    if (rc == DIBS_OK)
        rc = dibs_lock_acquire(lock, &err);
    if (rc == DIBS_OK)
        return lock;
    say_skipped(cl, name, &err);
    dibs_lock_free(lock);
    return NULL;
}

void dibs_scope_end(dibs_lock **held)
{
    dibs_lock_free(*held);
    *held = NULL;
}
