/* store_setup.c - the schema of a store, looked at and made.
 *
 * Owns a store handle for the time of the call. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/store.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "core/client_settings.h"
#include "store/store.h"
#include <string.h>

enum { TIMEOUT_MS = 5000 };

dibs_status
dibs_store_setup(const char *url, dibs_store_task task, int64_t timeout_ms,
                 dibs_store_state *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibs_client_opts opts = {.size = sizeof(opts), .timeout_ms = timeout_ms};
    dibs__client_settings settings;
    dibs__store *st = NULL;
    dibsx_nsec deadline;
    dibs_status rc;

    memset(out, 0, sizeof(*out));
    if (task < DIBS_STORE_STATUS || task > DIBS_STORE_UPGRADE)
        return dibsx_fail(err, DIBS_INVALID,
                          "the task is %d, which is no dibs_store_task",
                          (int)task);
    rc = dibs__client_settings_read(&settings, url, &opts, err);
    deadline = dibsx_after_ms(dibsx_now(), opts.timeout_ms > 0 ? opts.timeout_ms
                                                               : TIMEOUT_MS);
    if (rc == DIBS_OK)
        rc = dibs__store_make(settings.url, deadline, &st, err);
    if (rc == DIBS_OK && st->ops->setup)
        rc = st->ops->setup(st, task, deadline, out, err);
    dibs__store_close(st);
    dibs__client_settings_fini(&settings);
    return rc;
}
