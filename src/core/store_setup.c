/* store_setup.c - the schema of a store, looked at and made.
 *
 * Owns a store handle for the time of the call. Any thread. */
/* SPDX-License-Identifier: MIT */
#include <dibs/store.h>

#include "base/fail.h"
#include "base/uncancel.h"
#include "store/store.h"
#include <string.h>

enum { TIMEOUT_MS = 5000 };

dibs_status
dibs_store_setup(const char *url, dibs_store_task task, int64_t timeout_ms,
                 dibs_store_state *out, dibs_error *err)
{
    DIBSX_UNCANCEL;
    dibsx_nsec deadline =
        dibsx_after_ms(dibsx_now(), timeout_ms > 0 ? timeout_ms : TIMEOUT_MS);
    dibs__store *st = NULL;
    dibs_status rc = DIBS_OK;
    dibsx_buf place;

    memset(out, 0, sizeof(*out));
    if (task < DIBS_STORE_STATUS || task > DIBS_STORE_UPGRADE)
        return dibsx_fail(err, DIBS_INVALID,
                          "the task is %d, which is no dibs_store_task",
                          (int)task);
    dibsx_buf_init(&place, DIBSX_URL_MAX);
    if (!url || !*url) {
        rc = dibs__store_default_url(&place, err);
        url = dibsx_buf_text(&place);
    }
    if (rc == DIBS_OK)
        rc = dibs__store_make(url, deadline, &st, err);
    if (rc == DIBS_OK && st->ops->setup)
        rc = st->ops->setup(st, task, deadline, out, err);
    dibs__store_close(st);
    dibsx_buf_fini(&place);
    return rc;
}
