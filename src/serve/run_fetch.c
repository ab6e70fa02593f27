/* run_fetch.c - see run_fetch.h. */
/* SPDX-License-Identifier: MIT */
#include "serve/run_fetch.h"

#include <stdio.h>

dibs_status dibs__record_fetch(const dibs__board *board, const char *begins,
                               const char *const *ids, size_t count,
                               dibs_value *values, dibs_error *err)
{
    char keys[DIBS_GET_MANY_MAX][DIBS_NAME_MAX + 1], inner[DIBS_NAME_MAX];
    const char *list[DIBS_GET_MANY_MAX];
    dibs_status rc = DIBS_OK;

    for (size_t i = 0; i < count && rc == DIBS_OK; i++) {
        (void)snprintf(inner, sizeof(inner), "%s%s", begins, ids[i]);
        rc = dibs__board_key(board, inner, keys[i], err);
        list[i] = keys[i];
    }
    return rc == DIBS_OK
               ? dibs_state_get_many(board->cl, list, count, values, err)
               : rc;
}

dibs_status
dibs__run_fetch(const dibs__board *board, const dibs__board_run_id *const *ids,
                size_t count, dibs_value *values, dibs_error *err)
{
    const char *list[DIBS_GET_MANY_MAX];

    for (size_t i = 0; i < count; i++)
        list[i] = ids[i]->id;
    return dibs__record_fetch(board, "run/", list, count, values, err);
}
